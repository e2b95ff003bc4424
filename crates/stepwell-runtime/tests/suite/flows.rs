//! Flows as handles: started, watched, answered, interrupted, resumed.

use stepwell::Status;
use stepwell::model::Answer;
use stepwell::sqlite::Access;
use stepwell_runtime::inspect::open_gates;
use stepwell_runtime::{Error, FlowOptions, Given, Hears, RunEvent, SayRequest};

use crate::test_env::{TestEnv, asked};

const SPEC: &str = "
version: 0
name: letter
runtime: {provider: ollama, model_id: fake}
agents:
  writer: {prompt: Write.}
pattern:
  type: chain
  config:
    steps:
      - {agent: writer, input: Draft it.}
      - {type: hitl, prompt: Send it?, validation: {pattern: '^(yes|no)$'}}
      - {agent: writer, input: 'They said {{ hitl_response }}.'}
";

const SCRIPT: &str = "
lanes:
  writer: [{text: A draft.}, {text: Sent.}]
";

#[test]
fn a_flow_with_a_gate_is_started_watched_interrupted_resumed_and_answered() {
    let env = TestEnv::new();
    let request = env.flow(SPEC, SCRIPT);
    // A plan names the model that would be asked, whatever the spec says.
    assert_eq!(env.runtime.plan_flow(&request).unwrap().model, request.options.model);
    assert!(request.options.model.is_some());
    let handle = env.runtime.start_flow(request).unwrap();
    let id = handle.id().clone();
    let mut events = handle.events();
    let open = asked(&mut events);
    assert_eq!((open.gate.prompt.as_str(), open.gate.call.is_some()), ("Send it?", false));
    handle.interrupt();
    assert_eq!(handle.join().unwrap().status, Status::Interrupted);
    let handle = env.runtime.resume(env.resume(&id)).unwrap();
    let mut events = handle.events();
    let open = asked(&mut events);
    // An answer that does not fit is refused, and the question waits on.
    let unfit = handle.answer(&open.gate.id, Answer::from("perhaps"), "ann@desk");
    assert!(matches!(unfit, Err(Error::BadAnswer { .. })), "{unfit:?}");
    std::thread::scope(|scope| {
        scope.spawn(|| handle.answer(&open.gate.id, Answer::from("yes"), "ann@desk").unwrap());
    });
    let told: Vec<RunEvent> = events.collect();
    assert!(told.iter().any(|it| matches!(it, RunEvent::Node(_))), "{told:?}");
    let report = handle.join().unwrap();
    assert_eq!((report.status, report.output.as_str()), (Status::Success, "Sent."));
    assert_eq!(env.gates(&id), (1, 1));
    let late = Given { gate: Some(open.gate.id.clone()), answer: Answer::from("no") };
    let late = env.elsewhere().answer(&id, &late, &FlowOptions::default());
    assert!(
        matches!(&late, Err(Error::AnsweredBefore { who, .. }) if who == "ann@desk"),
        "{late:?}"
    );
    let refused = env.runtime.resume(env.resume(&id));
    assert!(matches!(refused, Err(Error::Finished { .. })), "{refused:?}");
}

#[test]
fn a_flow_that_waits_is_answered_from_another_process() {
    let env = TestEnv::new();
    let handle = env.runtime.start_flow(env.flow(SPEC, SCRIPT)).unwrap();
    asked(&mut handle.events());
    let elsewhere = env.elsewhere();
    let given = |text: &str| Given { gate: None, answer: Answer::from(text) };
    let flow = FlowOptions::default();
    let unfit = elsewhere.answer(handle.id(), &given("perhaps"), &flow);
    assert!(matches!(unfit, Err(Error::BadAnswer { .. })), "{unfit:?}");
    assert!(elsewhere.answer(handle.id(), &given("no"), &flow).unwrap().goes_on);
    assert_eq!(handle.join().unwrap().status, Status::Success);
}

#[test]
fn a_question_of_a_flow_names_the_agent_that_asks() {
    let env = TestEnv::new();
    let spec = "
version: 0
name: letter
runtime: {provider: ollama, model_id: fake}
agents:
  writer: {prompt: Write., tools: [run_command]}
pattern:
  type: chain
  config:
    steps:
      - {agent: writer, input: Make it.}
";
    let script = "lanes: {writer: [{calls: [{tool: run_command, arguments: {command: 'true'}}]}, {text: Made.}]}";
    let handle = env.runtime.start_flow(env.flow(spec, script)).unwrap();
    asked(&mut handle.events());
    let well = env.elsewhere().workspace().open_existing(Access::Read).unwrap();
    let listed = open_gates(&well, Some(handle.id())).unwrap();
    assert_eq!(listed[0].agent.as_deref(), Some("writer"));
    // It waits for a person: what is said to it is heard after that.
    let lane = Some("writer".parse().unwrap());
    let words = SayRequest { text: "be quick".to_owned(), lane, now: true };
    let hears = env.elsewhere().say(handle.id(), words).unwrap();
    assert_eq!(hears, Hears::RunnerThatWaits);
}
