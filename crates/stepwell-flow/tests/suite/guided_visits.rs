//! The recorded questions and visits of guided work, and their effect on a resumed walk.

use serde_json::{Value, json};
use stepwell::model::{Node, NodeState, Phase, Question, Scope, Task, TaskStatus};
use stepwell::{Event, Seq, Status};
use stepwell_agent::permission::Mode;

use crate::guided::{calculator, came, done, plan, project, run, says, script, work, writes};
use crate::harness::{Harness, id};

fn asks(question: &str) -> Value {
    says(json!({ "question": question, "suggestions": ["yes", "no"] }))
}

/// The prompts of a lane's agent, in order.
fn told(harness: &Harness, lane: &str) -> Vec<String> {
    let events = harness.events().into_iter();
    let told = events.filter_map(|event| match event.event {
        Event::Message(it)
            if it.lane.as_str() == lane && it.role == stepwell::model::Role::User =>
        {
            Some(it.text())
        }
        _ => None,
    });
    told.collect()
}

#[test]
fn a_skipped_question_is_recorded_as_skipped_and_told_as_not_answered() {
    let dir = tempfile::tempdir().unwrap();
    let root = dir.path().join("project");
    project(&root);
    let mut script = script();
    script["lanes"]["discuss"] = json!([asks("Colour?"), asks("Negative?"), asks("Auth?")]);
    let harness = work(&root, "", &script)
        .answering("work/question/1", "skip")
        .answering("work/question/2", "2")
        .answering("work/question/3", "skip all")
        .answering("work/approve/1", "stop");
    assert_eq!(run(&harness).status, Status::Partial);
    let asked = [
        Question::new("1", "Colour?").skip(),
        Question::new("2", "Negative?").with_answer("no"),
        Question::new("3", "Auth?").skip(),
    ];
    assert_eq!(came(&harness).questions, asked);
    let not_answered = "(not answered: the user skipped it; decide it yourself)";
    let discussed = told(&harness, "discuss");
    assert!(discussed[1].starts_with(&format!("The user's answer: {not_answered}")));
    assert!(discussed[2].starts_with("The user's answer: no"), "{discussed:?}");
    let planned = &told(&harness, "plan")[0];
    let said = format!(
        "# What the user said\n- Colour? {not_answered}\n- Negative? no\n- Auth? {not_answered}\n"
    );
    assert!(planned.contains(&said), "{planned}");
}

/// The seq of a node's event in this state.
fn node_at(harness: &Harness, wanted: &str, is: NodeState, after: Seq) -> Option<Seq> {
    let its = |event: &Event| matches!(event, Event::Node(Node { key, state, .. }) if key == wanted && *state == is);
    let events = harness.events().into_iter();
    events.filter(|event| event.seq > after).find(|it| its(&it.event)).map(|it| it.seq)
}

#[test]
fn repairs_wait_for_their_own_visit_however_early_the_run_was_cut_off() {
    let dir = tempfile::tempdir().unwrap();
    let harness = calculator(dir.path()).answering("work/ship/1", "no");
    assert_eq!(run(&harness).status, Status::Success);
    // The state after a process died between recording the repairs and the next phase.
    let planned = node_at(&harness, "work/repairs/1", NodeState::Done, Seq::ZERO).unwrap();
    let well = harness.well();
    well.lock(&id()).unwrap().rewind(planned.next(), Scope::Chat).unwrap();
    let tasks = well.work(&id()).unwrap().tasks;
    assert_eq!(tasks.get("fix-1-1").unwrap().status, TaskStatus::Pending);
    assert_eq!(well.info(&id()).unwrap().head.phase, Some(Phase::Verify));
    let rewound = well.info(&id()).unwrap().head.seq;
    drop(well);
    assert_eq!(run(&harness).status, Status::Success);
    let entered = node_at(&harness, "phase/execute/2", NodeState::Started, rewound).unwrap();
    let began = node_at(&harness, "attempt/fix-1-1/1", NodeState::Started, rewound).unwrap();
    assert!(entered < began, "the repair is part of its own visit: {entered} {began}");
    let tasks = harness.well().work(&id()).unwrap().tasks;
    assert_eq!(tasks.len(), 3, "none is made twice");
    assert_eq!(tasks.get("fix-1-1").unwrap().status, TaskStatus::Done);
}

#[test]
fn a_task_that_was_given_up_in_a_repair_is_told_of_once() {
    let dir = tempfile::tempdir().unwrap();
    let root = dir.path().join("project");
    project(&root);
    let pass = says(json!({ "verdict": "pass" }));
    let failed = says(json!({ "status": "failed", "summary": "no way" }));
    let script = json!({ "lanes": {
        "plan": [says(plan(&["sh test.sh"]))],
        "task-1": [writes("calc.sh", "echo 4\n"), done()],
        "task-2": [done()],
        "task-fix-1-1": [failed],
        "review": [pass, pass, pass, pass],
    }});
    let more = "    yes: [discuss, plan]\n    on_failure: give_up\n    rounds: 2\n";
    let harness = work(&root, more, &script);
    let left = run(&harness).error.unwrap().to_string();
    assert_eq!(left, "the work is not done: task fix-1-1 (unrecoverable)");
    // The resume continues without it, and does not report it again.
    let left = run(&harness).error.unwrap().to_string();
    assert!(left.starts_with("after 2 rounds of verification this is left"), "{left}");
}

#[test]
fn a_task_that_was_given_up_does_not_stop_the_work_after_every_round() {
    let dir = tempfile::tempdir().unwrap();
    let root = dir.path().join("project");
    project(&root);
    let pass = says(json!({ "verdict": "pass" }));
    let failed = says(json!({ "status": "failed", "summary": "no way" }));
    let mut plan = plan(&["sh test.sh"]);
    plan["run"] = Value::Null;
    let script = json!({ "lanes": {
        "plan": [says(plan)],
        "task-1": [failed],
        // Two repairs that change nothing, before the third one helps.
        "task-fix-1-1": [done()],
        "task-fix-2-1": [done()],
        "task-fix-3-1": [writes("calc.sh", "echo $(($1 + $2))\n"), done()],
        "review": [pass, pass, pass, pass],
        "ship": [says("calc: adds")],
    }});
    let more = "    yes: [discuss, plan, execute, ship]\n    on_failure: give_up\n    rounds: 5\n";
    let harness = work(&root, more, &script);
    let left = run(&harness).error.unwrap().to_string();
    assert_eq!(left, "the work is not done: task 1 (unrecoverable)");
    let ended = run(&harness);
    assert_eq!(ended.status, Status::Success, "one resume goes on without it: {ended:?}");
}

#[test]
fn a_task_that_its_user_adds_while_it_is_verified_is_done_before_it_ships() {
    let dir = tempfile::tempdir().unwrap();
    let root = dir.path().join("project");
    project(&root);
    let pass = says(json!({ "verdict": "pass" }));
    let mut plan = plan(&["true"]);
    plan["run"] = Value::Null;
    let script = json!({ "lanes": {
        "plan": [says(plan)],
        "task-*": [done()],
        "review": [pass, pass],
    }});
    let mut harness = work(&root, "    yes: [discuss, plan, execute, ship]\n", &script);
    // The plan is not approved, so its check needs an approval in verify.
    harness.mode = Mode::ConfirmSensitive;
    let ended = run(&harness);
    assert_eq!(ended.status, Status::Paused, "{ended:?}");
    let more = Task { id: "more".to_owned(), description: "More".to_owned(), ..Task::default() };
    harness.well().lock(&id()).unwrap().append(more).unwrap();
    harness.answer(&ended.open[0].id, "yes");
    let ended = run(&harness);
    assert_eq!(ended.status, Status::Paused, "another round of the check: {ended:?}");
    harness.answer(&ended.open[0].id, "yes");
    let ended = run(&harness);
    assert_eq!(ended.status, Status::Success, "{ended:?}");
    let came = came(&harness);
    assert_eq!(came.tasks[2], ("more".to_owned(), TaskStatus::Done));
    let entered: Vec<&str> = came.phases.iter().map(|(_, to)| to.as_str()).collect();
    assert_eq!(entered[3..], ["execute", "verify", "execute", "verify", "ship"]);
}

#[test]
fn a_task_that_its_user_adds_before_the_plan_is_approved_stays_and_is_done() {
    let dir = tempfile::tempdir().unwrap();
    let root = dir.path().join("project");
    project(&root);
    let mut plan = plan(&[]);
    plan["run"] = Value::Null;
    let script = json!({ "lanes": {
        "plan": [says(plan)],
        "task-*": [done()],
        "review": [says(json!({ "verdict": "pass" }))],
    }});
    let harness = work(&root, "    yes: [discuss, execute, ship]\n", &script);
    assert_eq!(run(&harness).status, Status::Paused);
    let own = Task { id: "1".to_owned(), description: "Mine".to_owned(), ..Task::default() };
    harness.well().lock(&id()).unwrap().append(own).unwrap();
    harness.answer("work/approve/1", "approve");
    let ended = run(&harness);
    assert_eq!(ended.status, Status::Success, "{ended:?}");
    let tasks = harness.well().work(&id()).unwrap().tasks;
    let said: Vec<_> = tasks.iter().map(|task| (&*task.id, &*task.description)).collect();
    assert_eq!(said, [("1", "Mine"), ("3", "Write calc.sh"), ("2", "Say how")]);
    assert_eq!(tasks.get("2").unwrap().deps, ["3"]);
    assert_eq!(tasks.count(TaskStatus::Done), 3);
}

#[test]
fn a_task_may_use_as_much_as_can_be_said() {
    let dir = tempfile::tempdir().unwrap();
    let root = dir.path().join("project");
    project(&root);
    let mut script = script();
    script["lanes"]["plan"] = json!([says(plan(&["sh test.sh"]))]);
    let more = format!(
        "    yes: [discuss, plan, execute, ship]\n    task_budget: {{max_tokens: {}}}\n",
        u64::MAX
    );
    // Its second task is repaired, which is a second attempt.
    let ended = run(&work(&root, &more, &script));
    assert_eq!(ended.status, Status::Success, "{ended:?}");
}
