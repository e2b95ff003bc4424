//! After an agent has stopped: its session ends, once.

use serde::Serialize;
use serde_json::Value;
use stepwell::{Phase, PhaseSet, SessionId, Standing, Stepwell};

use super::claude::{Call, SUBAGENT};
use super::{Payload, object, text};
use crate::failure::Result;
use crate::lifecycle::{self, Finalized, Outcome};

/// The answer to whoever told that an agent stopped.
#[derive(Debug, Serialize)]
pub(crate) struct Stopped {
    finalized: bool,
    pub(crate) reason: &'static str,
    pub(crate) agent_id: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    outcome: Option<&'static str>,
}

impl Stopped {
    /// The answer that nothing was ended.
    pub(crate) fn no(reason: &'static str, agent_id: Option<String>) -> Self {
        Self { finalized: false, reason, agent_id, outcome: None }
    }
}

/// How much of an agent's last words is remembered.
const SUMMARY: usize = 2_000;

/// Ends the session that a payload means: by its id, or, told by Claude Code, the first
/// open one of its conversation with that kind of agent.
pub(crate) fn subagent_stop(well: &Stepwell, payload: &Payload) -> Result<Stopped> {
    let told = object(payload, "task_info").unwrap_or(payload);
    let named = text(told, "agent_id").or_else(|| text(payload, "agent_id"));
    let summary = text(told, "summary").or_else(|| text(payload, "last_assistant_message"));
    let summary = summary.map(|text| text[..text.floor_char_boundary(SUMMARY)].to_owned());
    let mut metadata = lifecycle::summary(summary);
    let names = [named, text(payload, "session_id")];
    for id in names.into_iter().flatten().filter_map(|name| name.parse::<SessionId>().ok()) {
        if well.store().exists(&id)? {
            let outcome = outcome(told).unwrap_or_else(|| from_transcript(payload));
            return end(well, &id, outcome, metadata);
        }
    }
    let Some(call) = Call::of(payload) else {
        return Ok(Stopped::no("no_session", named.map(ToOwned::to_owned)));
    };
    if let Some(subagent) = call.subagent() {
        metadata.insert(SUBAGENT.to_owned(), subagent.into());
    }
    for standing in call.delegations(well)? {
        let known = standing.head.metadata.get(SUBAGENT).and_then(Value::as_str);
        if known.is_some() && known == call.subagent() {
            return Ok(ended(&standing.head.id, "already_finalized", standing.head.phase));
        }
        if is_final(&standing) {
            continue;
        }
        let outcome = outcome(told).unwrap_or_else(|| call.outcome());
        let stopped = end(well, &standing.head.id, outcome, metadata.clone())?;
        // Another hook ended this one just now: it told of another agent's end.
        if stopped.finalized {
            return Ok(stopped);
        }
    }
    Ok(Stopped::no("no_session", named.map(ToOwned::to_owned)))
}

fn is_final(standing: &Standing) -> bool {
    standing.head.phase.is_some_and(|phase| PhaseSet::Lifecycle.is_final(phase))
}

fn from_transcript(payload: &Payload) -> Outcome {
    Call::of(payload).map_or(Outcome::Completed, |call| call.outcome())
}

fn end(
    well: &Stepwell,
    id: &SessionId,
    outcome: Outcome,
    metadata: std::collections::BTreeMap<String, Value>,
) -> Result<Stopped> {
    let standing = well.standing(id)?;
    if is_final(&standing) {
        return Ok(ended(id, "already_finalized", standing.head.phase));
    }
    match lifecycle::finalize(well, id, outcome, metadata)? {
        Finalized::Before => Ok(ended(id, "already_finalized", Some(outcome.into()))),
        Finalized::Now => {
            let answer = ended(id, "finalized", Some(outcome.into()));
            Ok(Stopped { finalized: true, ..answer })
        }
    }
}

fn ended(id: &SessionId, reason: &'static str, phase: Option<Phase>) -> Stopped {
    let outcome = phase.map(Phase::as_str);
    Stopped { finalized: false, reason, agent_id: Some(id.to_string()), outcome }
}

/// How the agent ended, as far as the payload says.
fn outcome(told: &Payload) -> Option<Outcome> {
    let word = ["outcome", "status", "result"].iter().find_map(|name| text(told, name));
    match word.map(str::to_lowercase).as_deref() {
        Some("completed" | "complete" | "success" | "succeeded" | "done" | "ok") => {
            return Some(Outcome::Completed);
        }
        Some("failed" | "failure" | "error" | "timeout" | "crashed") => {
            return Some(Outcome::Failed);
        }
        Some("abandoned" | "cancelled" | "canceled" | "aborted") => {
            return Some(Outcome::Abandoned);
        }
        _ => {}
    }
    let flag = |name: &str| told.get(name).and_then(Value::as_bool);
    let failed = flag("is_error").or_else(|| flag("success").map(|success| !success));
    let code = told.get("exit_code").and_then(Value::as_i64).map(|code| code != 0);
    let error = told.get("error").filter(|error| !error.is_null()).map(|error| {
        error.as_str().is_none_or(|text| !text.is_empty()) && *error != Value::Bool(false)
    });
    let failed = failed.or(code).or(error)?;
    Some(if failed { Outcome::Failed } else { Outcome::Completed })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_outcome_is_told_in_many_ways() {
        let told = |json: &str| outcome(&serde_json::from_str(json).unwrap());
        assert_eq!(told(r#"{"success":true}"#), Some(Outcome::Completed));
        assert_eq!(told(r#"{"success":false}"#), Some(Outcome::Failed));
        assert_eq!(told(r#"{"status":"Failed"}"#), Some(Outcome::Failed));
        assert_eq!(told(r#"{"outcome":"abandoned"}"#), Some(Outcome::Abandoned));
        assert_eq!(told(r#"{"exit_code":1}"#), Some(Outcome::Failed));
        assert_eq!(told(r#"{"exit_code":0}"#), Some(Outcome::Completed));
        assert_eq!(told(r#"{"error":"boom"}"#), Some(Outcome::Failed));
        assert_eq!(told(r#"{"error":null}"#), None);
        assert_eq!(told("{}"), None);
    }
}
