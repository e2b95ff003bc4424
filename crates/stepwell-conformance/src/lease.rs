//! Claims about leases: one runner at a time, replaced only when it is dead.

use std::time::Duration;

use stepwell::model::Epoch;
use stepwell::store::query::Filter;
use stepwell::store::{LEASE_TTL, LeaseRequest};
use stepwell::{Error, ErrorKind, Status};

use crate::claims::claims;
use crate::harness::{claim, created, id, say};
use crate::{Fixture, Harness, TestProcesses};

claims! { $ lease = lease_claims for Fixture:
    a_free_lease_can_be_taken,
    a_held_lease_is_refused_and_the_error_names_the_holder,
    a_held_lease_is_refused_to_its_own_holder,
    a_lease_of_no_session_is_an_error,
    a_trashed_sessions_lease_cannot_be_taken,
    renewing_extends_from_now,
    an_expired_lease_that_nobody_took_is_renewed,
    a_lost_lease_cannot_be_renewed,
    a_released_lease_cannot_be_renewed,
    a_released_lease_can_be_taken,
    releasing_a_lost_lease_is_no_error_and_frees_nothing,
    releasing_a_lease_of_a_purged_session_is_no_error,
    an_expired_lease_is_stolen,
    a_clock_that_is_ahead_takes_no_lease_from_a_process_that_runs,
    a_lease_is_stolen_from_a_process_that_is_gone,
    a_lease_is_not_stolen_from_a_holder_that_cannot_be_judged,
    a_short_lease_is_short,
    epochs_only_grow,
    epochs_grow_over_reopening,
    leases_of_two_sessions_are_apart,
    of_two_handles_one_gets_the_lease,
    of_many_threads_one_gets_the_lease,
    a_lease_taken_in_one_handle_writes_in_another,
}

fn a_free_lease_can_be_taken<F: Fixture>(w: &mut Harness<F>) {
    w.make(created("a"));
    let lease = w.store().acquire(&id("a"), &claim(7)).unwrap();
    assert_eq!(lease.session, id("a"));
    assert_eq!(lease.expires, w.now().plus(LEASE_TTL));
    let held = w.store().info(&id("a")).unwrap().held.unwrap();
    assert_eq!(held.holder, TestProcesses::holder(7));
    assert_eq!((held.epoch, held.expires), (lease.epoch, lease.expires));
    w.add(&lease, say("x"));
}

fn a_held_lease_is_refused_and_the_error_names_the_holder<F: Fixture>(w: &mut Harness<F>) {
    let lease = w.begin("a");
    let error = w.store().acquire(&id("a"), &claim(2)).unwrap_err();
    let Error::Held { session, holder, expires } = &error else { panic!("{error}") };
    assert_eq!(session, &id("a"));
    assert_eq!(**holder, TestProcesses::holder(1));
    assert_eq!(*expires, lease.expires);
    assert_eq!(error.kind(), ErrorKind::Busy);
    assert!(error.to_string().contains("process 1 on here"), "{error}");
    w.add(&lease, say("the holder goes on"));
}

fn a_held_lease_is_refused_to_its_own_holder<F: Fixture>(w: &mut Harness<F>) {
    w.begin("a");
    let error = w.store().acquire(&id("a"), &claim(1)).unwrap_err();
    assert!(matches!(error, Error::Held { .. }), "{error}");
}

fn a_lease_of_no_session_is_an_error<F: Fixture>(w: &mut Harness<F>) {
    let error = w.store().acquire(&id("a"), &claim(1)).unwrap_err();
    assert!(matches!(error, Error::NoSession(_)), "{error}");
}

fn a_trashed_sessions_lease_cannot_be_taken<F: Fixture>(w: &mut Harness<F>) {
    w.make(created("a"));
    w.store().maintain().trash(&[id("a").into()]).unwrap();
    let error = w.store().acquire(&id("a"), &claim(1)).unwrap_err();
    assert!(matches!(error, Error::Trashed(_)), "{error}");
}

fn renewing_extends_from_now<F: Fixture>(w: &mut Harness<F>) {
    let lease = w.begin("a");
    w.tick();
    let renewed = w.store().renew(&lease, Duration::from_secs(5)).unwrap();
    assert_eq!(renewed.epoch, lease.epoch);
    assert_eq!(renewed.expires, w.now().plus(Duration::from_secs(5)));
    let held = w.store().info(&id("a")).unwrap().held.unwrap();
    assert_eq!(held.expires, renewed.expires);
    assert_eq!(held.holder, TestProcesses::holder(1));
}

fn an_expired_lease_that_nobody_took_is_renewed<F: Fixture>(w: &mut Harness<F>) {
    let lease = w.begin("a");
    w.run_out(&lease, 1);
    w.clock.advance(Duration::from_secs(100));
    assert_eq!(w.store().info(&id("a")).unwrap().held, None);
    let renewed = w.store().renew(&lease, LEASE_TTL).unwrap();
    assert_eq!(renewed.epoch, lease.epoch);
    assert!(w.store().info(&id("a")).unwrap().held.is_some());
    w.add(&renewed, say("still here"));
    let error = w.store().acquire(&id("a"), &claim(2)).unwrap_err();
    assert!(matches!(error, Error::Held { .. }), "{error}");
}

fn a_lost_lease_cannot_be_renewed<F: Fixture>(w: &mut Harness<F>) {
    let lease = w.begin("a");
    w.run_out(&lease, 1);
    let new = w.store().acquire(&id("a"), &claim(2)).unwrap();
    let error = w.store().renew(&lease, LEASE_TTL).unwrap_err();
    let Error::Fenced { epoch, current, .. } = &error else { panic!("{error}") };
    assert_eq!((*epoch, *current), (lease.epoch, Some(new.epoch)));
    let held = w.store().info(&id("a")).unwrap().held.unwrap();
    assert_eq!(held.holder, TestProcesses::holder(2));
}

fn a_released_lease_cannot_be_renewed<F: Fixture>(w: &mut Harness<F>) {
    let lease = w.begin("a");
    w.release(&lease);
    let error = w.store().renew(&lease, LEASE_TTL).unwrap_err();
    assert!(matches!(error, Error::Fenced { current: None, .. }), "{error}");
    assert_eq!(w.store().info(&id("a")).unwrap().held, None);
}

fn a_released_lease_can_be_taken<F: Fixture>(w: &mut Harness<F>) {
    let lease = w.begin("a");
    w.release(&lease);
    assert_eq!(w.store().info(&id("a")).unwrap().held, None);
    let next = w.store().acquire(&id("a"), &claim(2)).unwrap();
    assert!(next.epoch > lease.epoch);
    w.add(&next, say("x"));
}

fn releasing_a_lost_lease_is_no_error_and_frees_nothing<F: Fixture>(w: &mut Harness<F>) {
    let lease = w.begin("a");
    w.run_out(&lease, 1);
    let new = w.store().acquire(&id("a"), &claim(2)).unwrap();
    w.release(&lease);
    w.release(&lease);
    let held = w.store().info(&id("a")).unwrap().held.unwrap();
    assert_eq!(held.epoch, new.epoch);
    w.add(&new, say("still mine"));
}

fn releasing_a_lease_of_a_purged_session_is_no_error<F: Fixture>(w: &mut Harness<F>) {
    let lease = w.begin("a");
    w.release(&lease);
    w.store().maintain().purge(&[id("a").into()]).unwrap();
    w.release(&lease);
    assert!(!w.has("a"));
}

fn an_expired_lease_is_stolen<F: Fixture>(w: &mut Harness<F>) {
    let lease = w.begin("a");
    w.processes.mark_unknown(&TestProcesses::holder(1));
    w.clock.set(lease.expires.minus(Duration::from_micros(1)));
    assert!(w.store().acquire(&id("a"), &claim(2)).is_err());
    w.run_out(&lease, 1);
    let stolen = w.store().acquire(&id("a"), &claim(2)).unwrap();
    assert_eq!(stolen.epoch, lease.epoch.next());
    let error = w.try_add(&lease, vec![say("late")]).unwrap_err();
    assert!(matches!(error, Error::Fenced { .. }), "{error}");
}

fn a_clock_that_is_ahead_takes_no_lease_from_a_process_that_runs<F: Fixture>(w: &mut Harness<F>) {
    let lease = w.begin("a");
    w.clock.set(lease.expires.plus(LEASE_TTL * 100));
    let error = w.store().acquire(&id("a"), &claim(2)).unwrap_err();
    assert!(matches!(error, Error::Held { .. }), "{error}");
    assert!(w.store().info(&id("a")).unwrap().held.is_some());
    assert_eq!(w.head("a").status, Status::Running);
    let running = Filter { status: vec![Status::Running], ..Filter::default() };
    assert_eq!(w.store().count(&running).unwrap().total(), 1);
    w.add(&lease, say("still here"));
    w.processes.mark_gone(&TestProcesses::holder(1));
    w.store().acquire(&id("a"), &claim(2)).unwrap();
}

fn a_lease_is_stolen_from_a_process_that_is_gone<F: Fixture>(w: &mut Harness<F>) {
    let lease = w.begin("a");
    w.processes.mark_gone(&TestProcesses::holder(1));
    let stolen = w.store().acquire(&id("a"), &claim(2)).unwrap();
    assert_eq!(stolen.epoch, lease.epoch.next());
    // Even if it comes back, as a suspended process may.
    w.processes.mark_alive(&TestProcesses::holder(1));
    assert!(w.try_add(&lease, vec![say("late")]).is_err());
    w.add(&stolen, say("x"));
}

fn a_lease_is_not_stolen_from_a_holder_that_cannot_be_judged<F: Fixture>(w: &mut Harness<F>) {
    let lease = w.begin("a");
    w.processes.mark_unknown(&TestProcesses::holder(1));
    let error = w.store().acquire(&id("a"), &claim(2)).unwrap_err();
    assert!(matches!(error, Error::Held { .. }), "{error}");
    w.run_out(&lease, 1);
    w.store().acquire(&id("a"), &claim(2)).unwrap();
}

fn a_short_lease_is_short<F: Fixture>(w: &mut Harness<F>) {
    w.make(created("a"));
    let short = LeaseRequest { ttl: Duration::from_millis(3), ..claim(1) };
    let lease = w.store().acquire(&id("a"), &short).unwrap();
    assert_eq!(lease.expires, w.now().plus(short.ttl));
    w.run_out(&lease, 1);
    w.store().acquire(&id("a"), &claim(2)).unwrap();
}

fn epochs_only_grow<F: Fixture>(w: &mut Harness<F>) {
    let mut last = w.begin("a");
    assert_eq!(last.epoch, Epoch::FIRST);
    for n in 2..6 {
        if n % 2 == 0 {
            w.release(&last);
        } else {
            w.run_out(&last, n - 1);
        }
        let next = w.store().acquire(&id("a"), &claim(n)).unwrap();
        assert!(next.epoch > last.epoch);
        last = next;
    }
}

fn epochs_grow_over_reopening<F: Fixture>(w: &mut Harness<F>) {
    let lease = w.begin("a");
    w.release(&lease);
    w.reopen();
    let next = w.store().acquire(&id("a"), &claim(1)).unwrap();
    assert!(next.epoch > lease.epoch);
    w.reopen();
    w.add(&next, say("still mine"));
    let error = w.store().acquire(&id("a"), &claim(2)).unwrap_err();
    assert!(matches!(error, Error::Held { .. }), "{error}");
}

fn leases_of_two_sessions_are_apart<F: Fixture>(w: &mut Harness<F>) {
    let (a, b) = (w.begin("a"), w.begin("b"));
    w.release(&a);
    w.add(&b, say("x"));
    w.store().acquire(&id("a"), &claim(2)).unwrap();
    assert!(w.store().acquire(&id("b"), &claim(2)).is_err());
}

fn of_two_handles_one_gets_the_lease<F: Fixture>(w: &mut Harness<F>) {
    w.make(created("a"));
    let other = w.another();
    let lease = other.acquire(&id("a"), &claim(2)).unwrap();
    let error = w.store().acquire(&id("a"), &claim(1)).unwrap_err();
    assert!(
        matches!(&error, Error::Held { holder, .. } if **holder == TestProcesses::holder(2)),
        "{error}"
    );
    other.release(&lease).unwrap();
    let next = w.store().acquire(&id("a"), &claim(1)).unwrap();
    let error = other.renew(&lease, LEASE_TTL).unwrap_err();
    assert!(
        matches!(error, Error::Fenced { current: Some(epoch), .. } if epoch == next.epoch),
        "{error}"
    );
}

fn of_many_threads_one_gets_the_lease<F: Fixture>(w: &mut Harness<F>) {
    w.make(created("a"));
    let store = w.store();
    let won = std::thread::scope(|scope| {
        let runs: Vec<_> =
            (1..=6).map(|pid| scope.spawn(move || store.acquire(&id("a"), &claim(pid)))).collect();
        runs.into_iter().filter_map(|run| run.join().unwrap().ok()).collect::<Vec<_>>()
    });
    assert_eq!(won.len(), 1);
    let held = w.store().info(&id("a")).unwrap().held.unwrap();
    assert_eq!(held.epoch, won[0].epoch);
}

fn a_lease_taken_in_one_handle_writes_in_another<F: Fixture>(w: &mut Harness<F>) {
    w.make(created("a"));
    let lease = w.another().acquire(&id("a"), &claim(1)).unwrap();
    w.add(&lease, say("x"));
    assert_eq!(w.log("a").len(), 2);
}
