//! What a flow tells as it goes, and asks.

use stepwell::{Gate, NodeKey, NodeState, Recorded, Spent};
use stepwell_agent::run::Happening;

/// Sees what happens in a flow, and may be asked.
pub trait Observer: Send {
    /// Something happened. What needs to be durable before anyone sees it already is.
    fn on_event(&mut self, event: FlowEvent<'_>);

    /// Is there somebody who can be asked?
    fn can_ask(&self) -> bool;

    /// Asks a person a question that the flow waits with. Nothing, if they do not answer: the
    /// flow then pauses. `is_over` says when the answer is no longer wanted.
    fn ask(&mut self, gate: &Gate, is_over: &dyn Fn() -> bool) -> Option<String> {
        let _ = (gate, is_over);
        None
    }

    /// Who answers when it is asked, as it is recorded.
    fn who(&self) -> String {
        "the user".to_owned()
    }
}

/// What happens in a flow.
#[derive(Debug)]
pub enum FlowEvent<'a> {
    /// A node stands differently.
    Node(NodeStatus<'a>),
    /// Something happened in the conversation of a node's agent.
    Within(&'a NodeKey, &'a Happening<'a>),
    /// An event was recorded.
    Recorded(&'a Recorded),
    /// Something that the user should know.
    Notice(&'a str),
}

/// How a node stands.
#[derive(Clone, Copy, Debug)]
pub struct NodeStatus<'a> {
    /// Which.
    pub key: &'a NodeKey,
    /// The agent that works on it; nobody, if a person is asked.
    pub agent: Option<&'a str>,
    /// Who answered, if a person was asked.
    pub who: Option<&'a str>,
    /// How it stands.
    pub state: NodeState,
    /// What went wrong.
    pub error: Option<&'a str>,
    /// What the flow spent so far.
    pub spent: &'a Spent,
}
