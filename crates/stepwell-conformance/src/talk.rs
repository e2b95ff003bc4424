//! Claims about what people and programs tell a session: words, stops, settings, records.

use stepwell::model::{
    Epoch, Kind, Mode, Permission, Record, Rewound, Said, Scope, Settings, StatusChanged,
    StopAsked, Who,
};
use stepwell::store::{Append, Facts, Write, Written};
use stepwell::{Created, Error, Event, Lane, Message, NewEvent, Seq, Status, View};

use crate::claims::claims;
use crate::harness::{claim, created, event_id, id, say};
use crate::{Fixture, Harness};

claims! { $ talk = talk_claims for Fixture:
    a_word_needs_no_lease_and_is_not_shown_until_it_is_taken_in,
    a_word_is_taken_in_once_and_in_order,
    only_a_users_message_in_the_same_lane_takes_a_word_in,
    a_rewind_does_not_bring_a_word_back,
    a_fork_does_not_inherit_what_was_not_taken_in,
    a_stop_names_a_lease_that_is_held,
    settings_need_the_lease_and_survive_a_rewind_but_not_a_fork,
    another_programs_session_takes_events_without_a_lease,
    a_holder_keeps_another_program_out,
    settings_and_permissions_always_need_the_lease,
    another_programs_session_is_idle_until_something_says_otherwise,
    records_are_found_by_their_key_and_shown_to_no_model,
    a_record_without_a_proper_key_is_refused,
    a_record_keeps_its_blobs,
    an_event_is_found_by_the_clients_id,
}

fn said(text: &str) -> Said {
    Said { text: text.to_owned(), lane: Lane::main(), who: "ann@laptop".into(), now: false }
}

fn record(key: &str, data: &str) -> Record {
    let word = |word: &str| word.to_owned();
    Record {
        system: word("graph"),
        topic: word("checkpoint"),
        key: word(key),
        data: word(data),
        ..Record::default()
    }
}

fn external(name: &str) -> Created {
    created(name).driven_externally()
}

fn shown<F: Fixture>(w: &Harness<F>, name: &str) -> Vec<String> {
    let view = View::of(&Lane::main(), w.log(name));
    view.messages.iter().map(|shown| shown.message.text()).collect()
}

fn append<F: Fixture>(
    w: &Harness<F>,
    name: &str,
    event: impl Into<NewEvent>,
) -> stepwell::Result<Written> {
    let events = vec![event.into()];
    w.store().write(Write::Append(Append {
        session: id(name),
        epoch: None,
        expected: None,
        events: events.into(),
    }))
}

fn refused<F: Fixture>(
    w: &Harness<F>,
    lease: &stepwell::store::Lease,
    event: impl Into<NewEvent>,
) -> String {
    match w.try_add(lease, vec![event.into()]) {
        Err(error @ Error::Illegal { .. }) => error.to_string(),
        other => panic!("{other:?}"),
    }
}

fn a_word_needs_no_lease_and_is_not_shown_until_it_is_taken_in<F: Fixture>(w: &mut Harness<F>) {
    let lease = w.begin("a");
    w.add(&lease, say("hello"));
    let at = w.tell("a", said("and this")).unwrap().last;
    assert_eq!((w.head("a").unheard, shown(w, "a")), (1, vec!["hello".to_owned()]));
    w.add(&lease, Message::user("and this").taking_in(at));
    assert_eq!(w.head("a").unheard, 0);
    assert_eq!(shown(w, "a"), ["hello", "and this"]);
    assert_eq!(w.hits("this").len(), 2);
    w.assert_folded("a");
}

fn a_word_is_taken_in_once_and_in_order<F: Fixture>(w: &mut Harness<F>) {
    let lease = w.begin("a");
    let first = w.tell("a", said("1")).unwrap().last;
    let second = w.tell("a", said("2")).unwrap().last;
    w.add(&lease, Message::user("1").taking_in(first));
    let again = refused(w, &lease, Message::user("1").taking_in(first));
    assert!(again.contains("already delivered"), "{again}");
    w.add(&lease, Message::user("2").taking_in(second));
    w.reopen();
    refused(w, &lease, Message::user("2").taking_in(second));
    assert_eq!(w.head("a").unheard, 0);
    w.assert_folded("a");
}

fn only_a_users_message_in_the_same_lane_takes_a_word_in<F: Fixture>(w: &mut Harness<F>) {
    let lease = w.begin("a");
    let message = w.add(&lease, say("hello")).last;
    let lane: Lane = "critic".parse().unwrap();
    let at = w.tell("a", Said { lane: lane.clone(), ..said("you") }).unwrap().last;
    refused(w, &lease, Message::user("you").taking_in(at));
    refused(w, &lease, Message::user("x").taking_in(message));
    refused(w, &lease, Message::assistant("x").in_lane(lane.clone()).taking_in(at));
    refused(w, &lease, Message::user("x").taking_in(Seq::new(99)));
    w.add(&lease, Message::user("you").in_lane(lane).taking_in(at));
    assert_eq!(w.head("a").unheard, 0);
}

fn a_rewind_does_not_bring_a_word_back<F: Fixture>(w: &mut Harness<F>) {
    let lease = w.begin("a");
    let at = w.tell("a", said("word")).unwrap().last;
    w.add(&lease, Message::user("word").taking_in(at));
    w.add(&lease, Rewound { to: Seq::FIRST, scope: Scope::Chat, restored: Default::default() });
    assert_eq!((w.head("a").unheard, shown(w, "a").len()), (0, 0));
    refused(w, &lease, Message::user("word").taking_in(at));
    // What was said and not taken in stays for the next run.
    let later = w.tell("a", said("later")).unwrap().last;
    w.add(&lease, Rewound { to: Seq::FIRST, scope: Scope::Chat, restored: Default::default() });
    assert_eq!(w.head("a").unheard, 1);
    w.add(&lease, Message::user("later").taking_in(later));
    w.assert_folded("a");
}

fn a_fork_does_not_inherit_what_was_not_taken_in<F: Fixture>(w: &mut Harness<F>) {
    w.begin("a");
    let at = w.tell("a", said("for a")).unwrap().last;
    let fork = w.fork("a", at.get(), "b");
    assert_eq!(w.head("b").unheard, 0);
    refused(w, &fork, Message::user("for a").taking_in(at));
    let own = w.tell("b", said("for b")).unwrap().last;
    w.add(&fork, Message::user("for b").taking_in(own));
    assert_eq!((w.head("a").unheard, w.head("b").unheard), (1, 0));
    w.assert_folded("b");
}

fn a_stop_names_a_lease_that_is_held<F: Fixture>(w: &mut Harness<F>) {
    let lease = w.begin("a");
    let stop = |epoch| StopAsked { epoch, who: "ann@laptop".into(), reason: None };
    assert!(matches!(w.tell("a", stop(Epoch::new(7))), Err(Error::Illegal { .. })));
    let ttl = stepwell::store::LEASE_TTL;
    assert!(!w.store().renew(&lease, ttl).unwrap().stop_asked);
    w.tell("a", stop(lease.epoch)).unwrap();
    assert!(w.store().renew(&lease, ttl).unwrap().stop_asked);
    w.release(&lease);
    assert!(matches!(w.tell("a", stop(lease.epoch)), Err(Error::Illegal { .. })));
    // A later runner is not meant.
    let later = w.store().acquire(&id("a"), &claim(2)).unwrap();
    assert!(!w.store().renew(&later, ttl).unwrap().stop_asked);
    w.assert_folded("a");
}

fn settings_need_the_lease_and_survive_a_rewind_but_not_a_fork<F: Fixture>(w: &mut Harness<F>) {
    let lease = w.begin("a");
    let who = Who::new("ann", "laptop");
    let mode = |mode| Settings { mode: Some(mode), who: who.clone(), ..Settings::default() };
    assert!(matches!(w.tell("a", mode(Mode::Yolo)), Err(Error::NeedsLease { .. })));
    w.add(&lease, mode(Mode::ConfirmAll));
    w.add(&lease, Settings { agent: Some("plan".to_owned()), ..mode(Mode::Yolo) });
    w.add(&lease, Rewound { to: Seq::FIRST, scope: Scope::Both, restored: Default::default() });
    let head = w.head("a");
    let set = head.settings.unwrap();
    assert_eq!((set.mode, set.who.name.as_str()), (Some(Mode::Yolo), "ann@laptop"));
    assert_eq!(head.agent, "plan");
    w.fork("a", 3, "b");
    assert_eq!(w.head("b").settings, None);
    w.assert_folded("a");
    w.assert_folded("b");
}

fn another_programs_session_takes_events_without_a_lease<F: Fixture>(w: &mut Harness<F>) {
    w.make(external("a"));
    for n in 0..3 {
        append(w, "a", say(&format!("message {n}"))).unwrap();
    }
    append(w, "a", record("1", "{}")).unwrap();
    append(w, "a", StatusChanged { status: Status::Paused, reason: None, error: None }).unwrap();
    w.reopen();
    append(w, "a", say("after")).unwrap();
    assert_eq!((w.head("a").messages, w.head("a").status), (4, Status::Paused));
    w.begin("own");
    assert!(matches!(append(w, "own", say("x")), Err(Error::NeedsLease { .. })));
    w.assert_folded("a");
}

fn a_holder_keeps_another_program_out<F: Fixture>(w: &mut Harness<F>) {
    w.make(external("a"));
    append(w, "a", say("1")).unwrap();
    let other = w.another();
    let lease = other.acquire(&id("a"), &claim(2)).unwrap();
    assert!(matches!(append(w, "a", say("2")), Err(Error::Held { .. })));
    // What needs no lease still gets through.
    w.tell("a", said("hello")).unwrap();
    w.add(&lease, say("3"));
    other.release(&lease).unwrap();
    append(w, "a", say("4")).unwrap();
    w.assert_folded("a");
}

fn settings_and_permissions_always_need_the_lease<F: Fixture>(w: &mut Harness<F>) {
    w.make(external("a"));
    let permission = Permission::new("sh", true);
    let events: [Event; 2] = [Settings::default().into(), permission.into()];
    for event in events {
        assert!(matches!(append(w, "a", event), Err(Error::NeedsLease { .. })));
    }
}

fn another_programs_session_is_idle_until_something_says_otherwise<F: Fixture>(w: &mut Harness<F>) {
    w.make(external("a"));
    assert_eq!(w.head("a").status, Status::Idle);
    let filter =
        stepwell::store::query::Filter { status: vec![Status::Idle], ..Default::default() };
    assert_eq!(w.listed(filter), ["a"]);
    let to = |status| StatusChanged { status, reason: None, error: None };
    append(w, "a", to(Status::Running)).unwrap();
    assert_eq!(w.head("a").status, Status::Running);
    append(w, "a", to(Status::Success)).unwrap();
    assert_eq!(w.head("a").status, Status::Success);
}

fn records_are_found_by_their_key_and_shown_to_no_model<F: Fixture>(w: &mut Harness<F>) {
    let lease = w.begin_as(external("a"));
    w.add(&lease, say("hello"));
    let text = Some("found by marmalade".to_owned());
    w.add(&lease, Record { text, ..record("k1", r#"{"z":1, "a":2}"#) });
    w.add(&lease, record("k2", "two"));
    w.add(&lease, record("k1", "again"));
    assert_eq!(shown(w, "a"), ["hello"]);
    let under = |key: &str| -> Vec<String> {
        let found = w.store().keyed(&id("a"), Facts::under(&[Kind::Record], key)).unwrap();
        let data = |event: Event| match event {
            Event::Record(record) => record.data,
            other => panic!("{other:?}"),
        };
        found.into_iter().map(|fact| data(fact.event)).collect()
    };
    assert_eq!(under("graph/checkpoint/k1"), [r#"{"z":1, "a":2}"#, "again"]);
    assert_eq!(under("graph/checkpoint/k2"), ["two"]);
    assert_eq!(under("graph/checkpoint/k"), Vec::<String>::new());
    assert_eq!(w.hits("marmalade").len(), 1);
    // A fork finds what it shares.
    w.fork("a", 3, "b");
    let found = w.store().keyed(&id("b"), Facts::of(&[Kind::Record])).unwrap();
    assert_eq!(found.len(), 1);
    w.assert_folded("a");
}

fn a_record_without_a_proper_key_is_refused<F: Fixture>(w: &mut Harness<F>) {
    let lease = w.begin("a");
    refused(w, &lease, Record { system: String::new(), ..record("k", "") });
    refused(w, &lease, Record { topic: "a/b".to_owned(), ..record("k", "") });
    refused(w, &lease, record(&"k".repeat(stepwell::model::MAX_RECORD_KEY_BYTES), ""));
}

fn a_record_keeps_its_blobs<F: Fixture>(w: &mut Harness<F>) {
    let lease = w.begin("a");
    let blob = w.store().put_blob(b"state").unwrap();
    w.add(&lease, Record { blobs: vec![blob], ..record("k", "") });
    let never = stepwell::model::Digest::of(b"never");
    let missing = w.try_add(&lease, vec![Record { blobs: vec![never], ..record("k", "") }.into()]);
    assert!(matches!(missing, Err(Error::NoBlob(_))));
    w.release(&lease);
    w.store().maintain().purge(&[id("a").into()]).unwrap();
    assert!(w.store().blob(&blob).is_err());
}

fn an_event_is_found_by_the_clients_id<F: Fixture>(w: &mut Harness<F>) {
    let lease = w.begin("a");
    let named = say("named").with_id(event_id("x"));
    let at = w.add(&lease, named).last;
    w.add(&lease, say("other"));
    let find = |name: &str, event: &str| w.store().event(&id(name), &event_id(event)).unwrap();
    assert_eq!(find("a", "x").map(|found| found.seq), Some(at));
    assert_eq!(find("a", "y"), None);
    w.fork("a", at.get(), "b");
    assert_eq!(find("b", "x"), find("a", "x"));
    w.fork("a", 1, "c");
    assert_eq!(find("c", "x"), None);
}
