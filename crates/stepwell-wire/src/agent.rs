//! External agents, which Stepwell does not run, and the answers to their hooks.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::Serialize;
use serde_json::{Map, Value};
use stepwell::model::{Phase, Role, Time};
use stepwell::sessions::lifecycle::{self, Passage, Turn};
use stepwell::{SessionId, Status};

/// An external agent, in the field names of the programs that run it.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct Agent {
    /// Its session.
    pub agent_id: SessionId,
    /// Its name.
    pub agent_name: String,
    /// Its task.
    pub purpose: String,
    /// When it began.
    pub created_at: Time,
    /// When it last reported.
    pub last_updated: Time,
    /// The phase of its work.
    pub phase: Option<Phase>,
    /// The status of its session.
    pub status: Status,
    /// Its metadata.
    pub metadata: BTreeMap<String, Value>,
    /// Did it report that it can be resumed?
    pub resume_ready: bool,
    /// Every change of its phase.
    pub history: Vec<PhaseMove>,
    /// How often it was resumed.
    pub resumes: u64,
    /// How many turns of its conversation are recorded.
    pub turns: u64,
    /// How many errors it reported.
    pub error_count: u64,
    /// The last error; null, if there was none.
    pub last_error: Option<AgentError>,
    /// When it ended.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub finalized_at: Option<Time>,
    /// Its final summary.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub summary: Option<String>,
    /// From its beginning to its end.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub duration_seconds: Option<u64>,
}

/// A change of phase.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct PhaseMove {
    /// The phase that was left.
    pub from_phase: Phase,
    /// The phase that was entered.
    pub to_phase: Phase,
    /// When the phase was entered.
    pub timestamp: Time,
}

/// An error that an agent reported.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct AgentError {
    /// What went wrong.
    pub message: String,
    /// When it went wrong.
    pub timestamp: Time,
}

/// An agent whose session is damaged.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct AgentUnreadable {
    /// Its session.
    pub agent_id: SessionId,
    /// The damage.
    pub damage: String,
}

/// An agent that was just created.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct AgentCreated {
    /// Its session.
    pub agent_id: SessionId,
}

/// A turn of an agent's conversation.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct AgentTurn {
    /// When it was said.
    pub at: Time,
    /// Who said it.
    pub role: Role,
    /// What was said.
    pub text: String,
}

/// The answer to a hook that asks whether a delegated task has a session to resume.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct Delegation {
    /// Is there a session to resume?
    pub should_resume: bool,
    /// The reason, as a short code.
    pub reason: String,
    /// The session; null, if there is none.
    pub agent_id: Option<String>,
    /// The agent to resume.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub resume_metadata: Option<ResumedAgent>,
    /// The hook's input.
    pub original_context: Option<Map<String, Value>>,
    /// The text that Claude Code adds to the model's context.
    #[serde(rename = "hookSpecificOutput", skip_serializing_if = "Option::is_none")]
    pub context: Option<HookContext>,
}

/// An agent that is resumed.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct ResumedAgent {
    /// The phase that it was in.
    pub previous_phase: Option<Phase>,
    /// When it began.
    pub created_at: Time,
    /// When it last reported.
    pub last_updated: Time,
    /// Every change of its phase.
    pub history: Vec<PhaseMove>,
    /// Its metadata.
    pub session_metadata: BTreeMap<String, Value>,
    /// The last turns of its conversation, oldest first.
    pub turns: Vec<AgentTurn>,
}

/// The text that Claude Code adds to the model's context.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct HookContext {
    /// The hook's event.
    #[serde(rename = "hookEventName")]
    pub event: String,
    /// The text.
    #[serde(rename = "additionalContext")]
    pub text: String,
}

/// The answer to a hook that reports the stop of an agent.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct HookStop {
    /// Did this end its session?
    pub finalized: bool,
    /// The reason, as a short code.
    pub reason: String,
    /// The session; null, if there is none.
    pub agent_id: Option<String>,
    /// Its outcome.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub outcome: Option<String>,
}

/// Hooks that were installed into another agent's settings, or removed.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct HookInstalled {
    /// The settings file.
    pub settings: String,
    /// Was it changed?
    pub changed: bool,
}

/// Stepwell, installed into another program's settings or removed, as an MCP server or as an agent.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct McpInstalled {
    /// The settings file; null, if no change was necessary.
    pub settings: Option<String>,
    /// The text that was added or removed; null, if there was none.
    pub piece: Option<String>,
    /// Was it changed?
    pub changed: bool,
}

/// A hook's answer to a sample.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct HookSample {
    /// The hook.
    pub hook: String,
    /// The program that the sample is for.
    pub sample: String,
    /// The hook's input.
    pub input: Map<String, Value>,
    /// The hook's answer.
    pub answer: Value,
}

impl From<Passage> for PhaseMove {
    fn from(passage: Passage) -> Self {
        let Passage { from_phase, to_phase, timestamp } = passage;
        Self { from_phase, to_phase, timestamp }
    }
}

impl From<Turn> for AgentTurn {
    fn from(turn: Turn) -> Self {
        let Turn { at, role, text } = turn;
        Self { at, role, text }
    }
}

impl From<lifecycle::Agent> for Agent {
    fn from(agent: lifecycle::Agent) -> Self {
        let lifecycle::Agent { head, history, finalized_at, summary } = agent;
        let last_error = head.last_error;
        Self {
            agent_id: head.id,
            agent_name: head.agent,
            purpose: head.task,
            created_at: head.created_at,
            last_updated: head.updated_at,
            phase: head.phase,
            status: head.status,
            metadata: head.metadata,
            resume_ready: head.ready,
            history: history.into_iter().map(PhaseMove::from).collect(),
            resumes: head.resumes,
            turns: head.messages,
            error_count: head.errors,
            last_error: last_error.map(|it| AgentError { message: it.message, timestamp: it.at }),
            finalized_at,
            summary,
            duration_seconds: finalized_at.map(|at| at.since(head.created_at).as_secs()),
        }
    }
}
