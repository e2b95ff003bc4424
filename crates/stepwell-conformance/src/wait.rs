//! Claims about waiting for the next event.

use std::sync::mpsc;
use std::time::Duration;

use stepwell::model::Edited;
use stepwell::store::{Append, Write};
use stepwell::{Error, Seq};

use crate::claims::claims;
use crate::harness::{created, id, say};
use crate::{Fixture, Harness};

claims! { $ wait = wait_claims for Fixture:
    a_wait_for_what_is_there_returns_at_once,
    a_wait_that_runs_out_returns_the_last_seq,
    a_wait_for_nothing_returns_at_once,
    a_wait_ends_when_another_thread_appends,
    a_wait_ends_when_another_handle_appends,
    a_wait_is_not_ended_by_another_session,
    a_wait_ends_when_the_session_is_purged,
    a_follower_sees_every_event,
    a_wait_for_no_session_is_an_error,
}

/// Longer than any machine needs; a wait that lasts so long has failed.
const LONG: Duration = Duration::from_secs(60);

const SHORT: Duration = Duration::from_millis(1);

fn edit() -> Write {
    Write::Append(Append {
        session: id("a"),
        epoch: None,
        expected: None,
        events: vec![Edited::default().into()].into(),
    })
}

fn a_wait_for_what_is_there_returns_at_once<F: Fixture>(w: &mut Harness<F>) {
    let lease = w.begin("a");
    w.chat(&lease, "x", 3);
    for seq in 0..4 {
        let last = w.store().wait_after(&id("a"), Seq::new(seq), LONG).unwrap();
        assert_eq!(last, Seq::new(4));
    }
}

fn a_wait_that_runs_out_returns_the_last_seq<F: Fixture>(w: &mut Harness<F>) {
    w.make(created("a"));
    for seq in [1, 2, 99] {
        let last = w.store().wait_after(&id("a"), Seq::new(seq), SHORT);
        assert_eq!(last.unwrap(), Seq::FIRST);
    }
}

fn a_wait_for_nothing_returns_at_once<F: Fixture>(w: &mut Harness<F>) {
    w.make(created("a"));
    let last = w.store().wait_after(&id("a"), Seq::FIRST, Duration::ZERO).unwrap();
    assert_eq!(last, Seq::FIRST);
}

fn a_wait_ends_when_another_thread_appends<F: Fixture>(w: &mut Harness<F>) {
    w.make(created("a"));
    let store = w.store();
    let (ready, go) = mpsc::channel();
    std::thread::scope(|scope| {
        let waiter = scope.spawn(move || {
            ready.send(()).unwrap();
            store.wait_after(&id("a"), Seq::FIRST, LONG)
        });
        go.recv().unwrap();
        store.write(edit()).unwrap();
        assert_eq!(waiter.join().unwrap().unwrap(), Seq::new(2));
    });
}

fn a_wait_ends_when_another_handle_appends<F: Fixture>(w: &mut Harness<F>) {
    w.make(created("a"));
    let other = w.another();
    let store = w.store();
    let (ready, go) = mpsc::channel();
    std::thread::scope(|scope| {
        let waiter = scope.spawn(move || {
            ready.send(()).unwrap();
            store.wait_after(&id("a"), Seq::FIRST, LONG)
        });
        go.recv().unwrap();
        other.write(edit()).unwrap();
        assert_eq!(waiter.join().unwrap().unwrap(), Seq::new(2));
    });
}

fn a_wait_is_not_ended_by_another_session<F: Fixture>(w: &mut Harness<F>) {
    w.make(created("a"));
    let lease = w.begin("b");
    w.chat(&lease, "x", 5);
    let last = w.store().wait_after(&id("a"), Seq::FIRST, SHORT).unwrap();
    assert_eq!(last, Seq::FIRST);
}

fn a_wait_ends_when_the_session_is_purged<F: Fixture>(w: &mut Harness<F>) {
    w.make(created("a"));
    let store = w.store();
    let (ready, go) = mpsc::channel();
    std::thread::scope(|scope| {
        let waiter = scope.spawn(move || {
            ready.send(()).unwrap();
            store.wait_after(&id("a"), Seq::FIRST, LONG)
        });
        go.recv().unwrap();
        store.maintain().purge(&[id("a").into()]).unwrap();
        let error = waiter.join().unwrap().unwrap_err();
        assert!(matches!(error, Error::NoSession(_)), "{error}");
    });
}

fn a_follower_sees_every_event<F: Fixture>(w: &mut Harness<F>) {
    const EVENTS: u64 = 30;
    let lease = w.begin("a");
    let store = w.store();
    let seen = std::thread::scope(|scope| {
        let follower = scope.spawn(move || {
            let mut seen = Vec::new();
            let mut last = Seq::FIRST;
            while last < Seq::new(EVENTS + 1) {
                let now = store.wait_after(&id("a"), last, LONG).unwrap();
                assert!(now > last, "it waited in vain");
                let span = stepwell::store::Span { to: now, ..stepwell::store::Span::after(last) };
                let events = store.events(&id("a"), span).unwrap().events;
                seen.extend(events.iter().map(|event| event.seq.get()));
                last = now;
            }
            seen
        });
        for n in 0..EVENTS {
            let append = Append {
                session: id("a"),
                epoch: Some(lease.epoch),
                expected: None,
                events: vec![say(&n.to_string())].into(),
            };
            store.write(Write::Append(append)).unwrap();
        }
        follower.join().unwrap()
    });
    assert_eq!(seen, (2..=EVENTS + 1).collect::<Vec<_>>());
}

fn a_wait_for_no_session_is_an_error<F: Fixture>(w: &mut Harness<F>) {
    let error = w.store().wait_after(&id("a"), Seq::ZERO, LONG).unwrap_err();
    assert!(matches!(error, Error::NoSession(_)), "{error}");
}
