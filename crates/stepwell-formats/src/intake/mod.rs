//! Taking sessions of other systems into a store: each under its own name, once, with where
//! it came from, and only what is new of it.

mod claim;
mod compare_session;
mod counted;
mod database;
mod gap;
mod kept;
mod known;
mod name;
mod place;
mod shared;
mod stand_in;
mod summary;
mod track;
mod writer_thread;

use std::collections::BTreeMap;
use std::io::BufRead;
use std::path::{Path, PathBuf};
use std::rc::Rc;

use stepwell::log::Head;
use stepwell::model::{Digest, Origin, Provenance, Source, Time};
use stepwell::{Seq, SessionId, Stepwell};

use crate::archive;
use crate::original::Lies;
use crate::read::input::{Input, Watcher};
use crate::read::neutral::{Item, KeptLine, Opening, Sink, Wanted, Warning};
use crate::read::seen::Seen;
use crate::registry::Format;
use crate::write::writer::Shape;
use crate::{Error, Result};
use claim::{Precedence, is_recovered, told_by};
pub use compare_session::holds_all;
use database::DatabaseReading;
pub use known::KnownFiles;
use name::{Destination, beside, destination, wanted};
use shared::Shared;
use stand_in::known_as;
pub use summary::ImportSummary;
pub use track::Mode;
use track::{KeptFiles, Track};

/// How often a session is begun again because somebody changed it meanwhile.
const TRIES: usize = 5;

/// How many sessions of an archive may have names that others have here.
const MAX_TABOO: usize = 1_000;

/// How many warnings of one import are kept: a file may be wrong on every line.
const MAX_WARNINGS: usize = 20;

/// What became of a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Became {
    /// It is new here.
    Imported,
    /// It was here, and had grown or changed there.
    Updated,
    /// It is here as it is there.
    Unchanged,
}

/// A session that was taken in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ImportedSession {
    /// Its name here.
    pub id: SessionId,
    /// What became of it.
    pub became: Became,
    /// The name that it should have had, if another session has that.
    pub instead_of: Option<SessionId>,
    /// The session that it was written from here, and goes on from.
    pub continues: Option<SessionId>,
}

/// What an import of one file or folder did.
#[derive(Debug, Default)]
pub struct Report {
    /// The sessions in it.
    pub sessions: Vec<ImportedSession>,
    /// What could not be read as it should have been; of many, the first.
    pub warnings: Vec<Warning>,
    /// How many more there were.
    pub more_warnings: u64,
    /// Why it was not read to its end.
    pub fault: Option<Error>,
}

/// Takes in what lies at a path. What was told before a fault stays.
pub fn take_in(well: &Stepwell, mode: Mode, format: Format, path: &Path) -> Report {
    take_in_watched(well, mode, format, path, &(Rc::new(|_| {}) as Watcher))
}

/// The same, while somebody watches how far it is.
pub fn take_in_watched(
    well: &Stepwell,
    mode: Mode,
    format: Format,
    path: &Path,
    watcher: &Watcher,
) -> Report {
    let mut report = Report::default();
    let Some(reader) = format.reader() else {
        let why = format!("{format} is written, and not read");
        report.fault = Some(Error::Foreign { path: path.to_owned(), why });
        return report;
    };
    let mut taboo = Vec::new();
    for tries in 1.. {
        let input = match Input::watched(path, Rc::clone(watcher)) {
            Ok(input) => input,
            Err(error) => return Report { fault: Some(error), ..report },
        };
        report.warnings.clear();
        report.more_warnings = 0;
        let mut intake = Intake::new(well, mode, format, &input, &taboo, &mut report);
        let fault = reader.read(&input, &mut intake).err();
        input.flaws().into_iter().for_each(|flaw| intake.warn(flaw));
        let fault = intake.finish(fault.as_ref()).err().or(fault);
        match fault {
            None => break,
            Some(Error::Continued { session }) => taboo.push(session),
            // Another session has the name of one in an archive.
            Some(Error::Differs { session, .. })
                if !taboo.contains(&session) && taboo.len() < MAX_TABOO =>
            {
                taboo.push(session);
            }
            Some(Error::Store(stepwell::Error::UnexpectedSeq { .. })) if tries < TRIES => {}
            Some(error) => {
                report.fault = Some(error);
                break;
            }
        }
    }
    report
}

/// Where a session is told from.
#[derive(Debug)]
struct Origins {
    /// The one file that holds all of it, if that is so.
    file: Option<PathBuf>,
    /// The folder that holds all of it, if that is so.
    folder: Option<PathBuf>,
    /// When it changed last, by what its files say.
    updated_at: Option<Time>,
    /// Is it put together from other files than its own, and no more is known?
    recovered: bool,
}

impl Origins {
    fn of(opening: &Opening) -> Self {
        let (file, folder) = (opening.file.clone(), opening.folder.clone());
        let recovered = opening.recovered;
        Self { file, folder, updated_at: opening.updated_at, recovered }
    }
}

/// A store that sessions are told to.
struct Intake<'a> {
    well: &'a Stepwell,
    mode: Mode,
    format: Format,
    input: &'a Input,
    /// Sessions that must not be added to.
    taboo: &'a [SessionId],
    report: &'a mut Report,
    /// The session that is being told.
    current: Option<(Track<'a>, ImportedSession, Origins)>,
    /// What it shares with the session that it was written from.
    shared: Option<Shared>,
    /// The database that is read, if it is one.
    database: Option<DatabaseReading<'a>>,
    /// The names here of sessions that were told, by their names there.
    names: BTreeMap<String, SessionId>,
}

impl<'a> Intake<'a> {
    fn new(
        well: &'a Stepwell,
        mode: Mode,
        format: Format,
        input: &'a Input,
        taboo: &'a [SessionId],
        report: &'a mut Report,
    ) -> Self {
        let (current, shared, database, names) = (None, None, None, BTreeMap::new());
        Self { well, mode, format, input, taboo, report, current, shared, database, names }
    }

    /// Keeps what was told of a session that could not be told to its end.
    fn finish(mut self, fault: Option<&Error>) -> Result<()> {
        if fault.is_none() {
            self.stamp_database()?;
        }
        let begin_again = matches!(fault, Some(Error::Continued { .. } | Error::Store(_)));
        match self.current.take() {
            Some((mut track, taken, _)) if !begin_again => {
                track.cut_off()?;
                self.note(taken, track.grown);
                Ok(())
            }
            _ => Ok(()),
        }
    }

    fn note(&mut self, mut taken: ImportedSession, grown: bool) {
        if !grown && taken.became == Became::Updated {
            taken.became = Became::Unchanged;
        }
        // One that was begun again has been noted.
        if !self.report.sessions.iter().any(|known| known.id == taken.id) {
            self.report.sessions.push(taken);
        }
    }

    fn source(&self, opening: &Opening) -> Source {
        let (system, id) = (self.format.as_str().to_owned(), opening.id.clone());
        Source { system, id, started_at: opening.started_at }
    }

    /// Where a session goes. Nowhere, if it was written from one that is here and says nothing
    /// more than that one did.
    fn meet(&mut self, opening: &Opening, source: &Source) -> Result<Option<Destination>> {
        let (well, mark) = (self.well, opening.continues.clone());
        self.shared = mark.map(|mark| Shared::of(well, mark)).transpose()?.flatten();
        let Some(shared) = &self.shared else {
            return destination(well, source, self.taboo).map(Some);
        };
        // It may bear the name of the one that it was written from, and is another one.
        let written = shared.with().clone();
        let taboo = [self.taboo, std::slice::from_ref(&written)].concat();
        let destination = destination(well, source, &taboo)?;
        match &destination {
            Destination::New(_)
                if !shared.goes_on(self.format, self.input.root(), &opening.id)? =>
            {
                self.names.insert(opening.id.clone(), written.clone());
                let (became, instead_of, continues) = (Became::Unchanged, None, None);
                self.note(ImportedSession { id: written, became, instead_of, continues }, false);
                return Ok(None);
            }
            // It came in before the other one did, and was counted.
            Destination::There(id) if !goes_on(&well.store().info(id)?.head) => self.shared = None,
            _ => {}
        }
        Ok(Some(destination))
    }

    /// The session that started this one, if it is here.
    fn parent(&mut self, parent: &str) -> Result<Option<SessionId>> {
        if let Some(id) = self.names.get(parent) {
            return Ok(Some(id.clone()));
        }
        let (system, id) = (self.format.as_str().to_owned(), parent.to_owned());
        let source = Source { system, id, started_at: None };
        Ok(match destination(self.well, &source, &[])? {
            Destination::There(id) => Some(id),
            Destination::New(_) => None,
        })
    }

    /// Is there a session of that name?
    fn is_here(&self, id: &SessionId) -> bool {
        self.well.store().info(id).is_ok()
    }

    /// Does a session lie in what it came from, as that was? A file or a folder that looks as it
    /// did is not read for it; of a file that looks otherwise, all bytes count.
    fn is_known(&self, id: &SessionId, opening: &Opening) -> Result<bool> {
        let head = self.well.store().info(id)?.head;
        let Some(record) = head.facts.provenance else { return Ok(false) };
        let looks_same = self.looks(opening.file.as_deref(), opening.folder.as_deref());
        if looks_same.is_some_and(|seen| record.stamp == Some(seen)) {
            return Ok(true);
        }
        let Some(file) = &opening.file else { return Ok(false) };
        // A file of another size is another file; only one of the same is worth reading.
        match (crate::read::input::open(file), record.bytes, record.digest) {
            (Ok(found), Some(bytes), Some(digest))
                if found.metadata().is_ok_and(|found| found.len() == bytes) =>
            {
                Ok(Digest::of_reader(found).is_ok_and(|(found, _)| found == digest))
            }
            _ => Ok(false),
        }
    }

    /// How the file of a session looks, or the folder if all of that is read, once it has rested.
    fn looks(&self, file: Option<&Path>, folder: Option<&Path>) -> Option<String> {
        let path = file.or_else(|| folder.filter(|path| *path == self.input.root()))?;
        self.input.seen(path)?.settled(self.well.now()).map(str::to_owned)
    }

    /// Says that what is here already is believed.
    fn overruled(&mut self, id: &SessionId, file: Option<&Path>) -> Result<()> {
        let head = self.well.store().info(id)?.head;
        let path = file.unwrap_or(self.input.root());
        let what = match told_by(&head).filter(|other| other != path) {
            Some(other) => {
                let other = other.display();
                format!("{other} tells more or newer of session {id}; this was left out")
            }
            None => {
                format!(
                    "it is older than what is here of session {id}, or tells less; it was left out"
                )
            }
        };
        self.warn(Warning { place: path.display().to_string(), what });
        Ok(())
    }

    /// The files that are kept with a session, so that it can be written as it came.
    fn kept_files(&self, origins: &Origins) -> Option<KeptFiles> {
        let (system, writer) = (self.format.as_str(), self.format.writer()?);
        let lies = match (writer.shape(), &origins.file, &origins.folder) {
            (Shape::File, Some(file), _) => {
                let read = self.input.fingerprint(file).map(|it| it.bytes);
                Lies::File(file.clone(), read)
            }
            (Shape::Folder, _, Some(folder)) => Lies::Folder(folder.clone(), writer.parts()),
            _ => return None,
        };
        Some(KeptFiles { system, lies })
    }

    /// What is remembered of where a session came from.
    fn provenance(&self, origins: &Origins) -> Provenance {
        let file = origins.file.as_deref();
        let path = file.unwrap_or(self.input.root());
        let root = Some(self.input.root()).filter(|root| *root != path);
        let print = file.and_then(|file| self.input.fingerprint(file));
        Provenance {
            from: path.display().to_string(),
            root: root.map(|root| root.display().to_string()),
            updated_at: origins.updated_at,
            recovered: origins.recovered,
            bytes: print.map(|print| print.bytes),
            digest: print.map(|print| print.digest),
            stamp: self.looks(file, origins.folder.as_deref()),
            continues: self.shared.as_ref().map(|shared| shared.mark().clone()),
        }
    }
}

/// Was a session taken in as one that goes on from another?
fn goes_on(head: &Head) -> bool {
    head.facts.provenance.as_ref().is_some_and(|it| it.continues.is_some())
}

impl Sink for Intake<'_> {
    fn knows(&mut self, id: &str, database: Option<&Seen>) -> Result<bool> {
        let Some(seen) = database else { return Ok(false) };
        self.is_in_known_database(id, seen)
    }

    fn begin(&mut self, mut opening: Opening) -> Result<Wanted> {
        if let Some(id) = opening.row_of.as_deref().map(wanted).filter(|id| self.is_here(id)) {
            let (became, instead_of, continues) = (Became::Unchanged, None, None);
            self.note(ImportedSession { id, became, instead_of, continues }, false);
            return Ok(Wanted::Known);
        }
        let source = self.source(&opening);
        let source = known_as(self.well, self.input.root(), &opening, source)?;
        let (well, mode) = (self.well, self.mode);
        let Some(destination) = self.meet(&opening, &source)? else { return Ok(Wanted::Known) };
        let continues = self.shared.as_ref().map(|shared| shared.with().clone());
        let taken = |id: SessionId, became| {
            let wanted = wanted(&source.id);
            let instead_of = (id != wanted).then_some(wanted);
            ImportedSession { id, became, instead_of, continues: continues.clone() }
        };
        match destination {
            Destination::There(id) => {
                self.names.insert(opening.id.clone(), id.clone());
                let taken = taken(id.clone(), Became::Updated);
                if self.is_known(&id, &opening)? {
                    self.note(taken, false);
                    return Ok(Wanted::Known);
                }
                let origins = Origins::of(&opening);
                let path = origins.file.as_deref().unwrap_or(self.input.root());
                let head = well.store().info(&id)?.head;
                let claim = Precedence::of(path, origins.updated_at, &head);
                let mut track = Track::lay_beside(well, mode, id, &source)?;
                let says_less = opening.recovered && !is_recovered(&head);
                track.claim = if says_less { Precedence::Outdated } else { claim };
                self.current = Some((track, taken, origins));
            }
            Destination::New(id) => {
                self.names.insert(opening.id.clone(), id.clone());
                if let Some(parent) = opening.parent.take() {
                    match self.parent(&parent)? {
                        Some(parent) => opening.created.origin = Origin::Subagent { parent },
                        None => self.warn(Warning {
                            place: opening.id.clone(),
                            what: format!("the session {parent} that started it is not here"),
                        }),
                    }
                }
                opening.created.id = id.clone();
                opening.created.source = Some(source.clone());
                let (taken, origins) = (taken(id, Became::Imported), Origins::of(&opening));
                let track = Track::create(well, mode, opening, &source)?;
                self.current = Some((track, taken, origins));
            }
        }
        Ok(Wanted::Yes)
    }

    fn keeper(&mut self, opening: &Opening) -> Result<Option<SessionId>> {
        let kept = self.kept_by_its_program(opening)?;
        if let Some(id) = &kept {
            self.names.insert(opening.id.clone(), id.clone());
        }
        Ok(kept)
    }

    fn meet(
        &mut self,
        session: &SessionId,
        lines: &mut dyn FnMut() -> Result<Option<KeptLine>>,
    ) -> Result<()> {
        self.add_lines(session, lines)
    }

    fn push(&mut self, item: Item) -> Result<Seq> {
        let Some((track, ..)) = &mut self.current else { return Err(Error::Untold) };
        match &self.shared {
            Some(shared) => track.push(shared.uncounted(item)),
            None => track.push(item),
        }
    }

    fn end(&mut self) -> Result<()> {
        let Some((mut track, taken, origins)) = self.current.take() else {
            return Err(Error::Untold);
        };
        let provenance = self.provenance(&origins);
        let files = self.kept_files(&origins);
        let grown = track.close(provenance, files)?;
        if track.overruled {
            self.overruled(&taken.id, origins.file.as_deref())?;
        }
        self.note(taken, grown);
        self.was_told(track, origins);
        Ok(())
    }

    fn warn(&mut self, mut warning: Warning) {
        // An error names its place as well.
        if let Some(what) = warning.what.strip_prefix(&format!("{}: ", warning.place)) {
            warning.what = what.to_owned();
        }
        match self.report.warnings.len() < MAX_WARNINGS {
            true => self.report.warnings.push(warning),
            false => self.report.more_warnings += 1,
        }
    }

    fn restore(&mut self, from: &mut dyn BufRead) -> Result<()> {
        // What would be is found out in a store that is thrown away.
        let elsewhere = Stepwell::in_memory();
        let well = if self.mode == Mode::Write { self.well } else { &elsewhere };
        let taboo = self.taboo;
        let imported = archive::import_as(well, from, &|own| beside(own, taboo))?;
        let groups = [
            (Became::Imported, imported.made),
            (Became::Updated, imported.completed),
            (Became::Unchanged, imported.already_there),
        ];
        let mut sessions = Vec::new();
        for (group, ids) in groups {
            for id in ids {
                let mut became = group;
                if self.mode == Mode::Look && self.well.store().exists(&id)? {
                    archive::compare(&elsewhere, self.well, &id)?;
                    became = Became::Unchanged;
                }
                let instead_of = taboo.iter().find(|own| beside(own, taboo) == id).cloned();
                sessions.push(ImportedSession { id, became, instead_of, continues: None });
            }
        }
        self.report.sessions.append(&mut sessions);
        for id in imported.cut_short {
            let what = "it was damaged where it was exported; it ends before the damage".to_owned();
            self.warn(Warning { place: id.to_string(), what });
        }
        Ok(())
    }
}
