//! Moving a session back, files and all: wholly, or not at all.
//!
//! What is about to be moved is recorded first, with every content that is needed to do it
//! and to take it back. Then each file is replaced at once. A move that was cut off is
//! finished by [`settle`], which whoever takes the session up calls first.

use std::collections::HashSet;
use std::ops::RangeInclusive;

use stepwell::{
    Checkpoint, Digest, Event, FileChanged, FileState, Kind, NewEvent, Recorded, Restored,
    Rewinding, Rewound, Scope, Seq, Session, Timeline, Undone,
};

use super::history::History;
use super::plan::{Others, Plan, Remark};
use super::site::Site;
use crate::error::{Error, Result};

/// The kinds of events that tell of rewinds.
pub const MOVES: [Kind; 3] = [Kind::Rewinding, Kind::Rewound, Kind::Undone];

/// A rewind that is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Asked {
    /// The last event that counts.
    pub to: Seq,
    /// What is moved.
    pub scope: Scope,
    /// The rewind that this takes back.
    pub undoes: Option<Seq>,
    /// What becomes of files that someone else changed.
    pub others: Others,
}

/// Where a rewind is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stage<'a> {
    /// What is to be done is recorded.
    Recorded,
    /// A file is about to be moved.
    Moving(&'a str),
    /// A file was moved.
    Moved(&'a str),
    /// All files are moved; that they are is recorded next.
    Placed,
}

/// Told where a rewind is.
pub type Watch<'a> = &'a mut dyn FnMut(Stage<'_>);

/// What a rewind did.
#[derive(Clone, Debug, PartialEq)]
pub enum Done {
    /// All of it.
    Rewound {
        /// The event that says so.
        seq: Seq,
        /// The checkpoint before it.
        checkpoint: String,
        /// What was done to files.
        plan: Plan,
    },
    /// Nothing: files that someone else changed are in the way.
    Refused(Plan),
}

/// What became of a rewind that was cut off.
#[derive(Clone, Debug, PartialEq)]
pub struct Settled {
    /// Where it had begun.
    pub began: Seq,
    /// The event that ended it.
    pub seq: Seq,
    /// Files that someone else changed in between; they are left as they are.
    pub left: Vec<Remark>,
}

/// What a rewind would do to files.
#[must_use]
pub fn preview(history: &History, asked: &Asked, site: &Site<'_>) -> Plan {
    match asked.scope.moves_files() {
        true => Plan::of(history, asked.to, asked.others, |path| site.look(path)),
        false => Plan::default(),
    }
}

/// Moves a session back.
pub fn rewind(
    session: &mut Session,
    site: &Site<'_>,
    asked: &Asked,
    watch: Watch<'_>,
) -> Result<Done> {
    let plan = preview(&History::of(session.facts(&[Kind::File])?), asked, site);
    if !plan.conflicts.is_empty() {
        return Ok(Done::Refused(plan));
    }
    let checkpoint = safety_name(&session.facts(&[Kind::Checkpoint])?);
    let mut events: Vec<NewEvent> = vec![Checkpoint::automatic(checkpoint.clone()).into()];
    if plan.moves.is_empty() {
        events.push(end(asked).into());
        let seq = session.append_all(events)?.last;
        return Ok(Done::Rewound { seq, checkpoint, plan });
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
    let seq = session.append(end(asked))?;
    let mut plan = plan;
    plan.moves.retain(|change| left.iter().all(|left| left.path != change.path));
    plan.left.extend(left);
    Ok(Done::Rewound { seq, checkpoint, plan })
}

/// Finishes a rewind that was cut off, if there is one. A fork inherits none: the files were
/// its parent's to move.
pub fn settle(session: &mut Session, site: &Site<'_>, watch: Watch<'_>) -> Result<Option<Settled>> {
    let Some((began, asked, files)) = unfinished(&session.facts(&MOVES)?) else { return Ok(None) };
    if began < session.standing()?.own_from {
        return Ok(None);
    }
    let within = |seq: Seq| seq > began && seq.get() <= began.get() + files;
    let moves = session.facts(&[Kind::File])?.into_iter().filter(|fact| within(fact.seq));
    let moves = moves.filter_map(|fact| match fact.event {
        Event::File(change) => Some(change),
        _ => None,
    });
    let moves: Vec<FileChanged> = moves.collect();
    let left = carry_out(session, site, began, &moves, watch)?;
    watch(Stage::Placed);
    let seq = session.append(end(&asked))?;
    Ok(Some(Settled { began, seq, left }))
}

/// Was a rewind of this session cut off?
pub fn is_cut_off(session: &Session) -> Result<bool> {
    let facts = session.facts(&MOVES)?;
    let own_from = session.standing()?.own_from;
    Ok(unfinished(&facts).is_some_and(|(began, ..)| began >= own_from))
}

/// The file events that taking back a rewind may need, now or after others were taken back.
#[must_use]
pub fn needed(facts: &[Recorded]) -> Vec<RangeInclusive<Seq>> {
    let range = |fact: &Recorded| match fact.event {
        Event::Rewinding(Rewinding::Begun { files, .. }) => {
            Some(fact.seq..=Seq::new(fact.seq.get().saturating_add(files)))
        }
        _ => None,
    };
    facts.iter().filter_map(range).collect()
}

/// The newest rewind that still counts, and what taking it back asks for.
pub fn undoing(session_facts: &[Recorded], head: Seq, others: Others) -> Option<Asked> {
    let timeline = Timeline::at(head, session_facts.iter());
    let live = session_facts.iter().filter(|fact| timeline.contains(fact.seq));
    let taken_back: HashSet<Seq> = live
        .clone()
        .filter_map(|fact| match &fact.event {
            Event::Undone(Undone::Rewind { of, .. }) => Some(*of),
            _ => None,
        })
        .collect();
    let (of, scope) = live
        .filter_map(|fact| match &fact.event {
            Event::Rewound(rewound) => Some((fact.seq, rewound.scope)),
            _ => None,
        })
        .rfind(|(seq, _)| !taken_back.contains(seq))?;
    let to = begun_for(session_facts, of).map_or(of.prev(), Seq::prev);
    Some(Asked { to, scope, undoes: Some(of), others })
}

/// Where the move of files began that an event ended.
fn begun_for(facts: &[Recorded], end: Seq) -> Option<Seq> {
    let before = facts.iter().rev().filter(|fact| fact.seq < end);
    before
        .filter(|fact| !matches!(fact.event, Event::Undone(Undone::Compaction { .. })))
        .map(|fact| match &fact.event {
            Event::Rewinding(Rewinding::Begun { .. }) => Some(fact.seq),
            _ => None,
        })
        .next()
        .flatten()
}

/// A rewind that began and did not end.
fn unfinished(facts: &[Recorded]) -> Option<(Seq, Asked, u64)> {
    let last = facts
        .iter()
        .rev()
        .find(|fact| !matches!(fact.event, Event::Undone(Undone::Compaction { .. })))?;
    match last.event {
        Event::Rewinding(Rewinding::Begun { to, scope, undoes, files }) => {
            let others = Others::Respected;
            Some((last.seq, Asked { to, scope, undoes, others }, files))
        }
        _ => None,
    }
}

fn end(asked: &Asked) -> Event {
    let Asked { to, scope, .. } = *asked;
    // The store fills in what comes back.
    let restored = Restored::default();
    match asked.undoes {
        Some(of) => Undone::Rewind { of, scope, restored }.into(),
        None => Rewound { to, scope, restored }.into(),
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

/// Makes sure that every content is there before anything is touched.
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

/// Keeps what is about to be overwritten.
fn keep(session: &Session, site: &Site<'_>, moves: &[FileChanged]) -> Result<()> {
    let mut batch: Vec<Vec<u8>> = Vec::new();
    let store = |batch: &mut Vec<Vec<u8>>| -> Result<()> {
        let bytes: Vec<&[u8]> = batch.iter().map(Vec::as_slice).collect();
        session.put_blobs(&bytes)?;
        batch.clear();
        Ok(())
    };
    for change in moves {
        if let FileState::File { blob, .. } = &change.before {
            let bytes = site.bytes(&change.path, blob);
            batch.push(bytes.map_err(|why| Error::NotMoved { why })?);
        }
        if batch.iter().map(Vec::len).sum::<usize>() > BATCH_BYTES {
            store(&mut batch)?;
        }
    }
    store(&mut batch)
}

/// Moves the files that are not moved yet. If one cannot be moved, those that were are moved
/// back, which is recorded. The answer is what someone else changed meanwhile.
fn carry_out(
    session: &mut Session,
    site: &Site<'_>,
    began: Seq,
    moves: &[FileChanged],
    watch: Watch<'_>,
) -> Result<Vec<Remark>> {
    let mut left = Vec::new();
    for change in in_order(moves) {
        watch(Stage::Moving(&change.path));
        match step(session, site, change) {
            Ok(Step::Moved | Step::WasThere) => watch(Stage::Moved(&change.path)),
            Ok(Step::Foreign) => {
                let why = "someone else changed it meanwhile".to_owned();
                left.push(Remark { path: change.path.clone(), why });
            }
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
    // What was recorded as moved stands where it stood.
    let events = [dropped.into()].into_iter().chain(back.into_iter().map(NewEvent::from));
    session.append_all(events.collect())?;
    Ok(())
}

/// What became of one file.
enum Step {
    Moved,
    WasThere,
    /// Someone else changed it: it is left as it is.
    Foreign,
}

fn step(session: &Session, site: &Site<'_>, change: &FileChanged) -> Result<Step, String> {
    let now = site.look(&change.path);
    if now.is(&change.after) {
        return Ok(Step::WasThere);
    }
    if !now.is(&change.before) {
        return Ok(Step::Foreign);
    }
    let contents = |digest: &Digest| session.blob(digest).map_err(|error| error.to_string());
    site.put(&change.path, &change.after, contents).map(|()| Step::Moved)
}

fn reversed(change: &FileChanged) -> FileChanged {
    let FileChanged { path, before, after, .. } = change.clone();
    FileChanged { path, before: after, after: before, renamed_from: None }
}

/// What goes, deepest first, before what comes: a file may take a folder's place, and a
/// folder a file's.
fn in_order(moves: &[FileChanged]) -> Vec<&FileChanged> {
    let (mut gone, mut come): (Vec<_>, Vec<_>) =
        moves.iter().partition(|change| change.after == FileState::Absent);
    gone.sort_by(|a, b| b.path.cmp(&a.path));
    come.sort_by(|a, b| a.path.cmp(&b.path));
    gone.extend(come);
    gone
}
