//! Words and stops, from this process and from others.

use stepwell::{Answer, Event, Lane, Said, Status, StopAsked, Who};
use stepwell_runtime::RunEvent;

use crate::desk::{ASKS, Desk, asked};

fn said(text: &str, now: bool) -> Said {
    Said { text: text.to_owned(), lane: Lane::main(), who: Who::from("ann@desk"), now }
}

/// What was said to the model, in order.
fn heard(desk: &Desk, id: &stepwell::SessionId) -> Vec<String> {
    let events = desk.events(id).into_iter();
    let messages = events.filter_map(|event| match event.event {
        Event::Message(message) if message.said.is_some() => Some(message.text()),
        _ => None,
    });
    messages.collect()
}

#[test]
fn what_is_said_while_a_run_works_goes_before_its_next_call_in_order_each_once() {
    let desk = Desk::new();
    let handle = desk.start(ASKS);
    let id = handle.id().clone();
    let open = asked(&mut handle.events());
    handle.say("first", false).unwrap();
    let well = desk.elsewhere().existing(stepwell::Access::Write).unwrap();
    well.say(&id, said("second", false)).unwrap();
    handle.answer(&open.gate.id, Answer::ALLOW_ONCE, "ann@desk").unwrap();
    assert_eq!(handle.join().unwrap().status, Status::Success);
    assert_eq!(heard(&desk, &id), ["first", "second"]);
    // What is said to a session that does not run waits for its next run.
    well.say(&id, said("third", false)).unwrap();
    let mut request = desk.resume(&id);
    request.options.model =
        Some(desk.script("- {text: a}\n- {text: b}\n- {text: c}\n- {text: d}\n"));
    desk.runtime.resume(request).unwrap().join().unwrap();
    assert_eq!(heard(&desk, &id), ["first", "second", "third"]);
}

#[test]
fn what_cannot_wait_ends_the_models_call() {
    let desk = Desk::new();
    // The first answer takes longer than anyone waits.
    let handle = desk.start("- {text: Slow., delay_ms: 600000}\n");
    let id = handle.id().clone();
    let mut events = handle.events();
    events.find(|event| matches!(event, RunEvent::Waiting(_))).unwrap();
    let well = desk.elsewhere().existing(stepwell::Access::Write).unwrap();
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
    assert_eq!(heard(&desk, &id), ["now"]);
}

#[test]
fn a_stop_from_another_process_stops_the_runner_that_it_names() {
    let desk = Desk::new();
    let handle = desk.start(ASKS);
    let id = handle.id().clone();
    asked(&mut handle.events());
    let well = desk.elsewhere().existing(stepwell::Access::Write).unwrap();
    let epoch = well.standing(&id).unwrap().held.unwrap().epoch;
    let who = Who::from("ann@desk");
    well.ask_to_stop(&id, StopAsked { epoch, who, reason: None }).unwrap();
    assert_eq!(handle.join().unwrap().status, Status::Interrupted);
    // A later runner ignores it.
    let handle = desk.runtime.resume(desk.resume(&id)).unwrap();
    let open = asked(&mut handle.events());
    handle.answer(&open.gate.id, Answer::ALLOW_ONCE, "ann@desk").unwrap();
    assert_eq!(handle.join().unwrap().status, Status::Success);
}
