//! The real Codex.

use std::path::Path;
use std::process::Stdio;

use serde_json::{Value, json};
use stepwell::{INTERRUPTED, Session, Stepwell};
use stepwell_formats::{Format, Mode, NOT_BEGUN, take_in};
use stepwell_strict::{Say, Tokens};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};

use super::sessions::{begin, compacted, cut_off, pictured, view, waits};
use super::test_env::{ANSWER, NAME, TestEnv, assert_in_order, program, text_in};
use crate::mirror::{assert_returns, said, shown};
use crate::support::log;

fn codex() -> Format {
    "codex".parse().unwrap()
}

/// An environment at which Codex asks the model that records.
fn env() -> TestEnv {
    let env = TestEnv::new();
    let config = format!(
        "model = \"recorded\"\nmodel_provider = \"recorder\"\n\
         check_for_update_on_startup = false\n\
         [analytics]\nenabled = false\n\
         [model_providers.recorder]\nname = \"recorder\"\nbase_url = \"{}\"\n\
         env_key = \"MODEL_KEY\"\nwire_api = \"responses\"\n",
        env.model.base_url()
    );
    std::fs::create_dir(env.home().join(".codex")).unwrap();
    std::fs::write(env.home().join(".codex/config.toml"), config).unwrap();
    env
}

/// What the last request shows the model, a line for each part.
fn sent(env: &TestEnv) -> Vec<String> {
    let body = env.asked().pop().expect("Codex asked its model");
    let items = body["input"].as_array().unwrap();
    items.iter().flat_map(lines).collect()
}

fn lines(item: &Value) -> Vec<String> {
    let text = |field: &str| item[field].as_str().unwrap_or_default().to_owned();
    match item["type"].as_str().unwrap_or_default() {
        "message" => {
            let block = |block: &Value| match block["image_url"].as_str() {
                Some(url) => {
                    let url = url.trim_start_matches("data:").replace(";base64,", " ");
                    format!("image: {url}")
                }
                None => format!("{}: {}", text("role"), block["text"].as_str().unwrap_or_default()),
            };
            item["content"].as_array().unwrap().iter().map(block).collect()
        }
        "function_call" => {
            let arguments: Value = serde_json::from_str(&text("arguments")).unwrap();
            vec![format!("call: {} {} {arguments}", text("call_id"), text("name"))]
        }
        "function_call_output" => {
            vec![format!("result: {} {}", text("call_id"), text_in(&item["output"]))]
        }
        _ => Vec::new(),
    }
}

/// The threads that Codex offers to be resumed.
fn listed(env: &TestEnv, program: &Path) -> Vec<Value> {
    let mut command = env.command(program, &["app-server"]);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
    env.wait(async {
        let mut child = command.spawn().unwrap();
        let (mut to, from) = (child.stdin.take().unwrap(), child.stdout.take().unwrap());
        let client = json!({"clientInfo": {"name": "witness", "version": "1"}});
        for request in [
            json!({"id": 1, "method": "initialize", "params": client}),
            json!({"method": "initialized"}),
            json!({"id": 2, "method": "thread/list", "params": {}}),
        ] {
            to.write_all(format!("{request}\n").as_bytes()).await.unwrap();
        }
        let mut answers = BufReader::new(from).lines();
        loop {
            let line = answers.next_line().await.unwrap().expect("it answers");
            let answer: Value = serde_json::from_str(&line).unwrap_or_default();
            if answer["id"] == 2 {
                return answer["result"]["data"].as_array().unwrap().clone();
            }
        }
    })
}

/// What Codex shows its model when it goes on with a session of another provider.
fn gone_on_with(fill: fn(&Session)) -> Option<(Vec<String>, Vec<String>)> {
    let program = program("STEPWELL_WITNESS_CODEX")?;
    let (env, well) = (env(), Stepwell::in_memory());
    let session = begin(&well, "anthropic");
    fill(&session);
    let id = session.id().clone();
    drop(session);
    let handoff = env.hand_over(&well, &id, codex());
    assert_eq!(handoff.command, ["codex", "resume", NAME]);
    let arguments = ["exec", "resume", NAME, "Go on.", "--skip-git-repo-check"];
    let said = env.run(env.command(&program, &arguments));
    assert!(said.contains(ANSWER), "{said}");
    let mut expected = view(&well, &id);
    expected.push("user: Go on.".to_owned());
    Some((expected, sent(&env)))
}

#[test]
fn codex_goes_on_with_a_session_of_another_provider() {
    let Some((expected, sent)) = gone_on_with(|_| {}) else { return };
    assert_in_order(&expected, &sent);
}

#[test]
fn codex_lists_a_session_of_another_provider_as_one_of_its_own() {
    let Some(program) = program("STEPWELL_WITNESS_CODEX") else { return };
    let (env, well) = (env(), Stepwell::in_memory());
    let id = begin(&well, "anthropic").id().clone();
    env.hand_over(&well, &id, codex());
    let threads = listed(&env, &program);
    assert_eq!(threads.len(), 1, "{threads:#?}");
    assert_eq!(
        (&threads[0]["id"], &threads[0]["modelProvider"]),
        (&json!(NAME), &json!("recorder"))
    );
    assert_eq!(threads[0]["preview"], "Weigh the flour");
}

#[test]
fn codex_hears_what_became_of_commands_that_were_cut_off() {
    let Some((mut expected, sent)) = gone_on_with(cut_off) else { return };
    // What the view says of any call without a result is not true of one that never began.
    for line in &mut expected {
        if *line == format!("result: call_3 {INTERRUPTED}") {
            *line = format!("result: call_3 {NOT_BEGUN}");
        }
    }
    assert!(expected.contains(&format!("result: call_2 {INTERRUPTED}")), "{expected:#?}");
    assert_in_order(&expected, &sent);
}

#[test]
fn codex_hears_that_a_command_that_waited_was_not_run() {
    let Some((_, sent)) = gone_on_with(waits) else { return };
    assert!(sent.contains(&format!("result: call_4 {NOT_BEGUN}")), "{sent:#?}");
}

#[test]
fn codex_goes_on_behind_a_summary() {
    let Some((expected, sent)) = gone_on_with(compacted) else { return };
    assert!(expected[0].contains("The flour was weighed."), "{expected:#?}");
    assert_in_order(&expected, &sent);
    assert!(!sent.iter().any(|line| line.contains("Weigh the flour")), "{sent:#?}");
}

#[test]
fn codex_is_shown_pictures() {
    let Some((expected, sent)) = gone_on_with(pictured) else { return };
    assert_in_order(&expected, &sent);
}

#[test]
fn what_codex_writes_is_read_without_messages_that_nobody_said() {
    let Some(program) = program("STEPWELL_WITNESS_CODEX") else { return };
    let env = env();
    let tokens = |input, output| Tokens { input, output, ..Tokens::default() };
    let calls = Say::text("I look.")
        .calling("call_1", "exec_command", &[r#"{"cmd":"echo one"}"#])
        .calling("call_2", "exec_command", &[r#"{"cmd":"echo two"}"#]);
    env.model.push(calls.using(tokens(100, 10)));
    env.model.push(Say::text("Both are there.").using(tokens(200, 20)));
    env.run(env.command(&program, &["exec", "Look at both.", "--skip-git-repo-check"]));
    let well = Stepwell::in_memory();
    let folder = env.home().join(".codex/sessions");
    let path = crate::mirror::found(&folder).remove(0).path;
    let report = take_in(&well, Mode::Write, codex(), &path);
    assert!(report.fault.is_none() && report.warnings.is_empty(), "{report:?}");
    let id = &report.sessions[0].id;
    let head = well.info(id).unwrap().head;
    assert_eq!((head.spent.calls, head.spent.usage.input, head.spent.usage.output), (2, 300, 30));
    let empty = log(&well, id).into_iter().filter(|it| match &it.event {
        stepwell::Event::Message(message) => message.parts.is_empty(),
        _ => false,
    });
    assert_eq!(empty.count(), 0);
    let texts = said(&shown(&well, id));
    let front = texts.iter().position(|it| it.contains("Look at both.")).unwrap();
    assert_eq!(texts.len() - front, 4, "{texts:#?}");
    assert!(texts[front + 2].contains("one") && texts[front + 2].contains("two"), "{texts:#?}");
    assert_returns(codex(), &path, path.file_name().unwrap().to_str().unwrap());
}
