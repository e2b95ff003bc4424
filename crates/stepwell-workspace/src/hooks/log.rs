//! What hooks did, in a file that stays small.

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};

use stepwell::model::Time;
use stepwell::upkeep::ScrubPattern;

use crate::atomic_file::replace_private_file;
use crate::error::{Error, Result};
use crate::workspace_file::WorkspaceFile;

/// The hooks' log, in the store's folder.
#[derive(Debug)]
pub struct Log {
    path: PathBuf,
}

/// How large the log gets before it begins anew. The one before it is kept, so that both
/// together take at most twice as much.
const LIMIT: u64 = 256 << 10;

/// How long a line gets.
const LINE: usize = 1_000;

impl Log {
    /// The log of the store in a folder, if there is a store.
    #[must_use]
    pub fn of(store: &Path) -> Option<Self> {
        store.is_dir().then(|| Self { path: store.join("hooks.log") })
    }

    /// Adds a line.
    ///
    /// # Errors
    /// If it cannot be written, or is a link.
    pub fn write(&self, at: Time, says: &str) -> Result<()> {
        if fs::symlink_metadata(&self.path).is_ok_and(|meta| meta.len() >= LIMIT) {
            fs::rename(&self.path, self.path.with_extension("log.1"))
                .map_err(Error::file(&self.path, "setting it aside"))?;
        }
        let says = one_line(says);
        let line = format!("{at} {}\n", &says[..says.floor_char_boundary(LINE)]);
        let mut file = self.file()?.append(0o600)?;
        file.write_all(line.as_bytes()).map_err(Error::file(&self.path, "writing it"))
    }
}

impl Log {
    fn file(&self) -> Result<WorkspaceFile> {
        let folder = self.path.parent().unwrap_or(&self.path);
        WorkspaceFile::below(folder, "hooks.log")
    }

    /// The log, and the one before it.
    fn files(&self) -> [PathBuf; 2] {
        [self.path.clone(), self.path.with_extension("log.1")]
    }

    /// How many lines hold what a pattern is to erase. They name agents.
    #[must_use]
    pub fn count_matches(&self, pattern: &ScrubPattern) -> usize {
        let texts = self.files().into_iter().filter_map(|path| fs::read_to_string(path).ok());
        texts.map(|text| text.lines().filter(|line| pattern.matches(line)).count()).sum()
    }

    /// Erases what a pattern matches.
    ///
    /// # Errors
    /// If a file cannot be written.
    pub fn scrub(&self, pattern: &ScrubPattern) -> Result<()> {
        for path in self.files() {
            let Ok(text) = fs::read_to_string(&path) else { continue };
            if text.lines().any(|line| pattern.matches(line)) {
                replace_private_file(&path, pattern.erase(&text).as_bytes())
                    .map_err(Error::file(&path, "scrubbing it"))?;
            }
        }
        Ok(())
    }
}

/// The text on one line, without what would move a terminal's cursor.
fn one_line(text: &str) -> String {
    let words: Vec<&str> = text.split_whitespace().collect();
    words.join(" ").replace(char::is_control, "\u{fffd}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_log_never_grows_beyond_its_bound() {
        let folder = tempfile::tempdir().unwrap();
        let log = Log::of(folder.path()).unwrap();
        for _ in 0..2_000 {
            log.write(Time::EPOCH, &"x".repeat(5_000)).unwrap();
        }
        let sizes: Vec<u64> = fs::read_dir(folder.path())
            .unwrap()
            .map(|entry| entry.unwrap().metadata().unwrap().len())
            .collect();
        assert_eq!(sizes.len(), 2);
        assert!(sizes.iter().all(|size| *size < LIMIT + 2_000), "{sizes:?}");
        assert!(Log::of(&folder.path().join("absent")).is_none());
    }

    #[test]
    fn what_is_scrubbed_is_gone_from_the_log() {
        let folder = tempfile::tempdir().unwrap();
        let log = Log::of(folder.path()).unwrap();
        log.write(Time::EPOCH, "pre-delegate agent-hunter2").unwrap();
        log.write(Time::EPOCH, "pre-delegate agent-1").unwrap();
        let pattern = ScrubPattern::new("hunter2", None).unwrap();
        assert_eq!(log.count_matches(&pattern), 1);
        log.scrub(&pattern).unwrap();
        assert_eq!(log.count_matches(&pattern), 0);
        assert!(fs::read_to_string(folder.path().join("hooks.log")).unwrap().contains("agent-1"));
    }
}
