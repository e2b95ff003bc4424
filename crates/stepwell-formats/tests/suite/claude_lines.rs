//! Claude Code's transcripts, line by line as it writes them: what an import makes of each.

use stepwell::model::{Money, Role, Scope};
use stepwell::{Event, Lane, Message, SessionId, Status, Stepwell, View};
use stepwell_formats::{Became, Format};

use crate::mirror::{became, said, shown, taken, written};
use crate::support::log;
use crate::transcript::{ID, Transcript};

fn claude() -> Format {
    "claude".parse().unwrap()
}

fn imported(file: &Transcript) -> (Stepwell, SessionId) {
    let well = Stepwell::in_memory();
    let id = taken(&well, &file.write()).remove(0).id;
    (well, id)
}

fn texts(file: &Transcript) -> Vec<String> {
    let (well, id) = imported(file);
    shown(&well, &id).iter().map(Message::text).collect()
}

/// A line that Claude Code writes behind an answer.
fn attachment(file: &mut Transcript, uuid: &str, parent: &str) {
    file.line("attachment", uuid, parent, r#""attachment":{"type":"prompt_snapshot"}"#);
}

/// Where Claude Code says to go on from.
fn checkpoint(file: &mut Transcript, leaf: &str, more: &str) {
    let leaf = if leaf.is_empty() { "null".to_owned() } else { format!("\"{leaf}\"") };
    file.lines
        .push(format!(r#"{{"type":"last-prompt","leafUuid":{leaf}{more},"sessionId":"{ID}"}}"#));
}

/// Three questions and their answers, with a line behind the first answer.
fn three() -> Transcript {
    let mut file = Transcript::new();
    file.user("u1", "", "one").text("a1", "u1", "m1", "first");
    attachment(&mut file, "b1", "a1");
    file.user("u2", "b1", "two").text("a2", "u2", "m2", "second");
    file.user("u3", "a2", "three").text("a3", "u3", "m3", "third");
    file
}

#[test]
fn an_answer_stays_if_a_line_beside_the_conversation_follows_it() {
    assert_eq!(texts(&three()), ["one", "first", "two", "second", "three", "third"]);
}

#[test]
fn lines_between_the_parts_of_an_answer_belong_to_it() {
    let mut file = Transcript::new();
    file.user("u1", "", "one").text("a1", "u1", "m1", "I look.");
    attachment(&mut file, "b1", "a1");
    file.call("a2", "b1", "m1", "t1").result("r1", "a2", "t1", "nine");
    attachment(&mut file, "b2", "r1");
    file.text("a3", "b2", "m2", "It is nine.");
    attachment(&mut file, "b3", "a3");
    attachment(&mut file, "b4", "b3");
    file.user("u2", "b4", "two");
    let (well, id) = imported(&file);
    assert_eq!(shown(&well, &id).len(), 5);
}

#[test]
fn a_prompt_that_follows_what_came_before_the_first_one_begins_anew() {
    let mut file = Transcript::new();
    attachment(&mut file, "b0", "");
    file.user("u1", "b0", "one").text("a1", "u1", "m1", "first").user("u2", "b0", "two");
    assert_eq!(texts(&file), ["two"]);
}

#[test]
fn a_rewind_after_which_nothing_was_said_is_a_rewind_here() {
    let mut file = three();
    checkpoint(&mut file, "a3", "");
    checkpoint(&mut file, "b1", r#","explicit":true,"rewound":true,"cutUuid":"u2""#);
    checkpoint(&mut file, "b1", "");
    assert_eq!(texts(&file), ["one", "first"]);
    let (well, id) = imported(&file);
    assert_eq!(well.info(&id).unwrap().head.status, Status::Success);
    // The session goes on from there.
    file.user("u4", "b1", "four");
    assert_eq!(became(&taken(&well, &file.write()), Became::Updated), 1);
    let said: Vec<String> = shown(&well, &id).iter().map(Message::text).collect();
    assert_eq!(said, ["one", "first", "four"]);
}

#[test]
fn a_session_that_was_rewound_to_its_beginning_shows_nothing() {
    let mut file = three();
    checkpoint(&mut file, "", r#","explicit":true,"rewound":true,"cutUuid":"u1""#);
    assert!(texts(&file).is_empty());
}

#[test]
fn a_session_goes_on_where_its_checkpoint_says_unless_later_lines_follow_it() {
    // A branch that does not follow the checkpoint is not the live one.
    let mut file = three();
    checkpoint(&mut file, "a3", "");
    file.user("u4", "a2", "another");
    assert_eq!(texts(&file), ["one", "first", "two", "second", "three", "third"]);
    // Lines may be written behind a checkpoint that names them, or that they follow.
    let mut file = three();
    checkpoint(&mut file, "a4", "");
    file.user("u4", "a3", "four").text("a4", "u4", "m4", "fourth").user("u5", "a4", "five");
    assert_eq!(texts(&file).last().unwrap(), "five");
    // A line beside the conversation says where it goes on, as any line does.
    let mut file = three();
    let line = r#""subtype":"informational","content":"here","level":"info""#;
    file.line("system", "s1", "a2", line);
    assert_eq!(texts(&file), ["one", "first", "two", "second"]);
}

#[test]
fn a_fork_of_a_compacted_session_shows_its_summary() {
    let mut file = Transcript::new();
    let boundary = r#""subtype":"compact_boundary","logicalParentUuid":"elsewhere","compactMetadata":{"trigger":"manual","preTokens":90,"preservedMessages":{"anchorUuid":"s1","uuids":["a0"]}}"#;
    file.line("system", "c1", "", boundary).user("s1", "c1", "what came before");
    file.lines[1] =
        file.lines[1].replace("\"type\":\"user\"", r#""type":"user","isCompactSummary":true"#);
    file.text("a0", "s1", "m0", "kept").user("u1", "a0", "one").text("a1", "u1", "m1", "first");
    assert_eq!(texts(&file), ["what came before", "kept", "one", "first"]);
    let (well, id) = imported(&file);
    assert_eq!(well.info(&id).unwrap().head.task, "one");
}

#[test]
fn a_fork_does_not_count_the_calls_that_its_parent_made() {
    let mut file = three();
    for line in file.lines.iter_mut().take(4) {
        let own = r#""requestId":"req_m1""#;
        *line = line.replace(own, &format!(r#"{own},"requestSessionId":"the-parent""#));
    }
    file.lines[3] = file.lines[3]
        .replace("\"type\":\"user\"", r#""type":"user","forkedFrom":{"sessionId":"the-parent"}"#);
    let (well, id) = imported(&file);
    let spent = well.info(&id).unwrap().head.spent;
    assert_eq!((spent.calls, spent.usage.output), (2, 10));
}

#[test]
fn a_session_cost_what_its_transcript_says() {
    let mut file = three();
    for cost in ["0.25", "0.75"] {
        file.lines.push(format!(r#"{{"type":"cost-state","sessionId":"{ID}","totalCostUSD":{cost},"modelUsage":{{}},"hasUnknownModelCost":false}}"#));
        file.user("u4", "a3", "four").text("a4", "u4", "m4", "fourth");
    }
    let (well, id) = imported(&file);
    let spent = well.info(&id).unwrap().head.spent;
    assert_eq!(spent.cost, Money::from_f64(0.75).unwrap());
    assert_eq!(spent.unpriced, 0);
}

#[test]
fn an_untouched_import_is_written_back_byte_for_byte() {
    let mut file = three();
    file.call("a4", "a3", "m4", "t1").line(
        "user",
        "r1",
        "a4",
        r#""message":{"role":"user","content":[{"type":"tool_result","content":"Exit code 3","is_error":true,"tool_use_id":"t1"}]},"toolUseResult":"Error""#,
    );
    file.said("a5", "r1", "m5", r#"{"text":"the other way round","type":"text"}"#);
    file.said("a6", "a5", "m6", r#"{"signature":"s","type":"thinking","thinking":"hm"}"#);
    file.said("a7", "a6", "m7", r#"{"type":"text","text":"\u00e9 \/ \u001F"}"#);
    file.said("a8", "a7", "m8", r#"{ "type": "text", "text": "spaced" }"#);
    file.said("a9", "a8", "m9", r#"{"name":"Read","input":{"a": 1},"type":"tool_use","id":"t2"}"#);
    file.user("u9", "a9", "nine").text("a10", "u9", "m10", "tenth");
    attachment(&mut file, "b9", "a10");
    checkpoint(&mut file, "b9", "");
    let path = file.write();
    let (well, id) = imported(&file);
    let (_folder, back) = written(&well, &id, claude(), &format!("{ID}.jsonl"));
    let (one, other) = (std::fs::read_to_string(path), std::fs::read_to_string(back));
    for (one, other) in one.unwrap().lines().zip(other.unwrap().lines()) {
        assert_eq!(one, other);
    }
}

#[test]
fn what_the_program_put_into_the_users_mouth_is_told_from_what_the_user_said() {
    let mut file = Transcript::new();
    let injected = [
        ("<local-command-caveat>not for you</local-command-caveat>", r#","isMeta":true"#),
        ("<command-name>/model</command-name>", ""),
        ("<local-command-stdout>Set model</local-command-stdout>", ""),
        ("<system-reminder>It is Monday.</system-reminder>", ""),
        ("[Request interrupted by user]", ""),
        (
            "<task-notification>done</task-notification>",
            r#","origin":{"kind":"task-notification"}"#,
        ),
        ("Base directory for this skill", r#","isMeta":true"#),
    ];
    let mut last = String::new();
    for (n, (text, more)) in injected.iter().enumerate() {
        let uuid = format!("i{n}");
        let message = format!(r#""message":{{"role":"user","content":"{text}"}}{more}"#);
        file.line("user", &uuid, &last, &message);
        last = uuid;
    }
    file.user("u1", &last, "my own words").text("a1", "u1", "m1", "an answer");
    let (well, id) = imported(&file);
    assert_eq!(well.info(&id).unwrap().head.task, "my own words");
    let view = View::of(&Lane::main(), log(&well, &id));
    let users: Vec<(bool, String)> = view
        .messages
        .iter()
        .filter(|it| it.message.role == Role::User)
        .map(|it| (it.message.is_from_user(), it.message.text()))
        .collect();
    let context = injected.iter().map(|(text, _)| (false, (*text).to_owned()));
    let expected: Vec<(bool, String)> =
        context.chain([(true, "my own words".to_owned())]).collect();
    assert_eq!(users, expected);
}

#[test]
fn a_command_of_the_users_leaves_a_session_as_it_ended() {
    let mut file = three();
    file.user("c1", "a3", "<command-name>/cost</command-name>");
    file.user("c2", "c1", "<local-command-stdout>nothing</local-command-stdout>");
    let (well, id) = imported(&file);
    assert_eq!(well.info(&id).unwrap().head.status, Status::Success);
}

#[test]
fn what_was_rewound_here_is_kept_in_an_export_and_out_of_its_view() {
    let (well, id) = imported(&three());
    let is_first = |event: &Event| matches!(event, Event::Message(it) if it.text() == "first");
    let first = log(&well, &id).into_iter().find(|it| is_first(&it.event)).unwrap().seq;
    well.resume(&id).unwrap().rewind(first, Scope::Chat).unwrap();
    let (_folder, path) = written(&well, &id, claude(), &format!("{ID}.jsonl"));
    assert!(std::fs::read_to_string(&path).unwrap().contains("third"));
    let there = Stepwell::in_memory();
    let back = taken(&there, &path).remove(0).id;
    assert_eq!(said(&shown(&there, &back)), said(&shown(&well, &id)));
}
