//! A store that does all that a store does, so that each of its statements is heard.

use std::time::Duration;

use stepwell::log::Redactor;
use stepwell::model::{
    Attachment, Change, Digest, Driver, Edited, EventId, Kind, Origin, Question, Record, Time,
};
use stepwell::store::changes::Wait;
use stepwell::store::query::{
    Family, Filter, InScope, KeyRange, LedgerRows, NewestQuery, Query, Rank, RecordQuery, Search,
    Sort, TrashScope,
};
use stepwell::store::{
    Append, Create, Excerpt, Facts, Lease, LeaseRequest, Maintain as _, Order, Processes as _,
    Prune, Scrub, Selection, Server as _, Span, SystemProcesses, Target, Write, Written,
};
use stepwell::{Created, Lane, Message, NewEvent, Recorded, Seq, SessionId, Status, Store};
use stepwell_cluster::Proxy;
use stepwell_postgres::PostgresStore;

use crate::raw::Raw;

fn id(name: &str) -> SessionId {
    name.parse().unwrap()
}

fn claim() -> LeaseRequest {
    LeaseRequest { holder: SystemProcesses.this(), ttl: Duration::from_secs(3_600) }
}

fn create(store: &PostgresStore, created: Created, claim: Option<LeaseRequest>) -> Written {
    let event_id = Some(EventId::derived(created.id.as_str().as_bytes()));
    (store as &dyn Store)
        .write(Write::Create(Create { created, event_id, at: None, claim }))
        .unwrap()
}

fn begin(store: &PostgresStore, name: &str) -> Lease {
    create(store, Created::new(id(name), format!("the task of {name}")), Some(claim()))
        .lease
        .unwrap()
}

fn append(store: &PostgresStore, name: &str, epoch: Option<&Lease>, events: Vec<NewEvent>) {
    let epoch = epoch.map(|lease| lease.epoch);
    let append = Append { session: id(name), epoch, expected: None, events: events.into() };
    (store as &dyn Store).write(Write::Append(append)).unwrap();
}

fn record(key: &str, blob: Option<&[u8]>) -> NewEvent {
    let attachment = blob.map(|bytes| Attachment::new(bytes.to_vec()));
    let blobs = attachment.iter().map(|one| one.digest).collect();
    let (system, topic) = ("langgraph".to_owned(), "checkpoint".to_owned());
    let record = Record { system, topic, key: key.to_owned(), blobs, ..Record::default() };
    NewEvent::from(record).with(attachment)
}

/// Whatever a store does for a team's member.
pub(super) fn all(store: &PostgresStore) {
    let lease = runs(store);
    grows(store, &lease);
    records(store);
    many(store);
    reading(store);
    is_kept_in_order(store, &lease);
}

/// A run: one event, several, what comes with them, and its lease.
fn runs(store: &PostgresStore) -> Lease {
    let lease = begin(store, "a");
    let say = |text: &str| NewEvent::from(Message::user(text));
    append(store, "a", Some(&lease), vec![say("one")]);
    append(store, "a", Some(&lease), vec![say("two"), say("three")]);
    append(store, "a", Some(&lease), vec![say(&"l".repeat(100_000))]);
    let critic: Lane = "critic".parse().unwrap();
    append(store, "a", Some(&lease), vec![Message::user("c").in_lane(critic).into()]);
    append(store, "a", Some(&lease), (0..300).map(|n| say(&format!("many {n}"))).collect());
    append(store, "a", Some(&lease), vec![Question::new("q", "why?").into()]);
    let named = NewEvent { id: Some(EventId::derived(b"named")), ..say("named") };
    append(store, "a", Some(&lease), vec![named]);
    let edited = Edited {
        label: Change::Set("labelled".to_owned()),
        tag: ["one".to_owned()].into(),
        ..Edited::default()
    };
    append(store, "a", None, vec![edited.into()]);
    store.keep_blobs(&[(Digest::of(b"kept"), b"kept")]).unwrap();
    store.blobs(&[Digest::of(b"kept")]).unwrap();
    let lease = store.renew(&lease, Duration::from_secs(3_600)).unwrap();
    store.release(&lease).unwrap();
    let lease = store.acquire(&id("a"), &claim()).unwrap();
    append(store, "a", Some(&lease), vec![NewEvent::from(Message::user("again"))]);
    lease
}

/// Forks and subagents.
fn grows(store: &PostgresStore, lease: &Lease) {
    for (name, at) in [("fork", 3), ("fork-2", 2)] {
        let origin = Origin::Fork { parent: id("a"), at: Seq::new(at) };
        let fork =
            create(store, Created { origin, ..Created::new(id(name), "a fork") }, Some(claim()));
        let fork = fork.lease.unwrap();
        let said = |n: u8| NewEvent {
            id: Some(EventId::derived(&[n])),
            ..NewEvent::from(Message::user("forked"))
        };
        append(store, name, Some(&fork), vec![said(1)]);
        append(store, name, Some(&fork), vec![said(2)]);
        store.release(&fork).unwrap();
    }
    let origin = Origin::Subagent { parent: id("a") };
    create(store, Created { origin, ..Created::new(id("child"), "below") }, None);
    assert_eq!(lease.session, id("a"));
}

/// Another program's records, and what takes them away.
fn records(store: &PostgresStore) {
    let external = Created { driver: Driver::External, ..Created::new(id("graph"), "t") };
    create(store, external, None);
    append(store, "graph", None, vec![record("1", Some(b"blob 1"))]);
    append(store, "graph", None, vec![record("2", Some(b"blob 2")), record("3", None)]);
    let prune = Prune {
        session: id("graph"),
        epoch: None,
        expected: None,
        seqs: vec![Seq::new(2)],
        rule: "old".to_owned(),
    };
    (store as &dyn Store).write(Write::Prune(prune)).unwrap();
}

/// Many new sessions in one batch.
fn many(store: &PostgresStore) {
    let writes = (0..10).flat_map(|n| {
        let created =
            Created { driver: Driver::External, ..Created::new(id(&format!("many-{n}")), "t") };
        let tagged = Edited { tag: ["one".to_owned()].into(), ..Edited::default() };
        let critic: Lane = "critic".parse().unwrap();
        let events = vec![
            Message::user("x").into(),
            Message::user("c").in_lane(critic).into(),
            tagged.into(),
        ];
        let session = created.id.clone();
        [
            Write::Create(Create { created, event_id: None, at: None, claim: None }),
            Write::Append(Append { session, epoch: None, expected: None, events: events.into() }),
        ]
    });
    store.batch(writes.collect()).unwrap();
}

/// Every question.
pub(super) fn reading(store: &PostgresStore) {
    let (over, a) = (store as &dyn Store, id("a"));
    store.info(&a).unwrap();
    store.lanes(&a).unwrap();
    over.events(&a, Span::ALL).unwrap();
    over.events(&a, Span::last(2)).unwrap();
    over.events(&id("fork"), Span::ALL).unwrap();
    store.select(&a, Selection::Keyed(Facts::of(&[Kind::Question]))).unwrap();
    store.select(&a, Selection::Keyed(Facts::under(&[Kind::Question], "q"))).unwrap();
    store.select(&a, Selection::Named(&EventId::derived(b"named"))).unwrap();
    let keys = KeyRange::StartsWith("langgraph/checkpoint/".to_owned());
    for order in [Order::Newest, Order::Oldest] {
        let query = RecordQuery { keys: keys.clone(), order, limit: 5 };
        store.select(&id("graph"), Selection::Records(&query)).unwrap();
    }
    let beside = |_: &Recorded| KeyRange::StartsWith("langgraph/".to_owned());
    let newest = NewestQuery { keys: &keys, beside: &beside, known: None };
    store.select(&id("graph"), Selection::Newest(newest)).unwrap();
    let wanted = Excerpt { keyed: &[Kind::Question], last: &[Kind::Message] };
    store.excerpts(&[a.clone(), id("fork")], &wanted).unwrap();
    lists(store);
    let cursor = store.changes(None, Wait::NONE).unwrap().cursor;
    store.changes(Some(&cursor), Wait::NONE).unwrap();
    for (text, rank) in [
        ("task", Rank::Newest),
        ("many", Rank::Newest),
        ("nowhere", Rank::Relevance),
        ("many", Rank::Relevance),
    ] {
        let search = Search { rank, ..Search::new(text) };
        store.search(&search, &Redactor::default()).unwrap();
    }
    store.login().unwrap();
    store.written_by(&a, Seq::FIRST).unwrap();
    store.status().unwrap();
    store.retention().unwrap();
    store.owner().unwrap();
    store.begun_by_others(std::slice::from_ref(&a)).unwrap();
    store.with_others(std::slice::from_ref(&a)).unwrap();
    store.disk_use().unwrap();
    store.place(&a, Some(Seq::new(2))).unwrap();
    store.stale_leases().unwrap();
    store.verify(&a).unwrap();
    assert!(over.exists(&a).unwrap());
}

fn lists(store: &PostgresStore) {
    let text = || Some("x".to_owned());
    let filters = [
        Filter::default(),
        Filter { status: vec![Status::Running], ..Filter::default() },
        Filter {
            agent: text(),
            model: text(),
            tags: vec!["one".to_owned()],
            label: text(),
            task: text(),
            workspace: text(),
            system: text(),
            scope: Some(InScope::StartsWith("x".to_owned())),
            driver: Some(Driver::Own),
            since: Some(Time::EPOCH),
            until: Some(Time::EPOCH),
            prefix: text(),
            endings: vec!["x".to_owned()],
            part: text(),
            rewinding: true,
            rows: LedgerRows::Included,
            ..Filter::default()
        },
        Filter { place: TrashScope::Trash, family: Family::Roots, ..Filter::default() },
        Filter {
            place: TrashScope::Anywhere,
            family: Family::ChildrenOf(id("a")),
            ..Filter::default()
        },
        Filter { family: Family::Below(vec![id("a")]), ..Filter::default() },
    ];
    for filter in filters {
        store.list(&Query { filter: filter.clone(), ..Query::default() }).unwrap();
        store.count(&filter).unwrap();
    }
    for sort in [Sort::Updated, Sort::Created, Sort::Cost, Sort::Steps] {
        let query = Query { sort, limit: 1, ..Query::default() };
        let after = store.list(&query).unwrap().next;
        store.list(&Query { after, order: Order::Oldest, ..query }).unwrap();
    }
}

/// Repair, scrubs, and the search index.
fn is_kept_in_order(store: &PostgresStore, lease: &Lease) {
    let scrub = Scrub {
        session: id("a"),
        epoch: Some(lease.epoch),
        rule: "tokens".to_owned(),
        replacements: vec![(Seq::new(2), Message::user("[erased]").into())],
    };
    store.scrub(scrub).unwrap();
    store.repair(&id("a")).unwrap();
    store.rebuild_search().unwrap();
    store.sweep_blobs().unwrap();
}

/// Trash and purge, with what forks share, and damage.
pub(super) fn goes(store: &PostgresStore) {
    let lease = store.acquire(&id("fork"), &claim()).unwrap();
    store.release(&lease).unwrap();
    let target = |name: &str| Target::from(id(name));
    store.trash(&[target("fork"), target("fork-2")]).unwrap();
    store.restore(&[id("fork")]).unwrap();
    let open = store.info(&id("a")).unwrap().held.unwrap();
    store
        .release(&Lease {
            session: id("a"),
            epoch: open.epoch,
            expires: open.expires,
            stop_asked: false,
        })
        .unwrap();
    let removal = store.purge(&[target("a"), target("child"), target("fork-2")]).unwrap();
    assert!(removal.taken.contains(&id("a")), "{removal:?}");
    assert!(store.verify(&id("fork")).unwrap().is_sound());
    // Damage that is found is noted.
    let raw = Raw::to(super::TEAM);
    raw.run(
        "UPDATE stepwell.events SET body = '{}' WHERE seq = 4 \
         AND session = (SELECT key FROM stepwell.sessions WHERE id = 'graph')",
    );
    assert!(!store.verify(&id("graph")).unwrap().is_sound());
}

/// Writes whose answer is lost on the way.
pub(super) fn unanswered(store: &PostgresStore, wire: &Proxy) {
    let lease = begin(store, "lost");
    append(store, "lost", Some(&lease), vec![NewEvent::from(Message::user("before"))]);
    wire.cut_at_next_answer();
    append(store, "lost", Some(&lease), vec![NewEvent::from(Message::user("lost"))]);
    for n in 0..6 {
        wire.cut_at_next_answer();
        begin(store, &format!("made-{n}"));
    }
}
