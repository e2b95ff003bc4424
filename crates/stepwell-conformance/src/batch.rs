//! Claims about batches: several writes, all or none.

use stepwell::model::{Edited, Epoch, Origin};
use stepwell::store::query::Filter;
use stepwell::store::{Append, Create, Expected, LeaseRequest, Write};
use stepwell::{Created, Error, Lane, NewEvent, Seq};

use crate::claims::claims;
use crate::harness::{claim, create, created, id, say, texts};
use crate::{Fixture, Harness};

claims! { $ batch = batch_claims for Fixture:
    the_answers_come_in_the_order_of_the_writes,
    a_session_can_be_made_and_appended_to_in_one_batch,
    a_batch_writes_to_several_sessions,
    a_refused_write_leaves_nothing_of_the_others,
    a_refused_write_leaves_no_session_behind,
    a_parent_and_its_subagent_can_be_made_together,
    a_compare_and_swap_sees_the_writes_before_it,
    the_same_session_twice_in_a_batch_is_refused,
    a_failed_batch_does_not_stop_the_next,
    an_empty_batch_does_nothing,
    a_batch_survives_reopening,
    many_sessions_are_made_together,
    many_sessions_are_made_together_whatever_they_hold,
    of_many_sessions_none_is_made_if_one_is_there,
}

/// Many sessions of another program, each with its tags and these words.
fn many(of: &str, text: &str) -> Vec<Write> {
    let made = |n: u8| {
        let name = format!("{of}-{n}");
        let driven = created(&name).driven_externally().with_agent(format!("agent {n}"));
        let tag = if n.is_multiple_of(2) { Some(format!("tag {n}")) } else { None };
        let edited = Edited { tag: tag.into_iter().collect(), ..Edited::default() };
        let lane: Lane = "critic".parse().unwrap();
        let heard = stepwell::Message::assistant(text).in_lane(lane);
        let events = vec![say(text), heard.into(), edited.into()];
        [Write::Create(create(driven, None)), append(&name, None, events)]
    };
    (0..20).flat_map(made).collect()
}

fn append(name: &str, epoch: Option<Epoch>, events: Vec<NewEvent>) -> Write {
    Write::Append(Append { session: id(name), epoch, expected: None, events: events.into() })
}

fn make(name: &str, claim: Option<LeaseRequest>) -> Write {
    Write::Create(create(created(name), claim))
}

fn the_answers_come_in_the_order_of_the_writes<F: Fixture>(w: &mut Harness<F>) {
    let (a, b) = (w.begin("a"), w.begin("b"));
    w.chat(&b, "x", 3);
    let writes = vec![
        append("b", Some(b.epoch), vec![say("1"), say("2")]),
        make("c", Some(claim(1))),
        append("a", Some(a.epoch), vec![say("3")]),
    ];
    let answers = w.store().batch(writes).unwrap();
    let seqs: Vec<_> =
        answers.iter().map(|answer| (answer.first.get(), answer.last.get())).collect();
    assert_eq!(seqs, [(5, 6), (1, 1), (2, 2)]);
    assert_eq!(answers[1].lease.as_ref().unwrap().session, id("c"));
    assert!(answers[0].lease.is_none() && answers[2].lease.is_none());
}

fn a_session_can_be_made_and_appended_to_in_one_batch<F: Fixture>(w: &mut Harness<F>) {
    let writes = vec![
        make("a", Some(claim(1))),
        append("a", Some(Epoch::FIRST), vec![say("one"), say("two")]),
        append("a", None, vec![Edited::default().into()]),
    ];
    let answers = w.store().batch(writes).unwrap();
    let lease = answers[0].lease.clone().unwrap();
    assert_eq!(lease.epoch, Epoch::FIRST);
    assert_eq!(answers[2].last, Seq::new(4));
    assert_eq!(texts(&w.log("a")), ["one", "two"]);
    w.add(&lease, say("three"));
    w.assert_folded("a");
}

fn a_batch_writes_to_several_sessions<F: Fixture>(w: &mut Harness<F>) {
    let (a, b) = (w.begin("a"), w.begin("b"));
    let writes = (0..6)
        .map(|n| {
            let lease = if n % 2 == 0 { &a } else { &b };
            let name = lease.session.as_str();
            append(name, Some(lease.epoch), vec![say(&n.to_string())])
        })
        .collect();
    w.store().batch(writes).unwrap();
    assert_eq!(texts(&w.log("a")), ["0", "2", "4"]);
    assert_eq!(texts(&w.log("b")), ["1", "3", "5"]);
    w.assert_folded("a");
    w.assert_folded("b");
}

fn a_refused_write_leaves_nothing_of_the_others<F: Fixture>(w: &mut Harness<F>) {
    let (a, b) = (w.begin("a"), w.begin("b"));
    let info = |name| w.store().info(&id(name)).unwrap();
    let before = (info("a"), info("b"));
    w.tick();
    let stale = Some(Epoch::new(9));
    let writes = vec![
        append("a", Some(a.epoch), vec![say("one")]),
        append("b", stale, vec![say("two")]),
        append("a", Some(a.epoch), vec![say("three")]),
    ];
    let error = w.store().batch(writes).unwrap_err();
    assert!(matches!(&error, Error::Fenced { session, .. } if *session == b.session), "{error}");
    assert_eq!((info("a"), info("b")), before);
    assert_eq!((w.log("a").len(), w.log("b").len()), (1, 1));
    assert!(w.hits("one").is_empty());
}

fn a_refused_write_leaves_no_session_behind<F: Fixture>(w: &mut Harness<F>) {
    let writes = vec![
        make("a", Some(claim(1))),
        append("a", Some(Epoch::FIRST), vec![say("one")]),
        append("nobody", None, vec![Edited::default().into()]),
    ];
    let error = w.store().batch(writes).unwrap_err();
    assert!(matches!(&error, Error::NoSession(name) if *name == id("nobody")), "{error}");
    assert!(!w.has("a"));
    assert!(w.listed(Filter::default()).is_empty());
    let lease = w.begin("a");
    assert_eq!(lease.epoch, Epoch::FIRST);
}

fn a_parent_and_its_subagent_can_be_made_together<F: Fixture>(w: &mut Harness<F>) {
    let child = Created { origin: Origin::Subagent { parent: id("a") }, ..created("child") };
    let child = || Write::Create(create(child.clone(), None));
    let error = w.store().batch(vec![child(), make("a", None)]).unwrap_err();
    assert!(matches!(error, Error::NoSession(_)), "{error}");
    w.store().batch(vec![make("a", None), child()]).unwrap();
    assert_eq!(w.head("child").origin.parent(), Some(&id("a")));
}

fn a_compare_and_swap_sees_the_writes_before_it<F: Fixture>(w: &mut Harness<F>) {
    let lease = w.begin("a");
    let swap = |expected| {
        Write::Append(Append {
            session: id("a"),
            epoch: Some(lease.epoch),
            expected: Some(Expected::At(Seq::new(expected))),
            events: vec![say("x")].into(),
        })
    };
    let error = w.store().batch(vec![swap(1), swap(1)]).unwrap_err();
    assert!(matches!(error, Error::UnexpectedSeq { .. }), "{error}");
    assert_eq!(w.log("a").len(), 1);
    w.store().batch(vec![swap(1), swap(2)]).unwrap();
    assert_eq!(w.log("a").len(), 3);
}

fn the_same_session_twice_in_a_batch_is_refused<F: Fixture>(w: &mut Harness<F>) {
    let error = w.store().batch(vec![make("a", None), make("a", None)]).unwrap_err();
    assert!(matches!(error, Error::Exists(_)), "{error}");
    assert!(!w.has("a"));
}

fn a_failed_batch_does_not_stop_the_next<F: Fixture>(w: &mut Harness<F>) {
    let lease = w.begin("a");
    for n in 0..5 {
        let writes =
            vec![append("a", Some(lease.epoch), vec![say(&format!("lost {n}"))]), make("a", None)];
        assert!(w.store().batch(writes).is_err());
        w.add(&lease, say(&format!("kept {n}")));
    }
    let kept: Vec<_> = (0..5).map(|n| format!("kept {n}")).collect();
    assert_eq!(texts(&w.log("a")), kept);
    w.assert_folded("a");
}

fn an_empty_batch_does_nothing<F: Fixture>(w: &mut Harness<F>) {
    assert!(w.store().batch(Vec::new()).unwrap().is_empty());
    assert!(w.listed(Filter::default()).is_empty());
}

fn a_batch_survives_reopening<F: Fixture>(w: &mut Harness<F>) {
    let writes = ["a", "b", "c"]
        .into_iter()
        .map(|name| Write::Create(Create { at: Some(w.now()), ..create(created(name), None) }))
        .collect();
    w.store().batch(writes).unwrap();
    w.reopen();
    assert_eq!(w.listed(Filter::default()), ["a", "b", "c"]);
}

fn many_sessions_are_made_together<F: Fixture>(w: &mut Harness<F>) {
    let answers = w.store().batch(many("a", "aardvark")).unwrap();
    assert_eq!((answers.len(), answers[1].first, answers[1].last), (40, Seq::new(2), Seq::new(4)));
    w.reopen();
    for n in 0..20 {
        w.assert_folded(&format!("a-{n}"));
    }
    let tagged = Filter { tags: vec!["tag 4".to_owned()], ..Filter::default() };
    assert_eq!(w.listed(tagged), ["a-4"]);
    let of_agent = Filter { agent: Some("agent 7".to_owned()), ..Filter::default() };
    assert_eq!(w.listed(of_agent), ["a-7"]);
    assert_eq!(w.hits("aardvark").len(), 20);
    // They are sessions like any other.
    w.store().batch(vec![append("a-7", None, vec![say("later")])]).unwrap();
    w.assert_folded("a-7");
}

fn many_sessions_are_made_together_whatever_they_hold<F: Fixture>(w: &mut Harness<F>) {
    let long = "long ".repeat(40_000);
    w.store().batch(many("a", &long)).unwrap();
    assert_eq!(texts(&w.log("a-3")), [long.as_str(), &long]);
    w.assert_folded("a-3");
}

fn of_many_sessions_none_is_made_if_one_is_there<F: Fixture>(w: &mut Harness<F>) {
    w.make(created("a-5"));
    let error = w.store().batch(many("a", "x")).unwrap_err();
    assert!(matches!(error, Error::Exists(_)), "{error}");
    assert!(!w.has("a-4") && !w.has("a-6"));
    // Nor if one is refused.
    let mut writes = many("b", "x");
    writes.push(append("b-3", None, Vec::new()));
    assert!(w.store().batch(writes).is_err());
    assert!(!w.has("b-3"));
}
