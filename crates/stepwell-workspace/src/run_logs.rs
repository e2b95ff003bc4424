//! What runs in the background wrote: a file for each session, which goes when the session does.

use std::fs;
use std::path::{Path, PathBuf};

use stepwell::SessionId;
use stepwell::upkeep::ScrubPattern;

use crate::error::{Error, Result};
use crate::hooks::Log;

/// The folder, in the store's, of these files.
const FOLDER: &str = "runs";

/// The logs of a store's runs in the background.
#[derive(Clone, Debug)]
pub struct RunLogs {
    folder: PathBuf,
}

impl RunLogs {
    /// Those of the store in a folder, whether there are any or not.
    #[must_use]
    pub fn of(store: &Path) -> Self {
        Self { folder: store.join(FOLDER) }
    }

    /// The folder that they lie in.
    #[must_use]
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// Removes those of sessions that were erased.
    ///
    /// # Errors
    /// If one stays.
    pub fn forget(&self, sessions: &[SessionId]) -> Result<()> {
        for session in sessions {
            let path = self.path(session);
            match fs::remove_file(&path) {
                Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                    return Err(Error::file(&path, "removing it")(error));
                }
                _ => {}
            }
        }
        Ok(())
    }

    /// How many lines hold what a pattern is to erase, in one session's or in all.
    #[must_use]
    pub fn count_matches(&self, session: Option<&SessionId>, pattern: &ScrubPattern) -> usize {
        let texts = self.files(session).into_iter().filter_map(|path| text(&path));
        texts.map(|text| text.lines().filter(|line| pattern.matches(line)).count()).sum()
    }

    /// Erases what a pattern matches. A run that goes on goes on writing to the same file.
    ///
    /// # Errors
    /// If a file cannot be written.
    pub fn scrub(&self, session: Option<&SessionId>, pattern: &ScrubPattern) -> Result<()> {
        stepwell::store::refuse_link(&self.folder)?;
        for path in self.files(session) {
            let Some(text) = text(&path) else { continue };
            if text.lines().any(|line| pattern.matches(line)) {
                stepwell::store::refuse_shared(&path)?;
                fs::write(&path, pattern.erase(&text))
                    .map_err(Error::file(&path, "scrubbing it"))?;
            }
        }
        Ok(())
    }

    fn path(&self, session: &SessionId) -> PathBuf {
        self.folder.join(format!("{session}.log"))
    }

    fn files(&self, session: Option<&SessionId>) -> Vec<PathBuf> {
        if let Some(session) = session {
            return vec![self.path(session)];
        }
        let found = fs::read_dir(&self.folder).into_iter().flatten().flatten();
        found
            .map(|entry| entry.path())
            .filter(|path| path.extension() == Some("log".as_ref()))
            .collect()
    }
}

/// All logs beside a store that can hold words of its sessions.
#[derive(Debug)]
pub struct StoreLogs {
    hooks: Option<Log>,
    runs: RunLogs,
    only: Option<SessionId>,
}

impl StoreLogs {
    /// Those of the store in a folder; of the runs' logs only that of one session, if one is named.
    #[must_use]
    pub fn of(store: &Path, only: Option<SessionId>) -> Self {
        Self { hooks: Log::of(store), runs: RunLogs::of(store), only }
    }

    /// How many lines hold what a pattern is to erase, by where they are.
    #[must_use]
    pub fn count_matches(&self, pattern: &ScrubPattern) -> Vec<(&'static str, usize)> {
        let in_hooks = self.hooks.as_ref().map_or(0, |log| log.count_matches(pattern));
        let in_runs = self.runs.count_matches(self.only.as_ref(), pattern);
        let all = [("the hooks' log", in_hooks), ("logs of runs", in_runs)];
        all.into_iter().filter(|(_, lines)| *lines > 0).collect()
    }

    /// Erases what a pattern matches.
    ///
    /// # Errors
    /// If a file cannot be written.
    pub fn scrub(&self, pattern: &ScrubPattern) -> Result<()> {
        self.hooks.as_ref().map_or(Ok(()), |log| log.scrub(pattern))?;
        self.runs.scrub(self.only.as_ref(), pattern)
    }
}

/// What a file says. A link is not followed: a store may come with a project.
fn text(path: &Path) -> Option<String> {
    let is_file = fs::symlink_metadata(path).is_ok_and(|meta| meta.is_file());
    let bytes = is_file.then(|| fs::read(path).ok()).flatten()?;
    Some(String::from_utf8_lossy(&bytes).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_log_is_scrubbed_in_place_and_goes_with_its_session() {
        let store = tempfile::tempdir().unwrap();
        let logs = RunLogs::of(store.path());
        let ids: [SessionId; 2] = ["s-1", "s-2"].map(|id| id.parse().unwrap());
        logs.forget(&ids).unwrap();
        fs::create_dir(logs.folder()).unwrap();
        for id in &ids {
            fs::write(logs.path(id), "it said hunter2\nand more\n").unwrap();
        }
        let precious = store.path().join("precious");
        fs::write(&precious, "hunter2").unwrap();
        std::os::unix::fs::symlink(&precious, logs.folder().join("x.log")).unwrap();
        let pattern = ScrubPattern::new("hunter2", None).unwrap();
        assert_eq!(logs.count_matches(None, &pattern), 2);
        // Whoever has it open goes on behind what is left.
        let open = fs::OpenOptions::new().append(true).open(logs.path(&ids[0]));
        logs.scrub(Some(&ids[0]), &pattern).unwrap();
        assert_eq!(logs.count_matches(None, &pattern), 1);
        std::io::Write::write_all(&mut open.unwrap(), b"later\n").unwrap();
        let text = fs::read_to_string(logs.path(&ids[0])).unwrap();
        assert!(text.contains("and more\nlater\n") && !text.contains("hunter2"), "{text}");
        logs.scrub(None, &pattern).unwrap();
        assert_eq!(logs.count_matches(None, &pattern), 0);
        assert_eq!(fs::read_to_string(precious).unwrap(), "hunter2");
        logs.forget(&ids).unwrap();
        assert!(!logs.path(&ids[0]).exists() && !logs.path(&ids[1]).exists());
    }
}
