//! Sessions that are written for another agent to go on with: what it must not get wrong.

use serde_json::Value;
use stepwell::log::INTERRUPTED;
use stepwell::model::{Digest, Effect, Gate, ToolStarted};
use stepwell::{Created, Lane, Message, Session, SessionId, Stepwell};
use stepwell_formats::{Destination, Existing, Format, NOT_BEGUN, Purpose, Wishes, write_to};

use crate::codex::OVEN;
use crate::mirror::{found, said, shown, taken, written};
use crate::seeds::fixtures;

const CAKE: &str = "7be2d940-15c3-4f6a-a1d8-90c4e3b7f512";
const OTHER: &str = "0196a3f0-0000-7a52-8c3e-000000000009";

fn format(name: &str) -> Format {
    name.parse().unwrap()
}

/// What a session's file is called in each of these formats.
fn names() -> [(Format, String); 4] {
    [
        (format("claude"), format!("{OTHER}.jsonl")),
        (format("codex"), format!("rollout-2026-05-04T07-15-00-{OTHER}.jsonl")),
        (format("architect"), "20260223-143022-a1b2c3.json".to_owned()),
        (format("m31a"), ".m31a".to_owned()),
    ]
}

/// Those that write what a model would be shown.
fn views() -> [(Format, String); 3] {
    [
        (format("strands-sdk"), "session_20260223-143022-a1b2c3".to_owned()),
        (format("markdown"), "session.md".to_owned()),
        (format("html"), "session.html".to_owned()),
    ]
}

fn begin(well: &Stepwell) -> Session {
    let id: SessionId = "20260223-143022-a1b2c3".parse().unwrap();
    let created = Created::new(id, "clean").with_model("anthropic", "claude-opus-4-6");
    let session = well.create(created).unwrap();
    session.append(Message::user("clean")).unwrap();
    session
}

fn started(session: &Session, id: &str) {
    let (call_id, tool) = (id.to_owned(), "run_command".to_owned());
    let (effect, arguments) = (Effect::Unsafe, Digest::of(b"{}"));
    let (lane, targets, child) = (Lane::main(), Vec::new(), None);
    let started = ToolStarted { lane, call_id, tool, effect, arguments, targets, child };
    session.append(started).unwrap();
}

/// All that was written, as text.
fn text(well: &Stepwell, id: &SessionId, (format, name): &(Format, String)) -> String {
    let (folder, _) = written(well, id, *format, name);
    let all = crate::seeds::files(folder.path()).into_iter();
    all.map(|(_, bytes)| String::from_utf8(bytes).unwrap()).collect()
}

#[test]
fn a_command_that_was_cut_off_is_answered_as_unknown_and_one_that_never_began_as_not_run() {
    let well = Stepwell::in_memory();
    let session = begin(&well);
    let both = Message::assistant("I clean").calling("c1", "run_command", "{}").calling(
        "c2",
        "run_command",
        "{}",
    );
    session.append(both).unwrap();
    started(&session, "c1");
    let id = session.id().clone();
    drop(session);
    for it in names() {
        let text = text(&well, &id, &it);
        let count = |words: &str| text.matches(&format!("\"{words}\"")).count();
        // M31A keeps a text twice.
        assert!(
            count(INTERRUPTED) >= 1 && count(NOT_BEGUN) == count(INTERRUPTED),
            "{}: {text}",
            it.0
        );
    }
    for it in views() {
        let text = text(&well, &id, &it);
        assert!(text.contains(INTERRUPTED) && text.contains(NOT_BEGUN), "{}: {text}", it.0);
    }
}

#[test]
fn a_call_that_waits_for_leave_was_not_run() {
    let well = Stepwell::in_memory();
    let session = begin(&well);
    session.append(Message::assistant("I clean").calling("c1", "run_command", "{}")).unwrap();
    let gate = Gate::new("c1", "clean?");
    session.append(gate).unwrap();
    let id = session.id().clone();
    drop(session);
    for it in names().into_iter().chain(views()) {
        let text = text(&well, &id, &it);
        assert!(text.contains(NOT_BEGUN) && !text.contains(INTERRUPTED), "{}: {text}", it.0);
    }
}

#[test]
fn of_a_program_that_does_not_record_what_it_starts_nothing_is_taken_for_not_run() {
    let well = Stepwell::in_memory();
    let session = begin(&well);
    session.append(Message::assistant("I clean").calling("c1", "run_command", "{}")).unwrap();
    let id = session.id().clone();
    drop(session);
    for it in names().into_iter().chain(views()) {
        let text = text(&well, &id, &it);
        assert!(text.contains(INTERRUPTED) && !text.contains(NOT_BEGUN), "{}: {text}", it.0);
    }
}

#[test]
fn a_call_that_was_left_open_is_answered_before_what_was_said_next() {
    for result in [None, Some("clean")] {
        let well = Stepwell::in_memory();
        let session = begin(&well);
        let call = Message::assistant("").calling("c1", "run_command", "{}");
        let call = session.append(call).unwrap();
        if let Some(text) = result {
            session.append(Message::tool_result("c1", text)).unwrap();
        }
        session.append(Message::user("leave it")).unwrap();
        session.append(Message::assistant("left")).unwrap();
        // Once more from the call on: there it is open in any case.
        session.rewind(call, stepwell::model::Scope::Chat).unwrap();
        session.append(Message::user("or do it")).unwrap();
        let id = session.id().clone();
        drop(session);
        for (format, name) in names().into_iter().take(2) {
            let (_folder, path) = written(&well, &id, format, &name);
            let text = std::fs::read_to_string(&path).unwrap();
            assert!(text.contains(INTERRUPTED), "{format}: {text}");
            let there = Stepwell::in_memory();
            let back = taken(&there, &path);
            let (back, here) = (said(&shown(&there, &back[0].id)), said(&shown(&well, &id)));
            match (format.as_str(), result) {
                // In a transcript all results of an answer belong together: none is taken back.
                ("claude-code", Some(_)) => assert_eq!(back[2], r#"Tool: ["result c1 clean"]"#),
                _ => assert_eq!(back, here, "{format}"),
            }
        }
    }
}

#[test]
fn a_result_that_came_late_is_not_answered_for() {
    let well = Stepwell::in_memory();
    let session = begin(&well);
    session.append(Message::assistant("I clean").calling("c1", "run_command", "{}")).unwrap();
    session.append(Message::user("hurry")).unwrap();
    session.append(Message::tool_result("c1", "clean")).unwrap();
    let id = session.id().clone();
    drop(session);
    for it in names() {
        let text = text(&well, &id, &it);
        assert!(text.contains("\"clean\"") && !text.contains(INTERRUPTED), "{}: {text}", it.0);
    }
}

#[test]
fn a_session_goes_back_as_it_came_unless_its_agent_is_to_go_on_with_it() {
    let rollout = format!("rollout-2026-05-04T07-15-00-{OVEN}.jsonl");
    for (name, id, file) in [("claude", CAKE, format!("{CAKE}.jsonl")), ("codex", OVEN, rollout)] {
        let well = Stepwell::in_memory();
        taken(&well, &fixtures(format(name)).unwrap());
        let id: SessionId = id.parse().unwrap();
        let writer = format(name).writer().unwrap();
        let text = |purpose: Purpose, file: &str| {
            let folder = tempfile::tempdir().unwrap();
            let path = folder.path().join(file);
            let wishes = Wishes { purpose, ..Wishes::default() };
            let destination = Destination { wishes, ..Destination::new(&path, Existing::Keep) };
            write_to(&destination, writer, &well, &id).unwrap();
            std::fs::read_to_string(path).unwrap()
        };
        let kept = text(Purpose::Keep, &file);
        assert!(!kept.contains(INTERRUPTED), "{name}");
        // A continued session is JSON-equal, without the torn line.
        let lines = |text: &str| -> Vec<Value> {
            text.lines().filter_map(|line| serde_json::from_str(line).ok()).collect()
        };
        let gone_on = lines(&text(Purpose::Continue, &file));
        let (same, more) = gone_on.split_at(lines(&kept).len());
        assert_eq!(same, lines(&kept), "{name}");
        assert!(more.len() == 1 && more[0].to_string().contains(INTERRUPTED), "{name}: {more:?}");
        // Under another name it is another session.
        let other = text(Purpose::Keep, &file.replace(id.as_str(), OTHER));
        assert!(other.contains(INTERRUPTED), "{name}");
    }
}

#[test]
fn what_was_handed_over_under_its_own_name_comes_back_as_the_same_session() {
    let well = Stepwell::in_memory();
    taken(&well, &fixtures(format("claude")).unwrap());
    let id: SessionId = CAKE.parse().unwrap();
    let (before, head) = (said(&shown(&well, &id)), well.info(&id).unwrap().head);
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join(format!("{CAKE}.jsonl"));
    let wishes = Wishes { purpose: Purpose::Continue, ..Wishes::default() };
    let destination = Destination { wishes, ..Destination::new(&path, Existing::Keep) };
    write_to(&destination, format("claude").writer().unwrap(), &well, &id).unwrap();
    let back = taken(&well, &path);
    assert_eq!(back[0].id, id);
    assert_eq!(said(&shown(&well, &id)), before);
    assert_eq!(well.info(&id).unwrap().head.spent, head.spent);
}

#[test]
fn codex_is_not_told_of_a_provider_that_it_may_not_have() {
    let well = Stepwell::in_memory();
    let session = begin(&well);
    session.append(Message::assistant("clean")).unwrap();
    let id = session.id().clone();
    drop(session);
    let (_folder, path) = written(&well, &id, format("codex"), &names()[1].1);
    let text = std::fs::read_to_string(&path).unwrap();
    let meta: Value = serde_json::from_str(text.lines().next().unwrap()).unwrap();
    assert_eq!(meta["payload"]["model_provider"], Value::Null);
    // Here it is known still.
    let there = Stepwell::in_memory();
    let back = taken(&there, &path).remove(0).id;
    let head = there.info(&back).unwrap().head;
    assert_eq!((&*head.provider, &*head.model), ("anthropic", "claude-opus-4-6"));
    // A session of Codex keeps the one that it has there.
    taken(&well, &fixtures(format("codex")).unwrap());
    let (_folder, path) = written(&well, &OVEN.parse().unwrap(), format("codex"), &names()[1].1);
    let text = std::fs::read_to_string(path).unwrap();
    assert!(text.lines().next().unwrap().contains(r#""model_provider":"openai""#), "{text}");
}

#[test]
fn pictures_of_codex_are_pictures_everywhere() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join(format!("rollout-2026-05-04T07-15-00-{OTHER}.jsonl"));
    let line = |kind: &str, payload: &str| {
        format!(r#"{{"timestamp":"2026-05-04T07:15:00Z","type":"{kind}","payload":{payload}}}"#)
    };
    let picture = r#"{"type":"input_image","image_url":"data:image/png;base64,iVBORw0K"}"#;
    let lines = [
        line("session_meta", &format!(r#"{{"id":"{OTHER}","cwd":"/w"}}"#)),
        line(
            "response_item",
            &format!(
                r#"{{"type":"message","role":"user","content":[{{"type":"input_text","text":"see"}},{picture}]}}"#
            ),
        ),
        line(
            "response_item",
            r#"{"type":"function_call","name":"view","arguments":"{}","call_id":"c1"}"#,
        ),
        line(
            "response_item",
            &format!(r#"{{"type":"function_call_output","call_id":"c1","output":[{picture}]}}"#),
        ),
    ];
    std::fs::write(&path, lines.join("\n") + "\n").unwrap();
    let well = Stepwell::in_memory();
    let id = taken(&well, &path).remove(0).id;
    for (name, file, sign) in [
        ("architect", "a.json", r#""url": "data:image/png;base64,iVBORw0K""#),
        ("strands-sdk", "session_a", r#""data": "iVBORw0K""#),
        ("claude", "a.jsonl", r#""data":"iVBORw0K""#),
    ] {
        let text = text(&well, &id, &(format(name), file.to_owned()));
        assert!(text.contains(sign) && !text.contains("base64,data:"), "{name}: {text}");
    }
    assert_eq!(found(&path).len(), 1);
}
