//! Strands SDK's own code against what is written here, and what it writes against the reader.
//!
//! `STEPWELL_STRANDS_PYTHON` names the Python that has it (`witnesses.txt`).

use std::path::Path;
use std::process::{Command, Stdio};

use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};
use serde_json::{Value, json};
use stepwell::model::{Compacted, Image, Part};
use stepwell::{Created, Event, Lane, Message, SessionId, Status, Stepwell};
use stepwell_formats::{
    Destination, Existing, Handoff, Handover, Homes, Mode, Purpose, Wishes, take_in, write_to,
};

use crate::generate::{record, turns};
use crate::mirror::{assert_returns, said, shown, taken, written};
use crate::strands_sdk::sdk;
use crate::support::log;
use crate::witness::program;

/// The Python that has the SDK, if somebody named it.
fn python() -> Option<String> {
    Some(program("STEPWELL_STRANDS_PYTHON")?.to_str().unwrap().to_owned())
}

fn run(python: &str, arguments: &[&str]) -> String {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/suite/strands_original.py");
    let out = Command::new(python).arg(script).args(arguments).output().unwrap();
    let error = String::from_utf8_lossy(&out.stderr).into_owned();
    assert!(out.status.success(), "{python} {arguments:?}: {error}");
    String::from_utf8(out.stdout).unwrap()
}

/// What the SDK restores of a session.
fn restored(python: &str, folder: &Path, (session, agent, manager): (&str, &str, &str)) -> Value {
    let folder = folder.to_str().unwrap();
    let out = run(python, &["load", folder, session, agent, manager]);
    serde_json::from_str(out.lines().last().unwrap()).unwrap()
}

/// Messages as the SDK has them, in the words of `said`.
fn there(messages: &Value) -> Vec<String> {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let part = |block: &Value| {
        if let Some(said) = block.get("text") {
            format!("text {}", text(said))
        } else if let Some(call) = block.get("toolUse") {
            format!("call {} {} {}", text(&call["toolUseId"]), text(&call["name"]), call["input"])
        } else if let Some(result) = block.get("toolResult") {
            let content = result["content"].as_array().unwrap().iter().map(|it| text(&it["text"]));
            let content: Vec<String> = content.collect();
            format!("result {} {}", text(&result["toolUseId"]), content.join("\n"))
        } else {
            format!("image {}", text(&block["image"]["source"]["bytes"]["bytes"]))
        }
    };
    let all = messages.as_array().unwrap().iter();
    all.map(|message| {
        let blocks = message["content"].as_array().unwrap();
        let role = match message["role"].as_str().unwrap() {
            "assistant" => "Assistant",
            _ if blocks.iter().any(|block| block.get("toolResult").is_some()) => "Tool",
            _ => "User",
        };
        format!("{role}: {:?}", blocks.iter().map(part).collect::<Vec<_>>())
    })
    .collect()
}

#[test]
fn the_sdk_restores_a_session_that_was_written_here_and_goes_on_with_it() {
    let Some(python) = python() else { return };
    let well = Stepwell::in_memory();
    let id: SessionId = "20260223-143022-a1b2c3".parse().unwrap();
    let session = well.create(Created::new(id.clone(), "t").with_agent("worker")).unwrap();
    let mut asked = Message::user("weigh 4 and 5");
    let (media_type, data) = ("image/png".to_owned(), "iVBORw0K".to_owned());
    asked.parts.push(Part::Image(Image { media_type, data, opaque: None }));
    session.append(asked).unwrap();
    let two =
        Message::assistant("on the scales").calling("w1", "weigh", r#"{"flour":4,"water":5}"#);
    session.append(two.calling("w2", "weigh", r#"{"flour":6,"water":5}"#)).unwrap();
    // Each result is a message of its own here, and one message there.
    session.append(Message::tool_result("w2", "11")).unwrap();
    session.append(Message::tool_result("w1", "9")).unwrap();
    session.append(Message::assistant("9 and 11 ☕")).unwrap();
    drop(session);
    let (folder, path) = written(&well, &id, sdk(), &format!("session_{id}"));
    let found = restored(&python, folder.path(), (id.as_str(), "worker", "sliding"));
    assert_eq!(there(&found["restored"]), said(&shown(&well, &id)));
    let after = there(&found["after"]);
    assert_eq!(
        after[after.len() - 2..],
        ["User: [\"text go on\"]", "Assistant: [\"text gone on\"]"]
    );
    // What the SDK added is read here.
    let other = Stepwell::in_memory();
    let again = taken(&other, &path);
    assert_eq!(said(&shown(&other, &again[0].id)), after);
}

#[test]
fn the_sdk_restores_any_session_as_it_is_shown_here() {
    let Some(python) = python() else { return };
    let config = Config { cases: 6, failure_persistence: None, ..Config::default() };
    let run = TestRunner::new(config).run(&turns(), |turns| {
        let well = Stepwell::in_memory();
        let id = record(&well, "20260223-143022-a1b2c3", &turns);
        let (folder, _) = written(&well, &id, sdk(), &format!("session_{id}"));
        let found = restored(&python, folder.path(), (id.as_str(), "default", "sliding"));
        prop_assert_eq!(there(&found["restored"]), said(&shown(&well, &id)));
        Ok(())
    });
    run.unwrap();
}

#[test]
fn the_sdk_restores_a_compaction_that_was_made_here() {
    let Some(python) = python() else { return };
    for (summary, manager) in [(None, "sliding"), (Some("what was"), "summarizing")] {
        let well = Stepwell::in_memory();
        let id: SessionId = "20260223-143022-a1b2c3".parse().unwrap();
        let session = well.create(Created::new(id.clone(), "t").with_agent("worker")).unwrap();
        let first = session.append(Message::user("a")).unwrap();
        let last = session.append(Message::assistant("b")).unwrap();
        session.append(Message::user("c")).unwrap();
        session.append(Message::assistant("d")).unwrap();
        let mut compacted = Compacted::new(Lane::main(), first, last);
        compacted.summary = summary.map(str::to_owned);
        session.append(compacted).unwrap();
        drop(session);
        let (folder, _) = written(&well, &id, sdk(), &format!("session_{id}"));
        let found = restored(&python, folder.path(), (id.as_str(), "worker", manager));
        assert_eq!(there(&found["restored"]), said(&shown(&well, &id)), "{manager}");
    }
}

#[test]
fn what_the_sdk_writes_is_read_as_the_sdk_restores_it() {
    let Some(python) = python() else { return };
    let folder = tempfile::tempdir().unwrap();
    run(&python, &["make", folder.path().to_str().unwrap()]);
    let sessions = [
        ("made-tools", "sliding"),
        ("made-sliding", "sliding"),
        ("made-summary", "summarizing"),
        ("made-redacted", "sliding"),
    ];
    for (name, manager) in sessions {
        let path = folder.path().join(format!("session_{name}"));
        let well = Stepwell::in_memory();
        let report = take_in(&well, Mode::Write, sdk(), &path);
        assert!(report.fault.is_none() && report.warnings.is_empty(), "{report:?}");
        let here = said(&shown(&well, &report.sessions[0].id));
        assert_returns(sdk(), &path, &format!("session_{name}"));
        // It is restored from what was written here, not from its own files.
        let (back, _) = written(&well, &report.sessions[0].id, sdk(), &format!("session_{name}"));
        let found = restored(&python, back.path(), (name, "worker", manager));
        assert_eq!(there(&found["restored"]), here, "{name}");
        // What is read of its own files is what it sends next.
        let own = restored(&python, folder.path(), (name, "worker", manager));
        let next = [&here[..], &["User: [\"text go on\"]".to_owned()]].concat();
        assert_eq!(there(&own["asked"]), next, "{name}");
        if name == "made-tools" {
            assert_eq!(found["state"], json!({"scales": {"drift": [7, null]}}));
        }
    }
}

#[test]
fn a_session_that_the_sdk_keeps_as_snapshots_is_read_as_the_sdk_restores_it() {
    let Some(python) = python() else { return };
    let folder = tempfile::tempdir().unwrap();
    let out = run(&python, &["snap", folder.path().to_str().unwrap()]);
    let messages: Value = serde_json::from_str(out.lines().last().unwrap()).unwrap();
    let well = Stepwell::in_memory();
    let id = taken(&well, folder.path())[0].id.clone();
    assert_eq!(id.as_str(), "snapped");
    assert_eq!(said(&shown(&well, &id)), there(&messages));
    let head = well.info(&id).unwrap().head;
    assert_eq!((head.task.as_str(), head.status), ("weigh 4 and 5", Status::Success));
    assert_eq!((head.spent.usage.input, head.spent.usage.output), (9, 12));
    let stops = log(&well, &id);
    let stops = stops.iter().filter(|it| matches!(it.event, Event::Checkpoint(_))).count();
    assert_eq!(stops, 2, "each snapshot that stays is a checkpoint");
    // Written here, its other session manager goes on with it.
    let (back, _) = written(&well, &id, sdk(), "session_snapped");
    let found = restored(&python, back.path(), ("snapped", "worker", "sliding"));
    assert_eq!(there(&found["restored"]), there(&messages));
    assert_eq!(found["state"], json!({"scales": {"drift": [7, null]}}));
}

#[test]
fn graphs_and_swarms_of_the_sdk_stand_as_it_left_them() {
    let Some(python) = python() else { return };
    let folder = tempfile::tempdir().unwrap();
    run(&python, &["group", folder.path().to_str().unwrap()]);
    let well = Stepwell::in_memory();
    taken(&well, folder.path());
    let stands = |name: &str| {
        let head = well.info(&name.parse().unwrap()).unwrap().head;
        (head.status, head.task, head.error.unwrap_or_default())
    };
    let baked = (Status::Success, "bake a loaf".to_owned(), String::new());
    assert_eq!(stands("graph"), baked);
    assert_eq!(stands("graph-snapped"), baked);
    assert_eq!(stands("swarm"), (Status::Success, "swim".to_owned(), String::new()));
    let (status, task, error) = stands("graph-cold");
    assert_eq!((status, task.as_str()), (Status::Failed, "bake a loaf"));
    assert!(error.contains("the oven is cold"), "{error}");
}

/// Runs the command that goes on with a session, to the point where it asks for words.
fn asks_for_words(python: &str, handoff: &Handoff) {
    assert_eq!(handoff.command[..2], ["python3", "-c"]);
    let mut command = Command::new(python);
    command.args(&handoff.command[1..]).env("AWS_REGION", "us-east-1").stdin(Stdio::null());
    let out = command.output().unwrap();
    let error = String::from_utf8_lossy(&out.stderr).into_owned();
    assert!(error.trim_end().ends_with("EOFError: EOF when reading a line"), "{error}");
}

/// How the SDK goes on with a session below a home, under that name.
fn handoff(well: &Stepwell, id: &SessionId, (home, name): (&Path, &str)) -> Handoff {
    let head = well.info(id).unwrap().head;
    let homes = Homes { home: Some(home), data: None, workspace: None, variable: &|_: &str| None };
    let session = Handover { head: &head, uuid: name, workspace: home };
    sdk().writer().unwrap().handoff(&session, &homes).unwrap()
}

#[test]
fn the_command_for_the_sdk_goes_on_behind_any_compaction() {
    let Some(python) = python() else { return };
    for (from, to) in [(0, 1), (2, 3)] {
        let well = Stepwell::in_memory();
        let id: SessionId = "20260223-143022-a1b2c3".parse().unwrap();
        let session = well.create(Created::new(id.clone(), "t").with_agent("worker")).unwrap();
        let places: Vec<_> = ["a", "c", "e"]
            .iter()
            .flat_map(|text| [Message::user(*text), Message::assistant(text.to_uppercase())])
            .map(|message| session.append(message).unwrap())
            .collect();
        let mut compacted = Compacted::new(Lane::main(), places[from], places[to]);
        compacted.summary = Some("what was".to_owned());
        session.append(compacted).unwrap();
        drop(session);
        let home = tempfile::tempdir().unwrap();
        let handoff = handoff(&well, &id, (home.path(), "gone-on"));
        std::fs::create_dir_all(handoff.path.parent().unwrap()).unwrap();
        let wishes = Wishes { purpose: Purpose::Continue, ..Wishes::default() };
        let place = Destination { wishes, ..Destination::new(&handoff.path, Existing::Keep) };
        write_to(&place, sdk().writer().unwrap(), &well, &id).unwrap();
        asks_for_words(&python, &handoff);
        let found = restored(&python, &handoff.found_below, ("gone-on", "worker", "sliding"));
        let go_on = vec!["User: [\"text go on\"]".to_owned()];
        let next = [said(&shown(&well, &id)), go_on].concat();
        assert_eq!(there(&found["asked"]), next);
    }
}

#[test]
fn the_command_for_the_sdk_goes_on_with_a_summary_of_its_own() {
    let Some(python) = python() else { return };
    let home = tempfile::tempdir().unwrap();
    let sessions = home.path().join(".strands/sessions");
    std::fs::create_dir_all(&sessions).unwrap();
    run(&python, &["make", sessions.to_str().unwrap()]);
    let well = Stepwell::in_memory();
    for name in ["made-tools", "made-sliding", "made-summary"] {
        let id = taken(&well, &sessions.join(format!("session_{name}"))).remove(0).id;
        asks_for_words(&python, &handoff(&well, &id, (home.path(), name)));
    }
}
