//! Runs as handles: started, watched, interrupted, resumed, forked, rewound.

use stepwell::model::{Answer, Scope};
use stepwell::{Status, StopReason};
use stepwell_agent::provider::Delta;
use stepwell_runtime::{Error, ForkRequest, ResumeRequest, RewindRequest, RunEvent, RunRequest};

use crate::test_env::{ASKS, TestEnv, asked};

#[test]
fn a_run_is_started_watched_answered_interrupted_resumed_forked_and_rewound() {
    let env = TestEnv::new();
    let handle = env.start(ASKS);
    let id = handle.id().clone();
    let mut events = handle.events();
    // Interrupted while it asks.
    asked(&mut events);
    handle.interrupt();
    assert!(matches!(events.last(), Some(RunEvent::Ended { status: Status::Interrupted, .. })));
    let report = handle.join().unwrap();
    assert_eq!((report.status, report.waiting.len()), (Status::Interrupted, 1));
    // Resumed, and answered from another thread.
    let handle = env.runtime.resume(env.resume(&id)).unwrap();
    let mut events = handle.events();
    let open = asked(&mut events);
    std::thread::scope(|scope| {
        scope.spawn(|| handle.answer(&open.gate.id, Answer::ALLOW_ONCE, "ann@desk").unwrap());
    });
    let report = handle.join().unwrap();
    assert_eq!((report.status, report.output.as_str()), (Status::Success, "Made."));
    assert_eq!((env.ran(), env.gates(&id)), (1, (1, 1)), "asked once, and ran once");
    assert_eq!(report.files_modified, ["made.txt"]);
    let told: Vec<RunEvent> = events.collect();
    assert!(told.iter().any(|it| matches!(it, RunEvent::ToolFinished { .. })), "{told:?}");
    // A fork shares its past; a rewind takes the file back.
    let fork = ForkRequest { session: id.clone(), at: None, label: Some("try".to_owned()) };
    let fork = env.runtime.fork(&fork).unwrap();
    assert_eq!(
        env.runtime.workspace().open_session("try", stepwell::sqlite::Access::Read).unwrap().1,
        fork.session
    );
    let to = open.seq;
    let rewind = RewindRequest::new(id.clone(), to, Scope::Both);
    env.runtime.rewind(&rewind).unwrap();
    assert_eq!(env.ran(), 0);
}

#[test]
fn a_session_whose_run_has_just_ended_is_resumed_once_it_lets_go() {
    let env = TestEnv::new();
    let handle = env.start("- {text: Done.}\n- {text: Again.}");
    let id = handle.id().clone();
    handle.join().unwrap();
    let well = env.runtime.workspace().open_existing(stepwell::sqlite::Access::Write).unwrap();
    let held = well.lock(&id).unwrap();
    std::thread::scope(|scope| {
        let resumed = scope.spawn(|| {
            let more = env.resume(&id);
            env.runtime.resume(ResumeRequest { say: Some("again".to_owned()), ..more })
        });
        for _ in 0..200 {
            assert!(well.info(&id).unwrap().held.is_some() && !resumed.is_finished());
        }
        drop(held);
        let report = resumed.join().unwrap().unwrap().join().unwrap();
        assert_eq!(report.status, Status::Success);
    });
}

#[test]
fn who_listens_first_is_told_every_piece_of_what_was_said_before() {
    let env = TestEnv::new();
    let handle = env.start(ASKS);
    while handle.open_gates().is_empty() {
        std::thread::yield_now();
    }
    let mut events = handle.events();
    let before = std::iter::from_fn(|| events.try_next());
    let said: String = before
        .filter_map(|event| match event {
            RunEvent::Delta(Delta::Text(text)) => Some(text),
            _ => None,
        })
        .collect();
    assert_eq!(said, "I make it.");
    handle.interrupt();
    handle.join().unwrap();
}

#[test]
fn what_a_run_tells_is_plain_data() {
    let env = TestEnv::new();
    let handle = env.start("- {text: Done.}");
    let told: Vec<RunEvent> = handle.events().collect();
    for event in &told {
        let json = serde_json::to_value(event).unwrap();
        assert!(json["event"].is_string(), "{json}");
    }
    assert!(matches!(told.last(), Some(RunEvent::Ended { status: Status::Success, .. })));
    // Several listen, and a late one hears the rest.
    assert_eq!(handle.events().count(), 0);
    assert_eq!(handle.join().unwrap().reason, Some(StopReason::LlmDone));
}

#[test]
fn dropping_a_handle_interrupts_its_run() {
    let env = TestEnv::new();
    let handle = env.start(ASKS);
    let (id, mut events) = (handle.id().clone(), handle.events());
    asked(&mut events);
    drop(handle);
    assert!(matches!(events.last(), Some(RunEvent::Ended { status: Status::Interrupted, .. })));
    assert_eq!((env.ran(), env.gates(&id)), (0, (1, 0)));
}

#[test]
fn what_cannot_begin_leaves_nothing_behind() {
    let env = TestEnv::new();
    let refused = env.runtime.start(RunRequest::new("make it"));
    let remedies = refused.unwrap_err().remedies();
    assert!(matches!(remedies[..], [stepwell::Remedy::Model { .. }]), "{remedies:?}");
    let request = RunRequest { options: env.options("- {text: Done.}"), ..RunRequest::new("x") };
    request.interrupt.ask();
    assert!(matches!(env.runtime.start(request), Err(Error::Interrupted)));
    assert!(!env.runtime.workspace().place.has_store());
}

#[test]
fn a_session_that_runs_is_not_resumed_beside_it() {
    let env = TestEnv::new();
    let handle = env.start(ASKS);
    let mut events = handle.events();
    asked(&mut events);
    let refused = env.elsewhere().resume(env.resume(handle.id()));
    let error = refused.expect_err("it runs");
    assert!(error.holder().is_some(), "{error}");
}
