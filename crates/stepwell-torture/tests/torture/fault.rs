//! Disks that fail and disks that are full.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use stepwell::{SessionId, SqliteStore};
use stepwell_torture::{Dice, Line, Load, Order, Refusal, Shape};

use crate::child::{Victim, torture};
use crate::ledger::{Depth, Ledger};
use crate::shim::interpose;
use crate::{rounds, seed};

/// A process that obeys, with the shim below it.
struct Servant {
    victim: Victim,
    ledger: Ledger,
}

impl Servant {
    fn start(place: &Place, orders: &[(&str, &str)]) -> Self {
        let mut command = torture("obey", &place.store());
        interpose(&mut command, &place.store());
        command.env("TORTURE_REPORT", place.report());
        command.envs(orders.iter().copied());
        Self { victim: Victim::start(&mut command), ledger: Ledger::default() }
    }

    /// Orders one thing. Returns the answer, or why not.
    fn ask(&mut self, order: &Order) -> Result<Line, Refusal> {
        self.victim.order(order);
        loop {
            let line = self.victim.next().expect("an order is answered");
            self.ledger.hear(&line);
            match line {
                Line::Creating(_) | Line::Trying(..) | Line::Putting(_) | Line::Purging(_) => {}
                Line::Refused(refusal) => return Err(refusal),
                line => return Ok(line),
            }
        }
    }

    /// Orders one thing that must be done.
    fn must(&mut self, order: &Order) -> Line {
        self.ask(order).unwrap_or_else(|refusal| panic!("{order:?}: {refusal:?}"))
    }

    /// Ends it, and looks at what it leaves.
    fn finish(mut self, place: &Place) -> Ledger {
        let (lines, status) = self.victim.finish();
        assert!(lines.is_empty() && status.success(), "{lines:?} {status}");
        if let Err(what) = self.ledger.check(&place.open(), Depth::Whole) {
            panic!("{what}");
        }
        self.ledger
    }
}

/// Where a store is tortured.
struct Place(tempfile::TempDir);

impl Place {
    fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    fn store(&self) -> PathBuf {
        self.0.path().join("store")
    }

    fn report(&self) -> PathBuf {
        self.0.path().join("report")
    }

    fn full(&self) -> PathBuf {
        self.0.path().join("full")
    }

    fn open(&self) -> SqliteStore {
        SqliteStore::open(&self.store()).unwrap()
    }
}

fn session(name: &str) -> SessionId {
    name.parse().unwrap()
}

fn append(to: &str, token: u64, shape: Shape) -> Order {
    let load = Load { token, shape, by: "servant".to_owned(), epoch: 1 };
    Order::Append(session(to), load)
}

/// A little of everything, from an empty folder to a store that is opened again.
fn workload() -> Vec<Order> {
    let scratch = session("scratch");
    vec![
        Order::Open,
        Order::Create(session("main")),
        append("main", 1, Shape::One),
        append("main", 2, Shape::Many(5)),
        append("main", 3, Shape::Spill),
        Order::Put(4),
        append("main", 4, Shape::File),
        Order::Search(3),
        Order::Create(scratch.clone()),
        append("scratch", 5, Shape::Many(3)),
        Order::Release(scratch.clone()),
        Order::Purge(scratch),
        append("main", 6, Shape::One),
        Order::Close,
        Order::Open,
        append("main", 7, Shape::Many(9)),
        Order::Search(7),
        Order::Close,
    ]
}

/// Which of the workload's writes, truncations and syncs to fail: the first 120, in
/// which the store is made, and three a round of the others.
fn calls_to_fail() -> Vec<u64> {
    let place = Place::new();
    let mut servant = Servant::start(&place, &[]);
    for order in workload() {
        servant.must(&order);
    }
    servant.finish(&place);
    let report = fs::read_to_string(place.report()).unwrap();
    let calls = report.lines().find_map(|line| line.strip_suffix(" calls"));
    let calls: u64 = calls.unwrap().parse().unwrap();
    let mut dice = Dice::new(seed());
    let others = (0..3 * rounds()).map(|_| dice.between(121, calls));
    let chosen: BTreeSet<u64> = (1..=120).chain(others).collect();
    chosen.into_iter().collect()
}

/// What the shim failed: the kind of call, and the path.
fn failed(place: &Place) -> (String, String) {
    let report = fs::read_to_string(place.report()).unwrap();
    let line = report
        .lines()
        .find_map(|line| line.strip_prefix("failed "))
        .unwrap_or_else(|| panic!("the shim failed nothing: {report}"));
    let mut words = line.splitn(3, ' ').skip(1).map(str::to_owned);
    (words.next().unwrap(), words.next().unwrap())
}

/// Does the workload while its nth call fails, asking again for what is refused as a
/// user would. Returns what was refused.
fn endure(place: &Place, n: u64, errno: &str) -> Vec<Refusal> {
    let fail = format!("{n} {errno}");
    let mut servant = Servant::start(place, &[("TORTURE_FAIL", &fail)]);
    let mut refusals = Vec::new();
    for order in workload() {
        let Err(refusal) = servant.ask(&order) else {
            continue;
        };
        let (what, _) = failed(place);
        let is_write = !matches!(order, Order::Open | Order::Search(_));
        match refusal.kind.as_str() {
            // Nothing was kept, and the same handle goes on.
            "Full" => {
                servant.must(&order);
            }
            "Io" => {
                if what == "sync" && is_write {
                    let again = servant.ask(&order).unwrap_err();
                    assert_eq!(again.error, "Broken", "call {n}: {again:?}");
                }
                if order != Order::Open {
                    servant.must(&Order::Close);
                    servant.must(&Order::Open);
                }
                servant.must(&order);
            }
            _ => panic!("call {n}, {errno}: {order:?}: {refusal:?}"),
        }
        refusals.push(refusal);
    }
    servant.finish(place);
    refusals
}

#[test]
fn whichever_write_or_sync_fails_with_eio_nothing_acknowledged_is_lost() {
    let (calls, mut refused) = (calls_to_fail(), 0);
    for &n in &calls {
        let place = Place::new();
        let refusals = endure(&place, n, "EIO");
        let (what, path) = failed(&place);
        for refusal in &refusals {
            // SQLite does not say why its shared memory cannot grow; in practice it is
            // for want of space.
            let kind = if what == "write" && path.ends_with("-shm") { "Full" } else { "Io" };
            assert_eq!(refusal.kind, kind, "call {n}, {what} {path}: {refusal:?}");
        }
        refused += u64::from(!refusals.is_empty());
    }
    let calls = calls.len();
    eprintln!("fault: {calls} calls failed with EIO, {refused} of them refused something");
    assert!(calls >= 60 && refused >= 60, "{calls} {refused}");
}

#[test]
fn whichever_write_finds_no_space_nothing_is_kept_and_the_same_handle_goes_on() {
    let (calls, mut refused) = (calls_to_fail(), 0);
    for &n in &calls {
        let place = Place::new();
        let refusals = endure(&place, n, "ENOSPC");
        let (what, path) = failed(&place);
        for refusal in &refusals {
            // A sync that fails leaves nobody knowing, whatever its reason; and no file
            // system finds a truncation too large for its space.
            // The folder's sync says what it lacks.
            let known = what == "write" || path.ends_with("store");
            let kind = if known { "Full" } else { "Io" };
            assert_eq!(refusal.kind, kind, "call {n}, {what} {path}: {refusal:?}");
        }
        refused += u64::from(!refusals.is_empty());
    }
    let calls = calls.len();
    eprintln!("fault: {calls} calls failed with ENOSPC, {refused} of them refused something");
    assert!(calls >= 60 && refused >= 60, "{calls} {refused}");
}

#[test]
fn a_full_disk_refuses_clearly_and_writing_goes_on_in_the_same_handle_once_there_is_space() {
    let place = Place::new();
    let full = place.full();
    let mut servant = Servant::start(&place, &[("TORTURE_FULL", full.to_str().unwrap())]);
    servant.must(&Order::Open);
    servant.must(&Order::Create(session("main")));
    let (mut token, mut refusals) = (100, 0);
    for _ in 0..5 {
        servant.must(&append("main", token, Shape::Spill));
        fs::write(&full, "").unwrap();
        // What the log has room for is still taken; then nothing is.
        let mut refused = 0;
        for _ in 0..40 {
            token += 1;
            let shape =
                [Shape::One, Shape::Many(4), Shape::Spill][usize::try_from(token % 3).unwrap()];
            match servant.ask(&append("main", token, shape)) {
                Ok(_) => {}
                Err(refusal) => {
                    assert_eq!(refusal.error, "Full", "{refusal:?}");
                    refused += 1;
                }
            }
        }
        assert!(refused > 0, "the disk was never full");
        refusals += refused;
        for order in [Order::Put(token), Order::Create(session("late"))] {
            if let Err(refusal) = servant.ask(&order) {
                assert_eq!(refusal.error, "Full", "{refusal:?}");
            }
        }
        fs::remove_file(&full).unwrap();
        servant.must(&append("main", token, Shape::One));
        token += 1;
    }
    servant.must(&Order::Search(token - 1));
    let ledger = servant.finish(&place);
    eprintln!("fault: a full disk refused {refusals} writes; {} events kept", ledger.events());
}

#[test]
fn a_full_disk_refuses_each_of_those_that_share_a_commit_in_the_same_words() {
    let place = Place::new();
    let full = place.full();
    let mut servant = Servant::start(&place, &[("TORTURE_FULL", full.to_str().unwrap())]);
    servant.must(&Order::Open);
    servant.must(&Order::Create(session("main")));
    // Who shares a commit with whom is chance, so they try several times.
    for _ in 0..10 {
        fs::write(&full, "").unwrap();
        servant.victim.order(&Order::Crowd(8));
        for _ in 0..8 {
            match servant.victim.next().unwrap() {
                Line::Refused(refusal) => assert_eq!(refusal.error, "Full", "{refusal:?}"),
                line => panic!("{line:?}"),
            }
        }
    }
    fs::remove_file(&full).unwrap();
    servant.victim.order(&Order::Crowd(8));
    for _ in 0..8 {
        let line = servant.victim.next().unwrap();
        assert!(matches!(line, Line::Put(_)), "{line:?}");
    }
    servant.must(&append("main", 1, Shape::One));
    servant.finish(&place);
}

#[test]
fn a_store_cannot_be_made_on_a_full_disk_and_is_made_once_there_is_space() {
    let place = Place::new();
    let full = place.full();
    fs::write(&full, "").unwrap();
    let mut servant = Servant::start(&place, &[("TORTURE_FULL", full.to_str().unwrap())]);
    let refusal = servant.ask(&Order::Open).unwrap_err();
    assert_eq!(refusal.error, "Full", "{refusal:?}");
    assert_eq!(names_in(&place.store()), [""; 0], "nothing is left behind");
    fs::remove_file(&full).unwrap();
    servant.must(&Order::Open);
    servant.must(&Order::Create(session("main")));
    servant.must(&Order::Close);
    // A closed store has no log and no shared memory: opening it needs space.
    fs::write(&full, "").unwrap();
    let refusal = servant.ask(&Order::Open).unwrap_err();
    assert_eq!(refusal.error, "Full", "{refusal:?}");
    fs::remove_file(&full).unwrap();
    servant.must(&Order::Open);
    servant.must(&append("main", 1, Shape::One));
    servant.finish(&place);
}

fn names_in(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).unwrap();
    let name = |entry: std::io::Result<fs::DirEntry>| entry.unwrap().file_name();
    let mut names: Vec<_> =
        entries.map(|entry| name(entry).to_string_lossy().into_owned()).collect();
    names.sort();
    names
}
