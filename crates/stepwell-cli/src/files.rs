//! A session's files, as several commands need them: limits, contents, and a rewind that was
//! cut off.

use stepwell::{
    Error, FileState, Filter, Head, Kind, Origin, Place, Query, Scrub, Seq, Session, SessionId,
    Standing, Stepwell,
};
use stepwell_agent::redact::Redactor;
use stepwell_agent::tool;
use stepwell_files::capture::Limits;
use stepwell_files::diff::Side;
use stepwell_files::history::History;
use stepwell_files::rewind::Foreign;
use stepwell_files::safe_path::Root;
use stepwell_files::site::Site;
use stepwell_files::{backups, rewind, rewind_history};
use stepwell_workspace::config::Key;
use stepwell_workspace::lifecycle::hold;

use crate::app::{App, Go, Well, each_session};
use crate::failure::{Exit, Failure, Result};
use crate::output::note;
use crate::text::one_line;
use crate::wording;

/// What is captured of files.
pub(crate) fn limits(app: &App) -> Limits {
    let settings = &app.config.settings;
    Limits {
        roots: settings.file_roots.names(),
        max_file: settings.max_file_bytes.get().into(),
        max_held: settings.max_held_bytes.get().into(),
        max_files: settings.max_files.get() as usize,
    }
}

/// Refuses a folder of `files.roots` that a link leads out of the workspace: nothing in it would
/// be captured. One that is not there yet may come.
pub(crate) fn check_roots(place: &tool::Place, app: &App) -> Result<()> {
    const KEY: &str = "files.roots";
    let Ok(root) = place.root.canonicalize() else { return Ok(()) };
    for name in app.config.settings.file_roots.names() {
        let Ok(real) = root.join(&name).canonicalize() else { continue };
        if real.starts_with(&root) {
            continue;
        }
        let source = Key::find(KEY).map(|key| wording::source(app.config.source(key)));
        let message = format!(
            "{}: {KEY} = {name:?}: it leads out of the workspace, to {}",
            source.unwrap_or_default(),
            real.display()
        );
        return Err(Failure::new(Exit::Absent, message)
            .hint(format_args!("stepwell config set {KEY} . captures the whole workspace")));
    }
    Ok(())
}

/// Where a session's files are, and what is none of them.
pub(crate) fn root(head: &Head, app: &App) -> Result<Root> {
    let store = std::fs::canonicalize(&app.place.store).ok();
    Ok(Root { store, path: app.session_folder(Some(head))? })
}

/// Where files of a session are looked at and put.
pub(crate) fn site<'a>(root: &'a Root, redactor: &'a Redactor, app: &App) -> Site<'a> {
    Site { root, redactor, max_file: limits(app).max_file }
}

/// Finishes the rewinds that were cut off in this workspace, whoever's they are: what a run
/// does to files would get mixed up with them.
pub(crate) fn settle_all(well: &Well, app: &App) -> Result<()> {
    for standing in halves(well, app)? {
        let id = &standing.head.id;
        let mut session = well.hold(id).map_err(|error| match error {
            Error::Held { .. } => Failure::from(error)
                .hint(format_args!("{id} is being rewound; try again when that is done")),
            error => error.into(),
        })?;
        settle(&mut session, Foreign::Refused, app)?;
    }
    Ok(())
}

/// Refuses a run that must not change files, if there are some in this workspace that would
/// have to be moved first.
pub(crate) fn refuse_halves(well: &Well, app: &App) -> Result<()> {
    halves(well, app)?.iter().try_for_each(refuse_half)
}

/// The sessions whose files may be half moved in this workspace.
fn halves(well: &Well, app: &App) -> Result<Vec<Standing>> {
    let filter = Filter { rewinding: true, ..Filter::default() };
    let mut half = Vec::new();
    each_session(well, Query { filter, ..Query::default() }, |standing| {
        // What cannot be read is in every list.
        if standing.head.rewinding.is_some() {
            half.push(standing);
        }
        Ok(Go::On)
    })?;
    // Where the files are gone, or in another folder, nothing gets mixed up.
    let (here, elsewhere): (Vec<_>, Vec<_>) =
        half.into_iter().partition(|standing| root(&standing.head, app).is_ok());
    elsewhere.iter().for_each(tell_of_half);
    Ok(here)
}

/// Finishes a rewind that was cut off, if there is one, and says so. Whoever holds a session
/// to write to it does this first. Tells whether there was one.
pub(crate) fn settle(session: &mut Session, foreign: Foreign, app: &App) -> Result<bool> {
    let head = session.standing()?.head;
    if head.rewinding.is_none() {
        return Ok(false);
    }
    let (root, redactor) = (root(&head, app)?, Redactor::new([]));
    let site = site(&root, &redactor, app);
    let Some(settled) = rewind::settle(session, &site, foreign, &mut |_| {})? else {
        return Ok(false);
    };
    let (id, began) = (session.id(), settled.began);
    if settled.seq.is_none() {
        for left in &settled.left {
            note(format_args!("conflict {}: {}", one_line(&left.path), left.why));
        }
        let message =
            format!("a rewind of {id} was cut off at seq {began}, and files changed since");
        return Err(Failure::new(Exit::Failed, message).hint(format_args!(
            "stepwell rewind {id} --finish finishes it and leaves those files as they are"
        )));
    }
    note(format_args!("A rewind of {id} that was cut off at seq {began} is finished now."));
    for left in settled.left {
        note(format_args!("  left {}: {}", one_line(&left.path), left.why));
    }
    Ok(true)
}

/// Finishes a rewind of a session that was cut off, if there is one and its files can be had: who
/// forks it shares them.
pub(crate) fn settle_of(well: &Well, id: &SessionId, app: &App) -> Result<()> {
    let standing = well.standing(id)?;
    if standing.head.rewinding.is_none() {
        return Ok(());
    }
    if root(&standing.head, app).is_err() {
        tell_of_half(&standing);
        return Ok(());
    }
    if standing.held.is_some() {
        refuse_half(&standing)?;
    }
    settle(&mut well.hold(id)?, Foreign::Refused, app).map(drop)
}

/// Says that a session's files are half moved, if they are.
pub(crate) fn tell_of_half(standing: &Standing) {
    let head = &standing.head;
    if let (Some(began), None) = (head.rewinding, &standing.held) {
        let id = &head.id;
        note(format_args!(
            "warning: a rewind of {id} was cut off at seq {began}; its files may be half moved\n\
             hint: stepwell rewind {id} --finish finishes it; so does the next run here"
        ));
    }
}

/// Refuses what must not be done to a session whose files may be half moved: what is recorded
/// now is set aside when they are whole again.
pub(crate) fn refuse_half(standing: &Standing) -> Result<()> {
    let id = &standing.head.id;
    let Some(began) = standing.head.rewinding else { return Ok(()) };
    if standing.held.is_some() {
        let message = format!("{id} is being rewound; nothing was done");
        return Err(Failure::new(Exit::Busy, message).hint("try again when that is done"));
    }
    let message = format!(
        "a rewind of {id} was cut off at seq {began}, and its files may be half moved; nothing \
         was done"
    );
    let finish = format!("stepwell rewind {id} --finish finishes it");
    Err(Failure::new(Exit::Failed, message).hint(match standing.trashed_at {
        Some(_) => format!("stepwell trash restore {id} brings it back; then {finish}"),
        None => finish,
    }))
}

/// Refuses to remove a session that alone knows how its files get whole again. Where they are
/// gone, or the log is damaged, nobody can finish that.
pub(crate) fn refuse_removal(standing: &Standing, app: &App) -> Result<()> {
    match standing.damage.is_some() || root(&standing.head, app).is_err() {
        true => Ok(()),
        false => refuse_half(standing),
    }
}

/// Takes the lease of a session for a moment, if its files are whole.
pub(crate) fn hold_whole(well: &Well, id: &SessionId) -> Result<Session> {
    let session = hold(well, id)?;
    // Whoever was at it is done: the lease is ours.
    refuse_half(&Standing { held: None, ..session.standing()? })?;
    Ok(session)
}

/// Lets go of contents that no view holds, but for the newest of each file. The log says so.
pub(crate) fn let_go(well: &Well, session: &Session, app: &App) -> Result<()> {
    let keep = app.config.settings.max_backups_per_file.get() as usize;
    let standing = session.standing()?;
    let facts = session.facts(&rewind_history::MOVES)?;
    // What a move set aside is there again when the move is taken back.
    let reach = rewind_history::within_reach(&facts, standing.head.seq);
    let needed = rewind_history::recorded_by(&facts);
    let history = History::of(session.facts(&[Kind::File])?);
    let due = |shared: Seq| {
        backups::due(&history, keep, |seq| {
            seq < standing.own_from
                || seq <= shared
                || reach.iter().any(|branch| branch.contains(seq))
                || needed.iter().any(|range| range.contains(&seq))
        })
    };
    // Every session is looked at for forks, so only if it matters.
    if due(Seq::ZERO).is_empty() {
        return Ok(());
    }
    let due = due(shared_up_to(well, session.id())?);
    if due.is_empty() {
        return Ok(());
    }
    tracing::info!(session = %session.id(), versions = due.len(), "versions_let_go");
    let replacements = due.into_iter().map(|(seq, change)| (seq, change.into())).collect();
    let (id, epoch) = (session.id().clone(), Some(session.lease().epoch));
    let rule = "files.max_backups_per_file".to_owned();
    well.store().scrub(Scrub { session: id, epoch, rule, replacements })?;
    Ok(())
}

/// The last event of a session that another one may show. A fork whose parent was purged may
/// share events of any session.
fn shared_up_to(well: &Well, id: &SessionId) -> Result<Seq> {
    let mut last = Seq::ZERO;
    let filter = Filter { place: Place::Anywhere, ..Filter::default() };
    each_session(well, Query { filter, ..Query::default() }, |standing| {
        if let Origin::Fork { parent, at } = &standing.head.origin
            && (parent == id || !well.store().exists(parent)?)
        {
            last = last.max(*at);
        }
        Ok(Go::On)
    })?;
    Ok(last)
}

/// What a recorded state was, with its content.
pub(crate) fn side(well: &Stepwell, state: &FileState) -> Result<Side> {
    Ok(match state {
        FileState::Absent => Side::Absent,
        FileState::File { blob, mode } => {
            Side::File { bytes: well.store().blob(blob)?, mode: *mode }
        }
        FileState::Symlink { target } => Side::Link(target.clone()),
        FileState::NotCaptured { why, .. } => Side::Unknown(why.clone()),
    })
}
