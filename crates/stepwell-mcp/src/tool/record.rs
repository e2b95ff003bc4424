//! Records the work of an external agent, step by step, so that it becomes durable.
//!
//! These tools write only to external agents' sessions, never to sessions that Stepwell runs.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use stepwell::model::{
    Checkpoint, Part, Phase, Role, Task, TaskStatus, ToolCall, ToolResult, Usage,
};
use stepwell::sessions::lifecycle::{self, Begin, Finalized, Outcome, Said, Update};
use stepwell::{Message, Seq, SessionId, Status, Stepwell};
use stepwell_wire::{CheckpointMade, TaskInfo};

use super::form::{About, Again, ToolForm, writes};
use crate::error::{Error, Result};
use crate::options::Access;
use crate::stores::{Located, Purpose, Stores};

/// The tools for that.
pub(super) fn tools() -> Vec<ToolForm> {
    let about = |name, title, description| About { name, title, description };
    vec![
        writes(
            Access::Record,
            about(
                "begin_session",
                "Begin a session",
                "Begins a durable session for your own work, and returns its id. Record each step \
                 with record_step, and end the session with finish_session.",
            ),
            Again::Adds,
            begin_session,
        ),
        writes(
            Access::Record,
            about(
                "record_step",
                "Record a step",
                "Records a step of your session: messages, tool calls and their results, \
                 completely or not at all.",
            ),
            Again::Adds,
            record_step,
        ),
        writes(
            Access::Record,
            about(
                "set_state",
                "Set the state",
                "Sets the state of your session: phase, goal, metadata, an error.",
            ),
            Again::Same,
            set_state,
        ),
        writes(
            Access::Record,
            about("add_task", "Add a task", "Plans a task in your session."),
            Again::Adds,
            add_task,
        ),
        writes(
            Access::Record,
            about(
                "checkpoint",
                "Name a point",
                "Names the current point of your session, for reading or forking it there later.",
            ),
            Again::Adds,
            checkpoint,
        ),
        writes(
            Access::Record,
            about(
                "finish_session",
                "Finish a session",
                "Ends your session: completed, failed or abandoned. Repeating the call changes \
                 nothing.",
            ),
            Again::Same,
            finish_session,
        ),
    ]
}

/// A session's state after a write.
#[derive(Debug, Serialize, JsonSchema)]
struct Written {
    /// The session.
    id: SessionId,
    /// Its status.
    status: Status,
    /// Its phase.
    #[serde(skip_serializing_if = "Option::is_none")]
    phase: Option<Phase>,
    /// Its last event.
    seq: Seq,
    /// Complete steps.
    steps: u64,
}

fn written(well: &Stepwell, id: &SessionId) -> Result<Written> {
    let head = well.info(id)?.head;
    let (status, phase, seq, steps) = (head.status, head.phase, head.seq, head.steps);
    Ok(Written { id: id.clone(), status, phase, seq, steps })
}

/// Finds the session of an external agent.
fn agents_own(stores: &Stores, session: String) -> Result<Located> {
    let found = stores.session(&session.into(), Purpose::Write)?;
    lifecycle::refuse_own(&found.well.info(&found.id)?.head)?;
    Ok(found)
}

#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct BeginInput {
    /// The task.
    task: String,
    /// The agent, such as "claude".
    agent: String,
    /// The session's id; a new one, if absent.
    #[serde(default)]
    id: Option<String>,
    /// Metadata of the session.
    #[serde(default)]
    metadata: BTreeMap<String, Value>,
}

fn begin_session(stores: &Stores, input: BeginInput) -> Result<Written> {
    let wrong = |error| Error::Arguments(format!("id: {error}"));
    let id = input.id.map(|id| id.parse::<SessionId>()).transpose().map_err(wrong)?;
    let well = stores.here(Purpose::Write)?.ok_or(Error::NoStore)?;
    let (agent, purpose, metadata) = (input.agent, input.task, input.metadata);
    let workspace = stores.workspace.place.root.display().to_string();
    let id = lifecycle::create(&well, Begin { id, agent, purpose, workspace, metadata })?;
    written(&well, &id)
}

#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct StepInput {
    /// The session.
    session: String,
    /// The messages, in order.
    messages: Vec<SaidMessage>,
    /// The model that answered.
    #[serde(default)]
    model: Option<String>,
    /// Input tokens.
    #[serde(default)]
    input_tokens: Option<u64>,
    /// Output tokens.
    #[serde(default)]
    output_tokens: Option<u64>,
}

/// One message of a step.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct SaidMessage {
    /// Who spoke: user, assistant, tool or system.
    role: Role,
    /// The text.
    #[serde(default)]
    text: String,
    /// The model's tool calls.
    #[serde(default)]
    calls: Vec<SaidCall>,
    /// The results of tools.
    #[serde(default)]
    results: Vec<SaidResult>,
}

/// A tool call.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct SaidCall {
    /// The call's id, which its result repeats.
    id: String,
    /// The tool.
    tool: String,
    /// Its arguments.
    #[serde(default)]
    arguments: Value,
}

/// The result of a tool.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct SaidResult {
    /// The call that it answers.
    call_id: String,
    /// Its output.
    text: String,
    /// Did it fail?
    #[serde(default)]
    failed: bool,
}

impl From<SaidMessage> for Message {
    fn from(said: SaidMessage) -> Self {
        let text = Some(said.text).filter(|text| !text.is_empty());
        let calls = said.calls.into_iter().map(|call| {
            let arguments = match call.arguments {
                Value::String(text) => text,
                Value::Null => "{}".to_owned(),
                arguments => arguments.to_string(),
            };
            Part::ToolCall(ToolCall { id: call.id, name: call.tool, arguments, opaque: None })
        });
        let results = said.results.into_iter().map(|result| {
            let (call_id, text, is_error) = (result.call_id, result.text, result.failed);
            Part::ToolResult(ToolResult { call_id, text, is_error, ..ToolResult::default() })
        });
        let text = text.into_iter().map(Part::text);
        Self::new(said.role, text.chain(calls).chain(results).collect())
    }
}

fn record_step(stores: &Stores, input: StepInput) -> Result<Written> {
    if input.messages.is_empty() {
        return Err(Error::Arguments("`messages` is empty".to_owned()));
    }
    let Located { well, id } = agents_own(stores, input.session)?;
    let mut messages: Vec<Message> = input.messages.into_iter().map(Message::from).collect();
    let answer = messages.iter_mut().rfind(|message| message.role == Role::Assistant);
    if let Some(answer) = answer {
        answer.model = input.model;
        if input.input_tokens.is_some() || input.output_tokens.is_some() {
            let (sent, answered) = (input.input_tokens, input.output_tokens);
            let (input, output) = (sent.unwrap_or(0), answered.unwrap_or(0));
            answer.usage = Some(Usage { input, output, ..Usage::default() });
        }
    }
    lifecycle::step(&well, &id, messages)?;
    written(&well, &id)
}

#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct StateInput {
    /// The session.
    session: String,
    /// The phase: initializing, investigating, planning, approval, executing or validating.
    #[serde(default)]
    phase: Option<String>,
    /// The goal; an empty text removes it.
    #[serde(default)]
    goal: Option<String>,
    /// Metadata; null removes an entry.
    #[serde(default)]
    metadata: BTreeMap<String, Value>,
    /// An error to record.
    #[serde(default)]
    error: Option<String>,
    /// Can it be resumed?
    #[serde(default)]
    ready: Option<bool>,
}

fn set_state(stores: &Stores, input: StateInput) -> Result<Written> {
    let phase = input.phase.as_deref().map(lifecycle::phase).transpose()?;
    if let Some(phase) = phase.filter(|phase| stepwell::model::PhaseSet::Lifecycle.is_final(*phase))
    {
        return Err(Error::Arguments(format!("phase {phase}: finish_session ends a session")));
    }
    let Located { well, id } = agents_own(stores, input.session)?;
    let StateInput { metadata, goal, error, ready, .. } = input;
    lifecycle::update(&well, &id, Update { phase, metadata, goal, error, ready })?;
    written(&well, &id)
}

#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct TaskInput {
    /// The session.
    session: String,
    /// What to do.
    description: String,
    /// Its id within the session; the next free number, if absent.
    #[serde(default)]
    id: Option<String>,
    /// For example create, modify or test.
    #[serde(default)]
    action: String,
    /// Ids of tasks that must come first.
    #[serde(default)]
    after: Vec<String>,
    /// The files that it concerns.
    #[serde(default)]
    files: Vec<String>,
    /// Its status: pending, running, done, failed, skipped or unrecoverable.
    #[serde(default)]
    status: TaskStatus,
}

fn add_task(stores: &Stores, input: TaskInput) -> Result<TaskInfo> {
    let Located { well, id } = agents_own(stores, input.session)?;
    let task = Task {
        id: input.id.unwrap_or_default(),
        action: input.action,
        description: input.description,
        deps: input.after,
        status: input.status,
        files: input.files,
    };
    let planned = well.change_tasks(&id, |tasks| Ok(vec![tasks.add(task)?]))?;
    let added = planned.changed.first().ok_or(Error::NoStore)?;
    Ok(TaskInfo::new(added, &planned.tasks))
}

#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct CheckpointInput {
    /// The session.
    session: String,
    /// The checkpoint's name; a later one of the same name replaces it.
    name: String,
}

fn checkpoint(stores: &Stores, input: CheckpointInput) -> Result<CheckpointMade> {
    let Located { well, id } = agents_own(stores, input.session)?;
    let named = Checkpoint { name: input.name.clone(), ..Checkpoint::default() };
    let seq = well.checkpoint(&id, named)?;
    Ok(CheckpointMade { id, checkpoint: input.name, seq })
}

#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct FinishInput {
    /// The session.
    session: String,
    /// The outcome.
    outcome: Ending,
    /// A short summary.
    #[serde(default)]
    summary: Option<String>,
    /// The error, if it failed.
    #[serde(default)]
    error: Option<String>,
}

/// The outcome of a session.
#[derive(Clone, Copy, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum Ending {
    /// The work is done.
    Completed,
    /// It could not be done.
    Failed,
    /// The work is given up.
    Abandoned,
}

fn finish_session(stores: &Stores, input: FinishInput) -> Result<Written> {
    let Located { well, id } = agents_own(stores, input.session)?;
    let outcome = match input.outcome {
        Ending::Completed => Outcome::Completed,
        Ending::Failed => Outcome::Failed,
        Ending::Abandoned => Outcome::Abandoned,
    };
    let said = Said { summary: input.summary, error: input.error, ..Said::default() };
    match lifecycle::finalize(&well, &id, outcome, said)? {
        Finalized::Now | Finalized::Before => written(&well, &id),
        Finalized::Otherwise(phase) => {
            Err(Error::EndedOtherwise { session: id, phase: phase.to_string() })
        }
    }
}
