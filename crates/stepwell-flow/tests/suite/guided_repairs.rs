//! Repairs after verification, and reopened tasks.

use serde_json::{Value, json};
use stepwell::model::{Task, TaskStatus};
use stepwell::{NewEvent, Status};

use crate::guided::{came, done, plan, project, run, says, work, writes};
use crate::harness::{Harness, id};

/// Scripted work in a new project.
fn begin(dir: &tempfile::TempDir, more: &str, script: &Value) -> Harness {
    let root = dir.path().join("project");
    project(&root);
    work(&root, more, script)
}

/// A plan of one task of this name, with a check that fails until calc.sh adds.
fn one_task(id: &str) -> Value {
    let task = json!({ "id": id, "action": "create", "description": "Write calc.sh",
                       "files": ["calc.sh"] });
    json!({ "tasks": [task], "checks": ["sh test.sh"] })
}

const AGREED: &str = "    yes: [discuss, plan, execute, ship]\n";

#[test]
fn a_repair_takes_a_name_that_no_task_has() {
    let dir = tempfile::tempdir().unwrap();
    let pass = says(json!({ "verdict": "pass" }));
    let script = json!({ "lanes": {
        "plan": [says(one_task("fix-1-1"))],
        "task-fix-1-1": [writes("calc.sh", "echo 4\n"), done()],
        "task-fix-1-2": [writes("calc.sh", "echo 5\n"), done()],
        "review": [pass, pass],
        "ship": [says("calc: five")],
    }});
    let harness = begin(&dir, AGREED, &script);
    let ended = run(&harness);
    assert_eq!(ended.status, Status::Success, "{ended:?}");
    let done = |id: &str| (id.to_owned(), TaskStatus::Done);
    assert_eq!(came(&harness).tasks, [done("fix-1-1"), done("fix-1-2")]);
}

#[test]
fn a_plan_without_room_for_a_repair_ends_partial_and_is_verified_again() {
    let dir = tempfile::tempdir().unwrap();
    let pass = says(json!({ "verdict": "pass" }));
    let script = json!({ "lanes": {
        "plan": [says(one_task("1"))],
        "task-1": [writes("calc.sh", "echo 4\n"), done()],
        "review": [pass, pass, pass],
        "ship": [says("calc: five")],
    }});
    let harness = begin(&dir, "    yes: [discuss, execute, ship]\n", &script);
    assert_eq!(run(&harness).status, Status::Paused);
    let others = (2..=500).map(|n| Task {
        id: n.to_string(),
        description: "x".to_owned(),
        status: TaskStatus::Done,
        ..Task::default()
    });
    let others: Vec<NewEvent> = others.map(NewEvent::from).collect();
    harness.well().lock(&id()).unwrap().append_all(others).unwrap();
    harness.answer("work/approve/1", "approve");
    for round in ["1 round", "2 rounds"] {
        let ended = run(&harness);
        assert_eq!(ended.status, Status::Partial, "{ended:?}");
        let left = ended.error.unwrap().to_string();
        let begins = format!("after {round} of verification this is left: check `sh test.sh`");
        assert!(left.starts_with(&begins), "{left}");
        assert!(left.contains("The plan has 500 tasks"), "{left}");
    }
    std::fs::write(harness.root.join("calc.sh"), "echo 5\n").unwrap();
    let ended = run(&harness);
    assert_eq!(ended.status, Status::Success, "{ended:?}");
    assert_eq!(came(&harness).tasks.len(), 500);
}

#[test]
fn files_of_a_review_that_are_none_are_left_out() {
    let dir = tempfile::tempdir().unwrap();
    let mut files = vec!["a\u{1}b".to_owned(), "../../etc/passwd".to_owned(), "x".repeat(5_000)];
    files.extend((0..200).map(|n| format!("{n}.txt")));
    let found = json!({ "verdict": "fail", "issues": [{ "description": "mend", "files": files }] });
    let script = json!({ "lanes": {
        "plan": [says(one_task("1"))],
        "task-1": [writes("calc.sh", "echo 5\n"), done()],
        "task-fix-1-1": [done()],
        "review": [says(found), says(json!({ "verdict": "pass" }))],
        "ship": [says("calc: five")],
    }});
    let harness = begin(&dir, AGREED, &script);
    let ended = run(&harness);
    assert_eq!(ended.status, Status::Success, "{ended:?}");
    let tasks = harness.well().work(&id()).unwrap().tasks;
    let files = &tasks.get("fix-1-1").unwrap().files;
    assert_eq!((files.len(), &*files[0]), (20, "0.txt"));
}

/// Reopens a task, as loading a plan does.
fn open_again(harness: &Harness, task: &str) {
    let well = harness.well();
    let task = well.work(&id()).unwrap().tasks.get(task).unwrap().clone();
    let open = Task { status: TaskStatus::Pending, ..task };
    well.lock(&id()).unwrap().append(open).unwrap();
}

#[test]
fn a_task_that_is_opened_again_is_worked_on_and_may_be_given_up_again() {
    let dir = tempfile::tempdir().unwrap();
    let failed = says(json!({ "status": "failed", "summary": "no way" }));
    let pass = says(json!({ "verdict": "pass" }));
    let mut plan = plan(&[]);
    plan["run"] = Value::Null;
    plan["tasks"][1]["after"] = json!([]);
    let script = json!({ "lanes": {
        "plan": [says(plan)],
        "task-1": [failed.clone()],
        "task-1/2": [failed],
        "task-1/3": [writes("calc.sh", "echo 5\n"), done()],
        "task-2": [done()],
        "review": [pass.clone(), pass.clone(), pass],
        "ship": [says("calc: five")],
    }});
    let harness = begin(&dir, "    yes: [discuss, plan]\n", &script)
        .answering("decide/1/1", "give up")
        .answering("decide/1/2", "give up")
        .answering("work/ship/1", "commit");
    for _ in 0..2 {
        let ended = run(&harness);
        assert_eq!(ended.status, Status::Partial, "{ended:?}");
        let left = ended.error.unwrap().to_string();
        assert_eq!(left, "the work is not done: task 1 (unrecoverable)");
        open_again(&harness, "1");
    }
    let ended = run(&harness);
    assert_eq!(ended.status, Status::Success, "{ended:?}");
    let output = ended.output.as_str().unwrap();
    assert!(output.starts_with("2 of 2 tasks done"), "{output}");
}

#[test]
fn a_task_that_is_opened_again_has_all_of_its_attempts() {
    let dir = tempfile::tempdir().unwrap();
    let failed = says(json!({ "status": "failed", "summary": "no way" }));
    let pass = says(json!({ "verdict": "pass" }));
    let script = json!({ "lanes": {
        "plan": [says(one_task("1"))],
        "task-1": vec![failed.clone(); 3],
        "task-1/4": [failed.clone(), failed, writes("calc.sh", "echo 5\n"), done()],
        "review": [pass],
        "ship": [says("calc: five")],
    }});
    let harness = begin(&dir, AGREED, &script);
    let ended = run(&harness);
    assert_eq!(ended.status, Status::Partial, "three attempts, and it is given up: {ended:?}");
    open_again(&harness, "1");
    let ended = run(&harness);
    assert_eq!(ended.status, Status::Success, "the sixth attempt helps: {ended:?}");
    assert_eq!(came(&harness).tasks, [("1".to_owned(), TaskStatus::Done)]);
}
