//! Failing disks and full disks.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use stepwell::SessionId;
use stepwell::sqlite::SqliteStore;
use stepwell_torture::{Line, Load, Refusal, Request, Rng, Shape};

use crate::child::{TortureProcess, torture};
use crate::ledger::{Depth, Ledger};
use crate::shim::interpose;
use crate::{rounds, seed};

/// A process that handles requests, with the shim below it.
struct Server {
    process: TortureProcess,
    ledger: Ledger,
}

impl Server {
    fn start(fixture: &Fixture, faults: &[(&str, &str)]) -> Self {
        let mut command = torture("serve", &fixture.store());
        interpose(&mut command, &fixture.store());
        command.env("TORTURE_REPORT", fixture.report());
        command.envs(faults.iter().copied());
        Self { process: TortureProcess::start(&mut command), ledger: Ledger::default() }
    }

    /// Sends a request. Returns the answer or the error.
    fn ask(&mut self, request: &Request) -> Result<Line, Refusal> {
        self.process.send(request);
        loop {
            let line = self.process.next().expect("a request is answered");
            self.ledger.record(&line);
            match line {
                Line::Creating(_) | Line::Appending(..) | Line::Putting(_) | Line::Purging(_) => {}
                Line::Refused(refusal) => return Err(refusal),
                line => return Ok(line),
            }
        }
    }

    /// Sends a request that must succeed.
    fn must(&mut self, request: &Request) -> Line {
        self.ask(request).unwrap_or_else(|refusal| panic!("{request:?}: {refusal:?}"))
    }

    /// Ends the process, and checks what it left.
    fn finish(mut self, fixture: &Fixture) -> Ledger {
        let (lines, status) = self.process.finish();
        assert!(lines.is_empty() && status.success(), "{lines:?} {status}");
        if let Err(what) = self.ledger.check(&fixture.open(), Depth::Whole) {
            panic!("{what}");
        }
        self.ledger
    }
}

/// A folder for a store and the shim's files.
struct Fixture(tempfile::TempDir);

impl Fixture {
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

fn append(to: &str, token: u64, shape: Shape) -> Request {
    let load = Load { token, shape, by: "server".to_owned(), epoch: 1 };
    Request::Append(session(to), load)
}

/// Every operation once or more, from an empty folder to a store that is opened again.
fn workload() -> Vec<Request> {
    let scratch = session("scratch");
    vec![
        Request::Open,
        Request::Create(session("main")),
        append("main", 1, Shape::One),
        append("main", 2, Shape::Many(5)),
        append("main", 3, Shape::Spill),
        Request::Put(4),
        append("main", 4, Shape::File),
        Request::Search(3),
        Request::Create(scratch.clone()),
        append("scratch", 5, Shape::Many(3)),
        Request::Release(scratch.clone()),
        Request::Purge(scratch),
        append("main", 6, Shape::One),
        Request::Close,
        Request::Open,
        append("main", 7, Shape::Many(9)),
        Request::Search(7),
        Request::Close,
    ]
}

/// Which of the workload's writes, truncations and syncs to fail: the first 120, which create
/// the store, and three of the others per round.
fn calls_to_fail() -> Vec<u64> {
    let fixture = Fixture::new();
    let mut server = Server::start(&fixture, &[]);
    for request in workload() {
        server.must(&request);
    }
    server.finish(&fixture);
    let report = fs::read_to_string(fixture.report()).unwrap();
    let calls = report.lines().find_map(|line| line.strip_suffix(" calls"));
    let calls: u64 = calls.unwrap().parse().unwrap();
    let mut rng = Rng::new(seed());
    let others = (0..3 * rounds()).map(|_| rng.between(121, calls));
    let chosen: BTreeSet<u64> = (1..=120).chain(others).collect();
    chosen.into_iter().collect()
}

/// A call that the shim failed.
struct FailedCall {
    kind: String,
    path: String,
}

fn failed_call(fixture: &Fixture) -> FailedCall {
    let report = fs::read_to_string(fixture.report()).unwrap();
    let line = report
        .lines()
        .find_map(|line| line.strip_prefix("failed "))
        .unwrap_or_else(|| panic!("the shim failed nothing: {report}"));
    let mut words = line.splitn(3, ' ').skip(1).map(str::to_owned);
    FailedCall { kind: words.next().unwrap(), path: words.next().unwrap() }
}

/// Runs the workload while its nth call fails, and repeats failed requests as a user would.
/// Returns the errors.
fn run_with_fault(fixture: &Fixture, n: u64, errno: &str) -> Vec<Refusal> {
    let fail = format!("{n} {errno}");
    let mut server = Server::start(fixture, &[("TORTURE_FAIL", &fail)]);
    let mut refusals = Vec::new();
    for request in workload() {
        let Err(refusal) = server.ask(&request) else {
            continue;
        };
        let failed = failed_call(fixture);
        let is_write = !matches!(request, Request::Open | Request::Search(_));
        match refusal.kind.as_str() {
            // Nothing was stored, and the same handle stays usable.
            "Full" => {
                server.must(&request);
            }
            "Io" => {
                if failed.kind == "sync" && is_write {
                    let again = server.ask(&request).unwrap_err();
                    assert_eq!(again.error, "Broken", "call {n}: {again:?}");
                }
                if request != Request::Open {
                    server.must(&Request::Close);
                    server.must(&Request::Open);
                }
                server.must(&request);
            }
            _ => panic!("call {n}, {errno}: {request:?}: {refusal:?}"),
        }
        refusals.push(refusal);
    }
    server.finish(fixture);
    refusals
}

#[test]
fn if_any_write_or_sync_fails_with_eio_nothing_acknowledged_is_lost() {
    let (calls, mut refused) = (calls_to_fail(), 0);
    for &n in &calls {
        let fixture = Fixture::new();
        let refusals = run_with_fault(&fixture, n, "EIO");
        let FailedCall { kind: what, path } = failed_call(&fixture);
        for refusal in &refusals {
            // SQLite does not report why its shared memory cannot grow; in practice the disk is
            // full.
            let kind = if what == "write" && path.ends_with("-shm") { "Full" } else { "Io" };
            assert_eq!(refusal.kind, kind, "call {n}, {what} {path}: {refusal:?}");
        }
        refused += u64::from(!refusals.is_empty());
    }
    let calls = calls.len();
    eprintln!("fault: {calls} calls failed with EIO, {refused} of them caused errors");
    assert!(calls >= 60 && refused >= 60, "{calls} {refused}");
}

#[test]
fn if_any_write_finds_no_space_nothing_is_stored_and_the_same_handle_stays_usable() {
    let (calls, mut refused) = (calls_to_fail(), 0);
    for &n in &calls {
        let fixture = Fixture::new();
        let refusals = run_with_fault(&fixture, n, "ENOSPC");
        let FailedCall { kind: what, path } = failed_call(&fixture);
        for refusal in &refusals {
            // After a failed sync the state is unknown, whatever the reason; and no file
            // system runs out of space for a truncation.
            // The folder's sync reports the reason.
            let known = what == "write" || path.ends_with("store");
            let kind = if known { "Full" } else { "Io" };
            assert_eq!(refusal.kind, kind, "call {n}, {what} {path}: {refusal:?}");
        }
        refused += u64::from(!refusals.is_empty());
    }
    let calls = calls.len();
    eprintln!("fault: {calls} calls failed with ENOSPC, {refused} of them caused errors");
    assert!(calls >= 60 && refused >= 60, "{calls} {refused}");
}

#[test]
fn a_full_disk_is_reported_and_the_same_handle_writes_again_once_there_is_space() {
    let fixture = Fixture::new();
    let full = fixture.full();
    let mut server = Server::start(&fixture, &[("TORTURE_FULL", full.to_str().unwrap())]);
    server.must(&Request::Open);
    server.must(&Request::Create(session("main")));
    let (mut token, mut refusals) = (100, 0);
    for _ in 0..5 {
        server.must(&append("main", token, Shape::Spill));
        fs::write(&full, "").unwrap();
        // Appends succeed while the log has room; then all fail.
        let mut refused = 0;
        for _ in 0..40 {
            token += 1;
            let shape =
                [Shape::One, Shape::Many(4), Shape::Spill][usize::try_from(token % 3).unwrap()];
            match server.ask(&append("main", token, shape)) {
                Ok(_) => {}
                Err(refusal) => {
                    assert_eq!(refusal.error, "Full", "{refusal:?}");
                    refused += 1;
                }
            }
        }
        assert!(refused > 0, "the disk was never full");
        refusals += refused;
        for request in [Request::Put(token), Request::Create(session("late"))] {
            if let Err(refusal) = server.ask(&request) {
                assert_eq!(refusal.error, "Full", "{refusal:?}");
            }
        }
        fs::remove_file(&full).unwrap();
        server.must(&append("main", token, Shape::One));
        token += 1;
    }
    server.must(&Request::Search(token - 1));
    let ledger = server.finish(&fixture);
    eprintln!("fault: {refusals} writes failed on a full disk; {} events stored", ledger.events());
}

#[test]
fn on_a_full_disk_all_writers_of_a_shared_commit_get_the_same_error() {
    let fixture = Fixture::new();
    let full = fixture.full();
    let mut server = Server::start(&fixture, &[("TORTURE_FULL", full.to_str().unwrap())]);
    server.must(&Request::Open);
    server.must(&Request::Create(session("main")));
    // Which writers share a commit is random, so this is repeated.
    for _ in 0..10 {
        fs::write(&full, "").unwrap();
        server.process.send(&Request::Crowd(8));
        for _ in 0..8 {
            match server.process.next().unwrap() {
                Line::Refused(refusal) => assert_eq!(refusal.error, "Full", "{refusal:?}"),
                line => panic!("{line:?}"),
            }
        }
    }
    fs::remove_file(&full).unwrap();
    server.process.send(&Request::Crowd(8));
    for _ in 0..8 {
        let line = server.process.next().unwrap();
        assert!(matches!(line, Line::Put(_)), "{line:?}");
    }
    server.must(&append("main", 1, Shape::One));
    server.finish(&fixture);
}

#[test]
fn a_store_cannot_be_created_on_a_full_disk_and_is_created_once_there_is_space() {
    let fixture = Fixture::new();
    let full = fixture.full();
    fs::write(&full, "").unwrap();
    let mut server = Server::start(&fixture, &[("TORTURE_FULL", full.to_str().unwrap())]);
    let refusal = server.ask(&Request::Open).unwrap_err();
    assert_eq!(refusal.error, "Full", "{refusal:?}");
    assert_eq!(names_in(&fixture.store()), [""; 0], "nothing is left behind");
    fs::remove_file(&full).unwrap();
    server.must(&Request::Open);
    server.must(&Request::Create(session("main")));
    server.must(&Request::Close);
    // A closed store has no log and no shared memory: opening it needs space.
    fs::write(&full, "").unwrap();
    let refusal = server.ask(&Request::Open).unwrap_err();
    assert_eq!(refusal.error, "Full", "{refusal:?}");
    fs::remove_file(&full).unwrap();
    server.must(&Request::Open);
    server.must(&append("main", 1, Shape::One));
    server.finish(&fixture);
}

fn names_in(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).unwrap();
    let name = |entry: std::io::Result<fs::DirEntry>| entry.unwrap().file_name();
    let mut names: Vec<_> =
        entries.map(|entry| name(entry).to_string_lossy().into_owned()).collect();
    names.sort();
    names
}
