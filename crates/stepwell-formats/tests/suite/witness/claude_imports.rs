//! What is imported from the real Claude Code is what it sends its model next.

use stepwell::log::INTERRUPTED;
use stepwell::{Message, Status, Stepwell};

use super::claude_runs::{
    BOTH_TOOLS, BROKEN_OFF, CUT_SHORT, Driven, FORBIDDEN, KILLED, NO_FILE, PICTURE_FILE, REFUSED,
    SUBAGENT, THINKING, is_added, programs, sent,
};
use super::next_request::assert_sent_next;
use super::sessions::{PICTURE, view};
use super::test_env::NAME;
use crate::mirror::{shown, taken, written};

/// Another name of a session.
const FORK: &str = "0196a3f0-0000-7a52-8c3e-000000000043";
const OTHER_FORK: &str = "0196a3f0-0000-7a52-8c3e-000000000044";

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

#[test]
fn commands_and_what_they_print_are_imported() {
    for program in programs() {
        let claude = Driven::new(&program);
        let commands = claude.env.workspace().join(".claude/commands");
        std::fs::create_dir_all(&commands).unwrap();
        std::fs::write(commands.join("bake.md"), "Bake $ARGUMENTS now.").unwrap();
        claude.say("Say one.");
        claude.prompt("/bake bread");
        claude.say("Say two.");
        for command in ["/context", "/cost", "/unheard-of"] {
            claude.prompt(command);
        }
        claude.say("Say three.");
        let (well, id) = claude.imported();
        let printed = |it: &&Message| it.text().contains("<local-command-stdout>");
        let messages = shown(&well, &id);
        let printed: Vec<_> = messages.iter().filter(printed).collect();
        assert!(!printed.is_empty(), "{messages:#?}");
        assert!(printed.iter().all(|it| !it.is_from_user()));
        // The command's output is part of the conversation when the session continues here.
        well.resume(&id).unwrap().append(Message::user("Say four.")).unwrap();
        let (_folder, back) =
            written(&well, &id, "claude".parse().unwrap(), &format!("{NAME}.jsonl"));
        let there = Stepwell::in_memory();
        let again = taken(&there, &back).remove(0).id;
        assert_eq!(view(&there, &again), view(&well, &id));
    }
}

#[test]
fn odd_answers_are_imported() {
    for program in programs() {
        let claude = Driven::new(&program);
        let picture = base64::Engine::decode(&base64::prelude::BASE64_STANDARD, PICTURE).unwrap();
        std::fs::write(claude.env.workspace().join(PICTURE_FILE), picture).unwrap();
        claude.say("Say one.");
        for word in [THINKING, CUT_SHORT, PICTURE_FILE, FORBIDDEN, BROKEN_OFF] {
            claude.say(&format!("Be {word}."));
        }
        claude.say("Say two.");
    }
}

#[test]
fn compactions_rewinds_and_forks_behind_each_other_are_imported() {
    for program in programs().into_iter().take(1) {
        let mut claude = Driven::new(&program);
        claude.say("Say one.");
        claude.say(&format!("Use {BOTH_TOOLS}."));
        claude.prompt("/compact");
        claude.say("Say two.");
        claude.say("Say three.");
        claude.rewind("Say two.");
        claude.fork(FORK, "Say four.");
        claude.say("Say five.");
        claude.rewind("Say five.");
        claude.say("Say six.");
        claude.prompt("/compact");
        claude.fork(OTHER_FORK, "Say seven.");
        claude.say("Say eight.");
    }
}

#[test]
fn what_claude_is_told_of_a_subagent_is_imported() {
    for program in programs().into_iter().take(1) {
        let claude = Driven::new(&program);
        claude.say("Say one.");
        claude.prompt(&format!("Ask a {SUBAGENT}."));
        let (well, id) = claude.imported();
        let messages = shown(&well, &id);
        let is_told = |it: &&Message| it.text().starts_with("<task-notification>");
        let told = messages.iter().find(is_told).unwrap();
        assert!(!told.is_from_user());
        // Claude Code puts words around it that say who tells it.
        let mut expected = view(&well, &id);
        expected.retain(|line| !line.contains("<task-notification>"));
        claude.prompt("Say two.");
        let sent = sent(&claude.env, "Say two.");
        assert!(sent.iter().any(|line| line.contains(told.text().trim())), "{sent:#?}");
        assert_sent_next(&expected, "Say two.", &sent, is_added);
    }
}
