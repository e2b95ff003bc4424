//! Approvals: on record first, answered by whoever is first, and never twice.

use stepwell::model::{Answer, Choice, Grant, Mode, Role};
use stepwell::sqlite::Access;
use stepwell::{Event, Status};
use stepwell_agent::permission::Rule;
use stepwell_runtime::inspect::open_gates;
use stepwell_runtime::{
    Error, FlowOptions, Given, Patience, ResumeRequest, RunEvent, RunOptions, RunRequest,
    SayRequest,
};

use crate::test_env::{ASKS, TestEnv, asked};

#[test]
fn an_agent_neither_answers_nor_speaks_for_its_user() {
    let env = TestEnv::new();
    let handle = env.start(ASKS);
    let id = handle.id().clone();
    asked(&mut handle.events());
    handle.interrupt();
    handle.join().unwrap();
    let agent = env.inside_run();
    let given = Given { gate: None, answer: Answer::from("yes") };
    let refused = agent.answer(&id, &given, &FlowOptions::default()).err();
    assert!(matches!(refused, Some(Error::OnlyPeople { .. })), "{refused:?}");
    let words = SayRequest { text: "go on".to_owned(), lane: None, now: false };
    let refused = agent.say(&id, words).err();
    assert!(matches!(refused, Some(Error::OnlyPeople { .. })), "{refused:?}");
    let mut speaking = env.resume(&id);
    speaking.say = Some("go on".to_owned());
    let refused = agent.resume(speaking).err();
    assert!(matches!(refused, Some(Error::OnlyPeople { .. })), "{refused:?}");
    let mut eager = env.resume(&id);
    eager.options.mode = Some(Mode::Yolo);
    let refused = agent.resume(eager).err();
    assert!(matches!(refused, Some(Error::OnlyPeople { .. })), "{refused:?}");
    // It may run what asks, and not answer it.
    let handle = agent.resume(env.resume(&id)).unwrap();
    let open = asked(&mut handle.events());
    let refused = handle.answer(&open.gate.id, Answer::ALLOW_ONCE, "ann@desk").err();
    assert!(matches!(refused, Some(Error::OnlyPeople { .. })), "{refused:?}");
    assert_eq!(env.ran(), 0);
}

#[test]
fn words_to_a_conversation_that_has_not_begun_are_refused() {
    let env = TestEnv::new();
    let handle = env.start("- {text: Done.}");
    let id = handle.id().clone();
    handle.join().unwrap();
    let lane = Some("nobody".parse().unwrap());
    let refused = env.runtime.say(&id, SayRequest { text: "hello".to_owned(), lane, now: false });
    let refused = refused.unwrap_err();
    assert!(matches!(refused.remedies()[..], [stepwell::Remedy::Choose(_)]), "{refused}");
}

#[test]
fn what_a_person_decided_is_done_before_what_is_said_next() {
    for (answer, ran) in [(Answer::from("yes"), 1), (Answer::deny("not now"), 0)] {
        let env = TestEnv::new();
        let handle = env.start(ASKS);
        let id = handle.id().clone();
        asked(&mut handle.events());
        handle.interrupt();
        handle.join().unwrap();
        let given = Given { gate: None, answer };
        env.elsewhere().answer(&id, &given, &FlowOptions::default()).unwrap();
        let words = SayRequest { text: "first".to_owned(), lane: None, now: false };
        env.elsewhere().say(&id, words).unwrap();
        let more = ResumeRequest { say: Some("and then".to_owned()), ..env.resume(&id) };
        assert_eq!(env.runtime.resume(more).unwrap().join().unwrap().output, "Made.");
        assert_eq!(env.ran(), ran);
        let said = env.events(&id).into_iter().filter_map(|event| match event.event {
            Event::Message(message) if message.role == Role::User => Some(message.text()),
            _ => None,
        });
        assert_eq!(said.collect::<Vec<_>>(), ["make it", "first", "and then"]);
    }
}

#[test]
fn an_answer_from_another_process_reaches_a_run_that_waits() {
    let env = TestEnv::new();
    let handle = env.start(ASKS);
    let mut events = handle.events();
    let open = asked(&mut events);
    let call = open.gate.call.as_ref().unwrap();
    assert_eq!((call.tool.as_str(), call.choices.len()), ("run_command", 4));
    let given = Given { gate: None, answer: Answer::from("yes") };
    let answered = env.elsewhere().answer(handle.id(), &given, &FlowOptions::default()).unwrap();
    assert!(answered.goes_on);
    // Whoever is slower is told who was first.
    let late = handle.answer(&open.gate.id, Answer::deny("no"), "bob@desk");
    match late {
        Err(Error::AnsweredBefore { .. } | Error::NoGate { .. }) => {}
        other => panic!("{other:?}"),
    }
    assert!(events.any(|event| matches!(event, RunEvent::Answered(_))));
    assert_eq!(handle.join().unwrap().status, Status::Success);
    assert_eq!(env.ran(), 1);
}

#[test]
fn of_many_answers_at_once_the_first_counts_and_the_others_say_whose_it_was() {
    let env = TestEnv::new();
    let handle = env.start(ASKS);
    let mut events = handle.events();
    let open = asked(&mut events);
    let given = |n: usize| match n % 2 {
        0 => Answer::ALLOW_ONCE,
        _ => Answer::deny("no"),
    };
    let results: Vec<Result<Answer, Error>> = std::thread::scope(|scope| {
        let answering = |n: usize| {
            let (handle, gate) = (&handle, open.gate.id.as_str());
            scope.spawn(move || handle.answer(gate, given(n), "ann@desk").map(|_| given(n)))
        };
        let threads: Vec<_> = (0..8).map(answering).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    });
    let taken: Vec<&Answer> = results.iter().filter_map(|result| result.as_ref().ok()).collect();
    assert_eq!(taken.len(), 1, "{results:?}");
    let allowed = taken[0].allows();
    handle.join().unwrap();
    assert_eq!(env.ran(), usize::from(allowed));
}

#[test]
fn without_patience_a_run_pauses_and_the_same_question_is_asked_once() {
    let env = TestEnv::new();
    let options = RunOptions { patience: Patience::Pause, ..env.options(ASKS) };
    let handle = env.runtime.start(RunRequest { options, ..RunRequest::new("x") }).unwrap();
    let id = handle.id().clone();
    assert_eq!(handle.join().unwrap().status, Status::Paused);
    for _ in 0..2 {
        let request = env.resume(&id);
        let options = RunOptions { patience: Patience::Pause, ..request.options.clone() };
        let handle = env.runtime.resume(ResumeRequest { options, ..request });
        assert_eq!(handle.unwrap().join().unwrap().status, Status::Paused);
    }
    assert_eq!(env.gates(&id), (1, 0));
    // An answer that came while nobody ran it is taken.
    let given = Given { gate: None, answer: Answer::from("approve") };
    let answered = env.runtime.answer(&id, &given, &FlowOptions::default()).unwrap();
    assert!(!answered.goes_on);
    let report = env.runtime.resume(env.resume(&id)).unwrap().join().unwrap();
    assert_eq!((report.status, env.ran()), (Status::Success, 1));
}

#[test]
fn a_front_end_that_gives_up_has_the_run_pause() {
    let env = TestEnv::new();
    let handle = env.start(ASKS);
    asked(&mut handle.events());
    handle.pause();
    assert_eq!(handle.join().unwrap().status, Status::Paused);
}

#[test]
fn always_is_remembered_for_the_tool_and_says_who_chose_it() {
    let env = TestEnv::new();
    let twice = "
- {calls: [{tool: run_command, arguments: {command: 'echo x >> made.txt'}}]}
- {calls: [{tool: run_command, arguments: {command: 'echo y >> made.txt'}}]}
- {text: Made.}
";
    let handle = env.start(twice);
    let id = handle.id().clone();
    let open = asked(&mut handle.events());
    let always = Answer::Allow { scope: Grant::Always };
    handle.answer(&open.gate.id, always, "ann@desk").unwrap();
    assert_eq!(handle.join().unwrap().status, Status::Success);
    assert_eq!((env.ran(), env.gates(&id)), (2, (1, 1)));
    let kept = env.events(&id).into_iter().find_map(|event| match event.event {
        Event::Permission(permission) => Some(permission),
        _ => None,
    });
    assert_eq!(kept.unwrap().who.unwrap().name, "ann@desk");
}

#[test]
fn a_call_with_a_secret_is_allowed_only_where_it_runs() {
    let secret = format!("ghp_{}", "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8");
    let script = format!(
        "
- {{calls: [{{tool: run_command, arguments: {{command: 'echo {secret} >> made.txt'}}}}]}}
- {{text: Made.}}
"
    );
    let env = TestEnv::new();
    let handle = env.start(&script);
    let id = handle.id().clone();
    let open = asked(&mut handle.events());
    let call = open.gate.call.as_ref().unwrap();
    assert!(call.holds_secret && !call.arguments.contains(&secret), "{call:?}");
    // From elsewhere it cannot be allowed, and that is not offered.
    let listed =
        open_gates(&env.elsewhere().workspace().open_existing(Access::Read).unwrap(), Some(&id))
            .unwrap();
    let offered = &listed[0].gate.call.as_ref().unwrap().choices;
    assert_eq!(*offered, [Choice::Deny, Choice::Never]);
    // What only this process knows is sent nowhere.
    assert!(!serde_json::to_string(&open).unwrap().contains(&secret));
    let given = Given { gate: None, answer: Answer::from("yes") };
    let elsewhere = env.elsewhere().answer(&id, &given, &FlowOptions::default());
    assert!(matches!(elsewhere, Err(Error::AnswerRefused { .. })), "{elsewhere:?}");
    handle.answer(&open.gate.id, Answer::ALLOW_ONCE, "ann@desk").unwrap();
    assert_eq!((handle.join().unwrap().status, env.ran()), (Status::Success, 1));
    // Stopped while it asks, its secret is gone: the next run closes the question and says why.
    let handle = env.start(&script);
    let id = handle.id().clone();
    asked(&mut handle.events());
    handle.interrupt();
    handle.join().unwrap();
    env.runtime.resume(env.resume(&id)).unwrap().join().unwrap();
    let closed = env.events(&id).into_iter().find_map(|event| match event.event {
        Event::GateAnswered(answer) => Some(answer.answer),
        _ => None,
    });
    let closed = closed.unwrap();
    assert!(!closed.allows() && closed.reason().unwrap().contains("secret"), "{closed:?}");
    assert_eq!(env.ran(), 1);
}

#[test]
fn a_pattern_that_holds_a_secret_is_refused_and_the_question_stays_open() {
    let secret = format!("ghp_{}", "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8");
    let script = format!(
        "
- {{calls: [{{tool: run_command, arguments: {{command: 'echo {secret} >> made.txt'}}}}]}}
- {{text: Made.}}
"
    );
    let env = TestEnv::new();
    let handle = env.start(&script);
    let id = handle.id().clone();
    let open = asked(&mut handle.events());
    let answer = |pattern: String| {
        let rule = Rule::new("run_command", Some(pattern));
        let (gate, once) = (open.gate.id.as_str(), Answer::ALLOW_ONCE);
        handle.answer_remembering(gate, once, Some(&rule), "ann@desk")
    };
    let refused = answer(format!("echo {secret}*"));
    assert!(matches!(refused, Err(Error::BadAnswer { is_late: false, .. })), "{refused:?}");
    answer("echo *".to_owned()).unwrap();
    assert_eq!((handle.join().unwrap().status, env.ran()), (Status::Success, 1));
    let log = format!("{:?}", env.events(&id));
    assert!(!log.contains(&secret) && log.contains("run_command(echo *)"), "{log}");
}

#[test]
fn an_answer_that_was_rewound_is_nobodys_first() {
    let env = TestEnv::new();
    let options = RunOptions { patience: Patience::Pause, ..env.options(ASKS) };
    let request = RunRequest { options, ..RunRequest::new("make it") };
    let handle = env.runtime.start(request).unwrap();
    let id = handle.id().clone();
    assert_eq!(handle.join().unwrap().status, Status::Paused);
    let well = env.runtime.workspace().open_existing(Access::Write).unwrap();
    let asked = stepwell::work::Gates::of(&**well.store(), &id).unwrap().asked.pop().unwrap();
    let given = Given { gate: Some(asked.gate.id), answer: Answer::from("no") };
    env.runtime.answer(&id, &given, &FlowOptions::default()).unwrap();
    let again = env.runtime.answer(&id, &given, &FlowOptions::default()).unwrap_err();
    assert!(matches!(again, Error::AnsweredBefore { .. }), "{again}");
    well.lock(&id).unwrap().rewind(asked.seq.prev(), stepwell::model::Scope::Chat).unwrap();
    let late = env.runtime.answer(&id, &given, &FlowOptions::default()).unwrap_err();
    assert!(!matches!(late, Error::AnsweredBefore { .. }), "nobody answered it: {late}");
}
