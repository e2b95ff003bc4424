//! Questions that a session asks people: those that count where it stands.

use crate::{
    Event, Gate, GateAnswered, Kind, Recorded, Result, Seq, SessionId, Store, Time, Timeline,
    Undone,
};

/// A question, and what was answered.
#[derive(Clone, Debug, PartialEq)]
pub struct Asked {
    /// The question.
    pub gate: Gate,
    /// When it was asked.
    pub at: Time,
    /// The answer; absent, it waits.
    pub answer: Option<GateAnswered>,
    /// Where the answer stands.
    pub answered_at: Option<Seq>,
}

/// The questions of a session's live branch, in the order in which they were asked.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Gates {
    /// Those questions.
    pub asked: Vec<Asked>,
    /// The last move of the view, by a rewind or by taking one back.
    pub moved: Option<Seq>,
}

impl Gates {
    /// Those of a session as it stands now.
    pub fn of(store: &dyn Store, id: &SessionId) -> Result<Self> {
        let facts = store.keyed_events(id, &KINDS)?;
        Ok(Self::at(store.info(id)?.head.seq, &facts))
    }

    /// Those of a session as it stood at one event.
    pub fn once(store: &dyn Store, id: &SessionId, at: Seq) -> Result<Self> {
        Ok(Self::at(at, &store.keyed_events(id, &KINDS)?))
    }

    fn at(at: Seq, facts: &[Recorded]) -> Self {
        let timeline = Timeline::at(at, facts.iter());
        let mut found = Self::default();
        for fact in facts.iter().filter(|fact| timeline.contains(fact.seq)) {
            match &fact.event {
                Event::Gate(gate) => {
                    let (gate, at) = (gate.clone(), fact.at);
                    found.asked.push(Asked { gate, at, answer: None, answered_at: None });
                }
                Event::GateAnswered(answer) => {
                    // One that was asked again has the same name.
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

    /// Those that wait for an answer.
    pub fn open(&self) -> impl DoubleEndedIterator<Item = &Asked> {
        self.asked.iter().filter(|asked| asked.answer.is_none())
    }
}

/// The kinds of events that tell of questions, and which of them count.
const KINDS: [Kind; 4] = [Kind::Gate, Kind::GateAnswered, Kind::Rewound, Kind::Undone];

fn moves_view(event: &Event) -> bool {
    match event {
        Event::Rewound(rewound) => rewound.scope.moves_view(),
        Event::Undone(Undone::Rewind { scope, .. }) => scope.moves_view(),
        _ => false,
    }
}
