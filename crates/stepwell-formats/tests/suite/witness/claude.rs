//! The real Claude Code, in an older version and in a recent one.

use std::path::{Path, PathBuf};

use stepwell::log::INTERRUPTED;
use stepwell::model::Scope;
use stepwell::{Event, Session, Stepwell};
use stepwell_formats::{Format, NOT_BEGUN};

use super::claude_runs::{self, Driven, command, is_added, programs};
use super::next_request::assert_sent_next;
use super::sessions::{
    begin, compacted, cut_off, pictured, rewound, rewound_and_gone_on, rewound_before_a_compaction,
    rewound_to_a_call, rewound_twice, view, waits,
};
use super::test_env::{ANSWER, NAME, TestEnv, assert_in_order};
use crate::mirror::{assert_returns, taken, written};
use crate::support::log;

fn claude_format() -> Format {
    "claude".parse().unwrap()
}

/// Has Claude Code go on with the session of that name.
fn resume(env: &TestEnv, program: &Path, name: &str) {
    let said = env.run(command(env, program, &["-p", "--resume", name, "Go on."]));
    assert!(said.contains(ANSWER), "{said}");
}

/// What the request that goes on shows the model.
fn sent(env: &TestEnv) -> Vec<String> {
    claude_runs::sent(env, "Go on.")
}

/// What each version shows its model when it goes on with a session, and what it should.
fn gone_on_with(fill: fn(&Session)) -> Vec<(Vec<String>, Vec<String>)> {
    let mut all = Vec::new();
    for program in programs() {
        let (env, well) = (TestEnv::new(), Stepwell::in_memory());
        let session = begin(&well, "openai");
        fill(&session);
        let id = session.id().clone();
        drop(session);
        let handoff = env.hand_over(&well, &id, claude_format());
        assert_eq!(handoff.command, ["claude", "--resume", NAME]);
        resume(&env, &program, NAME);
        let mut expected = view(&well, &id);
        expected.push("user: Go on.".to_owned());
        all.push((expected, sent(&env)));
    }
    all
}

#[test]
fn claude_goes_on_with_a_session_of_another_provider() {
    for (expected, sent) in gone_on_with(|_| {}) {
        assert_in_order(&expected, &sent);
    }
}

#[test]
fn claude_hears_what_became_of_commands_that_were_cut_off() {
    for (mut expected, sent) in gone_on_with(cut_off) {
        for line in &mut expected {
            if *line == format!("result: call_3 {INTERRUPTED}") {
                *line = format!("result: call_3 {NOT_BEGUN}");
            }
        }
        assert!(expected.contains(&format!("result: call_2 {INTERRUPTED}")), "{expected:#?}");
        assert_in_order(&expected, &sent);
    }
}

#[test]
fn claude_hears_that_a_command_that_waited_was_not_run() {
    for (_, sent) in gone_on_with(waits) {
        assert!(sent.contains(&format!("result: call_4 {NOT_BEGUN}")), "{sent:#?}");
    }
}

#[test]
fn claude_goes_on_behind_a_summary() {
    for (expected, sent) in gone_on_with(compacted) {
        assert!(expected[0].contains("The flour was weighed."), "{expected:#?}");
        assert_in_order(&expected, &sent);
        assert!(!sent.iter().any(|line| line.contains("Weigh the flour")), "{sent:#?}");
    }
}

#[test]
fn claude_is_not_shown_what_was_rewound() {
    let shapes: [fn(&Session); 5] = [
        rewound,
        rewound_and_gone_on,
        rewound_to_a_call,
        rewound_before_a_compaction,
        rewound_twice,
    ];
    for fill in shapes {
        for (mut expected, sent) in gone_on_with(fill) {
            expected.pop();
            assert_sent_next(&expected, "Go on.", &sent, is_added);
        }
    }
}

#[test]
fn claude_is_not_shown_what_was_rewound_here_in_a_session_of_its_own() {
    for program in programs() {
        let claude = Driven::new(&program);
        for prompt in ["Say one.", "Say two.", "Say three."] {
            claude.prompt(prompt);
        }
        let (well, id) = claude.imported();
        let events = log(&well, &id).into_iter();
        let is_answer =
            |event: &Event| matches!(event, Event::Message(said) if said.text() == "Answer 1.");
        let answer = events.filter(|it| is_answer(&it.event)).map(|it| it.seq).next().unwrap();
        well.resume(&id).unwrap().rewind(answer, Scope::Chat).unwrap();
        let expected = view(&well, &id);
        assert_eq!(expected, ["user: Say one.", "assistant: Answer 1."]);
        // Under its own name it keeps what was rewound, and says where it goes on.
        let (_folder, kept) = written(&well, &id, claude_format(), &format!("{NAME}.jsonl"));
        let there = Stepwell::in_memory();
        let back = taken(&there, &kept).remove(0).id;
        assert_eq!(view(&there, &back), expected);
        std::fs::copy(&kept, claude.transcript()).unwrap();
        claude.say("Say four.");
        std::fs::remove_file(claude.transcript()).unwrap();
        claude.env.hand_over(&well, &id, claude_format());
        assert_eq!(claude.shown(), expected);
        claude.say("Say five.");
    }
}

#[test]
fn claude_is_shown_pictures() {
    for (expected, sent) in gone_on_with(pictured) {
        assert_in_order(&expected, &sent);
    }
}

/// The name of a line of a transcript.
fn uuid(n: u32) -> String {
    format!("0196a3f0-0000-4a52-8c3e-{n:012}")
}

/// A transcript that was compacted, with what its boundary says of what was preserved. Lines 1
/// to 6 came before, 7 is the boundary and 8 the summary.
fn preserving(env: &TestEnv, metadata: &str, follows: u32) -> PathBuf {
    let line = |n: u32, parent: Option<u32>, kind: &str, rest: &str| {
        let parent = parent.map_or("null".to_owned(), |n| format!("\"{}\"", uuid(n)));
        let uuid = uuid(n);
        format!(
            r#"{{"parentUuid":{parent},"isSidechain":false,"userType":"external","cwd":"/w","sessionId":"{NAME}","version":"2.1.197","gitBranch":"","type":"{kind}","uuid":"{uuid}","timestamp":"2026-05-04T06:00:{n:02}.000Z",{rest}}}"#
        )
    };
    let asked = |n: u32, parent: Option<u32>, text: &str, more: &str| {
        let message = format!(r#""message":{{"role":"user","content":"{text}"}}{more}"#);
        line(n, parent, "user", &message)
    };
    let answered = |n: u32, parent: u32, text: &str| {
        let message = format!(
            r#""message":{{"id":"msg_{n}","type":"message","model":"m","role":"assistant","content":[{{"type":"text","text":"{text}"}}],"stop_reason":"end_turn","usage":{{"input_tokens":10,"output_tokens":5}}}}"#
        );
        line(n, Some(parent), "assistant", &message)
    };
    let boundary = format!(
        r#""subtype":"compact_boundary","content":"Conversation compacted","isMeta":false,"level":"info","logicalParentUuid":"{}","compactMetadata":{{"trigger":"manual","preTokens":100,{metadata}}}"#,
        uuid(6)
    );
    let summary = r#","isCompactSummary":true,"isVisibleInTranscriptOnly":true"#;
    let lines = [
        asked(1, None, "the first question", ""),
        answered(2, 1, "the first answer"),
        asked(3, Some(2), "the second question", ""),
        answered(4, 3, "the second answer"),
        asked(5, Some(4), "the third question", ""),
        answered(6, 5, "the third answer"),
        line(7, None, "system", &boundary),
        asked(8, Some(7), "the summary", summary),
        asked(9, Some(follows), "the question after it", ""),
        answered(10, 9, "the answer after it"),
    ];
    let plain = |c: char| if c.is_ascii_alphanumeric() { c } else { '-' };
    let slug: String = env.workspace().to_str().unwrap().chars().map(plain).collect();
    let folder = env.home().join(".claude/projects").join(slug);
    std::fs::create_dir_all(&folder).unwrap();
    let path = folder.join(format!("{NAME}.jsonl"));
    std::fs::write(&path, lines.join("\n") + "\n").unwrap();
    path
}

#[test]
fn what_a_compaction_preserved_is_shown_here_as_claude_shows_it() {
    let list = |anchor: u32, names: [u32; 2]| {
        let [one, other] = names.map(uuid);
        let anchor = uuid(anchor);
        format!(r#""preservedMessages":{{"anchorUuid":"{anchor}","uuids":["{one}","{other}"]}}"#)
    };
    let segment = |anchor: u32, head: u32, tail: u32| {
        let [anchor, head, tail] = [anchor, head, tail].map(uuid);
        format!(
            r#""preservedSegment":{{"headUuid":"{head}","anchorUuid":"{anchor}","tailUuid":"{tail}"}}"#
        )
    };
    let (third, first) =
        (["the third question", "the third answer"], ["the first question", "the first answer"]);
    let cases = [
        // The end is kept behind the summary; the next line follows either of them.
        (list(8, [5, 6]), 8, third, false),
        (list(8, [5, 6]), 6, third, false),
        (segment(8, 5, 6), 8, third, false),
        (segment(8, 5, 6), 6, third, false),
        // The front is kept before it.
        (list(7, [1, 2]), 8, first, true),
        (segment(7, 1, 2), 8, first, true),
    ];
    for (metadata, follows, kept, before) in cases {
        let env = TestEnv::new();
        let path = preserving(&env, &metadata, follows);
        let well = Stepwell::in_memory();
        let id = taken(&well, &path).remove(0).id;
        assert_returns(claude_format(), &path, &format!("{NAME}.jsonl"));
        let shown = view(&well, &id);
        let [question, answer] = kept;
        let kept = [format!("user: {question}"), format!("assistant: {answer}")];
        let mut expected = vec!["user: the summary".to_owned()];
        expected.splice(if before { 0..0 } else { 1..1 }, kept);
        expected.push("user: the question after it".to_owned());
        expected.push("assistant: the answer after it".to_owned());
        assert_eq!(shown, expected, "{metadata}, then {follows}");
        for program in programs() {
            let env = TestEnv::new();
            preserving(&env, &metadata, follows);
            resume(&env, &program, NAME);
            let sent = sent(&env);
            let ours = |line: &&String| {
                ["user: the ", "assistant: the "].iter().any(|front| line.starts_with(front))
            };
            let (told, expected) = (sent.iter().filter(ours), expected.iter());
            assert!(told.eq(expected), "{metadata}, then {follows}: {sent:#?}");
        }
    }
}
