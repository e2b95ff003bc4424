//! Processes that share a store, and processes that contend for one session.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use rustix::process::Signal;
use stepwell::sqlite::SqliteStore;
use stepwell::store::{Append, Lease, LeaseRequest, Maintain as _, Span, Write};
use stepwell::{Error, Seq, SessionId, Store};
use stepwell_torture::{Line, Load, Request, Shape};

use crate::child::{TortureProcess, torture, was_killed};
use crate::ledger::{claim, create, loads_of};

/// The events of each of the four sessions with one writer each.
const OWN: u64 = 1_500;
/// The events of the one session that four processes contend for.
const SHARED: u64 = 4_000;

fn session(name: &str) -> SessionId {
    name.parse().unwrap()
}

/// The appends of a session, each complete, at dense seqs. Checks that the session is sound.
fn loads(store: &dyn Store, id: &SessionId) -> Vec<(Load, Seq, Seq)> {
    let verdict = store.maintain().verify(id).unwrap();
    assert!(verdict.is_sound(), "{id}: {verdict:?}");
    let events = store.events(id, Span::ALL).unwrap().intact(id).unwrap();
    loads_of(&events).unwrap_or_else(|what| panic!("{id}: {what}"))
}

fn acknowledged(lines: &[Line]) -> Vec<(Load, Seq, Seq)> {
    let kept = |line: &Line| match line {
        Line::Appended(_, load, first, last) => Some((load.clone(), *first, *last)),
        _ => None,
    };
    lines.iter().filter_map(kept).collect()
}

#[test]
fn four_processes_fill_four_sessions_of_a_store_that_they_all_create_at_once() {
    let folder = tempfile::tempdir().unwrap();
    let store = folder.path().join("store");
    let names = ["s1", "s2", "s3", "s4"];
    let mut processes: Vec<TortureProcess> = names
        .iter()
        .map(|name| {
            let mut command = torture("fill", &store);
            TortureProcess::start(command.args([*name, *name, &OWN.to_string()]))
        })
        .collect();
    processes.iter_mut().for_each(|process| process.write_line("go"));
    let outputs: Vec<Vec<Line>> = processes
        .into_iter()
        .map(|process| {
            let (lines, status) = process.finish();
            assert!(status.success(), "{status}");
            lines
        })
        .collect();
    let store = SqliteStore::open(&store).unwrap();
    for (name, lines) in names.into_iter().zip(outputs) {
        let found = loads(&store, &session(name));
        assert_eq!(found.last().unwrap().2, Seq::new(OWN), "{name}");
        assert!(found == acknowledged(&lines), "{name} has other events");
        assert!(found.iter().all(|(load, ..)| load.by == name));
    }
    assert_eq!(store.integrity().unwrap(), [""; 0]);
}

#[test]
fn four_processes_that_contend_for_a_lease_hold_it_one_at_a_time_and_none_starves() {
    let folder = tempfile::tempdir().unwrap();
    let id = session("shared");
    let store = SqliteStore::open(folder.path()).unwrap();
    let lease = create(&store, &id).unwrap();
    let mut processes: Vec<TortureProcess> =
        (1..=4).map(|n| contender(folder.path(), &format!("p{n}"), 0)).collect();
    // More processes kill themselves while they hold the lease, one after another.
    let (mut deaths, mut output) = (0, Vec::new());
    store.release(&lease).unwrap();
    processes.iter_mut().for_each(|process| process.write_line("go"));
    while store.info(&id).unwrap().head.seq.get() < SHARED * 3 / 4 {
        deaths += 1;
        let mut process = contender(folder.path(), &format!("mortal{deaths}"), 1 + deaths % 3);
        process.write_line("go");
        let (lines, status) = process.finish();
        assert!(was_killed(status), "{status}");
        output.extend(lines);
    }
    for process in processes {
        let (lines, status) = process.finish();
        assert!(status.success(), "{status}");
        output.extend(lines);
    }
    drop(store);
    let store = SqliteStore::open(folder.path()).unwrap();
    let found = loads(&store, &id);
    assert!(found.last().unwrap().2.get() >= SHARED);
    let mut acknowledged = acknowledged(&output);
    acknowledged.sort_by_key(|(_, first, _)| *first);
    assert!(found == acknowledged, "the store does not have what was acknowledged");

    let (mut newest, mut writers) = (0, BTreeMap::new());
    let mut share: BTreeMap<&str, u64> = BTreeMap::new();
    for (load, first, last) in &found {
        assert!(load.epoch >= newest, "an older epoch writes at {first}");
        newest = load.epoch;
        let writer = writers.entry(load.epoch).or_insert(&load.by);
        assert_eq!(*writer, &load.by, "two wrote under epoch {newest}");
        *share.entry(&load.by).or_default() += 1 + last.get() - first.get();
    }
    let immortal = |n: u64| share.get(format!("p{n}").as_str()).copied().unwrap_or(0);
    let shares: Vec<u64> = (1..=4).map(immortal).collect();
    eprintln!(
        "contention: {} events in one session, shares {shares:?} of its {} leases; \
         {deaths} died holding it; {} more in four sessions",
        found.last().unwrap().2,
        writers.len(),
        4 * OWN
    );
    assert!(deaths >= 5, "only {deaths} died");
    let fair = SHARED / 4;
    assert!(shares.iter().all(|share| *share >= fair / 5), "one starved: {shares:?}");
}

fn contender(folder: &Path, by: &str, die_at: u64) -> TortureProcess {
    let mut command = torture("contend", folder);
    command.args(["shared", by, &SHARED.to_string(), &die_at.to_string()]);
    let process = TortureProcess::start(&mut command);
    assert_eq!(process.next(), Some(Line::Opened));
    process
}

#[test]
fn a_holder_that_was_stopped_past_its_lease_is_fenced_when_it_continues() {
    let folder = tempfile::tempdir().unwrap();
    let id = session("main");
    let mut process = TortureProcess::start(&mut torture("serve", folder.path()));
    process.send(&Request::Open);
    process.send(&Request::Create(id.clone()));
    process.send(&Request::Release(id.clone()));
    while process.next().unwrap() != Line::Released(id.clone()) {}
    let store = SqliteStore::open(folder.path()).unwrap();
    let store: &dyn Store = &store;
    process.send(&Request::Acquire(id.clone(), 1_000));
    let lease = loop {
        match process.next().unwrap() {
            Line::Leased(_, epoch) => break epoch,
            Line::Refused(refusal) => panic!("{refusal:?}"),
            _ => {}
        }
    };
    process.signal(Signal::STOP);
    // The process is alive, so it keeps its lease until that expires.
    let mut refused = 0;
    let taken = loop {
        match store.acquire(&id, &claim()) {
            Ok(lease) => break lease,
            Err(Error::Held { .. }) => refused += 1,
            Err(error) => panic!("{error}"),
        }
        // A wait: no event will come.
        store.wait_after(&id, Seq::MAX, Duration::from_millis(5)).unwrap();
    };
    assert!(refused > 0, "the lease of a living process was taken from it");
    assert!(taken.epoch > lease);
    append(store, &taken, 1).unwrap();
    process.signal(Signal::CONT);
    let stale = Load { token: 2, shape: Shape::One, by: "stale".to_owned(), epoch: lease.get() };
    let mut refuses = |request: &Request| {
        process.send(request);
        loop {
            match process.next().unwrap() {
                Line::Appending(..) => {}
                Line::Refused(refusal) => break refusal.error,
                line => panic!("{request:?}: {line:?}"),
            }
        }
    };
    assert_eq!(refuses(&Request::Append(id.clone(), stale.clone())), "Fenced");
    assert_eq!(refuses(&Request::Renew(id.clone(), 30_000)), "Fenced");
    assert_eq!(refuses(&Request::Acquire(id.clone(), 30_000)), "Held");
    // Also after the new lease is released: a lost lease stays lost.
    store.release(&taken).unwrap();
    assert_eq!(refuses(&Request::Append(id.clone(), stale)), "Fenced");
    assert_eq!(refuses(&Request::Renew(id.clone(), 30_000)), "Fenced");
    process.kill();
    let found = loads(store, &id);
    assert_eq!(found.len(), 1, "{found:?}");
}

#[test]
fn the_lease_of_a_killed_process_is_free_at_once_and_that_of_a_live_one_never() {
    let folder = tempfile::tempdir().unwrap();
    let id = session("main");
    let mut process = TortureProcess::start(&mut torture("serve", folder.path()));
    process.send(&Request::Open);
    process.send(&Request::Create(id.clone()));
    while process.next().unwrap() != Line::Created(id.clone()) {}
    let store = SqliteStore::open(folder.path()).unwrap();
    let long = LeaseRequest { ttl: Duration::from_secs(3_600), ..claim() };
    let held = store.acquire(&id, &long);
    assert!(matches!(held, Err(Error::Held { .. })), "{held:?}");
    process.kill();
    let lease = store.acquire(&id, &long).unwrap();
    append(&store, &lease, 1).unwrap();
}

fn append(store: &dyn Store, lease: &Lease, token: u64) -> stepwell::Result<()> {
    let load =
        Load { token, shape: Shape::One, by: "the test".to_owned(), epoch: lease.epoch.get() };
    let append = Append {
        session: lease.session.clone(),
        epoch: Some(lease.epoch),
        expected: None,
        events: load.events().into(),
    };
    store.write(Write::Append(append)).map(|_| ())
}
