//! Importing sessions of other agents: finding them, asking whether they may be read, reading them,
//! and reporting.

use std::path::{Path, PathBuf};
use std::rc::Rc;

use stepwell::error::Listing;
use stepwell::sqlite::Access;
use stepwell::{Remedy, Stepwell};
use stepwell_formats::{
    DryRun, Error as FormatsError, Format, Found, ImportSummary, KnownFiles, Mode, Report,
    Searched, Watcher,
};
use stepwell_workspace::housekeeping::tidy;
use stepwell_workspace::{AgentPlace, LangGraphServer, other_agents, ownership, team_address};

use super::asked::{Folder, ImportRequest};
use crate::error::{Error, ErrorKind, Result};
use crate::runtime::Runtime;

/// A folder in which an agent keeps its sessions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SearchedPlace {
    /// The agent's format.
    pub format: Format,
    /// The folder.
    pub path: PathBuf,
    /// How many files with sessions are there.
    pub files: usize,
}

/// What could not be read.
#[derive(Debug)]
pub enum ImportProblem {
    /// A path that was named cannot be searched.
    NotFound(PathBuf, std::io::Error),
    /// A path that was named holds no session of the wanted format.
    NotRecognised(PathBuf, Option<Format>, Searched),
    /// A file of a path that was named is damaged.
    Damaged(FormatsError),
    /// A file in an agent's folder could not be searched.
    Unreadable(FormatsError),
}

/// What became of one file or folder.
#[derive(Debug)]
pub struct ImportedPlace {
    /// The file, the folder or the server.
    pub path: PathBuf,
    /// Its format.
    pub format: Format,
    /// The sessions in it.
    pub report: Report,
}

/// May the sessions be imported that were found in the folders of other agents?
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ImportQuestion {
    /// In how many files they are.
    pub files: usize,
}

/// Follows an import, and consents to it.
pub trait ImportListener {
    /// A folder of an agent was searched.
    fn searched(&mut self, _place: &SearchedPlace) {}

    /// Something could not be read.
    fn problem(&mut self, _problem: &ImportProblem) {}

    /// May they be imported?
    ///
    /// # Errors
    /// If nobody can be asked.
    fn may_import(&mut self, question: ImportQuestion) -> Result<bool>;

    /// These are read from now on. The answer is called for every piece that was read, with its
    /// bytes.
    fn begins(&mut self, _paths: &[PathBuf]) -> Watcher {
        Rc::new(|_| {})
    }

    /// This one is read now.
    fn reading(&mut self, _path: &Path) {}

    /// This is what became of it.
    fn imported(&mut self, _place: &ImportedPlace) {}
}

/// Follows nothing, and consents.
#[derive(Clone, Copy, Debug, Default)]
pub struct Silent;

impl ImportListener for Silent {
    fn may_import(&mut self, _question: ImportQuestion) -> Result<bool> {
        Ok(true)
    }
}

/// What an import did, or would do.
#[derive(Debug)]
pub struct ImportReport {
    /// Was anything written?
    pub mode: Mode,
    /// The folders of agents that were searched.
    pub searched: Vec<SearchedPlace>,
    /// What could not be read.
    pub problems: Vec<ImportProblem>,
    /// What became of each file or folder.
    pub places: Vec<ImportedPlace>,
    /// The whole in numbers.
    pub summary: ImportSummary,
    /// Were the folders of agents searched in vain, or the import declined?
    pub stopped: Option<ImportStopped>,
}

/// Why nothing was read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ImportStopped {
    /// The folders of other agents hold no sessions.
    NothingFound,
    /// The user declined.
    Declined,
}

/// The files to be read, and what is known of them.
struct Sources {
    found: Vec<Found>,
    servers: Vec<LangGraphServer>,
    known: KnownFiles,
}

impl Runtime {
    /// Imports sessions, or finds out what an import would do.
    ///
    /// # Errors
    /// If the request makes no sense, a server cannot be read, or the store cannot be written.
    pub fn import(
        &self,
        request: &ImportRequest,
        listener: &mut dyn ImportListener,
    ) -> Result<ImportReport> {
        if let Some(format) = request.from.filter(|format| format.reader().is_none()) {
            let why = format!("{format} is written, and not read");
            return Err(
                Error::refused(ErrorKind::Usage, why).helped_by(Remedy::List(Listing::Formats))
            );
        }
        let mode = request.mode;
        let access = if mode == Mode::Write { Access::Write } else { Access::Read };
        let kept = self.workspace().place.has_store();
        let kept = kept.then(|| self.workspace().open_existing(access)).transpose()?;
        let known = kept.as_ref().map(KnownFiles::of).transpose();
        let known = known.map_err(|error| Error::Workspace(error.into()))?.unwrap_or_default();
        let (searched, problems) = (Vec::new(), Vec::new());
        let (places, summary) = (Vec::new(), ImportSummary::default());
        let mut report = ImportReport { mode, searched, problems, places, summary, stopped: None };
        let (addresses, paths): (Vec<_>, Vec<_>) =
            request.paths.iter().cloned().partition(|path| path.to_string_lossy().contains("://"));
        let servers = self.servers_to_import(&addresses, request.from)?;
        let mut found = match request.paths.is_empty() {
            false => self.search_paths(&paths, request, &known, &mut report, listener),
            true => self.search_agents(request, &known, &mut report, listener)?,
        };
        found.extend(servers.iter().map(|server| server.found.clone()));
        // A name that was mistyped makes no store.
        if !found.is_empty() && report.stopped.is_none() {
            self.read_all(
                &Sources { found, servers, known },
                request,
                kept,
                &mut report,
                listener,
            )?;
        }
        Ok(report)
    }

    fn read_all(
        &self,
        sources: &Sources,
        request: &ImportRequest,
        kept: Option<Stepwell>,
        report: &mut ImportReport,
        listener: &mut dyn ImportListener,
    ) -> Result<()> {
        let mode = request.mode;
        let kept = match (kept, mode) {
            (None, Mode::Write) => Some(self.workspace().open_or_create()?),
            (kept, _) => kept,
        };
        let nowhere = kept.as_ref().map_or_else(Stepwell::in_memory, Clone::clone);
        let paths: Vec<PathBuf> = sources.found.iter().map(|found| found.path.clone()).collect();
        let watcher = listener.begins(&paths);
        let mut dry_run = DryRun::new(&nowhere, &sources.known);
        for found in &sources.found {
            listener.reading(&found.path);
            let read = match mode {
                Mode::Write => sources.known.take_in(&nowhere, mode, found, &watcher),
                Mode::Look => dry_run.look(found, &watcher),
            };
            report.summary.count(&read);
            // What the user named may be anybody's.
            if mode == Mode::Write && request.paths.is_empty() {
                let ids = read.sessions.iter().map(|taken| taken.id.clone());
                ownership::mark_imported(self.workspace(), &found.path, ids);
            }
            let server = sources.servers.iter().find(|server| server.found.path == found.path);
            let (read, path) = match server {
                Some(server) => (server.named(read), server.address.clone()),
                None => (read, found.path.clone()),
            };
            let place = ImportedPlace { path, format: found.format, report: read };
            listener.imported(&place);
            report.places.push(place);
        }
        if let Some(well) = kept.filter(|_| mode == Mode::Write) {
            tidy(self.workspace(), &well);
        }
        Ok(())
    }

    /// Copies the checkpoints that LangGraph keeps on servers.
    fn servers_to_import(
        &self,
        addresses: &[PathBuf],
        from: Option<Format>,
    ) -> Result<Vec<LangGraphServer>> {
        let Some(format) = Format::all().find(|format| format.as_str() == "langgraph") else {
            return Ok(Vec::new());
        };
        if !addresses.is_empty() && from.is_some_and(|from| from != format) {
            let why = "of servers only LangGraph's tables are read";
            return Err(Error::usage(why));
        }
        let copied = |named: &PathBuf| {
            // Not shown: what is mistyped may hold a password.
            let address = team_address(named, &self.workspace().host).ok().flatten();
            let address = address.ok_or_else(|| {
                Error::usage("an address to import from cannot be read; it is written as postgres://user@host:port/database")
            })?;
            Ok(LangGraphServer::copy(address, format)?)
        };
        addresses.iter().map(copied).collect()
    }

    /// The sessions at the paths that were named.
    fn search_paths(
        &self,
        paths: &[PathBuf],
        request: &ImportRequest,
        known: &KnownFiles,
        report: &mut ImportReport,
        listener: &mut dyn ImportListener,
    ) -> Vec<Found> {
        let mut all = Vec::new();
        for path in paths {
            let path = match request.folder {
                Folder::Process => path.clone(),
                Folder::Workspace => self.workspace().place.root.join(path),
            };
            match known.search(&path, request.from) {
                Err(error) => {
                    report.summary.unrecognised += 1;
                    report.fault(ImportProblem::NotFound(path, error), listener);
                }
                Ok(mut searched) => {
                    let faults = std::mem::take(&mut searched.faults);
                    report.summary.damaged += faults.len();
                    let nothing = searched.found.is_empty() && faults.is_empty();
                    for error in faults {
                        report.fault(ImportProblem::Damaged(error), listener);
                    }
                    all.append(&mut searched.found);
                    if nothing {
                        report.summary.unrecognised += 1;
                        let problem = ImportProblem::NotRecognised(path, request.from, searched);
                        report.fault(problem, listener);
                    }
                }
            }
        }
        all
    }

    /// The sessions in the folders of this machine's agents, if the user consents.
    fn search_agents(
        &self,
        request: &ImportRequest,
        known: &KnownFiles,
        report: &mut ImportReport,
        listener: &mut dyn ImportListener,
    ) -> Result<Vec<Found>> {
        let mut all = Vec::new();
        for AgentPlace { format, path } in other_agents::places(self.workspace(), request.from) {
            let before = all.len();
            let mut found = |it: Found| {
                all.push(it);
                Ok(())
            };
            let mut faults = Vec::new();
            let mut fault = |error: FormatsError| faults.push(error);
            known
                .find_all(&path, Some(format), &mut found, &mut fault)
                .map_err(|error| Error::Workspace(error.into()))?;
            for error in faults {
                report.fault(ImportProblem::Unreadable(error), listener);
            }
            let place = SearchedPlace { format, path, files: all.len() - before };
            listener.searched(&place);
            report.searched.push(place);
        }
        if all.is_empty() {
            report.stopped = Some(ImportStopped::NothingFound);
        } else if request.mode == Mode::Write
            && !listener.may_import(ImportQuestion { files: all.len() })?
        {
            report.stopped = Some(ImportStopped::Declined);
        }
        Ok(all)
    }
}

impl ImportReport {
    fn fault(&mut self, problem: ImportProblem, listener: &mut dyn ImportListener) {
        listener.problem(&problem);
        self.problems.push(problem);
    }
}
