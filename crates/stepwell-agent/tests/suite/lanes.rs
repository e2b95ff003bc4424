//! Lanes: runs that share one session, each with its own conversation.

use std::sync::Arc;
use std::sync::Mutex;

use stepwell::log::Redactor;
use stepwell::model::Spent;
use stepwell::store::Span;
use stepwell::{Event, Lane, Message, Recorded, Session, Status, Stepwell, StopReason};
use stepwell_agent::context::Context;
use stepwell_agent::machine::{Limits, Rules};
use stepwell_agent::permission::Mode;
use stepwell_agent::provider::script::{Script, Scripted};
use stepwell_agent::run::{
    Allowed, Ended, EventSink, FrontEnd, Keeping, Past, Run, RunEvent, Setup, SharedBudget,
};
use stepwell_agent::tool::{self, ToolEnv};

/// Two lanes that call tools with the same ids, as from models that count from zero.
const SCRIPT: &str = "
lanes:
  left: [{calls: [{id: c1, tool: read_file, arguments: {path: a}}], usage: {input: 60}}, {text: L, delay_ms: 5}]
  right: [{calls: [{id: c1, tool: read_file, arguments: {path: a}}], usage: {input: 60}}, {text: R}]
";

fn setup(script: &str) -> (tempfile::TempDir, Setup) {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("a"), "text").unwrap();
    let tools = tool::builtin();
    let effects = tools.iter().map(|it| (it.spec().name.clone(), it.effect())).collect();
    let (mode, limits) = (Mode::Yolo, Limits::default());
    let setup = Setup {
        provider: Arc::new(Scripted::new(Script::parse(script).unwrap())),
        model: "script".to_owned(),
        cost: Arc::new(|_| None),
        tools,
        place: ToolEnv::new(std::fs::canonicalize(folder.path()).unwrap()),
        rules: Rules { mode, retry_unsafe: false, effects, limits },
        redactor: Redactor::new([]),
        max_output: 10,
        timeout: None,
        dry_run: false,
        context: Context::default(),
        keeping: Keeping::default(),
        dispatcher: None,
    };
    (folder, setup)
}

/// Adds recorded events to the past.
fn ear(past: &Shared) -> FrontEnd {
    let past = Arc::clone(past);
    FrontEnd::watching(EventSink::to(move |event| {
        if let RunEvent::Recorded(event) = event {
            past.lock().unwrap().add(event);
        }
    }))
}

/// The past of a session that several lanes share.
type Shared = Arc<Mutex<Past>>;

fn events(session: &Session) -> Vec<Recorded> {
    session.events(Span::ALL).unwrap().intact(session.id()).unwrap()
}

async fn drive(
    session: &Session,
    setup: &Setup,
    (past, shared_budget): (&Shared, &SharedBudget),
    lane: &str,
) -> Ended {
    let lane: Lane = lane.parse().unwrap();
    let at = past.lock().unwrap().lane(&lane, shared_budget);
    let mut run = Run::in_lane(session, setup, ear(past), at);
    if run.is_new() {
        run.say("go").unwrap();
    }
    let (_stop, interrupt) = tokio::sync::watch::channel(false);
    run.drive(interrupt).await.unwrap()
}

#[tokio::test]
async fn lanes_that_run_at_once_keep_their_own_conversations_and_say_nothing_of_the_session() {
    let (_folder, setup) = setup(SCRIPT);
    let well = Stepwell::in_memory();
    let session = well.create(well.draft("t")).unwrap();
    let (past, shared_budget) =
        (Shared::default(), SharedBudget::new(Allowed::default(), Spent::default(), 0));
    let shared = (&past, &shared_budget);
    let (left, right) = tokio::join!(
        drive(&session, &setup, shared, "left"),
        drive(&session, &setup, shared, "right")
    );
    assert_eq!((left.output.as_str(), right.output.as_str()), ("L", "R"));
    let events = events(&session);
    assert!(!events.iter().any(|event| matches!(event.event, Event::Status(_))));
    let mut calls: Vec<String> = Vec::new();
    for event in &events {
        if let Event::Message(message) = &event.event {
            calls.extend(message.calls().map(|call| call.id.clone()));
        }
    }
    calls.sort();
    assert_eq!(calls, ["c1", "c1-2"], "one id is one call, whichever lane it is in");
    assert_eq!(shared_budget.spent().usage.input, 120);
    // After a resume from the log, each lane is where it was, and makes no request.
    let mut again = Past::default();
    events.iter().for_each(|event| again.add(event.clone()));
    let again = Arc::new(Mutex::new(again));
    let ended = drive(&session, &setup, (&again, &shared_budget), "left").await;
    assert_eq!((ended.status, ended.output.as_str()), (Status::Success, "L"));
    assert_eq!(session.info().unwrap().head.seq, events.last().unwrap().seq);
}

#[tokio::test]
async fn what_one_lane_spends_another_cannot() {
    let (_folder, setup) = setup(SCRIPT);
    let well = Stepwell::in_memory();
    let session = well.create(well.draft("t")).unwrap();
    let past = Shared::default();
    let allowed = Allowed { calls: Some(3), ..Allowed::default() };
    let shared_budget = SharedBudget::new(allowed, Spent::default(), 0);
    let shared = (&past, &shared_budget);
    let (left, right) = tokio::join!(
        drive(&session, &setup, shared, "left"),
        drive(&session, &setup, shared, "right")
    );
    let mut ends = [left, right].map(|ended| (ended.status, ended.reason));
    ends.sort_by_key(|(_, reason)| *reason == StopReason::MaxSteps);
    assert_eq!(
        ends,
        [(Status::Success, StopReason::LlmDone), (Status::Partial, StopReason::MaxSteps)]
    );
    let answers = |event: &&Recorded| matches!(&event.event, Event::Message(message) if message.role == stepwell::model::Role::Assistant);
    assert_eq!(events(&session).iter().filter(answers).count(), 3);
}

#[tokio::test]
async fn a_lane_costs_the_same_whatever_the_others_said() {
    let (_folder, setup) = setup("lanes: {short: [{text: done}]}");
    let well = Stepwell::in_memory();
    let session = well.create(well.draft("t")).unwrap();
    let mut past = Past::default();
    let long: Lane = "long".parse().unwrap();
    for n in 0..1000 {
        let event: Event = Message::user(format!("{n}")).in_lane(long.clone()).into();
        let seq = session.append(event.clone()).unwrap();
        past.add(Recorded { seq, at: session.now(), id: None, event });
    }
    let shared_budget = SharedBudget::new(Allowed::default(), Spent::default(), 0);
    let short: Lane = "short".parse().unwrap();
    let run = Run::in_lane(&session, &setup, FrontEnd::nobody(), past.lane(&short, &shared_budget));
    assert!(run.is_new(), "nothing of the other lane is in it");
    assert_eq!(past.said(&long).len(), 1000);
}
