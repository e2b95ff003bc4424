//! Sessions that were written for another agent and come back: what they share is not counted
//! again.

use std::path::Path;

use proptest::prelude::*;
use serde_json::Value;
use stepwell::model::{Compacted, Restored, Rewound, Scope};
use stepwell::{Lane, Message, Seq, SessionId, Stepwell};
use stepwell_formats::{Became, Format, ImportedSession, Mode, take_in};

use crate::generate::{record, turns};
use crate::mirror::{found, said, shown, taken, written};
use crate::seeds::fixtures;
use crate::strands_cli::{fixture, keys, taken_one};
use crate::support::names;

const CAKE: &str = "7be2d940-15c3-4f6a-a1d8-90c4e3b7f512";
const OTHER: &str = "0196a3f0-0000-7a52-8c3e-000000000009";

/// The agents that sessions are handed over to, and what they call a session's file or folder.
fn agents() -> [(Format, String); 5] {
    [
        ("claude".parse().unwrap(), format!("{OTHER}.jsonl")),
        ("codex".parse().unwrap(), format!("rollout-2026-05-04T07-15-00-{OTHER}.jsonl")),
        ("strands".parse().unwrap(), format!("session_{OTHER}")),
        ("qwen".parse().unwrap(), format!("{OTHER}.jsonl")),
        ("pi".parse().unwrap(), format!("2026-05-07T05-00-00-000Z_{OTHER}.jsonl")),
    ]
}

/// A store with a session of Claude Code and its subagent's, gone on with here.
fn cakes() -> (Stepwell, SessionId) {
    let well = Stepwell::in_memory();
    taken(&well, &fixtures("claude".parse().unwrap()).unwrap());
    let id: SessionId = CAKE.parse().unwrap();
    well.lock(&id).unwrap().append(Message::user("and on Sundays?")).unwrap();
    (well, id)
}

/// What was spent in all sessions of a store.
fn spent(well: &Stepwell) -> (u64, u64) {
    let ids = names(well).into_iter().map(|name| name.parse::<SessionId>().unwrap());
    let spent = ids.map(|id| well.info(&id).unwrap().head.spent);
    spent.fold((0, 0), |(tokens, calls), it| (tokens + it.usage.total(), calls + it.calls))
}

/// The agent that it was written for answers once more.
fn answer(format: Format, path: &Path, n: u32) {
    let at = format!("2027-01-01T10:00:{n:02}.000Z");
    let lines = match format.as_str() {
        "claude-code" => {
            let parent = last_uuid(path);
            let usage = r#"{"input_tokens":7,"output_tokens":3}"#;
            format!(
                r#"{{"parentUuid":"{parent}","isSidechain":false,"cwd":"/w","sessionId":"{OTHER}","type":"assistant","message":{{"id":"msg_{n}","role":"assistant","model":"m","content":[{{"type":"text","text":"answer {n}"}}],"usage":{usage}}},"uuid":"new-{n}","timestamp":"{at}"}}"#
            )
        }
        "qwen" => {
            let parent = last_uuid(path);
            let usage = r#"{"promptTokenCount":7,"candidatesTokenCount":3,"totalTokenCount":10}"#;
            format!(
                r#"{{"uuid":"new-{n}","parentUuid":"{parent}","sessionId":"{OTHER}","cwd":"/w","type":"assistant","model":"m","message":{{"role":"model","parts":[{{"text":"answer {n}"}}]}},"usageMetadata":{usage},"timestamp":"{at}"}}"#
            )
        }
        "pi" => {
            let parent = last_uuid(path);
            let usage = r#"{"input":7,"output":3,"cacheRead":0,"cacheWrite":0}"#;
            format!(
                r#"{{"type":"message","id":"new-{n}","parentId":"{parent}","timestamp":"{at}","message":{{"role":"assistant","content":[{{"type":"text","text":"answer {n}"}}],"provider":"p","model":"m","usage":{usage},"stopReason":"stop"}}}}"#
            )
        }
        "codex" => {
            let usage =
                |n: u32| format!(r#"{{"input_tokens":{},"output_tokens":{}}}"#, 7 * n, 3 * n);
            let (last, total) = (usage(1), usage(n + 1000));
            format!(
                r#"{{"timestamp":"{at}","type":"response_item","payload":{{"type":"message","role":"assistant","content":[{{"type":"output_text","text":"answer {n}"}}]}}}}
{{"timestamp":"{at}","type":"event_msg","payload":{{"type":"token_count","info":{{"total_token_usage":{total},"last_token_usage":{last}}}}}}}"#
            )
        }
        _ => {
            let agents = std::fs::read_dir(path.join("agents")).unwrap();
            let folder = agents.map(|it| it.unwrap().path()).next().unwrap().join("messages");
            let count = std::fs::read_dir(&folder).unwrap().count();
            let message = format!(
                r#"{{"message":{{"role":"assistant","content":[{{"text":"answer {n}"}}],"metadata":{{"usage":{{"inputTokens":7,"outputTokens":3,"totalTokens":10}}}}}},"message_id":{count},"redact_message":null,"created_at":"{at}","updated_at":"{at}"}}"#
            );
            return std::fs::write(folder.join(format!("message_{count}.json")), message).unwrap();
        }
    };
    let whole = std::fs::read_to_string(path).unwrap();
    std::fs::write(path, format!("{whole}{lines}\n")).unwrap();
}

/// The last line of a conversation in a transcript.
fn last_uuid(path: &Path) -> String {
    let text = std::fs::read_to_string(path).unwrap();
    let lines = text.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    let name = |line: Value| {
        let name = line["uuid"].as_str().or_else(|| line["id"].as_str());
        name.map(str::to_owned)
    };
    lines.filter_map(name).next_back().unwrap()
}

/// The one of them that bears the name under which it was written.
fn other(taken: &[ImportedSession]) -> &ImportedSession {
    taken.iter().find(|it| it.id.as_str() == OTHER).unwrap_or_else(|| panic!("{taken:?}"))
}

#[test]
fn what_was_handed_over_and_not_gone_on_with_is_the_same_session() {
    for (format, name) in agents() {
        let (well, id) = cakes();
        let (before, all) = (spent(&well), names(&well));
        let (_folder, path) = written(&well, &id, format, &name);
        for _ in 0..2 {
            let back = taken(&well, &path);
            assert!(back.iter().all(|it| it.became == Became::Unchanged), "{format}: {back:?}");
            assert_eq!(back[0].id, id, "{format}");
            assert_eq!((spent(&well), names(&well)), (before, all.clone()), "{format}");
        }
        // It goes on here, and what was written then is still the front of it.
        well.lock(&id).unwrap().append(Message::user("or Mondays?")).unwrap();
        let back = taken(&well, &path);
        assert!(back.iter().all(|it| it.became == Became::Unchanged), "{format}: {back:?}");
    }
}

#[test]
fn what_was_gone_on_with_elsewhere_counts_from_there_on() {
    for (format, name) in agents() {
        let (well, id) = cakes();
        let (tokens, calls) = spent(&well);
        let (_folder, path) = written(&well, &id, format, &name);
        for n in 1..4 {
            answer(format, &path, n);
            let back = taken(&well, &path);
            let became = if n == 1 { Became::Imported } else { Became::Updated };
            let it = other(&back);
            assert_eq!((it.became, it.continues.as_ref()), (became, Some(&id)), "{format}");
            let n = u64::from(n);
            assert_eq!(spent(&well), (tokens + 10 * n, calls + n), "{format}");
            let again = taken(&well, &path);
            assert!(again.iter().all(|it| it.became == Became::Unchanged), "{format}: {again:?}");
        }
        let it: SessionId = OTHER.parse().unwrap();
        let texts = said(&shown(&well, &it)).join("\n");
        for text in ["and on Sundays?", "answer 1", "answer 3"] {
            assert!(texts.contains(text), "{format}: {text}");
        }
        let head = well.info(&it).unwrap().head;
        assert_eq!(
            head.facts.provenance.unwrap().continues.unwrap().session.as_str(),
            CAKE,
            "{format}"
        );
        // Handed on once more, it goes on from there.
        well.lock(&it).unwrap().append(Message::user("and here again")).unwrap();
        let name = name.replace(OTHER, &OTHER.replace('9', "8"));
        let (_next, path) = written(&well, &it, format, &name);
        let back = taken(&well, &path);
        let unchanged = |it: &ImportedSession| it.became == Became::Unchanged;
        assert!(back[0].id == it && back.iter().all(unchanged), "{format}: {back:?}");
    }
}

#[test]
fn where_the_session_is_not_known_all_of_it_counts() {
    for (format, name) in agents() {
        let (well, id) = cakes();
        let (_folder, path) = written(&well, &id, format, &name);
        let own = well.info(&id).unwrap().head.spent.usage.total();
        // A store that has none, and one that has another of that name.
        let (empty, clash) = (Stepwell::in_memory(), Stepwell::in_memory());
        record(&clash, CAKE, &[]);
        for there in [empty, clash] {
            let back = taken(&there, &path);
            let it = other(&back);
            assert_eq!((it.became, &it.continues), (Became::Imported, &None), "{format}");
            let spent = there.info(&it.id).unwrap().head.spent.usage.total();
            // A folder of Strands does not hold what was rewound.
            let rewound = format.as_str() == "strands-sdk";
            assert!(spent == own || rewound && spent > 0, "{format}: {spent} of {own}");
        }
    }
}

#[test]
fn a_flow_that_was_handed_over_is_the_same_until_a_node_is_done() {
    let format: Format = "strands-cli".parse().unwrap();
    for it in found(&fixtures(format).unwrap()) {
        let well = Stepwell::in_memory();
        let report = take_in(&well, Mode::Write, format, &it.path);
        let id = report.sessions[0].id.clone();
        let (_folder, path) = written(&well, &id, format, &format!("session_{OTHER}"));
        let all = names(&well);
        let back = taken(&well, &path);
        assert_eq!(
            (&back[0].id, back[0].became),
            (&id, Became::Unchanged),
            "{}",
            it.path.display()
        );
        assert_eq!(names(&well), all);
    }
    let well = Stepwell::in_memory();
    let (id, _) = taken_one(&well, &fixture("chain-finished"));
    let (_folder, path) = written(&well, &id, format, &format!("session_{OTHER}"));
    let state = path.join("pattern_state.json");
    let mut value: Value = serde_json::from_str(&std::fs::read_to_string(&state).unwrap()).unwrap();
    let done = value["step_history"].as_array_mut().unwrap();
    let mut next = done.last().unwrap().clone();
    next["index"] = done.len().into();
    done.push(next);
    value["current_step"] = done.len().into();
    std::fs::write(&state, value.to_string()).unwrap();
    let back = taken(&well, &path);
    assert_eq!((back[0].became, back[0].continues.as_ref()), (Became::Imported, Some(&id)));
    assert_ne!(back[0].id, id);
    assert_eq!(keys(&well, &back[0].id).len(), keys(&well, &id).len() + 1);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, ..ProptestConfig::default() })]

    #[test]
    fn whatever_was_said_is_the_same_session_when_it_comes_back(turns in turns(), cut in 0..3_u64) {
        for (format, name) in agents() {
            let well = Stepwell::in_memory();
            let id = record(&well, "20260223-143022-a1b2c3", &turns);
            let session = well.lock(&id).unwrap();
            match cut {
                1 => {
                    let (to, scope) = (Seq::new(2), Scope::Chat);
                    let restored = Restored::default();
                    session.append(Rewound { to, scope, restored }).unwrap();
                    session.append(Message::user("again")).unwrap();
                }
                2 => {
                    let mut compacted = Compacted::new(Lane::main(), Seq::FIRST, Seq::new(2));
                    compacted.summary = Some("so far".to_owned());
                    session.append(compacted).unwrap();
                    session.append(Message::user("go on")).unwrap();
                }
                _ => {}
            }
            drop(session);
            let (_folder, path) = written(&well, &id, format, &name);
            let back = taken(&well, &path);
            prop_assert!(back.len() == 1 && back[0].id == id, "{format}: {back:?}");
            prop_assert_eq!(back[0].became, Became::Unchanged);
        }
    }
}
