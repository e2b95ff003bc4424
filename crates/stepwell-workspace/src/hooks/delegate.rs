//! Before a task is delegated: is there a session to take up?

use serde_json::Value;
use stepwell::model::{Driver, Phase, PhaseSet};
use stepwell::sessions::{ResumeDecision, ResumeLimits, lifecycle};
use stepwell::store::query::{Filter, Query};
use stepwell::{Error, SessionInfo, Stepwell};
use stepwell_wire::{HookContext, ResumedAgent};

use super::claude::Call;
use super::{Payload, text};
use crate::error::Result;

/// The answer to whoever is about to delegate a task.
#[derive(Debug)]
pub struct Delegation {
    /// What the hook prints.
    pub answer: stepwell_wire::Delegation,
    /// Why, in the words of the resume decision; for the log only.
    pub why: String,
}

impl Delegation {
    /// The answer that no session is to be taken up.
    #[must_use]
    pub fn no(reason: &'static str, payload: Option<Payload>) -> Self {
        let agent_id = payload.as_ref().and_then(|payload| text(payload, "agent_id"));
        let answer = stepwell_wire::Delegation {
            should_resume: false,
            reason: reason.to_owned(),
            agent_id: agent_id.map(ToOwned::to_owned),
            resume_metadata: None,
            original_context: payload,
            context: None,
        };
        Self { answer, why: String::new() }
    }
}

/// What a delegation goes by.
#[derive(Clone, Copy, Debug)]
pub struct Delegating<'a> {
    /// The limits within which a session is resumed.
    pub limits: ResumeLimits,
    /// The folder that a new session works in.
    pub workspace: &'a str,
    /// How many of the last turns are told of a session that is resumed.
    pub turns: usize,
}

/// Looks for the session of a task that is about to be delegated. A delegation by Claude
/// Code that has none to take up gets a new one, which its end is told to.
pub fn pre_delegate(
    well: &Stepwell,
    payload: Payload,
    Delegating { limits, workspace, turns }: Delegating<'_>,
) -> Result<Delegation> {
    let found = find(well, &payload)?;
    let decision = well.decide_resume(found.as_ref(), limits)?;
    let call = Call::of(&payload);
    if let (Some(info), true) = (&found, decision.should_resume) {
        let context = call.map(|_| context(info));
        lifecycle::count_resume(well, &info.head.id)?;
        let answer = stepwell_wire::Delegation {
            should_resume: true,
            reason: "session_resumable".to_owned(),
            agent_id: Some(info.head.id.to_string()),
            resume_metadata: Some(resume(well, info, turns)?),
            original_context: Some(payload),
            context,
        };
        return Ok(Delegation { answer, why: word(&decision) });
    }
    let reason = if found.is_some() { "session_not_resumable" } else { "no_existing_session" };
    let begun = match call.and_then(|call| call.begin(workspace.to_owned())) {
        Some(begin) => Some(lifecycle::create(well, begin)?),
        None => None,
    };
    let Delegation { mut answer, .. } = Delegation::no(reason, Some(payload));
    let id = begun.or_else(|| found.map(|info| info.head.id));
    answer.agent_id = id.map(|id| id.to_string()).or(answer.agent_id);
    Ok(Delegation { answer, why: word(&decision) })
}

fn word(decision: &ResumeDecision) -> String {
    let word = serde_json::to_value(decision.reason).ok();
    word.as_ref().and_then(Value::as_str).unwrap_or_default().to_owned()
}

/// The session that a payload means: by its id, or by its agent and task, or, told by
/// Claude Code, the last one of its conversation with that kind of agent.
fn find(well: &Stepwell, payload: &Payload) -> Result<Option<SessionInfo>> {
    if let Some(id) = text(payload, "agent_id") {
        // What cannot be an id names no session.
        let Ok(id) = id.parse() else { return Ok(None) };
        return match well.info(&id) {
            Ok(info) if info.trashed_at.is_none() => Ok(Some(info)),
            Ok(_) | Err(Error::NoSession(_)) => Ok(None),
            Err(error) => Err(error.into()),
        };
    }
    let is_open = |info: &SessionInfo| {
        let ended = |phase| PhaseSet::Lifecycle.is_final(phase);
        !info.head.phase.is_some_and(ended)
    };
    if let Some(call) = Call::of(payload) {
        let sessions = call.delegations(well)?;
        return Ok(sessions.into_iter().rfind(is_open));
    }
    let Some(task) = payload.get("task_id").filter(|task| !task.is_null()) else {
        return Ok(None);
    };
    let agent = text(payload, "agent_name").map(ToOwned::to_owned);
    let filter = Filter { driver: Some(Driver::External), agent, ..Filter::default() };
    let sessions = well.list(&Query { filter, ..Query::default() })?.sessions;
    // A number here may be a text there.
    let plain = |value: &Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
    let of_task =
        |info: &SessionInfo| info.head.metadata.get("task_id").map(plain) == Some(plain(task));
    Ok(sessions.into_iter().find(|info| of_task(info) && is_open(info)))
}

fn resume(well: &Stepwell, info: &SessionInfo, turns: usize) -> Result<ResumedAgent> {
    let head = &info.head;
    let history = lifecycle::history(well, &head.id)?;
    let turns = lifecycle::turns(well, &head.id, turns)?;
    Ok(ResumedAgent {
        previous_phase: head.phase,
        created_at: head.created_at,
        last_updated: head.updated_at,
        history: history.into_iter().map(Into::into).collect(),
        session_metadata: head.metadata.clone(),
        turns: turns.into_iter().map(Into::into).collect(),
    })
}

fn context(info: &SessionInfo) -> HookContext {
    let head = &info.head;
    let phase = head.phase.map_or("", Phase::as_str);
    let metadata = serde_json::to_string(&head.metadata).unwrap_or_default();
    let text = format!(
        "An earlier session of this agent was interrupted and can be taken up: {}, \
         in phase {phase}, about: {}. It remembers {metadata}",
        head.id, head.task
    );
    HookContext { event: "PreToolUse".to_owned(), text }
}
