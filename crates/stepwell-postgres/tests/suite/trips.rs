//! How many round trips an append takes, and what becomes of one whose answer is lost.

use std::time::Duration;

use stepwell::model::{Attachment, Driver, EventId, Kind, Origin, Question, Record};
use stepwell::store::query::{Family, Filter, KeyRange, Query, RecordQuery};
use stepwell::store::{
    Append, Create, Excerpt, Lease, LeaseRequest, Maintain as _, Processes, Span, SystemProcesses,
    Write, Written,
};
use stepwell::{Created, Event, Lane, Message, NewEvent, Seq, SessionId, Status, Store};
use stepwell_cluster::Proxy;
use stepwell_postgres::PostgresStore;

use crate::servers::{fresh, server};

fn begin(store: &dyn Store, name: &str) -> Lease {
    // Longer than any test here takes, on however busy a machine.
    let ttl = Duration::from_secs(3_600);
    let claim = LeaseRequest { holder: SystemProcesses.this(), ttl };
    let created = Created::new(name.parse().unwrap(), "t");
    let create = Create { created, event_id: None, at: None, claim: Some(claim) };
    store.write(Write::Create(create)).unwrap().lease.unwrap()
}

fn append(store: &dyn Store, lease: &Lease, events: Vec<NewEvent>) -> Written {
    let (session, epoch) = (lease.session.clone(), Some(lease.epoch));
    store
        .write(Write::Append(Append { session, epoch, expected: None, events: events.into() }))
        .unwrap()
}

fn texts(store: &dyn Store, lease: &Lease) -> Vec<String> {
    let events = store.events(&lease.session, Span::ALL).unwrap();
    let events = events.intact(&lease.session).unwrap();
    let text = |event: stepwell::Recorded| match event.event {
        Event::Message(message) => Some(message.text()),
        _ => None,
    };
    events.into_iter().filter_map(text).collect()
}

#[test]
fn an_append_is_one_round_trip_whatever_it_holds() {
    let proxy = Proxy::to(server().port());
    let store = PostgresStore::open(fresh(&proxy.url())).unwrap();
    let store: &dyn Store = &store;
    let lease = begin(store, "a");
    let blob = store.put_blob(b"the file").unwrap();
    let critic: Lane = "critic".parse().unwrap();
    let file = stepwell::model::FileChanged {
        path: "a.rs".to_owned(),
        before: stepwell::model::FileState::Absent,
        after: stepwell::model::FileState::File { blob, mode: 0o644 },
        renamed_from: None,
    };
    let mut kinds: Vec<(&str, Vec<NewEvent>)> = vec![
        ("a message", vec![Message::user("x").into()]),
        ("several", vec![Message::user("y").into(), Message::user("z").into()]),
        ("a long text", vec![Message::user("l".repeat(100_000)).into()]),
        ("another lane", vec![Message::user("c").in_lane(critic).into()]),
        ("the lane before", vec![Message::user("m").into()]),
        ("a file", vec![file.into()]),
    ];
    // Past a seq at which the fold is kept.
    kinds.push(("many", (0..300).map(|n| Message::user(format!("{n}")).into()).collect()));
    for (what, events) in kinds {
        let named = |n: usize, event: &NewEvent| NewEvent {
            id: Some(EventId::derived(format!("{what} {n}").as_bytes())),
            ..event.clone()
        };
        // The first of its form is prepared: one more.
        append(store, &lease, events.clone());
        let before = proxy.answers();
        append(store, &lease, events.iter().enumerate().map(|(n, e)| named(n, e)).collect());
        assert_eq!(proxy.answers() - before, 1, "{what}");
    }
    assert!(store.maintain().verify(&lease.session).unwrap().is_sound());
}

#[test]
fn a_record_without_a_lease_is_one_round_trip_with_its_blobs_or_without() {
    let proxy = Proxy::to(server().port());
    let store = PostgresStore::open(fresh(&proxy.url())).unwrap();
    let store: &dyn Store = &store;
    let session: SessionId = "a".parse().unwrap();
    let created = Created { driver: Driver::External, ..Created::new(session.clone(), "t") };
    let create = Create { created, event_id: None, at: None, claim: None };
    store.write(Write::Create(create)).unwrap();
    let record = |n: usize, bytes: Option<Vec<u8>>| {
        let attachment = bytes.map(Attachment::new);
        let blobs = attachment.iter().map(|one| one.digest).collect();
        let (system, topic) = ("langgraph".to_owned(), "checkpoint".to_owned());
        let record = Record { system, topic, key: n.to_string(), blobs, ..Record::default() };
        NewEvent::from(record).with(attachment)
    };
    let write = |events: Vec<NewEvent>| {
        let session = session.clone();
        store
            .write(Write::Append(Append {
                session,
                epoch: None,
                expected: None,
                events: events.into(),
            }))
            .unwrap();
    };
    let blob = |n: usize| Some(format!("blob {n}").repeat(n).into_bytes());
    for (what, make) in [
        ("a record", Box::new(|n| vec![record(n, None)]) as Box<dyn Fn(usize) -> Vec<NewEvent>>),
        ("with a blob", Box::new(|n| vec![record(n, blob(n))])),
        ("several", Box::new(|n| vec![record(n, blob(n)), record(n + 1, None)])),
    ] {
        // The first of its form is prepared: one more.
        write(make(1));
        let before = proxy.answers();
        write(make(2));
        assert_eq!(proxy.answers() - before, 1, "{what}");
    }
    let keys = KeyRange::StartsWith("langgraph/checkpoint/".to_owned());
    assert_eq!(store.records(&session, &RecordQuery::of(keys)).unwrap().len(), 8);
    assert!(store.maintain().verify(&session).unwrap().is_sound());
}

#[test]
fn an_append_whose_answer_was_lost_is_recorded_once() {
    let proxy = Proxy::to(server().port());
    let store = PostgresStore::open(fresh(&proxy.url())).unwrap();
    let lease = begin(&store, "a");
    append(&store, &lease, vec![Message::user("before").into()]);
    // Neither an id nor its absence makes a difference; the statement was kept both times.
    for (n, id) in [(1, None), (2, Some(EventId::derived(b"2")))] {
        proxy.cut_at_next_answer();
        let event = NewEvent { id, ..NewEvent::from(Message::user(format!("lost {n}"))) };
        let written = append(&store, &lease, vec![event]);
        assert_eq!((written.first, written.last), (Seq::new(n + 2), Seq::new(n + 2)));
    }
    append(&store, &lease, vec![Message::user("after").into()]);
    assert_eq!(texts(&store, &lease), ["before", "lost 1", "lost 2", "after"]);
    assert!(store.verify(&lease.session).unwrap().is_sound());
}

#[test]
fn a_session_whose_making_was_not_answered_is_made_once() {
    let proxy = Proxy::to(server().port());
    let store = PostgresStore::open(fresh(&proxy.url())).unwrap();
    drop(begin(&store, "warm"));
    for n in 0..6 {
        // Wherever among the statements of its transaction the wire is cut.
        let name = format!("made-{n}");
        proxy.cut_at_next_answer();
        let lease = begin(&store, &name);
        append(&store, &lease, vec![Message::user("x").into()]);
        assert_eq!(texts(&store, &lease), ["x"]);
    }
}

#[test]
fn an_append_goes_only_to_the_session_that_it_was_made_for() {
    let store = PostgresStore::open(fresh(&server().url())).unwrap();
    let store: &dyn Store = &store;
    let lease = begin(store, "put-back");
    let said = || vec![Message::user("x").into()];
    append(store, &lease, said());
    // As a server would have it that was put back in time, and gave the key to another session.
    let change = "UPDATE stepwell.heads h SET chain = sha256('another') FROM stepwell.sessions s \
         WHERE s.namespace = h.namespace AND s.key = h.session AND s.id = 'put-back'";
    let _ = server().sql(change);
    for events in [said(), said().into_iter().chain(said()).collect()] {
        let (session, epoch) = (lease.session.clone(), Some(lease.epoch));
        let append = Append { session, epoch, expected: None, events: events.into() };
        assert!(store.write(Write::Append(append)).is_err());
    }
    let kept = "SELECT count(*) FROM stepwell.events e JOIN stepwell.sessions s \
         ON s.namespace = e.namespace AND s.key = e.session WHERE s.id = 'put-back'";
    assert_eq!(server().sql(kept), "2");
}

#[test]
fn a_store_is_used_from_inside_an_async_program() {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let store = PostgresStore::open(fresh(&server().url())).unwrap();
        let lease = begin(&store, "a");
        // More than tokio has a task do before it has to give way.
        for _ in 0..300 {
            append(&store, &lease, vec![Message::user("x").into()]);
        }
        assert_eq!(texts(&store, &lease), ["x"; 300]);
        drop(store);
    });
}

#[test]
fn a_page_of_sessions_is_one_round_trip_and_what_belongs_to_them_one_more() {
    let proxy = Proxy::to(server().port());
    let store = PostgresStore::open(fresh(&proxy.url())).unwrap();
    let store: &dyn Store = &store;
    let names: Vec<SessionId> = (0..20).map(|n| format!("s{n}").parse().unwrap()).collect();
    for id in &names {
        let lease = begin(store, id.as_str());
        let long = Question::new("q", "why? ".repeat(20_000));
        append(store, &lease, vec![long.into(), Message::user("x").into()]);
        let created = Created {
            origin: Origin::Subagent { parent: id.clone() },
            ..Created::new(format!("{id}-child").parse().unwrap(), "t")
        };
        let create = Create { created, event_id: None, at: None, claim: None };
        store.write(Write::Create(create)).unwrap();
    }
    let asked = |what: &str, statements: u64, ask: &dyn Fn()| {
        let before = proxy.answers();
        ask();
        assert_eq!(proxy.answers() - before, statements, "{what}");
    };
    let roots = Filter { family: Family::Roots, ..Filter::default() };
    let list = |filter: &Filter| {
        let page = store.list(&Query { filter: filter.clone(), ..Query::default() }).unwrap();
        assert_eq!(page.sessions.len(), 20);
    };
    asked("a list", 1, &|| list(&roots));
    // Two statements, sent together.
    let running = Filter { status: vec![Status::Running], ..roots.clone() };
    asked("a list by status", 2, &|| list(&running));
    asked("subagents", 1, &|| assert_eq!(store.below(&names).unwrap().len(), 20));
    let wanted = Excerpt { keyed: &[Kind::Question], last: &[Kind::Message] };
    asked("excerpts, and their long texts", 2, &|| {
        let found = store.excerpts(&names, &wanted).unwrap();
        assert!(found.iter().all(|events| events.as_ref().unwrap().len() == 3));
    });
}
