//! What every command that names a session says to a name that is none, to one that fits
//! several, to a flag that it does not have, and of a session that is damaged.

use insta::assert_snapshot;

use crate::test_env::{AUTH, TestEnv};

/// Every command that names a session; ID stands for the name.
const COMMANDS: &[&[&str]] = &[
    &["show", "ID"],
    &["log", "ID"],
    &["state", "ID"],
    &["state", "ID", "goal", "x"],
    &["phase", "ID"],
    &["phase", "ID", "plan"],
    &["tasks", "ID"],
    &["tasks", "ID", "add", "x"],
    &["label", "ID", "x"],
    &["tag", "ID", "x"],
    &["untag", "ID", "x"],
    &["pin", "ID"],
    &["unpin", "ID"],
    &["compact", "ID"],
    &["compact", "ID", "--diff"],
    &["pin-message", "ID", "2"],
    &["unpin-message", "ID", "2"],
    &["show", "ID", "--view"],
    &["checkpoint", "ID", "now"],
    &["checkpoint", "ID", "--list"],
    &["rewind", "ID"],
    &["rewind", "ID", "--dry-run"],
    &["diff", "ID"],
    &["files", "ID"],
    &["fork", "ID"],
    &["abandon", "ID"],
    &["delete", "ID"],
    &["trash", "restore", "ID"],
    &["purge", "ID", "--yes"],
    &["scrub", "auth", "ID", "--yes"],
    &["export", "ID"],
    &["verify", "ID"],
    &["agent", "get", "ID"],
    &["agent", "update", "ID", "--phase", "planning"],
    &["agent", "finalize", "ID", "failed"],
    &["resume", "ID"],
    &["run", "more", "--session", "ID"],
    &["stop", "ID"],
];

fn named(command: &[&'static str], name: &'static str) -> Vec<&'static str> {
    command.iter().map(|&word| if word == "ID" { name } else { word }).collect()
}

#[test]
fn a_name_that_is_none_is_exit_3_everywhere() {
    let mut env = TestEnv::furnished();
    for command in COMMANDS {
        assert_eq!(env.run(&named(command, "nobody")).code, Some(3), "{command:?}");
    }
    assert_eq!(env.run(&["agent", "should-resume", "nobody"]).code, Some(1));
    assert_snapshot!(env.transcript());
}

#[test]
fn a_name_that_fits_several_is_exit_3_everywhere() {
    let mut env = TestEnv::furnished();
    for command in COMMANDS.iter().filter(|command| command[0] != "trash") {
        assert_eq!(env.run(&named(command, "20260223")).code, Some(3), "{command:?}");
    }
    // In the trash, what is in the trash is named.
    env.quietly(&["delete", AUTH]).line();
    assert_eq!(env.run(&["trash", "restore", "20260223"]).code, Some(3));
    assert_snapshot!(env.transcript());
}

#[test]
fn a_flag_that_a_command_does_not_have_is_exit_2_everywhere() {
    let env = TestEnv::furnished();
    let others: &[&[&str]] = &[
        &["sessions"],
        &["search", "x"],
        &["stats"],
        &["ledger"],
        &["models"],
        &["models", "add", "openai/x"],
        &["du"],
        &["trash", "list"],
        &["trash", "empty"],
        &["cleanup"],
        &["import", "x"],
        &["backup", "x"],
        &["doctor"],
        &["config"],
        &["init"],
        &["agent", "list"],
        &["agent", "cleanup"],
        &["agent", "create", "--agent", "a", "--purpose", "p"],
        &["hook", "pre-delegate"],
        &["hook", "subagent-stop"],
        &["hook", "install", "claude"],
        &["hook", "test"],
        &["completions", "bash"],
        &["man"],
        &["demo"],
    ];
    for command in COMMANDS.iter().chain(others) {
        let mut args = named(command, AUTH);
        args.push("--frobnicate");
        let ran = env.quietly(&args);
        assert_eq!((ran.code, ran.stdout.as_str()), (Some(2), ""), "{command:?}");
        assert!(
            ran.stderr.starts_with("error: unexpected argument"),
            "{command:?}: {}",
            ran.stderr
        );
    }
}

#[test]
fn a_damaged_session_is_exit_7_to_whoever_needs_it_whole() {
    let mut env = TestEnv::furnished();
    let broken = env.database().execute(
        "UPDATE events SET body = replace(body, 'todo', 'done') WHERE body LIKE '%todo%'",
        [],
    );
    assert_eq!(broken, Ok(1));
    assert_eq!(env.quietly(&["verify"]).code, Some(7));
    for command in [
        &["show", "ID"][..],
        &["log", "ID", "--from", "4"],
        &["tasks", "ID", "add", "x"],
        &["checkpoint", "ID", "here"],
        &["rewind", "ID"],
        &["fork", "ID"],
        &["abandon", "ID"],
        &["scrub", "auth", "ID", "--yes"],
        &["export", "ID", "--format", "markdown"],
        &["verify", "ID"],
        &["doctor"],
    ] {
        assert_eq!(env.run(&named(command, AUTH)).code, Some(7), "{command:?}");
    }
    assert_snapshot!(env.transcript());
}
