//! architect's sessions, and what bites in them.

use proptest::prelude::*;
use serde_json::{Value, json};
use stepwell::model::Edited;
use stepwell::{Event, SessionId, Status, Stepwell, StopReason};
use stepwell_formats::{
    Became, Format, Length, Losses, MAX_FILE_BYTES, Mode, Outlet, Wishes, take_in,
};

use crate::generate::{self, text, turns};
use crate::mirror::{became, said, shown, taken, told, written};
use crate::seeds::fixtures;
use crate::sheet::{self, assert_laid_out, laid, one, returned, took, value, warned};
use crate::support::log;

const NAME: &str = ".architect/sessions/20260223-143022-a1b2c3.json";

const FIELDS: [&str; 13] = [
    "session_id",
    "task",
    "agent",
    "model",
    "status",
    "steps_completed",
    "messages",
    "files_modified",
    "total_cost",
    "started_at",
    "updated_at",
    "stop_reason",
    "metadata",
];

fn architect() -> Format {
    "architect".parse().unwrap()
}

/// A session as architect writes it, with some fields otherwise.
fn session(changes: &Value) -> Value {
    let mut session = json!({
        "session_id": "20260223-143022-a1b2c3", "task": "fix it", "agent": "build",
        "model": "gpt-4o", "status": "partial", "steps_completed": 1,
        "messages": [
            {"role": "system", "content": "You fix things."},
            {"role": "user", "content": "fix it"},
            {"role": "assistant", "content": null, "tool_calls": [{"id": "c1", "type": "function",
                "function": {"name": "read_file", "arguments": "{\"path\": \"a.rs\"}"}}]},
            {"role": "tool", "tool_call_id": "c1", "name": "read_file", "content": "fn a() {}"},
        ],
        "files_modified": ["a.rs"], "total_cost": 0.25, "started_at": 1778130900.2501251,
        "updated_at": 1778130970.875501, "stop_reason": "max_steps", "metadata": {},
    });
    for (name, new) in changes.as_object().unwrap() {
        session[name] = new.clone();
    }
    session
}

fn imported(session: &Value) -> (Stepwell, SessionId, String) {
    let well = Stepwell::in_memory();
    let (folder, _) = laid(NAME, format!("{session:#}"));
    let report = took(&well, folder.path());
    (well, one(&report), warned(&report))
}

/// Loads a session as architect does: `json.load`, then a dataclass whose fields these are.
fn load(text: &str) -> Value {
    assert_laid_out(text, &FIELDS);
    let session = value(text);
    let is =
        |name: &str, right: fn(&Value) -> bool| assert!(right(&session[name]), "{name}: {session}");
    for name in ["session_id", "task", "agent", "model", "status"] {
        is(name, Value::is_string);
    }
    is("steps_completed", Value::is_u64);
    is("total_cost", Value::is_f64);
    is("metadata", Value::is_object);
    is("stop_reason", |it| it.is_null() || it.is_string());
    let status = session["status"].as_str().unwrap();
    assert!(["running", "success", "partial", "failed", "interrupted"].contains(&status));
    for message in session["messages"].as_array().unwrap() {
        match message["role"].as_str().unwrap() {
            "system" | "user" => {
                assert!(message["content"].is_string() || message["content"].is_array());
            }
            "assistant" => {
                assert!(message.get("content").is_some());
                for call in message["tool_calls"].as_array().into_iter().flatten() {
                    assert_eq!(call["type"], "function");
                    assert!(call["id"].is_string() && call["function"]["name"].is_string());
                    assert!(call["function"]["arguments"].is_string());
                }
            }
            "tool" => {
                assert!(message["tool_call_id"].is_string() && message["content"].is_string());
            }
            role => panic!("{role}"),
        }
    }
    session
}

#[test]
fn the_fixtures_come_in_as_they_stand_and_go_back_as_they_were() {
    let well = Stepwell::in_memory();
    let folder = fixtures(architect()).unwrap();
    let first = taken(&well, &folder);
    assert_eq!(became(&first, Became::Imported), 3, "{first:?}");
    let head = |id: &str| well.info(&id.parse().unwrap()).unwrap().head;
    let done = head("20260507-051500-ba4e01");
    assert_eq!((done.status, done.stop_reason), (Status::Success, Some(StopReason::LlmDone)));
    assert_eq!((done.steps, done.messages), (3, 7));
    assert_eq!(done.spent.cost.to_string(), "0.021");
    assert_eq!((done.provider.as_str(), done.model.as_str()), ("openai", "gpt-4.1"));
    assert_eq!(done.workspace, folder.display().to_string());
    assert_eq!(done.created_at.to_string(), "2026-05-07T05:15:00.250125Z");
    assert_eq!(done.updated_at.to_string(), "2026-05-07T05:16:10.8755Z");
    let cut = head("20260507-060200-ba4e02");
    assert_eq!((cut.steps, cut.messages), (33, 5));
    assert_eq!(cut.metadata["messages_truncated"], true);
    // It stayed running after Ctrl+C.
    assert_eq!(head("20260507-071000-ba4e03").status, Status::Interrupted);
    for it in &first {
        let (_folder, path) = written(&well, &it.id, architect(), "x.json");
        let text = std::fs::read_to_string(path).unwrap();
        let genuine = folder.join(format!(".architect/sessions/{}.json", it.id));
        let genuine = std::fs::read_to_string(genuine).unwrap();
        assert_eq!(value(&text), value(&genuine));
        assert_eq!(text, genuine);
        load(&text);
    }
    let again = taken(&well, &folder);
    assert_eq!(became(&again, Became::Unchanged), 3, "{again:?}");
}

#[test]
fn orphan_results_are_kept_and_shown_to_no_model() {
    let mut orphaned = session(&json!({"messages_truncated": true}));
    orphaned["messages"].as_array_mut().unwrap().drain(..3);
    let (well, id, _) = imported(&orphaned);
    assert!(shown(&well, &id).is_empty());
    assert_eq!(value(&returned(architect(), NAME, &orphaned.to_string())), orphaned);
}

#[test]
fn epoch_and_iso_times_are_the_same_times() {
    let (well, id, _) = imported(&session(&json!({})));
    let iso = session(&json!({
        "started_at": "2026-05-07T05:15:00.250125+00:00", "updated_at": "2026-05-07T05:16:10.875501",
    }));
    let (other, same, _) = imported(&iso);
    let times = |well: &Stepwell, id| {
        let head = well.info(id).unwrap().head;
        (head.created_at, head.updated_at)
    };
    assert_eq!(times(&well, &id), times(&other, &same));
    assert_eq!(value(&returned(architect(), NAME, &iso.to_string())), iso);
}

#[test]
fn the_truncated_flag_is_seen_in_either_place() {
    for flag in [json!({"messages_truncated": true}), json!({"metadata": {"truncated": true}})] {
        let cut = session(&flag);
        let (well, id, _) = imported(&cut);
        assert!(!log(&well, &id).iter().any(|it| matches!(it.event, Event::Step(_))));
        assert_eq!(well.info(&id).unwrap().head.steps, 1);
        assert_eq!(value(&returned(architect(), NAME, &cut.to_string())), cut);
    }
}

#[test]
fn what_is_no_session_is_reported_and_named() {
    let well = Stepwell::in_memory();
    for (text, why) in [
        ("[]", "holds no session"),
        ("", "is empty"),
        ("null", "holds null"),
        ("{\"session_id\": \"x\", \"task\": ", "holds no session"),
        ("nonsense", "holds no session"),
    ] {
        let (folder, path) = laid(NAME, text);
        let fault = took(&well, folder.path()).fault.unwrap().to_string();
        assert!(fault.contains(why) && fault.contains(path.file_name().unwrap().to_str().unwrap()));
    }
    assert!(crate::support::names(&well).is_empty());
}

#[test]
fn fifty_megabytes_are_read_and_one_byte_more_is_not() {
    let bare = session(&json!({"metadata": {"pad": ""}})).to_string();
    let room = usize::try_from(MAX_FILE_BYTES).unwrap() - bare.len();
    for (more, fits) in [(0, true), (1, false)] {
        let text =
            bare.replace("\"pad\":\"\"", &format!("\"pad\":\"{}\"", "x".repeat(room + more)));
        assert_eq!(text.len() as u64 > MAX_FILE_BYTES, !fits);
        let (_folder, path) = laid(NAME, text);
        let report = take_in(&Stepwell::in_memory(), Mode::Look, architect(), &path);
        match report.fault {
            None => assert!(fits),
            Some(fault) => {
                assert!(!fits && fault.to_string().contains("52428801 bytes"), "{fault}");
            }
        }
    }
}

#[test]
fn a_session_that_grew_is_appended_to_and_nothing_counts_twice() {
    let well = Stepwell::in_memory();
    let (folder, path) = laid(NAME, session(&json!({})).to_string());
    let id = one(&took(&well, folder.path()));
    let before = log(&well, &id);
    let mut grown = session(&json!({
        "steps_completed": 2, "total_cost": 0.75, "status": "success", "stop_reason": "llm_done",
        "updated_at": 1794700200.5,
    }));
    grown["messages"]
        .as_array_mut()
        .unwrap()
        .push(json!({"role": "assistant", "content": "Done."}));
    std::fs::write(&path, grown.to_string()).unwrap();
    assert_eq!(became(&took(&well, folder.path()).sessions, Became::Updated), 1);
    let head = well.info(&id).unwrap().head;
    assert_eq!((head.messages, head.steps, head.status), (5, 2, Status::Success));
    assert_eq!(head.spent.cost.to_string(), "0.75");
    let after = log(&well, &id);
    assert!(!after.iter().any(|it| matches!(it.event, Event::Rewound(_))), "{after:#?}");
    assert_eq!(after[..before.len()], before[..]);
    let again = took(&well, folder.path());
    assert_eq!(became(&again.sessions, Became::Unchanged), 1);
}

#[test]
fn a_longer_telling_that_says_that_it_is_older_changes_nothing() {
    let well = Stepwell::in_memory();
    let done = |at: f64| {
        let ended = json!({"status": "success", "stop_reason": "llm_done", "updated_at": at});
        laid(NAME, session(&ended).to_string())
    };
    let longer = |at: f64| {
        let mut longer = session(&json!({"status": "interrupted", "updated_at": at}));
        let more = json!({"role": "user", "content": "and more"});
        longer["messages"].as_array_mut().unwrap().push(more);
        laid(NAME, longer.to_string())
    };
    let newest = done(1794700300.5);
    let id = one(&took(&well, newest.0.path()));
    let before = well.info(&id).unwrap().head;
    let older = took(&well, longer(1794700200.5).0.path());
    assert_eq!(became(&older.sessions, Became::Unchanged), 1);
    assert!(warned(&older).contains("left out"), "{}", warned(&older));
    assert_eq!(well.info(&id).unwrap().head, before);
    // One that is newer is believed, and so is a shorter one that is newer still, status and all.
    took(&well, longer(1794700400.5).0.path());
    assert_eq!(well.info(&id).unwrap().head.status, Status::Interrupted);
    let again = done(1794700500.5);
    took(&well, again.0.path());
    assert_eq!(well.info(&id).unwrap().head.status, Status::Success);
    assert_eq!(became(&took(&well, again.0.path()).sessions, Became::Unchanged), 1);
}

#[test]
fn its_save_rule_is_kept_on_request_only() {
    let said = |n: usize| {
        let all: Vec<Value> =
            (0..n).map(|n| json!({"role": "user", "content": format!("{n}")})).collect();
        imported(&session(&json!({"messages": all})))
    };
    let writer = architect().writer().unwrap();
    for (n, left) in [(50, 50), (51, 30)] {
        let (well, id, _) = said(n);
        let mut text = Vec::new();
        let wishes = Wishes { length: Length::AsThere, ..Wishes::default() };
        writer.write(&well, &id, &mut Outlet::stream(&mut text).wishing(wishes)).unwrap();
        let cut = load(std::str::from_utf8(&text).unwrap());
        assert_eq!(cut["messages"].as_array().unwrap().len(), left);
        assert_eq!(cut["messages"][left - 1]["content"], format!("{}", n - 1));
        assert_eq!(cut.get("messages_truncated").is_some(), n > 50);
        assert_eq!(cut["metadata"].get("truncated") == Some(&json!(true)), n > 50);
        let mut text = Vec::new();
        writer.write(&well, &id, &mut Outlet::stream(&mut text)).unwrap();
        let whole = load(std::str::from_utf8(&text).unwrap());
        assert_eq!(whole["messages"].as_array().unwrap().len(), n);
    }
}

#[test]
fn what_it_has_no_word_for_is_named_and_kept_in_its_metadata() {
    let well = Stepwell::in_memory();
    let turns = vec![generate::Turn {
        asked: Some("go".to_owned()),
        said: "ok".to_owned(),
        calls: vec![],
        usage: None,
    }];
    let id = generate::record(&well, "my-own", &turns);
    let session = well.lock(&id).unwrap();
    session
        .append(stepwell::model::Task {
            id: "1".to_owned(),
            description: "a | b".to_owned(),
            ..Default::default()
        })
        .unwrap();
    session
        .append(stepwell::model::StatusChanged {
            status: Status::Paused,
            reason: Some(StopReason::Gate),
            error: None,
        })
        .unwrap();
    drop(session);
    let edited =
        Edited { label: stepwell::model::Change::Set("mine".to_owned()), ..Default::default() };
    well.edit(&id, edited).unwrap();
    let mut text = Vec::new();
    let exported = stepwell_formats::export(&well, &id, architect(), &mut text).unwrap();
    let losses: Vec<_> = Losses::iter(&exported.losses).map(|(what, _)| what).collect();
    for what in ["a label", "a status", "tasks and questions"] {
        assert!(losses.contains(&what), "{what} in {losses:?}");
    }
    let written = load(std::str::from_utf8(&text).unwrap());
    assert_eq!(written["status"], "partial");
    let name = written["session_id"].as_str().unwrap();
    assert!(name.len() == 22 && name[..8].parse::<u32>().is_ok(), "{name}");
    let (there, id, _) = imported(&written);
    let head = there.info(&id).unwrap().head;
    assert_eq!((head.label.as_deref(), head.status), (Some("mine"), Status::Paused));
    assert_eq!(there.work(&id).unwrap().tasks.get("1").unwrap().description, "a | b");
}

#[test]
fn hostile_sessions_are_bounded_and_lead_nowhere() {
    let deep = format!("{}1{}", "[".repeat(10_000), "]".repeat(10_000));
    let mut text =
        session(&json!({"session_id": "../../../etc/x", "agent": "a".repeat(100_000)})).to_string();
    text = text.replace(
        "\"metadata\":{}",
        &format!("\"metadata\":{{\"a\":{deep}}},\"odd\":{deep},\"odd\":1"),
    );
    let well = Stepwell::in_memory();
    let (folder, _) = laid(NAME, &text);
    let report = took(&well, folder.path());
    assert!(warned(&report).contains("metadata is kept"), "{report:?}");
    let id = one(&report);
    assert!(!id.as_str().contains('/'));
    let (out, path) = written(&well, &id, architect(), "out.json");
    assert_eq!(std::fs::read_dir(out.path()).unwrap().count(), 1);
    assert!(std::fs::metadata(path).unwrap().len() < 400_000);
    let (folder, path) = laid(NAME, session(&json!({})).to_string());
    let link = folder.path().join(".architect/sessions/20260223-143022-a1b2c4.json");
    std::os::unix::fs::symlink(&path, &link).unwrap();
    assert_eq!(taken(&Stepwell::in_memory(), folder.path()).len(), 1);
    let (_folder, path) = laid(NAME, b"{\"session_id\": \"\xff\"}");
    let fault = take_in(&well, Mode::Write, architect(), &path).fault.unwrap().to_string();
    assert!(fault.contains("not UTF-8"), "{fault}");
}

/// A message as architect, or somebody else, may have written it.
fn message() -> impl Strategy<Value = Value> {
    let id = prop::sample::select(vec!["c1", "c2", "c3", ""]);
    let call = (id.clone(), "[a-z_]{1,8}", text()).prop_map(|(id, name, arguments)| {
        json!({"id": id, "type": "function", "function": {"name": name, "arguments": arguments}})
    });
    let spoken = prop_oneof![text().prop_map(Value::from), Just(Value::Null)];
    prop_oneof![
        (prop::sample::select(vec!["system", "user"]), text())
            .prop_map(|(role, content)| json!({"role": role, "content": content})),
        (spoken, proptest::collection::vec(call, 0..3)).prop_map(|(content, calls)| match calls.is_empty() {
            true => json!({"role": "assistant", "content": content}),
            false => json!({"role": "assistant", "content": content, "tool_calls": calls}),
        }),
        (id, "[a-z_]{1,8}", text()).prop_map(|(id, name, content)| {
            json!({"role": "tool", "tool_call_id": id, "name": name, "content": content})
        }),
        (text(), sheet::json()).prop_map(|(content, odd)| json!({"role": "user", "content": [{"type": "text", "text": content}, odd], "extra": 1})),
        (sheet::json()).prop_map(|odd| json!({"role": "oracle", "content": odd})),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn every_session_goes_back_as_it_was(
        messages in proptest::collection::vec(message(), 0..8),
        metadata in proptest::collection::btree_map("[a-z]{1,6}", sheet::json(), 0..3),
        odd in sheet::json(),
        status in prop::sample::select(vec!["running", "success", "partial", "failed", "interrupted", "odd"]),
        reason in prop::sample::select(vec![json!("llm_done"), json!("timeout"), json!("user_interrupt"), json!(null), json!("odd")]),
        (steps, cost, started) in (0..60_u64, 0.0..5.0_f64, 1e9..2e9_f64),
        files in proptest::collection::btree_set("[a-z/.]{1,12}", 0..3),
    ) {
        let files: Vec<String> = files.into_iter().collect();
        let genuine = session(&json!({
            "messages": messages, "metadata": metadata, "odd": odd, "status": status,
            "stop_reason": reason, "steps_completed": steps, "total_cost": cost,
            "started_at": started, "updated_at": started + 10.5, "files_modified": files,
        }));
        let text = returned(architect(), NAME, &genuine.to_string());
        prop_assert_eq!(value(&text), genuine);
    }

    #[test]
    fn what_was_recorded_here_is_loaded_there_and_read_back(turns in turns()) {
        let (here, there) = (Stepwell::in_memory(), Stepwell::in_memory());
        let id = generate::record(&here, "20260507-101500-abcdef", &turns);
        let (_folder, path) = written(&here, &id, architect(), "20260507-101500-abcdef.json");
        load(&std::fs::read_to_string(&path).unwrap());
        let back = one(&took(&there, &path));
        prop_assert_eq!(said(&shown(&here, &id)), said(&shown(&there, &back)));
        let head = |well: &Stepwell, id| well.info(id).unwrap().head;
        prop_assert_eq!(head(&here, &id).status, head(&there, &back).status);
        prop_assert!(!told(&there, &back).is_empty());
    }
}

#[test]
fn a_file_comes_back_laid_out_as_it_was() {
    let session = session(&json!({}));
    let spaced = session.to_string().replace("\":", "\": ").replace(",\"", ", \"");
    for text in [session.to_string(), spaced, format!("{session:#}")] {
        let again = returned(architect(), NAME, &text);
        assert_eq!(value(&again), value(&text));
        assert_eq!(again.lines().count(), text.lines().count());
        assert_eq!(again.contains("\": "), text.contains("\": "), "{again}");
    }
}

#[test]
fn files_that_a_session_changed_are_its_files_here() {
    let call = |id: &str, name: &str, path: &str| {
        json!({"id": id, "type": "function", "function": {"name": name,
            "arguments": json!({"path": path, "content": "x"}).to_string()}})
    };
    let messages = json!([
        {"role": "user", "content": "fix it"},
        {"role": "assistant", "content": null, "tool_calls": [call("c1", "read_file", "a.rs")]},
        {"role": "tool", "tool_call_id": "c1", "name": "read_file", "content": "fn a() {}"},
        {"role": "assistant", "content": null,
            "tool_calls": [call("c2", "write_file", "a.rs"), call("c3", "write_file", "c.rs")]},
        {"role": "tool", "tool_call_id": "c2", "name": "write_file", "content": "ok"},
        {"role": "tool", "tool_call_id": "c3", "name": "write_file", "content": "refused"},
    ]);
    let changed = session(&json!({"messages": messages, "files_modified": ["a.rs"]}));
    let (well, id, _) = imported(&changed);
    let files = |well: &Stepwell| -> Vec<String> {
        let path = |it: stepwell::Recorded| match it.event {
            Event::File(file) => Some(format!("{} {}", it.seq, file.path)),
            _ => None,
        };
        log(well, &id).into_iter().filter_map(path).collect()
    };
    assert_eq!(files(&well).len(), 1, "{:?}", files(&well));
    assert!(files(&well)[0].ends_with("a.rs"));
    let mut out = Vec::new();
    let exported = stepwell_formats::export(&well, &id, architect(), &mut out).unwrap();
    assert!(!exported.losses.to_string().contains("files"), "{}", exported.losses);
    assert_eq!(value(std::str::from_utf8(&out).unwrap())["files_modified"], json!(["a.rs"]));
    // So are those that no call is left to tell of, or that a command changed.
    let cut = session(&json!({
        "messages": [{"role": "user", "content": "go on"}, {"role": "assistant", "content": "ok"}],
        "messages_truncated": true, "files_modified": ["b.rs", "a.rs"]
    }));
    let (other, other_id, _) = imported(&cut);
    let changed_there = log(&other, &other_id).into_iter().filter_map(|it| match it.event {
        Event::File(file) => Some(file.path),
        _ => None,
    });
    assert_eq!(changed_there.collect::<Vec<_>>(), ["b.rs", "a.rs"]);
    let metadata = |values| Edited { metadata: values, ..Edited::default() };
    let evil = metadata([("files_modified".to_owned(), json!(["evil"]))].into());
    other.resume(&other_id).unwrap().append(evil).unwrap();
    let mut out = Vec::new();
    stepwell_formats::export(&other, &other_id, architect(), &mut out).unwrap();
    let out = value(std::str::from_utf8(&out).unwrap());
    assert_eq!(out["files_modified"], json!(["b.rs", "a.rs"]), "what a user noted is no file");
    assert_eq!(out["metadata"]["files_modified"], json!(["evil"]));
    // More of it comes in behind what is here.
    let mut grown = changed.clone();
    grown["messages"].as_array_mut().unwrap().push(json!({"role": "assistant", "content": "done"}));
    let (folder, _) = laid(NAME, grown.to_string());
    assert_eq!(took(&well, folder.path()).sessions[0].became, Became::Updated);
    assert_eq!(files(&well).len(), 1);
    assert!(!log(&well, &id).iter().any(|it| matches!(it.event, Event::Rewound(_))));
}
