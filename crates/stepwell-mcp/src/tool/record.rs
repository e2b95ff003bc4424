//! Recording: an agent that nobody records becomes durable by telling what it does.
//!
//! Only sessions of such agents can be written to; those that Stepwell runs are its own.

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

/// The tools that record.
pub(super) fn tools() -> Vec<ToolForm> {
    let about = |name, title, description| About { name, title, description };
    vec![
        writes(
            Access::Record,
            about(
                "begin_session",
                "Begin a session",
                "Begins a durable session for your own work, and answers with its id. Record each \
                 step with record_step, and end it with finish_session.",
            ),
            Again::Adds,
            begin_session,
        ),
        writes(
            Access::Record,
            about(
                "record_step",
                "Record a step",
                "Records a step of your session: what was said, the tools that ran and what they \
                 answered. All of it is kept, or none.",
            ),
            Again::Adds,
            record_step,
        ),
        writes(
            Access::Record,
            about(
                "set_state",
                "Set the state",
                "Says where in its work your session is: phase, goal, metadata, an error.",
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
                "Names the present point of your session, to read or fork it there later.",
            ),
            Again::Adds,
            checkpoint,
        ),
        writes(
            Access::Record,
            about(
                "finish_session",
                "Finish a session",
                "Ends your session: completed, failed or abandoned. Ending it again in the same \
                 way changes nothing.",
            ),
            Again::Same,
            finish_session,
        ),
    ]
}

/// How a session stands after a write.
#[derive(Debug, Serialize, JsonSchema)]
struct Written {
    /// The session.
    id: SessionId,
    /// How it stands.
    status: Status,
    /// Where in its work it is.
    #[serde(skip_serializing_if = "Option::is_none")]
    phase: Option<Phase>,
    /// Its last event.
    seq: Seq,
    /// Steps that are complete.
    steps: u64,
}

fn written(well: &Stepwell, id: &SessionId) -> Result<Written> {
    let head = well.info(id)?.head;
    let (status, phase, seq, steps) = (head.status, head.phase, head.seq, head.steps);
    Ok(Written { id: id.clone(), status, phase, seq, steps })
}

/// A session of an agent that Stepwell does not run.
fn agents_own(stores: &Stores, session: String) -> Result<Located> {
    let found = stores.session(&session.into(), Purpose::Write)?;
    lifecycle::refuse_own(&found.well.info(&found.id)?.head)?;
    Ok(found)
}

#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct BeginInput {
    /// What the work is to do.
    task: String,
    /// Who does it, such as "claude".
    agent: String,
    /// The session's id; a new one, if absent.
    #[serde(default)]
    id: Option<String>,
    /// What is remembered with it.
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
    /// What was said, in order.
    messages: Vec<SaidMessage>,
    /// The model that answered.
    #[serde(default)]
    model: Option<String>,
    /// Tokens that were sent to it.
    #[serde(default)]
    input_tokens: Option<u64>,
    /// Tokens that it answered with.
    #[serde(default)]
    output_tokens: Option<u64>,
}

/// One message of a step.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct SaidMessage {
    /// Who spoke: user, assistant, tool or system.
    role: Role,
    /// What was said.
    #[serde(default)]
    text: String,
    /// The tools that the model asked for.
    #[serde(default)]
    calls: Vec<SaidCall>,
    /// What tools answered.
    #[serde(default)]
    results: Vec<SaidResult>,
}

/// A tool that the model asked for.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct SaidCall {
    /// The call's name, which its result repeats.
    id: String,
    /// The tool.
    tool: String,
    /// Its arguments.
    #[serde(default)]
    arguments: Value,
}

/// What a tool answered.
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
    /// Where in its work it is: initializing, investigating, planning, approval, executing or
    /// validating.
    #[serde(default)]
    phase: Option<String>,
    /// What the work is to achieve; an empty text takes it away.
    #[serde(default)]
    goal: Option<String>,
    /// What is remembered with it; null takes an entry away.
    #[serde(default)]
    metadata: BTreeMap<String, Value>,
    /// What went wrong.
    #[serde(default)]
    error: Option<String>,
    /// Is it ready to be resumed?
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
    /// What is to be done.
    description: String,
    /// Its name within the session; the next free number, if absent.
    #[serde(default)]
    id: Option<String>,
    /// Such as create, modify or test.
    #[serde(default)]
    action: String,
    /// Tasks that come first.
    #[serde(default)]
    after: Vec<String>,
    /// The files that it is about.
    #[serde(default)]
    files: Vec<String>,
    /// How it stands already: pending, running, done, failed, skipped or unrecoverable.
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
    /// The point's name; a later one of the same name takes its place.
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
    /// How it ended.
    outcome: Ending,
    /// What it leaves, in a few words.
    #[serde(default)]
    summary: Option<String>,
    /// What went wrong.
    #[serde(default)]
    error: Option<String>,
}

/// How a session ended.
#[derive(Clone, Copy, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum Ending {
    /// The work is done.
    Completed,
    /// It could not be done.
    Failed,
    /// Nobody goes on with it.
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
