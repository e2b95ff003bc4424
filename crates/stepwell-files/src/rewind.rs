//! Rewinds a session with its files, completely or not at all.
//!
//! The planned moves are recorded first, with every content that is needed to make and to undo
//! them. Then each file is replaced atomically. [`finish_rewind`] finishes an interrupted rewind;
//! every resume calls it first.

use stepwell::log::Timeline;
use stepwell::model::{
    Checkpoint, Digest, Driver, FileChanged, FileState, Kind, Restored, Rewinding, Rewound,
    StatusChanged, Undone,
};
use stepwell::store::{Order, Span};
use stepwell::work::Gates;
use stepwell::work::compactions::{self, Extent};
use stepwell::{Event, NewEvent, Recorded, Seq, Session, SessionId, Status, StopReason, Store};
use stepwell_wire::LeftFile;

use crate::claims::Claims;
use crate::error::{Error, Result};
use crate::history::History;
use crate::plan::{Look as _, Others, Plan, in_the_way};
use crate::rewind_effect::{RewindEffect, later_files};
use crate::rewind_history::{Asked, MOVES, unfinished};
use crate::site::Site;

/// The progress of a rewind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stage<'a> {
    /// The plan is recorded.
    Recorded,
    /// A file is about to be moved.
    Moving(&'a str),
    /// A file was moved.
    Moved(&'a str),
    /// All files are moved; the end is recorded next.
    Placed,
}

/// Receives the progress of a rewind.
pub type Watch<'a> = &'a mut dyn FnMut(Stage<'_>);

/// The effect of a rewind.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Preview {
    /// On files.
    pub plan: Plan,
    /// On the conversation.
    pub shift: RewindEffect,
}

impl Preview {
    /// Does a conflict prevent the rewind?
    #[must_use]
    pub fn is_refused(&self, asked: &Asked) -> bool {
        let respected = asked.others == Others::Respected;
        !self.plan.conflicts.is_empty() || (respected && self.shift.sets_work_aside())
    }
}

/// The outcome of a rewind.
#[derive(Clone, Debug, PartialEq)]
pub enum Done {
    /// It was made.
    Rewound {
        /// The seq of its event.
        seq: Seq,
        /// The checkpoint in front of it.
        checkpoint: String,
        /// Its effect.
        preview: Preview,
    },
    /// A conflict prevented it; nothing changed.
    Refused(Preview),
}

/// How to treat files that someone else changed during an interrupted rewind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Foreign {
    /// They are conflicts: nothing is done.
    Refused,
    /// They stay as they are.
    Left,
}

/// The outcome of finishing an interrupted rewind.
#[derive(Clone, Debug, PartialEq)]
pub struct Settled {
    /// The seq at which it began.
    pub began: Seq,
    /// The event that ended it; `None` if conflicts prevented that.
    pub seq: Option<Seq>,
    /// The files that someone else changed.
    pub left: Vec<LeftFile>,
}

/// An interrupted rewind, and the effect of finishing it.
#[derive(Clone, Debug, PartialEq)]
pub struct CutOff {
    /// The seq at which it began.
    pub began: Seq,
    /// The requested rewind.
    pub asked: Asked,
    /// The files that are not moved yet.
    pub moves: Vec<FileChanged>,
    /// The files that someone else changed meanwhile.
    pub left: Vec<LeftFile>,
}

/// The interrupted rewind of a session, if there is one.
pub fn cut_off(store: &dyn Store, id: &SessionId, site: &Site<'_>) -> Result<Option<CutOff>> {
    if store.info(id)?.head.rewinding.is_none() {
        return Ok(None);
    }
    let facts = store.keyed_events(id, &MOVES)?;
    let Some((began, asked, files)) = unfinished(&facts) else { return Ok(None) };
    let all = recorded(store.keyed_events(id, &[Kind::File])?, began, files);
    let left = foreign(&all, site);
    let mut moves = all;
    moves.retain(|change| {
        let is_left = left.iter().any(|left| left.path == change.path);
        !is_left && !site.now(&change.path).is(&change.after)
    });
    Ok(Some(CutOff { began, asked, moves, left }))
}

/// The file moves that a rewind recorded at its beginning.
fn recorded(files: Vec<Recorded>, began: Seq, many: u64) -> Vec<FileChanged> {
    let within = |seq: Seq| seq > began && seq.get() <= began.get() + many;
    let moves = files.into_iter().filter(|fact| within(fact.seq));
    let moves = moves.filter_map(|fact| match fact.event {
        Event::File(change) => Some(change),
        _ => None,
    });
    moves.collect()
}

/// The files that someone else changed since the plan was made.
fn foreign(moves: &[FileChanged], site: &Site<'_>) -> Vec<LeftFile> {
    let foreign = moves.iter().filter(|change| is_foreign(change, moves, site));
    foreign.map(|change| changed_meanwhile(&change.path)).collect()
}

/// Previews a rewind.
pub fn preview(
    store: &dyn Store,
    id: &SessionId,
    asked: &Asked,
    site: &Site<'_>,
) -> Result<Preview> {
    let history = History::of(store.keyed_events(id, &[Kind::File])?);
    let mut plan = match asked.scope.moves_files() {
        true => Plan::of(&history, asked.to, asked.others, site),
        false => Plan::default(),
    };
    if asked.others == Others::Respected && !plan.moves.is_empty() {
        Claims::of(store, id, &history, asked.to)?.object_to(&mut plan, &history, asked.to);
        let asked_about = site.asked_about(&plan.moves, history.entries());
        plan.moves.retain(|it| asked_about.iter().all(|about| about.path != it.path));
        plan.conflicts.extend(asked_about);
    }
    let moves = store.keyed_events(id, &MOVES)?;
    let later_files = later_files(asked, &moves, &history, &plan);
    let shift = RewindEffect { later_files, ..RewindEffect::of(store, id, asked, &moves)? };
    Ok(Preview { plan, shift })
}

/// Rewinds a session.
pub fn rewind(
    session: &mut Session,
    site: &Site<'_>,
    asked: &Asked,
    watch: Watch<'_>,
) -> Result<Done> {
    let store = session.well().store().clone();
    let mut preview = preview(&*store, session.id(), asked, site)?;
    if preview.is_refused(asked) {
        return Ok(Done::Refused(preview));
    }
    let checkpoint = safety_name(&session.keyed_events(&[Kind::Checkpoint])?);
    let named = Checkpoint::automatic(checkpoint.clone()).made_by(session.well().acting_who());
    let mut events: Vec<NewEvent> = vec![named.into()];
    let plan = &mut preview.plan;
    if plan.moves.is_empty() {
        events.extend(end(session, asked)?);
        let seq = session.append_all(events)?.first.next();
        return Ok(Done::Rewound { seq, checkpoint, preview });
    }
    check(session, &plan.moves)?;
    keep(session, site, &plan.moves)?;
    let Asked { to, scope, undoes, .. } = *asked;
    events.push(Rewinding::Begun { to, scope, undoes, files: plan.moves.len() as u64 }.into());
    events.extend(plan.moves.iter().cloned().map(NewEvent::from));
    let began = session.append_all(events)?.first.next();
    watch(Stage::Recorded);
    let left = carry_out(session, site, began, &plan.moves, watch)?;
    watch(Stage::Placed);
    let seq = session.append_all(end(session, asked)?)?.first;
    plan.moves.retain(|change| left.iter().all(|left| left.path != change.path));
    plan.left.extend(left);
    Ok(Done::Rewound { seq, checkpoint, preview })
}

/// Finishes an interrupted rewind, if there is one. A fork inherits none: the files were its
/// parent's.
pub fn finish_rewind(
    session: &mut Session,
    site: &Site<'_>,
    others: Foreign,
    watch: Watch<'_>,
) -> Result<Option<Settled>> {
    if session.info()?.head.rewinding.is_none() {
        return Ok(None);
    }
    let Some((began, asked, files)) = unfinished(&session.keyed_events(&MOVES)?) else {
        return Ok(None);
    };
    let mut moves = recorded(session.keyed_events(&[Kind::File])?, began, files);
    // The user confirmed their own rewind when it began. A rewind that someone else began needs a
    // confirmation.
    let theirs = theirs(&moves, began, site);
    if others == Foreign::Refused {
        let mut left = foreign(&moves, site);
        left.extend(theirs.iter().cloned());
        if !left.is_empty() {
            return Ok(Some(Settled { began, seq: None, left }));
        }
    }
    moves.retain(|it| theirs.iter().all(|left| left.path != it.path));
    let mut left = carry_out(session, site, began, &moves, watch)?;
    left.extend(theirs);
    watch(Stage::Placed);
    let seq = Some(session.append_all(end(session, &asked)?)?.first);
    Ok(Some(Settled { began, seq, left }))
}

/// The files of a rewind that someone else began.
fn theirs(moves: &[FileChanged], began: Seq, site: &Site<'_>) -> Vec<LeftFile> {
    let Some(who) = site.whose.whose(began) else { return Vec::new() };
    let undone = moves.iter().filter(|change| !site.now(&change.path).is(&change.after));
    let why = format!("{who} began the rewind");
    undone.map(|it| LeftFile { path: it.path.clone(), why: why.clone() }).collect()
}

/// Did someone else change the file to a state that is neither the old nor the new one, or block
/// its path?
fn is_foreign(change: &FileChanged, moves: &[FileChanged], site: &Site<'_>) -> bool {
    let now = site.now(&change.path);
    if now.is(&change.after) {
        return false;
    }
    let blocked = in_the_way(change, &now, moves, site).map_or(true, |ways| !ways.is_empty());
    !now.is(&change.before) || blocked
}

fn changed_meanwhile(path: &str) -> LeftFile {
    LeftFile { path: path.to_owned(), why: "someone else changed it meanwhile".to_owned() }
}

/// The events that end a rewind: the rewind itself, and the metadata at its target.
fn end(session: &Session, asked: &Asked) -> Result<Vec<NewEvent>> {
    let Asked { to, scope, .. } = *asked;
    // The store fills in the restored values.
    let restored = Restored::default();
    let moved: Event = match asked.undoes {
        Some(of) => Undone::Rewind { of, scope, restored }.into(),
        None => Rewound { to, scope, restored }.into(),
    };
    let mut events: Vec<NewEvent> = vec![moved.into()];
    if scope.moves_view() {
        let extent = Extent::at(&session.keyed_events(&compactions::KINDS)?, asked.follows());
        if extent != Extent::of(&session.info()?.head) {
            events.push(extent.edited().into());
        }
        events.extend(stands(session, asked)?.map(NewEvent::from));
    }
    Ok(events)
}

/// The status at the target of a rewind, if it differs from the current one. A run that was not
/// done there can be resumed, a run that was done is done, and one with an open question waits. An
/// abandoned session stays abandoned, and an external agent's status follows its phase.
fn stands(session: &Session, asked: &Asked) -> Result<Option<StatusChanged>> {
    let head = session.info()?.head;
    if head.status == Status::Abandoned || head.driver == Driver::External {
        return Ok(None);
    }
    let timeline = Timeline::at(asked.follows(), session.keyed_events(&MOVES)?.iter());
    let then = last_status(session, asked.follows(), &timeline)?;
    let waits = || -> Result<bool> {
        let store = session.well().store();
        Ok(Gates::once(&**store, session.id(), asked.follows())?.open().next().is_some())
    };
    let then = match then {
        // An answer counts before the run that it unblocks.
        Some(it) if it.status == Status::Paused && !waits()? => None,
        Some(it) if it.status == Status::Running => None,
        // The rewind leads here, not the crash.
        Some(it) if it.reason == Some(StopReason::Crashed) => {
            Some(StatusChanged { reason: None, ..it })
        }
        it => it,
    };
    // No runner was interrupted there, so there is no reason.
    let nobody = StatusChanged { status: Status::Interrupted, reason: None, error: None };
    let then = then.unwrap_or(nobody);
    let differs = (head.status, head.stop_reason) != (then.status, then.reason);
    // A stopped run is as resumable as before, but its error was rewound.
    let weighs = |status| matches!(status, Status::Success | Status::Paused);
    let went_wrong = then.error.is_some() || head.error.is_some();
    let matters = weighs(then.status) || weighs(head.status) || went_wrong;
    Ok((differs && matters).then_some(then))
}

/// The last status that counts on a branch.
fn last_status(session: &Session, to: Seq, timeline: &Timeline) -> Result<Option<StatusChanged>> {
    /// How many events are read at a time.
    const PAGE: usize = 1_000;
    let mut span = Span { from: Seq::FIRST, to, order: Order::Newest, limit: PAGE };
    loop {
        let events = session.events(span)?.intact(session.id())?;
        let Some(first) = events.last().map(|event| event.seq) else { return Ok(None) };
        let counting = events.into_iter().filter(|event| timeline.contains(event.seq));
        let found = counting.into_iter().find_map(|event| match event.event {
            Event::Status(status) => Some(status),
            _ => None,
        });
        if found.is_some() || first <= Seq::FIRST {
            return Ok(found);
        }
        span.to = first.prev();
    }
}

fn safety_name(checkpoints: &[Recorded]) -> String {
    const NAME: &str = "before-rewind-";
    let number = |fact: &Recorded| match &fact.event {
        Event::Checkpoint(it) => it.name.strip_prefix(NAME)?.parse::<u64>().ok(),
        _ => None,
    };
    let last = checkpoints.iter().filter_map(number).max().unwrap_or(0);
    format!("{NAME}{}", last.saturating_add(1))
}

/// Checks that every content is available before any file is touched.
fn check(session: &Session, moves: &[FileChanged]) -> Result<()> {
    for change in moves {
        if let FileState::File { blob, .. } = &change.after {
            session.blob(blob)?;
        }
    }
    Ok(())
}

/// How many bytes of contents are held at once while they are stored.
const BATCH_BYTES: usize = 32 << 20;

/// Keeps the contents that are about to be overwritten.
fn keep(session: &Session, site: &Site<'_>, moves: &[FileChanged]) -> Result<()> {
    let mut batch: Vec<(Digest, Vec<u8>)> = Vec::new();
    let store = |batch: &mut Vec<(Digest, Vec<u8>)>| -> Result<()> {
        let bytes: Vec<(Digest, &[u8])> =
            batch.iter().map(|(digest, bytes)| (*digest, bytes.as_slice())).collect();
        session.keep_blobs(&bytes)?;
        batch.clear();
        Ok(())
    };
    for change in moves {
        if let FileState::File { blob, .. } = &change.before {
            let bytes = site.bytes(&change.path, blob);
            batch.push((*blob, bytes.map_err(|why| Error::NotMoved { why })?));
        }
        if batch.iter().map(|(_, bytes)| bytes.len()).sum::<usize>() > BATCH_BYTES {
            store(&mut batch)?;
        }
    }
    store(&mut batch)
}

/// Moves the remaining files. If a move fails, the others are moved back, which is recorded.
/// Returns the files that someone else changed meanwhile.
fn carry_out(
    session: &mut Session,
    site: &Site<'_>,
    began: Seq,
    moves: &[FileChanged],
    watch: Watch<'_>,
) -> Result<Vec<LeftFile>> {
    let mut left = Vec::new();
    for change in in_order(moves) {
        watch(Stage::Moving(&change.path));
        match step(session, site, change) {
            Ok(Step::Moved | Step::WasThere) => watch(Stage::Moved(&change.path)),
            Ok(Step::Foreign) => left.push(changed_meanwhile(&change.path)),
            Err(why) => {
                take_back(session, site, began, moves, &why)?;
                return Err(Error::NotMoved { why });
            }
        }
    }
    Ok(left)
}

fn take_back(
    session: &mut Session,
    site: &Site<'_>,
    began: Seq,
    moves: &[FileChanged],
    why: &str,
) -> Result<()> {
    let back: Vec<FileChanged> = moves.iter().map(reversed).collect();
    for change in in_order(&back) {
        step(session, site, change).map_err(|why| Error::HalfMoved { why })?;
    }
    let dropped = Rewinding::Dropped { of: began, why: why.to_owned() };
    // The files are back where they were, although the log says that they were moved.
    let events = [dropped.into()].into_iter().chain(back.into_iter().map(NewEvent::from));
    session.append_all(events.collect())?;
    Ok(())
}

/// The outcome of moving one file.
enum Step {
    Moved,
    WasThere,
    /// Someone else changed it, so it stays.
    Foreign,
}

fn step(session: &Session, site: &Site<'_>, change: &FileChanged) -> Result<Step, String> {
    if site.now(&change.path).is(&change.after) {
        return Ok(Step::WasThere);
    }
    // The file to remove is already gone, or is someone else's.
    if is_foreign(change, &[], site) {
        return Ok(Step::Foreign);
    }
    let contents = |digest: &Digest| session.blob(digest).map_err(|error| error.to_string());
    site.put(&change.path, &change.after, contents).map(|()| Step::Moved)
}

fn reversed(change: &FileChanged) -> FileChanged {
    let FileChanged { path, before, after, .. } = change.clone();
    FileChanged { path, before: after, after: before, renamed_from: None }
}

/// Removals first, deepest first: a file may replace a folder, and a folder a file.
fn in_order(moves: &[FileChanged]) -> Vec<&FileChanged> {
    let (mut gone, mut come): (Vec<_>, Vec<_>) =
        moves.iter().partition(|change| change.after == FileState::Absent);
    gone.sort_by(|a, b| b.path.cmp(&a.path));
    come.sort_by(|a, b| a.path.cmp(&b.path));
    gone.extend(come);
    gone
}
