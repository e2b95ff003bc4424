//! What is remembered across sessions: who was cut off, the ledger, models.

use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};

use insta::assert_snapshot;

use crate::desk::{AUTH, Desk, REVIEW};

/// It works for a long time, unless it is taken up again.
const SLOW: &str = "
answers:
  - text: I wait.
    calls: [{tool: run_command, arguments: {command: 'sleep 600'}}]
  - text: Done at last.
";

fn desk() -> Desk {
    let desk = Desk::new();
    desk.file("slow.yaml", SLOW);
    desk.file("quick.yaml", "- text: Done.\n");
    desk
}

/// Runs until a command has begun, and kills it there.
fn cut_off(desk: &Desk, args: &[&str]) {
    let mut command = desk.command(args);
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
fn plain(desk: &Desk) -> String {
    let ago = regex::Regex::new(r"\d+(s|m|h|d|mo|y) ago").unwrap();
    ago.replace_all(&desk.transcript(), "[AGO]").into_owned()
}

#[test]
fn a_session_that_was_cut_off_is_told_of_once() {
    let mut desk = desk();
    cut_off(&desk, &SLOWLY);
    // Who reads JSON is not told, and keeps nobody else from being told.
    let args: Vec<&str> = QUICKLY.iter().chain(&["--json"]).copied().collect();
    assert_eq!(desk.quietly(&args).stderr, "");
    // Looking is no start of work.
    desk.say("sessions");
    desk.run(&QUICKLY);
    desk.run(&QUICKLY);
    // A label makes no news of it.
    desk.say("label @last short");
    let interrupted = desk.quietly(&["sessions", "--status", "interrupted", "--json"]).json();
    let id = interrupted[0]["id"].as_str().unwrap();
    desk.run(&["label", id, "long"]);
    desk.run(&QUICKLY);
    assert_snapshot!(plain(&desk));
}

#[test]
fn a_session_that_is_cut_off_again_is_told_of_again_but_not_to_who_resumes_it() {
    let desk = desk();
    cut_off(&desk, &SLOWLY);
    assert!(desk.quietly(&QUICKLY).stderr.contains("A session was cut off here:"));
    let script = SLOW.replace("Done at last.", "Again.\n    calls: [{tool: run_command, arguments: {command: 'sleep 600'}}]\n  - text: Done.");
    desk.file("slow.yaml", &script);
    let again = desk.quietly(&["sessions", "--status", "interrupted", "--json"]).json();
    let id = again[0]["id"].as_str().unwrap();
    cut_off(&desk, &["resume", id, "--mode", "yolo", "--events"]);
    assert!(desk.quietly(&QUICKLY).stderr.contains("A session was cut off here:"));
    cut_off(&desk, &SLOWLY);
    let told = desk.quietly(&["resume", id, "--mode", "yolo"]).stderr;
    assert!(told.starts_with("A session was cut off here:"), "{told}");
    assert!(!told.contains(&format!("resume {id}")), "{told}");
}

#[test]
fn many_that_were_cut_off_are_counted() {
    let desk = desk();
    let well = desk.well();
    for n in 0..7 {
        drop(well.create(well.draft(format!("task {n}"))).unwrap());
    }
    let told = desk.quietly(&QUICKLY).stderr;
    assert!(told.starts_with("7 sessions were cut off here:\n"), "{told}");
    assert!(told.contains("and more: stepwell sessions --status interrupted"), "{told}");
    assert_eq!(told.matches("task ").count(), 5, "{told}");
}

#[test]
fn a_run_without_a_task_takes_up_the_newest_only_if_that_is_wanted() {
    let mut desk = desk();
    desk.say("run");
    desk.say("run --session x");
    desk.file("stepwell.toml", "[sessions]\nresume_on_startup = true\n");
    desk.say("run");
    cut_off(&desk, &SLOWLY);
    desk.say("run");
    desk.say("run");
    desk.say("sessions");
    assert_snapshot!(plain(&desk));
}

fn git(desk: &Desk, args: &[&str], at: &str) {
    let mut git = Command::new("git");
    git.args(["-c", "user.name=n", "-c", "user.email=e@x"]).args(args).current_dir(desk.work());
    git.env("HOME", desk.path("home")).env("GIT_COMMITTER_DATE", at).env("GIT_AUTHOR_DATE", at);
    assert!(git.stdout(Stdio::null()).status().unwrap().success());
}

#[test]
fn the_ledger_has_a_row_for_each_session_that_ended() {
    let mut desk = Desk::furnished();
    desk.set("PATH", "/usr/bin:/bin");
    desk.say("ledger");
    desk.quietly(&["tasks", "20260223-151045", "add", "a"]).line();
    desk.quietly(&["tasks", "20260223-151045", "add", "b", "--status", "skipped"]).line();
    desk.quietly(&["tasks", "20260223-151045", "add", "c", "--status", "failed"]).line();
    desk.quietly(&["tasks", "20260223-151045", "add", "d", "--status", "unrecoverable"]).line();
    desk.say("ledger");
    desk.say("ledger --markdown");
    desk.say("ledger --json");
    desk.say("ledger --status failed");
    desk.say("ledger --agent nobody");
    desk.say("ledger --everywhere --json --status failed");
    assert_snapshot!(desk.transcript());
}

#[test]
fn the_ledger_in_markdown_reads_back_in() {
    let mut desk = Desk::furnished();
    desk.set("PATH", "/usr/bin:/bin");
    git(&desk, &["init", "-q", "-b", "main", "."], "");
    desk.quietly(&["tasks", "20260223-151045", "add", "a"]).line();
    desk.quietly(&["tasks", "20260223-151045", "add", "b", "--status", "skipped"]).line();
    git(&desk, &["commit", "-q", "--allow-empty", "-m", "x"], "2026-02-23T15:30:22Z");
    let ledger = desk.quietly(&["ledger", "--markdown"]).stdout;
    assert!(ledger.contains(" 1 |\n"), "its commit is counted: {ledger}");
    // Elsewhere it is all that there is, commits included.
    let other = Desk::new();
    other.file("LEDGER.md", &ledger);
    let read = other.quietly(&["import", "LEDGER.md", "--yes"]);
    assert_eq!(read.code, Some(0), "{}", read.stderr);
    assert_eq!(other.quietly(&["ledger", "--markdown"]).stdout, ledger);
    // And again from there: nothing is there twice.
    other.file("LEDGER.md", &other.quietly(&["ledger", "--markdown"]).stdout);
    assert_eq!(other.quietly(&["import", "LEDGER.md", "--yes"]).code, Some(0));
    assert_eq!(other.quietly(&["ledger", "--markdown"]).stdout, ledger);
    // Where the sessions themselves are, they count.
    desk.file("LEDGER.md", &ledger);
    assert_eq!(desk.quietly(&["import", "LEDGER.md", "--yes"]).code, Some(0));
    assert_eq!(desk.quietly(&["ledger", "--markdown"]).stdout, ledger);
}

#[test]
fn a_row_of_the_ledger_lasts_from_the_beginning_to_the_end() {
    let mut desk = desk();
    desk.set("STEPWELL_NOW", "2026-03-09T10:00:00Z");
    desk.quietly(&["agent", "create", "--agent", "a", "--purpose", "p", "--id", "a-1"]).line();
    desk.set("STEPWELL_NOW", "2026-03-09T11:30:05Z");
    desk.quietly(&["agent", "finalize", "a-1", "completed"]).line();
    desk.set("STEPWELL_NOW", "2026-03-10T00:00:00Z");
    // What comes later does not make it longer.
    desk.quietly(&["label", "a-1", "late"]).line();
    let row = desk.quietly(&["ledger", "--json"]).json().remove(0);
    assert_eq!((&row["duration_seconds"], &row["id"]), (&5_405.into(), &"a-1".into()));
    assert!(desk.quietly(&["ledger"]).stdout.contains("1h30m"));
}

#[test]
fn what_subagents_cost_counts_for_the_session_that_started_them() {
    let desk = Desk::furnished();
    desk.quietly(&["abandon", AUTH]).line();
    let rows = desk.quietly(&["ledger", "--json"]).json();
    let row = rows.iter().find(|row| row["id"] == AUTH).unwrap();
    // $0.0123 of its own, and $0.0040 of the review.
    assert_eq!(row["cost"].to_string(), "0.0163");
    assert!(rows.iter().all(|row| row["id"] != REVIEW));
}

#[test]
fn commits_that_were_made_meanwhile_are_counted() {
    let mut desk = desk();
    desk.set("PATH", "/usr/bin:/bin");
    desk.file("go.mod", "");
    git(&desk, &["init", "-q", "-b", "main", "."], "");
    let ledger = |desk: &Desk| desk.quietly(&["ledger", "--json"]).json().remove(0);
    assert_eq!(desk.quietly(&QUICKLY).code, Some(0));
    // The clock stands still at noon.
    assert_eq!(ledger(&desk)["commits"], 0);
    for at in ["2026-03-09T11:59:58Z", "2026-03-09T12:00:00Z", "2026-03-09T12:00:02Z"] {
        git(&desk, &["commit", "-q", "--allow-empty", "-m", "x"], at);
    }
    let row = ledger(&desk);
    assert_eq!((&row["commits"], &row["project_type"]), (&1.into(), &"go".into()));
    // Where git is not, or is not asked about another folder.
    desk.set("PATH", "/nowhere");
    assert!(ledger(&desk)["commits"].is_null());
}

#[test]
fn models_are_remembered_for_the_user() {
    let mut desk = desk();
    desk.say("models");
    for name in ["a", "b", "c", "a"] {
        desk.file(&format!("{name}.yaml"), "- text: Done.\n");
        desk.quietly(&["run", "t", "--model", &format!("script:{name}.yaml")]).line();
    }
    desk.say("models");
    desk.say("models add openai/gpt-5");
    desk.say("models add openai/gpt-5");
    desk.say("models add script:b.yaml");
    desk.say("models add nonsense");
    desk.say("models add opnai/gpt-5");
    desk.say("models remove openai/none");
    desk.say("models --json");
    desk.say("models list --config models.max_recent=2");
    desk.say("models remove openai/gpt-5");
    desk.say("models remove openai/gpt-5");
    let file = desk.path("home/.local/state/stepwell/models.json");
    std::fs::write(&file, "{").unwrap();
    desk.say("models");
    desk.say("models add openai/gpt-5");
    desk.run(&QUICKLY);
    assert_eq!(std::fs::read_to_string(&file).unwrap(), "{");
    assert_snapshot!(desk.transcript());
}

#[test]
fn many_shells_remember_their_models_at_once() {
    let desk = desk();
    let mut children: Vec<_> = (0..12)
        .map(|n| {
            let name = format!("openai/model-{n}");
            desk.command(&["models", "add", &name]).stdout(Stdio::null()).spawn().unwrap()
        })
        .collect();
    assert!(children.iter_mut().all(|child| child.wait().unwrap().success()));
    let models = desk.quietly(&["models", "--json"]).json().remove(0);
    assert_eq!(models["favourites"].as_array().unwrap().len(), 12);
}

#[test]
fn a_session_that_is_done_is_not_ended_again_by_resuming_it() {
    let mut desk = Desk::new();
    desk.file("script.yaml", "- {text: Done.}\n");
    assert_eq!(desk.quietly(&["run", "go", "--model", "script:script.yaml"]).code, Some(0));
    let ledger = |desk: &Desk| desk.quietly(&["ledger", "--json"]).stdout;
    let (before, log) = (ledger(&desk), desk.quietly(&["log", "@last"]).stdout);
    desk.set("STEPWELL_NOW", "2026-03-10T12:00:00Z");
    let ran = desk.quietly(&["resume", "@last"]);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    assert!(ran.stderr.contains("success (llm_done)"), "{}", ran.stderr);
    assert_eq!(desk.quietly(&["log", "@last"]).stdout, log);
    assert_eq!(ledger(&desk), before);
}

#[test]
fn a_session_that_was_done_and_is_rewound_can_be_resumed() {
    let mut desk = Desk::new();
    desk.file("script.yaml", "- {text: Done.}\n");
    assert_eq!(desk.quietly(&["run", "go", "--model", "script:script.yaml"]).code, Some(0));
    let status =
        |desk: &Desk| desk.quietly(&["show", "@last", "--json"]).json()[0]["status"].clone();
    let rewind = |desk: &Desk, args: &[&str]| {
        let ran = desk.quietly(&[&["rewind", "@last"], args].concat());
        assert_eq!(ran.code, Some(0), "{args:?}: {}", ran.stderr);
    };
    rewind(&desk, &["--files"]);
    assert_eq!(status(&desk), "success");
    rewind(&desk, &["--chat"]);
    assert_eq!(status(&desk), "interrupted");
    rewind(&desk, &["--undo"]);
    assert_eq!(status(&desk), "success");
    rewind(&desk, &["--redo"]);
    assert_eq!(status(&desk), "interrupted");
    // It was not cut off, and it is what a bare run takes up.
    desk.set("STEPWELL_SESSIONS_RESUME_ON_STARTUP", "true");
    let ran = desk.quietly(&["run"]);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    assert!(!ran.stderr.contains("cut off"), "{}", ran.stderr);
    assert_eq!(status(&desk), "success");
    assert_eq!(desk.quietly(&["rewind", "@last"]).code, Some(0));
    assert_eq!(desk.quietly(&["resume"]).code, Some(0));
}
