//! How runs ended, and what they wait for.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::Serialize;
use stepwell::model::{AskedCall, Choice, Gate, Spent, Time, Usage};
use stepwell::work::{Asked, Asker};
use stepwell::{Seq, SessionId, Status, StopReason};

use crate::Dollars;

/// How a run of an agent ended.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct RunReport {
    /// The session; absent, if it was not saved.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub session_id: Option<SessionId>,
    /// Was it saved? Absent, it was.
    #[serde(skip_serializing_if = "Clone::clone")]
    pub saved: bool,
    /// How it stands.
    pub status: Status,
    /// Why it stopped; null, if nobody said.
    pub stop_reason: Option<StopReason>,
    /// The model's last words.
    pub output: String,
    /// What went wrong.
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
    /// The event that the session was at when this run resumed it; null, if it began it.
    pub resumed_from: Option<u64>,
}

/// What a whole session used, over all of its runs, with its subagents.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct Costs {
    /// Tokens sent.
    pub total_input_tokens: u64,
    /// Tokens received.
    pub total_output_tokens: u64,
    /// Of the tokens sent, those read from a cache.
    pub total_cached_tokens: u64,
    /// Tokens in both directions.
    pub total_tokens: u64,
    /// What it cost; null, if the price of a call is not known.
    pub total_cost_usd: Option<Dollars>,
    /// What is recorded of its cost; absent, if that is all of it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub recorded_cost_usd: Option<Dollars>,
    /// What calls without a recorded cost may have cost, by their tokens. It is in no sum.
    #[serde(rename = "estimated_cost_usd", skip_serializing_if = "Option::is_none")]
    pub estimate: Option<Dollars>,
    /// What each lane and each subagent cost; null, if a price is not known.
    pub by_source: BTreeMap<String, Option<Dollars>>,
}

impl Costs {
    /// What was spent, and which part of it by whom.
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

/// How a run of a flow ended.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct FlowReport {
    /// The session; absent, if it was not saved.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub session_id: Option<SessionId>,
    /// Was it saved? Absent, it was.
    #[serde(skip_serializing_if = "Clone::clone")]
    pub saved: bool,
    /// The flow's name.
    pub flow: String,
    /// The name of its pattern.
    pub pattern: String,
    /// How it stands.
    pub status: Status,
    /// Why it stopped; null, if it is done.
    pub stop_reason: Option<StopReason>,
    /// What it came to.
    pub output: serde_json::Value,
    /// What went wrong.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// Questions that wait for a human.
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
    /// The event that the session was at when this run resumed it; absent, if it began it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub resumed_from: Option<u64>,
}

/// Tokens.
#[derive(Clone, Copy, Debug, Serialize, JsonSchema)]
pub struct TokenCount {
    /// Sent.
    pub input: u64,
    /// Received.
    pub output: u64,
    /// Of those sent, those read from a cache.
    pub cached: u64,
    /// In both directions.
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

/// A question that waits.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct WaitingGate {
    /// Its name within the session.
    pub id: String,
    /// The question.
    pub prompt: String,
    /// The answer if nobody gives one in time.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub default: Option<String>,
    /// Until when it may be answered.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub deadline: Option<Time>,
    /// The call that waits for leave.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub call: Option<AskedCall>,
    /// What may be answered about the call.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub offers: Vec<Offer>,
    /// The subagent's session that asks.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub asker: Option<SessionId>,
}

/// An answer that a question about a call takes.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct Offer {
    /// The answer.
    pub choice: Choice,
    /// What it means, and for which calls.
    pub label: String,
}

impl From<&Gate> for WaitingGate {
    /// What can be chosen is what can be chosen from anywhere: a call that holds a secret is allowed
    /// only where it runs.
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
    /// The event that the answer is.
    pub seq: Seq,
    /// Does somebody who runs the session go on with it? If not, it waits to be resumed.
    pub goes_on: bool,
    /// Does the answer count for the user who runs the server, or the command? What others allow
    /// may not: then it is on record, and the question is asked again.
    pub counts: bool,
    /// Did a person stop the session? It has the answer, and stays stopped until somebody resumes
    /// it.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub stopped: bool,
    /// The session to resume: of a subagent's question, the one at the top.
    pub resume: SessionId,
}

/// Something was said to a session.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct SaidTo {
    /// The session.
    pub id: SessionId,
    /// Does it run, so that it hears this before its model's next call?
    pub running: bool,
}

/// A run was started in the background.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct Detached {
    /// Its session.
    pub session_id: SessionId,
    /// The file that it writes to.
    pub log: String,
}

/// A question that waits in a session.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct OpenGate {
    /// The session.
    pub session_id: SessionId,
    /// The question.
    #[serde(flatten)]
    pub gate: WaitingGate,
    /// The event that asks it. An answer that names it is refused if the question is another one
    /// by then.
    pub seq: Seq,
    /// When it was asked.
    pub asked_at: Time,
    /// The agent that asks; of a subagent's question, the subagent's.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub agent: Option<String>,
    /// What that agent works on.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub task: Option<String>,
    /// The session that started the subagent which asks.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub parent: Option<SessionId>,
    /// The store that it is in, where several are looked at.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub store: Option<String>,
}

impl OpenGate {
    /// A question of a session, with who asks it.
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

/// A question that opened or closed, as it happens.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct GateChange {
    /// What happened.
    pub change: GateChangeKind,
    /// The question.
    #[serde(flatten)]
    pub gate: OpenGate,
    /// The answer that closed it; absent, it was taken back with its session or by a rewind.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub answer: Option<String>,
    /// Who answered.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub who: Option<String>,
    /// When it was answered.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub answered_at: Option<Time>,
}

/// What happened to a question.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum GateChangeKind {
    /// It waits for an answer from now on, or did when the watch began.
    Opened,
    /// It no longer waits.
    Closed,
}
