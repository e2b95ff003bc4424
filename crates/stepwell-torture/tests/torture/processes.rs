//! Rivals: processes that share a store, and processes that fight for one session.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use rustix::process::Signal;
use stepwell::{Append, Claim, Error, Lease, Seq, SessionId, Span, SqliteStore, Store, Write};
use stepwell_torture::{Line, Load, Order, Shape};

use crate::child::{Victim, torture, was_killed};
use crate::ledger::{claim, create, loads_of};

/// Events of each of the four sessions that have one writer each.
const OWN: u64 = 1_500;
/// Events of the one session that four fight for.
const SHARED: u64 = 4_000;

fn session(name: &str) -> SessionId {
    name.parse().unwrap()
}

/// The appends of a session, each whole, at dense seqs; the session is sound.
fn loads(store: &SqliteStore, id: &SessionId) -> Vec<(Load, Seq, Seq)> {
    let verdict = store.verify(id).unwrap();
    assert!(verdict.is_sound(), "{id}: {verdict:?}");
    let events = store.events(id, Span::ALL).unwrap().intact(id).unwrap();
    loads_of(&events).unwrap_or_else(|what| panic!("{id}: {what}"))
}

fn acknowledged(lines: &[Line]) -> Vec<(Load, Seq, Seq)> {
    let kept = |line: &Line| match line {
        Line::Kept(_, load, first, last) => Some((load.clone(), *first, *last)),
        _ => None,
    };
    lines.iter().filter_map(kept).collect()
}

#[test]
fn four_processes_fill_four_sessions_of_a_store_that_all_of_them_make_at_once() {
    let folder = tempfile::tempdir().unwrap();
    let store = folder.path().join("store");
    let names = ["s1", "s2", "s3", "s4"];
    let mut victims: Vec<Victim> = names
        .iter()
        .map(|name| {
            let mut command = torture("fill", &store);
            Victim::start(command.args([*name, *name, &OWN.to_string()]))
        })
        .collect();
    victims.iter_mut().for_each(|victim| victim.tell("go"));
    let heard: Vec<Vec<Line>> = victims
        .into_iter()
        .map(|victim| {
            let (lines, status) = victim.finish();
            assert!(status.success(), "{status}");
            lines
        })
        .collect();
    let store = SqliteStore::open(&store).unwrap();
    for (name, lines) in names.into_iter().zip(heard) {
        let found = loads(&store, &session(name));
        assert_eq!(found.last().unwrap().2, Seq::new(OWN), "{name}");
        assert!(found == acknowledged(&lines), "{name} has other events");
        assert!(found.iter().all(|(load, ..)| load.by == name));
    }
    assert_eq!(store.integrity().unwrap(), [""; 0]);
}

#[test]
fn four_processes_that_fight_for_a_lease_hold_it_one_at_a_time_and_none_starves() {
    let folder = tempfile::tempdir().unwrap();
    let id = session("shared");
    let store = SqliteStore::open(folder.path()).unwrap();
    let lease = create(&store, &id).unwrap();
    let mut victims: Vec<Victim> =
        (1..=4).map(|n| fighter(folder.path(), &format!("p{n}"), 0)).collect();
    // Two more die while they hold it, again and again.
    let (mut deaths, mut heard) = (0, Vec::new());
    store.release(&lease).unwrap();
    victims.iter_mut().for_each(|victim| victim.tell("go"));
    while store.standing(&id).unwrap().head.seq.get() < SHARED * 3 / 4 {
        deaths += 1;
        let mut victim = fighter(folder.path(), &format!("mortal{deaths}"), 1 + deaths % 3);
        victim.tell("go");
        let (lines, status) = victim.finish();
        assert!(was_killed(status), "{status}");
        heard.extend(lines);
    }
    for victim in victims {
        let (lines, status) = victim.finish();
        assert!(status.success(), "{status}");
        heard.extend(lines);
    }
    drop(store);
    let store = SqliteStore::open(folder.path()).unwrap();
    let found = loads(&store, &id);
    assert!(found.last().unwrap().2.get() >= SHARED);
    let mut acknowledged = acknowledged(&heard);
    acknowledged.sort_by_key(|(_, first, _)| *first);
    assert!(found == acknowledged, "what was acknowledged is not what is there");

    let (mut newest, mut writers) = (0, BTreeMap::new());
    let mut share: BTreeMap<&str, u64> = BTreeMap::new();
    for (load, first, last) in &found {
        assert!(load.epoch >= newest, "at {first} an older epoch writes again");
        newest = load.epoch;
        let writer = writers.entry(load.epoch).or_insert(&load.by);
        assert_eq!(*writer, &load.by, "two wrote under epoch {newest}");
        *share.entry(&load.by).or_default() += 1 + last.get() - first.get();
    }
    let immortal = |n: u64| share.get(format!("p{n}").as_str()).copied().unwrap_or(0);
    let shares: Vec<u64> = (1..=4).map(immortal).collect();
    eprintln!(
        "processes: {} events in one session, shares {shares:?} of its {} holdings; \
         {deaths} died holding it; {} more in four sessions",
        found.last().unwrap().2,
        writers.len(),
        4 * OWN
    );
    assert!(deaths >= 5, "only {deaths} died");
    let fair = SHARED / 4;
    assert!(shares.iter().all(|share| *share >= fair / 5), "one starved: {shares:?}");
}

fn fighter(folder: &Path, by: &str, lives: u64) -> Victim {
    let mut command = torture("fight", folder);
    command.args(["shared", by, &SHARED.to_string(), &lives.to_string()]);
    let victim = Victim::start(&mut command);
    assert_eq!(victim.next(), Some(Line::Opened));
    victim
}

#[test]
fn a_holder_that_was_stopped_past_its_time_is_refused_when_it_wakes() {
    let folder = tempfile::tempdir().unwrap();
    let id = session("main");
    let mut victim = Victim::start(&mut torture("obey", folder.path()));
    victim.order(&Order::Open);
    victim.order(&Order::Create(id.clone()));
    victim.order(&Order::Release(id.clone()));
    while victim.next().unwrap() != Line::Released(id.clone()) {}
    let store = SqliteStore::open(folder.path()).unwrap();
    victim.order(&Order::Acquire(id.clone(), 1_000));
    let lease = loop {
        match victim.next().unwrap() {
            Line::Leased(_, epoch) => break epoch,
            Line::Refused(refusal) => panic!("{refusal:?}"),
            _ => {}
        }
    };
    victim.signal(Signal::STOP);
    // It lives, so its lease is its own until it expires.
    let mut refused = 0;
    let taken = loop {
        match store.acquire(&id, &claim()) {
            Ok(lease) => break lease,
            Err(Error::Held { .. }) => refused += 1,
            Err(error) => panic!("{error}"),
        }
        // Waits, for there is nothing to come.
        store.wait_after(&id, Seq::MAX, Duration::from_millis(5)).unwrap();
    };
    assert!(refused > 0, "the lease of a living process was taken from it");
    assert!(taken.epoch > lease);
    append(&store, &taken, 1).unwrap();
    victim.signal(Signal::CONT);
    let stale = Load { token: 2, shape: Shape::One, by: "stale".to_owned(), epoch: lease.get() };
    let mut refuses = |order: &Order| {
        victim.order(order);
        loop {
            match victim.next().unwrap() {
                Line::Trying(..) => {}
                Line::Refused(refusal) => break refusal.error,
                line => panic!("{order:?}: {line:?}"),
            }
        }
    };
    assert_eq!(refuses(&Order::Append(id.clone(), stale.clone())), "Fenced");
    assert_eq!(refuses(&Order::Renew(id.clone(), 30_000)), "Fenced");
    assert_eq!(refuses(&Order::Acquire(id.clone(), 30_000)), "Held");
    // Also once nobody holds it: what is lost stays lost.
    store.release(&taken).unwrap();
    assert_eq!(refuses(&Order::Append(id.clone(), stale)), "Fenced");
    assert_eq!(refuses(&Order::Renew(id.clone(), 30_000)), "Fenced");
    victim.kill();
    let found = loads(&store, &id);
    assert_eq!(found.len(), 1, "{found:?}");
}

#[test]
fn a_lease_of_a_process_that_was_killed_is_taken_at_once_and_of_a_living_one_never() {
    let folder = tempfile::tempdir().unwrap();
    let id = session("main");
    let mut victim = Victim::start(&mut torture("obey", folder.path()));
    victim.order(&Order::Open);
    victim.order(&Order::Create(id.clone()));
    while victim.next().unwrap() != Line::Created(id.clone()) {}
    let store = SqliteStore::open(folder.path()).unwrap();
    let long = Claim { ttl: Duration::from_secs(3_600), ..claim() };
    let held = store.acquire(&id, &long);
    assert!(matches!(held, Err(Error::Held { .. })), "{held:?}");
    victim.kill();
    let lease = store.acquire(&id, &long).unwrap();
    append(&store, &lease, 1).unwrap();
}

fn append(store: &SqliteStore, lease: &Lease, token: u64) -> stepwell::Result<()> {
    let load =
        Load { token, shape: Shape::One, by: "the test".to_owned(), epoch: lease.epoch.get() };
    let append = Append {
        session: lease.session.clone(),
        epoch: Some(lease.epoch),
        expected: None,
        events: load.events(),
    };
    store.write(Write::Append(append)).map(|_| ())
}
