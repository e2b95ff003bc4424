//! Questions of a session to people, on its live branch.

use crate::error::{Error, Result};
use crate::log::Timeline;
use crate::model::{
    Event, Gate, GateAnswered, Kind, Origin, Recorded, Seq, SessionId, Time, Undone,
};
use crate::store::{Facts, Span, Store};

/// A question, and its answer.
#[derive(Clone, Debug, PartialEq)]
pub struct Asked {
    /// The question.
    pub gate: Gate,
    /// The question's seq. An answer that refers to it is refused if a rewind has removed it.
    pub seq: Seq,
    /// When it was asked.
    pub at: Time,
    /// The answer; absent while the question is open.
    pub answer: Option<GateAnswered>,
    /// The answer's seq.
    pub answered_at: Option<Seq>,
}

/// Who asks a question.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Asker {
    /// The agent, or the subagent if one asks.
    pub agent: String,
    /// What it works on: the session's label, or else its task.
    pub task: String,
    /// The parent of the subagent's session.
    pub parent: Option<SessionId>,
}

impl Asker {
    /// Who asks a question of a session. For a purged subagent, all fields are empty. A flow has no
    /// agent of its own, so the lane that made the call is named.
    pub fn of(store: &dyn Store, session: &SessionId, asked: &Asked) -> Result<Self> {
        let gate = &asked.gate;
        let head = match store.info(gate.asker.as_ref().unwrap_or(session)) {
            Ok(info) => info.head,
            Err(Error::NoSession(_)) => return Ok(Self::default()),
            Err(error) => return Err(error),
        };
        let parent = match head.origin {
            Origin::Subagent { parent } => Some(parent),
            _ => None,
        };
        let agent = match head.flow.is_some() && gate.asker.is_none() && gate.call.is_some() {
            true => calling_lane(store, session, asked)?.unwrap_or(head.agent),
            false => head.agent,
        };
        let task = head.label.unwrap_or(head.task);
        Ok(Self { agent, task, parent })
    }
}

/// The lane of a flow that made the call in question. It is searched in the events just before the
/// question.
fn calling_lane(store: &dyn Store, id: &SessionId, asked: &Asked) -> Result<Option<String>> {
    let from = Seq::new(asked.seq.get().saturating_sub(REACH).max(1));
    let span = Span { from, to: asked.seq, ..Span::ALL };
    let calls = |it: &Recorded| match &it.event {
        Event::Message(said) if said.calls().any(|call| call.id == asked.gate.id) => {
            Some(said.lane.to_string())
        }
        _ => None,
    };
    Ok(store.events(id, span)?.events.iter().rev().find_map(calls))
}

/// The questions of a session's live branch, in order.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Gates {
    /// The questions.
    pub asked: Vec<Asked>,
    /// The last event that moved the view: a rewind, or the undoing of one.
    pub moved: Option<Seq>,
}

impl Gates {
    /// A session's questions now.
    pub fn of(store: &dyn Store, id: &SessionId) -> Result<Self> {
        let facts = store.keyed_events(id, &KINDS)?;
        Ok(Self::at(store.info(id)?.head.seq, &facts))
    }

    /// A session's open questions. They are searched from the end of the log, where they nearly
    /// always are, so that earlier questions cost nothing.
    pub fn waiting(store: &dyn Store, id: &SessionId) -> Result<Self> {
        let head = store.info(id)?.head;
        // A fork's count of open gates excludes those before it.
        if matches!(head.origin, Origin::Fork { .. }) {
            let mut all = Self::of(store, id)?;
            all.asked.retain(|asked| asked.answer.is_none());
            return Ok(all);
        }
        if head.open_gates == 0 {
            return Ok(Self::default());
        }
        let moves = store.keyed(id, Facts::of(&MOVES))?;
        let mut reach = REACH;
        loop {
            let from = Seq::new(head.seq.get().saturating_sub(reach)).next();
            let recent = Facts { from, ..Facts::of(&QUESTIONS) };
            let mut found = Self::at(head.seq, &in_order(store.keyed(id, recent)?, &moves));
            found.asked.retain(|asked| asked.answer.is_none());
            let count = u64::try_from(found.asked.len()).unwrap_or(u64::MAX);
            if count >= head.open_gates || from <= Seq::FIRST {
                return Ok(found);
            }
            reach = reach.saturating_mul(REACH);
        }
    }

    /// The questions with one id, found by key, so that the number of others does not matter.
    pub fn named(store: &dyn Store, id: &SessionId, name: &str) -> Result<Self> {
        let facts = store.keyed(id, Facts::under(&QUESTIONS, name))?;
        let moves = store.keyed(id, Facts::of(&MOVES))?;
        Ok(Self::at(store.info(id)?.head.seq, &in_order(facts, &moves)))
    }

    /// A session's questions at an earlier event.
    pub fn once(store: &dyn Store, id: &SessionId, at: Seq) -> Result<Self> {
        Ok(Self::at(at, &store.keyed_events(id, &KINDS)?))
    }

    fn at(at: Seq, facts: &[Recorded]) -> Self {
        let timeline = Timeline::at(at, facts.iter());
        let mut found = Self::default();
        for fact in facts.iter().filter(|fact| timeline.contains(fact.seq)) {
            match &fact.event {
                Event::Gate(gate) => {
                    let (gate, seq, at) = (gate.clone(), fact.seq, fact.at);
                    found.asked.push(Asked { gate, seq, at, answer: None, answered_at: None });
                }
                Event::GateAnswered(answer) => {
                    // A repeated question has the same id.
                    let mut asked = found.asked.iter_mut().rev();
                    let its = asked.find(|asked| asked.gate.id == answer.id);
                    if let Some(asked) = its {
                        asked.answer = Some(answer.clone());
                        asked.answered_at = Some(fact.seq);
                    }
                }
                event if moves_view(event) => found.moved = Some(fact.seq),
                _ => {}
            }
        }
        found
    }

    /// The open questions.
    pub fn open(&self) -> impl DoubleEndedIterator<Item = &Asked> {
        self.asked.iter().filter(|asked| asked.answer.is_none())
    }
}

/// The kinds of events that questions, and which of them count, are read from.
const KINDS: [Kind; 4] = [Kind::Gate, Kind::GateAnswered, Kind::Rewound, Kind::Undone];
const QUESTIONS: [Kind; 2] = [Kind::Gate, Kind::GateAnswered];
const MOVES: [Kind; 2] = [Kind::Rewound, Kind::Undone];

/// How many events at the end of a log are searched first, and the factor by which the range then
/// grows.
const REACH: u64 = 64;

fn in_order(mut facts: Vec<Recorded>, moves: &[Recorded]) -> Vec<Recorded> {
    facts.extend(moves.iter().cloned());
    facts.sort_by_key(|fact| fact.seq);
    facts
}

fn moves_view(event: &Event) -> bool {
    match event {
        Event::Rewound(rewound) => rewound.scope.moves_view(),
        Event::Undone(Undone::Rewind { scope, .. }) => scope.moves_view(),
        _ => false,
    }
}
