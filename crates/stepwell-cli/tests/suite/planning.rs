//! state, phase, tasks; the agent's own plan; STATE.md and TASKS.md.

use std::io::{BufRead, BufReader};
use std::os::unix::fs::PermissionsExt as _;
use std::process::Stdio;

use insta::assert_snapshot;
use stepwell::model::{Phase, PhaseSet, Scope, TaskStatus};
use stepwell::{Created, Seq, SessionId, Stepwell};

use crate::test_env::TestEnv;

/// It plans, works off a part of the plan, and is done.
const SCRIPT: &str = "
answers:
  - text: I plan.
    calls:
      - tool: tasks
        arguments:
          action: add
          tasks:
            - {id: look, description: 'look at a|b', files: [a.txt]}
            - {id: fix, kind: modify, description: fix it, after: [look]}
  - text: I look.
    calls:
      - {tool: tasks, arguments: {action: update, tasks: [{id: fix, status: running}]}}
      - {tool: tasks, arguments: {action: update, tasks: [{id: look, status: done}, {id: fix, status: running}]}}
  - text: I wait.
    calls: [{tool: run_command, arguments: {command: 'true'}}]
  - text: What was it that I planned?
    calls: [{tool: tasks, arguments: {action: list}}]
  - text: All done.
";

fn env() -> TestEnv {
    let env = TestEnv::new();
    env.file("script.yaml", SCRIPT);
    env
}

fn run<'a>(flags: &[&'a str]) -> Vec<&'a str> {
    ["run", "do it", "--model", "script:script.yaml"].iter().chain(flags).copied().collect()
}

/// A session of a set of phases that nobody runs.
fn session(env: &TestEnv, name: &str, phases: PhaseSet) -> (Stepwell, SessionId) {
    let well = env.well();
    let id: SessionId = name.parse().unwrap();
    drop(well.create(Created::new(id.clone(), "t").with_phases(phases)).unwrap());
    (well, id)
}

#[test]
fn a_plan_is_made_changed_and_shown() {
    let mut env = TestEnv::new();
    session(&env, "s-1", PhaseSet::Workflow);
    env.say("tasks s-1");
    env.run(&["tasks", "s-1", "add", "look | see\nagain", "--file", "a.txt", "--file", "b.txt"]);
    env.run(&["tasks", "s-1", "add", "fix", "--id", "fix", "--action", "modify", "--after", "1"]);
    env.say("tasks s-1 update fix --status running");
    env.say("tasks s-1 update 1 --status done");
    env.say("tasks s-1 update fix --status running");
    env.run(&["tasks", "s-1", "add", "test it", "--after", "1,fix"]);
    env.say("tasks s-1 depend 1 3");
    env.say("tasks s-1 depend 3 --not 1");
    env.say("tasks s-1");
    env.say("tasks s-1 list --status pending,running");
    env.say("tasks s-1 --json");
    env.say("tasks s-1 --markdown");
    env.say("tasks s-1 update fix --status unrecoverable --json");
    env.say("tasks s-1 update fix --status pending");
    env.say("state s-1");
    assert_snapshot!(env.transcript());
}

#[test]
fn what_a_plan_does_not_take_is_said_and_changes_nothing() {
    let mut env = TestEnv::new();
    let (well, id) = session(&env, "s-1", PhaseSet::Workflow);
    env.say("tasks s-1 add one");
    let before = well.info(&id).unwrap().head.seq;
    env.run(&["tasks", "s-1", "add", " "]);
    env.run(&["tasks", "s-1", "add", "x", "--id", "a b"]);
    env.say("tasks s-1 add x --id 1");
    env.say("tasks s-1 add x --after 7");
    env.say("tasks s-1 add x --status soon");
    env.say("tasks s-1 update 7 --status done");
    env.say("tasks s-1 depend 1");
    env.say("tasks s-1 depend 1 1");
    env.say("tasks s-1 dance");
    env.say("tasks s-1 --markdown --json");
    // What is so already is recorded once.
    env.say("tasks s-1 update 1 --status pending");
    assert_eq!(well.info(&id).unwrap().head.seq, before);
    assert_snapshot!(env.transcript());
}

#[test]
fn a_plan_moves_from_one_session_to_another_as_markdown() {
    let mut env = TestEnv::new();
    let (well, _) = session(&env, "s-1", PhaseSet::Workflow);
    let (_, other) = session(&env, "s-2", PhaseSet::Workflow);
    env.run(&["tasks", "s-1", "add", "a | b\nc \\ <d>", "--file", "x,y.txt"]);
    env.run(&["tasks", "s-1", "add", "-", "--after", "1"]);
    let plan = env.quietly(&["tasks", "s-1", "--markdown"]).stdout;
    env.feed(&["tasks", "s-2", "load", "-"], &plan);
    assert_eq!(env.quietly(&["tasks", "s-2", "--markdown"]).stdout, plan);
    let seq = well.info(&other).unwrap().head.seq;
    env.file("theirs.md", &plan.replace("\\|", "|"));
    env.say("tasks s-2 load theirs.md");
    env.file("cycle.md", &plan.replace("| - | pending | x", "| 2 | pending | x"));
    env.say("tasks s-2 load cycle.md");
    env.say("tasks s-2 load nowhere.md");
    env.file("empty.md", "");
    env.say("tasks s-2 load empty.md");
    assert_eq!(well.info(&other).unwrap().head.seq, seq);
    assert_snapshot!(env.transcript());
}

#[test]
fn a_phase_moves_as_its_set_allows() {
    let mut env = TestEnv::new();
    session(&env, "s-1", PhaseSet::Workflow);
    env.say("phase s-1");
    env.say("phase s-1 ship");
    env.say("phase s-1 approval");
    env.say("phase s-1 initialize");
    env.say("phase s-1 initialize");
    env.say("phase s-1 discuss --json");
    env.say("phase s-1 plan");
    for _ in 0..3 {
        env.quietly(&["phase", "s-1", "discuss"]).line();
        env.quietly(&["phase", "s-1", "plan"]).line();
    }
    env.say("phase s-1 discuss");
    env.run(&["agent", "create", "--agent", "a", "--purpose", "p", "--id", "a-1"]);
    env.say("phase a-1 completed");
    env.say("phase a-1 planning");
    env.say("sessions --status success");
    drop(env.well().create(Created::new("plain".parse().unwrap(), "t")).unwrap());
    env.say("phase plain");
    env.say("phase plain plan");
    assert_snapshot!(env.transcript());
}

#[test]
fn the_state_of_work_has_a_goal_questions_and_answers() {
    let mut env = TestEnv::new();
    session(&env, "s-1", PhaseSet::Workflow);
    env.run(&[
        "state",
        "s-1",
        "goal",
        "cookies, with key ghp_0123456789abcdefghijABCDEFGHIJ012345",
    ]);
    env.run(&["state", "s-1", "ask", "Auth?"]);
    env.run(&["state", "s-1", "ask", "Timeout?"]);
    env.run(&["state", "s-1", "answer", "1", "no"]);
    env.run(&["state", "s-1", "answer", "3", "no"]);
    env.run(&["state", "s-1", "ask", " "]);
    env.say("phase s-1 initialize");
    env.say("state s-1 --markdown");
    env.say("state s-1 --json");
    env.run(&["state", "s-1", "goal", ""]);
    // What was used here goes by the real time.
    assert_snapshot!(env.transcript());
}

#[test]
fn a_rewind_takes_tasks_and_phase_back() {
    let env = TestEnv::new();
    let (well, id) = session(&env, "s-1", PhaseSet::Workflow);
    env.quietly(&["tasks", "s-1", "add", "one"]).line();
    let then = well.info(&id).unwrap().head.seq;
    let before = env.quietly(&["state", "s-1", "--json"]).stdout;
    env.quietly(&["tasks", "s-1", "update", "1", "--status", "done"]).line();
    env.quietly(&["tasks", "s-1", "add", "two"]).line();
    env.quietly(&["phase", "s-1", "initialize"]).line();
    env.quietly(&["state", "s-1", "goal", "g"]);
    env.quietly(&["state", "s-1", "ask", "q"]);
    let after = env.quietly(&["state", "s-1", "--json"]).stdout;
    let held = well.lock(&id).unwrap();
    let rewind = held.rewind(then, Scope::Chat).unwrap();
    drop(held);
    assert_eq!(env.quietly(&["state", "s-1", "--json"]).stdout, before);
    let work = well.work(&id).unwrap();
    assert_eq!(work.tasks.get("1").unwrap().status, TaskStatus::Pending);
    assert_eq!((work.tasks.len(), well.info(&id).unwrap().head.phase), (1, Some(Phase::Idle)));
    // A new task takes the place of the one that was taken back.
    env.quietly(&["tasks", "s-1", "add", "another two"]).line();
    assert_eq!(well.work(&id).unwrap().tasks.get("2").unwrap().description, "another two");
    well.lock(&id).unwrap().undo_rewind(rewind).unwrap();
    assert_eq!(env.quietly(&["state", "s-1", "--json"]).stdout, after);
}

#[test]
fn an_agent_plans_without_being_asked_and_in_every_built_in_agent() {
    for agent in ["build", "plan", "review"] {
        let env = env();
        let script = SCRIPT
            .replace("calls: [{tool: run_command, arguments: {command: 'true'}}]", "calls: []");
        env.file("script.yaml", &script.replace("I wait.\n    calls: []", "I wait."));
        // Nobody can be asked here: a call that needs consent would pause the run.
        let ran = env.quietly(&run(&["--agent", agent, "--json"]));
        assert_eq!(ran.code, Some(0), "{agent}: {}", ran.stderr);
        let tasks = env.quietly(&["tasks", "@last", "--json"]).json();
        let stood: Vec<_> =
            tasks.iter().map(|it| (it["id"].clone(), it["status"].clone())).collect();
        let expected = [("look", "done"), ("fix", "running")];
        assert_eq!(stood, expected.map(|(id, status)| (id.into(), status.into())), "{agent}");
    }
}

#[test]
fn an_agent_that_is_rewound_finds_the_plan_as_it_was() {
    let env = env();
    assert_eq!(env.quietly(&run(&["--mode", "yolo", "--max-steps", "2"])).code, Some(5));
    let log = env.quietly(&["log", "@last"]).json();
    let step = log.iter().find(|event| event["kind"] == "step").unwrap()["seq"].as_u64().unwrap();
    let well = env.well();
    let id = well.find("@last").unwrap();
    well.lock(&id).unwrap().rewind(Seq::new(step), Scope::Chat).unwrap();
    assert_eq!(well.work(&id).unwrap().tasks.count(TaskStatus::Pending), 2);
    // The second step is made once more, and changes the same tasks once more.
    assert_eq!(env.quietly(&["resume", "@last", "--mode", "yolo"]).code, Some(0));
    assert_eq!(env.quietly(&["log", "@last", "--kind", "task"]).json().len(), 2 + 2 + 2);
    let tasks = well.work(&id).unwrap().tasks;
    assert_eq!((tasks.len(), tasks.count(TaskStatus::Done)), (2, 1));
}

#[test]
fn a_secret_in_a_plan_is_not_written() {
    let env = env();
    let secret = "ghp_0123456789abcdefghijABCDEFGHIJ012345";
    env.file("script.yaml", &SCRIPT.replace("fix it", &format!("use {secret}")));
    assert_eq!(env.quietly(&run(&["--mode", "yolo"])).code, Some(0));
    let (tasks, log) = (env.quietly(&["tasks", "@last"]), env.quietly(&["log", "@last"]));
    assert!(tasks.stdout.contains("use [redacted:github-token]"), "{}", tasks.stdout);
    assert!(!log.stdout.contains(secret));
}

#[test]
fn a_plan_survives_a_kill_and_is_read_after_the_resume() {
    let mut env = env();
    let slow = SCRIPT.replace("command: 'true'", "command: 'sleep 600'");
    env.file("script.yaml", &slow);
    let mut command = env.command(&run(&["--mode", "yolo", "--events"]));
    command.env_remove("STEPWELL_NOW");
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
    let lines = BufReader::new(child.stdout.take().unwrap()).lines().map_while(Result::ok);
    let begun = lines
        .into_iter()
        .find(|line| line.contains("\"tool_started\"") && line.contains("run_command"));
    assert!(begun.is_some());
    // While it runs, its plan is its own, but its goal is anyone's.
    env.say("tasks @last");
    let mut now = env.command(&["tasks", "@last", "add", "meanwhile"]);
    let busy = now.env_remove("STEPWELL_NOW").output().unwrap();
    assert_eq!(busy.status.code(), Some(6));
    assert!(String::from_utf8_lossy(&busy.stderr).contains("is in use by process"));
    assert_eq!(env.quietly(&["state", "@last", "goal", "win"]).code, Some(0));
    child.kill().unwrap();
    child.wait().unwrap();
    env.say("resume @last --mode yolo");
    env.say("tasks @last");
    let log = env.quietly(&["log", "@last", "--kind", "task"]).json();
    assert_eq!(log.len(), 4, "{log:?}");
    let told = env.quietly(&["log", "@last", "--kind", "message"]).stdout;
    assert!(told.contains("cannot be running: it waits for look"), "{told}");
    assert!(told.contains("look [done] look at a|b (files a.txt)\\nfix [running]"), "{told}");
    assert_snapshot!(env.transcript());
}

#[test]
fn state_and_tasks_are_mirrored_as_they_change() {
    let mut env = env();
    env.file("stepwell.toml", "[sessions]\nmirror_markdown = true\n");
    let slow = SCRIPT.replace("command: 'true'", "command: 'cat .stepwell/TASKS.md > seen.md'");
    env.file("script.yaml", &slow);
    assert_eq!(env.quietly(&run(&["--mode", "yolo", "--phases", "workflow"])).code, Some(0));
    // The run itself kept them current, and not only its end.
    assert_eq!(env.read("seen.md"), env.read(".stepwell/TASKS.md"));
    let both = |env: &TestEnv| {
        let text = env.read(".stepwell/STATE.md") + &env.read(".stepwell/TASKS.md");
        env.redact(&text)
    };
    let mut all = both(&env);
    env.quietly(&["tasks", "@last", "update", "fix", "--status", "done"]).line();
    env.quietly(&["phase", "@last", "initialize"]).line();
    env.quietly(&["state", "@last", "goal", "win"]);
    all.push_str(&both(&env));
    for name in ["STATE.md", "TASKS.md"] {
        let mode =
            std::fs::metadata(env.work().join(".stepwell").join(name)).unwrap().permissions();
        assert_eq!(mode.mode() & 0o777, 0o600);
    }
    // Looking changes nothing, and what is erased is erased there too.
    std::fs::write(env.work().join(".stepwell/TASKS.md"), "mine").unwrap();
    env.say("sessions");
    assert_eq!(env.read(".stepwell/TASKS.md"), "mine");
    assert_eq!(env.quietly(&["purge", "@last", "--yes"]).code, Some(0));
    assert!(!env.work().join(".stepwell/TASKS.md").exists());
    assert!(!env.work().join(".stepwell/STATE.md").exists());
    assert_snapshot!(all);
}

#[test]
fn nothing_is_mirrored_unless_it_is_wanted() {
    let env = env();
    assert_eq!(env.quietly(&run(&["--mode", "yolo"])).code, Some(0));
    assert!(!env.work().join(".stepwell/TASKS.md").exists());
    env.file("stepwell.toml", "[sessions]\nmirror_markdown = true\nauto_save = false\n");
    std::fs::remove_dir_all(env.work().join(".stepwell")).unwrap();
    assert_eq!(env.quietly(&run(&["--mode", "yolo"])).code, Some(0));
    assert!(!env.work().join(".stepwell").exists());
}

#[test]
fn many_shells_plan_at_once_and_nothing_is_lost() {
    let env = TestEnv::new();
    session(&env, "s-1", PhaseSet::Workflow);
    env.file("stepwell.toml", "[sessions]\nmirror_markdown = true\n");
    let mut children: Vec<_> = (0..12)
        .map(|n| {
            let text = format!("task {n}");
            let mut command = env.command(&["tasks", "s-1", "add", &text]);
            command.env_remove("STEPWELL_NOW").stdout(Stdio::null()).spawn().unwrap()
        })
        .collect();
    assert!(children.iter_mut().all(|child| child.wait().unwrap().success()));
    let plan = env.quietly(&["tasks", "s-1", "--markdown"]).stdout;
    assert_eq!(plan.lines().count(), 4 + 12);
    assert_eq!(env.read(".stepwell/TASKS.md"), plan);
}

#[test]
fn a_pinned_message_is_no_change_of_the_goal() {
    let env = env();
    assert_eq!(env.quietly(&run(&["--mode", "yolo"])).code, Some(0));
    let last = || env.quietly(&["state", "@last", "--json"]).json()[0]["last_action"].clone();
    let before = last();
    let message = env.quietly(&["log", "@last", "--kind", "message"]).json()[0]["seq"].to_string();
    let ran = env.quietly(&["pin-message", "@last", &message]);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    assert_eq!(last(), before);
    assert_eq!(env.quietly(&["state", "@last", "goal", "ship it"]).code, Some(0));
    assert_ne!(last(), before);
}

#[test]
fn with_phases_the_agent_moves_through_them_as_the_rules_allow() {
    let script = "
answers:
  - text: I begin.
    calls: [{tool: phase, arguments: {to: initialize}}]
  - text: I skip ahead.
    calls: [{tool: phase, arguments: {to: ship}}]
  - text: Then step by step.
    calls: [{tool: phase, arguments: {to: execute}}]
  - text: Done.
";
    let env = crate::running::env(script);
    let args = ["run", "build it", "--model", "script:script.yaml", "--phases", "workflow"];
    crate::running::one(&env, &args, 0);
    let state = crate::running::one(&env, &["state", "@last"], 0);
    assert_eq!(state["phase"], "execute");
    // The goal is the task unless another is set, and something is said to have happened.
    assert_eq!(state["goal"], "build it");
    assert_eq!(state["last_action"], "step 4 was done");
    let points = env.quietly(&["checkpoint", "@last", "--json"]).json();
    let names: Vec<_> = points.iter().map(|it| it["name"].as_str().unwrap()).collect();
    assert!(names.contains(&"phase-initialize") && names.contains(&"phase-execute"), "{names:?}");
    assert!(!names.contains(&"phase-ship"));
    let log = env.quietly(&["log", "@last", "--json"]).stdout;
    assert!(log.contains("initialize cannot move to ship"), "{log}");
    // A session without phases has no such tool.
    crate::running::one(&env, &["run", "again", "--model", "script:script.yaml"], 0);
    let plain = env.quietly(&["log", "@last", "--kind", "phase"]).stdout;
    assert_eq!(plain, "");
}
