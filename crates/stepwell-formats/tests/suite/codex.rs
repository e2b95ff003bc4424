//! Codex's rollouts, and what bites in them.

use std::io::Write;
use std::path::PathBuf;

use stepwell::model::Usage;
use stepwell::{Message, SessionId, Status, Stepwell, StopReason};
use stepwell_formats::{Became, Format, Mode, take_in};

use crate::mirror::{assert_returns, became, said, shown, taken, written};
use crate::seeds::fixtures;

pub(crate) const OVEN: &str = "0196a3f0-4b1d-7a52-8c3e-6d0f9e2b7a11";
const PAGED: &str = "0196a91c-77e2-7d04-9f10-2b8c5a4e3d22";
const GONE_ON: &str = "0196a91c-77e2-7d04-9f10-2b8c5a4e3d22_0196a953-08c4-7e6b-a4d1-93f7b1c60e33";

fn codex() -> Format {
    "codex".parse().unwrap()
}

fn rollout(day: &str, name: &str) -> PathBuf {
    fixtures(codex()).unwrap().join("sessions/2026/05").join(day).join(name)
}

fn id(name: &str) -> SessionId {
    name.parse().unwrap()
}

#[test]
fn the_fixtures_come_in_once() {
    let well = Stepwell::in_memory();
    let folder = fixtures(codex()).unwrap();
    let first = taken(&well, &folder);
    assert_eq!(became(&first, Became::Imported), 3, "{first:?}");
    let again = taken(&well, &folder);
    assert_eq!(became(&again, Became::Unchanged), 3, "{again:?}");
    let head = well.info(&id(OVEN)).unwrap().head;
    assert_eq!(
        (head.task.as_str(), head.model.as_str()),
        ("Round the oven timer up", "gpt-5.1-codex")
    );
    assert_eq!(
        (head.status, head.stop_reason),
        (Status::Interrupted, Some(StopReason::UserInterrupt))
    );
    assert_eq!(head.spent.usage.output, 275);
    assert_eq!(head.spent.calls, 1);
}

#[test]
fn a_rolled_back_turn_is_out_of_the_view_and_stays_in_the_log() {
    let well = Stepwell::in_memory();
    taken(&well, &fixtures(codex()).unwrap());
    let said = said(&shown(&well, &id(OVEN)));
    assert!(!said.iter().any(|it| it.contains("Round the oven timer up")), "{said:#?}");
    assert!(said[0].contains("So far: the oven timer"), "{said:#?}");
    assert!(said.last().unwrap().contains("interrupted, outcome unknown"), "{said:#?}");
}

#[test]
fn a_rollout_that_goes_on_from_another_one_has_its_front() {
    let well = Stepwell::in_memory();
    taken(&well, &fixtures(codex()).unwrap());
    let paged = said(&shown(&well, &id(PAGED)));
    assert!(paged.last().unwrap().contains("Rye, spelt and brioche."), "{paged:#?}");
    // It shares what comes before the third line, which is no message yet.
    assert!(shown(&well, &id(GONE_ON)).is_empty());
    assert_eq!(well.info(&id(GONE_ON)).unwrap().head.model, "");
}

#[test]
fn the_fixtures_return_with_all_that_is_not_understood() {
    let one = format!("rollout-2026-05-04T07-15-00-{OVEN}.jsonl");
    assert_returns(codex(), &rollout("04", &one), &one);
    let other = format!("rollout-2026-05-05T05-40-00-{PAGED}.jsonl");
    assert_returns(codex(), &rollout("05", &other), &other);
}

/// A folder with rollouts of one day.
struct Rollouts(tempfile::TempDir);

impl Rollouts {
    fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    fn write(&self, name: &str, lines: &[String]) -> PathBuf {
        let folder = self.0.path().join("sessions/2026/05/04");
        std::fs::create_dir_all(&folder).unwrap();
        let path = folder.join(format!("rollout-2026-05-04T{name}.jsonl"));
        std::fs::write(&path, lines.join("\n") + "\n").unwrap();
        path
    }
}

fn thread(n: u32) -> String {
    format!("0196a3f0-0000-7a52-8c3e-{n:012}")
}

fn line(ordinal: usize, kind: &str, payload: &str) -> String {
    format!(
        r#"{{"timestamp":"2026-05-04T10:00:{:02}.000Z","ordinal":{ordinal},"type":"{kind}","payload":{payload}}}"#,
        ordinal % 60
    )
}

fn meta(ordinal: usize, thread: &str, more: &str) -> String {
    let payload = format!(
        r#"{{"id":"{thread}","timestamp":"2026-05-04T10:00:00.000Z","cwd":"/w","cli_version":"0.141.2"{more}}}"#
    );
    line(ordinal, "session_meta", &payload)
}

fn base(thread: &str, end: usize) -> String {
    format!(
        r#","history_base":{{"thread_id":"{thread}","end_ordinal_exclusive":{end},"end_byte_offset":0}}"#
    )
}

fn asked(ordinal: usize, text: &str) -> String {
    let payload = format!(
        r#"{{"type":"message","role":"user","content":[{{"type":"input_text","text":"{text}"}}]}}"#
    );
    line(ordinal, "response_item", &payload)
}

fn answered(ordinal: usize, text: &str) -> String {
    let payload = format!(
        r#"{{"type":"message","role":"assistant","content":[{{"type":"output_text","text":"{text}"}}]}}"#
    );
    line(ordinal, "response_item", &payload)
}

fn tokens(ordinal: usize, last: u64, total: u64) -> String {
    let usage = |n: u64| format!(r#"{{"input_tokens":{n},"output_tokens":1,"total_tokens":{n}}}"#);
    let (last, total) = (usage(last), usage(total));
    line(
        ordinal,
        "event_msg",
        &format!(
            r#"{{"type":"token_count","info":{{"total_token_usage":{total},"last_token_usage":{last}}}}}"#
        ),
    )
}

#[test]
fn forks_of_forks_have_all_that_they_share() {
    let (well, day) = (Stepwell::in_memory(), Rollouts::new());
    let (one, two, three) = (thread(1), thread(2), thread(3));
    day.write(
        &format!("10-00-00-{one}"),
        &[meta(0, &one, ""), asked(1, "first"), answered(2, "one"), asked(3, "not shared")],
    );
    day.write(
        &format!("11-00-00-{two}"),
        &[
            meta(3, &two, &base(&one, 3)),
            asked(4, "second"),
            answered(5, "two"),
            tokens(6, 10, 10),
            asked(7, "not shared either"),
        ],
    );
    day.write(
        &format!("12-00-00-{three}"),
        &[meta(7, &three, &base(&two, 7)), asked(8, "third"), tokens(9, 7, 17)],
    );
    taken(&well, day.0.path());
    let said = said(&shown(&well, &id(&three)));
    let texts = ["first", "one", "second", "two", "third"];
    assert_eq!(said.len(), 5, "{said:#?}");
    assert!(
        said.iter().zip(texts).all(|(said, text)| said.contains(&format!("text {text}\""))),
        "{said:#?}"
    );
    // What the others spent is counted with them.
    assert_eq!(well.info(&id(&three)).unwrap().head.spent.usage.input, 7);
    assert_eq!(well.info(&id(&two)).unwrap().head.spent.usage.input, 10);
}

#[test]
fn a_fork_of_what_is_not_here_says_so_and_forks_in_a_circle_end() {
    let (well, day) = (Stepwell::in_memory(), Rollouts::new());
    let (one, two) = (thread(1), thread(2));
    let path =
        day.write(&format!("10-00-00-{one}"), &[meta(3, &one, &base(&two, 3)), asked(4, "alone")]);
    let report = take_in(&well, Mode::Write, codex(), &path);
    assert!(report.fault.is_none() && report.warnings[0].what.contains(&two), "{report:?}");
    assert_eq!(shown(&well, &id(&one)).len(), 1);
    // Each claims to go on from the other; only an older one can be gone on from.
    day.write(&format!("11-00-00-{two}"), &[meta(3, &two, &base(&one, 9)), asked(9, "round")]);
    taken(&well, day.0.path());
    assert_eq!(shown(&well, &id(&two)).len(), 2);
}

#[test]
fn a_turn_that_did_not_end_comes_in_as_interrupted() {
    let (well, day) = (Stepwell::in_memory(), Rollouts::new());
    let began = |n| line(n, "event_msg", r#"{"type":"task_started","turn_id":"t"}"#);
    let ended = |n| line(n, "event_msg", r#"{"type":"task_complete","turn_id":"t"}"#);
    let error = |n| line(n, "event_msg", r#"{"type":"error","message":"stream disconnected"}"#);
    for (n, more, status) in [
        (1, vec![began(1), asked(2, "a"), answered(3, "I begin."), ended(4)], Status::Success),
        (2, vec![began(1), asked(2, "a"), answered(3, "I begin.")], Status::Interrupted),
        (3, vec![began(1), asked(2, "a"), answered(3, "So."), error(4)], Status::Interrupted),
        (4, vec![began(1), ended(2), began(3), answered(4, "b")], Status::Interrupted),
        // An older Codex says nothing of turns.
        (5, vec![asked(1, "a"), answered(2, "b")], Status::Success),
    ] {
        let one = thread(n);
        let lines = [vec![meta(0, &one, "")], more].concat();
        taken(&well, &day.write(&format!("10-00-00-{one}"), &lines));
        assert_eq!(well.info(&id(&one)).unwrap().head.status, status, "{n}");
    }
}

#[test]
fn tokens_that_are_told_again_are_counted_once() {
    let (well, day) = (Stepwell::in_memory(), Rollouts::new());
    let one = thread(1);
    let lines = [
        meta(0, &one, ""),
        asked(1, "a"),
        answered(2, "b"),
        tokens(3, 10, 10),
        tokens(4, 10, 10),
        asked(5, "c"),
        answered(6, "d"),
        tokens(7, 5, 15),
        tokens(8, 5, 15),
    ];
    taken(&well, &day.write(&format!("10-00-00-{one}"), &lines));
    let spent = well.info(&id(&one)).unwrap().head.spent;
    assert_eq!((spent.calls, spent.usage.input), (2, 15));
}

#[test]
fn tokens_that_are_told_after_results_belong_to_the_answer_that_called() {
    let (well, day) = (Stepwell::in_memory(), Rollouts::new());
    let one = thread(1);
    let call = |ordinal, id: &str| {
        let payload = format!(
            r#"{{"type":"function_call","name":"shell","arguments":"{{}}","call_id":"{id}"}}"#
        );
        line(ordinal, "response_item", &payload)
    };
    let output = |ordinal, id: &str| {
        let payload = format!(r#"{{"type":"function_call_output","call_id":"{id}","output":"x"}}"#);
        line(ordinal, "response_item", &payload)
    };
    let usage_record = line(5, "token_usage_record", r#"{"usage":{"input_tokens":10}}"#);
    let lines = [
        meta(0, &one, ""),
        asked(1, "a"),
        answered(2, "I look"),
        call(3, "c1"),
        call(4, "c2"),
        usage_record,
        output(6, "c1"),
        line(7, "event_msg", r#"{"type":"item_completed"}"#),
        output(8, "c2"),
        tokens(9, 10, 10),
        answered(10, "done"),
        tokens(11, 20, 30),
    ];
    let path = day.write(&format!("10-00-00-{one}"), &lines);
    taken(&well, &path);
    let head = well.info(&id(&one)).unwrap().head;
    assert_eq!((head.spent.calls, head.spent.usage.input, head.messages), (2, 30, 5));
    assert_eq!((head.steps, head.status), (2, Status::Success));
    let said = said(&shown(&well, &id(&one)));
    assert_eq!(said.len(), 4, "{said:#?}");
    // Nothing of it goes on to another agent as a message without a word.
    let (_folder, there) = written(&well, &id(&one), "claude".parse().unwrap(), "x.jsonl");
    let text = std::fs::read_to_string(there).unwrap();
    assert!(!text.contains(r#""content":[]"#), "{text}");
    assert_returns(codex(), &path, path.file_name().unwrap().to_str().unwrap());
}

#[test]
fn turns_are_rolled_back_as_often_as_it_says() {
    let (well, day) = (Stepwell::in_memory(), Rollouts::new());
    let one = thread(1);
    let back = |ordinal, turns| {
        line(
            ordinal,
            "event_msg",
            &format!(r#"{{"type":"thread_rolled_back","num_turns":{turns}}}"#),
        )
    };
    let lines = [
        meta(0, &one, ""),
        asked(1, "<environment_context>"),
        asked(2, "one"),
        answered(3, "1"),
        asked(4, "two"),
        answered(5, "2"),
        asked(6, "three"),
        answered(7, "3"),
        back(8, 2),
        asked(9, "four"),
        answered(10, "4"),
        back(11, 1),
        asked(12, "five"),
    ];
    let path = day.write(&format!("10-00-00-{one}"), &lines);
    taken(&well, &path);
    let said = said(&shown(&well, &id(&one))).join("\n");
    for (text, there) in [
        ("environment", true),
        ("one", true),
        ("two", false),
        ("three", false),
        ("four", false),
        ("five", true),
    ] {
        assert_eq!(said.contains(text), there, "{text} in {said}");
    }
    assert_returns(codex(), &path, path.file_name().unwrap().to_str().unwrap());
}

#[test]
fn a_compressed_rollout_is_read_and_a_bomb_is_not() {
    let (well, day) = (Stepwell::in_memory(), Rollouts::new());
    let one = thread(1);
    let text = [meta(0, &one, ""), asked(1, "small"), answered(2, "ok")].join("\n");
    let path = day.0.path().join(format!("rollout-2026-05-04T10-00-00-{one}.jsonl.zst"));
    std::fs::write(&path, zstd::encode_all(text.as_bytes(), 3).unwrap()).unwrap();
    taken(&well, &path);
    assert_eq!(shown(&well, &id(&one)).len(), 2);
    assert_eq!(became(&taken(&well, &path), Became::Unchanged), 1);
    // A gigabyte of empty lines in a hundred kilobytes.
    let two = thread(2);
    let mut bomb = zstd::Encoder::new(Vec::new(), 3).unwrap();
    bomb.write_all(meta(0, &two, "").as_bytes()).unwrap();
    let lines = vec![b'\n'; 1 << 20];
    for _ in 0..1024 {
        bomb.write_all(&lines).unwrap();
    }
    let path = day.0.path().join(format!("rollout-2026-05-04T11-00-00-{two}.jsonl.zst"));
    std::fs::write(&path, bomb.finish().unwrap()).unwrap();
    let fault = take_in(&well, Mode::Write, codex(), &path).fault.unwrap();
    assert!(fault.to_string().contains("expands to more than"), "{fault}");
}

#[test]
fn an_answer_of_any_length_is_told_in_pieces_that_fit() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join(format!("rollout-2026-05-06T07-00-00-{OVEN}.jsonl"));
    let line = |kind: &str, payload: &str| {
        format!(r#"{{"timestamp":"2026-05-06T07:00:00Z","type":"{kind}","payload":{payload}}}"#)
    };
    let item = |role: &str, kind: &str, text: &str| {
        let content = format!(r#"[{{"type":"{kind}","text":"{text}"}}]"#);
        let payload = format!(r#"{{"type":"message","role":"{role}","content":{content}}}"#);
        line("response_item", &payload)
    };
    let mut lines = vec![line("session_meta", &format!(r#"{{"id":"{OVEN}","cwd":"/w"}}"#))];
    lines.push(item("user", "input_text", "all of it"));
    let text = "x".repeat(50_000);
    for n in 0..600 {
        lines.push(match n % 2 {
            0 => item("assistant", "output_text", &text),
            _ => line("event_msg", &format!(r#"{{"type":"agent_message","message":"{text}"}}"#)),
        });
    }
    std::fs::write(&path, lines.join("\n") + "\n").unwrap();
    let well = Stepwell::in_memory();
    taken(&well, &path);
    let head = well.info(&id(OVEN)).unwrap().head;
    // 30 MB, more than one event holds.
    assert!((3..9).contains(&head.messages), "{}", head.messages);
    assert_eq!(became(&taken(&well, &path), Became::Unchanged), 1);
}

#[test]
fn a_rollout_that_goes_on_from_another_one_is_no_thread_to_a_command() {
    let writer = codex().writer().unwrap();
    assert!(writer.is_name(PAGED) && !writer.is_name(GONE_ON));
    let well = Stepwell::in_memory();
    taken(&well, &fixtures(codex()).unwrap());
    // Under its own name it says its thread; under another one, that one.
    let thread = |name: &str| {
        let (_folder, path) = written(&well, &id(GONE_ON), codex(), name);
        let text = std::fs::read_to_string(path).unwrap();
        let line: serde_json::Value = serde_json::from_str(text.lines().next().unwrap()).unwrap();
        assert_eq!(line["payload"]["id"], line["payload"]["session_id"]);
        line["payload"]["id"].as_str().unwrap().to_owned()
    };
    assert_eq!(thread(&format!("rollout-2026-05-05T06-40-00-{GONE_ON}.jsonl")), PAGED);
    assert_eq!(thread(&format!("rollout-2026-05-05T06-40-00-{OVEN}.jsonl")), OVEN);
}

#[test]
fn lines_that_are_made_here_have_their_fields_in_codexs_order() {
    let well = Stepwell::in_memory();
    let session = well.create(well.draft("round it up")).unwrap();
    session.append(Message::user("round it up")).unwrap();
    let usage = Usage { input: 9, output: 2, ..Usage::default() };
    let call = Message::assistant("I look").calling("c1", "shell", "{}").spending(usage, None);
    session.append(call).unwrap();
    session.append(Message::tool_result("c1", "ok")).unwrap();
    let name = format!("rollout-2026-05-05T06-40-00-{OVEN}.jsonl");
    let (_folder, path) = written(&well, session.id(), codex(), &name);
    let text = std::fs::read_to_string(path).unwrap();
    let shapes = [
        format!(r#","type":"session_meta","payload":{{"id":"{OVEN}","timestamp":"#),
        r#","type":"response_item","payload":{"type":"message","role":"user","content":[{"type":"input_text","text":"round it up"}]}}"#.to_owned(),
        r#","type":"event_msg","payload":{"type":"user_message","message":"round it up","images":[]}}"#.to_owned(),
        r#","type":"response_item","payload":{"type":"function_call","name":"shell","arguments":"{}","call_id":"c1"}}"#.to_owned(),
        r#","payload":{"type":"token_count","info":{"total_token_usage":{"input_tokens":9,"cached_input_tokens":0,"#.to_owned(),
        r#","type":"response_item","payload":{"type":"function_call_output","call_id":"c1","output":"ok"}}"#.to_owned(),
    ];
    for shape in shapes {
        assert!(text.contains(&shape), "{shape} is not in {text}");
    }
    assert!(text.lines().all(|line| line.starts_with(r#"{"timestamp":""#)), "{text}");
}
