//! Claims about retries: a client's event id makes an append happen once.

use stepwell::log::SPILL_BYTES;
use stepwell::model::{Change, Edited, Gate, GateAnswered, Restored, Rewound, Scope, Undone};
use stepwell::store::{Append, Expected, Lease, Write};
use stepwell::{Error, ErrorKind, NewEvent, Seq};

use crate::claims::claims;
use crate::harness::{claim, created, event_id, id, say, texts};
use crate::{Fixture, Harness, TestProcesses};

claims! { $ retry = retry_claims for Fixture:
    asking_again_gives_the_same_answer_and_writes_nothing,
    asking_again_after_other_events_gives_the_same_answer,
    asking_again_after_the_lease_was_lost_gives_the_same_answer,
    asking_again_with_an_expected_seq_that_has_passed_gives_the_same_answer,
    asking_again_for_several_events_gives_the_same_answer,
    asking_again_after_reopening_gives_the_same_answer,
    asking_again_while_in_the_trash_gives_the_same_answer,
    asking_again_at_another_time_gives_the_same_answer,
    asking_again_with_a_spilled_text_gives_the_same_answer,
    an_id_names_the_event_that_it_was_recorded_with,
    an_id_with_another_body_is_refused,
    an_id_with_another_kind_is_refused,
    an_id_in_the_middle_of_a_new_append_is_refused_and_leaves_nothing,
    one_id_twice_in_an_append_is_refused_and_leaves_nothing,
    a_longer_append_under_used_ids_is_refused,
    one_id_serves_in_two_sessions,
    a_rewind_asked_for_again_is_recorded_once,
    a_rewind_to_elsewhere_under_a_used_id_is_refused,
    an_undo_asked_for_again_is_recorded_once,
    an_answer_asked_for_again_is_recorded_once,
    an_edit_asked_for_again_is_recorded_once,
    a_batch_asked_for_again_is_recorded_once,
}

fn named(text: &str) -> NewEvent {
    say(text).with_id(event_id(text))
}

fn asking_again_gives_the_same_answer_and_writes_nothing<F: Fixture>(w: &mut Harness<F>) {
    let lease = w.begin("a");
    let first = w.add(&lease, named("x"));
    let before = w.store().info(&id("a")).unwrap();
    w.tick();
    assert_eq!(w.add(&lease, named("x")), first);
    assert_eq!(w.add(&lease, named("x")), first);
    assert_eq!(w.store().info(&id("a")).unwrap(), before);
    assert_eq!(texts(&w.log("a")), ["x"]);
}

fn asking_again_after_other_events_gives_the_same_answer<F: Fixture>(w: &mut Harness<F>) {
    let lease = w.begin("a");
    let first = w.add(&lease, named("x"));
    w.chat(&lease, "y", 3);
    w.edit("a", Edited::default());
    assert_eq!(w.add(&lease, named("x")), first);
    assert_eq!(w.log("a").len(), 6);
}

fn asking_again_after_the_lease_was_lost_gives_the_same_answer<F: Fixture>(w: &mut Harness<F>) {
    let lease = w.begin("a");
    let first = w.add(&lease, named("x"));
    w.processes.mark_gone(&TestProcesses::holder(1));
    let new = w.store().acquire(&id("a"), &claim(2)).unwrap();
    w.add(&new, say("the next holder's"));
    assert_eq!(w.add(&lease, named("x")), first);
    w.release(&new);
    assert_eq!(w.add(&lease, named("x")), first);
    assert_eq!(w.log("a").len(), 3);
}

fn asking_again_with_an_expected_seq_that_has_passed_gives_the_same_answer<F: Fixture>(
    w: &mut Harness<F>,
) {
    let lease = w.begin("a");
    let ask = || {
        let append = Append {
            session: id("a"),
            epoch: Some(lease.epoch),
            expected: Some(Expected::At(Seq::FIRST)),
            events: vec![named("x")].into(),
        };
        w.store().write(Write::Append(append)).unwrap()
    };
    assert_eq!(ask(), ask());
    assert_eq!(w.log("a").len(), 2);
}

fn asking_again_for_several_events_gives_the_same_answer<F: Fixture>(w: &mut Harness<F>) {
    let lease = w.begin("a");
    let events = vec![named("x"), say("no name"), named("z")];
    let first = w.try_add(&lease, events.clone()).unwrap();
    assert_eq!((first.first.get(), first.last.get()), (2, 4));
    w.chat(&lease, "more", 2);
    assert_eq!(w.try_add(&lease, events).unwrap(), first);
    assert_eq!(w.log("a").len(), 6);
}

fn asking_again_after_reopening_gives_the_same_answer<F: Fixture>(w: &mut Harness<F>) {
    let lease = w.begin("a");
    let first = w.add(&lease, named("x"));
    w.reopen();
    assert_eq!(w.add(&lease, named("x")), first);
    assert_eq!(w.log("a").len(), 2);
}

fn asking_again_while_in_the_trash_gives_the_same_answer<F: Fixture>(w: &mut Harness<F>) {
    let lease = w.begin("a");
    let first = w.add(&lease, named("x"));
    w.release(&lease);
    w.store().maintain().trash(&[id("a").into()]).unwrap();
    assert_eq!(w.add(&lease, named("x")), first);
    assert_eq!(w.log("a").len(), 2);
}

fn asking_again_at_another_time_gives_the_same_answer<F: Fixture>(w: &mut Harness<F>) {
    let lease = w.begin("a");
    let first = w.add(&lease, named("x").at(stepwell::model::Time::EPOCH));
    assert_eq!(w.add(&lease, named("x")), first);
    assert_eq!(w.log("a")[1].at, stepwell::model::Time::EPOCH);
}

fn asking_again_with_a_spilled_text_gives_the_same_answer<F: Fixture>(w: &mut Harness<F>) {
    let lease = w.begin("a");
    let long = "long ".repeat(SPILL_BYTES);
    let first = w.add(&lease, named(&long));
    assert_eq!(w.add(&lease, named(&long)), first);
    assert_eq!(w.log("a").len(), 2);
}

fn an_id_names_the_event_that_it_was_recorded_with<F: Fixture>(w: &mut Harness<F>) {
    let lease = w.begin("a");
    w.add(&lease, named("x"));
    w.add(&lease, say("y"));
    let ids: Vec<_> = w.log("a").iter().map(|event| event.id).collect();
    assert_eq!(ids, [None, Some(event_id("x")), None]);
}

fn reused<F: Fixture>(w: &Harness<F>, lease: &Lease, events: Vec<NewEvent>, at: u64) {
    let before = w.log("a");
    let error = w.try_add(lease, events).unwrap_err();
    let Error::EventIdReused { session, seq, .. } = &error else { panic!("{error}") };
    assert_eq!((session, seq.get()), (&id("a"), at));
    assert_eq!(error.kind(), ErrorKind::Conflict);
    assert_eq!(w.log("a"), before);
}

fn an_id_with_another_body_is_refused<F: Fixture>(w: &mut Harness<F>) {
    let lease = w.begin("a");
    w.add(&lease, named("x"));
    reused(w, &lease, vec![say("other").with_id(event_id("x"))], 2);
}

fn an_id_with_another_kind_is_refused<F: Fixture>(w: &mut Harness<F>) {
    let lease = w.begin("a");
    w.add(&lease, named("x"));
    let edited: NewEvent = Edited::default().into();
    reused(w, &lease, vec![edited.with_id(event_id("x"))], 2);
}

fn an_id_in_the_middle_of_a_new_append_is_refused_and_leaves_nothing<F: Fixture>(
    w: &mut Harness<F>,
) {
    let lease = w.begin("a");
    w.add(&lease, named("x"));
    reused(w, &lease, vec![named("new"), named("x")], 2);
    reused(w, &lease, vec![say("no name"), named("x")], 2);
}

fn one_id_twice_in_an_append_is_refused_and_leaves_nothing<F: Fixture>(w: &mut Harness<F>) {
    let lease = w.begin("a");
    reused(w, &lease, vec![named("x"), named("x")], 2);
}

fn a_longer_append_under_used_ids_is_refused<F: Fixture>(w: &mut Harness<F>) {
    let lease = w.begin("a");
    w.try_add(&lease, vec![named("x"), named("y")]).unwrap();
    reused(w, &lease, vec![named("x"), named("y"), named("z")], 4);
    reused(w, &lease, vec![named("x"), named("z")], 3);
}

fn one_id_serves_in_two_sessions<F: Fixture>(w: &mut Harness<F>) {
    let (a, b) = (w.begin("a"), w.begin("b"));
    w.add(&a, named("x"));
    w.add(&b, say("first").with_id(event_id("x")));
    assert_eq!(texts(&w.log("b")), ["first"]);
}

fn rewind_to(to: u64) -> NewEvent {
    let event: NewEvent =
        Rewound { to: Seq::new(to), scope: Scope::Chat, restored: Restored::default() }.into();
    event.with_id(event_id("rewind"))
}

fn goal(text: &str) -> Edited {
    Edited { goal: Change::Set(text.to_owned()), ..Edited::default() }
}

fn a_rewind_asked_for_again_is_recorded_once<F: Fixture>(w: &mut Harness<F>) {
    let lease = w.begin("a");
    w.edit("a", goal("one"));
    w.edit("a", goal("two"));
    let first = w.add(&lease, rewind_to(2));
    w.edit("a", goal("three"));
    assert_eq!(w.add(&lease, rewind_to(2)), first);
    assert_eq!(w.head("a").goal.as_deref(), Some("three"));
    assert_eq!(w.log("a").len(), 5);
}

fn a_rewind_to_elsewhere_under_a_used_id_is_refused<F: Fixture>(w: &mut Harness<F>) {
    let lease = w.begin("a");
    w.chat(&lease, "x", 3);
    w.add(&lease, rewind_to(2));
    reused(w, &lease, vec![rewind_to(3)], 5);
}

fn an_undo_asked_for_again_is_recorded_once<F: Fixture>(w: &mut Harness<F>) {
    let lease = w.begin("a");
    w.chat(&lease, "x", 2);
    w.add(&lease, rewind_to(2));
    let undo: NewEvent =
        Undone::Rewind { of: Seq::new(4), scope: Scope::Chat, restored: Restored::default() }
            .into();
    let undo = undo.with_id(event_id("undo"));
    let first = w.add(&lease, undo.clone());
    assert_eq!(w.add(&lease, undo), first);
    assert_eq!(w.log("a").len(), 5);
}

fn an_answer_asked_for_again_is_recorded_once<F: Fixture>(w: &mut Harness<F>) {
    let lease = w.begin("a");
    let gate = Gate::new("g", "?");
    w.add(&lease, gate);
    let answer: NewEvent = GateAnswered::new("g", "yes", "ann").into();
    let answer = answer.with_id(event_id("answer"));
    let first = w.tell("a", answer.clone()).unwrap();
    assert_eq!(w.tell("a", answer).unwrap(), first);
    assert_eq!(w.head("a").open_gates, 0);
}

fn an_edit_asked_for_again_is_recorded_once<F: Fixture>(w: &mut Harness<F>) {
    w.make(created("a"));
    let edit: NewEvent = goal("one").into();
    let edit = edit.with_id(event_id("edit"));
    let first = w.tell("a", edit.clone()).unwrap();
    w.edit("a", goal("two"));
    assert_eq!(w.tell("a", edit).unwrap(), first);
    assert_eq!(w.head("a").goal.as_deref(), Some("two"));
}

fn a_batch_asked_for_again_is_recorded_once<F: Fixture>(w: &mut Harness<F>) {
    let (a, b) = (w.begin("a"), w.begin("b"));
    let append = |lease: &Lease, text: &str| {
        Write::Append(Append {
            session: lease.session.clone(),
            epoch: Some(lease.epoch),
            expected: None,
            events: vec![named(text), say("and more")].into(),
        })
    };
    let batch = || vec![append(&a, "x"), append(&b, "x"), append(&a, "y")];
    let first = w.store().batch(batch()).unwrap();
    assert_eq!(w.store().batch(batch()).unwrap(), first);
    assert_eq!((w.log("a").len(), w.log("b").len()), (5, 3));
}
