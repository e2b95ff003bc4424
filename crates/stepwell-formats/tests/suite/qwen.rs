//! Chats of Qwen Code: what its model would be sent next is what the view shows.

use std::path::{Path, PathBuf};

use serde_json::{Value, json};
use stepwell::log::INTERRUPTED;
use stepwell::model::Part;
use stepwell::{Message, SessionId, Status, Stepwell};
use stepwell_formats::{Format, Mode, take_in};

use crate::mirror::{said, shown, taken, written};
use crate::seeds::fixtures;
use crate::support::{log, names};

/// The chat with a rewind, a compression and an open call.
const LABEL: &str = "5d0c7a1e-3b4f-4c59-9d1a-0b6f2e8c7a31";
/// One of an older version.
const CRUMBS: &str = "6e1d8b2f-4c50-4d6a-8e2b-1c7f3f9d8b42";
const OTHER: &str = "0196a3f0-0000-7a52-8c3e-000000000009";

fn qwen() -> Format {
    "qwen".parse().unwrap()
}

fn file(name: &str) -> PathBuf {
    let folder = fixtures(qwen()).unwrap().join("projects/-home-mila-crumb-shop/chats");
    folder.join(format!("{name}.jsonl"))
}

fn id(name: &str) -> SessionId {
    name.parse().unwrap()
}

/// A chat of these lines: kind, what it says, and the line that it follows by its number.
fn chat(lines: &[(Option<usize>, Value)]) -> (tempfile::TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join(format!("{OTHER}.jsonl"));
    std::fs::write(&path, text(OTHER, lines)).unwrap();
    (folder, path)
}

fn text(session: &str, lines: &[(Option<usize>, Value)]) -> String {
    let mut text = String::new();
    for (n, (parent, more)) in lines.iter().enumerate() {
        let mut line = json!({
            "uuid": format!("u{n}"),
            "parentUuid": parent.map(|n| format!("u{n}")),
            "sessionId": session,
            "timestamp": format!("2026-05-06T08:00:{n:02}.000Z"),
            "cwd": "/w",
            "version": "0.24.4",
        });
        line.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        text.push_str(&format!("{line}\n"));
    }
    text
}

fn user(words: &str) -> Value {
    json!({"type": "user", "message": {"role": "user", "parts": [{"text": words}]}})
}

fn model(words: &str) -> Value {
    json!({
        "type": "assistant",
        "model": "qwen3",
        "message": {"role": "model", "parts": [{"text": words}]},
        "usageMetadata": {
            "promptTokenCount": 10, "candidatesTokenCount": 5, "totalTokenCount": 15,
        },
    })
}

fn system(subtype: &str, payload: &Value) -> Value {
    json!({"type": "system", "subtype": subtype, "systemPayload": payload})
}

/// What is shown of the session that a file holds.
fn view(path: &Path) -> Vec<String> {
    let well = Stepwell::in_memory();
    let id = taken(&well, path).remove(0).id;
    said(&shown(&well, &id))
}

#[test]
fn the_view_is_what_qwen_code_would_send_next() {
    let well = Stepwell::in_memory();
    taken(&well, &file(LABEL));
    let expected = [
        r#"User: ["text <state_snapshot>\nThe label of the rye loaf shows name and price. One test fails.\n</state_snapshot>"]"#,
        r#"Assistant: ["text Got it. Thanks for the additional context!"]"#,
        r#"User: ["text Only add the price."]"#,
        r#"Assistant: ["text The label shows name and price now."]"#,
        r#"User: ["text Run the test again."]"#,
        r#"Assistant: ["text I run it again.", "call call_9f04 run_shell_command {\"command\":\"python3 -m unittest test_label\"}"]"#,
        &format!(r#"Tool: ["result call_9f04 {INTERRUPTED}"]"#),
    ];
    assert_eq!(said(&shown(&well, &id(LABEL))), expected);
    let head = well.info(&id(LABEL)).unwrap().head;
    assert_eq!(head.task, "Why is the price label of the rye loaf blank?");
    assert_eq!(head.label.as_deref(), Some("blank rye label"));
    assert_eq!((head.status, &*head.model), (Status::Interrupted, "qwen3-coder-plus"));
    assert_eq!(head.workspace, "/home/mila/crumb_shop");
    // Telemetry repeats the tokens of an answer, and of calls that are no part of the conversation.
    assert_eq!((head.spent.calls, head.spent.usage.output), (4, 120));
    assert_eq!((head.spent.usage.input, head.spent.usage.cached), (3_200, 512));
}

#[test]
fn a_command_that_failed_is_a_failed_call_though_it_is_called_a_success() {
    for (name, failed) in [(LABEL, ["call_9f02"]), (CRUMBS, ["call_7a01"])] {
        let well = Stepwell::in_memory();
        taken(&well, &file(name));
        let events = log(&well, &id(name)).into_iter();
        let results = events.filter_map(|it| match it.event {
            stepwell::Event::Message(message) => Some(message.parts),
            _ => None,
        });
        let errors = results.flatten().filter_map(|part| match part {
            Part::ToolResult(result) if result.is_error => Some(result.call_id),
            _ => None,
        });
        assert_eq!(errors.collect::<Vec<_>>(), failed, "{name}");
    }
}

#[test]
fn what_the_program_says_in_the_users_name_is_marked_and_titles_nothing() {
    let reminder = user("<system-reminder>be brief</system-reminder>");
    let mut notice = user("a task ended");
    notice["provenance"] = json!("system");
    let lines =
        [(None, reminder), (Some(0), notice), (Some(1), user("bake")), (Some(2), model("baked"))];
    let (_folder, path) = chat(&lines);
    let well = Stepwell::in_memory();
    let id = taken(&well, &path).remove(0).id;
    let own: Vec<bool> = shown(&well, &id).iter().map(Message::is_from_user).collect();
    assert_eq!(own, [false, false, true, false]);
    assert_eq!(well.info(&id).unwrap().head.task, "bake");
}

#[test]
fn a_line_that_follows_an_earlier_one_leaves_what_came_between() {
    let mut lines = vec![
        (None, user("one")),
        (Some(0), model("first")),
        (Some(1), user("left")),
        (Some(2), model("left too")),
        (Some(1), system("rewind", &json!({"truncatedCount": 1}))),
    ];
    let (_folder, path) = chat(&lines);
    let front = [r#"User: ["text one"]"#, r#"Assistant: ["text first"]"#];
    // The conversation goes on from the last line, whatever that is.
    assert_eq!(view(&path), front);
    lines.push((Some(4), user("two")));
    std::fs::write(&path, text(OTHER, &lines)).unwrap();
    assert_eq!(view(&path)[..2], front);
    assert_eq!(view(&path)[2], r#"User: ["text two"]"#);
    // Some lines stand apart: nothing goes on from them.
    lines.push((None, system("session_sources_snapshot", &json!({}))));
    std::fs::write(&path, text(OTHER, &lines)).unwrap();
    assert_eq!(view(&path).len(), 3);
}

#[test]
fn a_command_that_the_program_answers_itself_is_not_sent() {
    let answer = |sent: bool| {
        system(
            "slash_command",
            &json!({
                "phase": "result",
                "rawCommand": "/stats",
                "sentToModel": sent,
                "outputHistoryItems": [{"type": "assistant", "text": "3 turns"}],
            }),
        )
    };
    for (sent, count) in [(false, 2), (true, 3)] {
        let lines = [
            (None, user("one")),
            (Some(0), model("first")),
            (Some(1), user("/stats")),
            (Some(2), answer(sent)),
        ];
        let (_folder, path) = chat(&lines);
        assert_eq!(view(&path).len(), count, "sent: {sent}");
    }
}

#[test]
fn a_fork_bears_the_same_names_and_its_copies_are_not_counted_again() {
    let lines = vec![(None, user("one")), (Some(0), model("first"))];
    let (folder, path) = chat(&lines);
    let fork = folder.path().join(format!("{CRUMBS}.jsonl"));
    let mut copies = lines.clone();
    for (n, (_, line)) in copies.iter_mut().enumerate() {
        line["forkedFrom"] = json!({"sessionId": OTHER, "messageUuid": format!("u{n}")});
    }
    copies.push((Some(1), user("another way")));
    copies.push((Some(2), model("second")));
    std::fs::write(&fork, text(CRUMBS, &copies)).unwrap();
    let well = Stepwell::in_memory();
    taken(&well, &path);
    taken(&well, &fork);
    assert_eq!(names(&well), [OTHER, CRUMBS]);
    let calls = |name: &str| well.info(&id(name)).unwrap().head.spent.calls;
    assert_eq!((calls(OTHER), calls(CRUMBS)), (1, 1));
    assert_eq!(shown(&well, &id(CRUMBS)).len(), 4);
}

#[test]
fn a_subagent_belongs_to_the_session_that_started_it() {
    let folder = tempfile::tempdir().unwrap();
    let chats = folder.path().join("chats");
    let agents = folder.path().join("subagents").join(OTHER);
    std::fs::create_dir_all(&chats).unwrap();
    std::fs::create_dir_all(&agents).unwrap();
    let lines = [(None, user("one")), (Some(0), model("first"))];
    std::fs::write(chats.join(format!("{OTHER}.jsonl")), text(OTHER, &lines)).unwrap();
    let mut lines = lines.to_vec();
    for (_, line) in &mut lines {
        line["agentId"] = json!("taster-1");
        line["agentName"] = json!("taster");
        line["isSidechain"] = json!(true);
    }
    std::fs::write(agents.join("agent-taster-1.jsonl"), text(OTHER, &lines)).unwrap();
    let well = Stepwell::in_memory();
    taken(&well, folder.path());
    assert_eq!(names(&well), [OTHER.to_owned(), format!("{OTHER}.taster-1")]);
    let child = well.subagents(&id(OTHER)).unwrap().remove(0).head;
    assert_eq!((child.id.as_str(), &*child.agent), (&*format!("{OTHER}.taster-1"), "taster"));
}

#[test]
fn a_session_that_was_gone_on_with_here_goes_back_with_all_that_it_had() {
    let well = Stepwell::in_memory();
    taken(&well, &file(LABEL));
    well.lock(&id(LABEL)).unwrap().append(Message::user("and the spelt loaf?")).unwrap();
    let (_folder, back) = written(&well, &id(LABEL), qwen(), &format!("{LABEL}.jsonl"));
    let parsed = |path: &Path| -> Vec<Value> {
        let text = std::fs::read_to_string(path).unwrap();
        text.lines().filter_map(|line| serde_json::from_str(line).ok()).collect()
    };
    let (was, is) = (parsed(&file(LABEL)), parsed(&back));
    assert_eq!(is[..was.len()], was[..]);
    assert_eq!(is.len(), was.len() + 1);
    assert_eq!(is[was.len()]["parentUuid"], was[was.len() - 1]["uuid"]);
    // Under another name it is another session, on every line.
    let (_folder, other) = written(&well, &id(LABEL), qwen(), &format!("{OTHER}.jsonl"));
    assert!(parsed(&other).iter().all(|line| line["sessionId"] == OTHER));
    let there = Stepwell::in_memory();
    let copy = taken(&there, &other).remove(0).id;
    assert_eq!(said(&shown(&there, &copy)), said(&shown(&well, &id(LABEL))));
}

#[test]
fn a_line_that_is_wrong_costs_that_line() {
    let lines = [(None, user("one")), (Some(0), model("first"))];
    let (_folder, path) = chat(&lines);
    let odd = [
        "{\"uuid\":1,\"parentUuid\":[],\"sessionId\":{},\"type\":null}",
        "{\"uuid\":\"x\",\"parentUuid\":\"x\",\"sessionId\":\"s\",\"type\":\"user\",\"message\":{\"parts\":[[{}]]}}",
        "{\"uuid\":\"y\",\"parentUuid\":\"u1\",\"sessionId\":\"s\",\"type\":\"system\",\"subtype\":\"chat_compression\",\"systemPayload\":{\"compressedHistory\":7}}",
        "[]",
        "{\"uuid\":",
    ];
    let whole = text(OTHER, &lines) + &odd.join("\n");
    std::fs::write(&path, whole).unwrap();
    let well = Stepwell::in_memory();
    let report = take_in(&well, Mode::Write, qwen(), &path);
    assert!(report.fault.is_none(), "{:?}", report.fault);
    assert_eq!(report.warnings.len(), 2, "{:?}", report.warnings);
    assert_eq!(shown(&well, &report.sessions[0].id).len(), 2);
}
