use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::rc::Rc;

use stepwell_formats::{Error, Format, ImportSummary, Mode, Watcher};
use stepwell_runtime::command::import::{
    ImportListener, ImportProblem, ImportQuestion, SearchedPlace,
};
use stepwell_runtime::command::{Folder, ImportRequest, ImportedPlace};
use stepwell_terminal::note;
use stepwell_terminal::reply::{self, Verbosity};
use stepwell_terminal::text::count;
use stepwell_wire::{ImportResult, Imported};
use stepwell_workspace::housekeeping::tidy;
use stepwell_workspace::imported;

use crate::app::App;
use crate::ask::{Consent, Unasked};
use crate::failure::{Exit, Failure, Result};
use crate::foreign::Progress;

/// Imports sessions: from other agents, or from what export wrote.
///
/// Takes files and folders, and detects the format from the content; without any, it
/// looks where the agents of this machine keep their sessions, and asks. What was imported
/// before is brought up to date, and nothing is imported twice. An address (postgres://…) is
/// a server on which LangGraph keeps its checkpoints.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Files, folders, servers of LangGraph's; - is stdin, for what export wrote.
    #[arg(value_name = "PATH")]
    paths: Vec<PathBuf>,
    /// Reads only this format; stepwell formats lists them.
    #[arg(long, value_name = "FORMAT")]
    from: Option<Format>,
    /// Shows what would be done, and does nothing.
    #[arg(long)]
    dry_run: bool,
    #[command(flatten)]
    consent: Consent,
}

/// Something could be read, or there was nothing that could not be.
fn exit(summary: &ImportSummary) -> Exit {
    match (summary.read(), summary.damaged, summary.unrecognised) {
        (0, 1.., _) => Exit::Damaged,
        (0, 0, 1..) => Exit::Absent,
        _ => Exit::Done,
    }
}

pub(crate) fn run(args: &Args, app: &mut App) -> Result<Exit> {
    if args.paths.iter().any(|path| path.as_os_str() == "-") {
        return from_stdin(args, app);
    }
    let request = ImportRequest {
        paths: args.paths.clone(),
        folder: Folder::Process,
        from: args.from,
        mode: if args.dry_run { Mode::Look } else { Mode::Write },
    };
    let runtime = app.runtime();
    let mut listener =
        Listener { mode: request.mode, consent: args.consent, app, progress: None, failure: None };
    let report = runtime.import(&request, &mut listener)?;
    if let Some(failure) = listener.failure {
        return Err(failure);
    }
    if let Some(nothing) = reply::nothing(&report) {
        note(nothing);
        return Ok(Exit::Done);
    }
    let summary = reply::summary(&report).unwrap_or_default();
    match app.out.is_json() {
        true => note(summary),
        false => app.out.line(summary)?,
    }
    Ok(exit(&report.summary))
}

/// Shows an import as it goes on, and asks for consent.
struct Listener<'a> {
    app: &'a mut App,
    mode: Mode,
    consent: Consent,
    progress: Option<Rc<Progress>>,
    /// Why the import is to stop, or could not be shown.
    failure: Option<Failure>,
}

impl ImportListener for Listener<'_> {
    fn searched(&mut self, place: &SearchedPlace) {
        note(reply::searched(place));
    }

    fn problem(&mut self, problem: &ImportProblem) {
        note(reply::problem(problem));
    }

    fn may_import(&mut self, question: ImportQuestion) -> stepwell_runtime::Result<bool> {
        let terminal = self.app.terminal;
        let asked = match terminal.can_ask || self.consent.given() {
            true => {
                let files = count(question.files, "file");
                let question = format!("Import the sessions in {files} here?");
                self.consent.ask(terminal, &question, Unasked::GoOn)
            }
            false => {
                let message = "nobody can be asked here whether to import them";
                Err(Failure::new(Exit::Failed, message)
                    .hint("stepwell import --yes imports them; name a folder to import less"))
            }
        };
        self.failure = asked.err();
        Ok(self.failure.is_none())
    }

    fn begins(&mut self, paths: &[PathBuf]) -> Watcher {
        let progress = Progress::new(self.app.terminal, paths);
        self.progress = Some(Rc::clone(&progress));
        Rc::new(move |bytes| progress.read(bytes))
    }

    fn reading(&mut self, path: &Path) {
        self.progress.iter().for_each(|progress| progress.at(path));
    }

    fn imported(&mut self, place: &ImportedPlace) {
        self.progress.iter().for_each(|progress| progress.clear());
        if self.failure.is_none() {
            self.failure = report_import(place, self.app, self.mode.into()).err();
        }
    }
}

/// Says what one file or folder brought.
pub(crate) fn report_import(
    place: &ImportedPlace,
    app: &mut App,
    verbosity: Verbosity,
) -> Result<()> {
    let said = reply::imported(place, verbosity);
    match app.out.is_json() {
        true => {
            let shown = place.report.sessions.iter().filter(|it| verbosity.shows(it.became));
            for taken in shown {
                app.out.object(&imported(taken, &place.path, place.format))?;
            }
        }
        false => said.lines.into_iter().try_for_each(|line| app.out.line(line))?,
    }
    said.notes.into_iter().for_each(note);
    Ok(())
}

/// Why nothing could be read. As with a file, damage has its own exit code, and what is no
/// archive at all has another.
fn unread(error: Error) -> Failure {
    if matches!(error, Error::NotAnArchive { .. }) {
        return Failure::new(Exit::Absent, error).hint("stepwell import FILE reads other formats");
    }
    let ours = matches!(error, Error::Store(_) | Error::Write(_));
    match Failure::from(error) {
        Failure::Said { message, hint, .. } if !ours => {
            Failure::Said { message, hint, exit: Exit::Damaged }
        }
        failure => failure,
    }
}

/// What export wrote, from a pipe.
fn from_stdin(args: &Args, app: &mut App) -> Result<Exit> {
    let name = Path::new("-");
    if args.paths.len() > 1 || args.dry_run {
        let message = "- stands alone: stdin is read once, and as it comes";
        return Err(Failure::new(Exit::Usage, message));
    }
    let mut from = BufReader::new(std::io::stdin());
    let from: &mut dyn BufRead = &mut from;
    if from.fill_buf().is_ok_and(<[u8]>::is_empty) {
        return Err(Failure::new(Exit::Absent, "-: stdin is empty"));
    }
    let well = app.workspace.open_or_create()?;
    let read = stepwell_formats::import(&well, from).map_err(|error| unread(error).at(name))?;
    let groups = [
        ("Imported", ImportResult::Imported, &read.made),
        ("Updated", ImportResult::Updated, &read.completed),
        ("Already here:", ImportResult::Unchanged, &read.already_there),
    ];
    for (says, imported, ids) in groups {
        for id in ids {
            let line = Imported {
                session: id.clone(),
                imported,
                from: None,
                format: None,
                instead_of: None,
                continues: None,
            };
            app.out.answer(&line, format_args!("{says} {id}"))?;
        }
    }
    for id in &read.cut_short {
        note(format_args!("{id} was damaged where it was exported; it ends before the damage"));
    }
    tidy(&app.workspace, &well);
    Ok(Exit::Done)
}
