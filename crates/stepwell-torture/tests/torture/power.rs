//! Power cuts: what a disk may hold if only what was synced is sure to be there.
//!
//! A run is recorded, every write, sync and change of a name in order. At a cut, each
//! file is rebuilt from what was synced and, of what was not, any choice of sectors;
//! each name points where it did at the last sync of its folder, or later. The store
//! must open there and hold everything that was acknowledged before the cut.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use stepwell::{SessionId, SqliteStore};
use stepwell_torture::{Dice, Line};

use crate::child::{Victim, torture, was_killed};
use crate::ledger::{Check, Depth, Ledger};
use crate::shim::interpose;
use crate::{rounds, seed};

/// What a disk writes whole or not at all.
const SECTOR: usize = 512;

/// One thing that a process did, as the shim wrote it down.
#[derive(Clone, Debug)]
struct Deed {
    what: u8,
    path: PathBuf,
    bytes: Vec<u8>,
    offset: usize,
}

impl Deed {
    /// The second path of a link or a rename.
    fn target(&self) -> PathBuf {
        PathBuf::from(String::from_utf8(self.bytes.clone()).unwrap())
    }
}

fn read_trace(path: &Path) -> Vec<Deed> {
    let trace = fs::read(path).unwrap();
    let mut rest = &trace[..];
    let mut deeds = Vec::new();
    while let Some((&what, after)) = rest.split_first() {
        rest = after;
        let path = String::from_utf8(take_counted(&mut rest)).unwrap();
        let bytes = take_counted(&mut rest);
        let (offset, after) = rest.split_first_chunk().unwrap();
        rest = after;
        deeds.push(Deed {
            what,
            path: PathBuf::from(path),
            bytes,
            offset: usize::try_from(u64::from_ne_bytes(*offset)).unwrap(),
        });
    }
    deeds
}

fn take_counted(rest: &mut &[u8]) -> Vec<u8> {
    let (count, after) = rest.split_first_chunk().unwrap();
    let count = usize::try_from(u32::from_ne_bytes(*count)).unwrap();
    let (bytes, after) = after.split_at(count);
    *rest = after;
    bytes.to_vec()
}

/// What a name stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Node {
    Folder,
    File(usize),
}

/// A change to a file that no sync has made sure of.
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

/// A disk under a process that writes to it.
#[derive(Clone, Debug, Default)]
struct Disk {
    files: Vec<Content>,
    /// The names as the process sees them.
    live: BTreeMap<PathBuf, Node>,
    /// The names as they were when their folders were last synced.
    durable: BTreeMap<PathBuf, Node>,
    /// What each name came to stand for since then.
    pending: BTreeMap<PathBuf, Vec<Option<Node>>>,
}

/// How much of what was not synced a cut leaves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Cut {
    /// Nothing.
    Least,
    /// Any of it, sector by sector and name by name.
    Torn,
}

impl Cut {
    /// How many of `n` changes in a row remain.
    fn remaining(self, n: usize, dice: &mut Dice) -> usize {
        match self {
            Self::Least => 0,
            Self::Torn => usize::try_from(dice.between(0, n as u64)).unwrap(),
        }
    }
}

impl Disk {
    /// A disk that holds what a folder holds now, all of it synced.
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

    fn see(&mut self, deed: &Deed) {
        let path = &deed.path;
        match deed.what {
            b'C' => {
                self.files.push(Content::default());
                self.name(path, Some(Node::File(self.files.len() - 1)));
            }
            b'M' => self.name(path, Some(Node::Folder)),
            b'L' => self.name(&deed.target(), self.live.get(path).copied()),
            b'R' => {
                self.name(&deed.target(), self.live.get(path).copied());
                self.name(path, None);
            }
            b'U' => self.name(path, None),
            b'W' => self.change(path, Change::Write(deed.offset, deed.bytes.clone())),
            b'T' => self.change(path, Change::Resize(deed.offset)),
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
        // A file that has lost its name can be written to, and does not matter.
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

    /// Writes what is left after a cut into `to`, which stands for `root`.
    fn leave(&self, root: &Path, to: &Path, cut: Cut, dice: &mut Dice) {
        let mut names = self.durable.clone();
        for (name, nodes) in &self.pending {
            if let Some(last) = cut.remaining(nodes.len(), dice).checked_sub(1) {
                match nodes[last] {
                    Some(node) => names.insert(name.clone(), node),
                    None => names.remove(name),
                };
            }
        }
        // Sorted, a folder comes before what is in it; what is in no folder is lost.
        let mut folders = BTreeSet::from([root.to_owned()]);
        for (name, node) in names.iter().filter(|(name, _)| *name != root) {
            if !name.parent().is_some_and(|folder| folders.contains(folder)) {
                continue;
            }
            let place = to.join(name.strip_prefix(root).unwrap());
            match node {
                Node::Folder => {
                    fs::create_dir(place).unwrap();
                    folders.insert(name.clone());
                }
                // Shared memory does not outlive the machine that shared it.
                Node::File(_) if name.to_string_lossy().ends_with("-shm") => {}
                Node::File(file) => {
                    fs::write(&place, self.files[*file].left(cut, dice)).unwrap();
                    fs::set_permissions(place, Permissions::from_mode(0o600)).unwrap();
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
    /// What is left after a cut: of each sector the state after some of the changes
    /// to it, of the length likewise.
    fn left(&self, cut: Cut, dice: &mut Dice) -> Vec<u8> {
        let mut left = self.durable.clone();
        if cut == Cut::Least {
            return left;
        }
        // Only the latest few hundred can matter at once; before them the disk has
        // long written on its own.
        let (settled, open) = self.pending.split_at(self.pending.len().saturating_sub(300));
        settled.iter().for_each(|change| change.apply(&mut left));
        let mut latest = left.clone();
        let longest = open.iter().fold(latest.len(), |longest, change| match change {
            Change::Write(offset, bytes) => longest.max(offset + bytes.len()),
            Change::Resize(length) => longest.max(*length),
        });
        // For each sector, every state that it went through.
        let sector = |of: &[u8], n: usize| {
            let mut bytes = [0; SECTOR];
            if let Some(there) = of.get(n * SECTOR..of.len().min((n + 1) * SECTOR)) {
                bytes[..there.len()].copy_from_slice(there);
            }
            bytes
        };
        let mut through: BTreeMap<usize, Vec<[u8; SECTOR]>> = BTreeMap::new();
        let mut lengths = vec![latest.len()];
        for change in open {
            let touched = change.sectors(longest);
            for n in touched.clone() {
                through.entry(n).or_insert_with(|| vec![sector(&latest, n)]);
            }
            change.apply(&mut latest);
            lengths.push(latest.len());
            for n in touched {
                through.entry(n).or_default().push(sector(&latest, n));
            }
        }
        left.resize(longest.next_multiple_of(SECTOR), 0);
        // Sometimes most of it was written, sometimes hardly any.
        let (mood, pick) = (dice.below(3), lengths.len() as u64 - 1);
        for (n, states) in through {
            let last = states.len() - 1;
            let chosen = match mood {
                0 => cut.remaining(last, dice),
                1 if dice.one_in(8) => 0,
                2 if !dice.one_in(8) => 0,
                _ => last,
            };
            left[n * SECTOR..(n + 1) * SECTOR].copy_from_slice(&states[chosen]);
        }
        left.truncate(lengths[usize::try_from(dice.between(0, pick)).unwrap()]);
        left
    }
}

/// A run that was recorded.
struct Recording {
    root: PathBuf,
    before: Disk,
    heard: Ledger,
    deeds: Vec<Deed>,
    session: SessionId,
    /// The store's folder below `root`.
    store: &'static str,
    _folder: tempfile::TempDir,
}

/// What a run begins with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Start {
    /// Nothing, not even the folder.
    Nothing,
    /// A store whose writer was killed: its log is still to be recovered.
    Killed,
}

impl Recording {
    fn of(start: Start, seed: u64, point: &str, passes: u64) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().canonicalize().unwrap().join("root");
        fs::create_dir(&root).unwrap();
        let store = "workspace/.stepwell";
        let session: SessionId = "main".parse().unwrap();
        let mut heard = Ledger::default();
        let mut run = |by: &str, seed: u64, point: &str, passes: u64, trace: Option<&Path>| {
            let mut command = torture("write", &root.join(store));
            command.args([session.as_str(), by, &seed.to_string()]);
            command.args([point, &passes.to_string()]);
            if let Some(trace) = trace {
                interpose(&mut command, &root).env("TORTURE_TRACE", trace);
            }
            let (lines, status) = Victim::start(&mut command).finish();
            assert!(was_killed(status), "seed {seed}: {status}");
            if trace.is_none() {
                lines.iter().for_each(|line| heard.hear(line));
            }
        };
        if start == Start::Killed {
            run("before", !seed, "write.before_commit", 25, None);
        }
        let before = Disk::with(&root);
        let trace = folder.path().join("trace");
        run("recorded", seed, point, passes, Some(&trace));
        Self { deeds: read_trace(&trace), root, before, heard, session, store, _folder: folder }
    }

    /// Cuts the power at these places and looks at what each leaves. `synced` says
    /// which syncs count. Returns what is wrong at each cut where something is.
    fn cut(
        &self,
        cuts: &BTreeSet<usize>,
        dice: &mut Dice,
        how: &[Cut],
        synced: impl Fn(&Deed) -> bool,
    ) -> Vec<String> {
        let mut disk = self.before.clone();
        let mut ledger = self.heard.clone();
        let mut wrong = Vec::new();
        for (at, deed) in self.deeds.iter().enumerate() {
            if deed.what == b'A' {
                let said = String::from_utf8(deed.bytes.clone()).unwrap();
                let line: Line = serde_json::from_str(&said).unwrap();
                ledger.hear(&line);
            } else if deed.what != b'S' || synced(deed) {
                disk.see(deed);
            }
            if !cuts.contains(&at) {
                continue;
            }
            for &cut in how {
                let place = ramdisk();
                disk.leave(&self.root, place.path(), cut, dice);
                let found = self.look(place.path(), ledger.clone(), dice.roll());
                if let Err(what) = found {
                    wrong.push(format!("cut after deed {at}, {cut:?}: {what}"));
                }
            }
        }
        wrong
    }

    /// Is everything there, and does it go on?
    fn look(&self, place: &Path, mut ledger: Ledger, token: u64) -> Check {
        let folder = place.join(self.store);
        let store = SqliteStore::open(&folder).map_err(|error| format!("opening: {error}"))?;
        ledger.check(&store, Depth::Whole)?;
        ledger.go_on(&store, &self.session, token).map(|_| ())
    }

    /// So many places to cut.
    fn places(&self, n: u64, dice: &mut Dice) -> BTreeSet<usize> {
        let all = self.deeds.len() as u64 - 1;
        (0..n).map(|_| usize::try_from(dice.between(0, all)).unwrap()).collect()
    }
}

/// A place for files that need not last: memory, where there is some.
fn ramdisk() -> tempfile::TempDir {
    let memory = Path::new("/dev/shm");
    if memory.is_dir() {
        tempfile::tempdir_in(memory).unwrap()
    } else {
        tempfile::tempdir().unwrap()
    }
}

#[test]
fn what_was_acknowledged_survives_a_power_cut_anywhere() {
    let runs = [
        (Start::Nothing, "write.after_commit", 30),
        (Start::Killed, "write.after_commit", 40),
        (Start::Killed, "purge.after_commit", 2),
    ];
    let (mut cuts, mut deeds) = (0, 0);
    for (n, (start, point, passes)) in (1..).zip(runs) {
        let seed = seed() + n;
        let mut dice = Dice::new(seed);
        let recording = Recording::of(start, seed, point, passes);
        let places = recording.places(3 * rounds(), &mut dice);
        let how = [Cut::Least, Cut::Torn, Cut::Torn];
        let wrong = recording.cut(&places, &mut dice, &how, |_| true);
        assert!(wrong.is_empty(), "seed {seed}: {wrong:#?}");
        cuts += places.len() * how.len();
        deeds += recording.deeds.len();
    }
    eprintln!("power: {cuts} cuts in {} runs of {deeds} deeds", runs.len());
    assert!(cuts >= 200 || rounds() < 12, "{cuts} cuts are not enough");
}

#[test]
fn a_disk_that_lies_about_syncs_is_seen_to_lose_what_was_acknowledged() {
    let seed = seed();
    let mut dice = Dice::new(seed);
    let lie = |about: &'static str| move |deed: &Deed| deed.path.ends_with(about);
    // Without the log's syncs an event is lost; without those of the file that the log
    // is copied into, what a checkpoint took out of the log; without the folder's, all.
    let lies = [
        (Start::Killed, 12, lie("stepwell.db-wal"), "is lost"),
        (Start::Killed, 40, lie("stepwell.db"), ""),
        (Start::Nothing, 12, lie("workspace"), "no session main"),
    ];
    for (start, passes, lie, seen) in lies {
        let recording = Recording::of(start, seed, "write.after_commit", passes);
        let places = recording.places(12, &mut dice);
        let honest = recording.cut(&places, &mut dice, &[Cut::Least], |_| true);
        assert!(honest.is_empty(), "seed {seed}: {honest:#?}");
        let lying = recording.cut(&places, &mut dice, &[Cut::Least], |deed| !lie(deed));
        assert!(
            lying.iter().any(|what| what.contains(seen)),
            "seed {seed}: nothing was seen to be lost: {lying:#?}"
        );
    }
}
