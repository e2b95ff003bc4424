//! Pipes, JSON, colours, and what is told on stderr.

use std::io::{BufRead, BufReader, Read};
use std::process::Stdio;

use crate::test_env::{AUTH, TESTS, TestEnv, WIDE};

/// Every command that can answer in JSON, in an environment with sessions.
const COMMANDS: &[&[&str]] = &[
    &["sessions"],
    &["sessions", "--tree"],
    &["sessions", "--everywhere"],
    &["show", AUTH],
    &["log", AUTH],
    &["search", "auth"],
    &["stats"],
    &["du"],
    &["label", AUTH, "x"],
    &["tag", AUTH, "x"],
    &["untag", AUTH, "x"],
    &["pin", AUTH],
    &["unpin", AUTH],
    &["checkpoint", AUTH],
    &["fork", AUTH],
    &["abandon", AUTH],
    &["verify"],
    &["doctor"],
    &["doctor", "--repair"],
    &["config"],
    &["config", "list"],
    &["config", "get", "agent.max_errors"],
    &["config", "set", "agent.max_errors", "4"],
    &["init"],
    &["run", "x", "--model", "script:script.yaml"],
    &["resume", "--deny"],
    &["agent", "create", "--agent", "a", "--purpose", "p", "--id", "agent-1"],
    &["agent", "update", "agent-1", "--phase", "planning"],
    &["agent", "get", "agent-1"],
    &["agent", "should-resume", "agent-1"],
    &["agent", "list"],
    &["agent", "finalize", "agent-1", "failed"],
    &["agent", "cleanup", "--hours", "0"],
    &["hook", "test"],
    &["hook", "install", "claude"],
    &["hook", "uninstall", "claude"],
    &["export", AUTH],
    &["export", AUTH, "--format", "jsonl"],
    &["export", AUTH, "-o", "auth.json"],
    &["import", "auth.json"],
    &["delete", TESTS],
    &["trash", "list"],
    &["trash", "restore", TESTS],
    &["cleanup", "--dry-run"],
    &["scrub", "auth", "--yes"],
    &["purge", WIDE, "--yes"],
    &["cleanup"],
    &["trash", "empty", "--yes"],
    &["backup", "copy.db"],
    &["man", "pages"],
];

#[test]
fn json_commands_answer_nothing_but_json() {
    let env = TestEnv::furnished();
    let call = "{tool: run_command, arguments: {command: ls}}";
    env.file("script.yaml", &format!("- {{text: hi, calls: [{call}]}}\n- {{text: done}}\n"));
    for command in COMMANDS {
        let args: Vec<&str> = command.iter().chain(&["--json", "-v"]).copied().collect();
        let ran = env.quietly(&args);
        let code = match command {
            ["run", ..] => 8,
            // Nothing of what it wanted to do was allowed.
            ["resume", "--deny"] => 5,
            _ => 0,
        };
        assert_eq!(ran.code, Some(code), "{command:?}: {}", ran.stderr);
        for value in ran.json() {
            assert!(value.is_object(), "{command:?}: {value}");
        }
        // An archive is one object over many lines, whatever the flag says.
        if *command == ["export", AUTH] {
            continue;
        }
        // One object per line.
        for line in ran.stdout.lines() {
            assert!(line.starts_with('{') && line.ends_with('}'), "{command:?}: {line}");
        }
    }
}

#[test]
fn empty_answers_in_json_are_empty() {
    let env = TestEnv::new();
    for command in [
        &["sessions"][..],
        &["sessions", "--everywhere"],
        &["search", "x"],
        &["trash", "list"],
        &["trash", "empty", "--yes"],
        &["agent", "list"],
        &["verify"],
        &["scrub", "x", "--yes"],
    ] {
        let args: Vec<&str> = command.iter().chain(&["--json"]).copied().collect();
        let ran = env.quietly(&args);
        assert_eq!((ran.stdout.as_str(), ran.code), ("", Some(0)), "{command:?}");
    }
}

#[test]
fn a_closed_pipe_is_no_error() {
    let env = TestEnv::furnished();
    for args in [
        &["sessions", "--all"][..],
        &["sessions", "--json"],
        &["log", AUTH],
        &["show", AUTH, "--events"],
        &["search", "auth"],
        &["completions", "bash"],
        &["man"],
        &["--help"],
        &["config", "list"],
    ] {
        let mut child =
            env.command(args).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        drop(child.stdout.take());
        let mut stderr = String::new();
        child.stderr.take().unwrap().read_to_string(&mut stderr).unwrap();
        let status = child.wait().unwrap();
        assert!(status.success(), "{args:?}: {status} {stderr}");
        assert!(!stderr.contains("panicked") && !stderr.contains("error"), "{args:?}: {stderr}");
    }
}

#[test]
fn a_full_disk_behind_stdout_is_an_error() {
    let env = TestEnv::furnished();
    let Ok(full) = std::fs::OpenOptions::new().write(true).open("/dev/full") else { return };
    let mut command = env.command(&["sessions"]);
    let output = command.stdout(full).stderr(Stdio::piped()).output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    let stderr = String::from_utf8(output.stderr).unwrap();
    assert!(stderr.contains("could not be written"), "{stderr}");
}

#[test]
fn colours_are_for_terminals_and_for_those_who_ask() {
    let mut env = TestEnv::furnished();
    let has_colour = |ran: crate::test_env::Ran| ran.stdout.contains('\u{1b}');
    assert!(!has_colour(env.quietly(&["sessions"])));
    assert!(has_colour(env.quietly(&["sessions", "--color", "always"])));
    env.set("NO_COLOR", "1");
    assert!(!has_colour(env.quietly(&["sessions"])));
    assert!(has_colour(env.quietly(&["sessions", "--color", "always"])));
}

#[test]
fn what_the_library_does_is_told_to_those_who_ask() {
    let mut env = TestEnv::new();
    let told = |env: &TestEnv, args: &[&str], word: &str| {
        let ran = env.quietly(args);
        assert!(ran.stderr.contains(word), "{args:?}: {}", ran.stderr);
        assert!(!ran.stdout.contains(word), "{args:?}: {}", ran.stdout);
    };
    let create = ["agent", "create", "--agent", "a", "--purpose", "p", "--id", "agent-1"];
    let mut verbose: Vec<&str> = create.to_vec();
    verbose.push("-v");
    told(&env, &verbose, "session_created");
    told(&env, &["-v", "agent", "update", "agent-1", "--phase", "planning"], "session_saved");
    told(&env, &["-v", "show", "nobody"], "session_not_found");
    told(&env, &["-v", "delete", "agent-1"], "session_deleted");
    told(&env, &["-v", "trash", "restore", "agent-1"], "session_restored");
    told(&env, &["-v", "show", "agent-1"], "session_loaded");
    told(&env, &["-v", "purge", "agent-1", "--yes"], "session_purged");
    let quiet = env.quietly(&["show", "nobody"]);
    assert!(!quiet.stderr.contains("session_not_found"));
    env.set("STEPWELL_LOG", "stepwell=info");
    told(&env, &["show", "nobody"], "session_not_found");
    env.set("STEPWELL_LOG", "!!");
    assert_eq!(env.quietly(&["sessions"]).code, Some(0));
}

#[test]
fn a_long_list_streams() {
    let env = TestEnv::furnished();
    let mut child = env.command(&["log", AUTH]).stdout(Stdio::piped()).spawn().unwrap();
    let mut first = String::new();
    BufReader::new(child.stdout.take().unwrap()).read_line(&mut first).unwrap();
    assert!(first.contains("\"created\""));
    assert!(child.wait().unwrap().success());
}

#[test]
fn what_has_no_form_in_json_is_refused() {
    let env = TestEnv::furnished();
    for command in [
        &["man"][..],
        &["completions", "bash"],
        &["export", AUTH, "--format", "markdown"],
        &["export", AUTH, "--format", "html"],
    ] {
        let args: Vec<&str> = command.iter().chain(&["--json"]).copied().collect();
        let ran = env.quietly(&args);
        assert_eq!((ran.stdout.as_str(), ran.code), ("", Some(2)), "{command:?}");
    }
}

#[test]
fn a_follower_whose_reader_is_gone_ends() {
    let env = TestEnv::new();
    let args = ["agent", "create", "--agent", "a", "--purpose", "p", "--id", "agent-1"];
    env.quietly(&args).line();
    let mut follower =
        env.command(&["log", "-f", "agent-1"]).stdout(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(follower.stdout.take().unwrap());
    lines.read_line(&mut String::new()).unwrap();
    drop(lines);
    assert!(follower.wait().unwrap().success());
}

#[test]
fn help_comes_even_where_everything_else_is_wrong() {
    let env = TestEnv::new();
    env.file("stepwell.toml", "nonsense");
    assert_eq!(env.quietly(&["completions", "bash"]).code, Some(0));
    assert_eq!(env.quietly(&["man"]).code, Some(0));
    let doctor = env.quietly(&["doctor"]);
    assert_eq!(doctor.code, Some(1));
    assert!(doctor.stdout.contains("stepwell.toml line 1"), "{}", doctor.stdout);
}
