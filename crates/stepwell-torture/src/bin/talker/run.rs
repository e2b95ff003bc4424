//! A run, and the person at its front end.

use std::sync::Arc;

use stepwell::model::{Answer, Gate};
use stepwell::{Event, SessionId};
use stepwell_flow::spec::Spec;
use stepwell_runtime::{
    FlowOptions, FlowRequest, Interrupt, Patience, ResumeRequest, RunEvent, RunHandle, RunOptions,
    RunRequest, Runtime,
};
use stepwell_torture::{Asker, Order, Person, Said};

use crate::say;

/// Starts the run that asks. The test has written the scripts and the spec.
pub(crate) fn start(order: &Order, runtime: &Runtime, asker: Asker, person: Person) {
    let work = order.folder.join("work");
    let model = Some(format!("script:{}", work.join("script.yaml").display()));
    let options = RunOptions { model, patience: Patience::Wait, ..RunOptions::default() };
    let handle = match asker {
        Asker::Agent | Asker::Subagent => {
            runtime.start(RunRequest { options, ..RunRequest::new("make it") })
        }
        Asker::Flow => {
            let path = work.join("flow.yaml");
            let (text, reading) = Spec::load(&path, "flow.yaml").unwrap();
            let output = Some(work.join("out"));
            runtime.start_flow(FlowRequest {
                path,
                text,
                reading: Arc::new(reading),
                variables: std::collections::BTreeMap::new(),
                options,
                flow: FlowOptions { output, ..FlowOptions::default() },
                interrupt: Interrupt::default(),
            })
        }
    };
    let handle = handle.unwrap();
    match person {
        Person::DiesAnswering => crate::terminal::attend(&handle, asker),
        person => attend(handle, person),
    }
}

pub(crate) fn resume(runtime: &Runtime, session: &SessionId, person: Person) {
    let options = RunOptions { patience: Patience::Wait, ..RunOptions::default() };
    let request =
        ResumeRequest { options, ..ResumeRequest::new(session.clone(), runtime.trust(session)) };
    attend(runtime.resume(request).unwrap(), person);
}

/// Acts as the front end of a run until the run ends.
fn attend(handle: RunHandle, person: Person) {
    say(&Said::Began(handle.id().clone()));
    for event in handle.events() {
        see(&handle, &event, person);
    }
    say(&Said::Ended(handle.join().unwrap().status));
}

fn see(handle: &RunHandle, event: &RunEvent, person: Person) {
    match event {
        RunEvent::Child { event, .. } | RunEvent::Within { event, .. } => {
            see(handle, event, person);
        }
        RunEvent::Recorded(recorded) => {
            let is_asked = matches!(&recorded.event, Event::Gate(gate) if !hands_on(gate));
            if is_asked && person == Person::DiesUnshown {
                die();
            }
        }
        RunEvent::Approval(open) if hands_on(&open.gate) => {
            handle.answer(&open.gate.id, Answer::ALLOW_ONCE, handle.who().clone()).unwrap();
        }
        RunEvent::Approval(open) => {
            say(&Said::Shown { gate: open.gate.id.clone() });
            if person == Person::DiesShown {
                die();
            }
        }
        _ => {}
    }
}

/// Is this the approval of a subagent's start? It is always allowed: the subagent's own question is
/// the one under test.
fn hands_on(gate: &Gate) -> bool {
    gate.call.as_ref().is_some_and(|call| call.tool == "dispatch_subagent")
}

/// Ends the process as a kill does.
pub(crate) fn die() -> ! {
    let this = rustix::process::getpid();
    rustix::process::kill_process(this, rustix::process::Signal::KILL).unwrap();
    unreachable!("a killed process does nothing")
}
