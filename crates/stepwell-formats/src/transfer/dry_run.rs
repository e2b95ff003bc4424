//! Imports that are only looked at, one after the other: each is told as if those before it had
//! been made.

use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};

use stepwell::model::Origin;
use stepwell::{SessionId, Stepwell};
use tempfile::TempDir;

use crate::find::walk::Found;
use crate::intake::{ImportedSession, KnownFiles, Mode, Report, take_in};
use crate::read::input::Watcher;
use crate::registry::Format;
use crate::transfer::copy::copy;
use crate::{Error, Result};

/// A run of imports in which nothing is written.
#[derive(Debug)]
pub struct DryRun<'a> {
    well: &'a Stepwell,
    files: &'a KnownFiles,
    /// Where each session was met, by its format and its name here.
    met: HashMap<(&'static str, SessionId), Vec<PathBuf>>,
    stage: Option<Stage>,
}

/// A store that is thrown away. Only what two files tell of is brought there.
#[derive(Debug)]
struct Stage {
    well: Stepwell,
    made: HashSet<PathBuf>,
    _folder: TempDir,
}

impl<'a> DryRun<'a> {
    /// Begins, beside what is in a store, whose files these are.
    #[must_use]
    pub fn new(well: &'a Stepwell, files: &'a KnownFiles) -> Self {
        Self { well, files, met: HashMap::new(), stage: None }
    }

    /// Says what an import would do now.
    pub fn look(&mut self, found: &Found, watcher: &Watcher) -> Report {
        let Found { path, format } = found;
        let format = *format;
        let mut report = self.files.take_in(self.well, Mode::Look, found, watcher);
        let mut twice = Vec::new();
        let key = |taken: &ImportedSession| (format.as_str(), taken.id.clone());
        for (n, taken) in report.sessions.iter().enumerate() {
            if let Some(places) = self.met.get(&key(taken)) {
                twice.push((n, places.clone()));
            }
        }
        for taken in &report.sessions {
            self.met.entry(key(taken)).or_default().push(path.to_owned());
        }
        if !twice.is_empty() {
            // Without room for a stage the first answer stands.
            let played = self.play(format, path, &twice, &report.sessions).unwrap_or_default();
            for (n, _) in twice {
                let taken = &mut report.sessions[n];
                if let Some(told) = played.iter().find(|it| wanted(it) == wanted(taken)) {
                    taken.became = told.became;
                }
            }
        }
        report
    }

    /// Makes the imports that matter, where nobody sees them.
    fn play(
        &mut self,
        format: Format,
        path: &Path,
        twice: &[(usize, Vec<PathBuf>)],
        sessions: &[ImportedSession],
    ) -> Result<Vec<ImportedSession>> {
        let stage = match &mut self.stage {
            Some(stage) => stage,
            none => none.insert(Stage::new()?),
        };
        for (n, earlier) in twice {
            let id = &sessions[*n].id;
            if stage.well.info(id).is_err() && self.well.info(id).is_ok() {
                copy(self.well, &stage.well, &eldest(self.well, id)?)?;
            }
            for path in earlier {
                if stage.made.insert(path.clone()) {
                    take_in(&stage.well, Mode::Write, format, path);
                }
            }
        }
        stage.made.insert(path.to_owned());
        Ok(take_in(&stage.well, Mode::Write, format, path).sessions)
    }
}

impl Stage {
    fn new() -> Result<Self> {
        let folder = tempfile::tempdir().map_err(Error::Write)?;
        let well = Stepwell::open(folder.path().join("store"))?;
        Ok(Self { well, made: HashSet::new(), _folder: folder })
    }
}

/// The name that a session has if no other has it.
fn wanted(taken: &ImportedSession) -> &SessionId {
    taken.instead_of.as_ref().unwrap_or(&taken.id)
}

/// The session that all of a family belongs to: with it the others are copied.
fn eldest(well: &Stepwell, id: &SessionId) -> Result<SessionId> {
    let mut id = id.clone();
    while let Origin::Subagent { parent } = well.info(&id)?.head.origin {
        id = parent;
    }
    Ok(id)
}
