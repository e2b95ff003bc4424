//! Words and stops, from this process and from others.

use stepwell::model::{Answer, Checkpoint, Phase, PhaseSet, Said, StopAsked, Who};
use stepwell::{Event, Lane, Status};
use stepwell_agent::provider::Delta;
use stepwell_runtime::{RunEvent, RunRequest};

use crate::test_env::{ASKS, TestEnv, asked};

fn said(text: &str, now: bool) -> Said {
    Said { text: text.to_owned(), lane: Lane::main(), who: Who::from("ann@desk"), now }
}

/// What was said to the model, in order.
fn heard(env: &TestEnv, id: &stepwell::SessionId) -> Vec<String> {
    let events = env.events(id).into_iter();
    let messages = events.filter_map(|event| match event.event {
        Event::Message(message) if message.said.is_some() => Some(message.text()),
        _ => None,
    });
    messages.collect()
}

#[test]
fn what_is_said_while_a_run_works_goes_before_its_next_call_in_order_each_once() {
    let env = TestEnv::new();
    let handle = env.start(ASKS);
    let id = handle.id().clone();
    let open = asked(&mut handle.events());
    handle.say("first", false).unwrap();
    let well = env.elsewhere().workspace().open_existing(stepwell::sqlite::Access::Write).unwrap();
    well.say(&id, said("second", false)).unwrap();
    handle.answer(&open.gate.id, Answer::ALLOW_ONCE, "ann@desk").unwrap();
    assert_eq!(handle.join().unwrap().status, Status::Success);
    assert_eq!(heard(&env, &id), ["first", "second"]);
    // What is said to a session that does not run waits for its next run.
    well.say(&id, said("third", false)).unwrap();
    let mut request = env.resume(&id);
    request.options.model =
        Some(env.script("- {text: a}\n- {text: b}\n- {text: c}\n- {text: d}\n"));
    env.runtime.resume(request).unwrap().join().unwrap();
    assert_eq!(heard(&env, &id), ["first", "second", "third"]);
}

#[test]
fn what_cannot_wait_ends_the_models_call() {
    let env = TestEnv::new();
    // The first answer takes longer than anyone waits.
    let handle = env.start("- {text: Slow., delay_ms: 600000}\n");
    let id = handle.id().clone();
    let mut events = handle.events();
    events.find(|event| matches!(event, RunEvent::Waiting(_))).unwrap();
    let well = env.elsewhere().workspace().open_existing(stepwell::sqlite::Access::Write).unwrap();
    well.say(&id, said("now", true)).unwrap();
    let takes_in = |event: &RunEvent| match event {
        RunEvent::Recorded(recorded) => {
            matches!(&recorded.event, Event::Message(message) if message.said.is_some())
        }
        _ => false,
    };
    events.find(takes_in).unwrap();
    handle.interrupt();
    assert_eq!(handle.join().unwrap().status, Status::Interrupted);
    assert_eq!(heard(&env, &id), ["now"]);
}

#[test]
fn what_cannot_wait_ends_the_call_of_the_one_that_it_is_said_to() {
    let env = TestEnv::new();
    std::fs::create_dir_all(env.root()).unwrap();
    let spec = "
version: 0
name: both
runtime: {provider: ollama, model_id: fake}
agents:
  writer: {prompt: Write.}
pattern:
  type: parallel
  config:
    branches:
      - {id: a, steps: [{agent: writer, input: Go.}]}
      - {id: b, steps: [{agent: writer, input: Go.}]}
";
    let slow = "[{text: Slow., delay_ms: 600000}]";
    let script = format!("lanes: {{a/writer: {slow}, b/writer: {slow}}}");
    let handle = env.runtime.start_flow(env.flow(spec, &script)).unwrap();
    let (id, mut events) = (handle.id().clone(), handle.events());
    let mut speak = std::collections::BTreeSet::new();
    while speak.len() < 2 {
        if let Some(RunEvent::Within { lane, event, .. }) = events.next()
            && matches!(*event, RunEvent::Waiting(_))
        {
            speak.insert(lane);
        }
    }
    let words = said("now", true);
    let words = Said { lane: "a/writer".parse().unwrap(), ..words };
    env.elsewhere()
        .workspace()
        .open_existing(stepwell::sqlite::Access::Write)
        .unwrap()
        .say(&id, words)
        .unwrap();
    let broken_off = |event: &RunEvent| match event {
        RunEvent::Within { lane, event, .. } if matches!(**event, RunEvent::Delta(Delta::Void)) => {
            Some(lane.to_string())
        }
        _ => None,
    };
    let first = events.find_map(|event| broken_off(&event));
    // It is asked anew, with what was said.
    while env
        .events(&id)
        .iter()
        .all(|it| !matches!(&it.event, Event::Message(it) if it.said.is_some()))
    {
        std::thread::yield_now();
    }
    handle.interrupt();
    let rest: Vec<String> = events.filter_map(|event| broken_off(&event)).collect();
    assert_eq!((first.as_deref(), rest), (Some("a/writer"), Vec::new()));
    handle.join().unwrap();
}

#[test]
fn every_answer_says_when_it_was_asked_for_and_when_it_began() {
    let env = TestEnv::new();
    // The second one only calls; the third one says nothing.
    let script = "
- {text: I look., calls: [{tool: list_files, arguments: {}}]}
- {calls: [{tool: list_files, arguments: {path: .}}]}
- {text: ''}
- {text: Done.}
";
    let handle = env.start(script);
    let id = handle.id().clone();
    assert_eq!(handle.join().unwrap().status, Status::Success);
    let mut began = Vec::new();
    let mut last = stepwell::model::Time::from_micros(0);
    for event in env.events(&id) {
        let Event::Message(message) = &event.event else { continue };
        if message.role != stepwell::model::Role::Assistant {
            assert_eq!(message.call, None);
            continue;
        }
        let call = message.call.as_ref().expect("an answer tells of its call");
        let asked = call.asked_at.expect("it was asked for");
        assert!(last <= asked && asked <= event.at, "{call:?}");
        assert!(call.first_at.is_none_or(|first| asked <= first && first <= event.at), "{call:?}");
        began.push(call.first_at.is_some());
        last = event.at;
    }
    assert_eq!(began, [true, true, false, true]);
}

#[test]
fn a_stop_from_another_process_stops_the_runner_that_it_names() {
    let env = TestEnv::new();
    let handle = env.start(ASKS);
    let id = handle.id().clone();
    asked(&mut handle.events());
    let well = env.elsewhere().workspace().open_existing(stepwell::sqlite::Access::Write).unwrap();
    let epoch = well.info(&id).unwrap().held.unwrap().epoch;
    let who = Who::from("ann@desk");
    well.ask_to_stop(&id, StopAsked { epoch, who, reason: None }).unwrap();
    assert_eq!(handle.join().unwrap().status, Status::Interrupted);
    // A later runner ignores it.
    let handle = env.runtime.resume(env.resume(&id)).unwrap();
    let open = asked(&mut handle.events());
    handle.answer(&open.gate.id, Answer::ALLOW_ONCE, "ann@desk").unwrap();
    assert_eq!(handle.join().unwrap().status, Status::Success);
}

#[test]
fn phases_checkpoints_and_questions_reach_a_run_from_another_process() {
    let env = TestEnv::new();
    // An earlier session whose lessons a plan is told.
    let earlier = env.start("- {calls: [{tool: tasks, arguments: {action: add, tasks: [{description: port the parser, status: failed}]}}]}\n- {text: No.}\n");
    assert_eq!(earlier.join().unwrap().status, Status::Success);
    let script = format!(
        "{ASKS}- {{calls: [{{tool: phase, arguments: {{to: plan}}}}]}}\n- {{text: Planned.}}\n"
    );
    let script = script.replace("- {text: Made.}\n", "");
    let request = RunRequest {
        options: env.options(&script),
        phases: Some(PhaseSet::Workflow),
        ..RunRequest::new("make it")
    };
    let handle = env.runtime.start(request).unwrap();
    let id = handle.id().clone();
    let open = asked(&mut handle.events());
    // The run waits for a person, and holds its lease.
    let well = env.elsewhere().workspace().open_existing(stepwell::sqlite::Access::Write).unwrap();
    let epoch = well.info(&id).unwrap().held.unwrap().epoch;
    well.enter_phase(&id, Phase::Initialize).unwrap();
    well.enter_phase(&id, Phase::Discuss).unwrap();
    let saved = Checkpoint { name: "saved".to_owned(), ..Checkpoint::default() };
    let saved = well.checkpoint(&id, saved).unwrap();
    assert_eq!(well.ask(&id, "With a test?").unwrap().id, "1");
    well.answer_question(&id, "1", "yes").unwrap();
    let info = well.info(&id).unwrap();
    assert_eq!((info.head.phase, info.head.status), (Some(Phase::Discuss), Status::Running));
    assert_eq!(info.held.unwrap().epoch, epoch, "the same run still has it");
    handle.answer(&open.gate.id, Answer::ALLOW_ONCE, "ann@desk").unwrap();
    assert_eq!(handle.join().unwrap().status, Status::Success);
    let events = env.events(&id);
    let at = events.iter().find(|event| event.seq == saved).unwrap();
    assert!(matches!(&at.event, Event::Checkpoint(it) if it.name == "saved"));
    // The model was told where the work is, moved it on from there, and got the lessons.
    let told = |text: &str| {
        let says = |event: &stepwell::Recorded| match &event.event {
            Event::Message(message) => {
                let results = message.results().map(|it| it.text.clone());
                results.chain([message.text()]).any(|it| it.contains(text))
            }
            _ => false,
        };
        events.iter().filter(|event| says(event)).count()
    };
    assert_eq!(told("moved the work to phase discuss"), 1, "{events:?}");
    assert_eq!(told("in phase plan; next:"), 1, "{events:?}");
    assert_eq!(told("failed: port the parser"), 1, "{events:?}");
    assert_eq!(well.info(&id).unwrap().head.phase, Some(Phase::Plan));
}

#[test]
fn a_run_is_made_shorter_before_its_models_next_call() {
    let env = TestEnv::configured("[compaction]\nkeep_tokens = 100\nauto = false\n");
    std::fs::create_dir_all(env.root()).unwrap();
    std::fs::write(env.root().join("notes.txt"), "a line of notes\n".repeat(100)).unwrap();
    let reads = "- {calls: [{tool: read_file, arguments: {path: notes.txt}}]}\n".repeat(3);
    let handle = env.start(&format!("{reads}{ASKS}"));
    let id = handle.id().clone();
    let open = asked(&mut handle.events());
    // The run waits for a person, and holds its lease.
    let well = env.elsewhere().workspace().open_existing(stepwell::sqlite::Access::Write).unwrap();
    assert!(well.ask_to_compact(&id).unwrap().is_some());
    handle.answer(&open.gate.id, Answer::ALLOW_ONCE, "ann@desk").unwrap();
    assert_eq!(handle.join().unwrap().status, Status::Success);
    let events = env.events(&id);
    let place = |fits: &dyn Fn(&Event) -> bool| events.iter().rposition(|it| fits(&it.event));
    let compacted = place(&|event| matches!(event, Event::Compacted(_)));
    let said = |event: &Event| match event {
        Event::Message(message) => message.text() == "Made.",
        _ => false,
    };
    assert!(compacted.is_some() && compacted < place(&said), "{events:?}");
    let count = events.iter().filter(|it| matches!(it.event, Event::Compacted(_))).count();
    assert_eq!(count, 1, "once is enough");
    // Nobody runs it any more: whoever wants it takes the lease.
    assert_eq!(well.ask_to_compact(&id).unwrap(), None);
}

#[test]
fn each_agent_of_a_flow_that_waits_is_made_shorter_once_it_goes_on() {
    let env = TestEnv::configured("[compaction]\nkeep_tokens = 100\nauto = false\n");
    std::fs::create_dir_all(env.root()).unwrap();
    std::fs::write(env.root().join("notes.txt"), "a line of notes\n".repeat(100)).unwrap();
    let spec = "
version: 0
name: letter
runtime: {provider: ollama, model_id: fake}
agents:
  writer: {prompt: Write., tools: [read_file, run_command]}
pattern:
  type: chain
  config:
    steps:
      - {agent: writer, input: Make it.}
      - {agent: writer, input: And again.}
";
    let reads = "{calls: [{tool: read_file, arguments: {path: notes.txt}}]}, ".repeat(3);
    let asks = "{calls: [{tool: run_command, arguments: {command: 'echo x >> made.txt'}}]}";
    let script =
        format!("lanes: {{writer: [{reads}{asks}, {{text: Made.}}, {asks}, {{text: Twice.}}]}}");
    let handle = env.runtime.start_flow(env.flow(spec, &script)).unwrap();
    let (id, mut events) = (handle.id().clone(), handle.events());
    let open = asked(&mut events);
    let elsewhere = env.elsewhere();
    assert!(elsewhere.ask_to_compact(&id).unwrap(), "it waits, and its runner lives");
    handle.answer(&open.gate.id, Answer::ALLOW_ONCE, "ann@desk").unwrap();
    // The second question has the lane begin again, which does not compact it again.
    let open = asked(&mut events);
    handle.answer(&open.gate.id, Answer::ALLOW_ONCE, "ann@desk").unwrap();
    assert_eq!(handle.join().unwrap().status, Status::Success);
    let recorded = env.events(&id);
    let compacted = |event: &Event| match event {
        Event::Compacted(it) => it.lane.as_str() == "writer",
        _ => false,
    };
    let made = |event: &Event| matches!(event, Event::Message(it) if it.text() == "Made.");
    let place = |fits: &dyn Fn(&Event) -> bool| recorded.iter().position(|it| fits(&it.event));
    assert!(place(&compacted).is_some_and(|at| Some(at) < place(&made)), "{recorded:?}");
    assert_eq!(recorded.iter().filter(|it| compacted(&it.event)).count(), 1, "once is enough");
    // Nobody runs it any more, and it has no conversation of its own.
    assert!(!elsewhere.ask_to_compact(&id).unwrap());
    let refused = elsewhere.compact(&id, &stepwell_runtime::Interrupt::default());
    let refused = refused.unwrap_err().to_string();
    assert!(refused.contains("are compacted while it runs"), "{refused}");
}
