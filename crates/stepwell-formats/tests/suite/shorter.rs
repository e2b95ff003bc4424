//! Shorter tellings of a session that came in before: unless they say themselves that they are
//! newer, they take nothing back, whatever the format and wherever they lie.

use std::path::{Path, PathBuf};

use rusqlite::Connection;
use serde_json::Value;
use stepwell::model::Kind;
use stepwell::{SessionId, Stepwell};
use stepwell_formats::Became;

use crate::mirror::shown;
use crate::older::{date, heads, import, is_older};
use crate::seeds::{all, built, files, lay_out};
use crate::support::log;

/// Files of a system, and what takes the end off its sessions and leaves their times as they are.
struct Case {
    fixture: &'static str,
    shorten: fn(&Path),
}

const CASES: [Case; 13] = [
    Case { fixture: "architect", shorten: |at| pop(at, &["messages"]) },
    Case { fixture: "gaia/.claude/session/burnt-thrice", shorten: forget_a_move },
    Case { fixture: "m31a/project", shorten: |at| pop(at, &["", "messages"]) },
    Case { fixture: "strands-cli/chain-finished", shorten: |at| pop(at, &["step_history"]) },
    Case { fixture: "strands-sdk/session_till", shorten: |at| remove(at, "message_5.json") },
    Case { fixture: "strands-sdk/session_queue", shorten: |at| remove(at, "message_11.json") },
    Case { fixture: "claude/projects", shorten: |at| cut(at, 10) },
    Case { fixture: "codex/sessions/2026/05/04", shorten: |at| cut(at, 10) },
    Case { fixture: "goose/legacy", shorten: |at| cut(at, 1) },
    Case {
        fixture: "goose/sessions",
        shorten: |at| {
            delete(at, "messages WHERE id IN (SELECT max(id) FROM messages GROUP BY session_id)");
        },
    },
    Case { fixture: "openai", shorten: |at| delete(at, "agent_messages WHERE id IN (5, 6)") },
    Case {
        fixture: "adk",
        shorten: |at| {
            delete(at, "events WHERE timestamp >= (SELECT max(timestamp) - 0.0001 FROM events)");
        },
    },
    Case {
        fixture: "langgraph",
        shorten: |at| {
            delete(
                at,
                "checkpoints WHERE checkpoint_id IN (SELECT max(checkpoint_id) FROM \
                        checkpoints GROUP BY thread_id)",
            );
        },
    },
];

/// Takes the last element off lists in JSON files: by their names, or the whole if it is one.
fn pop(folder: &Path, lists: &[&str]) {
    for (name, bytes) in files(folder) {
        let Ok(mut json) = serde_json::from_slice::<Value>(&bytes) else { continue };
        let mut popped = false;
        for list in lists {
            let list = if list.is_empty() { Some(&mut json) } else { json.get_mut(list) };
            popped |= list.and_then(Value::as_array_mut).is_some_and(|it| it.pop().is_some());
        }
        // A checkpoint counts what it was made of; it is no part of what was said.
        if popped && !name.ends_with("checkpoint.json") {
            std::fs::write(folder.join(name), serde_json::to_vec_pretty(&json).unwrap()).unwrap();
        }
    }
}

/// Takes back the last move between phases.
fn forget_a_move(folder: &Path) {
    for (name, bytes) in files(folder) {
        let mut state: Value = serde_json::from_slice(&bytes).unwrap();
        if let Some(last) = state["history"].as_array_mut().and_then(Vec::pop) {
            state["phase"] = last["from_phase"].clone();
            std::fs::write(folder.join(name), serde_json::to_vec_pretty(&state).unwrap()).unwrap();
        }
    }
}

/// Takes lines off the end of every file of lines.
fn cut(folder: &Path, lines: usize) {
    for (name, bytes) in files(folder) {
        let text = String::from_utf8(bytes).unwrap();
        let all = text.lines().collect::<Vec<_>>();
        if name.extension().is_some_and(|it| it == "jsonl") && all.len() > lines {
            let rest = all[..all.len() - lines].join("\n") + "\n";
            std::fs::write(folder.join(name), rest).unwrap();
        }
    }
}

fn remove(folder: &Path, file: &str) {
    for (name, _) in files(folder).into_iter().filter(|(name, _)| name.ends_with(file)) {
        std::fs::remove_file(folder.join(name)).unwrap();
    }
}

fn delete(folder: &Path, what: &str) {
    for (name, _) in files(folder) {
        let database = Connection::open(folder.join(name)).unwrap();
        // Of several databases in a folder, only one may have the table.
        let _ = database.execute(&format!("DELETE FROM {what}"), []);
    }
}

impl Case {
    fn laid_out(&self) -> tempfile::TempDir {
        // Some systems know their sessions by the folder that they are in.
        let folder = Path::new(self.fixture);
        let all = files(&all().join(folder)).into_iter();
        let within = all.map(|(name, bytes)| (folder.join(name), bytes));
        let raw = tempfile::tempdir().unwrap();
        lay_out(raw.path(), &within.collect::<Vec<_>>());
        built(raw.path())
    }

    /// Imports it, and again when its end is gone: from `again`, in which the whole was laid out.
    fn is_kept(&self, well: &Stepwell, again: &Path, place: &str) {
        let before = heads(well);
        (self.shorten)(again);
        date(again, 4_000_000_000);
        let (taken, warnings) = import(well, again);
        let changed = taken.iter().filter(|it| it.became != Became::Unchanged);
        assert_eq!(changed.count(), 0, "{}, {place}: {taken:?}", self.fixture);
        assert!(is_older(&warnings), "{}, {place}: {warnings:?}", self.fixture);
        assert_eq!(heads(well), before, "{}, {place}", self.fixture);
    }
}

#[test]
fn a_shorter_telling_takes_nothing_back_whatever_the_format() {
    for case in &CASES {
        let (well, whole) = (Stepwell::in_memory(), case.laid_out());
        date(whole.path(), 1_000);
        import(&well, whole.path());
        let copy = case.laid_out();
        case.is_kept(&well, copy.path(), "another place");
        case.is_kept(&well, whole.path(), "the same place");
    }
}

#[test]
fn a_shorter_telling_takes_nothing_back_when_the_longer_one_is_gone() {
    for case in &CASES {
        let (well, whole) = (Stepwell::in_memory(), case.laid_out());
        import(&well, whole.path());
        drop(whole);
        let copy = case.laid_out();
        case.is_kept(&well, copy.path(), "alone");
    }
}

#[test]
fn a_telling_in_which_one_of_two_agents_ends_earlier_takes_nothing_back() {
    let case = Case { fixture: "strands-sdk/session_till", shorten: |_| {} };
    let (well, there) = (Stepwell::in_memory(), case.laid_out());
    let agents = there.path().join(case.fixture).join("agents");
    // Another agent, who said the same later on.
    for (name, bytes) in files(&agents.join("agent_cashier")) {
        let text = String::from_utf8(bytes).unwrap().replace("cashier", "manager");
        let text = text.replace("2026-03-11T16", "2026-03-11T18");
        lay_out(&agents.join("agent_manager"), &[(name, text.into_bytes())]);
    }
    import(&well, there.path());
    let before = heads(&well);
    assert_eq!(before[0].messages, 12);
    remove(&agents.join("agent_cashier"), "message_5.json");
    let (_, warnings) = import(&well, there.path());
    assert!(is_older(&warnings), "{warnings:?}");
    assert_eq!(heads(&well), before);
}

/// A database of goose's with two sessions, and what asks it to change.
fn goose() -> (tempfile::TempDir, PathBuf) {
    let there = built(&all().join("goose/sessions"));
    let path = there.path().join("sessions.db");
    (there, path)
}

const MORE: &str = "INSERT INTO messages (message_id, session_id, role, content_json, \
                    created_timestamp) VALUES ('tag-7', '20260506_1', 'user', \
                    '[{\"type\": \"text\", \"text\": \"and in red\"}]', 1778041900)";

#[test]
fn a_session_of_goose_that_grew_within_a_second_is_added_to_and_not_told_again() {
    let (well, (_there, path)) = (Stepwell::in_memory(), goose());
    import(&well, &path);
    let id: SessionId = "20260506_1".parse().unwrap();
    let before = well.info(&id).unwrap().head.seq;
    let database = Connection::open(&path).unwrap();
    database.execute(MORE, []).unwrap();
    database.execute("UPDATE sessions SET total_tokens = 1300", []).unwrap();
    let (taken, warnings) = import(&well, &path);
    assert!(taken.iter().any(|it| it.became == Became::Updated), "{taken:?}");
    assert_eq!(warnings, "");
    assert_eq!(well.info(&id).unwrap().head.messages, 6);
    let told = log(&well, &id).into_iter().filter(|it| it.seq > before);
    let said = told.filter(|it| it.event.kind() == Kind::Message.as_str()).count();
    assert_eq!(said, 1, "only what is new is told");
}

#[test]
fn a_shorter_telling_that_says_that_it_is_newer_counts() {
    let (well, (_there, path)) = (Stepwell::in_memory(), goose());
    import(&well, &path);
    let database = Connection::open(&path).unwrap();
    database.execute("DELETE FROM messages WHERE message_id = 'tag-6'", []).unwrap();
    database.execute("UPDATE sessions SET updated_at = '2026-05-06 05:00:00'", []).unwrap();
    let (taken, warnings) = import(&well, &path);
    assert!(taken.iter().any(|it| it.became == Became::Updated), "{taken:?}");
    assert!(!is_older(&warnings), "{warnings}");
    let id: SessionId = "20260506_1".parse().unwrap();
    assert!(!format!("{:?}", shown(&well, &id)).contains("lp tags.pdf"));
}
