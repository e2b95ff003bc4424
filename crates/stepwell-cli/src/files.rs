//! A session's files, as several commands need them: limits, contents, and a rewind that was
//! cut off.

use stepwell::{
    Event, FileState, Filter, Head, Kind, Origin, Place, Query, Scrub, Seq, Session, SessionId,
    Stepwell, Timeline,
};
use stepwell_agent::files::capture::Limits;
use stepwell_agent::files::diff::Side;
use stepwell_agent::files::history::History;
use stepwell_agent::files::site::Site;
use stepwell_agent::files::{backups, rewind};
use stepwell_agent::redact::Redactor;
use stepwell_agent::tool;

use crate::app::{App, Go, Well, each_session};
use crate::failure::Result;
use crate::output::note;

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

/// Where a session's files are, and what is none of them.
pub(crate) fn place(head: &Head, app: &App) -> Result<tool::Place> {
    let store = std::fs::canonicalize(&app.place.store).ok();
    Ok(tool::Place { store, ..tool::Place::new(app.workspace(Some(head))?) })
}

/// Finishes a rewind that was cut off, if there is one, and says so. Whoever holds a session
/// to write to it does this first.
pub(crate) fn settle(session: &mut Session, app: &App) -> Result<()> {
    if !rewind::is_cut_off(session)? {
        return Ok(());
    }
    let place = place(&session.standing()?.head, app)?;
    let redactor = Redactor::new([]);
    let site = Site { place: &place, redactor: &redactor, max_file: limits(app).max_file };
    if let Some(settled) = rewind::settle(session, &site, &mut |_| {})? {
        let began = settled.began;
        note(format_args!(
            "A rewind of {} that was cut off at seq {began} is finished now.",
            session.id()
        ));
        for left in settled.left {
            note(format_args!("  left {}: {}", left.path, left.why));
        }
    }
    Ok(())
}

/// Lets go of contents that no view holds, but for the newest of each file. The log says so.
pub(crate) fn let_go(well: &Well, session: &Session, app: &App) -> Result<()> {
    let keep = app.config.settings.max_backups_per_file.get() as usize;
    let standing = session.standing()?;
    let facts = session.facts(&rewind::MOVES)?;
    let timeline = Timeline::at(standing.head.seq, facts.iter());
    let needed = rewind::needed(&facts);
    // What a rewind took back is there again when the rewind is taken back.
    let rewinds = facts.iter().filter(|fact| matches!(fact.event, Event::Rewound(_)));
    let undoable: Vec<Timeline> = rewinds
        .filter(|fact| timeline.contains(fact.seq))
        .map(|rewind| {
            let before = facts.iter().filter(|fact| fact.seq < rewind.seq);
            Timeline::at(rewind.seq.prev(), before)
        })
        .collect();
    let history = History::of(session.facts(&[Kind::File])?);
    let due = |shared: Seq| {
        backups::due(&history, keep, |seq| {
            seq < standing.own_from
                || seq <= shared
                || timeline.contains(seq)
                || undoable.iter().any(|timeline| timeline.contains(seq))
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
