//! The effect of a rewind on the conversation and the plan: what leaves the view, what comes back,
//! and what was done since the rewind that it undoes.

use std::collections::BTreeSet;

use stepwell::log::Timeline;
use stepwell::model::{Role, Undone};
use stepwell::store::{Order, Span};
use stepwell::{Event, Recorded, Seq, SessionId, Store};
use stepwell_wire::RewoundWork;

use crate::error::Result;
use crate::history::History;
use crate::plan::Plan;
use crate::rewind_history::{Asked, recorded_by};

/// The effect of a rewind on the conversation.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RewindEffect {
    /// Work that leaves the view.
    pub leaves: RewoundWork,
    /// Work that comes back into the view.
    pub returns: RewoundWork,
    /// Work since the rewind that is being undone, which is set aside.
    pub later: RewoundWork,
    /// Files changed since then, which move with it.
    pub later_files: Vec<String>,
}

/// How many events are read at a time.
const PAGE: usize = 1_000;

impl RewindEffect {
    /// The effect on the view, given the earlier rewinds.
    pub(crate) fn of(
        store: &dyn Store,
        id: &SessionId,
        asked: &Asked,
        moves: &[Recorded],
    ) -> Result<Self> {
        let mut shift = Self::default();
        if !asked.scope.moves_view() {
            return Ok(shift);
        }
        let head = store.info(id)?.head.seq;
        let (now, then) =
            (Timeline::at(head, moves.iter()), Timeline::at(asked.follows(), moves.iter()));
        let mut from = now.shared_with(&then).next();
        while from <= head {
            let span = Span { from, to: head, order: Order::Oldest, limit: PAGE };
            let events = store.events(id, span)?.intact(id)?;
            let Some(last) = events.last().map(|event| event.seq) else { break };
            for event in events {
                match (now.contains(event.seq), then.contains(event.seq)) {
                    (true, false) => {
                        count(&mut shift.leaves, &event.event);
                        if asked.undoes.is_some_and(|of| event.seq > of) {
                            count(&mut shift.later, &event.event);
                        }
                    }
                    (false, true) => count(&mut shift.returns, &event.event),
                    _ => {}
                }
            }
            from = last.next();
        }
        Ok(shift)
    }

    /// Would undoing a rewind set aside later work?
    #[must_use]
    pub fn sets_work_aside(&self) -> bool {
        !self.later.is_none() || !self.later_files.is_empty()
    }
}

/// Counts an event if rewinds affect it.
fn count(work: &mut RewoundWork, event: &Event) {
    match event {
        Event::Message(message) => {
            work.messages += 1;
            work.steps += usize::from(message.role == Role::Assistant);
        }
        Event::Task(_) => work.tasks += 1,
        Event::Question(_) => work.questions += 1,
        Event::Phase(_) => work.phases += 1,
        Event::Edited(edited) if !edited.goal.is_keep() => work.goals += 1,
        Event::Compacted(_) | Event::Undone(Undone::Compaction { .. }) => work.compactions += 1,
        Event::GateAnswered(_) => work.answers += 1,
        _ => {}
    }
}

/// The files changed since the rewind that is being undone, without those that other rewinds
/// changed.
pub(crate) fn later_files(
    asked: &Asked,
    moves: &[Recorded],
    history: &History,
    plan: &Plan,
) -> Vec<String> {
    let Some(of) = asked.undoes else { return Vec::new() };
    let by_moves = recorded_by(moves);
    let by_work = |seq: Seq| seq > of && !by_moves.iter().any(|range| range.contains(&seq));
    let moved = |path: &String| plan.moves.iter().any(|change| change.path == *path);
    let later = history.entries().iter().filter(|entry| by_work(entry.seq));
    let paths: BTreeSet<String> = later.map(|entry| entry.change.path.clone()).collect();
    paths.into_iter().filter(moved).collect()
}
