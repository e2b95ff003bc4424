//! Strands SDK's sessions, and what bites in them.

use std::path::{Path, PathBuf};

use proptest::prelude::*;
use serde_json::{Value, json};
use stepwell::model::{Compacted, Part, Role};
use stepwell::{Event, Lane, Message, SessionId, Status, Stepwell, View};
use stepwell_formats::{Became, Destination, Existing, Format, Mode, Report, take_in, write_to};

use crate::mirror::{assert_returns, became, found, said, shown, taken, told, written};
use crate::seeds::{files, fixtures, lay_out};
use crate::support::log;

pub(crate) fn sdk() -> Format {
    "strands-sdk".parse().unwrap()
}

fn fixture(name: &str) -> PathBuf {
    fixtures(sdk()).unwrap().join(name)
}

fn id(name: &str) -> SessionId {
    name.parse().unwrap()
}

/// A session's files, as JSON where they are.
fn contents(folder: &Path) -> Vec<(PathBuf, Value)> {
    let value = |bytes: Vec<u8>| match serde_json::from_slice(&bytes) {
        Ok(value) => value,
        Err(_) => Value::String(String::from_utf8_lossy(&bytes).into_owned()),
    };
    files(folder).into_iter().map(|(name, bytes)| (name, value(bytes))).collect()
}

/// A session of one agent, `main` of which says these messages.
fn lay(folder: &Path, agent: &str, state: &Value, messages: &[Value]) {
    let at = |n: usize| format!("2026-03-10T00:00:{:02}.{n:06}+00:00", n % 60);
    let put = |name: String, value: &Value| {
        let bytes = serde_json::to_vec(value).unwrap();
        lay_out(folder, &[(PathBuf::from(name), bytes)]);
    };
    let session = json!({
        "session_id": "s", "session_type": "AGENT", "created_at": at(0), "updated_at": at(0), "new": {"x": 1},
    });
    put("session.json".to_owned(), &session);
    put(
        format!("agents/agent_{agent}/agent.json"),
        &json!({
            "agent_id": agent, "state": {"k": [1, null]}, "conversation_manager_state": state,
            "_internal_state": {}, "created_at": at(0), "updated_at": at(1), "more": "é",
        }),
    );
    for (n, message) in messages.iter().enumerate() {
        put(
            format!("agents/agent_{agent}/messages/message_{n}.json"),
            &json!({
                "message": message, "message_id": n, "redact_message": null,
                "created_at": at(n), "updated_at": at(n), "extra": n,
            }),
        );
    }
}

fn says(role: &str, text: &str) -> Value {
    json!({"role": role, "content": [{"text": text}], "tracking_id": text})
}

fn sliding(removed: usize) -> Value {
    json!({"__name__": "SlidingWindowConversationManager", "removed_message_count": removed, "model_call_count": 0})
}

fn taken_one(well: &Stepwell, folder: &Path) -> (SessionId, Report) {
    let report = take_in(well, Mode::Write, sdk(), folder);
    assert!(report.fault.is_none(), "{:?}", report.fault);
    (report.sessions[0].id.clone(), report)
}

#[test]
fn the_fixtures_come_in_once() {
    let well = Stepwell::in_memory();
    let folder = fixtures(sdk()).unwrap();
    let first = taken(&well, &folder);
    assert_eq!(became(&first, Became::Imported), 2, "{first:?}");
    let head = well.info(&id("till")).unwrap().head;
    assert_eq!((head.task.as_str(), head.agent.as_str()), ("Is the till open?", "cashier"));
    assert_eq!(head.status, Status::Success);
    let all = said(&shown(&well, &id("till")));
    assert_eq!(all.len(), 6);
    assert_eq!(all[1], r#"Assistant: ["text Yes — grüß Gott ☕"]"#);
    assert_eq!(
        all[3],
        r#"Assistant: ["text Let me ring that up", "call ring-5 ring_up {\"count\":2,\"price\":3}"]"#
    );
    assert_eq!(all[4], r#"Tool: ["result ring-5 6 euro"]"#);
    let again = taken(&well, &folder);
    assert_eq!(became(&again, Became::Unchanged), 2, "{again:?}");
}

#[test]
fn the_fixtures_return_byte_for_byte() {
    for name in ["session_till", "session_queue"] {
        let well = Stepwell::in_memory();
        let (id, _) = taken_one(&well, &fixture(name));
        let (_folder, path) = written(&well, &id, sdk(), name);
        for ((one, was), (other, is)) in files(&fixture(name)).iter().zip(files(&path)) {
            assert_eq!(*one, other);
            assert_eq!(
                String::from_utf8_lossy(was),
                String::from_utf8_lossy(&is),
                "{}",
                one.display()
            );
        }
        assert_eq!(files(&fixture(name)).len(), files(&path).len());
        assert_returns(sdk(), &fixture(name), name);
    }
}

#[test]
fn a_model_is_shown_what_follows_removed_message_count() {
    let well = Stepwell::in_memory();
    let (id, _) = taken_one(&well, &fixture("session_queue"));
    let messages =
        log(&well, &id).iter().filter(|it| matches!(it.event, Event::Message(_))).count();
    assert_eq!(messages, 12, "nothing is lost");
    let texts: Vec<String> = shown(&well, &id).iter().map(Message::text).collect();
    assert_eq!(texts, ["One plum", "Here is your plum"]);
}

#[test]
fn a_summary_stands_in_the_place_of_what_was_removed() {
    let folder = tempfile::tempdir().unwrap();
    let state = json!({
        "summary_message": {"role": "user", "content": [{"text": "they met"}]},
        "__name__": "SummarizingConversationManager", "removed_message_count": 2,
    });
    let messages =
        [says("user", "a"), says("assistant", "b"), says("user", "c"), says("assistant", "d")];
    lay(folder.path(), "x", &state, &messages);
    let well = Stepwell::in_memory();
    let (id, _) = taken_one(&well, folder.path());
    let all: Vec<String> = shown(&well, &id).iter().map(Message::text).collect();
    assert_eq!(all, ["they met", "c", "d"]);
    assert_returns(sdk(), folder.path(), "session_s");
}

#[test]
fn a_redacted_message_is_shown_as_what_stands_in_its_place_and_both_return() {
    let folder = tempfile::tempdir().unwrap();
    lay(folder.path(), "x", &sliding(0), &[says("user", "secret"), says("assistant", "ok")]);
    let path = folder.path().join("agents/agent_x/messages/message_0.json");
    let mut file: Value = serde_json::from_slice(&std::fs::read(&path).unwrap()).unwrap();
    file["redact_message"] = says("user", "[redacted]");
    std::fs::write(&path, file.to_string()).unwrap();
    let well = Stepwell::in_memory();
    let (id, _) = taken_one(&well, folder.path());
    assert_eq!(shown(&well, &id)[0].text(), "[redacted]");
    assert_eq!(well.info(&id).unwrap().head.task, "[redacted]");
    let (_kept, path) = written(&well, &id, sdk(), "session_s");
    assert_eq!(contents(&path), contents(folder.path()));
}

#[test]
fn bytes_come_in_as_pictures_and_go_back_in_their_envelope() {
    let folder = tempfile::tempdir().unwrap();
    let bytes = |data: &str| json!({"bytes": {"__bytes_encoded__": true, "data": data}});
    let asked = json!({"role": "user", "content": [
        {"image": {"format": "png", "source": bytes("iVBORw0KGgo=")}},
        {"document": {"format": "pdf", "name": "d", "source": bytes("JVBERi0=")}},
    ]});
    lay(folder.path(), "x", &sliding(0), &[asked, says("assistant", "seen")]);
    let well = Stepwell::in_memory();
    let (id, report) = taken_one(&well, folder.path());
    let parts = &shown(&well, &id)[0].parts;
    assert!(
        matches!(&parts[..], [Part::Image(it)] if it.media_type == "image/png" && it.data == "iVBORw0KGgo=")
    );
    assert!(
        report.warnings.iter().any(|it| it.what.contains("its document is kept")),
        "{report:?}"
    );
    let (_kept, path) = written(&well, &id, sdk(), "session_s");
    assert_eq!(contents(&path), contents(folder.path()));
}

#[test]
fn several_agents_speak_in_lanes_of_their_own_in_the_order_of_their_times() {
    let folder = tempfile::tempdir().unwrap();
    lay(folder.path(), "zed", &sliding(1), &[says("user", "z0"), says("assistant", "z1")]);
    let other = tempfile::tempdir().unwrap();
    lay(
        other.path(),
        "ann",
        &sliding(0),
        &[says("user", "a0"), says("assistant", "a1"), says("user", "a2")],
    );
    std::fs::rename(other.path().join("agents/agent_ann"), folder.path().join("agents/agent_ann"))
        .unwrap();
    // The first one that was made is the main one, whatever it is called.
    let path = folder.path().join("agents/agent_zed/agent.json");
    let text = std::fs::read_to_string(&path).unwrap().replace("00:00:00.000000", "00:00:00");
    std::fs::write(&path, text.replace("2026-03-10T00:00:00+00:00", "2026-03-09T00:00:00+00:00"))
        .unwrap();
    let well = Stepwell::in_memory();
    let (id, _) = taken_one(&well, folder.path());
    let texts: Vec<(String, String)> = log(&well, &id)
        .into_iter()
        .filter_map(|it| match it.event {
            Event::Message(said) => Some((said.lane.to_string(), said.text())),
            _ => None,
        })
        .collect();
    let texts: Vec<(&str, &str)> = texts.iter().map(|(a, b)| (a.as_str(), b.as_str())).collect();
    let order = [("main", "z0"), ("ann", "a0"), ("main", "z1"), ("ann", "a1"), ("ann", "a2")];
    assert_eq!(texts, order);
    let view = View::of(&Lane::main(), log(&well, &id));
    assert_eq!(view.messages.len(), 1, "one of two is out of the window");
    assert_eq!(well.info(&id).unwrap().head.status, Status::Interrupted, "ann was not answered");
    let (_kept, path) = written(&well, &id, sdk(), "session_s");
    assert_eq!(contents(&path), contents(folder.path()));
    assert_returns(sdk(), folder.path(), "session_s");
}

#[test]
fn graphs_and_swarms_come_along() {
    let folder = tempfile::tempdir().unwrap();
    lay(folder.path(), "x", &sliding(0), &[says("user", "a"), says("assistant", "b")]);
    let group = json!({
        "type": "graph", "id": "g", "status": "failed", "completed_nodes": ["plan"],
        "node_results": {"plan": {"result": {"type": "agent_result", "message": says("assistant", "p")}, "status": "completed"},
                         "work": {"result": {"type": "exception", "message": "boom"}, "status": "failed"}},
        "next_nodes_to_execute": ["work"], "current_task": "do it", "later": 123,
    });
    let name = PathBuf::from("multi_agents/multi_agent_g/multi_agent.json");
    lay_out(folder.path(), &[(name, serde_json::to_vec(&group).unwrap())]);
    let well = Stepwell::in_memory();
    let (id, _) = taken_one(&well, folder.path());
    let nodes: Vec<String> = log(&well, &id)
        .iter()
        .filter_map(|it| match &it.event {
            Event::Node(node) => Some(format!("{} {:?}", node.key, node.state)),
            _ => None,
        })
        .collect();
    assert_eq!(nodes, ["group/g/plan Done", "group/g/work Failed"]);
    let (_kept, path) = written(&well, &id, sdk(), "session_s");
    assert_eq!(contents(&path), contents(folder.path()));
    assert_returns(sdk(), folder.path(), "session_s");
}

#[test]
fn a_session_that_grew_is_added_to() {
    let folder = tempfile::tempdir().unwrap();
    let all =
        [says("user", "a"), says("assistant", "b"), says("user", "c"), says("assistant", "d")];
    lay(folder.path(), "x", &sliding(0), &all[..2]);
    let well = Stepwell::in_memory();
    let (id, _) = taken_one(&well, folder.path());
    lay(folder.path(), "x", &sliding(1), &all);
    let (again, report) = taken_one(&well, folder.path());
    assert_eq!((&again, report.sessions[0].became), (&id, Became::Updated));
    let texts: Vec<String> = shown(&well, &id).iter().map(Message::text).collect();
    assert_eq!(texts, ["b", "c", "d"]);
    let messages =
        log(&well, &id).iter().filter(|it| matches!(it.event, Event::Message(_))).count();
    assert_eq!(messages, 4, "nothing is there twice");
    let (_kept, path) = written(&well, &id, sdk(), "session_s");
    assert_eq!(contents(&path), contents(folder.path()));
}

#[test]
fn what_is_said_here_follows_what_came_from_there() {
    let folder = tempfile::tempdir().unwrap();
    let call = json!({"role": "assistant", "content": [{"toolUse": {"toolUseId": "t", "name": "n", "input": {}}}]});
    lay(folder.path(), "x", &sliding(0), &[says("user", "a"), call]);
    let well = Stepwell::in_memory();
    let (id, _) = taken_one(&well, folder.path());
    let session = well.lock(&id).unwrap();
    session.append(Message::tool_result("t", "done")).unwrap();
    session.append(Message::assistant("all done")).unwrap();
    session.append(Message::user("thanks")).unwrap();
    drop(session);
    let (_kept, path) = written(&well, &id, sdk(), "session_s");
    let there = Stepwell::in_memory();
    let (other, _) = taken_one(&there, &path);
    assert_eq!(said(&shown(&there, &other)), said(&shown(&well, &id)));
    let (was, is) = (contents(folder.path()), contents(&path));
    for (name, value) in was.iter().filter(|(name, _)| !name.ends_with("agent.json")) {
        assert!(is.contains(&(name.clone(), value.clone())), "{} is as it was", name.display());
    }
    assert_eq!(is.len(), was.len() + 3);
}

#[test]
fn a_compaction_made_here_moves_the_window_there() {
    let well = Stepwell::in_memory();
    for summary in [None, Some("what was".to_owned())] {
        let name =
            if summary.is_some() { "20260223-143022-a1b2c3" } else { "20260223-143022-a1b2c4" };
        let session = well.create(stepwell::Created::new(id(name), "t")).unwrap();
        let first = session.append(Message::user("a")).unwrap();
        let last = session.append(Message::assistant("b")).unwrap();
        session.append(Message::user("c")).unwrap();
        let mut compacted = Compacted::new(Lane::main(), first, last);
        compacted.summary = summary.clone();
        session.append(compacted).unwrap();
        session.append(Message::assistant("d")).unwrap();
        drop(session);
        let (_kept, path) = written(&well, &id(name), sdk(), &format!("session_{name}"));
        let there = Stepwell::in_memory();
        let (other, _) = taken_one(&there, &path);
        assert_eq!(said(&shown(&there, &other)), said(&shown(&well, &id(name))));
    }
}

#[test]
fn what_has_no_place_is_named_and_kept_beside() {
    let well = Stepwell::in_memory();
    let name = id("20260223-143022-a1b2c3");
    let session = well.create(stepwell::Created::new(name.clone(), "t")).unwrap();
    session.append(Message::system("be kind")).unwrap();
    session.append(Message::user("a")).unwrap();
    session
        .append(stepwell::model::Checkpoint { name: "here".to_owned(), ..Default::default() })
        .unwrap();
    session.append(Message::assistant("b")).unwrap();
    drop(session);
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("session_x");
    let exported =
        write_to(&Destination::new(&path, Existing::Keep), sdk().writer().unwrap(), &well, &name)
            .unwrap();
    let losses: Vec<(&str, u64)> = exported.losses.iter().collect();
    assert_eq!(losses, [("checkpoints", 1), ("facts of the session", 3), ("system messages", 1)]);
    let there = Stepwell::in_memory();
    let (other, _) = taken_one(&there, &path);
    let all = said(&shown(&there, &other));
    assert_eq!(all[0], r#"System: ["text be kind"]"#);
    assert!(
        told(&there, &other)
            .iter()
            .any(|it| matches!(it, Event::Checkpoint(it) if it.name == "here"))
    );
    assert_returns(sdk(), &path, "session_x");
}

#[test]
fn one_bad_message_does_not_stop_the_others() {
    let folder = tempfile::tempdir().unwrap();
    lay(
        folder.path(),
        "x",
        &sliding(0),
        &[says("user", "a"), says("assistant", "b"), says("user", "c"), says("user", "d")],
    );
    let messages = folder.path().join("agents/agent_x/messages");
    std::fs::write(messages.join("message_1.json"), b"{\"message\": \xff").unwrap();
    std::fs::write(messages.join("message_2.json"), b"[]").unwrap();
    std::fs::write(messages.join("message_x.json"), b"not a number").unwrap();
    std::fs::write(folder.path().join("agents/agent_x/agent.json"), b"{").unwrap();
    let well = Stepwell::in_memory();
    let (id, report) = taken_one(&well, folder.path());
    assert_eq!(shown(&well, &id).iter().map(Message::text).collect::<Vec<_>>(), ["a", "d"]);
    let wrong: Vec<&str> = report.warnings.iter().map(|it| it.what.as_str()).collect();
    assert!(wrong.iter().any(|it| it.contains("byte 12 is not UTF-8")), "{wrong:?}");
    assert_eq!(wrong.len(), 3, "{wrong:?}");
}

#[test]
fn a_session_without_its_own_file_is_known_by_its_agents() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("session_lost");
    lay(&path, "x", &sliding(0), &[says("user", "a")]);
    std::fs::remove_file(path.join("session.json")).unwrap();
    let well = Stepwell::in_memory();
    let first = taken(&well, folder.path());
    assert_eq!(first[0].id.as_str(), "lost");
}

#[test]
fn hostile_sessions_stay_in_their_place() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("session_evil");
    let deep = format!("{}{}", "[".repeat(10_000), "]".repeat(10_000));
    lay(&path, "x", &sliding(0), &[says("user", "a"), says("assistant", "b"), says("user", "c")]);
    let put = |name: &str, text: &str| std::fs::write(path.join(name), text).unwrap();
    put(
        "session.json",
        r#"{"session_id":"../../../evil","session_type":"AGENT","session_id":"../../evil"}"#,
    );
    put(
        "agents/agent_x/agent.json",
        &format!(r#"{{"agent_id":"../../../x","state":{deep},"created_at":7}}"#),
    );
    put(
        "agents/agent_x/messages/message_1.json",
        &format!(
            r#"{{"message":{{"role":"assistant","content":[{{"text":"b"}},{deep}]}},"message_id":{deep}}}"#
        ),
    );
    std::fs::remove_file(path.join("agents/agent_x/messages/message_2.json")).unwrap();
    std::os::unix::fs::symlink(
        "/etc/hostname",
        path.join("agents/agent_x/messages/message_2.json"),
    )
    .unwrap();
    std::os::unix::fs::symlink("/etc", path.join("agents/agent_etc")).unwrap();
    let ours = |name: &str| std::fs::read(path.join(name)).unwrap();
    let before = [ours("session.json"), ours("agents/agent_x/agent.json")];
    let well = Stepwell::in_memory();
    let (id, _) = taken_one(&well, &path);
    let after = [ours("session.json"), ours("agents/agent_x/agent.json")];
    assert_eq!(after, before, "what is read is not written to");
    assert!(!id.as_str().contains('/'), "{id}");
    assert_eq!(shown(&well, &id).len(), 2);
    let out = tempfile::tempdir().unwrap();
    let target = out.path().join("a/b/c/session_evil");
    std::fs::create_dir_all(target.parent().unwrap()).unwrap();
    write_to(&Destination::new(&target, Existing::Keep), sdk().writer().unwrap(), &well, &id)
        .unwrap();
    let all = files(out.path());
    assert!(all.iter().all(|(name, _)| name.starts_with("a/b/c/session_evil")), "{all:?}");
    assert!(all.iter().any(|(_, bytes)| bytes.len() > 20_000), "what is deep is kept");
}

#[test]
fn a_kept_path_that_leads_elsewhere_is_refused() {
    let well = Stepwell::in_memory();
    let name = id("20260223-143022-a1b2c3");
    let session = well.create(stepwell::Created::new(name.clone(), "t")).unwrap();
    let data = r#"{"file":"agents/../../../evil/agent.json","lane":"main","data":{}}"#;
    let (system, about) = ("strands-sdk".to_owned(), stepwell::model::About::Session);
    session.append(stepwell::model::Foreign { system, about, data: data.to_owned() }).unwrap();
    session.append(Message::user("a")).unwrap();
    drop(session);
    let out = tempfile::tempdir().unwrap();
    let target = out.path().join("a/b/session_evil");
    std::fs::create_dir_all(target.parent().unwrap()).unwrap();
    let refused =
        write_to(&Destination::new(&target, Existing::Keep), sdk().writer().unwrap(), &well, &name);
    assert!(refused.is_err(), "{refused:?}");
    assert!(files(out.path()).is_empty(), "nothing is left");
}

/// JSON of any shape, as a newer version of the system may write it.
pub(crate) fn unknown() -> impl Strategy<Value = Value> + Clone {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        (-1.0e6..1.0e6).prop_map(|n: f64| json!(n)),
        "\\PC{0,12}".prop_map(Value::from),
        Just(json!("a\u{0}\n\"\\é😀")),
    ];
    leaf.prop_recursive(3, 16, 4, |inner| {
        prop_oneof![
            proptest::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            proptest::collection::btree_map("[a-z_]{1,6}", inner, 0..4).prop_map(|it| json!(it)),
        ]
    })
}

fn block() -> impl Strategy<Value = Value> + Clone {
    let text = || "\\PC{0,20}";
    let bytes =
        "[A-Za-z0-9+/]{0,8}".prop_map(|data| json!({"__bytes_encoded__": true, "data": data}));
    let image =
        bytes.prop_map(|bytes| json!({"image": {"format": "png", "source": {"bytes": bytes}}}));
    let result = prop_oneof![
        text().prop_map(|text| json!({"text": text})),
        unknown().prop_map(|json| json!({"json": json})),
        image.clone(),
        unknown().prop_map(|it| json!({"document": it})),
    ];
    prop_oneof![
        4 => text().prop_map(|text| json!({"text": text})),
        1 => ("[a-z]{0,4}", text(), unknown()).prop_map(|(id, name, input)| json!({"toolUse": {"toolUseId": id, "name": name, "input": input}})),
        1 => ("[a-z]{0,4}", proptest::collection::vec(result, 0..4)).prop_map(|(id, content)| json!({"toolResult": {"toolUseId": id, "status": "error", "content": content}})),
        1 => image,
        1 => (text(), proptest::option::of(text())).prop_map(|(text, signature)| match signature {
            Some(signature) => json!({"reasoningContent": {"reasoningText": {"text": text, "signature": signature}}}),
            None => json!({"reasoningContent": {"reasoningText": {"text": text}}}),
        }),
        1 => ("[a-z]{1,8}", unknown()).prop_map(|(name, inner)| json!({name: inner})),
        1 => unknown(),
    ]
}

/// A message's file, all that may be in it and more.
fn message_file() -> impl Strategy<Value = Value> {
    let message = (
        prop::sample::select(vec!["user", "assistant"]),
        proptest::collection::vec(block(), 0..4),
        unknown(),
    )
        .prop_map(|(role, content, more)| json!({"role": role, "content": content, "later": more}));
    (message.clone(), proptest::option::weighted(0.2, message), unknown(), 0..5_u32).prop_map(
        |(message, redact, more, at)| {
            let at = format!("2026-03-10T00:00:0{at}+00:00");
            json!({"message": message, "redact_message": redact, "created_at": at, "newer": more})
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 40, ..ProptestConfig::default() })]

    #[test]
    fn every_session_returns_with_all_that_is_not_understood(
        agents in proptest::collection::btree_map("[a-z]{1,6}", (proptest::collection::vec(message_file(), 0..5), 0..7_usize, unknown()), 1..3),
        session in unknown(),
    ) {
        let folder = tempfile::tempdir().unwrap();
        let put = |name: String, value: Value| {
            lay_out(folder.path(), &[(PathBuf::from(name), serde_json::to_vec(&value).unwrap())]);
        };
        put("session.json".to_owned(), json!({"session_id": "s", "session_type": "AGENT", "newer": session}));
        for (agent, (messages, removed, more)) in &agents {
            let state = json!({"__name__": "X", "removed_message_count": removed, "newer": more});
            put(format!("agents/agent_{agent}/agent.json"), json!({"agent_id": agent, "state": more, "conversation_manager_state": state}));
            for (n, message) in messages.iter().enumerate() {
                put(format!("agents/agent_{agent}/messages/message_{n}.json"), message.clone());
            }
        }
        let well = Stepwell::in_memory();
        let (id, _) = taken_one(&well, folder.path());
        let (_kept, path) = written(&well, &id, sdk(), "session_s");
        prop_assert_eq!(contents(&path), contents(folder.path()));
        assert_returns(sdk(), folder.path(), "session_s");
    }
}

#[test]
fn a_message_of_the_largest_size_is_read_and_one_byte_more_is_not() {
    let folder = tempfile::tempdir().unwrap();
    lay(folder.path(), "x", &sliding(0), &[says("user", "a"), says("assistant", "b")]);
    let path = folder.path().join("agents/agent_x/messages/message_1.json");
    let text = std::fs::read_to_string(&path).unwrap();
    let pad = |size: usize| text.clone() + &" ".repeat(size - text.len());
    let limit = usize::try_from(stepwell_formats::MAX_FILE_BYTES).unwrap();
    for (size, shows) in [(limit, 2), (limit + 1, 1)] {
        std::fs::write(&path, pad(size)).unwrap();
        let well = Stepwell::in_memory();
        let (id, report) = taken_one(&well, folder.path());
        assert_eq!(shown(&well, &id).len(), shows, "{report:?}");
    }
}

#[test]
fn a_part_of_a_session_is_read_as_the_whole_of_it() {
    let well = Stepwell::in_memory();
    let part = fixture("session_till/agents/agent_cashier/messages/message_3.json");
    let found = taken(&well, &part);
    assert_eq!(found[0].id.as_str(), "till");
    let roles = shown(&well, &id("till"));
    assert_eq!(roles.iter().filter(|it| it.role == Role::Tool).count(), 1);
}

#[test]
fn a_session_whose_session_json_is_broken_is_told_of_and_hides_no_other() {
    let folder = tempfile::tempdir().unwrap();
    let place = |name: &str| folder.path().join(name);
    lay(&place("session_whole"), "main", &sliding(0), &[says("user", "hello")]);
    lay(&place("session_torn"), "main", &sliding(0), &[says("user", "still here")]);
    lay_out(&place("session_torn"), &[("session.json".into(), b"{\"session_id\": ".to_vec())]);
    lay_out(&place("session_gone"), &[("session.json".into(), b"{".to_vec())]);
    let well = Stepwell::in_memory();
    let mut became = Vec::new();
    for found in found(folder.path()) {
        let report = take_in(&well, Mode::Write, found.format, &found.path);
        let name = found.path.file_name().unwrap().to_string_lossy().into_owned();
        let warned = report.warnings.iter().any(|it| it.place.ends_with("session.json"));
        became.push((name, report.sessions.len(), report.fault.is_some(), warned));
    }
    became.sort();
    let told = |name: &str, sessions, fault, warned| (name.to_owned(), sessions, fault, warned);
    let expected = [
        // Nothing of it can be read: damaged, and said so.
        told("session_gone", 0, true, true),
        told("session_torn", 1, false, true),
        told("session_whole", 1, false, false),
    ];
    assert_eq!(became, expected);
    let torn = well.info(&id("torn")).unwrap().head;
    assert_eq!((torn.messages, torn.task.as_str()), (1, "still here"));
}
