//! What the file system says of a file or a folder, so that it is known again without being read.

use std::fs::Metadata;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use stepwell::model::{Digest, Time};

use crate::{Error, Result};

/// How long a file must have rested before its times are trusted: a change within the same tick
/// of a file system's clock leaves them as they were. The coarsest clocks in use tick every two
/// seconds.
const REST: Duration = Duration::from_secs(2);

/// How deep a folder is looked into. No system nests the files of a session half as deep.
const MAX_DEPTH: usize = 16;

/// How the names of a database's log and of its journal end.
pub(super) const LOG: &str = "-wal";
pub(super) const JOURNAL: &str = "-journal";

/// The file beside a database whose name ends so.
pub(super) fn beside(path: &Path, ending: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(ending);
    name.into()
}

/// The most entries of one folder that are looked at.
pub(crate) const MAX_ENTRIES: usize = 1_000_000;

/// The failure to read something.
pub(crate) fn unreadable(path: &Path, error: io::Error) -> Error {
    Error::Unreadable { path: path.to_owned(), error }
}

/// What is in a folder, sorted, without links. A folder that is not there is empty.
pub(crate) fn list(folder: &Path) -> Result<Vec<PathBuf>> {
    match folder.symlink_metadata() {
        Ok(found) if found.is_dir() => {}
        _ => return Ok(Vec::new()),
    }
    let mut paths = Vec::new();
    for entry in std::fs::read_dir(folder).map_err(|error| unreadable(folder, error))? {
        let entry = entry.map_err(|error| unreadable(folder, error))?;
        if entry.file_type().is_ok_and(|kind| !kind.is_symlink()) {
            paths.push(entry.path());
        }
        if paths.len() > MAX_ENTRIES {
            let why = format!("it has more than {MAX_ENTRIES} entries");
            return Err(Error::Foreign { path: folder.to_owned(), why });
        }
    }
    paths.sort();
    Ok(paths)
}

/// Sizes, times and numbers of a file, or of all files that belong together.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Seen {
    text: String,
    /// The last time that anything of it changed.
    changed: Time,
}

impl Seen {
    /// What is to be seen at a path, if anything.
    pub(crate) fn of(path: &Path) -> Option<Self> {
        let found = path.symlink_metadata().ok()?;
        let mut seen = Self::of_file(&found);
        if found.is_dir() {
            seen.add_folder(path, 0)?;
            seen.text = Digest::of(seen.text.as_bytes()).to_string();
        }
        Some(seen)
    }

    /// What is to be seen of a database, its log and its journal. It never equals what is seen of
    /// the file alone.
    pub(crate) fn of_database(path: &Path) -> Option<Self> {
        let mut seen = Self::of_file(&path.symlink_metadata().ok()?);
        for ending in [LOG, JOURNAL] {
            let found = beside(path, ending).symlink_metadata();
            let looks = found.as_ref().map(facts).unwrap_or_default();
            seen.text.push_str(&format!("\n{ending} {looks}"));
            seen.changed = seen.changed.max(found.as_ref().map_or(seen.changed, changed));
        }
        seen.text = Digest::of(seen.text.as_bytes()).to_string();
        Some(seen)
    }

    /// What is to be seen of a file.
    pub(crate) fn of_file(found: &Metadata) -> Self {
        Self { text: facts(found), changed: changed(found) }
    }

    /// Is it what was remembered of something that had rested?
    pub(crate) fn is(&self, stamp: &str) -> bool {
        self.text == stamp
    }

    fn add_folder(&mut self, folder: &Path, depth: usize) -> Option<()> {
        for path in list(folder).ok()? {
            let found = path.symlink_metadata().ok()?;
            self.text.push_str(&format!("\n{} {}", path.display(), facts(&found)));
            self.changed = self.changed.max(changed(&found));
            if found.is_dir() {
                (depth < MAX_DEPTH).then(|| self.add_folder(&path, depth + 1))??;
            }
        }
        Some(())
    }

    /// All of it in one word, if it had rested at that time: else it may change again and look
    /// the same.
    pub(crate) fn settled(&self, now: Time) -> Option<&str> {
        let rested = now.as_micros().saturating_sub(self.changed.as_micros());
        let rest = i64::try_from(REST.as_micros()).unwrap_or(i64::MAX);
        (rested > rest).then_some(&*self.text)
    }
}

fn facts(found: &Metadata) -> String {
    let (size, number) = (found.size(), found.ino());
    let (written, changed) = (found.mtime(), found.ctime());
    let (parts, more) = (found.mtime_nsec(), found.ctime_nsec());
    format!("{size}-{written}.{parts}-{changed}.{more}-{number}")
}

fn changed(found: &Metadata) -> Time {
    let micros = |seconds: i64, parts: i64| seconds.saturating_mul(1_000_000) + parts / 1_000;
    let written = micros(found.mtime(), found.mtime_nsec());
    Time::from_micros(written.max(micros(found.ctime(), found.ctime_nsec())))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_changed_a_moment_ago_is_not_trusted() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a");
        std::fs::write(&path, "one").unwrap();
        let seen = Seen::of(&path).unwrap();
        let later =
            |seconds: i64| Time::from_micros(seen.changed.as_micros() + seconds * 1_000_000);
        assert_eq!(seen.settled(seen.changed), None);
        assert_eq!(seen.settled(later(2)), None);
        assert!(seen.settled(later(3)).is_some());
        // A clock that is behind says nothing.
        assert_eq!(seen.settled(later(-9)), None);
    }

    #[test]
    fn a_folder_looks_different_when_anything_in_it_changed() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::create_dir_all(folder.path().join("x/y")).unwrap();
        std::fs::write(folder.path().join("x/y/a"), "one").unwrap();
        let before = Seen::of(folder.path()).unwrap();
        assert_eq!(Seen::of(folder.path()).unwrap(), before);
        std::fs::write(folder.path().join("x/y/a"), "longer").unwrap();
        assert_ne!(Seen::of(folder.path()).unwrap(), before);
    }
}
