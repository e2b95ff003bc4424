//! Claims about creating sessions.

use stepwell::model::{Driver, Epoch, Flow, Origin, PhaseSet, Source, Time};
use stepwell::store::{Create, Write, Written};
use stepwell::{Created, Error, Event, Seq, Status};

use crate::claims::claims;
use crate::harness::{claim, create, created, event_id, id, say};
use crate::{Fixture, Harness, TestProcesses};

claims! { $ create = create_claims for Fixture:
    a_session_that_was_made_exists_and_others_do_not,
    a_new_session_begins_with_its_created_event,
    a_sessions_description_is_in_its_head,
    a_session_survives_reopening,
    a_second_session_of_the_same_name_is_refused,
    a_refused_duplicate_changes_nothing,
    a_session_can_be_made_at_an_earlier_time,
    a_claim_gives_the_first_epoch_in_the_same_write,
    without_a_claim_nobody_holds_the_session,
    making_it_again_under_the_same_event_id_answers_as_before,
    making_it_again_gives_the_same_lease_to_the_same_holder,
    making_it_again_gives_no_lease_to_another_holder,
    making_it_again_still_answers_after_other_events,
    another_event_id_does_not_pass_for_the_first,
    the_id_of_a_later_event_does_not_pass_for_the_first,
    a_subagent_needs_its_parent,
    a_fork_needs_its_parent,
    an_overlong_description_is_refused,
}

fn named(event: &str, claimed: Option<u32>) -> Write {
    Write::Create(Create {
        event_id: Some(event_id(event)),
        ..create(created("a"), claimed.map(claim))
    })
}

fn a_session_that_was_made_exists_and_others_do_not<F: Fixture>(w: &mut Harness<F>) {
    w.make(created("a"));
    assert!(w.has("a"));
    assert!(!w.has("b"));
    let error = w.store().info(&id("b")).unwrap_err();
    assert!(matches!(&error, Error::NoSession(name) if *name == id("b")), "{error}");
}

fn a_new_session_begins_with_its_created_event<F: Fixture>(w: &mut Harness<F>) {
    let written = w.make(created("a"));
    let expected = Written { first: Seq::FIRST, last: Seq::FIRST, lease: None };
    assert_eq!(written, expected);
    let log = w.log("a");
    assert_eq!(log.len(), 1);
    assert_eq!(log[0].seq, Seq::FIRST);
    assert_eq!(log[0].at, w.now());
    assert_eq!(log[0].event, Event::from(created("a")));
}

fn a_sessions_description_is_in_its_head<F: Fixture>(w: &mut Harness<F>) {
    let flow = Flow {
        name: "release".to_owned(),
        pattern: "chain".to_owned(),
        spec: "steps: []".to_owned(),
        hash: stepwell::model::SpecHash::of(b"steps: []"),
        variables: [("n".to_owned(), 3.into())].into(),
    };
    let source = Source {
        system: "codex".to_owned(),
        id: "x/1".to_owned(),
        started_at: Some(Time::from_micros(7)),
    };
    w.make(Created {
        agent: "coder".to_owned(),
        model: "large".to_owned(),
        provider: "acme".to_owned(),
        workspace: "/home/x".to_owned(),
        driver: Driver::External,
        phases: Some(PhaseSet::Lifecycle),
        flow: Some(flow),
        source: Some(source.clone()),
        ..created("a")
    });
    let head = w.head("a");
    assert_eq!(head.task, "the task of a");
    assert_eq!((&*head.agent, &*head.model), ("coder", "large"));
    assert_eq!((&*head.provider, &*head.workspace), ("acme", "/home/x"));
    assert_eq!(head.driver, Driver::External);
    assert_eq!(head.phase, Some(PhaseSet::Lifecycle.initial()));
    assert_eq!(head.flow.as_ref().unwrap().name, "release");
    assert_eq!(head.source, Some(source));
    assert_eq!(head.origin, Origin::Root);
    assert_eq!((head.created_at, head.updated_at), (w.now(), w.now()));
    w.assert_folded("a");
}

fn a_session_survives_reopening<F: Fixture>(w: &mut Harness<F>) {
    let lease = w.begin("a");
    w.add(&lease, say("hello"));
    let (log, info) = (w.log("a"), w.store().info(&id("a")).unwrap());
    w.reopen();
    assert_eq!(w.log("a"), log);
    assert_eq!(w.store().info(&id("a")).unwrap(), info);
    w.add(&lease, say("still mine"));
    w.assert_folded("a");
}

fn a_second_session_of_the_same_name_is_refused<F: Fixture>(w: &mut Harness<F>) {
    w.make(created("a"));
    let again = Write::Create(create(created("a"), None));
    let error = w.store().write(again).unwrap_err();
    assert!(matches!(&error, Error::Exists(name) if *name == id("a")), "{error}");
}

fn a_refused_duplicate_changes_nothing<F: Fixture>(w: &mut Harness<F>) {
    w.make(created("a"));
    let before = w.store().info(&id("a")).unwrap();
    w.tick();
    let other = Created::new(id("a"), "something else");
    let refused = w.store().write(Write::Create(create(other, Some(claim(2)))));
    assert!(refused.is_err());
    assert_eq!(w.store().info(&id("a")).unwrap(), before);
}

fn a_session_can_be_made_at_an_earlier_time<F: Fixture>(w: &mut Harness<F>) {
    let then = Time::from_micros(1_000_000_000_000_007);
    let write = Write::Create(Create { at: Some(then), ..create(created("a"), None) });
    w.store().write(write).unwrap();
    assert_eq!(w.head("a").created_at, then);
    assert_eq!(w.head("a").updated_at, then);
    assert_eq!(w.log("a")[0].at, then);
}

fn a_claim_gives_the_first_epoch_in_the_same_write<F: Fixture>(w: &mut Harness<F>) {
    let lease = w.begin("a");
    assert_eq!(lease.epoch, Epoch::FIRST);
    assert_eq!(lease.session, id("a"));
    assert_eq!(lease.expires, w.now().plus(stepwell::store::LEASE_TTL));
    let held = w.store().info(&id("a")).unwrap().held.unwrap();
    assert_eq!(held.holder, TestProcesses::holder(1));
    assert_eq!((held.epoch, held.expires), (lease.epoch, lease.expires));
    assert_eq!(w.head("a").status, Status::Running);
}

fn without_a_claim_nobody_holds_the_session<F: Fixture>(w: &mut Harness<F>) {
    w.make(created("a"));
    let info = w.store().info(&id("a")).unwrap();
    assert_eq!(info.held, None);
    assert_eq!(info.head.status, Status::Interrupted);
    let lease = w.store().acquire(&id("a"), &claim(2)).unwrap();
    assert_eq!(lease.epoch, Epoch::FIRST);
}

fn making_it_again_under_the_same_event_id_answers_as_before<F: Fixture>(w: &mut Harness<F>) {
    let first = w.store().write(named("birth", None)).unwrap();
    w.tick();
    let again = w.store().write(named("birth", None)).unwrap();
    assert_eq!(again, first);
    assert_eq!(w.log("a").len(), 1);
    assert_eq!(w.log("a")[0].id, Some(event_id("birth")));
    assert!(w.head("a").updated_at < w.now());
}

fn making_it_again_gives_the_same_lease_to_the_same_holder<F: Fixture>(w: &mut Harness<F>) {
    let first = w.store().write(named("birth", Some(1))).unwrap();
    assert!(first.lease.is_some());
    let again = w.store().write(named("birth", Some(1))).unwrap();
    assert_eq!(again, first);
    w.add(&again.lease.unwrap(), say("it holds"));
}

fn making_it_again_gives_no_lease_to_another_holder<F: Fixture>(w: &mut Harness<F>) {
    w.store().write(named("birth", Some(1))).unwrap();
    let other = w.store().write(named("birth", Some(2))).unwrap();
    assert_eq!(other.lease, None);
    let held = w.store().info(&id("a")).unwrap().held.unwrap();
    assert_eq!(held.holder, TestProcesses::holder(1));
}

fn making_it_again_still_answers_after_other_events<F: Fixture>(w: &mut Harness<F>) {
    let first = w.store().write(named("birth", Some(1))).unwrap();
    w.add(first.lease.as_ref().unwrap(), say("later"));
    let again = w.store().write(named("birth", Some(1))).unwrap();
    assert_eq!((again.first, again.last), (Seq::FIRST, Seq::FIRST));
    assert_eq!(w.log("a").len(), 2);
}

fn another_event_id_does_not_pass_for_the_first<F: Fixture>(w: &mut Harness<F>) {
    w.store().write(named("birth", None)).unwrap();
    let error = w.store().write(named("rebirth", None)).unwrap_err();
    assert!(matches!(error, Error::Exists(_)), "{error}");
}

fn the_id_of_a_later_event_does_not_pass_for_the_first<F: Fixture>(w: &mut Harness<F>) {
    let lease = w.begin("a");
    w.add(&lease, say("later").with_id(event_id("later")));
    let error = w.store().write(named("later", None)).unwrap_err();
    assert!(matches!(error, Error::Exists(_)), "{error}");
}

fn a_subagent_needs_its_parent<F: Fixture>(w: &mut Harness<F>) {
    let orphan = Created { origin: Origin::Subagent { parent: id("nobody") }, ..created("a") };
    let refused = w.store().write(Write::Create(create(orphan, None)));
    let error = refused.unwrap_err();
    assert!(matches!(&error, Error::NoSession(name) if *name == id("nobody")), "{error}");
    assert!(!w.has("a"));
}

fn a_fork_needs_its_parent<F: Fixture>(w: &mut Harness<F>) {
    let orphan =
        Created { origin: Origin::Fork { parent: id("nobody"), at: Seq::FIRST }, ..created("a") };
    let refused = w.store().write(Write::Create(create(orphan, None)));
    let error = refused.unwrap_err();
    assert!(matches!(&error, Error::NoSession(name) if *name == id("nobody")), "{error}");
    assert!(!w.has("a"));
}

fn an_overlong_description_is_refused<F: Fixture>(w: &mut Harness<F>) {
    let wordy = Created { agent: "x".repeat(5_000), ..created("a") };
    let refused = w.store().write(Write::Create(create(wordy, None)));
    let error = refused.unwrap_err();
    assert!(matches!(error, Error::TooLarge { .. }), "{error}");
    assert!(!w.has("a"));
}
