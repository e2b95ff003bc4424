//! Facts about a session beyond its head: its flow and nodes, its project, its last resume.

use std::collections::BTreeMap;

use serde::Serialize;
use serde_json::Value;

use crate::error::Result;
use crate::log::{Head, Timeline};
use crate::model::{
    Created, Event, Kind, NodeState, Project, Recorded, Seq, SessionId, SpecHash, Status, Time,
};
use crate::sessions::Stepwell;
use crate::store::{Excerpt, Order, Span};

/// A session's flow and the state of its nodes.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct FlowState {
    /// Its name.
    pub name: String,
    /// Its pattern, such as `chain`.
    pub pattern: String,
    /// SHA-256 of the spec's raw bytes.
    pub spec_hash: SpecHash,
    /// The values that the user set for its variables.
    pub variables: BTreeMap<String, Value>,
    /// Its nodes, in the order in which they started, without those that a rewind removed.
    pub nodes: Vec<NodeInfo>,
}

/// The state of a flow's node.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct NodeInfo {
    /// Its key.
    pub key: String,
    /// Its state.
    pub state: NodeState,
    /// The error, if it failed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// Its result.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub answer: Option<String>,
}

impl Stepwell {
    /// A session's flow, if it runs one.
    pub fn flow_state(&self, head: &Head) -> Result<Option<FlowState>> {
        if head.flow.is_none() {
            return Ok(None);
        }
        let wanted = Excerpt { keyed: &NODE_KINDS, last: &[] };
        let found = self.store().excerpts(std::slice::from_ref(&head.id), &wanted)?.pop();
        Ok(found.transpose()?.and_then(|events| flow_state(head, &events)))
    }

    /// A session's nodes in their current state, without those that a rewind removed. Sessions of
    /// other systems may have nodes without a flow.
    pub fn nodes(&self, head: &Head) -> Result<Vec<NodeInfo>> {
        Ok(nodes(head, &self.store().keyed_events(&head.id, &NODE_KINDS)?))
    }

    /// The project that a session works on, if it is known.
    pub fn project(&self, id: &SessionId) -> Result<Option<Project>> {
        Ok(self.created(id)?.and_then(|created| created.project))
    }

    /// When a session was last resumed.
    pub fn resumed_at(&self, head: &Head) -> Result<Option<Time>> {
        if head.resumes == 0 {
            return Ok(None);
        }
        let mut span = Span { order: Order::Newest, limit: PAGE, ..Span::ALL };
        loop {
            let events = self.store().events(&head.id, span)?.events;
            let Some(oldest) = events.last().map(|event| event.seq) else { return Ok(None) };
            let runs = |event: &Event| matches!(event, Event::Status(change) if change.status == Status::Running);
            if let Some(resumed) = events.iter().find(|it| runs(&it.event)) {
                return Ok(Some(resumed.at));
            }
            if oldest == Seq::FIRST {
                return Ok(None);
            }
            span.to = oldest.prev();
        }
    }

    /// A session's first event.
    fn created(&self, id: &SessionId) -> Result<Option<Created>> {
        let first = Span { limit: 1, ..Span::ALL };
        let mut events = self.store().events(id, first)?.events;
        Ok(match events.pop().map(|event| event.event) {
            Some(Event::Created(created)) => Some(*created),
            _ => None,
        })
    }
}

/// Events per read.
const PAGE: usize = 500;

/// The kinds of events that nodes are folded from.
const NODE_KINDS: [Kind; 3] = [Kind::Node, Kind::Rewound, Kind::Undone];

/// A session's flow, from its excerpt.
fn flow_state(head: &Head, events: &[Recorded]) -> Option<FlowState> {
    let flow = head.flow.as_ref()?;
    let described = match events.first().map(|event| &event.event) {
        Some(Event::Created(created)) => created.flow.as_ref(),
        _ => None,
    };
    let variables = described.map(|flow| flow.variables.clone()).unwrap_or_default();
    let (name, pattern, nodes) = (flow.name.clone(), flow.pattern.clone(), nodes(head, events));
    Some(FlowState { name, pattern, spec_hash: flow.hash, variables, nodes })
}

/// The nodes, from all events of [these kinds](NODE_KINDS).
fn nodes(head: &Head, events: &[Recorded]) -> Vec<NodeInfo> {
    let timeline = Timeline::at(head.seq, events.iter());
    let mut nodes: Vec<NodeInfo> = Vec::new();
    for event in events.iter().filter(|event| timeline.contains(event.seq)) {
        let Event::Node(node) = &event.event else { continue };
        let (state, error, answer) = (node.state, node.error.clone(), node.answer());
        let info = NodeInfo { key: node.key.clone(), state, error, answer };
        match nodes.iter_mut().find(|known| known.key == info.key) {
            Some(known) => *known = info,
            None => nodes.push(info),
        }
    }
    nodes
}
