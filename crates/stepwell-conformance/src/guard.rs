//! Claims about who may append: epochs fence off earlier runners.

use stepwell::model::{Change, Edited, Epoch, Gate, GateAnswered, StatusChanged};
use stepwell::store::{Append, Lease, Write};
use stepwell::{Error, ErrorKind, NewEvent, Status};

use crate::claims::claims;
use crate::harness::{claim, created, id, say, texts};
use crate::{Fixture, Harness, TestProcesses};

claims! { $ guard = guard_claims for Fixture:
    an_append_without_an_epoch_needs_a_lease,
    an_append_without_an_epoch_is_refused_even_if_nobody_holds_the_lease,
    a_stale_epoch_cannot_append,
    a_released_epoch_cannot_append,
    an_epoch_that_was_never_given_cannot_append,
    an_epoch_of_another_session_counts_for_nothing,
    a_stale_epoch_stays_refused_after_the_new_holder_is_gone,
    an_expired_epoch_that_nobody_took_may_still_append,
    an_edit_needs_no_lease_while_another_holds_it,
    an_answer_needs_no_lease_while_another_holds_it,
    an_edit_beside_a_message_needs_the_lease,
    an_edit_under_a_stale_epoch_is_refused,
    a_refused_append_leaves_nothing,
}

fn append(epoch: Option<Epoch>, events: Vec<NewEvent>) -> Write {
    Write::Append(Append { session: id("a"), epoch, expected: None, events: events.into() })
}

/// A lost lease, and the one that replaced it.
fn stolen<F: Fixture>(w: &Harness<F>) -> (Lease, Lease) {
    let old = w.begin("a");
    w.processes.mark_gone(&TestProcesses::holder(1));
    let new = w.store().acquire(&id("a"), &claim(2)).unwrap();
    (old, new)
}

fn an_append_without_an_epoch_needs_a_lease<F: Fixture>(w: &mut Harness<F>) {
    w.begin("a");
    let error = w.tell("a", say("x")).unwrap_err();
    let Error::NeedsLease { session, kind } = &error else { panic!("{error}") };
    assert_eq!((session, &**kind), (&id("a"), "message"));
    assert_eq!(error.kind(), ErrorKind::Fenced);
}

fn an_append_without_an_epoch_is_refused_even_if_nobody_holds_the_lease<F: Fixture>(
    w: &mut Harness<F>,
) {
    w.make(created("a"));
    let status = StatusChanged { status: Status::Abandoned, reason: None, error: None };
    let error = w.tell("a", status).unwrap_err();
    assert!(matches!(error, Error::NeedsLease { .. }), "{error}");
    assert_eq!(w.log("a").len(), 1);
}

fn a_stale_epoch_cannot_append<F: Fixture>(w: &mut Harness<F>) {
    let (old, new) = stolen(w);
    let error = w.try_add(&old, vec![say("late")]).unwrap_err();
    let Error::Fenced { session, epoch, current } = &error else { panic!("{error}") };
    assert_eq!(session, &id("a"));
    assert_eq!((*epoch, *current), (old.epoch, Some(new.epoch)));
    assert_eq!(error.kind(), ErrorKind::Fenced);
    w.add(&new, say("mine"));
    assert_eq!(texts(&w.log("a")), ["mine"]);
}

fn a_released_epoch_cannot_append<F: Fixture>(w: &mut Harness<F>) {
    let lease = w.begin("a");
    w.release(&lease);
    let error = w.try_add(&lease, vec![say("late")]).unwrap_err();
    assert!(matches!(error, Error::Fenced { current: None, .. }), "{error}");
    assert_eq!(w.log("a").len(), 1);
}

fn an_epoch_that_was_never_given_cannot_append<F: Fixture>(w: &mut Harness<F>) {
    let lease = w.begin("a");
    for n in [0, 2, 99] {
        let forged = Lease { epoch: Epoch::new(n), ..lease.clone() };
        let error = w.try_add(&forged, vec![say("x")]).unwrap_err();
        assert!(matches!(error, Error::Fenced { current: Some(Epoch::FIRST), .. }), "{error}");
    }
    w.make(created("b"));
    let forged = Lease { session: id("b"), ..lease };
    let error = w.try_add(&forged, vec![say("x")]).unwrap_err();
    assert!(matches!(error, Error::Fenced { current: None, .. }), "{error}");
}

fn an_epoch_of_another_session_counts_for_nothing<F: Fixture>(w: &mut Harness<F>) {
    let (_, new) = stolen(w);
    w.processes.mark_alive(&TestProcesses::holder(1));
    w.begin("b");
    let crossed = Lease { session: id("b"), ..new };
    let error = w.try_add(&crossed, vec![say("x")]).unwrap_err();
    assert!(matches!(error, Error::Fenced { .. }), "{error}");
}

fn a_stale_epoch_stays_refused_after_the_new_holder_is_gone<F: Fixture>(w: &mut Harness<F>) {
    let (old, new) = stolen(w);
    w.release(&new);
    let error = w.try_add(&old, vec![say("late")]).unwrap_err();
    assert!(matches!(error, Error::Fenced { current: None, .. }), "{error}");
    w.reopen();
    assert!(w.try_add(&old, vec![say("later still")]).is_err());
    assert_eq!(w.log("a").len(), 1);
}

fn an_expired_epoch_that_nobody_took_may_still_append<F: Fixture>(w: &mut Harness<F>) {
    let lease = w.begin("a");
    w.clock.set(lease.expires.plus(stepwell::store::LEASE_TTL));
    w.add(&lease, say("slow, but still the newest"));
    assert_eq!(w.log("a").len(), 2);
}

fn an_edit_needs_no_lease_while_another_holds_it<F: Fixture>(w: &mut Harness<F>) {
    let lease = w.begin("a");
    w.edit("a", Edited { label: Change::Set("nightly".to_owned()), ..Edited::default() });
    assert_eq!(w.head("a").label.as_deref(), Some("nightly"));
    w.add(&lease, say("the holder goes on"));
    w.assert_folded("a");
}

fn an_answer_needs_no_lease_while_another_holds_it<F: Fixture>(w: &mut Harness<F>) {
    let lease = w.begin("a");
    let gate = Gate::new("g", "Ship it?");
    w.add(&lease, gate);
    assert_eq!(w.head("a").open_gates, 1);
    let answer = GateAnswered::new("g", "yes", "ann");
    w.tell("a", answer).unwrap();
    assert_eq!(w.head("a").open_gates, 0);
}

fn an_edit_beside_a_message_needs_the_lease<F: Fixture>(w: &mut Harness<F>) {
    w.begin("a");
    let events = vec![Edited::default().into(), say("x")];
    let error = w.store().write(append(None, events)).unwrap_err();
    assert!(matches!(error, Error::NeedsLease { .. }), "{error}");
    assert_eq!(w.log("a").len(), 1);
}

fn an_edit_under_a_stale_epoch_is_refused<F: Fixture>(w: &mut Harness<F>) {
    let (old, _) = stolen(w);
    let error = w.try_add(&old, vec![Edited::default().into()]).unwrap_err();
    assert!(matches!(error, Error::Fenced { .. }), "{error}");
    assert_eq!(w.log("a").len(), 1);
}

fn a_refused_append_leaves_nothing<F: Fixture>(w: &mut Harness<F>) {
    let (old, _) = stolen(w);
    let before = w.store().info(&id("a")).unwrap();
    w.tick();
    assert!(w.try_add(&old, vec![say("late"), say("later")]).is_err());
    assert_eq!(w.store().info(&id("a")).unwrap(), before);
    assert!(w.hits("late*").is_empty());
}
