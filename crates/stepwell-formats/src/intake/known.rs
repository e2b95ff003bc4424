//! Files that were imported and look as they did then. They are found by one query of the store,
//! and are neither recognised nor read again.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::fs::Metadata;
use std::path::{Path, PathBuf};

use stepwell::log::Head;
use stepwell::store::query::{Filter, Query, TrashScope};
use stepwell::{SessionId, Stepwell};

use super::name::wanted;
use super::{Became, ImportedSession, Mode, Report, take_in_watched};
use crate::find::walk::{self, Found, Searched};
use crate::read::input::Watcher;
use crate::read::seen::Seen;
use crate::registry::Format;
use crate::{Error, Result};

/// The files that a store's sessions came from, with how each looked. The default knows none.
#[derive(Debug, Default)]
pub struct KnownFiles {
    files: HashMap<PathBuf, KnownFile>,
    /// How many sessions came from each path that was read.
    sessions: HashMap<PathBuf, usize>,
}

#[derive(Debug)]
struct KnownFile {
    format: Format,
    /// The path that is read for the file: its own, or that of the session that started this one.
    root: PathBuf,
    stamp: String,
    session: SessionId,
}

impl KnownFiles {
    /// The files that the sessions of a store came from.
    ///
    /// # Errors
    /// If the store cannot be read.
    pub fn of(well: &Stepwell) -> Result<Self> {
        let mut known = Self::default();
        let filter = Filter { place: TrashScope::Anywhere, ..Filter::default() };
        for info in well.list(&Query { filter, ..Query::default() })?.sessions {
            known.add(&info.head);
        }
        Ok(known)
    }

    fn add(&mut self, head: &Head) {
        let Some(record) = &head.facts.provenance else { return };
        let path = PathBuf::from(&record.from);
        let root = record.root.as_ref().map_or_else(|| path.clone(), PathBuf::from);
        *self.sessions.entry(root.clone()).or_default() += 1;
        let format = head.source.as_ref().and_then(|source| source.system.parse().ok());
        let (Some(format), Some(stamp)) = (format, &record.stamp) else { return };
        if let Entry::Vacant(entry) = self.files.entry(path) {
            let (stamp, session) = (stamp.clone(), head.id.clone());
            entry.insert(KnownFile { format, root, stamp, session });
        }
    }

    /// What is found by way of a file, if the file looks as it did when it was read.
    fn find(&self, path: &Path, found: &Metadata) -> Option<Found> {
        let KnownFile { format, root, stamp, .. } = self.files.get(path)?;
        let is_there = root == path || root.is_file();
        let same = found.is_file() && Seen::of_file(found).is(stamp);
        (same && is_there).then(|| Found { path: root.clone(), format: *format })
    }

    /// Looks for the sessions at a path, as [`search`](crate::search) does, without opening files
    /// that are known.
    ///
    /// # Errors
    /// If there is nothing at that path.
    pub fn search(&self, path: &Path, only: Option<Format>) -> std::io::Result<Searched> {
        walk::search_knowing(path, only, &|path, found| self.find(path, found))
    }

    /// Finds the sessions at a path, as [`find`](crate::find) does, without opening files that are
    /// known.
    ///
    /// # Errors
    /// If there is nothing at that path, or there are too many files.
    pub fn find_all(
        &self,
        path: &Path,
        only: Option<Format>,
        found: &mut dyn FnMut(Found) -> Result<()>,
        fault: &mut dyn FnMut(Error),
    ) -> Result<()> {
        walk::find_knowing(path, only, &|path, found| self.find(path, found), found, fault)
    }

    /// Takes in what was found, as [`take_in_watched`] does, without opening a file that is known
    /// and holds one session.
    pub fn take_in(&self, well: &Stepwell, mode: Mode, found: &Found, watcher: &Watcher) -> Report {
        match self.unchanged(well, found) {
            Some(session) => Report { sessions: vec![session], ..Report::default() },
            None => take_in_watched(well, mode, found.format, &found.path, watcher),
        }
    }

    /// The one session of a file that looks as it did. The store is asked again: what was imported
    /// meanwhile may have brought the session from another file.
    fn unchanged(&self, well: &Stepwell, found: &Found) -> Option<ImportedSession> {
        let Found { path, format } = found;
        let known = self.files.get(path).filter(|it| it.format == *format && it.root == *path)?;
        // Subagents lie in the folder beside a file.
        let is_alone = self.sessions.get(path) == Some(&1) && !path.with_extension("").is_dir();
        is_alone.then(|| self.find(path, &path.symlink_metadata().ok()?))??;
        let info = well.store().info(&known.session).ok()?;
        let head = info.head;
        let record = head.facts.provenance?;
        let same = Path::new(&record.from) == path && record.stamp.as_ref() == Some(&known.stamp);
        if !same || info.trashed_at.is_some() || record.continues.is_some() {
            return None;
        }
        let wanted = wanted(&head.source?.id);
        let instead_of = (head.id != wanted).then_some(wanted);
        Some(ImportedSession {
            id: head.id,
            became: Became::Unchanged,
            instead_of,
            continues: None,
        })
    }
}
