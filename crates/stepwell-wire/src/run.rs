//! The results of runs, and their open questions.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::Serialize;
use stepwell::model::{AskedCall, Choice, Gate, Spent, Time, Usage};
use stepwell::work::{Asked, Asker};
use stepwell::{Seq, SessionId, Status, StopReason};

use crate::Dollars;

/// The result of an agent's run.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct RunReport {
    /// The session; absent, if it was not saved.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub session_id: Option<SessionId>,
    /// False, if it was not saved; absent otherwise.
    #[serde(skip_serializing_if = "Clone::clone")]
    pub saved: bool,
    /// Its status.
    pub status: Status,
    /// Why it stopped; null, if unknown.
    pub stop_reason: Option<StopReason>,
    /// The model's last text.
    pub output: String,
    /// The error.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// Steps of the whole session.
    pub steps: u64,
    /// Tools that this run used, each once.
    pub tools_used: Vec<String>,
    /// Files that this run changed, each once.
    pub files_modified: Vec<String>,
    /// How long this run took.
    pub duration_seconds: f64,
    /// The model.
    pub model: String,
    /// What the whole session used, with its subagents.
    pub costs: Costs,
    /// The last event before this run resumed the session; null, if this run began it.
    pub resumed_from: Option<u64>,
}

/// What a whole session used, over all of its runs and subagents.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct Costs {
    /// Input tokens.
    pub total_input_tokens: u64,
    /// Output tokens.
    pub total_output_tokens: u64,
    /// The part of the input tokens that was read from a cache.
    pub total_cached_tokens: u64,
    /// Input and output tokens.
    pub total_tokens: u64,
    /// The cost; null, if the price of a call is unknown.
    pub total_cost_usd: Option<Dollars>,
    /// The recorded part of the cost; absent, if all of it is recorded.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub recorded_cost_usd: Option<Dollars>,
    /// The estimated cost of calls without a recorded cost. It is in no sum.
    #[serde(rename = "estimated_cost_usd", skip_serializing_if = "Option::is_none")]
    pub estimate: Option<Dollars>,
    /// The cost of each lane and each subagent; null, if a price is unknown.
    pub by_source: BTreeMap<String, Option<Dollars>>,
}

impl Costs {
    /// The spending, in total and by source.
    #[must_use]
    pub fn new(spent: &Spent, by_source: impl IntoIterator<Item = (String, Spent)>) -> Self {
        let price = |spent: &Spent| (spent.unpriced == 0).then_some(Dollars(spent.cost));
        let by_source = by_source.into_iter().map(|(source, spent)| (source, price(&spent)));
        Self {
            total_input_tokens: spent.usage.input,
            total_output_tokens: spent.usage.output,
            total_cached_tokens: spent.usage.cached,
            total_tokens: spent.usage.total(),
            total_cost_usd: price(spent),
            recorded_cost_usd: (spent.unpriced > 0).then_some(Dollars(spent.cost)),
            estimate: None,
            by_source: by_source.collect(),
        }
    }
}

/// The result of a flow's run.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct FlowReport {
    /// The session; absent, if it was not saved.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub session_id: Option<SessionId>,
    /// False, if it was not saved; absent otherwise.
    #[serde(skip_serializing_if = "Clone::clone")]
    pub saved: bool,
    /// The flow's name.
    pub flow: String,
    /// The name of its pattern.
    pub pattern: String,
    /// Its status.
    pub status: Status,
    /// Why it stopped; null, if it is done.
    pub stop_reason: Option<StopReason>,
    /// Its output.
    pub output: serde_json::Value,
    /// The error.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// Questions that wait for a person.
    pub gates: Vec<WaitingGate>,
    /// Files that it wrote.
    pub artifacts: Vec<String>,
    /// Steps of the whole session.
    pub steps: u64,
    /// How long this run took.
    pub duration_seconds: f64,
    /// The model.
    pub model: String,
    /// What the whole session used.
    pub costs: Costs,
    /// Tokens of each agent.
    pub tokens_by_agent: BTreeMap<String, TokenCount>,
    /// The last event before this run resumed the session; absent, if this run began it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub resumed_from: Option<u64>,
}

/// Tokens.
#[derive(Clone, Copy, Debug, Serialize, JsonSchema)]
pub struct TokenCount {
    /// Input.
    pub input: u64,
    /// Output.
    pub output: u64,
    /// The part of the input that was read from a cache.
    pub cached: u64,
    /// Input and output.
    pub total: u64,
}

impl From<&Usage> for TokenCount {
    fn from(usage: &Usage) -> Self {
        Self {
            input: usage.input,
            output: usage.output,
            cached: usage.cached,
            total: usage.total(),
        }
    }
}

/// An open question.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct WaitingGate {
    /// Its name within the session.
    pub id: String,
    /// The question.
    pub prompt: String,
    /// The answer that counts after the deadline.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub default: Option<String>,
    /// The deadline.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub deadline: Option<Time>,
    /// The call that waits for an approval.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub call: Option<AskedCall>,
    /// The possible answers about the call.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub offers: Vec<Offer>,
    /// The subagent's session that asks.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub asker: Option<SessionId>,
}

/// A possible answer to an approval.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct Offer {
    /// The answer.
    pub choice: Choice,
    /// Its meaning, and the calls that it covers.
    pub label: String,
}

impl From<&Gate> for WaitingGate {
    /// These answers are possible from everywhere: a call with a secret can only be allowed where
    /// it runs.
    fn from(gate: &Gate) -> Self {
        let mut call = gate.call.as_deref().cloned();
        if let Some(call) = call.as_mut().filter(|call| call.holds_secret) {
            call.choices = vec![Choice::Deny, Choice::Never];
        }
        let offer = |call: &AskedCall, choice: Choice| {
            let label = choice.label(&call.tool, None);
            Offer { choice, label }
        };
        let offers = call.iter().flat_map(|call| call.offered().iter().map(|it| offer(call, *it)));
        let offers = offers.collect();
        Self {
            id: gate.id.clone(),
            prompt: gate.prompt.clone(),
            default: gate.default.clone(),
            deadline: gate.deadline,
            call,
            offers,
            asker: gate.asker.clone(),
        }
    }
}

/// A question was answered; the first answer counts.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct GateAnswered {
    /// The session that asked.
    pub session_id: SessionId,
    /// The question's name within the session.
    pub gate: String,
    /// The event of the answer.
    pub seq: Seq,
    /// Does a runner continue with it? If not, the session waits for a resume.
    pub goes_on: bool,
    /// Does the answer count for the user of the server or the command? If not, it is recorded, and
    /// the question is asked again.
    pub counts: bool,
    /// Did a person stop the session? It keeps the answer and stays stopped until it is resumed.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub stopped: bool,
    /// The session to resume: for a subagent's question, the topmost one.
    pub resume: SessionId,
}

/// A message that was sent to a session.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct SaidTo {
    /// The session.
    pub id: SessionId,
    /// Is it running? Then its model receives the message before its next call.
    pub running: bool,
}

/// A run was started in the background.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct Detached {
    /// Its session.
    pub session_id: SessionId,
    /// The file of its output.
    pub log: String,
}

/// A session's open question.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct OpenGate {
    /// The session.
    pub session_id: SessionId,
    /// The question.
    #[serde(flatten)]
    pub gate: WaitingGate,
    /// The event of the question. An answer that names it is refused if another question has
    /// replaced it by then.
    pub seq: Seq,
    /// When it was asked.
    pub asked_at: Time,
    /// The agent that asks; for a subagent's question, the subagent's.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub agent: Option<String>,
    /// That agent's task.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub task: Option<String>,
    /// The session that started the asking subagent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub parent: Option<SessionId>,
    /// The session's store, if several are listed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub store: Option<String>,
}

impl OpenGate {
    /// A question of a session, with the agent that asks it.
    #[must_use]
    pub fn new(session_id: SessionId, asked: &Asked, asker: Asker) -> Self {
        let said = |text: String| Some(text).filter(|text| !text.is_empty());
        Self {
            session_id,
            gate: (&asked.gate).into(),
            seq: asked.seq,
            asked_at: asked.at,
            agent: said(asker.agent),
            task: said(asker.task),
            parent: asker.parent,
            store: None,
        }
    }
}

/// A question that opened or closed.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct GateChange {
    /// The change.
    pub change: GateChangeKind,
    /// The question.
    #[serde(flatten)]
    pub gate: OpenGate,
    /// The answer that closed it; absent, if the session was deleted or rewound.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub answer: Option<String>,
    /// Who answered.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub who: Option<String>,
    /// When it was answered.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub answered_at: Option<Time>,
}

/// The change of a question.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum GateChangeKind {
    /// It waits for an answer from now on, or did when the watch began.
    Opened,
    /// It no longer waits.
    Closed,
}
