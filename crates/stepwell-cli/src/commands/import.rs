use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::rc::Rc;

use stepwell::Stepwell;
use stepwell::sqlite::Access;
use stepwell_formats::{
    Became, DryRun, Error, Format, Found, ImportSummary, KnownFiles, Mode, Report, Watcher,
};
use stepwell_terminal::text::count;
use stepwell_terminal::{note, wording};
use stepwell_wire::{ImportResult, Imported};
use stepwell_workspace::housekeeping::tidy;
use stepwell_workspace::{
    AgentPlace, LangGraphServer, imported, other_agents, ownership, team_address,
};

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
    if let Some(format) = args.from.filter(|format| format.reader().is_none()) {
        let message = format!("{format} is written, and not read");
        return Err(Failure::new(Exit::Usage, message).hint("stepwell formats lists what is read"));
    }
    let mut summary = ImportSummary::default();
    let (addresses, paths): (Vec<_>, Vec<_>) =
        args.paths.iter().cloned().partition(|path| path.to_string_lossy().contains("://"));
    let servers = from_servers(&addresses, args, app)?;
    let (mode, verbosity) = match args.dry_run {
        true => (Mode::Look, Verbosity::Would),
        false => (Mode::Write, Verbosity::All),
    };
    let kept = app
        .workspace
        .place
        .has_store()
        .then(|| app.workspace.open_existing(access(mode)))
        .transpose()?;
    let known = kept.as_ref().map(|well| KnownFiles::of(well)).transpose()?.unwrap_or_default();
    let mut found = match args.paths.is_empty() {
        false => search(&paths, args.from, &known, &mut summary),
        true => match look_around(args, &known, app)? {
            Some(found) => found,
            None => return Ok(Exit::Done),
        },
    };
    found.extend(servers.iter().map(|server| server.found.clone()));
    // Whoever mistypes a name does not want a store.
    if found.is_empty() {
        say(&summary, args, app)?;
        return Ok(exit(&summary));
    }
    let kept = match (kept, mode) {
        (None, Mode::Write) => Some(app.workspace.open_or_create()?),
        (kept, _) => kept,
    };
    let nowhere = kept.clone().unwrap_or_else(Stepwell::in_memory);
    let well = &nowhere;
    let paths: Vec<PathBuf> = found.iter().map(|found| found.path.clone()).collect();
    let progress = Progress::new(app.terminal, &paths);
    let seen = Rc::clone(&progress);
    let watcher: Watcher = Rc::new(move |bytes| seen.read(bytes));
    let mut dry_run = DryRun::new(well, &known);
    for found in found {
        progress.at(&found.path);
        let report = match mode {
            Mode::Write => known.take_in(well, mode, &found, &watcher),
            Mode::Look => dry_run.look(&found, &watcher),
        };
        let Found { path, format } = found;
        progress.clear();
        summary.count(&report);
        // What the user named may be anybody's.
        if mode == Mode::Write && args.paths.is_empty() {
            ownership::mark_imported(
                &app.workspace,
                &path,
                report.sessions.iter().map(|taken| taken.id.clone()),
            );
        }
        let server = servers.iter().find(|server| server.found.path == path);
        let (report, path) = match server {
            Some(server) => (server.named(report), &server.address),
            None => (report, &path),
        };
        report_import(report, &Origin { path, format }, app, verbosity)?;
    }
    say(&summary, args, app)?;
    if let Some(well) = kept.filter(|_| mode == Mode::Write) {
        tidy(&app.workspace, &well);
    }
    Ok(exit(&summary))
}

/// How the store is opened.
const fn access(mode: Mode) -> Access {
    match mode {
        Mode::Write => Access::Write,
        Mode::Look => Access::Read,
    }
}

/// Says what was done in numbers.
fn say(summary: &ImportSummary, args: &Args, app: &mut App) -> Result<()> {
    let would = if args.dry_run { "Would be: " } else { "" };
    match app.out.is_json() {
        true => note(format_args!("{would}{summary}")),
        false => app.out.line(format_args!("{would}{summary}"))?,
    }
    Ok(())
}

/// How much is said of an import.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verbosity {
    /// Everything.
    All,
    /// All, of what would be done.
    Would,
    /// Not what became of each session.
    NotSessions,
    /// Neither what could not be read, since it is read again and again, nor what is
    /// unchanged.
    OnlyNews,
}

/// What was read.
pub(crate) struct Origin<'a> {
    pub(crate) path: &'a Path,
    pub(crate) format: Format,
}

/// Says what one file or folder brought.
pub(crate) fn report_import(
    report: Report,
    &Origin { path, format }: &Origin<'_>,
    app: &mut App,
    verbosity: Verbosity,
) -> Result<()> {
    let shown = report.sessions.iter().filter(|_| verbosity != Verbosity::NotSessions);
    for taken in
        shown.filter(|it| verbosity != Verbosity::OnlyNews || it.became != Became::Unchanged)
    {
        if app.out.is_json() {
            app.out.object(&imported(taken, path, format))?;
        } else if let Some(line) = wording::taken_in(taken, verbosity == Verbosity::Would) {
            app.out.line(line)?;
        }
    }
    for warning in report.warnings.iter().filter(|_| verbosity != Verbosity::OnlyNews) {
        note(format_args!("warning: {}: {}", warning.place, warning.what));
    }
    if report.more_warnings > 0 && verbosity != Verbosity::OnlyNews {
        let more = usize::try_from(report.more_warnings).unwrap_or(usize::MAX);
        note(format_args!("warning: {}: {} more", path.display(), count(more, "warning")));
    }
    let word = if report.is_skipped() { "skipped" } else { "damaged" };
    if let Some(error) = report.fault {
        let named = matches!(
            error,
            Error::Unreadable { .. }
                | Error::Foreign { .. }
                | Error::FileTooLarge { .. }
                | Error::Locked { .. }
        );
        let failure = Failure::from(error);
        let failure = if named { failure } else { failure.at(path) };
        if let Failure::Said { message, hint, .. } = failure {
            note(format_args!("{word}: {message}"));
            hint.iter().for_each(|hint| note(format_args!("hint: {hint}")));
        }
    }
    Ok(())
}

/// Copies what LangGraph keeps on servers.
fn from_servers(addresses: &[PathBuf], args: &Args, app: &App) -> Result<Vec<LangGraphServer>> {
    let format: Format = "langgraph".parse().map_err(|error| Failure::new(Exit::Failed, error))?;
    if !addresses.is_empty() && args.from.is_some_and(|from| from != format) {
        let message = "of servers only LangGraph's tables are read";
        return Err(Failure::new(Exit::Usage, message).hint("leave --from out, or name a file"));
    }
    let copied = |named: &PathBuf| {
        // Not shown: what is mistyped may hold a password.
        let address = team_address(named, &app.workspace.host).ok().flatten().ok_or_else(|| {
            Failure::new(Exit::Usage, "an address to import from cannot be read")
                .hint("stepwell import postgres://user@host:port/database, or a file or folder")
        })?;
        Ok(LangGraphServer::copy(address, format)?)
    };
    addresses.iter().map(copied).collect()
}

/// What is at the paths that were named.
fn search(
    paths: &[PathBuf],
    only: Option<Format>,
    known: &KnownFiles,
    summary: &mut ImportSummary,
) -> Vec<Found> {
    let mut all = Vec::new();
    for path in paths {
        let searched = match known.search(path, only) {
            Ok(searched) => searched,
            Err(error) => {
                note(format_args!("not recognised: {}: {error}", path.display()));
                summary.unrecognised += 1;
                continue;
            }
        };
        searched.faults.iter().for_each(|error| note(format_args!("damaged: {error}")));
        if searched.is_nothing() {
            summary.unrecognised += 1;
            let why = wording::no_session(only, &searched);
            note(format_args!("not recognised: {}: {why}", path.display()));
        }
        summary.damaged += searched.faults.len();
        all.extend(searched.found);
    }
    all
}

/// What is where agents keep their sessions, if the user wants it.
fn look_around(args: &Args, known: &KnownFiles, app: &mut App) -> Result<Option<Vec<Found>>> {
    let mut all = Vec::new();
    for AgentPlace { format, path } in other_agents::places(&app.workspace, args.from) {
        let before = all.len();
        let mut found = |it: Found| {
            all.push(it);
            Ok(())
        };
        let mut fault = |error: Error| note(format_args!("warning: {error}"));
        known.find_all(&path, Some(format), &mut found, &mut fault)?;
        let files = count(all.len() - before, "file");
        note(format_args!("{}: {files} in {}", format.title(), path.display()));
    }
    if all.is_empty() {
        let message = "no sessions of other agents were found";
        note(format_args!("{message}; stepwell formats says where was looked"));
        return Ok(None);
    }
    if !args.dry_run {
        let question = format!("Import the sessions in {} here?", count(all.len(), "file"));
        if !app.terminal.can_ask && !args.consent.given() {
            let message = "nobody can be asked here whether to import them";
            return Err(Failure::new(Exit::Failed, message)
                .hint("stepwell import --yes imports them; name a folder to import less"));
        }
        args.consent.ask(app.terminal, &question, Unasked::GoOn)?;
    }
    Ok(Some(all))
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
