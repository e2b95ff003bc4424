//! state, phase, tasks; the agent's own plan; STATE.md and TASKS.md.

use std::io::{BufRead, BufReader};
use std::os::unix::fs::PermissionsExt as _;
use std::process::Stdio;

use insta::assert_snapshot;
use stepwell::{Created, Phase, PhaseSet, Scope, Seq, SessionId, Stepwell, TaskStatus};

use crate::desk::Desk;

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

fn desk() -> Desk {
    let desk = Desk::new();
    desk.file("script.yaml", SCRIPT);
    desk
}

fn run<'a>(flags: &[&'a str]) -> Vec<&'a str> {
    ["run", "do it", "--model", "script:script.yaml"].iter().chain(flags).copied().collect()
}

/// A session of a set of phases that nobody runs.
fn session(desk: &Desk, name: &str, phases: PhaseSet) -> (Stepwell, SessionId) {
    let well = desk.well();
    let id: SessionId = name.parse().unwrap();
    drop(well.create(Created::new(id.clone(), "t").with_phases(phases)).unwrap());
    (well, id)
}

#[test]
fn a_plan_is_made_changed_and_shown() {
    let mut desk = Desk::new();
    session(&desk, "s-1", PhaseSet::Workflow);
    desk.say("tasks s-1");
    desk.run(&["tasks", "s-1", "add", "look | see\nagain", "--file", "a.txt", "--file", "b.txt"]);
    desk.run(&["tasks", "s-1", "add", "fix", "--id", "fix", "--action", "modify", "--after", "1"]);
    desk.say("tasks s-1 update fix --status running");
    desk.say("tasks s-1 update 1 --status done");
    desk.say("tasks s-1 update fix --status running");
    desk.run(&["tasks", "s-1", "add", "test it", "--after", "1,fix"]);
    desk.say("tasks s-1 depend 1 3");
    desk.say("tasks s-1 depend 3 --not 1");
    desk.say("tasks s-1");
    desk.say("tasks s-1 list --status pending,running");
    desk.say("tasks s-1 --json");
    desk.say("tasks s-1 --markdown");
    desk.say("tasks s-1 update fix --status unrecoverable --json");
    desk.say("tasks s-1 update fix --status pending");
    desk.say("state s-1");
    assert_snapshot!(desk.transcript());
}

#[test]
fn what_a_plan_does_not_take_is_said_and_changes_nothing() {
    let mut desk = Desk::new();
    let (well, id) = session(&desk, "s-1", PhaseSet::Workflow);
    desk.say("tasks s-1 add one");
    let before = well.info(&id).unwrap().head.seq;
    desk.run(&["tasks", "s-1", "add", " "]);
    desk.run(&["tasks", "s-1", "add", "x", "--id", "a b"]);
    desk.say("tasks s-1 add x --id 1");
    desk.say("tasks s-1 add x --after 7");
    desk.say("tasks s-1 add x --status soon");
    desk.say("tasks s-1 update 7 --status done");
    desk.say("tasks s-1 depend 1");
    desk.say("tasks s-1 depend 1 1");
    desk.say("tasks s-1 dance");
    desk.say("tasks s-1 --markdown --json");
    // What is so already is recorded once.
    desk.say("tasks s-1 update 1 --status pending");
    assert_eq!(well.info(&id).unwrap().head.seq, before);
    assert_snapshot!(desk.transcript());
}

#[test]
fn a_plan_moves_from_one_session_to_another_as_markdown() {
    let mut desk = Desk::new();
    let (well, _) = session(&desk, "s-1", PhaseSet::Workflow);
    let (_, other) = session(&desk, "s-2", PhaseSet::Workflow);
    desk.run(&["tasks", "s-1", "add", "a | b\nc \\ <d>", "--file", "x,y.txt"]);
    desk.run(&["tasks", "s-1", "add", "-", "--after", "1"]);
    let plan = desk.quietly(&["tasks", "s-1", "--markdown"]).stdout;
    desk.feed(&["tasks", "s-2", "load", "-"], &plan);
    assert_eq!(desk.quietly(&["tasks", "s-2", "--markdown"]).stdout, plan);
    let seq = well.info(&other).unwrap().head.seq;
    desk.file("theirs.md", &plan.replace("\\|", "|"));
    desk.say("tasks s-2 load theirs.md");
    desk.file("cycle.md", &plan.replace("| - | pending | x", "| 2 | pending | x"));
    desk.say("tasks s-2 load cycle.md");
    desk.say("tasks s-2 load nowhere.md");
    desk.file("empty.md", "");
    desk.say("tasks s-2 load empty.md");
    assert_eq!(well.info(&other).unwrap().head.seq, seq);
    assert_snapshot!(desk.transcript());
}

#[test]
fn a_phase_moves_as_its_set_allows() {
    let mut desk = Desk::new();
    session(&desk, "s-1", PhaseSet::Workflow);
    desk.say("phase s-1");
    desk.say("phase s-1 ship");
    desk.say("phase s-1 approval");
    desk.say("phase s-1 initialize");
    desk.say("phase s-1 initialize");
    desk.say("phase s-1 discuss --json");
    desk.say("phase s-1 plan");
    for _ in 0..3 {
        desk.quietly(&["phase", "s-1", "discuss"]).line();
        desk.quietly(&["phase", "s-1", "plan"]).line();
    }
    desk.say("phase s-1 discuss");
    desk.run(&["agent", "create", "--agent", "a", "--purpose", "p", "--id", "a-1"]);
    desk.say("phase a-1 completed");
    desk.say("phase a-1 planning");
    desk.say("sessions --status success");
    drop(desk.well().create(Created::new("plain".parse().unwrap(), "t")).unwrap());
    desk.say("phase plain");
    desk.say("phase plain plan");
    assert_snapshot!(desk.transcript());
}

#[test]
fn the_state_of_work_has_a_goal_questions_and_answers() {
    let mut desk = Desk::new();
    session(&desk, "s-1", PhaseSet::Workflow);
    desk.run(&[
        "state",
        "s-1",
        "goal",
        "cookies, with key ghp_0123456789abcdefghijABCDEFGHIJ012345",
    ]);
    desk.run(&["state", "s-1", "ask", "Auth?"]);
    desk.run(&["state", "s-1", "ask", "Timeout?"]);
    desk.run(&["state", "s-1", "answer", "1", "no"]);
    desk.run(&["state", "s-1", "answer", "3", "no"]);
    desk.run(&["state", "s-1", "ask", " "]);
    desk.say("phase s-1 initialize");
    desk.say("state s-1 --markdown");
    desk.say("state s-1 --json");
    desk.run(&["state", "s-1", "goal", ""]);
    // What was used here goes by the real time.
    assert_snapshot!(desk.transcript());
}

#[test]
fn a_rewind_takes_tasks_and_phase_back() {
    let desk = Desk::new();
    let (well, id) = session(&desk, "s-1", PhaseSet::Workflow);
    desk.quietly(&["tasks", "s-1", "add", "one"]).line();
    let then = well.info(&id).unwrap().head.seq;
    let before = desk.quietly(&["state", "s-1", "--json"]).stdout;
    desk.quietly(&["tasks", "s-1", "update", "1", "--status", "done"]).line();
    desk.quietly(&["tasks", "s-1", "add", "two"]).line();
    desk.quietly(&["phase", "s-1", "initialize"]).line();
    desk.quietly(&["state", "s-1", "goal", "g"]);
    desk.quietly(&["state", "s-1", "ask", "q"]);
    let after = desk.quietly(&["state", "s-1", "--json"]).stdout;
    let held = well.lock(&id).unwrap();
    let rewind = held.rewind(then, Scope::Chat).unwrap();
    drop(held);
    assert_eq!(desk.quietly(&["state", "s-1", "--json"]).stdout, before);
    let work = well.work(&id).unwrap();
    assert_eq!(work.tasks.get("1").unwrap().status, TaskStatus::Pending);
    assert_eq!((work.tasks.len(), well.info(&id).unwrap().head.phase), (1, Some(Phase::Idle)));
    // A new task takes the place of the one that was taken back.
    desk.quietly(&["tasks", "s-1", "add", "another two"]).line();
    assert_eq!(well.work(&id).unwrap().tasks.get("2").unwrap().description, "another two");
    well.lock(&id).unwrap().undo_rewind(rewind).unwrap();
    assert_eq!(desk.quietly(&["state", "s-1", "--json"]).stdout, after);
}

#[test]
fn an_agent_plans_without_being_asked_and_in_every_built_in_agent() {
    for agent in ["build", "plan", "review"] {
        let desk = desk();
        let script = SCRIPT
            .replace("calls: [{tool: run_command, arguments: {command: 'true'}}]", "calls: []");
        desk.file("script.yaml", &script.replace("I wait.\n    calls: []", "I wait."));
        // Nobody can be asked here: a call that needs consent would pause the run.
        let ran = desk.quietly(&run(&["--agent", agent, "--json"]));
        assert_eq!(ran.code, Some(0), "{agent}: {}", ran.stderr);
        let tasks = desk.quietly(&["tasks", "@last", "--json"]).json();
        let stood: Vec<_> =
            tasks.iter().map(|it| (it["id"].clone(), it["status"].clone())).collect();
        let expected = [("look", "done"), ("fix", "running")];
        assert_eq!(stood, expected.map(|(id, status)| (id.into(), status.into())), "{agent}");
    }
}

#[test]
fn an_agent_that_is_rewound_finds_the_plan_as_it_was() {
    let desk = desk();
    assert_eq!(desk.quietly(&run(&["--mode", "yolo", "--max-steps", "2"])).code, Some(5));
    let log = desk.quietly(&["log", "@last"]).json();
    let step = log.iter().find(|event| event["kind"] == "step").unwrap()["seq"].as_u64().unwrap();
    let well = desk.well();
    let id = well.find("@last").unwrap();
    well.lock(&id).unwrap().rewind(Seq::new(step), Scope::Chat).unwrap();
    assert_eq!(well.work(&id).unwrap().tasks.count(TaskStatus::Pending), 2);
    // The second step is made once more, and changes the same tasks once more.
    assert_eq!(desk.quietly(&["resume", "@last", "--mode", "yolo"]).code, Some(0));
    assert_eq!(desk.quietly(&["log", "@last", "--kind", "task"]).json().len(), 2 + 2 + 2);
    let tasks = well.work(&id).unwrap().tasks;
    assert_eq!((tasks.len(), tasks.count(TaskStatus::Done)), (2, 1));
}

#[test]
fn a_secret_in_a_plan_is_not_written() {
    let desk = desk();
    let secret = "ghp_0123456789abcdefghijABCDEFGHIJ012345";
    desk.file("script.yaml", &SCRIPT.replace("fix it", &format!("use {secret}")));
    assert_eq!(desk.quietly(&run(&["--mode", "yolo"])).code, Some(0));
    let (tasks, log) = (desk.quietly(&["tasks", "@last"]), desk.quietly(&["log", "@last"]));
    assert!(tasks.stdout.contains("use [redacted:github-token]"), "{}", tasks.stdout);
    assert!(!log.stdout.contains(secret));
}

#[test]
fn a_plan_survives_a_kill_and_is_read_after_the_resume() {
    let mut desk = desk();
    let slow = SCRIPT.replace("command: 'true'", "command: 'sleep 600'");
    desk.file("script.yaml", &slow);
    let mut command = desk.command(&run(&["--mode", "yolo", "--events"]));
    command.env_remove("STEPWELL_NOW");
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
    let lines = BufReader::new(child.stdout.take().unwrap()).lines().map_while(Result::ok);
    let begun = lines
        .into_iter()
        .find(|line| line.contains("\"tool_started\"") && line.contains("run_command"));
    assert!(begun.is_some());
    // While it runs, its plan is its own, but its goal is anyone's.
    desk.say("tasks @last");
    let mut now = desk.command(&["tasks", "@last", "add", "meanwhile"]);
    let busy = now.env_remove("STEPWELL_NOW").output().unwrap();
    assert_eq!(busy.status.code(), Some(6));
    assert!(String::from_utf8_lossy(&busy.stderr).contains("is held by process"));
    assert_eq!(desk.quietly(&["state", "@last", "goal", "win"]).code, Some(0));
    child.kill().unwrap();
    child.wait().unwrap();
    desk.say("resume @last --mode yolo");
    desk.say("tasks @last");
    let log = desk.quietly(&["log", "@last", "--kind", "task"]).json();
    assert_eq!(log.len(), 4, "{log:?}");
    let told = desk.quietly(&["log", "@last", "--kind", "message"]).stdout;
    assert!(told.contains("cannot be running: it comes after look"), "{told}");
    assert!(told.contains("look [done] look at a|b (files a.txt)\\nfix [running]"), "{told}");
    assert_snapshot!(desk.transcript());
}

#[test]
fn state_and_tasks_are_mirrored_as_they_change() {
    let mut desk = desk();
    desk.file("stepwell.toml", "[sessions]\nmirror_markdown = true\n");
    let slow = SCRIPT.replace("command: 'true'", "command: 'cat .stepwell/TASKS.md > seen.md'");
    desk.file("script.yaml", &slow);
    assert_eq!(desk.quietly(&run(&["--mode", "yolo", "--phases", "workflow"])).code, Some(0));
    // The run itself kept them current, and not only its end.
    assert_eq!(desk.read("seen.md"), desk.read(".stepwell/TASKS.md"));
    let both = |desk: &Desk| {
        let text = desk.read(".stepwell/STATE.md") + &desk.read(".stepwell/TASKS.md");
        desk.redact(&text)
    };
    let mut all = both(&desk);
    desk.quietly(&["tasks", "@last", "update", "fix", "--status", "done"]).line();
    desk.quietly(&["phase", "@last", "initialize"]).line();
    desk.quietly(&["state", "@last", "goal", "win"]);
    all.push_str(&both(&desk));
    for name in ["STATE.md", "TASKS.md"] {
        let mode =
            std::fs::metadata(desk.work().join(".stepwell").join(name)).unwrap().permissions();
        assert_eq!(mode.mode() & 0o777, 0o600);
    }
    // Looking changes nothing, and what is erased is erased there too.
    std::fs::write(desk.work().join(".stepwell/TASKS.md"), "mine").unwrap();
    desk.say("sessions");
    assert_eq!(desk.read(".stepwell/TASKS.md"), "mine");
    assert_eq!(desk.quietly(&["purge", "@last", "--yes"]).code, Some(0));
    assert!(!desk.work().join(".stepwell/TASKS.md").exists());
    assert!(!desk.work().join(".stepwell/STATE.md").exists());
    assert_snapshot!(all);
}

#[test]
fn nothing_is_mirrored_unless_it_is_wanted() {
    let desk = desk();
    assert_eq!(desk.quietly(&run(&["--mode", "yolo"])).code, Some(0));
    assert!(!desk.work().join(".stepwell/TASKS.md").exists());
    desk.file("stepwell.toml", "[sessions]\nmirror_markdown = true\nauto_save = false\n");
    std::fs::remove_dir_all(desk.work().join(".stepwell")).unwrap();
    assert_eq!(desk.quietly(&run(&["--mode", "yolo"])).code, Some(0));
    assert!(!desk.work().join(".stepwell").exists());
}

#[test]
fn many_shells_plan_at_once_and_nothing_is_lost() {
    let desk = Desk::new();
    session(&desk, "s-1", PhaseSet::Workflow);
    desk.file("stepwell.toml", "[sessions]\nmirror_markdown = true\n");
    let mut children: Vec<_> = (0..12)
        .map(|n| {
            let text = format!("task {n}");
            let mut command = desk.command(&["tasks", "s-1", "add", &text]);
            command.env_remove("STEPWELL_NOW").stdout(Stdio::null()).spawn().unwrap()
        })
        .collect();
    assert!(children.iter_mut().all(|child| child.wait().unwrap().success()));
    let plan = desk.quietly(&["tasks", "s-1", "--markdown"]).stdout;
    assert_eq!(plan.lines().count(), 4 + 12);
    assert_eq!(desk.read(".stepwell/TASKS.md"), plan);
}

#[test]
fn a_pinned_message_is_no_change_of_the_goal() {
    let desk = desk();
    assert_eq!(desk.quietly(&run(&["--mode", "yolo"])).code, Some(0));
    let last = || desk.quietly(&["state", "@last", "--json"]).json()[0]["last_action"].clone();
    let before = last();
    let message = desk.quietly(&["log", "@last", "--kind", "message"]).json()[0]["seq"].to_string();
    let ran = desk.quietly(&["pin-message", "@last", &message]);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    assert_eq!(last(), before);
    assert_eq!(desk.quietly(&["state", "@last", "goal", "ship it"]).code, Some(0));
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
    let desk = crate::running::desk(script);
    let args = ["run", "build it", "--model", "script:script.yaml", "--phases", "workflow"];
    crate::running::one(&desk, &args, 0);
    let state = crate::running::one(&desk, &["state", "@last"], 0);
    assert_eq!(state["phase"], "execute");
    // The goal is the task unless another is set, and something is said to have happened.
    assert_eq!(state["goal"], "build it");
    assert_eq!(state["last_action"], "step 4 was done");
    let points = desk.quietly(&["checkpoint", "@last", "--json"]).json();
    let names: Vec<_> = points.iter().map(|it| it["name"].as_str().unwrap()).collect();
    assert!(names.contains(&"phase-initialize") && names.contains(&"phase-execute"), "{names:?}");
    assert!(!names.contains(&"phase-ship"));
    let log = desk.quietly(&["log", "@last", "--json"]).stdout;
    assert!(log.contains("initialize cannot move to ship"), "{log}");
    // A session without phases has no such tool.
    crate::running::one(&desk, &["run", "again", "--model", "script:script.yaml"], 0);
    let plain = desk.quietly(&["log", "@last", "--kind", "phase"]).stdout;
    assert_eq!(plain, "");
}
