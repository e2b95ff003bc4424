//! What is remembered across sessions: who was cut off, the ledger, models.

use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};

use insta::assert_snapshot;

use crate::test_env::{AUTH, REVIEW, TESTS, TestEnv};

/// It works for a long time, unless it is taken up again.
const SLOW: &str = "
answers:
  - text: I wait.
    calls: [{tool: run_command, arguments: {command: 'sleep 600'}}]
  - text: Done at last.
";

fn env() -> TestEnv {
    let env = TestEnv::new();
    env.file("slow.yaml", SLOW);
    env.file("quick.yaml", "- text: Done.\n");
    env
}

/// Runs until a command has begun, and kills it there.
fn cut_off(env: &TestEnv, args: &[&str]) {
    let mut command = env.command(args);
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
    let lines = BufReader::new(child.stdout.take().unwrap()).lines().map_while(Result::ok);
    assert!(lines.into_iter().any(|line| line.contains("\"tool_started\"")));
    child.kill().unwrap();
    child.wait().unwrap();
}

const SLOWLY: [&str; 7] =
    ["run", "a long task", "--model", "script:slow.yaml", "--mode", "yolo", "--events"];
const QUICKLY: [&str; 4] = ["run", "a short task", "--model", "script:quick.yaml"];

/// The time that each line tells is that of the machine.
fn plain(env: &TestEnv) -> String {
    let ago = regex::Regex::new(r"\d+(s|m|h|d|mo|y) ago").unwrap();
    ago.replace_all(&env.transcript(), "[AGO]").into_owned()
}

#[test]
fn a_session_that_was_cut_off_is_told_of_once() {
    let mut env = env();
    cut_off(&env, &SLOWLY);
    // Who reads JSON is not told, and keeps nobody else from being told.
    let args: Vec<&str> = QUICKLY.iter().chain(&["--json"]).copied().collect();
    assert_eq!(env.quietly(&args).stderr, "");
    // Looking is no start of work.
    env.say("sessions");
    env.run(&QUICKLY);
    env.run(&QUICKLY);
    // A label makes no news of it.
    env.say("label @last short");
    let interrupted = env.quietly(&["sessions", "--status", "interrupted", "--json"]).json();
    let id = interrupted[0]["id"].as_str().unwrap();
    env.run(&["label", id, "long"]);
    env.run(&QUICKLY);
    assert_snapshot!(plain(&env));
}

#[test]
fn a_session_that_is_cut_off_again_is_told_of_again_but_not_to_who_resumes_it() {
    let env = env();
    cut_off(&env, &SLOWLY);
    assert!(env.quietly(&QUICKLY).stderr.contains("A session was cut off here:"));
    let script = SLOW.replace("Done at last.", "Again.\n    calls: [{tool: run_command, arguments: {command: 'sleep 600'}}]\n  - text: Done.");
    env.file("slow.yaml", &script);
    let again = env.quietly(&["sessions", "--status", "interrupted", "--json"]).json();
    let id = again[0]["id"].as_str().unwrap();
    cut_off(&env, &["resume", id, "--mode", "yolo", "--events"]);
    assert!(env.quietly(&QUICKLY).stderr.contains("A session was cut off here:"));
    cut_off(&env, &SLOWLY);
    let told = env.quietly(&["resume", id, "--mode", "yolo"]).stderr;
    assert!(told.starts_with("A session was cut off here:"), "{told}");
    assert!(!told.contains(&format!("resume {id}")), "{told}");
}

#[test]
fn many_that_were_cut_off_are_counted() {
    let env = env();
    let well = env.well();
    for n in 0..7 {
        drop(well.create(well.draft(format!("task {n}"))).unwrap());
    }
    let told = env.quietly(&QUICKLY).stderr;
    assert!(told.starts_with("7 sessions were cut off here:\n"), "{told}");
    assert!(told.contains("and more: stepwell sessions --status interrupted"), "{told}");
    assert_eq!(told.matches("task ").count(), 5, "{told}");
}

#[test]
fn a_run_without_a_task_takes_up_the_newest_only_if_that_is_wanted() {
    let mut env = env();
    env.say("run");
    env.say("run --session x");
    env.file("stepwell.toml", "[sessions]\nresume_on_startup = true\n");
    env.say("run");
    cut_off(&env, &SLOWLY);
    env.say("run");
    env.say("run");
    env.say("sessions");
    assert_snapshot!(plain(&env));
}

fn git(env: &TestEnv, args: &[&str], at: &str) {
    let mut git = Command::new("git");
    git.args(["-c", "user.name=n", "-c", "user.email=e@x"]).args(args).current_dir(env.work());
    git.env("HOME", env.path("home")).env("GIT_COMMITTER_DATE", at).env("GIT_AUTHOR_DATE", at);
    assert!(git.stdout(Stdio::null()).status().unwrap().success());
}

#[test]
fn the_ledger_has_a_row_for_each_session_that_ended() {
    let mut env = TestEnv::furnished();
    env.set("PATH", "/usr/bin:/bin");
    env.say("ledger");
    env.quietly(&["tasks", "20260223-151045", "add", "a"]).line();
    env.quietly(&["tasks", "20260223-151045", "add", "b", "--status", "skipped"]).line();
    env.quietly(&["tasks", "20260223-151045", "add", "c", "--status", "failed"]).line();
    env.quietly(&["tasks", "20260223-151045", "add", "d", "--status", "unrecoverable"]).line();
    env.say("ledger");
    env.say("ledger --markdown");
    env.say("ledger --json");
    env.say("ledger --status failed");
    env.say("ledger --agent nobody");
    env.say("ledger --everywhere --json --status failed");
    assert_snapshot!(env.transcript());
}

#[test]
fn the_ledger_in_markdown_reads_back_in() {
    let mut env = TestEnv::furnished();
    env.set("PATH", "/usr/bin:/bin");
    git(&env, &["init", "-q", "-b", "main", "."], "");
    env.quietly(&["tasks", "20260223-151045", "add", "a"]).line();
    env.quietly(&["tasks", "20260223-151045", "add", "b", "--status", "skipped"]).line();
    let message = format!("x\n\nStepwell-Session: {TESTS}");
    git(&env, &["commit", "-q", "--allow-empty", "-m", &message], "2026-02-23T15:30:22Z");
    let ledger = env.quietly(&["ledger", "--markdown"]).stdout;
    assert!(ledger.contains(" 1 |\n"), "its commit is counted: {ledger}");
    // Elsewhere it is all that there is, commits included.
    let other = TestEnv::new();
    other.file("LEDGER.md", &ledger);
    let read = other.quietly(&["import", "LEDGER.md", "--yes"]);
    assert_eq!(read.code, Some(0), "{}", read.stderr);
    assert_eq!(other.quietly(&["ledger", "--markdown"]).stdout, ledger);
    // And again from there: nothing is there twice.
    other.file("LEDGER.md", &other.quietly(&["ledger", "--markdown"]).stdout);
    assert_eq!(other.quietly(&["import", "LEDGER.md", "--yes"]).code, Some(0));
    assert_eq!(other.quietly(&["ledger", "--markdown"]).stdout, ledger);
    // Where the sessions themselves are, they count.
    env.file("LEDGER.md", &ledger);
    assert_eq!(env.quietly(&["import", "LEDGER.md", "--yes"]).code, Some(0));
    assert_eq!(env.quietly(&["ledger", "--markdown"]).stdout, ledger);
}

#[test]
fn a_row_of_the_ledger_lasts_from_the_beginning_to_the_end() {
    let mut env = env();
    env.set("STEPWELL_NOW", "2026-03-09T10:00:00Z");
    env.quietly(&["agent", "create", "--agent", "a", "--purpose", "p", "--id", "a-1"]).line();
    env.set("STEPWELL_NOW", "2026-03-09T11:30:05Z");
    env.quietly(&["agent", "finalize", "a-1", "completed"]).line();
    env.set("STEPWELL_NOW", "2026-03-10T00:00:00Z");
    // What comes later does not make it longer.
    env.quietly(&["label", "a-1", "late"]).line();
    let row = env.quietly(&["ledger", "--json"]).json().remove(0);
    assert_eq!((&row["duration_seconds"], &row["id"]), (&5_405.into(), &"a-1".into()));
    assert!(env.quietly(&["ledger"]).stdout.contains("1h30m"));
}

#[test]
fn what_subagents_cost_counts_for_the_session_that_started_them() {
    let env = TestEnv::furnished();
    env.quietly(&["abandon", AUTH]).line();
    let rows = env.quietly(&["ledger", "--json"]).json();
    let row = rows.iter().find(|row| row["id"] == AUTH).unwrap();
    // $0.0123 of its own, and $0.0040 of the review.
    assert_eq!(row["cost"].to_string(), "0.0163");
    assert!(rows.iter().all(|row| row["id"] != REVIEW));
}

#[test]
fn commits_that_others_made_meanwhile_are_not_counted() {
    let mut env = env();
    env.set("PATH", "/usr/bin:/bin");
    env.file("go.mod", "");
    git(&env, &["init", "-q", "-b", "main", "."], "");
    let ledger = |env: &TestEnv| env.quietly(&["ledger", "--json"]).json().remove(0);
    assert_eq!(env.quietly(&QUICKLY).code, Some(0));
    // The clock stands still at noon.
    assert_eq!(ledger(&env)["commits"], 0);
    for at in ["2026-03-09T11:59:58Z", "2026-03-09T12:00:00Z", "2026-03-09T12:00:02Z"] {
        git(&env, &["commit", "-q", "--allow-empty", "-m", "x"], at);
    }
    let row = ledger(&env);
    assert_eq!((&row["commits"], &row["project_type"]), (&0.into(), &"go".into()));
    // Where git is not, or is not asked about another folder.
    env.set("PATH", "/nowhere");
    assert!(ledger(&env)["commits"].is_null());
}

#[test]
fn models_are_remembered_for_the_user() {
    let mut env = env();
    env.say("models");
    for name in ["a", "b", "c", "a"] {
        env.file(&format!("{name}.yaml"), "- text: Done.\n");
        env.quietly(&["run", "t", "--model", &format!("script:{name}.yaml")]).line();
    }
    env.say("models");
    env.say("models add openai/gpt-5");
    env.say("models add openai/gpt-5");
    env.say("models add script:b.yaml");
    env.say("models add nonsense");
    env.say("models add opnai/gpt-5");
    env.say("models remove openai/none");
    env.say("models --json");
    env.say("models list --config models.max_recent=2");
    env.say("models remove openai/gpt-5");
    env.say("models remove openai/gpt-5");
    let file = env.path("home/.local/state/stepwell/models.json");
    std::fs::write(&file, "{").unwrap();
    env.say("models");
    env.say("models add openai/gpt-5");
    env.run(&QUICKLY);
    assert_eq!(std::fs::read_to_string(&file).unwrap(), "{");
    assert_snapshot!(env.transcript());
}

#[test]
fn many_shells_remember_their_models_at_once() {
    let env = env();
    let mut children: Vec<_> = (0..12)
        .map(|n| {
            let name = format!("openai/model-{n}");
            env.command(&["models", "add", &name]).stdout(Stdio::null()).spawn().unwrap()
        })
        .collect();
    assert!(children.iter_mut().all(|child| child.wait().unwrap().success()));
    let models = env.quietly(&["models", "--json"]).json().remove(0);
    assert_eq!(models["favourites"].as_array().unwrap().len(), 12);
}

#[test]
fn a_session_that_is_done_is_not_ended_again_by_resuming_it() {
    let mut env = TestEnv::new();
    env.file("script.yaml", "- {text: Done.}\n");
    assert_eq!(env.quietly(&["run", "go", "--model", "script:script.yaml"]).code, Some(0));
    let ledger = |env: &TestEnv| env.quietly(&["ledger", "--json"]).stdout;
    let (before, log) = (ledger(&env), env.quietly(&["log", "@last"]).stdout);
    env.set("STEPWELL_NOW", "2026-03-10T12:00:00Z");
    let ran = env.quietly(&["resume", "@last"]);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    assert!(ran.stderr.contains("success (llm_done)"), "{}", ran.stderr);
    assert_eq!(env.quietly(&["log", "@last"]).stdout, log);
    assert_eq!(ledger(&env), before);
}

#[test]
fn a_session_that_was_done_and_is_rewound_can_be_resumed() {
    let mut env = TestEnv::new();
    env.file("script.yaml", "- {text: Done.}\n");
    assert_eq!(env.quietly(&["run", "go", "--model", "script:script.yaml"]).code, Some(0));
    let status =
        |env: &TestEnv| env.quietly(&["show", "@last", "--json"]).json()[0]["status"].clone();
    let rewind = |env: &TestEnv, args: &[&str]| {
        let ran = env.quietly(&[&["rewind", "@last"], args].concat());
        assert_eq!(ran.code, Some(0), "{args:?}: {}", ran.stderr);
    };
    rewind(&env, &["--files"]);
    assert_eq!(status(&env), "success");
    rewind(&env, &["--chat"]);
    assert_eq!(status(&env), "interrupted");
    rewind(&env, &["--undo"]);
    assert_eq!(status(&env), "success");
    rewind(&env, &["--redo"]);
    assert_eq!(status(&env), "interrupted");
    // It was not cut off, and it is what a bare run takes up.
    env.set("STEPWELL_SESSIONS_RESUME_ON_STARTUP", "true");
    let ran = env.quietly(&["run"]);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    assert!(!ran.stderr.contains("cut off"), "{}", ran.stderr);
    assert_eq!(status(&env), "success");
    assert_eq!(env.quietly(&["rewind", "@last"]).code, Some(0));
    assert_eq!(env.quietly(&["resume"]).code, Some(0));
}
