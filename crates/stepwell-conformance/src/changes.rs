//! Claims about the change feed of a whole store.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, mpsc};
use std::time::Duration;

use stepwell::model::Edited;
use stepwell::sessions::{Deps, Notice};
use stepwell::store::changes::{ChangeCursor, ChangeKind, Changes, SessionChange, Wait};
use stepwell::store::{Append, LEASE_TTL, Write};
use stepwell::{Seq, Stepwell, Store};

use crate::claims::claims;
use crate::harness::{claim, created, id, say, targets};
use crate::{Fixture, Harness, TestProcesses};

claims! { $ changes = changes_claims for Fixture:
    without_a_cursor_the_answer_is_where_the_store_is_now,
    what_is_made_and_written_is_named_once,
    a_refused_write_is_no_change,
    trash_restore_and_purge_are_changes,
    a_name_that_is_used_again_is_told_as_gone_and_as_new,
    a_lease_that_is_taken_or_given_back_is_a_change_and_a_renewal_is_none,
    a_lease_that_runs_out_is_told_once,
    a_lease_that_is_renewed_after_it_ran_out_is_told,
    a_holder_that_dies_is_told_once,
    a_cursor_outlives_the_store_that_gave_it,
    a_cursor_that_is_not_understood_is_a_gap,
    a_wait_ends_with_a_change_of_another_handle,
    a_wait_ends_when_a_lease_runs_out,
    nothing_is_missed_while_many_write,
    a_subscriber_is_told_what_changes_and_another_what_concerns_it,
    many_subscribers_wait_while_one_looks,
    a_subscriber_that_is_woken_stops_waiting_and_another_looks,
    a_subscriber_is_told_of_a_session_that_it_adds,
}

/// Longer than any machine needs: a wait of this length has failed.
const LONG: Duration = Duration::from_secs(60);

fn now<F: Fixture>(w: &Harness<F>) -> ChangeCursor {
    w.store().changes(None, Wait::NONE).unwrap().cursor
}

/// The changes since a cursor, which advances.
fn since<F: Fixture>(w: &Harness<F>, cursor: &mut ChangeCursor) -> Vec<String> {
    let found = w.store().changes(Some(cursor), Wait::NONE).unwrap();
    assert!(!found.gap);
    *cursor = found.cursor;
    let mut told: Vec<String> = found.changes.iter().map(told).collect();
    let removed = told.iter().take_while(|it| it.ends_with("removed")).count();
    told[removed..].sort();
    told
}

fn told(change: &SessionChange) -> String {
    match change.kind {
        ChangeKind::Updated { seq } => format!("{} {seq}", change.session),
        ChangeKind::Trashed => format!("{} trashed", change.session),
        ChangeKind::Removed => format!("{} removed", change.session),
    }
}

fn edit(name: &str) -> Write {
    Write::Append(Append {
        session: id(name),
        epoch: None,
        expected: None,
        events: vec![Edited::default().into()].into(),
    })
}

fn without_a_cursor_the_answer_is_where_the_store_is_now<F: Fixture>(w: &mut Harness<F>) {
    w.make(created("a"));
    let Changes { changes, gap, mut cursor } = w.store().changes(None, Wait::up_to(LONG)).unwrap();
    assert!(changes.is_empty() && !gap);
    assert!(since(w, &mut cursor).is_empty());
}

fn what_is_made_and_written_is_named_once<F: Fixture>(w: &mut Harness<F>) {
    let mut cursor = now(w);
    let lease = w.begin("a");
    w.chat(&lease, "x", 2);
    w.chat(&lease, "x", 3);
    w.make(created("b"));
    assert_eq!(since(w, &mut cursor), ["a 6", "b 1"]);
    assert!(since(w, &mut cursor).is_empty());
    w.store().write(edit("b")).unwrap();
    assert_eq!(since(w, &mut cursor), ["b 2"]);
}

fn a_refused_write_is_no_change<F: Fixture>(w: &mut Harness<F>) {
    let lease = w.begin("a");
    let mut cursor = now(w);
    w.tell("a", say("x")).unwrap_err();
    let stale = stepwell::store::Lease { epoch: lease.epoch.next(), ..lease };
    w.try_add(&stale, vec![say("y")]).unwrap_err();
    assert!(since(w, &mut cursor).is_empty());
}

fn trash_restore_and_purge_are_changes<F: Fixture>(w: &mut Harness<F>) {
    w.make(created("a"));
    let lease = w.subagent("a", "b");
    w.release(&lease);
    let mut cursor = now(w);
    w.store().maintain().trash(&targets(&["a"])).unwrap();
    assert_eq!(since(w, &mut cursor), ["a trashed", "b trashed"]);
    w.store().maintain().restore(&[id("a")]).unwrap();
    assert_eq!(since(w, &mut cursor), ["a 1", "b 1"]);
    w.store().maintain().purge(&targets(&["a"])).unwrap();
    let gone = since(w, &mut cursor);
    assert!(gone.len() == 2 && gone.contains(&"b removed".to_owned()), "{gone:?}");
    assert!(since(w, &mut cursor).is_empty());
}

fn a_name_that_is_used_again_is_told_as_gone_and_as_new<F: Fixture>(w: &mut Harness<F>) {
    let lease = w.begin("a");
    w.chat(&lease, "x", 5);
    w.release(&lease);
    let mut cursor = now(w);
    w.store().maintain().purge(&targets(&["a"])).unwrap();
    w.make(created("a"));
    assert_eq!(since(w, &mut cursor), ["a removed", "a 1"]);
}

fn a_lease_that_is_taken_or_given_back_is_a_change_and_a_renewal_is_none<F: Fixture>(
    w: &mut Harness<F>,
) {
    w.make(created("a"));
    let mut cursor = now(w);
    let lease = w.store().acquire(&id("a"), &claim(1)).unwrap();
    assert_eq!(since(w, &mut cursor), ["a 1"]);
    w.tick();
    let lease = w.store().renew(&lease, LEASE_TTL).unwrap();
    assert!(since(w, &mut cursor).is_empty());
    w.release(&lease);
    assert_eq!(since(w, &mut cursor), ["a 1"]);
    w.release(&lease);
    assert!(since(w, &mut cursor).is_empty());
}

fn a_lease_that_runs_out_is_told_once<F: Fixture>(w: &mut Harness<F>) {
    w.begin("a");
    w.processes.mark_unknown(&TestProcesses::holder(1));
    let mut cursor = now(w);
    w.clock.advance(LEASE_TTL / 2);
    assert!(since(w, &mut cursor).is_empty());
    w.clock.advance(LEASE_TTL / 2);
    assert_eq!(since(w, &mut cursor), ["a 1"]);
    w.clock.advance(LEASE_TTL);
    assert!(since(w, &mut cursor).is_empty());
}

fn a_lease_that_is_renewed_after_it_ran_out_is_told<F: Fixture>(w: &mut Harness<F>) {
    let lease = w.begin("a");
    w.processes.mark_unknown(&TestProcesses::holder(1));
    let mut cursor = now(w);
    w.clock.advance(LEASE_TTL);
    assert_eq!(since(w, &mut cursor), ["a 1"]);
    w.store().renew(&lease, LEASE_TTL).unwrap();
    assert_eq!(since(w, &mut cursor), ["a 1"]);
}

fn a_holder_that_dies_is_told_once<F: Fixture>(w: &mut Harness<F>) {
    w.begin("a");
    let mut cursor = now(w);
    w.processes.mark_gone(&TestProcesses::holder(1));
    assert_eq!(since(w, &mut cursor), ["a 1"]);
    assert!(since(w, &mut cursor).is_empty());
    w.clock.advance(LEASE_TTL);
    assert!(since(w, &mut cursor).is_empty(), "its lease ran out, as was to be expected");
}

fn a_cursor_outlives_the_store_that_gave_it<F: Fixture>(w: &mut Harness<F>) {
    let lease = w.begin("a");
    let text = now(w).to_string();
    w.chat(&lease, "x", 1);
    w.reopen();
    let mut cursor: ChangeCursor = text.parse().unwrap();
    assert_eq!(since(w, &mut cursor), ["a 2"]);
}

fn a_cursor_that_is_not_understood_is_a_gap<F: Fixture>(w: &mut Harness<F>) {
    w.make(created("a"));
    let mut here = now(w);
    let words: Vec<String> = here.to_string().split(' ').map(str::to_owned).collect();
    for text in ["elsewhere 1 0".to_owned(), format!("{} x 0", words[0])] {
        let cursor: ChangeCursor = text.parse().unwrap();
        let found = w.store().changes(Some(&cursor), Wait::up_to(LONG)).unwrap();
        assert!(found.gap && found.changes.is_empty(), "{text}: {found:?}");
        here = found.cursor;
    }
    w.store().write(edit("a")).unwrap();
    assert_eq!(since(w, &mut here), ["a 2"]);
}

/// The changes that a wait returns while `act` runs.
fn told_while<F: Fixture, T>(w: &Harness<F>, act: impl FnOnce() -> T) -> Vec<String> {
    let (store, cursor) = (w.store(), now(w));
    let (ready, go) = mpsc::channel();
    std::thread::scope(|scope| {
        let waiter = scope.spawn(move || {
            ready.send(()).unwrap();
            store.changes(Some(&cursor), Wait::up_to(LONG))
        });
        go.recv().unwrap();
        drop(act());
        waiter.join().unwrap().unwrap().changes.iter().map(told).collect()
    })
}

fn a_wait_ends_with_a_change_of_another_handle<F: Fixture>(w: &mut Harness<F>) {
    w.make(created("a"));
    let other = w.another();
    let found = told_while(w, || other.write(edit("a")).unwrap());
    assert_eq!(found, ["a 2"]);
}

fn a_wait_ends_when_a_lease_runs_out<F: Fixture>(w: &mut Harness<F>) {
    w.begin("a");
    w.processes.mark_unknown(&TestProcesses::holder(1));
    assert_eq!(told_while(w, || w.clock.advance(LEASE_TTL)), ["a 1"]);
}

/// Writers on two handles, several sessions each: a reader that only follows changes knows every
/// session's final state.
fn nothing_is_missed_while_many_write<F: Fixture>(w: &mut Harness<F>) {
    const WRITERS: usize = 4;
    const WRITES: usize = 40;
    let names: Vec<String> = (0..6).map(|n| format!("s{n}")).collect();
    names.iter().for_each(|name| drop(w.make(created(name))));
    let other = w.another();
    let (store, mut cursor) = (w.store(), now(w));
    let done = AtomicBool::new(false);
    let known = std::thread::scope(|scope| {
        let reader = scope.spawn(|| {
            let mut known: HashMap<String, Seq> = HashMap::new();
            loop {
                // Read first, so that everything written before is in the answer.
                let last = done.load(Ordering::SeqCst);
                let wait = if last { Duration::ZERO } else { Duration::from_millis(20) };
                let found = store.changes(Some(&cursor), Wait::up_to(wait)).unwrap();
                assert!(!found.gap);
                for SessionChange { session, kind } in found.changes {
                    let ChangeKind::Updated { seq } = kind else { panic!("{kind:?}") };
                    known.insert(session.to_string(), seq);
                }
                cursor = found.cursor;
                if last {
                    return known;
                }
            }
        });
        let writers: Vec<_> = (0..WRITERS)
            .map(|n| {
                let (store, names) = if n % 2 == 0 { (store, &names) } else { (&*other, &names) };
                scope.spawn(move || {
                    for turn in 0..WRITES {
                        store.write(edit(&names[(n * 7 + turn * 5) % names.len()])).unwrap();
                    }
                })
            })
            .collect();
        writers.into_iter().for_each(|writer| writer.join().unwrap());
        done.store(true, Ordering::SeqCst);
        reader.join().unwrap()
    });
    for name in &names {
        assert_eq!(known.get(name), Some(&w.head(name).seq), "{name}");
    }
}

fn well<F: Fixture>(w: &mut Harness<F>) -> (Stepwell, Arc<dyn Store>) {
    let store = w.another();
    (Stepwell::with(Arc::clone(&store), Deps::default()), store)
}

fn a_subscriber_is_told_what_changes_and_another_what_concerns_it<F: Fixture>(w: &mut Harness<F>) {
    w.make(created("a"));
    w.make(created("b"));
    let (well, store) = well(w);
    let (all, of_b) = (well.subscribe().unwrap(), well.subscribe_to(&id("b")).unwrap());
    assert_eq!(all.next(Duration::ZERO).unwrap(), None);
    for name in ["a", "a", "b"] {
        store.write(edit(name)).unwrap();
    }
    let notice = |name: &str, seq| {
        let kind = ChangeKind::Updated { seq: Seq::new(seq) };
        Some(Notice::Changed(SessionChange { session: id(name), kind }))
    };
    assert_eq!(of_b.next(LONG).unwrap(), notice("b", 2));
    assert_eq!(of_b.next(Duration::ZERO).unwrap(), None);
    let mut told = [all.next(LONG).unwrap(), all.next(LONG).unwrap()];
    told.sort_by_key(|notice| format!("{notice:?}"));
    assert_eq!(told, [notice("a", 3), notice("b", 2)]);
    store.maintain().purge(&targets(&["b"])).unwrap();
    let gone = Notice::Changed(SessionChange { session: id("b"), kind: ChangeKind::Removed });
    assert_eq!(of_b.next(LONG).unwrap(), Some(gone));
}

fn many_subscribers_wait_while_one_looks<F: Fixture>(w: &mut Harness<F>) {
    const MANY: usize = 20;
    let names: Vec<String> = (0..MANY).map(|n| format!("s{n}")).collect();
    names.iter().for_each(|name| drop(w.make(created(name))));
    let (well, _) = well(w);
    let subscribed: Vec<_> =
        names.iter().map(|name| well.subscribe_to(&id(name)).unwrap()).collect();
    let store = w.store();
    std::thread::scope(|scope| {
        let waiting: Vec<_> = subscribed
            .iter()
            .map(|subscription| scope.spawn(move || subscription.next(LONG).unwrap()))
            .collect();
        // Another waiter must take over when the polling one returns.
        names.iter().for_each(|name| drop(store.write(edit(name)).unwrap()));
        for (name, waiter) in names.iter().zip(waiting) {
            let Some(Notice::Changed(change)) = waiter.join().unwrap() else {
                panic!("{name} waited in vain")
            };
            assert_eq!(told(&change), format!("{name} 2"));
        }
    });
}

fn a_subscriber_that_is_woken_stops_waiting_and_another_looks<F: Fixture>(w: &mut Harness<F>) {
    w.make(created("a"));
    let (well, store) = well(w);
    let subscribed = [well.subscribe().unwrap(), well.subscribe().unwrap()];
    let [first, second] = &subscribed;
    std::thread::scope(|scope| {
        let woken = scope.spawn(|| first.next(LONG).unwrap());
        let told = scope.spawn(|| second.next(LONG).unwrap());
        first.waker().wake();
        assert_eq!(woken.join().unwrap(), None);
        store.write(edit("a")).unwrap();
        assert!(told.join().unwrap().is_some());
    });
    // It missed nothing.
    assert!(first.next(Duration::ZERO).unwrap().is_some());
    drop(first.wake_on_drop());
    assert_eq!(first.next(LONG).unwrap(), None);
}

fn a_subscriber_is_told_of_a_session_that_it_adds<F: Fixture>(w: &mut Harness<F>) {
    w.make(created("a"));
    w.make(created("b"));
    let (well, store) = well(w);
    let subscription = well.subscribe_to(&id("a")).unwrap();
    store.write(edit("b")).unwrap();
    assert_eq!(subscription.next(Duration::ZERO).unwrap(), None);
    subscription.add(&id("b"));
    subscription.add(&id("b"));
    store.write(edit("b")).unwrap();
    let Some(Notice::Changed(change)) = subscription.next(LONG).unwrap() else { panic!("nothing") };
    assert_eq!(told(&change), "b 3");
    assert_eq!(subscription.next(Duration::ZERO).unwrap(), None);
}
