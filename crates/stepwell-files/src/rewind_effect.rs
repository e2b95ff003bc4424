//! What a move does to the conversation and the state of work: what leaves the view, what comes
//! back, and what was done since the move that it takes back.

use std::collections::BTreeSet;

use serde::Serialize;
use stepwell::{Event, Order, Recorded, Role, Seq, SessionId, Span, Store, Timeline, Undone};

use crate::error::Result;
use crate::history::History;
use crate::plan::Plan;
use crate::rewind_history::{Asked, recorded_by};

/// Part of what a session did, of all that a move of the view takes back.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Work {
    /// Answers of a model, each with the calls that it asked for.
    pub steps: usize,
    /// All messages.
    pub messages: usize,
    /// Changes of planned tasks.
    #[serde(skip_serializing_if = "is_zero")]
    pub tasks: usize,
    /// Questions and answers of a discussion.
    #[serde(skip_serializing_if = "is_zero")]
    pub questions: usize,
    /// Moves to another phase.
    #[serde(skip_serializing_if = "is_zero")]
    pub phases: usize,
    /// Changes of the goal.
    #[serde(skip_serializing_if = "is_zero")]
    pub goals: usize,
    /// Compactions, and compactions that were undone.
    #[serde(skip_serializing_if = "is_zero")]
    pub compactions: usize,
    /// Answers of a person to what a run waited with.
    #[serde(skip_serializing_if = "is_zero")]
    pub answers: usize,
}

impl Work {
    /// Is it nothing?
    #[must_use]
    pub fn is_none(self) -> bool {
        self == Self::default()
    }

    /// What is left of it without a part of it.
    #[must_use]
    pub const fn without(self, part: Self) -> Self {
        Self {
            steps: self.steps - part.steps,
            messages: self.messages - part.messages,
            tasks: self.tasks - part.tasks,
            questions: self.questions - part.questions,
            phases: self.phases - part.phases,
            goals: self.goals - part.goals,
            compactions: self.compactions - part.compactions,
            answers: self.answers - part.answers,
        }
    }

    /// Counts an event, if a move of the view takes it back.
    fn count(&mut self, event: &Event) {
        match event {
            Event::Message(message) => {
                self.messages += 1;
                self.steps += usize::from(message.role == Role::Assistant);
            }
            Event::Task(_) => self.tasks += 1,
            Event::Question(_) => self.questions += 1,
            Event::Phase(_) => self.phases += 1,
            Event::Edited(edited) if !edited.goal.is_keep() => self.goals += 1,
            Event::Compacted(_) | Event::Undone(Undone::Compaction { .. }) => self.compactions += 1,
            Event::GateAnswered(_) => self.answers += 1,
            _ => {}
        }
    }
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde asks so")]
const fn is_zero(count: &usize) -> bool {
    *count == 0
}

/// What a move does to the conversation.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RewindEffect {
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

impl RewindEffect {
    /// What a move would do to the view, given the moves before it.
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
                        shift.leaves.count(&event.event);
                        if asked.undoes.is_some_and(|of| event.seq > of) {
                            shift.later.count(&event.event);
                        }
                    }
                    (false, true) => shift.returns.count(&event.event),
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
