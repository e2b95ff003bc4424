//! Claims about appending events.

use stepwell::log::MAX_EVENT_BYTES;
use stepwell::model::{Edited, Part, Rewound, Role, Scope, Step, Time};
use stepwell::store::{Append, Expected, Write, Written};
use stepwell::{Created, Error, ErrorKind, Event, Message, Seq};

use crate::claims::claims;
use crate::harness::{created, id, say, seqs, texts};
use crate::{Fixture, Harness};

claims! { $ append = append_claims for Fixture:
    an_appended_event_is_read_back_as_it_was,
    one_append_may_record_many_events,
    seqs_are_dense_over_many_appends,
    appends_to_two_sessions_do_not_mix,
    an_append_to_nothing_names_the_session,
    an_empty_append_is_refused,
    an_illegal_event_in_the_middle_leaves_nothing,
    a_missing_blob_in_the_middle_leaves_nothing,
    an_expected_seq_that_holds_lets_the_append_through,
    an_expected_seq_that_moved_on_is_refused_with_the_actual_one,
    an_expected_seq_guards_an_edit_without_a_lease,
    of_two_compare_and_swaps_one_wins,
    an_event_keeps_the_time_that_it_came_with,
    an_event_without_a_time_gets_the_clocks,
    an_event_over_the_size_limit_is_refused_and_leaves_nothing,
    an_event_just_below_the_size_limit_is_kept,
    a_session_begins_only_once,
    events_appended_from_many_threads_are_all_there,
    an_append_that_fails_half_way_takes_no_neighbour_along,
    seqs_given_to_many_threads_are_dense_and_unique,
    an_append_to_a_trashed_session_is_refused,
    acknowledged_events_survive_reopening,
}

fn an_appended_event_is_read_back_as_it_was<F: Fixture>(w: &mut Harness<F>) {
    let lease = w.begin("a");
    let parts = vec![
        Part::text("füße 漢字 \u{0}\u{1f600}\r\n\t\"\\"),
        Part::Thinking(stepwell::model::Text {
            text: "hm".to_owned(),
            opaque: Some(stepwell::model::Opaque {
                provider: "acme".to_owned(),
                data: "sig=\u{7f}==  ".to_owned(),
            }),
        }),
    ];
    let message = Message::new(Role::Assistant, parts).calling("c1", "sh", "{\"x\": 1.0, ");
    let written = w.add(&lease, message.clone());
    let log = w.log("a");
    assert_eq!(log[1].seq, written.first);
    assert_eq!(log[1].event, Event::Message(message));
}

fn one_append_may_record_many_events<F: Fixture>(w: &mut Harness<F>) {
    let lease = w.begin("a");
    let written = w.try_add(&lease, vec![say("one"), say("two"), say("three")]).unwrap();
    let expected = Written { first: Seq::new(2), last: Seq::new(4), lease: None };
    assert_eq!(written, expected);
    assert_eq!(texts(&w.log("a")), ["one", "two", "three"]);
}

fn seqs_are_dense_over_many_appends<F: Fixture>(w: &mut Harness<F>) {
    let lease = w.begin("a");
    for n in 1..=20 {
        w.chat(&lease, "x", n % 3 + 1);
    }
    let log = w.log("a");
    assert_eq!(seqs(&log), (1..=log.len() as u64).collect::<Vec<_>>());
    assert_eq!(w.head("a").seq.get(), log.len() as u64);
}

fn appends_to_two_sessions_do_not_mix<F: Fixture>(w: &mut Harness<F>) {
    let (a, b) = (w.begin("a"), w.begin("b"));
    w.add(&a, say("a1"));
    w.add(&b, say("b1"));
    w.add(&a, say("a2"));
    assert_eq!(texts(&w.log("a")), ["a1", "a2"]);
    assert_eq!(texts(&w.log("b")), ["b1"]);
    assert_eq!(seqs(&w.log("a")), [1, 2, 3]);
}

fn an_append_to_nothing_names_the_session<F: Fixture>(w: &mut Harness<F>) {
    let error = w.tell("nobody", Edited::default()).unwrap_err();
    assert!(matches!(&error, Error::NoSession(name) if *name == id("nobody")), "{error}");
    assert_eq!(error.kind(), ErrorKind::Absent);
}

fn an_empty_append_is_refused<F: Fixture>(w: &mut Harness<F>) {
    let lease = w.begin("a");
    let error = w.try_add(&lease, Vec::new()).unwrap_err();
    assert!(matches!(error, Error::Illegal { .. }), "{error}");
    assert_eq!(error.kind(), ErrorKind::Invalid);
    assert_eq!(w.head("a").seq, Seq::FIRST);
}

fn an_illegal_event_in_the_middle_leaves_nothing<F: Fixture>(w: &mut Harness<F>) {
    let lease = w.begin("a");
    let before = w.store().info(&id("a")).unwrap();
    let nonsense = Rewound {
        to: Seq::new(99),
        scope: Scope::Chat,
        restored: stepwell::model::Restored::default(),
    };
    let events = vec![say("one"), nonsense.into(), say("three")];
    let error = w.try_add(&lease, events).unwrap_err();
    assert!(matches!(&error, Error::Illegal { kind, .. } if kind == "rewound"), "{error}");
    assert_eq!(w.store().info(&id("a")).unwrap(), before);
    assert_eq!(w.log("a").len(), 1);
    assert!(w.store().lanes(&id("a")).unwrap().is_empty());
    w.add(&lease, say("goes on"));
    w.assert_folded("a");
}

fn a_missing_blob_in_the_middle_leaves_nothing<F: Fixture>(w: &mut Harness<F>) {
    let lease = w.begin("a");
    let nowhere = crate::blob::written("x", stepwell::model::Digest::of(b"never stored"));
    let error = w.try_add(&lease, vec![say("one"), nowhere.into()]).unwrap_err();
    assert!(matches!(error, Error::NoBlob(_)), "{error}");
    assert_eq!(w.log("a").len(), 1);
    w.assert_folded("a");
}

fn swap(
    w: &Harness<impl Fixture>,
    epoch: stepwell::model::Epoch,
    expected: u64,
) -> stepwell::Result<Written> {
    w.store().write(Write::Append(Append {
        session: id("a"),
        epoch: Some(epoch),
        expected: Some(Expected::At(Seq::new(expected))),
        events: vec![say("swapped")].into(),
    }))
}

fn an_expected_seq_that_holds_lets_the_append_through<F: Fixture>(w: &mut Harness<F>) {
    let lease = w.begin("a");
    assert_eq!(swap(w, lease.epoch, 1).unwrap().last, Seq::new(2));
    assert_eq!(swap(w, lease.epoch, 2).unwrap().last, Seq::new(3));
}

fn an_expected_seq_that_moved_on_is_refused_with_the_actual_one<F: Fixture>(w: &mut Harness<F>) {
    let lease = w.begin("a");
    w.add(&lease, say("x"));
    for wrong in [0, 1, 3, 99] {
        let error = swap(w, lease.epoch, wrong).unwrap_err();
        let Error::UnexpectedSeq { expected, actual, .. } = &error else { panic!("{error}") };
        assert_eq!((expected.get(), actual.get()), (wrong, 2));
        assert_eq!(error.kind(), ErrorKind::Conflict);
    }
    assert_eq!(w.log("a").len(), 2);
}

fn an_expected_seq_guards_an_edit_without_a_lease<F: Fixture>(w: &mut Harness<F>) {
    w.make(created("a"));
    let edit = |expected| {
        w.store().write(Write::Append(Append {
            session: id("a"),
            epoch: None,
            expected: Some(Expected::At(Seq::new(expected))),
            events: vec![Edited::default().into()].into(),
        }))
    };
    assert!(edit(1).is_ok());
    let error = edit(1).unwrap_err();
    assert!(matches!(error, Error::UnexpectedSeq { .. }), "{error}");
}

fn of_two_compare_and_swaps_one_wins<F: Fixture>(w: &mut Harness<F>) {
    let epoch = w.begin("a").epoch;
    let w = &*w;
    let store = w.store();
    let attempt = || {
        store.write(Write::Append(Append {
            session: id("a"),
            epoch: Some(epoch),
            expected: Some(Expected::At(Seq::FIRST)),
            events: vec![say("me")].into(),
        }))
    };
    let won = std::thread::scope(|scope| {
        let runs: Vec<_> = (0..4).map(|_| scope.spawn(attempt)).collect();
        runs.into_iter().map(|run| run.join().unwrap()).filter(Result::is_ok).count()
    });
    assert_eq!(won, 1);
    assert_eq!(w.log("a").len(), 2);
}

fn an_event_keeps_the_time_that_it_came_with<F: Fixture>(w: &mut Harness<F>) {
    let lease = w.begin("a");
    let (early, late) =
        (Time::from_micros(1_234_567), w.now().plus(std::time::Duration::from_micros(1)));
    w.add(&lease, say("imported").at(early));
    assert_eq!(w.log("a")[1].at, early);
    assert_eq!(w.head("a").updated_at, w.head("a").created_at);
    w.add(&lease, say("ahead").at(late));
    assert_eq!(w.head("a").updated_at, late);
    w.assert_folded("a");
}

fn an_event_without_a_time_gets_the_clocks<F: Fixture>(w: &mut Harness<F>) {
    let lease = w.begin("a");
    w.tick();
    w.add(&lease, say("x"));
    assert_eq!(w.log("a")[1].at, w.now());
    assert_eq!(w.head("a").updated_at, w.now());
}

fn many_parts(n: usize) -> Message {
    // Each part is too short to become a blob, so all of them count.
    Message::new(Role::User, vec![Part::text("z".repeat(60_000)); n])
}

fn an_event_over_the_size_limit_is_refused_and_leaves_nothing<F: Fixture>(w: &mut Harness<F>) {
    let lease = w.begin("a");
    let events = vec![say("before"), many_parts(MAX_EVENT_BYTES / 60_000 + 1).into()];
    let error = w.try_add(&lease, events).unwrap_err();
    let Error::TooLarge { size, limit, .. } = &error else { panic!("{error}") };
    assert!(size > limit && *limit == MAX_EVENT_BYTES as u64);
    assert_eq!(w.log("a").len(), 1);
}

fn an_event_just_below_the_size_limit_is_kept<F: Fixture>(w: &mut Harness<F>) {
    let lease = w.begin("a");
    let large = many_parts(MAX_EVENT_BYTES / 60_000 - 1);
    w.add(&lease, large.clone());
    assert_eq!(w.log("a")[1].event, Event::Message(large));
}

fn a_session_begins_only_once<F: Fixture>(w: &mut Harness<F>) {
    let lease = w.begin("a");
    let again = Created::new(id("a"), "again");
    let error = w.try_add(&lease, vec![again.into()]).unwrap_err();
    assert!(matches!(error, Error::Illegal { .. }), "{error}");
}

fn events_appended_from_many_threads_are_all_there<F: Fixture>(w: &mut Harness<F>) {
    let leases: Vec<_> = (0..4).map(|n| w.begin(&format!("s{n}"))).collect();
    let w = &*w;
    let store = w.store();
    std::thread::scope(|scope| {
        for lease in &leases {
            scope.spawn(move || {
                for n in 1..=10 {
                    let step = Step { lane: stepwell::Lane::main(), n };
                    let append = Append {
                        session: lease.session.clone(),
                        epoch: Some(lease.epoch),
                        expected: Some(Expected::At(Seq::new(n))),
                        events: vec![step.into()].into(),
                    };
                    store.write(Write::Append(append)).unwrap();
                }
            });
        }
    });
    for n in 0..4 {
        let name = format!("s{n}");
        assert_eq!(seqs(&w.log(&name)), (1..=11).collect::<Vec<_>>());
        w.assert_folded(&name);
    }
}

fn an_append_that_fails_half_way_takes_no_neighbour_along<F: Fixture>(w: &mut Harness<F>) {
    let leases: Vec<_> = (0..4).map(|n| w.begin(&format!("s{n}"))).collect();
    let w = &*w;
    let store = w.store();
    std::thread::scope(|scope| {
        for (turn, lease) in leases.iter().enumerate() {
            scope.spawn(move || {
                for n in 0..20 {
                    let again = Created::new(lease.session.clone(), "again");
                    let fails = (n + turn) % 2 == 0;
                    let second = if fails { again.into() } else { say("whole") };
                    let append = Append {
                        session: lease.session.clone(),
                        epoch: Some(lease.epoch),
                        expected: None,
                        events: vec![say("half"), second].into(),
                    };
                    assert_eq!(store.write(Write::Append(append)).is_err(), fails);
                }
            });
        }
    });
    for n in 0..4 {
        let name = format!("s{n}");
        assert_eq!(texts(&w.log(&name)), ["half", "whole"].repeat(10));
        w.assert_folded(&name);
    }
}

fn seqs_given_to_many_threads_are_dense_and_unique<F: Fixture>(w: &mut Harness<F>) {
    w.make(created("a"));
    let w = &*w;
    let store = w.store();
    let edit = || {
        let append = Append {
            session: id("a"),
            epoch: None,
            expected: None,
            events: vec![Edited::default().into()].into(),
        };
        store.write(Write::Append(append)).unwrap().first.get()
    };
    let mut given: Vec<u64> = std::thread::scope(|scope| {
        let edits = || (0..10).map(|_| edit()).collect::<Vec<_>>();
        let runs: Vec<_> = (0..4).map(|_| scope.spawn(edits)).collect();
        let given = runs.into_iter().map(|run| run.join().unwrap());
        // Earlier results come first.
        given.inspect(|seqs| assert!(seqs.is_sorted())).flatten().collect()
    });
    given.sort_unstable();
    assert_eq!(given, (2..=41).collect::<Vec<_>>());
    w.assert_folded("a");
}

fn an_append_to_a_trashed_session_is_refused<F: Fixture>(w: &mut Harness<F>) {
    let lease = w.begin("a");
    w.release(&lease);
    w.store().maintain().trash(&[id("a").into()]).unwrap();
    let error = w.tell("a", Edited::default()).unwrap_err();
    assert!(matches!(&error, Error::Trashed(name) if *name == id("a")), "{error}");
    assert_eq!(w.log("a").len(), 1);
}

fn acknowledged_events_survive_reopening<F: Fixture>(w: &mut Harness<F>) {
    let lease = w.begin("a");
    for n in 1..=10 {
        w.chat(&lease, &n.to_string(), 1);
        w.reopen();
        assert_eq!(w.head("a").seq, Seq::new(n + 1));
    }
    w.assert_folded("a");
}
