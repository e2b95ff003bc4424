//! What a move does to the conversation: what leaves the view, what comes back, and what was
//! done since the move that it takes back.

use std::collections::BTreeSet;

use serde::Serialize;
use stepwell::{Event, Order, Recorded, Role, Seq, SessionId, Span, Store, Timeline};

use super::history::History;
use super::moves::{Asked, recorded_by};
use super::plan::Plan;
use crate::error::Result;

/// Part of a conversation.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Work {
    /// Answers of a model, each with the calls that it asked for.
    pub steps: usize,
    /// All messages.
    pub messages: usize,
}

impl Work {
    /// Is it nothing?
    #[must_use]
    pub const fn is_none(self) -> bool {
        self.messages == 0
    }

    fn count(&mut self, role: Role) {
        self.messages += 1;
        self.steps += usize::from(role == Role::Assistant);
    }
}

/// What a move does to the conversation.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Shift {
    /// What is no longer shown.
    pub leaves: Work,
    /// What is shown again.
    pub returns: Work,
    /// What was done since the move that is taken back, and is set aside.
    pub later: Work,
    /// The files that were changed since then, and are moved with it.
    pub later_files: Vec<String>,
}

/// How many events are read at a time.
const PAGE: usize = 1_000;

impl Shift {
    /// What a move would do, given the moves before it and what it would do to files.
    pub(super) fn of(
        store: &dyn Store,
        id: &SessionId,
        asked: &Asked,
        (moves, history, plan): (&[Recorded], &History, &Plan),
    ) -> Result<Self> {
        let mut shift =
            Self { later_files: later_files(asked, moves, history, plan), ..Self::default() };
        if !asked.scope.moves_view() {
            return Ok(shift);
        }
        let head = store.standing(id)?.head.seq;
        let (now, then) =
            (Timeline::at(head, moves.iter()), Timeline::at(asked.follows(), moves.iter()));
        let mut from = now.shared_with(&then).next();
        while from <= head {
            let span = Span { from, to: head, order: Order::Oldest, limit: PAGE };
            let events = store.events(id, span)?.intact(id)?;
            let Some(last) = events.last().map(|event| event.seq) else { break };
            for event in events {
                let Event::Message(message) = event.event else { continue };
                match (now.contains(event.seq), then.contains(event.seq)) {
                    (true, false) => {
                        shift.leaves.count(message.role);
                        if asked.undoes.is_some_and(|of| event.seq > of) {
                            shift.later.count(message.role);
                        }
                    }
                    (false, true) => shift.returns.count(message.role),
                    _ => {}
                }
            }
            from = last.next();
        }
        Ok(shift)
    }

    /// Would taking a move back set something aside that was done since?
    #[must_use]
    pub fn sets_work_aside(&self) -> bool {
        !self.later.is_none() || !self.later_files.is_empty()
    }
}

/// The files that were changed since the move that is taken back, but by other moves, and that
/// go back with it.
fn later_files(asked: &Asked, moves: &[Recorded], history: &History, plan: &Plan) -> Vec<String> {
    let Some(of) = asked.undoes else { return Vec::new() };
    let by_moves = recorded_by(moves);
    let by_work = |seq: Seq| seq > of && !by_moves.iter().any(|range| range.contains(&seq));
    let moved = |path: &String| plan.moves.iter().any(|change| change.path == *path);
    let later = history.entries().iter().filter(|entry| by_work(entry.seq));
    let paths: BTreeSet<String> = later.map(|entry| entry.change.path.clone()).collect();
    paths.into_iter().filter(moved).collect()
}
