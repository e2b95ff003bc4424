//! Steps that systems do not record: one is complete when a message of the model calls
//! nothing, or all of its calls have their results.

use std::collections::HashSet;

use stepwell::model::{Role, StatusChanged, Step};
use stepwell::{Lane, Message, Status, StopReason};

/// Finds where steps end in a conversation that is told message by message.
#[derive(Debug, Default)]
pub struct Steps {
    done: u64,
    /// Calls of the last message that have no result yet.
    open: HashSet<String>,
    ended: Ended,
}

/// How a conversation ends.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Ended {
    #[default]
    Empty,
    /// With the model's word.
    Answered,
    /// With a question, or with calls that have no result.
    Waiting,
}

impl Steps {
    /// A message was told. The answer is the step that it completes.
    pub fn said(&mut self, message: &Message) -> Option<Step> {
        match message.role {
            Role::Assistant => {
                self.open = message.calls().map(|call| call.id.clone()).collect();
                self.ended = if self.open.is_empty() { Ended::Answered } else { Ended::Waiting };
                self.open.is_empty().then(|| self.step())
            }
            Role::Tool => {
                let waited = !self.open.is_empty();
                message.results().for_each(|result| {
                    self.open.remove(&result.call_id);
                });
                self.ended = Ended::Waiting;
                (waited && self.open.is_empty()).then(|| self.step())
            }
            Role::User => {
                self.ended = Ended::Waiting;
                None
            }
            Role::System => None,
        }
    }

    /// The conversation goes on from an earlier point.
    pub fn went_back(&mut self) {
        self.open.clear();
        self.ended = Ended::Waiting;
    }

    /// How a run stands whose system does not say: done if the model had the last word.
    #[must_use]
    pub fn status(&self) -> StatusChanged {
        let (status, reason) = match self.ended {
            Ended::Answered => (Status::Success, Some(StopReason::LlmDone)),
            Ended::Empty | Ended::Waiting => (Status::Interrupted, None),
        };
        StatusChanged { status, reason, error: None }
    }

    fn step(&mut self) -> Step {
        self.done += 1;
        Step { lane: Lane::main(), n: self.done }
    }
}
