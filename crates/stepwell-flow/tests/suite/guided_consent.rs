//! Approvals and denials in guided work, and their effects.

use serde_json::{Value, json};
use stepwell::Status;
use stepwell::model::{Answer, GateAnswered, TaskStatus};
use stepwell_agent::permission::Mode;

use crate::guided::{came, done, project, ran_checks, run, says, work, writes};
use crate::harness::{Harness, id};

fn plan(checks: &[&str]) -> Value {
    let task = json!({ "id": "1", "action": "create", "description": "Write calc.sh",
                       "files": ["calc.sh"] });
    json!({ "tasks": [task], "checks": checks })
}

fn script(checks: &[&str]) -> Value {
    json!({ "lanes": {
        "discuss": [says(json!({ "done": true }))],
        "plan": [says(plan(checks))],
        "task-1": [writes("calc.sh", "echo one\n"), done(), writes("calc.sh", "echo 5\n"), done()],
        "review": [says(json!({ "verdict": "pass" }))],
        "ship": [says("calc: one line")],
    } })
}

/// Scripted work in a new project.
fn begin(dir: &tempfile::TempDir, more: &str, script: &Value) -> Harness {
    let root = dir.path().join("project");
    project(&root);
    work(&root, more, script)
}

/// The id and text of the only open question.
fn pauses(harness: &Harness) -> (String, String) {
    let ended = run(harness);
    assert_eq!(ended.status, Status::Paused, "{ended:?}");
    let [gate] = &*ended.open else { panic!("{:?}", ended.open) };
    (gate.id.clone(), gate.prompt.clone())
}

fn decide(harness: &Harness, gate: String, answer: Answer) {
    harness.well().answer(&id(), GateAnswered::new(gate, answer, "a colleague")).unwrap();
}

#[test]
fn a_task_whose_agent_was_allowed_nothing_has_failed_and_its_user_says_what_now() {
    let dir = tempfile::tempdir().unwrap();
    let mut harness = begin(&dir, "    yes: [discuss, plan]\n", &script(&[]));
    harness.mode = Mode::ConfirmAll;
    let (call, prompt) = pauses(&harness);
    assert!(prompt.contains("calc.sh"), "{prompt}");
    decide(&harness, call, Answer::deny("use tabs"));
    let (question, prompt) = pauses(&harness);
    assert_eq!(question, "decide/1/1");
    assert!(prompt.contains("Task 1 failed") && prompt.contains("use tabs"), "{prompt}");
    assert_eq!(came(&harness).tasks, [("1".to_owned(), TaskStatus::Failed)]);
    harness.answer(&question, "repair: with tabs");
    let (call, _) = pauses(&harness);
    decide(&harness, call, Answer::ALLOW_ONCE);
    assert_eq!(pauses(&harness).0, "work/ship/1");
    assert_eq!(came(&harness).tasks, [("1".to_owned(), TaskStatus::Done)]);
    assert_eq!(std::fs::read_to_string(harness.root.join("calc.sh")).unwrap(), "echo 5\n");
}

#[test]
fn a_check_that_may_not_run_is_told_in_what_the_work_came_to() {
    let dir = tempfile::tempdir().unwrap();
    let mut script = script(&["sh test.sh"]);
    script["lanes"]["task-1"] = json!([done()]);
    let mut harness = begin(&dir, "    yes: [discuss, plan, execute, ship]\n", &script);
    harness.mode = Mode::ConfirmSensitive;
    let (check, prompt) = pauses(&harness);
    assert!(prompt.contains("sh test.sh"), "{prompt}");
    decide(&harness, check, Answer::deny("not here"));
    let ended = run(&harness);
    assert_eq!((ended.status, ran_checks(&harness)), (Status::Success, 0), "{ended:?}");
    let output = ended.output.as_str().unwrap();
    assert!(output.contains("not checked, because it may not run: `sh test.sh`"), "{output}");
}

#[test]
fn only_what_was_shown_is_committed() {
    let dir = tempfile::tempdir().unwrap();
    let harness = begin(&dir, "    yes: [discuss, plan, execute]\n", &script(&[]));
    let (ship, prompt) = pauses(&harness);
    assert!(prompt.contains("+echo one"), "{prompt}");
    std::fs::write(harness.root.join("calc.sh"), "echo one\necho two\n").unwrap();
    harness.answer(&ship, "message: calc: my words");
    let (again, prompt) = pauses(&harness);
    assert_eq!((&*ship, &*again), ("work/ship/1", "work/ship/2"));
    assert!(prompt.starts_with("The files were changed after you were asked"), "{prompt}");
    assert!(prompt.contains("+echo two") && prompt.contains("calc: my words"), "{prompt}");
    assert_eq!(came(&harness).commits, ["begin"]);
    harness.answer(&again, "commit");
    let ended = run(&harness);
    assert_eq!(ended.status, Status::Success, "{ended:?}");
    assert_eq!(came(&harness).commits, ["calc: my words", "begin"]);
}
