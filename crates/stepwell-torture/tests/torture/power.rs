//! Power cuts: what a disk may contain if only synced data is certain to be there.
//!
//! A run is recorded: every write, sync and change of a name, in order. At a cut, each file is
//! rebuilt from its synced data and any choice of sectors that were not synced. Each name
//! points where it did at the last sync of its folder, or later. The store must open there and
//! have everything that was acknowledged before the cut.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use stepwell::SessionId;
use stepwell::sqlite::SqliteStore;
use stepwell_torture::{Line, Rng};

use crate::child::{TortureProcess, torture, was_killed};
use crate::ledger::{Check, Depth, Ledger};
use crate::shim::interpose;
use crate::{rounds, seed};

/// What a disk writes atomically.
const SECTOR: usize = 512;

/// One operation of a process, as the shim recorded it.
#[derive(Clone, Debug)]
struct Operation {
    what: u8,
    path: PathBuf,
    bytes: Vec<u8>,
    offset: usize,
}

impl Operation {
    /// The second path of a link or a rename.
    fn target(&self) -> PathBuf {
        PathBuf::from(String::from_utf8(self.bytes.clone()).unwrap())
    }
}

fn read_trace(path: &Path) -> Vec<Operation> {
    let trace = fs::read(path).unwrap();
    let mut rest = &trace[..];
    let mut operations = Vec::new();
    while let Some((&what, after)) = rest.split_first() {
        rest = after;
        let path = String::from_utf8(take_counted(&mut rest)).unwrap();
        let bytes = take_counted(&mut rest);
        let (offset, after) = rest.split_first_chunk().unwrap();
        rest = after;
        operations.push(Operation {
            what,
            path: PathBuf::from(path),
            bytes,
            offset: usize::try_from(u64::from_ne_bytes(*offset)).unwrap(),
        });
    }
    operations
}

fn take_counted(rest: &mut &[u8]) -> Vec<u8> {
    let (count, after) = rest.split_first_chunk().unwrap();
    let count = usize::try_from(u32::from_ne_bytes(*count)).unwrap();
    let (bytes, after) = after.split_at(count);
    *rest = after;
    bytes.to_vec()
}

/// What a name points to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Node {
    Folder,
    File(usize),
}

/// A change to a file that is not synced yet.
#[derive(Clone, Debug)]
enum Change {
    Write(usize, Vec<u8>),
    Resize(usize),
}

#[derive(Clone, Debug, Default)]
struct Content {
    durable: Vec<u8>,
    pending: Vec<Change>,
}

/// The disk that a process writes to.
#[derive(Clone, Debug, Default)]
struct Disk {
    files: Vec<Content>,
    /// The names as the process sees them.
    live: BTreeMap<PathBuf, Node>,
    /// The names as they were when their folders were last synced.
    durable: BTreeMap<PathBuf, Node>,
    /// What each name pointed to since then, in order.
    pending: BTreeMap<PathBuf, Vec<Option<Node>>>,
}

/// How much of the unsynced data is left after a cut.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Cut {
    /// None.
    Least,
    /// Any part, chosen for each sector and each name.
    Torn,
}

impl Cut {
    /// How many of `n` successive changes are left.
    fn remaining(self, n: usize, rng: &mut Rng) -> usize {
        match self {
            Self::Least => 0,
            Self::Torn => usize::try_from(rng.between(0, n as u64)).unwrap(),
        }
    }
}

impl Disk {
    /// A disk with the current content of a folder, all of it synced.
    fn with(folder: &Path) -> Self {
        let mut disk = Self::default();
        disk.durable.insert(folder.to_owned(), Node::Folder);
        let mut folders = vec![folder.to_owned()];
        while let Some(folder) = folders.pop() {
            for entry in fs::read_dir(folder).unwrap() {
                let path = entry.unwrap().path();
                let node = if path.is_dir() {
                    folders.push(path.clone());
                    Node::Folder
                } else {
                    disk.files
                        .push(Content { durable: fs::read(&path).unwrap(), pending: Vec::new() });
                    Node::File(disk.files.len() - 1)
                };
                disk.durable.insert(path, node);
            }
        }
        disk.live = disk.durable.clone();
        disk
    }

    fn apply(&mut self, operation: &Operation) {
        let path = &operation.path;
        match operation.what {
            b'C' => {
                self.files.push(Content::default());
                self.name(path, Some(Node::File(self.files.len() - 1)));
            }
            b'M' => self.name(path, Some(Node::Folder)),
            b'L' => self.name(&operation.target(), self.live.get(path).copied()),
            b'R' => {
                self.name(&operation.target(), self.live.get(path).copied());
                self.name(path, None);
            }
            b'U' => self.name(path, None),
            b'W' => self.change(path, Change::Write(operation.offset, operation.bytes.clone())),
            b'T' => self.change(path, Change::Resize(operation.offset)),
            b'S' => self.sync(path),
            what => panic!("{what}"),
        }
    }

    fn name(&mut self, path: &Path, node: Option<Node>) {
        match node {
            Some(node) => self.live.insert(path.to_owned(), node),
            None => self.live.remove(path),
        };
        self.pending.entry(path.to_owned()).or_default().push(node);
    }

    fn change(&mut self, path: &Path, change: Change) {
        // A file without a name can still be written to, but does not matter.
        if let Some(&Node::File(file)) = self.live.get(path) {
            self.files[file].pending.push(change);
        }
    }

    fn sync(&mut self, path: &Path) {
        match self.live.get(path) {
            Some(&Node::File(file)) => {
                let content = &mut self.files[file];
                for change in content.pending.drain(..) {
                    change.apply(&mut content.durable);
                }
            }
            Some(Node::Folder) => {
                let inside = |name: &PathBuf, _: &mut Vec<_>| name.parent() == Some(path);
                for (name, nodes) in self.pending.extract_if(.., inside) {
                    match nodes.last().copied().flatten() {
                        Some(node) => self.durable.insert(name, node),
                        None => self.durable.remove(&name),
                    };
                }
            }
            None => {}
        }
    }

    /// Writes what is left after a cut into `to`, which replaces `root`.
    fn write_remains(&self, root: &Path, to: &Path, cut: Cut, rng: &mut Rng) {
        let mut names = self.durable.clone();
        for (name, nodes) in &self.pending {
            if let Some(last) = cut.remaining(nodes.len(), rng).checked_sub(1) {
                match nodes[last] {
                    Some(node) => names.insert(name.clone(), node),
                    None => names.remove(name),
                };
            }
        }
        // Names are sorted, so a folder comes before its content; content without a folder is lost.
        let mut folders = BTreeSet::from([root.to_owned()]);
        for (name, node) in names.iter().filter(|(name, _)| *name != root) {
            if !name.parent().is_some_and(|folder| folders.contains(folder)) {
                continue;
            }
            let path = to.join(name.strip_prefix(root).unwrap());
            match node {
                Node::Folder => {
                    fs::create_dir(path).unwrap();
                    folders.insert(name.clone());
                }
                // Shared memory does not survive a power cut.
                Node::File(_) if name.to_string_lossy().ends_with("-shm") => {}
                Node::File(file) => {
                    fs::write(&path, self.files[*file].remains(cut, rng)).unwrap();
                    fs::set_permissions(path, Permissions::from_mode(0o600)).unwrap();
                }
            }
        }
    }
}

impl Change {
    fn apply(&self, to: &mut Vec<u8>) {
        match self {
            Self::Resize(length) => to.resize(*length, 0),
            Self::Write(offset, bytes) => {
                let end = offset + bytes.len();
                if to.len() < end {
                    to.resize(end, 0);
                }
                to[*offset..end].copy_from_slice(bytes);
            }
        }
    }

    /// The sectors that it changes, of a file of at most `length` bytes.
    fn sectors(&self, length: usize) -> std::ops::Range<usize> {
        match self {
            Self::Write(offset, bytes) => offset / SECTOR..(offset + bytes.len()).div_ceil(SECTOR),
            Self::Resize(to) => to / SECTOR..length.div_ceil(SECTOR),
        }
    }
}

impl Content {
    /// What is left after a cut: each sector has its state after some of its changes, and the
    /// length likewise.
    fn remains(&self, cut: Cut, rng: &mut Rng) -> Vec<u8> {
        let mut left = self.durable.clone();
        if cut == Cut::Least {
            return left;
        }
        // Only the last few hundred changes can be unwritten; a disk writes older ones by itself.
        let (written, open) = self.pending.split_at(self.pending.len().saturating_sub(300));
        written.iter().for_each(|change| change.apply(&mut left));
        let mut latest = left.clone();
        let longest = open.iter().fold(latest.len(), |longest, change| match change {
            Change::Write(offset, bytes) => longest.max(offset + bytes.len()),
            Change::Resize(length) => longest.max(*length),
        });
        // For each sector, all its states.
        let sector = |of: &[u8], n: usize| {
            let mut bytes = [0; SECTOR];
            if let Some(there) = of.get(n * SECTOR..of.len().min((n + 1) * SECTOR)) {
                bytes[..there.len()].copy_from_slice(there);
            }
            bytes
        };
        let mut history: BTreeMap<usize, Vec<[u8; SECTOR]>> = BTreeMap::new();
        let mut lengths = vec![latest.len()];
        for change in open {
            let touched = change.sectors(longest);
            for n in touched.clone() {
                history.entry(n).or_insert_with(|| vec![sector(&latest, n)]);
            }
            change.apply(&mut latest);
            lengths.push(latest.len());
            for n in touched {
                history.entry(n).or_default().push(sector(&latest, n));
            }
        }
        left.resize(longest.next_multiple_of(SECTOR), 0);
        // Sometimes most sectors were written, sometimes hardly any.
        let (mode, pick) = (rng.below(3), lengths.len() as u64 - 1);
        for (n, states) in history {
            let last = states.len() - 1;
            let chosen = match mode {
                0 => cut.remaining(last, rng),
                1 if rng.one_in(8) => 0,
                2 if !rng.one_in(8) => 0,
                _ => last,
            };
            left[n * SECTOR..(n + 1) * SECTOR].copy_from_slice(&states[chosen]);
        }
        left.truncate(lengths[usize::try_from(rng.between(0, pick)).unwrap()]);
        left
    }
}

/// A recorded run.
struct Recording {
    root: PathBuf,
    before: Disk,
    /// What was acknowledged before the recording.
    ledger: Ledger,
    operations: Vec<Operation>,
    session: SessionId,
    /// The store's folder below `root`.
    store: &'static str,
    _folder: tempfile::TempDir,
}

/// What a run starts with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Start {
    /// Nothing, not even the folder.
    Nothing,
    /// A store whose writer was killed: its log must be recovered first.
    Killed,
}

impl Recording {
    fn of(start: Start, seed: u64, point: &str, passes: u64) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().canonicalize().unwrap().join("root");
        fs::create_dir(&root).unwrap();
        let store = "workspace/.stepwell";
        let session: SessionId = "main".parse().unwrap();
        let mut ledger = Ledger::default();
        let mut run = |by: &str, seed: u64, point: &str, passes: u64, trace: Option<&Path>| {
            let mut command = torture("write", &root.join(store));
            command.args([session.as_str(), by, &seed.to_string()]);
            command.args([point, &passes.to_string()]);
            if let Some(trace) = trace {
                interpose(&mut command, &root).env("TORTURE_TRACE", trace);
            }
            let (lines, status) = TortureProcess::start(&mut command).finish();
            assert!(was_killed(status), "seed {seed}: {status}");
            if trace.is_none() {
                lines.iter().for_each(|line| ledger.record(line));
            }
        };
        if start == Start::Killed {
            run("before", !seed, "write.before_commit", 25, None);
        }
        let before = Disk::with(&root);
        let trace = folder.path().join("trace");
        run("recorded", seed, point, passes, Some(&trace));
        Self {
            operations: read_trace(&trace),
            root,
            before,
            ledger,
            session,
            store,
            _folder: folder,
        }
    }

    /// Cuts the power after each of these operations and checks what is left. `synced` tells
    /// which syncs are effective. Returns the failures.
    fn cut(
        &self,
        cuts: &BTreeSet<usize>,
        rng: &mut Rng,
        how: &[Cut],
        synced: impl Fn(&Operation) -> bool,
    ) -> Vec<String> {
        let mut disk = self.before.clone();
        let mut ledger = self.ledger.clone();
        let mut failures = Vec::new();
        for (at, operation) in self.operations.iter().enumerate() {
            if operation.what == b'A' {
                let text = String::from_utf8(operation.bytes.clone()).unwrap();
                let line: Line = serde_json::from_str(&text).unwrap();
                ledger.record(&line);
            } else if operation.what != b'S' || synced(operation) {
                disk.apply(operation);
            }
            if !cuts.contains(&at) {
                continue;
            }
            for &cut in how {
                let folder = ramdisk();
                disk.write_remains(&self.root, folder.path(), cut, rng);
                let checked = self.check(folder.path(), ledger.clone(), rng.next_u64());
                if let Err(what) = checked {
                    failures.push(format!("cut after operation {at}, {cut:?}: {what}"));
                }
            }
        }
        failures
    }

    /// Checks that nothing is lost and that a writer can resume.
    fn check(&self, folder: &Path, mut ledger: Ledger, token: u64) -> Check {
        let folder = folder.join(self.store);
        let store = SqliteStore::open(&folder).map_err(|error| format!("opening: {error}"))?;
        ledger.check(&store, Depth::Whole)?;
        ledger.resume(&store, &self.session, token).map(|_| ())
    }

    /// The operations that shorten a file, and the few after each.
    fn shortened(&self) -> BTreeSet<usize> {
        let shortens = |it: &(usize, &Operation)| it.1.what == b'T';
        let found = self.operations.iter().enumerate().filter(shortens);
        let last = self.operations.len() - 1;
        found.flat_map(|(at, _)| at..=last.min(at + 3)).collect()
    }

    /// Random operations after which to cut.
    fn cut_points(&self, n: u64, rng: &mut Rng) -> BTreeSet<usize> {
        let all = self.operations.len() as u64 - 1;
        (0..n).map(|_| usize::try_from(rng.between(0, all)).unwrap()).collect()
    }
}

/// A folder for temporary files: in memory, if the system has such a folder.
fn ramdisk() -> tempfile::TempDir {
    let memory = Path::new("/dev/shm");
    if memory.is_dir() {
        tempfile::tempdir_in(memory).unwrap()
    } else {
        tempfile::tempdir().unwrap()
    }
}

#[test]
fn everything_acknowledged_survives_a_power_cut_at_any_point() {
    let runs = [
        (Start::Nothing, "write.after_commit", 30),
        (Start::Killed, "write.after_commit", 40),
        (Start::Killed, "purge.after_commit", 2),
    ];
    let (mut cuts, mut operations) = (0, 0);
    for (n, (start, point, passes)) in (1..).zip(runs) {
        let seed = seed() + n;
        let mut rng = Rng::new(seed);
        let recording = Recording::of(start, seed, point, passes);
        let points = recording.cut_points(3 * rounds(), &mut rng);
        let how = [Cut::Least, Cut::Torn, Cut::Torn];
        let failures = recording.cut(&points, &mut rng, &how, |_| true);
        assert!(failures.is_empty(), "seed {seed}: {failures:#?}");
        cuts += points.len() * how.len();
        operations += recording.operations.len();
    }
    eprintln!("power: {cuts} cuts in {} runs of {operations} operations", runs.len());
    assert!(cuts >= 200 || rounds() < 12, "{cuts} cuts are not enough");
}

#[test]
fn everything_survives_a_power_cut_while_a_log_is_emptied() {
    let mut rng = Rng::new(seed());
    let recording = Recording::of(Start::Killed, seed(), "write.after_commit", 40);
    let points = recording.shortened();
    assert!(!points.is_empty(), "no file was shortened");
    let failures = recording.cut(&points, &mut rng, &[Cut::Torn; 8], |_| true);
    assert!(failures.is_empty(), "{failures:#?}");
}

#[test]
fn the_check_detects_what_a_disk_that_ignores_syncs_loses() {
    let seed = seed();
    let mut rng = Rng::new(seed);
    let lie = |about: &'static str| move |operation: &Operation| operation.path.ends_with(about);
    // Without the log's syncs an event is lost; without those of the database file, what a
    // checkpoint moved out of the log; without the folder's, everything.
    let lies = [
        (Start::Killed, 12, lie("stepwell.db-wal"), "is lost"),
        (Start::Killed, 40, lie("stepwell.db"), ""),
        (Start::Nothing, 12, lie("workspace"), "no session main"),
    ];
    for (start, passes, lie, seen) in lies {
        let recording = Recording::of(start, seed, "write.after_commit", passes);
        let points = recording.cut_points(12, &mut rng);
        let honest = recording.cut(&points, &mut rng, &[Cut::Least], |_| true);
        assert!(honest.is_empty(), "seed {seed}: {honest:#?}");
        let lying = recording.cut(&points, &mut rng, &[Cut::Least], |operation| !lie(operation));
        assert!(
            lying.iter().any(|what| what.contains(seen)),
            "seed {seed}: no loss was detected: {lying:#?}"
        );
    }
}
