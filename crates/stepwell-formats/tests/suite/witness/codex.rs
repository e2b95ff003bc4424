//! The real Codex.

use std::path::Path;
use std::process::Stdio;

use serde_json::{Value, json};
use stepwell::log::INTERRUPTED;
use stepwell::model::{Part, Role};
use stepwell::{Session, SessionId, Stepwell};
use stepwell_formats::{Format, Mode, NOT_BEGUN, take_in};
use stepwell_strict::{Say, Tokens};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader, Lines};
use tokio::process::{Child, ChildStdin, ChildStdout};

use super::sessions::{PICTURE, begin, compacted, cut_off, pictured, view, waits};
use super::test_env::{ANSWER, NAME, TestEnv, assert_in_order, program, text_in};
use crate::mirror::{assert_returns, said, shown, taken};
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
        "reasoning" => {
            let parts = item["summary"].as_array().unwrap().iter();
            parts.map(|it| format!("thinking: {}", it["text"].as_str().unwrap())).collect()
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

/// A client of Codex's own server, which can do what its command line only does on a screen.
struct AppServer<'a> {
    env: &'a TestEnv,
    _child: Child,
    to: ChildStdin,
    from: Lines<BufReader<ChildStdout>>,
    asked: u64,
}

impl<'a> AppServer<'a> {
    fn start(env: &'a TestEnv, program: &Path) -> Self {
        let mut command = env.command(program, &["app-server"]);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut child = env.wait(async { command.spawn() }).unwrap();
        let (to, from) = (child.stdin.take().unwrap(), child.stdout.take().unwrap());
        let from = BufReader::new(from).lines();
        let mut server = Self { env, _child: child, to, from, asked: 0 };
        let client = json!({"name": "witness", "version": "1"});
        let capabilities = json!({"experimentalApi": true});
        server.ask("initialize", &json!({"clientInfo": client, "capabilities": capabilities}));
        server.tell(&json!({"method": "initialized"}));
        server
    }

    fn tell(&mut self, message: &Value) {
        let (env, line) = (self.env, format!("{message}\n"));
        env.wait(self.to.write_all(line.as_bytes())).unwrap();
    }

    /// What it says next that fits.
    fn hear(&mut self, fits: impl Fn(&Value) -> bool) -> Value {
        let (env, from) = (self.env, &mut self.from);
        env.wait(async {
            loop {
                let line = from.next_line().await.unwrap().expect("it answers");
                let said: Value = serde_json::from_str(&line).unwrap_or_default();
                if fits(&said) {
                    return said;
                }
            }
        })
    }

    fn ask(&mut self, method: &str, params: &Value) -> Value {
        self.asked += 1;
        let id = self.asked;
        self.tell(&json!({"id": id, "method": method, "params": params}));
        let answer = self.hear(|said| said["id"] == id && said.get("method").is_none());
        assert!(answer.get("error").is_none(), "{method}: {answer}");
        answer["result"].clone()
    }

    /// The user says something, and the turn ends.
    fn turn(&mut self, thread: &str, text: &str) {
        let input = json!([{"type": "text", "text": text}]);
        self.ask("turn/start", &json!({"threadId": thread, "input": input}));
        self.hear(|said| said["method"] == "turn/completed");
    }
}

/// The conversation of the newest rollout whose name begins so, as a model is shown it: a line for
/// each part, without instructions.
fn conversation(env: &TestEnv, thread: &str) -> Vec<String> {
    let well = Stepwell::in_memory();
    let sessions = taken(&well, &env.home().join(".codex/sessions"));
    let of_thread = |id: &&SessionId| id.as_str().starts_with(thread);
    let id = sessions.iter().map(|it| &it.id).rfind(of_thread).unwrap();
    let mut lines = Vec::new();
    for message in shown(&well, id).into_iter().filter(|it| it.role != Role::System) {
        let role = if message.role == Role::Assistant { "assistant" } else { "user" };
        lines.extend(message.parts.iter().map(|part| match part {
            Part::Text(text) => format!("{role}: {}", text.text),
            Part::Image(image) => format!("image: {} {}", image.media_type, image.data),
            Part::ToolCall(call) => {
                let arguments: Value = serde_json::from_str(&call.arguments).unwrap();
                format!("call: {} {} {arguments}", call.id, call.name)
            }
            Part::ToolResult(result) => format!("result: {} {}", result.call_id, result.text),
            Part::Thinking(text) => format!("thinking: {}", text.text),
        }));
    }
    lines
}

/// The user says something more, and Codex asks its model with just what was read here before.
fn assert_sends_what_is_read(env: &TestEnv, server: &mut AppServer<'_>, thread: &str, text: &str) {
    let mut expected = conversation(env, thread);
    expected.push(format!("user: {text}"));
    server.turn(thread, text);
    let mut sent = sent(env);
    sent.retain(|line| !line.starts_with("developer: "));
    assert_eq!(sent, expected, "before {text:?}");
}

#[test]
fn what_is_read_of_codex_is_what_codex_sends_next() {
    let Some(program) = program("STEPWELL_WITNESS_CODEX") else { return };
    let env = env();
    std::fs::write(env.workspace().join("AGENTS.md"), "Weigh twice.\n").unwrap();
    let mut server = AppServer::start(&env, &program);
    let begun = json!({"cwd": env.workspace(), "approvalPolicy": "never"});
    let thread = server.ask("thread/start", &begun)["thread"]["id"].as_str().unwrap().to_owned();
    server.turn(&thread, "Weigh the flour.");
    let fails = Say::text("I look.").calling("call_1", "exec_command", &[r#"{"cmd":"exit 3"}"#]);
    env.model.push(fails);
    server.turn(&thread, "Look.");
    assert_sends_what_is_read(&env, &mut server, &thread, "Weigh the salt.");
    let turns = server.ask("thread/turns/list", &json!({"threadId": thread}));
    let last = turns["data"][0]["id"].as_str().unwrap();
    server.ask("thread/revert", &json!({"threadId": thread, "beforeTurnId": last}));
    assert_sends_what_is_read(&env, &mut server, &thread, "Weigh the water.");
    server.ask("thread/compact/start", &json!({"threadId": thread}));
    server.hear(|said| said["method"] == "turn/completed");
    assert_sends_what_is_read(&env, &mut server, &thread, "Add them.");
    let fork = server.ask("thread/fork", &json!({"threadId": thread}));
    let fork = fork["thread"]["id"].as_str().unwrap().to_owned();
    server.turn(&fork, "Elsewhere.");
    assert_sends_what_is_read(&env, &mut server, &fork, "And there?");
    assert_sends_what_is_read(&env, &mut server, &thread, "And here?");
}

#[test]
fn the_task_of_a_rollout_with_a_picture_is_what_was_typed_with_it() {
    let Some(program) = program("STEPWELL_WITNESS_CODEX") else { return };
    let env = env();
    std::fs::write(env.workspace().join("AGENTS.md"), "Weigh twice.\n").unwrap();
    let bytes = base64::Engine::decode(&base64::engine::general_purpose::STANDARD, PICTURE);
    std::fs::write(env.workspace().join("scales.png"), bytes.unwrap()).unwrap();
    let arguments = ["exec", "--skip-git-repo-check", "-i", "scales.png", "--", "What is on it?"];
    env.run(env.command(&program, &arguments));
    let well = Stepwell::in_memory();
    let id = taken(&well, &env.home().join(".codex/sessions")).remove(0).id;
    assert_eq!(well.info(&id).unwrap().head.task, "What is on it?");
    // What Codex put in front is shown to the model, and is not the user's.
    let messages = shown(&well, &id);
    let own: Vec<_> = messages.iter().filter(|it| it.is_from_user()).collect();
    assert_eq!(own.len(), 1, "{own:#?}");
    assert!(own[0].text().contains("What is on it?"));
    assert!(messages.iter().any(|it| it.text().contains("Weigh twice.") && !it.is_from_user()));
}

#[test]
fn codex_through_failures_compactions_reverts_and_forks_is_read_as_it_sends_next() {
    let Some(program) = program("STEPWELL_WITNESS_CODEX") else { return };
    let env = env();
    let mut server = AppServer::start(&env, &program);
    let begun =
        json!({"cwd": env.workspace(), "approvalPolicy": "never", "sandbox": "danger-full-access"});
    let thread = server.ask("thread/start", &begun)["thread"]["id"].as_str().unwrap().to_owned();
    server.turn(&thread, "Weigh the flour.");
    let one = r#"{"cmd":"echo one"}"#;
    let both = Say::text("I look.").calling("call_1", "exec_command", &[one]).calling(
        "call_2",
        "exec_command",
        &[r#"{"cmd":"exit 3"}"#],
    );
    env.model.push(both);
    server.turn(&thread, "Look at both.");
    assert_sends_what_is_read(&env, &mut server, &thread, "Weigh the salt.");
    // A tool that is not there, and a request that the provider refuses.
    env.model.push(Say::default().calling("call_3", "no_such_tool", &["{}"]));
    server.turn(&thread, "Use it.");
    env.model.push(stepwell_strict::Reply::error(400, "the model refuses"));
    server.turn(&thread, "Be refused.");
    assert_sends_what_is_read(&env, &mut server, &thread, "Weigh the water.");
    env.model.push(Say::default().thinking("Hm.", "signed").saying("Thought."));
    server.turn(&thread, "Think.");
    assert_sends_what_is_read(&env, &mut server, &thread, "And the yeast?");
    let revert = |server: &mut AppServer<'_>, thread: &str, n: usize| {
        let turns = server.ask("thread/turns/list", &json!({"threadId": thread}));
        let turn = turns["data"][n]["id"].as_str().unwrap();
        server.ask("thread/revert", &json!({"threadId": thread, "beforeTurnId": turn}));
    };
    let compact = |server: &mut AppServer<'_>, thread: &str| {
        server.ask("thread/compact/start", &json!({"threadId": thread}));
        server.hear(|said| said["method"] == "turn/completed");
    };
    compact(&mut server, &thread);
    assert_sends_what_is_read(&env, &mut server, &thread, "Bake.");
    server.turn(&thread, "Cool.");
    revert(&mut server, &thread, 0);
    assert_sends_what_is_read(&env, &mut server, &thread, "Slice.");
    // A fork that goes back in its parent's turns, and a fork of that.
    let fork = server.ask("thread/fork", &json!({"threadId": thread}));
    let fork = fork["thread"]["id"].as_str().unwrap().to_owned();
    revert(&mut server, &fork, 0);
    assert_sends_what_is_read(&env, &mut server, &fork, "Elsewhere.");
    compact(&mut server, &fork);
    assert_sends_what_is_read(&env, &mut server, &fork, "And there?");
    let other = server.ask("thread/fork", &json!({"threadId": fork}));
    let other = other["thread"]["id"].as_str().unwrap().to_owned();
    assert_sends_what_is_read(&env, &mut server, &other, "Third.");
    assert_sends_what_is_read(&env, &mut server, &thread, "And here?");
    // Before the compaction.
    revert(&mut server, &thread, 3);
    assert_sends_what_is_read(&env, &mut server, &thread, "Before it?");
}

#[test]
fn a_turn_of_codex_that_was_interrupted_is_read_as_it_sends_next() {
    let Some(program) = program("STEPWELL_WITNESS_CODEX") else { return };
    let env = env();
    let mut server = AppServer::start(&env, &program);
    let begun =
        json!({"cwd": env.workspace(), "approvalPolicy": "never", "sandbox": "danger-full-access"});
    let thread = server.ask("thread/start", &begun)["thread"]["id"].as_str().unwrap().to_owned();
    server.turn(&thread, "Weigh the flour.");
    let waits =
        Say::text("I wait.").calling("call_1", "exec_command", &[r#"{"cmd":"sleep 1000"}"#]);
    env.model.push(waits);
    let input = json!([{"type": "text", "text": "Wait."}]);
    let turn = server.ask("turn/start", &json!({"threadId": thread, "input": input}));
    server.hear(|said| {
        said["method"] == "item/started" && said["params"]["item"]["type"] == "commandExecution"
    });
    let turn = turn["turn"]["id"].clone();
    server.ask("turn/interrupt", &json!({"threadId": thread, "turnId": turn}));
    server.hear(|said| said["method"] == "turn/completed");
    assert_sends_what_is_read(&env, &mut server, &thread, "Weigh the salt.");
    assert_sends_what_is_read(&env, &mut server, &thread, "And the water?");
}
