//! Taking in what other agents record, as they record it.

use std::collections::{HashMap, HashSet};
use std::fs::{File, Metadata, TryLockError};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use stepwell::Stepwell;
use stepwell_formats::{Error as FormatError, Format, Found, Mode, Report, find_news, take_in};

use crate::error::{Error, Result};
use crate::other_agents;
use crate::workspace::Workspace;

/// A place that is watched.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WatchedPlace {
    /// The format that is looked for; absent, any.
    pub format: Option<Format>,
    /// The file or folder.
    pub path: PathBuf,
}

/// What a look at a place found.
#[derive(Debug)]
pub enum WatchNews {
    /// Something could not be read. It is told once.
    Fault(String),
    /// A file or folder was read.
    Read {
        /// The file or folder.
        path: PathBuf,
        /// What it holds.
        format: Format,
        /// What became of it.
        report: Report,
    },
}

/// Watches for a store. No other process does, as long as it lives.
#[derive(Debug)]
pub struct Watch {
    /// Locked.
    _lock: File,
    memory: Memory,
}

/// The places to watch: those that are named, or else where other agents keep their sessions.
#[must_use]
pub fn places(workspace: &Workspace, named: &[PathBuf], only: Option<Format>) -> Vec<WatchedPlace> {
    if !named.is_empty() {
        let place = |path: &PathBuf| WatchedPlace { format: only, path: path.clone() };
        return named.iter().map(place).collect();
    }
    let places = other_agents::places(workspace, only).into_iter();
    places.map(|it| WatchedPlace { format: Some(it.format), path: it.path }).collect()
}

/// Begins to watch for this workspace's store, which must be there. Absent, another process
/// does.
///
/// # Errors
/// If the file that says so cannot be locked.
pub fn start(workspace: &Workspace) -> Result<Option<Watch>> {
    let path = workspace.place.store.join("watch.lock");
    let file = File::options().create(true).truncate(false).write(true).open(&path);
    let lock = file.map_err(Error::file(&path, "locking it"))?;
    match lock.try_lock() {
        Ok(()) => Ok(Some(Watch { _lock: lock, memory: Memory::default() })),
        Err(TryLockError::WouldBlock) => Ok(None),
        Err(TryLockError::Error(error)) => Err(Error::file(&path, "locking it")(error)),
    }
}

impl Watch {
    /// Takes in what is news at a place since the last look, and tells of it.
    ///
    /// # Errors
    /// Those of whoever is told.
    pub fn look<E>(
        &mut self,
        well: &Stepwell,
        place: &WatchedPlace,
        mut tell: impl FnMut(WatchNews) -> Result<(), E>,
    ) -> Result<(), E> {
        let (news, faults) = self.memory.find(place);
        let faults = faults.into_iter().filter(|fault| self.memory.is_unsaid(fault));
        faults.map(WatchNews::Fault).try_for_each(&mut tell)?;
        for Found { path, format } in news {
            if path.is_dir() && !self.memory.is_news(&path, folder_stamp(&path, 0)) {
                continue;
            }
            let mut report = take_in(well, Mode::Write, format, &path);
            // What the store does not take now it may the next time; what cannot be read is told
            // now, and looked at again when it has changed.
            if let Some(error) = report.fault.take_if(|error| may_pass(error)) {
                self.memory.forget(&path);
                let message = format!("{}: {error}", path.display());
                if self.memory.is_unsaid(&message) {
                    tell(WatchNews::Fault(message))?;
                }
            }
            tell(WatchNews::Read { path, format, report })?;
        }
        Ok(())
    }
}

/// What was seen and said before.
#[derive(Debug, Default)]
struct Memory {
    /// What the file system said of each file when it was last looked at, by hashes: there may
    /// be very many.
    seen: HashMap<u64, u64>,
    /// What was complained of, likewise.
    told: HashSet<u64>,
}

impl Memory {
    /// Is it so for the first time?
    fn is_news(&mut self, path: &Path, stamp: u64) -> bool {
        self.seen.insert(hash(&path), stamp) != Some(stamp)
    }

    /// Has it the next time, whatever it is then.
    fn forget(&mut self, path: &Path) {
        self.seen.remove(&hash(&path));
    }

    /// Is it to be said for the first time?
    fn is_unsaid(&mut self, message: &str) -> bool {
        self.told.insert(hash(&message))
    }

    /// What is news at a place, and what could not be read there.
    fn find(&mut self, place: &WatchedPlace) -> (Vec<Found>, Vec<String>) {
        let (mut news, mut faults) = (Vec::new(), Vec::new());
        let mut is_news =
            |path: &Path, found: &Metadata| self.is_news(path, hash(&(stamp(found), log_of(path))));
        let mut add = |found: Found| {
            news.push(found);
            Ok(())
        };
        let mut fault = |error: FormatError| faults.push(error.to_string());
        let looked = find_news(&place.path, place.format, &mut is_news, &mut add, &mut fault);
        if let Err(error) = looked {
            fault(error);
        }
        (news, faults)
    }
}

/// May it be otherwise at the next look, though the file is the same?
fn may_pass(error: &FormatError) -> bool {
    matches!(error, FormatError::Store(error) if !matches!(error, stepwell::Error::Trashed(_)))
}

fn hash(value: &impl Hash) -> u64 {
    let mut hasher = DefaultHasher::new();
    value.hash(&mut hasher);
    hasher.finish()
}

fn stamp(found: &Metadata) -> u64 {
    hash(&(found.len(), found.mtime(), found.mtime_nsec(), found.ino()))
}

/// What the file system says of a database's log, in which its news are while somebody has it
/// open.
fn log_of(path: &Path) -> Option<u64> {
    path.extension().filter(|ending| *ending == "db")?;
    let mut name = path.as_os_str().to_owned();
    name.push("-wal");
    Path::new(&name).symlink_metadata().ok().map(|found| stamp(&found))
}

/// What the file system says of all that is in a folder.
fn folder_stamp(folder: &Path, depth: usize) -> u64 {
    let mut all = 0_u64;
    for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
        let Ok(found) = entry.metadata() else { continue };
        let own = match found.is_dir() && depth < 8 {
            true => folder_stamp(&entry.path(), depth + 1),
            false => stamp(&found),
        };
        // The order in which a folder is read means nothing.
        all = all.wrapping_add(hash(&(entry.file_name(), own)));
    }
    all
}
