//! Claims about forks: they share a prefix, then diverge.

use stepwell::log::State;
use stepwell::model::{Change, Edited, Money, Origin, Phase, PhaseChanged, PhaseSet, Usage};
use stepwell::store::{Order, Span, Write};
use stepwell::{Created, Error, Message, Seq, Status};

use crate::claims::claims;
use crate::harness::{create, created, event_id, id, say, seqs, texts};
use crate::{Fixture, Harness};

claims! { $ fork = fork_claims for Fixture:
    a_fork_shares_the_events_up_to_its_point,
    a_forks_own_seqs_continue,
    a_fork_stands_where_its_parent_stood_then,
    a_fork_at_every_seq_stands_where_its_parent_stood,
    a_fork_far_back_in_a_long_session_stands_right,
    a_fork_starts_at_no_cost,
    a_fork_is_its_own_session,
    what_the_parent_does_later_does_not_show,
    what_the_fork_does_does_not_show_in_the_parent,
    a_fork_of_a_fork_shares_both,
    a_fork_of_a_fork_below_its_own_events_shares_the_root,
    a_fork_at_no_event_is_refused,
    a_fork_is_read_in_every_range_and_order,
    a_fork_survives_reopening,
    a_forks_own_words_are_found_in_it,
    shared_words_are_found_once,
    a_fork_takes_no_id_that_its_shared_events_bear,
    a_fork_does_not_begin_with_an_id_that_its_shared_events_bear,
    an_append_that_a_fork_shares_is_not_repeated_in_it,
    an_id_that_the_parent_used_after_the_fork_is_free_in_it,
    a_fork_made_again_under_its_event_id_is_answered,
    a_fork_made_in_a_batch_sees_the_writes_before_it,
}

/// a: 1 created, 2..=n+1 "a 1".."a n".
fn parent<F: Fixture>(w: &Harness<F>, n: usize) -> stepwell::store::Lease {
    let lease = w.begin("a");
    w.chat(&lease, "a", n);
    lease
}

fn a_fork_shares_the_events_up_to_its_point<F: Fixture>(w: &mut Harness<F>) {
    parent(w, 4);
    w.fork("a", 3, "f");
    let (parents, forks) = (w.log("a"), w.log("f"));
    assert_eq!(forks[..3], parents[..3]);
    assert_eq!(forks.len(), 4);
    let origin = Origin::Fork { parent: id("a"), at: Seq::new(3) };
    assert_eq!(w.head("f").origin, origin);
    w.assert_folded("f");
}

fn a_forks_own_seqs_continue<F: Fixture>(w: &mut Harness<F>) {
    parent(w, 4);
    let fork = w.fork("a", 3, "f");
    let written = w.add(&fork, say("own"));
    assert_eq!(written.first, Seq::new(5));
    assert_eq!(seqs(&w.log("f")), [1, 2, 3, 4, 5]);
    assert_eq!(texts(&w.log("f")), ["a 1", "a 2", "own"]);
    assert_eq!(w.head("f").messages, 3);
    w.assert_folded("f");
}

fn a_fork_stands_where_its_parent_stood_then<F: Fixture>(w: &mut Harness<F>) {
    let lease = w.begin_as(Created { phases: Some(PhaseSet::Lifecycle), ..created("a") });
    let goal = |text: &str| Edited {
        goal: Change::Set(text.to_owned()),
        tag: [text.to_owned()].into(),
        label: Change::Set(text.to_owned()),
        pinned: Some(true),
        ..Edited::default()
    };
    let go = |from, to| PhaseChanged { from, to };
    w.edit("a", goal("one"));
    w.add(&lease, go(Phase::Initializing, Phase::Planning));
    w.edit("a", goal("two"));
    w.add(&lease, go(Phase::Planning, Phase::Executing));
    w.begin_as(Created {
        phases: Some(PhaseSet::Lifecycle),
        origin: Origin::Fork { parent: id("a"), at: Seq::new(3) },
        ..created("f")
    });
    let head = w.head("f");
    assert_eq!(head.phase, Some(Phase::Planning));
    assert_eq!(head.goal.as_deref(), Some("one"));
    assert_eq!(head.tags, ["one".to_owned()].into());
    // Labels and pins belong to the session that got them.
    assert_eq!((head.label, head.pinned), (None, false));
    w.assert_folded("f");
}

fn a_fork_at_every_seq_stands_where_its_parent_stood<F: Fixture>(w: &mut Harness<F>) {
    parent(w, 6);
    let log = w.log("a");
    for at in 1..=7_usize {
        let name = format!("f{at}");
        w.fork("a", at as u64, &name);
        let then = State::fold(&log[..at]).unwrap().head;
        assert_eq!(w.head(&name).messages, then.messages);
        assert_eq!(w.log(&name)[..at], log[..at]);
        w.assert_folded(&name);
    }
}

fn a_fork_far_back_in_a_long_session_stands_right<F: Fixture>(w: &mut Harness<F>) {
    let lease = parent(w, 299);
    let side: stepwell::Lane = "side".parse().unwrap();
    for _ in 0..3 {
        w.chat(&lease, "more", 99);
        w.add(&lease, Message::user("side").in_lane(side.clone()));
    }
    for at in [1, 2, 255, 256, 257, 300, 400, 511, 512, 513, 599, 600] {
        let name = format!("f{at}");
        let fork = w.fork("a", at, &name);
        w.add(&fork, say("own"));
        w.assert_folded(&name);
        assert_eq!(w.head(&name).seq, Seq::new(at + 2));
        let second = format!("g{at}");
        w.fork(&name, at + 1, &second);
        w.assert_folded(&second);
    }
}

fn a_fork_starts_at_no_cost<F: Fixture>(w: &mut Harness<F>) {
    let lease = w.begin("a");
    let cost: Money = "1.5".parse().unwrap();
    let usage = Usage { input: 100, output: 10, ..Usage::default() };
    let paid = Message::assistant("x").spending(usage, Some(cost));
    let failure = stepwell::model::Failure { message: "oops".to_owned() };
    w.add(&lease, paid.clone());
    w.add(&lease, failure);
    let fork = w.fork("a", 3, "f");
    let head = w.head("f");
    assert_eq!(head.spent, stepwell::model::Spent::default());
    assert_eq!((head.errors, head.messages), (0, 1));
    let lanes = w.store().lanes(&id("f")).unwrap();
    let main = lanes[&stepwell::Lane::main()];
    assert_eq!((main.messages, main.spent), (1, stepwell::model::Spent::default()));
    w.add(&fork, paid);
    assert_eq!(w.head("f").spent.cost, cost);
    assert_eq!(w.head("a").spent.cost, cost);
    w.assert_folded("f");
}

fn a_fork_is_its_own_session<F: Fixture>(w: &mut Harness<F>) {
    let lease = parent(w, 2);
    let stop = stepwell::model::StatusChanged {
        status: Status::Failed,
        reason: None,
        error: Some("no".to_owned()),
    };
    w.add(&lease, stop);
    w.tick();
    w.fork("a", 4, "f");
    let head = w.head("f");
    assert_eq!((head.id, head.task), (id("f"), "the task of f".to_owned()));
    assert_eq!((head.status, head.error), (Status::Running, None));
    assert_eq!((head.created_at, head.updated_at), (w.now(), w.now()));
    assert_eq!(w.head("a").status, Status::Failed);
}

fn what_the_parent_does_later_does_not_show<F: Fixture>(w: &mut Harness<F>) {
    let lease = parent(w, 2);
    w.fork("a", 3, "f");
    let (log, info) = (w.log("f"), w.store().info(&id("f")).unwrap());
    w.chat(&lease, "later", 3);
    w.edit("a", Edited::default());
    assert_eq!(w.log("f"), log);
    assert_eq!(w.store().info(&id("f")).unwrap(), info);
    w.assert_folded("f");
}

fn what_the_fork_does_does_not_show_in_the_parent<F: Fixture>(w: &mut Harness<F>) {
    parent(w, 2);
    let (log, info) = (w.log("a"), w.store().info(&id("a")).unwrap());
    let fork = w.fork("a", 2, "f");
    w.chat(&fork, "own", 3);
    assert_eq!(w.log("a"), log);
    assert_eq!(w.store().info(&id("a")).unwrap(), info);
}

fn a_fork_of_a_fork_shares_both<F: Fixture>(w: &mut Harness<F>) {
    parent(w, 3);
    let f = w.fork("a", 3, "f");
    w.chat(&f, "f", 2);
    let g = w.fork("f", 5, "g");
    w.chat(&g, "g", 1);
    assert_eq!(texts(&w.log("g")), ["a 1", "a 2", "f 1", "g 1"]);
    assert_eq!(seqs(&w.log("g")), (1..=7).collect::<Vec<_>>());
    assert_eq!(w.log("g")[..5], w.log("f")[..5]);
    w.assert_folded("g");
}

fn a_fork_of_a_fork_below_its_own_events_shares_the_root<F: Fixture>(w: &mut Harness<F>) {
    parent(w, 5);
    let f = w.fork("a", 5, "f");
    w.chat(&f, "f", 2);
    let g = w.fork("f", 2, "g");
    w.chat(&g, "g", 1);
    assert_eq!(texts(&w.log("g")), ["a 1", "g 1"]);
    let origin = Origin::Fork { parent: id("f"), at: Seq::new(2) };
    assert_eq!(w.head("g").origin, origin);
    w.assert_folded("g");
}

fn a_fork_at_no_event_is_refused<F: Fixture>(w: &mut Harness<F>) {
    parent(w, 2);
    for at in [0, 4, 99, u64::MAX] {
        let origin = Origin::Fork { parent: id("a"), at: Seq::new(at) };
        let fork = Created { origin, ..created("f") };
        let refused = w.store().write(Write::Create(create(fork, None)));
        let error = refused.unwrap_err();
        assert!(matches!(error, Error::Illegal { .. }), "{error}");
        assert!(!w.has("f"));
    }
}

fn a_fork_is_read_in_every_range_and_order<F: Fixture>(w: &mut Harness<F>) {
    parent(w, 3);
    let f = w.fork("a", 3, "f");
    w.chat(&f, "f", 2);
    let g = w.fork("f", 5, "g");
    w.chat(&g, "g", 2);
    let all = w.log("g");
    assert_eq!(all.len(), 8);
    for from in 1..=9 {
        for to in 0..=9 {
            for limit in [1, 2, 3, usize::MAX] {
                let up =
                    Span { from: Seq::new(from), to: Seq::new(to), order: Order::Oldest, limit };
                let down = Span { order: Order::Newest, ..up };
                let wanted = all.iter().filter(|event| (from..=to).contains(&event.seq.get()));
                let expected: Vec<_> = wanted.clone().take(limit).cloned().collect();
                let slice = w.store().events(&id("g"), up).unwrap();
                assert_eq!((slice.events, slice.damage), (expected, None), "{up:?}");
                let expected: Vec<_> = wanted.rev().take(limit).cloned().collect();
                let slice = w.store().events(&id("g"), down).unwrap();
                assert_eq!((slice.events, slice.damage), (expected, None), "{down:?}");
            }
        }
    }
}

fn a_fork_survives_reopening<F: Fixture>(w: &mut Harness<F>) {
    parent(w, 3);
    let f = w.fork("a", 3, "f");
    w.chat(&f, "f", 2);
    let log = w.log("f");
    w.reopen();
    assert_eq!(w.log("f"), log);
    w.add(&f, say("more"));
    w.assert_folded("f");
}

fn a_forks_own_words_are_found_in_it<F: Fixture>(w: &mut Harness<F>) {
    parent(w, 3);
    assert!(w.hits("own").is_empty());
    let f = w.fork("a", 3, "f");
    w.add(&f, say("own"));
    assert_eq!(w.hits("own"), [("f".to_owned(), 5)]);
}

fn shared_words_are_found_once<F: Fixture>(w: &mut Harness<F>) {
    let lease = w.begin("a");
    w.add(&lease, say("shared"));
    w.fork("a", 2, "f");
    w.fork("a", 2, "g");
    assert_eq!(w.hits("shared"), [("a".to_owned(), 2)]);
}

fn a_fork_takes_no_id_that_its_shared_events_bear<F: Fixture>(w: &mut Harness<F>) {
    let lease = w.begin("a");
    w.add(&lease, say("x").with_id(event_id("x")));
    let f = w.fork("a", 2, "f");
    let other = say("another").with_id(event_id("x"));
    let error = w.try_add(&f, vec![other]).unwrap_err();
    let Error::EventIdReused { session, seq, .. } = &error else { panic!("{error}") };
    assert_eq!((session, seq.get()), (&id("f"), 2));
    assert_eq!(w.log("f").len(), 3);
}

fn a_fork_does_not_begin_with_an_id_that_its_shared_events_bear<F: Fixture>(w: &mut Harness<F>) {
    let lease = w.begin("a");
    w.add(&lease, say("x").with_id(event_id("x")));
    let fork = |at| {
        let origin = Origin::Fork { parent: id("a"), at: Seq::new(at) };
        let mut create = create(Created { origin, ..created("f") }, None);
        create.event_id = Some(event_id("x"));
        w.store().write(Write::Create(create))
    };
    let error = fork(2).unwrap_err();
    assert!(matches!(error, Error::EventIdReused { .. }), "{error}");
    assert!(!w.has("f"));
    fork(1).unwrap();
    w.release(&lease);
    w.store().maintain().purge(&[id("a").into()]).unwrap();
    w.assert_folded("f");
}

fn an_append_that_a_fork_shares_is_not_repeated_in_it<F: Fixture>(w: &mut Harness<F>) {
    let lease = w.begin("a");
    let event = say("x").with_id(event_id("x"));
    let first = w.add(&lease, event.clone());
    let f = w.fork("a", 2, "f");
    assert_eq!(w.add(&f, event), first);
    assert_eq!(w.log("f").len(), 3);
}

fn an_id_that_the_parent_used_after_the_fork_is_free_in_it<F: Fixture>(w: &mut Harness<F>) {
    let lease = w.begin("a");
    let f = w.fork("a", 1, "f");
    let event = say("x").with_id(event_id("x"));
    w.add(&lease, event.clone());
    let written = w.add(&f, event);
    assert_eq!(written.first, Seq::new(3));
    w.assert_folded("f");
}

fn a_fork_made_again_under_its_event_id_is_answered<F: Fixture>(w: &mut Harness<F>) {
    parent(w, 3);
    let make = || {
        let origin = Origin::Fork { parent: id("a"), at: Seq::new(3) };
        let fork = Created { origin, ..created("f") };
        let mut create = create(fork, None);
        create.event_id = Some(event_id("fork"));
        w.store().write(Write::Create(create)).unwrap()
    };
    let first = make();
    assert_eq!((first.first, first.last), (Seq::new(4), Seq::new(4)));
    assert_eq!(make(), first);
    assert_eq!(w.log("f").len(), 4);
}

fn a_fork_made_in_a_batch_sees_the_writes_before_it<F: Fixture>(w: &mut Harness<F>) {
    let lease = w.begin("a");
    let origin = Origin::Fork { parent: id("a"), at: Seq::new(2) };
    let fork = Created { origin, ..created("f") };
    let append = stepwell::store::Append {
        session: id("a"),
        epoch: Some(lease.epoch),
        expected: None,
        events: vec![say("just now")].into(),
    };
    let writes = vec![Write::Append(append), Write::Create(create(fork, None))];
    w.store().batch(writes).unwrap();
    assert_eq!(texts(&w.log("f")), ["just now"]);
    w.assert_folded("f");
}
