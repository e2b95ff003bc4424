//! A run, as somebody elsewhere sees it.

use std::process::Command;

use stepwell::Status;
use stepwell::model::Answer;
use stepwell_runtime::{EventStream, FlowOptions, Given, OpenGate, RunEvent};

use crate::test_env::{TestEnv, asked};

/// An agent whose subagent wants to run a command, in a workspace that git keeps.
fn env() -> (TestEnv, String) {
    let env = TestEnv::new();
    let (root, made) = (env.root(), env.root().join("made.txt"));
    let worker = format!(
        "- {{calls: [{{tool: run_command, arguments: {{command: 'echo x >> {}'}}}}]}}\n- {{text: Made.}}\n",
        made.display()
    );
    std::fs::write(root.join("worker.yaml"), worker).unwrap();
    let agent = "[agents.worker]\nprompt = \"Work.\"\nmodel = \"script:worker.yaml\"\n";
    std::fs::write(root.join("stepwell.toml"), agent).unwrap();
    std::fs::write(root.join(".gitignore"), ".stepwell/\n").unwrap();
    for args in [
        &["init", "-q", "-b", "main"][..],
        &["add", "."],
        &["-c", "user.name=a", "-c", "user.email=a@b", "commit", "-q", "-m", "begin"],
    ] {
        assert!(Command::new("git").arg("-C").arg(&root).args(args).status().unwrap().success());
    }
    let hands_on = "{tool: dispatch_subagent, arguments: \
                    {task: make it, agent: worker, workspace: worktree}}";
    (env, format!("- {{calls: [{hands_on}]}}\n- {{text: Done.}}\n"))
}

/// The next question of a subagent, skipping the run's own.
fn asked_below(events: &mut EventStream) -> OpenGate {
    let below = |event: RunEvent| match event {
        RunEvent::Child { event, .. } => match *event {
            RunEvent::Approval(open) => Some(*open),
            _ => None,
        },
        _ => None,
    };
    events.find_map(below).expect("a subagent asks")
}

#[test]
fn whoever_is_attached_sees_what_a_subagent_asks_and_answers_it() {
    let (env, script) = env();
    // The agents of the workspace are known to whoever comes after they were written.
    let runtime = env.elsewhere();
    let options = env.options(&script);
    let request =
        stepwell_runtime::RunRequest { options, ..stepwell_runtime::RunRequest::new("make it") };
    let handle = runtime.start(request).unwrap();
    let id = handle.id().clone();
    let own = asked(&mut handle.events());
    // One is there before the subagent begins, one comes when it waits.
    let elsewhere = env.elsewhere();
    let early = elsewhere.attach(&id, own.seq).unwrap();
    let mut events = early.events();
    handle.answer(&own.gate.id, Answer::ALLOW_ONCE, "ann@desk").unwrap();
    let open = asked_below(&mut events);
    assert_ne!(open.session, id);
    let late = elsewhere.attach(&id, own.seq).unwrap();
    assert_eq!(asked_below(&mut late.events()).gate.id, open.gate.id);
    let given = Given { gate: Some(open.gate.id.clone()), answer: Answer::from("yes") };
    elsewhere.answer(&open.session, &given, &FlowOptions::default()).unwrap();
    let answered = |event: RunEvent| match event {
        RunEvent::Child { event, .. } => match *event {
            RunEvent::Answered(answer) => Some(answer),
            _ => None,
        },
        _ => None,
    };
    let answer = events.find_map(answered).expect("the answer is told");
    assert_eq!((answer.session, answer.answer.allows()), (open.session, true));
    assert_eq!(handle.join().unwrap().status, Status::Success);
    assert_eq!(env.ran(), 1);
    // It ends with the run.
    assert!(events.any(|event| matches!(event, RunEvent::Ended { .. })));
}
