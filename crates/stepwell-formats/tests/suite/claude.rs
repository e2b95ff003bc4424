//! Claude Code's transcripts, and what bites in them.

use stepwell::model::{Checkpoint, CheckpointReason};
use stepwell::{SessionId, Status, Stepwell};
use stepwell_formats::{Became, Format, Mode, take_in};

use crate::mirror::{assert_returns, became, said, shown, taken, written};
use crate::seeds::{files, fixtures};
use crate::support::{id, log, root, subagent};
use crate::transcript::Transcript;

const ID: &str = "7be2d940-15c3-4f6a-a1d8-90c4e3b7f512";

fn claude() -> Format {
    "claude".parse().unwrap()
}

#[test]
fn the_fixture_comes_in_with_its_subagent_once() {
    let well = Stepwell::in_memory();
    let folder = fixtures(claude()).unwrap();
    let first = taken(&well, &folder);
    assert_eq!(became(&first, Became::Imported), 2, "{first:?}");
    let id: SessionId = ID.parse().unwrap();
    let head = well.info(&id).unwrap().head;
    assert_eq!(head.task, "Let customers pick a pickup time for their cakes");
    assert_eq!(head.workspace, "/home/mila/crumb_shop");
    assert_eq!(head.label.as_deref(), Some("cake-pickup"));
    assert_eq!(head.status, Status::Interrupted);
    // Four calls of the model, whose usage stands on six lines.
    assert_eq!(head.spent.calls, 4);
    assert_eq!(head.spent.usage.output, 58 + 21 + 2 * 33);
    assert_eq!(well.subagents(&id).unwrap().len(), 1);
    let said = said(&shown(&well, &id));
    assert!(said[0].contains("What was done before"), "{said:#?}");
    assert!(!said.iter().any(|it| it.contains("every minute")), "{said:#?}");
    assert!(said.last().unwrap().contains("interrupted, outcome unknown"), "{said:#?}");
    let again = taken(&well, &folder);
    assert_eq!(became(&again, Became::Unchanged), 2, "{again:?}");
    assert_eq!(well.info(&id).unwrap().head.seq, head.seq);
}

#[test]
fn the_fixture_returns_with_all_that_is_not_understood() {
    let main =
        fixtures(claude()).unwrap().join(format!("projects/-home-mila-crumb-shop/{ID}.jsonl"));
    assert_returns(claude(), &main, &format!("{ID}.jsonl"));
}

#[test]
fn a_session_that_has_grown_is_written_with_its_results_in_files() {
    let well = Stepwell::in_memory();
    let folder = tempfile::tempdir().unwrap();
    let from = fixtures(claude()).unwrap().join("projects/-home-mila-crumb-shop");
    for (name, bytes) in files(&from) {
        let to = folder.path().join(name);
        std::fs::create_dir_all(to.parent().unwrap()).unwrap();
        std::fs::write(to, bytes).unwrap();
    }
    taken(&well, folder.path());
    let main = folder.path().join(format!("{ID}.jsonl"));
    let text = std::fs::read_to_string(&main).unwrap();
    let whole: Vec<&str> = text.lines().filter(|line| line.ends_with('}')).collect();
    let line = r#"{"parentUuid":"say-6","cwd":"/w","sessionId":"7be2d940-15c3-4f6a-a1d8-90c4e3b7f512","type":"user","message":{"role":"user","content":"more"},"uuid":"more","timestamp":"2026-05-04T06:53:00.000Z"}"#;
    std::fs::write(&main, format!("{}\n{line}\n", whole.join("\n"))).unwrap();
    assert_eq!(became(&taken(&well, folder.path()), Became::Updated), 1);
    let (_again, path) = written(&well, &id(ID), claude(), &format!("{ID}.jsonl"));
    let results = path.with_extension("").join("tool-results/toolu_ledger.txt");
    let original = from.join(ID).join("tool-results/toolu_ledger.txt");
    assert_eq!(std::fs::read(results).unwrap(), std::fs::read(original).unwrap());
}

#[test]
fn results_of_calls_side_by_side_are_no_rewinds() {
    let (well, mut file) = (Stepwell::in_memory(), Transcript::new());
    file.user("u1", "", "both").call("a1", "u1", "m1", "t1").call("a2", "a1", "m1", "t2");
    // Each result follows the line of its own call.
    file.result("r1", "a1", "t1", "one").result("r2", "a2", "t2", "two");
    file.text("a3", "r2", "m2", "done");
    let id = taken(&well, &file.write()).remove(0).id;
    let said = said(&shown(&well, &id));
    assert_eq!(said.len(), 4, "{said:#?}");
    assert!(said[2].contains("result t1 one") && said[2].contains("result t2 two"), "{said:#?}");
    let head = well.info(&id).unwrap().head;
    assert_eq!((head.steps, head.spent.calls, head.status), (2, 2, Status::Success));
}

#[test]
fn a_result_may_come_between_the_lines_of_one_answer() {
    let (well, mut file) = (Stepwell::in_memory(), Transcript::new());
    file.user("u1", "", "both").call("a1", "u1", "m1", "t1").result("r1", "a1", "t1", "one");
    file.call("a2", "a1", "m1", "t2")
        .result("r2", "a2", "t2", "two")
        .text("a3", "r2", "m2", "done");
    let id = taken(&well, &file.write()).remove(0).id;
    let said = said(&shown(&well, &id));
    let all = said.join("\n");
    assert!(all.contains("result t1 one") && all.contains("result t2 two"), "{said:#?}");
    assert!(!all.contains("interrupted"), "{said:#?}");
    assert_eq!(well.info(&id).unwrap().head.spent.calls, 2);
}

#[test]
fn an_orphan_result_is_kept_and_not_shown() {
    let (well, mut file) = (Stepwell::in_memory(), Transcript::new());
    file.result("r0", "", "gone", "orphan").user("u1", "r0", "hello").text("a1", "u1", "m1", "hi");
    let id = taken(&well, &file.write()).remove(0).id;
    assert_eq!(shown(&well, &id).len(), 2);
    assert_returns(claude(), &file.write(), &format!("{}.jsonl", crate::transcript::ID));
}

#[test]
fn a_line_without_a_parent_begins_anew() {
    let (well, mut file) = (Stepwell::in_memory(), Transcript::new());
    file.user("u1", "", "old").text("a1", "u1", "m1", "older").user("u2", "", "new");
    let id = taken(&well, &file.write()).remove(0).id;
    assert_eq!(said(&shown(&well, &id)), [r#"User: ["text new"]"#]);
}

#[test]
fn subagents_in_the_same_file_speak_in_a_lane_of_their_own() {
    let (well, mut file) = (Stepwell::in_memory(), Transcript::new());
    file.user("u1", "", "main").user("s1", "", "side").text("s2", "s1", "n1", "aside");
    file.text("a1", "u1", "m1", "answer");
    for n in [1, 2] {
        file.lines[n] = file.lines[n].replace("\"isSidechain\":false", "\"isSidechain\":true");
    }
    let id = taken(&well, &file.write()).remove(0).id;
    assert_eq!(shown(&well, &id).len(), 2);
    assert_eq!(well.store().lanes(&id).unwrap().len(), 2);
    assert_returns(claude(), &file.write(), &format!("{}.jsonl", crate::transcript::ID));
}

#[test]
fn a_compaction_without_a_summary_hides_all_the_same() {
    let (well, mut file) = (Stepwell::in_memory(), Transcript::new());
    file.user("u1", "", "old").text("a1", "u1", "m1", "older");
    file.line("system", "s1", "", r#""subtype":"compact_boundary","logicalParentUuid":"a1""#);
    file.user("u2", "s1", "new");
    let id = taken(&well, &file.write()).remove(0).id;
    assert_eq!(said(&shown(&well, &id)), [r#"User: ["text new"]"#]);
}

#[test]
fn what_was_compacted_and_rewound_here_is_shown_the_same_there() {
    use stepwell::model::{Compacted, Scope};
    use stepwell::{Lane, Message, Seq};
    let (here, there) = (Stepwell::in_memory(), Stepwell::in_memory());
    let session = here.create(here.draft("a task")).unwrap();
    let id = session.id().clone();
    for n in 0..4 {
        session.append(Message::user(format!("question {n}"))).unwrap();
        session.append(Message::assistant(format!("answer {n}"))).unwrap();
    }
    // The front is summarised, the rest stays; then the last answer is taken back.
    let mut compacted = Compacted::new(Lane::main(), Seq::new(2), Seq::new(5));
    compacted.summary = Some("what came before".to_owned());
    session.append(compacted).unwrap();
    session.append(Message::user("a mistake")).unwrap();
    session.rewind(Seq::new(10), Scope::Chat).unwrap();
    session.append(Message::user("go on")).unwrap();
    session.checkpoint("here").unwrap();
    drop(session);
    for (format, name) in [
        ("claude", format!("{ID}.jsonl")),
        ("codex", format!("rollout-2026-05-04T07-00-00-{ID}.jsonl")),
    ] {
        let (_folder, path) = written(&here, &id, format.parse().unwrap(), &name);
        let taken = taken(&there, &path);
        assert_eq!(said(&shown(&here, &id)), said(&shown(&there, &taken[0].id)), "{format}");
        assert_returns(format.parse().unwrap(), &path, &name);
    }
}

#[test]
fn a_session_without_a_conversation_comes_back_with_all_that_was_kept() {
    let well = Stepwell::in_memory();
    let mark = |name: &str| Checkpoint {
        name: name.to_owned(),
        reason: CheckpointReason::Manual,
        metadata: std::collections::BTreeMap::new(),
    };
    root(&well, "flow").append(mark("here")).unwrap();
    subagent(&well, "flow", "child").append(mark("there")).unwrap();
    let (folder, path) =
        written(&well, &id("flow"), "claude".parse().unwrap(), &format!("{ID}.jsonl"));
    let there = Stepwell::in_memory();
    let all = taken(&there, folder.path());
    assert_eq!(all.len(), 2, "{all:?} of {}", path.display());
    for (it, (task, name)) in all.iter().zip([("flow", "here"), ("child", "there")]) {
        let head = there.info(&it.id).unwrap().head;
        assert_eq!(head.task, format!("task of {task}"));
        let kept = log(&there, &it.id).into_iter().any(|it| it.event == mark(name).into());
        assert!(kept, "{task}");
    }
    assert_eq!(became(&taken(&there, folder.path()), Became::Unchanged), 2);
}

#[test]
fn an_answer_that_was_cut_off_comes_in_as_interrupted() {
    for (why, status) in [
        ("\"max_tokens\"", Status::Interrupted),
        ("\"model_context_window_exceeded\"", Status::Interrupted),
        ("\"end_turn\"", Status::Success),
        ("null", Status::Success),
    ] {
        let mut file = Transcript::new();
        file.user("u1", "", "one").text("a1", "u1", "m1", "I").text("a2", "a1", "m1", "see");
        let message = r#""role":"assistant","#;
        assert!(file.lines[2].contains(message), "{}", file.lines[2]);
        let stopped = format!("{message}\"stop_reason\":{why},");
        file.lines[2] = file.lines[2].replace(message, &stopped);
        let well = Stepwell::in_memory();
        let taken = taken(&well, &file.write());
        assert_eq!(well.info(&taken[0].id).unwrap().head.status, status, "{why}");
    }
}

#[test]
fn an_answer_spent_what_its_last_lines_say() {
    let mut file = Transcript::new();
    file.user("u1", "", "one").text("a1", "u1", "m1", "I").text("a2", "a1", "m1", "see");
    file.lines[1] = file.lines[1].replace(r#""output_tokens":5"#, r#""output_tokens":1"#);
    file.lines[2] = file.lines[2].replace(r#""output_tokens":5"#, r#""output_tokens":50"#);
    let well = Stepwell::in_memory();
    let taken = taken(&well, &file.write());
    let spent = well.info(&taken[0].id).unwrap().head.spent;
    assert_eq!((spent.calls, spent.usage.input, spent.usage.output), (1, 10, 50));
}

#[test]
fn a_transcript_of_nothing_but_branches_is_read_in_time_and_told_of() {
    let (well, mut file) = (Stepwell::in_memory(), Transcript::new());
    file.user("u0", "", "begin").user("u1", "u0", "go on");
    for n in 2..2_300 {
        file.user(&format!("u{n}"), "u0", "another way");
    }
    let report = take_in(&well, Mode::Write, claude(), &file.write());
    assert!(report.fault.is_none(), "{:?}", report.fault);
    let warnings: Vec<&str> = report.warnings.iter().map(|it| it.what.as_str()).collect();
    assert_eq!(
        warnings,
        ["it goes back to an earlier line more than 2000 times; after that, branches that were \
          left stay in view"]
    );
    let id = &report.sessions[0].id;
    assert_eq!(well.info(id).unwrap().head.messages, 2_300);
}

#[test]
fn an_answer_of_any_length_is_told_in_pieces_that_fit() {
    let (well, mut file) = (Stepwell::in_memory(), Transcript::new());
    file.user("u1", "", "all of it");
    let text = "x".repeat(50_000);
    let name = |n: usize| if n == 0 { "u1".to_owned() } else { format!("a{n}") };
    for n in 0..600 {
        file.text(&name(n + 1), &name(n), "m1", &text);
    }
    let id = taken(&well, &file.write()).remove(0).id;
    let head = well.info(&id).unwrap().head;
    // 30 MB, more than one event holds.
    assert!((3..9).contains(&head.messages), "{}", head.messages);
    assert_eq!((head.spent.calls, head.spent.usage.output), (1, 5));
    assert_eq!(became(&taken(&well, &file.write()), Became::Unchanged), 1);
    assert_returns(claude(), &file.write(), &format!("{}.jsonl", crate::transcript::ID));
}
