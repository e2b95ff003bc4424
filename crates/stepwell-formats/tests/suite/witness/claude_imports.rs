//! What is imported from the real Claude Code is what it sends its model next.

use stepwell::{INTERRUPTED, Status};

use super::claude_runs::{BOTH_TOOLS, Driven, KILLED, NO_FILE, REFUSED, programs, sent};

/// Another name of a session.
const FORK: &str = "0196a3f0-0000-7a52-8c3e-000000000043";

#[test]
fn every_answer_of_a_session_is_imported() {
    for program in programs() {
        let claude = Driven::new(&program);
        for prompt in ["Say one.", "Say two.", "Say three."] {
            claude.say(prompt);
        }
        let shown = claude.shown();
        assert_eq!(shown.len(), 6, "{shown:#?}");
    }
}

#[test]
fn calls_that_succeed_and_calls_that_fail_are_imported() {
    for program in programs() {
        let claude = Driven::new(&program);
        claude.say(&format!("Use {BOTH_TOOLS}."));
        claude.say(&format!("Read {NO_FILE}."));
        claude.say("Say more.");
        let (well, id) = claude.imported();
        assert_eq!(well.info(&id).unwrap().head.status, Status::Success);
    }
}

#[test]
fn a_request_that_the_provider_refused_is_imported() {
    for program in programs().into_iter().take(1) {
        let claude = Driven::new(&program);
        claude.say("Say one.");
        claude.say(&format!("Be {REFUSED}."));
        claude.say("Say two.");
        claude.say("Say three.");
    }
}

#[test]
fn a_run_that_was_killed_is_imported() {
    for program in programs().into_iter().take(1) {
        let claude = Driven::new(&program);
        claude.say("Say one.");
        claude.say(&format!("Be {KILLED}."));
        // Of a call without a result each program says in its own words that it was cut off.
        let shown = claude.shown();
        let cut_off = shown.last().unwrap().strip_suffix(INTERRUPTED).unwrap();
        claude.prompt("Say two.");
        let sent = sent(&claude.env, "Say two.");
        let at = sent.iter().position(|line| line.starts_with(cut_off)).unwrap();
        assert_eq!(sent[at - 1], shown[shown.len() - 2], "{sent:#?}");
        // Once it has said so itself, the import shows its words.
        claude.say("Say three.");
    }
}

#[test]
fn a_compaction_and_a_fork_behind_it_are_imported() {
    for program in programs().into_iter().take(1) {
        let mut claude = Driven::new(&program);
        claude.say("Say one.");
        claude.say(&format!("Use {BOTH_TOOLS}."));
        claude.prompt("/compact");
        claude.say("Say two.");
        claude.fork(FORK, "Say three.");
        claude.say("Say four.");
        assert!(claude.shown()[0].contains("This session is being continued"));
    }
}

#[test]
fn a_fork_is_imported_and_counts_only_what_it_spent_itself() {
    for program in programs().into_iter().take(1) {
        let mut claude = Driven::new(&program);
        claude.say("Say one.");
        claude.say("Say two.");
        let (well, id) = claude.imported();
        let before = well.info(&id).unwrap().head.spent;
        claude.fork(FORK, "Say three.");
        claude.say("Say four.");
        let (well, id) = claude.imported();
        let spent = well.info(&id).unwrap().head.spent;
        assert_eq!((before.calls, spent.calls), (2, 2));
        assert_eq!(spent.usage, before.usage);
        assert!(!before.cost.is_zero());
        assert_eq!(spent.cost, before.cost);
    }
}

#[test]
fn what_claude_rewound_is_not_shown() {
    for program in programs().into_iter().take(1) {
        let claude = Driven::new(&program);
        for prompt in ["Say one.", "Say two.", "Say three."] {
            claude.say(prompt);
        }
        claude.rewind("Say two.");
        assert_eq!(claude.shown(), ["user: Say one.", "assistant: Answer 1."]);
        claude.say("Say four.");
        claude.rewind("Say one.");
        assert!(claude.shown().is_empty());
        claude.say("Say five.");
    }
}
