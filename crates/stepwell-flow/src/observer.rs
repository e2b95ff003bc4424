//! What a running flow reports, and how it asks questions.

use stepwell::{Gate, NodeKey, NodeState, Recorded, Spent};
use stepwell_agent::run::Happening;

/// Receives a flow's events, and may answer its questions.
pub trait Observer: Send {
    /// Called for every event. What must be durable before anyone sees it already is.
    fn on_event(&mut self, event: FlowEvent<'_>);

    /// Whether [`ask`](Self::ask) can reach a person.
    fn can_ask(&self) -> bool;

    /// Asks a person the question that the flow waits for. `None` means no answer: the flow
    /// then pauses. `is_over` turns true when an answer is no longer needed.
    fn ask(&mut self, gate: &Gate, is_over: &dyn Fn() -> bool) -> Option<String> {
        let _ = (gate, is_over);
        None
    }

    /// The name that is recorded with answers from [`ask`](Self::ask).
    fn who(&self) -> String {
        "the user".to_owned()
    }
}

/// Something that happened in a flow.
#[derive(Debug)]
pub enum FlowEvent<'a> {
    /// A node's state changed.
    Node(NodeStatus<'a>),
    /// Something happened in the conversation of a node's agent.
    Within(&'a NodeKey, &'a Happening<'a>),
    /// An event was recorded.
    Recorded(&'a Recorded),
    /// A message for the user.
    Notice(&'a str),
}

/// A node's state.
#[derive(Clone, Copy, Debug)]
pub struct NodeStatus<'a> {
    /// The node.
    pub key: &'a NodeKey,
    /// The agent that works on it; `None` for a question to a person.
    pub agent: Option<&'a str>,
    /// Who answered, for a question to a person.
    pub who: Option<&'a str>,
    /// Started, done, or failed.
    pub state: NodeState,
    /// The error, if it failed.
    pub error: Option<&'a str>,
    /// What the flow has spent so far.
    pub spent: &'a Spent,
}
