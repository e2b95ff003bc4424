//! The memo: the recorded state of a flow's nodes and gates. Pure.
//!
//! Execution asks one question before it does anything: is this node's result recorded? So
//! this is the flow's whole state.

use std::collections::HashMap;

use serde_json::Value;
use stepwell::model::{Gate, GateAnswered, NodeKey, NodeState};
use stepwell::{Event, Recorded, Seq};

/// The recorded state of a flow's nodes and gates.
#[derive(Debug, Default)]
pub struct Memo {
    nodes: HashMap<String, Noted>,
    gates: HashMap<String, Asked>,
    /// Gates in the order in which they were asked.
    order: Vec<String>,
}

/// The recorded state of a node.
#[derive(Clone, Debug, PartialEq)]
pub struct Noted {
    /// Started, done, or failed.
    pub state: NodeState,
    /// Its result, if it is done.
    pub output: Option<Value>,
    /// The error, if it failed.
    pub error: Option<String>,
    /// The event that first started it.
    pub first_start: Seq,
    /// The event that last started it: a failed node starts again when it is retried.
    pub last_start: Seq,
}

/// A gate, and its answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Asked {
    /// The question.
    pub gate: Gate,
    /// Where it was last asked.
    pub seq: Seq,
    /// Its answer, if there is one.
    pub answer: Option<GateAnswered>,
}

/// Whether an answer approves what was asked.
#[must_use]
pub(crate) fn is_approval(answer: &str) -> bool {
    let word = answer.trim().trim_end_matches(['.', '!']).to_lowercase();
    matches!(
        word.as_str(),
        "approve" | "approved" | "accept" | "accepted" | "yes" | "y" | "ok" | "okay"
    )
}

impl Memo {
    /// Applies an event. The caller leaves out events that were rewound.
    pub fn apply(&mut self, recorded: &Recorded) {
        let seq = recorded.seq;
        match &recorded.event {
            Event::Node(node) => {
                let noted = self.nodes.entry(node.key.clone()).or_insert_with(|| Noted {
                    state: node.state,
                    output: None,
                    error: None,
                    first_start: seq,
                    last_start: seq,
                });
                // A result never changes.
                if noted.state == NodeState::Done {
                    noted.output = noted.output.take().or_else(|| node.output.clone());
                    return;
                }
                // Discarded because the spec now describes it differently: it starts over.
                if node.state == NodeState::Skipped {
                    self.nodes.remove(&node.key);
                    return;
                }
                if node.state == NodeState::Started {
                    noted.last_start = seq;
                }
                noted.state = node.state;
                noted.output.clone_from(&node.output);
                noted.error.clone_from(&node.error);
            }
            Event::Gate(gate) => {
                let asked = Asked { gate: gate.clone(), seq, answer: None };
                if self.gates.insert(gate.id.clone(), asked).is_none() {
                    self.order.push(gate.id.clone());
                }
            }
            Event::GateAnswered(answer) => {
                if let Some(asked) = self.gates.get_mut(&answer.id) {
                    asked.answer.get_or_insert_with(|| answer.clone());
                }
            }
            _ => {}
        }
    }

    /// The recorded state of a node.
    #[must_use]
    pub fn node(&self, key: &NodeKey) -> Option<&Noted> {
        self.nodes.get(&key.to_string())
    }

    /// The recorded result of a node.
    #[must_use]
    pub fn result(&self, key: &NodeKey) -> Option<&Value> {
        let noted = self.node(key).filter(|noted| noted.state == NodeState::Done)?;
        noted.output.as_ref()
    }

    /// Every recorded node, by the text of its key.
    pub fn nodes(&self) -> impl Iterator<Item = (&str, &Noted)> {
        self.nodes.iter().map(|(key, noted)| (key.as_str(), noted))
    }

    /// The question with this id, and its answer.
    #[must_use]
    pub fn gate(&self, id: &str) -> Option<&Asked> {
        self.gates.get(id)
    }

    /// The questions without an answer, in the order in which they were asked.
    #[must_use]
    pub fn open(&self) -> Vec<&Gate> {
        let asked = self.order.iter().filter_map(|id| self.gates.get(id));
        asked.filter(|asked| asked.answer.is_none()).map(|asked| &asked.gate).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use stepwell::model::{Node, Time};

    fn at(seq: u64, event: impl Into<Event>) -> Recorded {
        Recorded { seq: Seq::new(seq), at: Time::EPOCH, id: None, event: event.into() }
    }

    fn node(state: NodeState, output: Option<Value>) -> Node {
        Node { key: "step/0".to_owned(), state, output, usage: None, error: None }
    }

    #[test]
    fn a_node_has_a_result_once_it_is_done_and_it_never_changes() {
        let (mut memo, key) = (Memo::default(), NodeKey::Step(0));
        memo.apply(&at(1, node(NodeState::Started, None)));
        assert_eq!(memo.result(&key), None);
        memo.apply(&at(2, node(NodeState::Failed, None)));
        memo.apply(&at(3, node(NodeState::Started, None)));
        let noted = memo.node(&key).unwrap();
        assert_eq!((noted.first_start, noted.last_start), (Seq::new(1), Seq::new(3)));
        memo.apply(&at(4, node(NodeState::Done, Some(1.into()))));
        memo.apply(&at(5, node(NodeState::Done, Some(2.into()))));
        memo.apply(&at(6, node(NodeState::Started, None)));
        assert_eq!(memo.result(&key), Some(&1.into()));
    }

    #[test]
    fn only_the_first_answer_to_a_gate_counts() {
        let mut memo = Memo::default();
        let gate = |id: &str| Gate::new(id, "?");
        let answer =
            |text: &str| GateAnswered::new("a".to_owned(), text.to_owned(), "me".to_owned());
        memo.apply(&at(1, gate("a")));
        memo.apply(&at(2, gate("b")));
        memo.apply(&at(3, answer("yes")));
        memo.apply(&at(4, answer("no")));
        assert_eq!(memo.gate("a").unwrap().answer.as_ref().unwrap().answer.text(), "yes");
        assert_eq!(memo.open().iter().map(|gate| gate.id.as_str()).collect::<Vec<_>>(), ["b"]);
    }
}
