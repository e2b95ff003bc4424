//! M31A's sessions, and what bites in them.

use std::path::{Path, PathBuf};

use proptest::prelude::*;
use serde_json::{Value, json};
use stepwell::model::{Phase, Role, Task, TaskStatus};
use stepwell::{Event, SessionId, Status, Stepwell};
use stepwell_formats::{Became, Destination, Existing, Format, Mode, Report, take_in, write_to};

use crate::generate::{self, text, turns};
use crate::mirror::{became, found, said, shown, taken, told};
use crate::seeds::{files, fixtures, lay_out};
use crate::sheet::{self, one, took, value, warned};
use crate::support::log;

pub(crate) const ZERO: &str = "0001-01-01T00:00:00Z";

pub(crate) fn m31a() -> Format {
    "m31a".parse().unwrap()
}

/// A message as M31A writes it.
pub(crate) fn message(role: &str, content: &str, changes: &Value) -> Value {
    let segments = match role {
        "tool" => json!([]),
        _ => json!([{"type": "content", "content": content, "duration_ms": 0, "visible": true,
            "started_at": ZERO}]),
    };
    let mut message = json!({"role": role, "content": content, "segments": segments,
        "created_at": "2026-05-09T11:00:01.203040506-03:00"});
    for (name, new) in changes.as_object().unwrap() {
        message[name] = new.clone();
    }
    message
}

pub(crate) fn conversation() -> Value {
    json!([
        message("user", "add it", &json!({})),
        message(
            "assistant",
            "I look.",
            &json!({
                "tool_calls": [{"id": "c1", "name": "FileRead", "input": {"path": "a.ts"}}],
                "usage": {"prompt_tokens": 10, "completion_tokens": 2, "total_tokens": 12},
            })
        ),
        message("tool", "let a", &json!({"tool_call_id": "c1"})),
    ])
}

pub(crate) fn session(changes: &Value) -> Value {
    let mut session = json!({
        "id": "c4de0000", "model": "qwen3-coder", "provider": "openrouter",
        "started_at": "2026-05-09T11:00:00.908070605-03:00", "message_count": 3,
        "workflow_phase": "execute", "schema_version": 1, "messages": conversation(), "tasks": [],
        "project": null,
    });
    for (name, new) in changes.as_object().unwrap() {
        session[name] = new.clone();
    }
    session
}

/// A project with these files in its folder.
pub(crate) fn project(files: &[(&str, &str)]) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    let all: Vec<(PathBuf, Vec<u8>)> = files
        .iter()
        .map(|(name, text)| (Path::new(".m31a").join(name), text.as_bytes().to_vec()))
        .collect();
    lay_out(folder.path(), &all);
    folder
}

pub(crate) fn imported(files: &[(&str, &str)]) -> (Stepwell, Report) {
    let well = Stepwell::in_memory();
    let folder = project(files);
    let report = took(&well, folder.path());
    (well, report)
}

/// Writes a session into a folder like a project's.
pub(crate) fn exported(well: &Stepwell, id: &SessionId) -> (tempfile::TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join(".m31a");
    write_to(&Destination::new(&path, Existing::Keep), m31a().writer().unwrap(), well, id).unwrap();
    (folder, path)
}

/// Loads a session as M31A's manager does: sizes, fields, what it validates, and the rows of
/// TASKS.md split at every pipe.
pub(crate) fn load(folder: &Path) -> (Value, Value) {
    let read = |name: &str| std::fs::read_to_string(folder.join(name)).unwrap();
    let (text, spoken) = (read("session.json"), read("messages.json"));
    assert!(!text.contains('\n') && !text.contains(['<', '>', '&']), "{text}");
    let order = [
        "id",
        "parent_id",
        "children_ids",
        "label",
        "tags",
        "model",
        "provider",
        "started_at",
        "message_count",
        "workflow_phase",
        "schema_version",
        "messages",
        "tasks",
        "project",
        "resumed_at",
        "workflow_goal",
        "discuss_questions",
    ];
    let session = value(&text);
    let mut at = 0;
    for field in order.iter().filter(|field| session.get(**field).is_some()) {
        let found = text[at..].find(&format!("\"{field}\":"));
        at += found.unwrap_or_else(|| panic!("{field} stands in its order: {text}"));
    }
    assert!(!session["id"].as_str().unwrap().is_empty());
    let time = |it: &Value| it.as_str().unwrap().parse::<stepwell::model::Time>().unwrap();
    assert!(time(&session["started_at"]).as_micros() > 0);
    let phases =
        ["", "idle", "initialize", "discuss", "plan", "execute", "verify", "runtime", "ship"];
    assert!(phases.contains(&session["workflow_phase"].as_str().unwrap()));
    let messages = value(&spoken);
    let all = messages.as_array().unwrap();
    assert_eq!(session["message_count"], all.len());
    for message in all {
        let role = message["role"].as_str().unwrap();
        assert!(["user", "assistant", "system", "tool"].contains(&role), "{role}");
        assert!(message["content"].is_string() && message["segments"].is_array());
        time(&message["created_at"]);
        for call in message["tool_calls"].as_array().into_iter().flatten() {
            assert!(
                call["id"].is_string() && call["name"].is_string() && call["input"].is_object()
            );
        }
        assert_eq!(role == "tool", message.get("tool_call_id").is_some());
    }
    let taken = std::fs::read_to_string(folder.join("checkpoint.json")).unwrap_or("[]".to_owned());
    let taken = value(&taken);
    assert!(taken.as_array().unwrap().len() <= 2, "{taken}");
    for checkpoint in taken.as_array().unwrap() {
        assert!(phases.contains(&checkpoint["phase"].as_str().unwrap()));
        time(&checkpoint["timestamp"]);
        assert!(checkpoint["message_count"].is_u64() && checkpoint["task_count"].is_u64());
    }
    (session, messages)
}

/// The rows of TASKS.md as M31A's parser sees them.
pub(crate) fn rows(folder: &Path) -> Vec<Vec<String>> {
    let text = std::fs::read_to_string(folder.join("TASKS.md")).unwrap();
    assert!(text.starts_with("# Tasks\n\n| ID | Action | Description | Deps | Status | Files |\n"));
    let cells =
        |line: &str| line.trim_matches('|').split('|').map(|it| it.trim().to_owned()).collect();
    text.lines().skip(4).map(cells).collect()
}

#[test]
fn the_fixture_comes_in_as_it_stands_and_goes_back_as_it_was() {
    let well = Stepwell::in_memory();
    let folder = fixtures(m31a()).unwrap().join("project");
    let report = took(&well, &folder);
    let id = one(&report);
    let head = well.info(&id).unwrap().head;
    assert_eq!((id.as_str(), head.label.as_deref()), ("c4de0000", Some("allergens")));
    assert_eq!((head.provider.as_str(), head.model.as_str()), ("openrouter", "mistral/devstral-2"));
    assert_eq!((head.messages, head.phase), (8, Some(Phase::Execute)));
    assert_eq!(json!(head.tags), json!(["cakes", "labels"]));
    assert_eq!(head.status, Status::Interrupted);
    assert_eq!(head.goal.as_deref(), Some("Show allergens on each cake & warn when nuts > 0"));
    assert_eq!(head.spent.usage.output, 22 + 64 + 9);
    // Of eight messages one was for the program only.
    let visible: Vec<_> = log(&well, &id)
        .into_iter()
        .filter(
            |it| matches!(&it.event, Event::Message(said) if said.lane == stepwell::Lane::main()),
        )
        .collect();
    assert_eq!(visible.len(), 7);
    let view = shown(&well, &id);
    assert!(!said(&view).iter().any(|it| it.contains("/tokens")));
    let pairs: usize = view.iter().map(|it| it.results().count()).sum();
    assert_eq!(pairs, 3);
    assert!(
        view.iter().all(|it| it.results().all(|result| result.text != stepwell::log::INTERRUPTED))
    );
    // The third row has a pipe in it.
    let tasks = well.work(&id).unwrap().tasks;
    assert_eq!((tasks.len(), tasks.get("2").unwrap().status), (2, TaskStatus::Running));
    assert_eq!(tasks.get("2").unwrap().files.len(), 2);
    assert!(warned(&report).contains("TASKS.md: line 7 is no task"), "{}", warned(&report));
    let stops: Vec<_> = log(&well, &id)
        .into_iter()
        .filter_map(|it| match it.event {
            Event::Checkpoint(checkpoint) => Some(checkpoint.metadata["phase"].clone()),
            _ => None,
        })
        .rev()
        .collect();
    assert_eq!(json!(stops), json!(["execute", "plan"]));
    let (_out, path) = exported(&well, &id);
    load(&path);
    for name in
        ["session.json", "messages.json", "checkpoint.json", "STATE.md", "TASKS.md", "plan.md"]
    {
        let genuine = std::fs::read_to_string(folder.join(".m31a").join(name)).unwrap();
        assert_eq!(std::fs::read_to_string(path.join(name)).unwrap(), genuine, "{name}");
    }
    assert_eq!(became(&took(&well, &folder).sessions, Became::Unchanged), 1);
}

#[test]
fn the_older_layout_is_read_with_its_tree_and_its_archive() {
    let well = Stepwell::in_memory();
    let folder = fixtures(m31a()).unwrap().join("older");
    let (mut ids, mut faults) = (Vec::new(), Vec::new());
    for it in found(&folder) {
        let report = take_in(&well, Mode::Write, it.format, &it.path);
        ids.extend(report.sessions.iter().map(|it| it.id.to_string()));
        faults.extend(report.fault.map(|fault| fault.to_string()));
    }
    ids.sort();
    ids.dedup();
    assert_eq!(ids, ["1c0ffee1", "2c0ffee2", "4c0ffee4"]);
    // One folder holds no session.
    assert!(faults.len() == 1 && faults[0].contains("3c0ffee3"), "{faults:?}");
    let children: Vec<_> = well
        .subagents(&"1c0ffee1".parse().unwrap())
        .unwrap()
        .iter()
        .map(|it| it.head.id.to_string())
        .collect();
    assert_eq!(children, ["2c0ffee2"]);
    let head = well.info(&"4c0ffee4".parse().unwrap()).unwrap().head;
    assert_eq!((head.phase, head.status), (Some(Phase::Ship), Status::Success));
    assert_eq!(well.work(&"1c0ffee1".parse().unwrap()).unwrap().tasks.len(), 1);
    let (_out, path) = exported(&well, &"2c0ffee2".parse().unwrap());
    let genuine = folder.join("home/.m31a/sessions/2c0ffee2/session.json");
    let genuine = std::fs::read_to_string(genuine).unwrap();
    assert_eq!(std::fs::read_to_string(path.join("session.json")).unwrap(), genuine);
}

#[test]
fn a_parent_comes_in_before_its_child_whatever_their_names() {
    let folder = tempfile::tempdir().unwrap();
    for (id, parent) in [("aa", "zz"), ("zz", "mm"), ("mm", "aa")] {
        let text = session(&json!({"id": id, "parent_id": parent})).to_string();
        let name = format!(".m31a/sessions/{id}/session.json");
        lay_out(folder.path(), &[(name.into(), text.into_bytes())]);
    }
    let well = Stepwell::in_memory();
    taken(&well, folder.path());
    let children = well.subagents(&"zz".parse().unwrap()).unwrap();
    assert_eq!(children[0].head.id.as_str(), "aa");
}

#[test]
fn a_session_tells_when_m31a_resumed_it_last_and_goes_back_so() {
    let at = "2026-05-09T11:30:00.950000002-03:00";
    let text = session(&json!({"workflow_phase": "discuss", "resumed_at": at})).to_string();
    let folder = project(&[("session.json", &text)]);
    let well = Stepwell::in_memory();
    let id = one(&took(&well, folder.path()));
    let head = well.info(&id).unwrap().head;
    assert_eq!((head.resumes, head.status), (1, Status::Interrupted));
    let told = well.resumed_at(&head).unwrap().unwrap();
    assert_eq!(told.to_string(), "2026-05-09T14:30:00.95Z");
    let written = |well: &Stepwell| {
        let (_out, path) = exported(well, &id);
        value(&std::fs::read_to_string(path.join("session.json")).unwrap())["resumed_at"].clone()
    };
    assert_eq!(written(&well), json!(at));
    let again = took(&well, folder.path());
    assert_eq!(again.sessions[0].became, Became::Unchanged, "{again:?}");
    // Once it is resumed here, that is the last time.
    well.resume(&id).unwrap().finish(Status::Success, None).unwrap();
    let here = well.resumed_at(&well.info(&id).unwrap().head).unwrap().unwrap();
    // The file's form has as many digits for each time.
    let told: stepwell::model::Time = written(&well).as_str().unwrap().parse().unwrap();
    assert_eq!(told, here);
}

#[test]
fn zero_times_are_none_and_an_empty_phase_is_idle() {
    let quiet = json!([
        message("user", "hi", &json!({"created_at": ZERO})),
        message("assistant", "ho", &json!({}))
    ]);
    let text = session(&json!({"workflow_phase": "", "messages": quiet})).to_string();
    let (well, report) = imported(&[("session.json", &text)]);
    let id = one(&report);
    let head = well.info(&id).unwrap().head;
    assert_eq!((head.phase, head.status), (Some(Phase::Idle), Status::Success));
    assert!(log(&well, &id).iter().all(|it| it.at.as_micros() > 0));
    let (_out, path) = exported(&well, &id);
    assert_eq!(
        value(&std::fs::read_to_string(path.join("session.json")).unwrap())["messages"],
        quiet
    );
}

#[test]
fn a_session_that_grew_keeps_what_was_there() {
    let well = Stepwell::in_memory();
    let table = "# Tasks\n\n| ID | Action | Description | Deps | Status | Files |\n|----|\n";
    let tasks = |status: &str| format!("{table}| 1 | Create | x | - | {status} | - |\n");
    let text = session(&json!({})).to_string();
    let folder = project(&[
        ("session.json", &text),
        ("messages.json", &conversation().to_string()),
        ("TASKS.md", &tasks("running")),
    ]);
    let id = one(&took(&well, folder.path()));
    let before = log(&well, &id);
    let mut grown = conversation();
    grown.as_array_mut().unwrap().push(message(
        "assistant",
        "Done.",
        &json!({
            "usage": {"prompt_tokens": 20, "completion_tokens": 3, "total_tokens": 23},
        }),
    ));
    let put = |name: &str, text: &str| {
        std::fs::write(folder.path().join(".m31a").join(name), text).unwrap();
    };
    put("messages.json", &grown.to_string());
    put("TASKS.md", &tasks("done"));
    put("session.json", &session(&json!({"workflow_phase": "verify"})).to_string());
    assert_eq!(became(&took(&well, folder.path()).sessions, Became::Updated), 1);
    let head = well.info(&id).unwrap().head;
    assert_eq!((head.phase, head.messages, head.steps), (Some(Phase::Verify), 4, 2));
    assert_eq!(head.spent.usage.total(), 12 + 23);
    assert_eq!(well.work(&id).unwrap().tasks.get("1").unwrap().status, TaskStatus::Done);
    assert_eq!(log(&well, &id)[..before.len()], before[..]);
    assert_eq!(became(&took(&well, folder.path()).sessions, Became::Unchanged), 1);
    // It can be gone on with: a model would be shown all of it.
    assert_eq!(shown(&well, &id).last().unwrap().role, Role::Assistant);
}

#[test]
fn questions_project_and_goal_come_in_and_go_back() {
    let text = session(&json!({
        "workflow_phase": "discuss", "label": "allergens", "tags": ["cakes"], "workflow_goal": "allergens",
        "discuss_questions": ["Traces?", "Languages?"], "resumed_at": "2026-05-09T11:00:00.950000002-03:00",
        "project": {"goal": "allergens", "project_type": "typescript", "framework": "astro",
            "answers": {"Traces?": "no"}, "created_at": "2026-05-09T11:00:01.3-03:00"},
    }));
    let (well, report) = imported(&[("session.json", &text.to_string())]);
    let id = one(&report);
    let work = well.work(&id).unwrap();
    assert_eq!(work.questions.len(), 2);
    assert_eq!(work.questions[0].answer.as_deref(), Some("no"));
    let Event::Created(created) = &log(&well, &id)[0].event else { panic!() };
    assert_eq!(created.project.as_ref().unwrap().framework, "astro");
    let (_out, path) = exported(&well, &id);
    assert_eq!(std::fs::read_to_string(path.join("session.json")).unwrap(), text.to_string());
}

#[test]
fn the_ledgers_rows_are_sessions_that_ended() {
    let well = Stepwell::in_memory();
    let folder = fixtures(m31a()).unwrap().join("home");
    let first = taken(&well, &folder);
    assert_eq!(became(&first, Became::Imported), 2);
    let head = well.info(&"ledger-f10c0000".parse().unwrap()).unwrap().head;
    assert_eq!((head.status, head.spent.cost.to_string().as_str()), (Status::Success, "0.35"));
    assert_eq!(head.updated_at.to_string(), "2026-05-08T17:05:30Z");
    assert_eq!(head.updated_at.since(head.created_at).as_secs(), 65 * 60);
    let tasks = well.work(&head.id).unwrap().tasks;
    assert_eq!((tasks.len(), tasks.count(TaskStatus::Failed)), (5, 2));
    assert_eq!(became(&taken(&well, &folder), Became::Unchanged), 2);
    let row = "| a | yesterday | m | - | 1 | 0 | 0 | 0.1 | 1 | 0 |\n";
    let head = std::fs::read_to_string(folder.join(".m31a/LEDGER.md")).unwrap();
    let (_folder, path) = sheet::laid("LEDGER.md", format!("{head}{row}| b | c|d |\n"));
    let report = took(&well, &path);
    assert_eq!(report.warnings.len(), 2, "{report:?}");
    // Of a session that is here itself a row says nothing new, and its cost is not counted twice.
    let own = well.create(well.draft("t")).unwrap().finish(Status::Success, None).map(|_| ());
    own.unwrap();
    let own =
        well.list(&stepwell::store::query::Query::default()).unwrap().sessions.remove(0).head.id;
    let row = format!("| {own} | 2026-05-08T17:05:30Z | m | - | 1 | 0 | 0 | $0.10 | 1 | 0 |\n");
    let columns: String = head
        .lines()
        .take_while(|line| !line.contains("f10c0000"))
        .fold(String::new(), |all, line| all + line + "\n");
    let (_folder, path) = sheet::laid("LEDGER.md", format!("{columns}{row}"));
    assert_eq!(one(&took(&well, &path)), own);
    assert!(well.info(&format!("ledger-{own}").parse().unwrap()).is_err());
}

#[test]
fn what_it_has_no_word_for_is_named_and_kept_beside_it() {
    let well = Stepwell::in_memory();
    let turns = vec![generate::Turn {
        asked: Some("go".to_owned()),
        said: "ok".to_owned(),
        calls: vec![],
        usage: None,
    }];
    let id = generate::record(&well, "own", &turns);
    let session = well.lock(&id).unwrap();
    for (name, description) in [("route", "a | b"), ("2", "plain")] {
        let (id, description) = (name.to_owned(), description.to_owned());
        session.append(Task { id, description, deps: vec![], ..Task::default() }).unwrap();
    }
    session
        .append(stepwell::model::StatusChanged {
            status: Status::Failed,
            reason: None,
            error: None,
        })
        .unwrap();
    drop(session);
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join(".m31a");
    let exported =
        write_to(&Destination::new(&path, Existing::Keep), m31a().writer().unwrap(), &well, &id)
            .unwrap();
    let losses: Vec<_> = exported.losses.iter().map(|(what, _)| what).collect();
    assert!(losses.contains(&"names, pipes or line breaks of tasks"), "{losses:?}");
    load(&path);
    let rows = rows(&path);
    assert!(rows.iter().all(|row| row.len() == 6 && row[0].parse::<u32>().is_ok()), "{rows:?}");
    let there = Stepwell::in_memory();
    let back = one(&took(&there, folder.path()));
    assert_eq!(there.info(&back).unwrap().head.status, Status::Failed);
    assert_eq!(there.work(&back).unwrap().tasks.get("route").unwrap().description, "a | b");
    assert_eq!(there.work(&back).unwrap().tasks.len(), 2);
}

#[test]
fn another_systems_folder_is_not_taken_for_one() {
    for text in ["{\"session_id\": \"x\", \"session_type\": \"AGENT\"}", "{\"metadata\": {}}"] {
        let (folder, _) = sheet::laid("session_1/session.json", text);
        let probe = stepwell_formats::Probe::of(&folder.path().join("session_1")).unwrap().unwrap();
        assert!(m31a().reader().unwrap().recognise(&probe).is_none());
    }
}

fn any_message() -> impl Strategy<Value = Value> {
    let id = prop::sample::select(vec!["c1", "c2", ""]);
    let input = proptest::collection::btree_map("[a-z]{1,5}", sheet::json(), 0..3);
    let calls = proptest::collection::vec((id.clone(), "[A-Za-z]{1,8}", input), 0..3);
    let segment = (prop::sample::select(vec!["thinking", "content", "odd"]), text())
        .prop_map(|(kind, content)| json!({"type": kind, "content": content, "duration_ms": 5, "visible": false}));
    prop_oneof![
        (prop::sample::select(vec!["user", "system"]), text(), any::<bool>()).prop_map(
            |(role, content, skip)| {
                match skip {
                    true => message(role, &content, &json!({"skip_for_llm": true})),
                    false => message(role, &content, &json!({})),
                }
            }
        ),
        (text(), calls, proptest::collection::vec(segment, 0..3)).prop_map(
            |(content, calls, segments)| {
                let calls: Vec<Value> = calls
                    .into_iter()
                    .map(|(id, name, input)| json!({"id": id, "name": name, "input": input}))
                    .collect();
                message("assistant", &content, &json!({"tool_calls": calls, "segments": segments}))
            }
        ),
        (id, text()).prop_map(|(id, content)| message(
            "tool",
            &content,
            &json!({"tool_call_id": id})
        )),
        sheet::json().prop_map(|odd| json!({"role": "oracle", "content": odd})),
        (text(), sheet::json()).prop_map(|(content, odd)| message(
            "user",
            &content,
            &json!({"odd": odd, "usage": {"prompt_tokens": 1}})
        )),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 40, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn every_session_goes_back_as_it_was(
        messages in proptest::collection::vec(any_message(), 0..6),
        phase in prop::sample::select(vec!["", "idle", "initialize", "discuss", "plan", "execute", "verify", "runtime", "ship"]),
        label in proptest::option::of("[a-z ]{1,9}[a-z]"),
        odd in sheet::json(),
        tags in proptest::collection::btree_set("[a-z]{1,6}", 1..3),
        full in any::<bool>(),
    ) {
        let mut genuine = session(&json!({
            "message_count": messages.len(), "messages": messages, "workflow_phase": phase,
            "odd": odd, "tags": tags,
        }));
        if let Some(label) = label {
            genuine["label"] = json!(label);
        }
        if !full {
            for field in ["messages", "tasks", "tags"] {
                genuine.as_object_mut().unwrap().remove(field);
            }
        }
        let stop = |phase: &str| json!({"phase": phase, "timestamp": "2026-05-09T11:00:03.2-03:00", "message_count": 0, "task_count": 1, "odd": 1});
        let stops = json!([stop("plan"), stop("execute")]).to_string();
        let spoken = Value::from(messages.clone()).to_string();
        let text = genuine.to_string();
        let (here, report) = imported(&[("session.json", &text), ("messages.json", &spoken), ("checkpoint.json", &stops)]);
        let id = one(&report);
        let (out, path) = exported(&here, &id);
        let read = |name: &str| value(&std::fs::read_to_string(path.join(name)).unwrap());
        prop_assert_eq!(read("session.json"), genuine);
        prop_assert_eq!(read("messages.json"), Value::from(messages));
        prop_assert_eq!(read("checkpoint.json"), value(&stops));
        let there = Stepwell::in_memory();
        let back = one(&took(&there, out.path()));
        let events = |well: &Stepwell, id: &SessionId| -> Vec<Event> {
            told(well, id).into_iter().skip(1).filter(|it| !matches!(it, Event::Foreign(_))).collect()
        };
        prop_assert_eq!(events(&here, &id), events(&there, &back));
    }

    #[test]
    fn what_was_recorded_here_is_loaded_there_and_read_back(turns in turns()) {
        let (here, there) = (Stepwell::in_memory(), Stepwell::in_memory());
        let id = generate::record(&here, "0a1b2c3d", &turns);
        let (out, path) = exported(&here, &id);
        load(&path);
        let back = one(&took(&there, out.path()));
        prop_assert_eq!(said(&shown(&here, &id)), said(&shown(&there, &back)));
        let head = |well: &Stepwell, id| well.info(id).unwrap().head;
        prop_assert_eq!(head(&here, &id).status, head(&there, &back).status);
        prop_assert_eq!(head(&here, &id).spent.usage.total(), head(&there, &back).spent.usage.total());
    }
}

#[test]
fn every_file_of_the_fixtures_can_be_named() {
    let folder = fixtures(m31a()).unwrap().join("project/.m31a");
    for (name, _) in files(&folder).into_iter().filter(|(name, _)| name.components().count() == 1) {
        let path = folder.join(&name);
        let known = [
            "session.json",
            "messages.json",
            "STATE.md",
            "TASKS.md",
            "checkpoint.json",
            "session.json.bak",
            "PROJECT.md",
        ];
        if known.iter().any(|known| name == Path::new(known)) {
            assert_eq!(found(&path)[0].path, folder.join("session.json").canonicalize().unwrap());
        }
    }
}
