//! Guided work, as the example shows it: from a goal to a commit.

use std::path::Path;
use std::process::Command;

use crate::test_env::{Ran, TestEnv};

fn git(env: &TestEnv, args: &[&str]) -> String {
    let output = Command::new("git").arg("-C").arg(env.work()).args(args).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8_lossy(&output.stdout).trim().to_owned()
}

/// The example, copied and committed.
fn example() -> TestEnv {
    let env = TestEnv::new();
    let from = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/work"));
    for file in std::fs::read_dir(from).unwrap().map(|entry| entry.unwrap()) {
        std::fs::copy(file.path(), env.work().join(file.file_name())).unwrap();
    }
    git(&env, &["init", "-q", "-b", "main"]);
    git(&env, &["config", "user.name", "Test"]);
    git(&env, &["config", "user.email", "test@example.com"]);
    git(&env, &["add", "-A"]);
    git(&env, &["commit", "-q", "-m", "begin"]);
    env
}

const WORK: [&str; 6] = [
    "work",
    "A calculator that adds two numbers",
    "--model",
    "script:script.yaml",
    "--mode",
    "yolo",
];

fn respond(env: &mut TestEnv, answer: &str) -> Ran {
    env.run(&["resume", "@last", "--respond", answer])
}

#[test]
fn the_example_goes_from_a_goal_to_a_commit_with_three_answers() {
    let mut env = example();
    assert_eq!(env.run(&WORK).code, Some(8));
    assert_eq!(respond(&mut env, "1").code, Some(8));
    assert_eq!(respond(&mut env, "approve").code, Some(8));
    let shipped = respond(&mut env, "commit");
    assert_eq!(shipped.code, Some(0), "{}", shipped.stderr);
    assert!(shipped.stdout.starts_with("3 of 3 tasks done; the check passes; committed as "));
    assert_eq!(git(&env, &["log", "--format=%s"]), "calc: add two whole numbers\nbegin");
    // The store made it, and it is the user's to commit.
    assert_eq!(git(&env, &["status", "--porcelain"]), "?? .gitignore");
    let state = env.run(&["state", "@last"]);
    assert!(state.stdout.contains("ship") && state.stdout.contains("Are the numbers whole?"));
    let ledger = env.run(&["ledger", "--json"]).json();
    // Its commit names it, whatever git's clock says.
    assert_eq!((&ledger[0]["tasks"], &ledger[0]["commits"]), (&3.into(), &1.into()));
    let transcript = env.transcript();
    for seen in [
        "== plan ==",
        "1. [create] Write calc.sh",
        "check: sh test.sh",
        "task fix-1-1 done: Make this check pass: `sh test.sh`. It wrote: 2 + 3 is not -1",
        "== runtime ==",
        "Commit this? (commit, no: why, or message: another message)",
    ] {
        assert!(transcript.contains(seen), "{seen}: {transcript}");
    }
}

#[test]
fn without_questions_it_takes_one_command_and_a_phase_can_be_gone_back_to() {
    let env = example();
    let mut args = WORK.to_vec();
    args.extend(["--yes", "all", "--json"]);
    let ran = env.quietly(&args);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    let answer = &ran.json()[0];
    assert_eq!(answer["status"], "success");
    let back = env.quietly(&["rewind", "@last", "--to", "phase:execute", "--chat"]);
    assert_eq!(back.code, Some(0), "{}", back.stderr);
    let phase = env.quietly(&["phase", "@last"]);
    assert!(phase.stdout.contains("in phase execute"), "{}", phase.stdout);
    // With the files: they are planned, and made, anew.
    let back = env.quietly(&["rewind", "@last", "--to", "phase:plan"]);
    assert_eq!(back.code, Some(0), "{}", back.stderr);
    assert!(!env.work().join("calc.sh").exists());
    let phase = env.quietly(&["phase", "@last"]);
    assert!(phase.stdout.contains("in phase plan"), "{}", phase.stdout);
    let again = env.quietly(&["resume", "@last"]);
    assert_eq!(again.code, Some(0), "{}", again.stderr);
    assert!(again.stderr.contains("== execute =="), "{}", again.stderr);
    assert!(env.work().join("calc.sh").exists());
    // The commit of the first time holds the same files.
    assert_eq!(git(&env, &["log", "--format=%s"]), "calc: add two whole numbers\nbegin");
}

#[test]
fn a_spent_budget_stops_the_work_which_goes_on_with_more() {
    let env = example();
    let mut args = WORK.to_vec();
    args.extend(["--yes", "all", "--budget", "0.14"]);
    let ran = env.quietly(&args);
    assert_eq!(ran.code, Some(5), "{}", ran.stderr);
    assert!(ran.stderr.contains("partial (budget_exceeded)"), "{}", ran.stderr);
    assert!(ran.stderr.contains("--budget USD, gives it more"), "{}", ran.stderr);
    let state = env.quietly(&["state", "@last"]).stdout;
    assert!(state.contains("of 2 tasks") || state.contains("of 3 tasks"), "{state}");
    let again = env.quietly(&["resume", "@last", "--budget", "1"]);
    assert_eq!(again.code, Some(0), "{}", again.stderr);
    assert_eq!(git(&env, &["log", "--format=%s"]), "calc: add two whole numbers\nbegin");
}

#[test]
fn a_plan_is_told_what_earlier_work_of_the_project_taught() {
    let env = example();
    let mut args = WORK.to_vec();
    args.extend(["--yes", "all", "--check", "false", "--rounds", "1"]);
    assert_eq!(env.quietly(&args).code, Some(5));
    let mut args = WORK.to_vec();
    args.extend(["--yes", "all"]);
    assert_eq!(env.quietly(&args).code, Some(0));
    let log = env.quietly(&["log", "@last", "--json"]).stdout;
    let told = "Lessons of earlier work on this project\\n- cost $";
    assert!(log.contains(told), "{log}");
    assert!(log.contains("tasks: A calculator that adds two numbers"), "{log}");
}

#[test]
fn a_check_that_never_passes_is_exit_code_5_and_says_what_is_left() {
    let env = example();
    let mut args = WORK.to_vec();
    args.extend(["--yes", "all", "--check", "false", "--rounds", "1"]);
    let ran = env.quietly(&args);
    assert_eq!(ran.code, Some(5), "{}", ran.stderr);
    assert!(ran.stderr.contains("this is left: check `false`"), "{}", ran.stderr);
    assert!(ran.stderr.contains(" partial (work is left): "), "{}", ran.stderr);
    let told = "continues it; stepwell state";
    assert!(ran.stderr.contains(told), "{}", ran.stderr);
    // Nobody was asked, and nobody is said to have answered.
    assert!(ran.stderr.contains(" done (nobody: agreed to beforehand)"), "{}", ran.stderr);
    assert!(!ran.stderr.contains("(you)"), "{}", ran.stderr);
}

#[test]
fn what_makes_no_sense_is_refused_before_anything_is_recorded() {
    let env = example();
    for (more, code) in [
        (&["--phase-model", "ship"][..], 2),
        (&["--phase-model", "cook=openai/x"], 2),
        (&["--yes", "verify"], 2),
        (&["--agent", "build"], 2),
        (&["--run", "serve", "--url", "http://example.com/"], 2),
    ] {
        let mut args = WORK.to_vec();
        args.extend(more);
        let ran = env.quietly(&args);
        assert_eq!(ran.code, Some(code), "{more:?}: {}", ran.stderr);
    }
    assert!(!env.work().join(".stepwell/stepwell.db").exists());
}

#[test]
fn a_user_whom_git_does_not_know_is_told_what_to_type_and_the_work_resumes() {
    let mut env = example();
    git(&env, &["config", "--unset", "user.name"]);
    git(&env, &["config", "--unset", "user.email"]);
    // Or git would make a name up of the machine's.
    git(&env, &["config", "user.useConfigOnly", "true"]);
    let agreed = [&WORK[..], &["--yes", "discuss,plan,execute,ship"]].concat();
    let stopped = env.run(&agreed);
    assert_eq!(stopped.code, Some(1), "{}", stopped.stderr);
    for says in ["git does not know who commits", "git config --global user.name", "resume"] {
        assert!(stopped.stderr.contains(says), "{says} in {}", stopped.stderr);
    }
    assert_eq!(git(&env, &["log", "--format=%s"]), "begin");
    git(&env, &["config", "user.name", "Test"]);
    git(&env, &["config", "user.email", "test@example.com"]);
    let shipped = env.run(&["resume", "@last"]);
    assert_eq!(shipped.code, Some(0), "{}", shipped.stderr);
    assert_eq!(git(&env, &["log", "--format=%s"]), "calc: add two whole numbers\nbegin");
}

#[test]
fn work_keeps_state_and_tasks_in_files_only_if_that_is_wanted() {
    for wanted in [false, true] {
        let mut env = example();
        let settings = format!("[sessions]\nmirror_markdown = {wanted}\n");
        env.file("stepwell.toml", &settings);
        assert_eq!(env.run(&WORK).code, Some(8));
        assert_eq!(respond(&mut env, "1").code, Some(8));
        let files = ["STATE.md", "TASKS.md"].map(|name| env.work().join(".stepwell").join(name));
        if !wanted {
            assert!(files.iter().all(|file| !file.exists()));
            continue;
        }
        // The plan waits for its answer.
        let read = || files.each_ref().map(|file| std::fs::read_to_string(file).unwrap());
        let [state, tasks] = read();
        assert!(state.contains("**Phase:** plan"), "{state}");
        assert!(!tasks.contains("calc.sh"), "nothing is planned until it is approved: {tasks}");
        assert_eq!(respond(&mut env, "approve").code, Some(8));
        assert_eq!(respond(&mut env, "commit").code, Some(0));
        let [state, tasks] = read();
        assert!(state.contains("**Phase:** ship"), "{state}");
        assert!(tasks.contains("calc.sh") && tasks.contains("done"), "{tasks}");
        assert!(!tasks.contains("pending"), "{tasks}");
    }
}

/// What `state` says of the last session, by the names of its lines.
fn state_line<'a>(state: &'a str, name: &str) -> Vec<&'a str> {
    let lines = state.lines().filter_map(|line| line.split_at_checked(11));
    lines.filter(|(front, _)| front.trim() == name).map(|(_, text)| text).collect()
}

#[test]
fn state_and_show_tell_where_guided_work_is_and_what_to_type() {
    let mut env = example();
    assert_eq!(env.run(&WORK).code, Some(8));
    let id = env.quietly(&["sessions", "--json"]).json()[0]["id"].clone();
    let id = id.as_str().unwrap().to_owned();
    let answer = format!("stepwell resume {id} --respond \"your answer\"");
    let state = |env: &TestEnv| env.quietly(&["state", "@last"]).stdout;
    // It waits in the discussion.
    let told = state(&env);
    assert_eq!(state_line(&told, "Question"), ["1: Are the numbers whole? (no answer yet)"]);
    assert_eq!(state_line(&told, "Next"), [answer.as_str()]);
    let waits =
        "[work/question/1] Are the numbers whole? … (a number, your own words, skip, or skip all)";
    assert_eq!(state_line(&told, "Waits for"), [waits]);
    assert_eq!(respond(&mut env, "skip").code, Some(8));
    // It waits for its plan's approval.
    let told = state(&env);
    assert_eq!(state_line(&told, "Question"), ["1: Are the numbers whole? (skipped)"]);
    assert_eq!(state_line(&told, "Progress"), ["no tasks"]);
    let waits = state_line(&told, "Waits for");
    assert!(waits[0].starts_with("[work/approve/1] A shell script that adds"), "{waits:?}");
    assert!(
        waits[0]
            .ends_with("Is this the plan? (approve, refine: what to change, reject: why, or stop)")
    );
    let json = &env.quietly(&["state", "@last", "--json"]).json()[0];
    assert_eq!(json["questions"][0]["skipped"], true);
    assert_eq!(json["waits_for"][0]["id"], "work/approve/1");
    assert_eq!(json["guided"]["drafts"], 1);
    // It is verified, and waits for the commit.
    assert_eq!(respond(&mut env, "approve").code, Some(8));
    for told in [state(&env), env.quietly(&["show", "@last"]).stdout] {
        let tasks = state_line(&told, "Task");
        let of_plan = tasks.iter().find(|line| line.starts_with("1 done")).unwrap();
        assert_eq!(*of_plan, "1 done: Write calc.sh, which prints the sum of its two arguments");
        assert!(tasks.iter().any(|line| line.starts_with("fix-1-1 done: Make this check pass")));
        let verified = "round 2 of 3: check `sh test.sh` passes; the review passes; program `sh \
                        calc.sh 20 3` passes";
        assert_eq!(state_line(&told, "Verify"), [verified]);
        assert_eq!(state_line(&told, "Next"), [answer.as_str()]);
        assert_eq!(state_line(&told, "Question"), ["1: Are the numbers whole? (skipped)"]);
    }
    let json = &env.quietly(&["show", "@last", "--json"]).json()[0];
    assert_eq!(json["work"]["guided"]["verification"]["round"], 2);
    assert_eq!(json["work"]["guided"]["verification"]["checks"][0]["outcome"], "done");
    // It is over: nothing waits, and there is nothing to type.
    assert_eq!(respond(&mut env, "commit").code, Some(0));
    let told = state(&env);
    assert_eq!(state_line(&told, "Progress"), ["3 of 3 tasks done"]);
    assert_eq!(state_line(&told, "Commit"), [git(&env, &["rev-parse", "HEAD"])]);
    assert!(state_line(&told, "Next").is_empty() && state_line(&told, "Waits for").is_empty());
}

#[test]
fn state_tells_what_is_left_and_how_to_go_on() {
    let env = example();
    let mut args = WORK.to_vec();
    args.extend(["--yes", "all", "--check", "false", "--rounds", "1"]);
    assert_eq!(env.quietly(&args).code, Some(5));
    let told = env.quietly(&["state", "@last"]).stdout;
    let verified = state_line(&told, "Verify");
    assert!(verified[0].starts_with("round 1 of 1: check `false` fails; "), "{verified:?}");
    assert!(state_line(&told, "Error")[0].contains("this is left: check `false`"), "{told}");
    assert!(state_line(&told, "Next")[0].starts_with("stepwell resume "), "{told}");
}
