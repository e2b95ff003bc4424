//! After an agent has stopped: its session ends, once.

use serde_json::Value;
use stepwell::model::{Phase, PhaseSet};
use stepwell::sessions::lifecycle::{self, Finalized, Outcome, Said};
use stepwell::{SessionId, SessionInfo, Stepwell};
use stepwell_wire::HookStop;

use super::claude::{Call, SUBAGENT};
use super::{Payload, object, text};
use crate::error::Result;

/// The answer that nothing was ended.
#[must_use]
pub fn not_stopped(reason: &'static str, agent_id: Option<String>) -> HookStop {
    HookStop { finalized: false, reason: reason.to_owned(), agent_id, outcome: None }
}

/// How much of an agent's last words is remembered.
const SUMMARY: usize = 2_000;

/// Ends the session that a payload means: by its id, or, told by Claude Code, the first
/// open one of its conversation with that kind of agent.
pub fn subagent_stop(well: &Stepwell, payload: &Payload) -> Result<HookStop> {
    let told = object(payload, "task_info").unwrap_or(payload);
    let named = text(told, "agent_id").or_else(|| text(payload, "agent_id"));
    let summary = text(told, "summary").or_else(|| text(payload, "last_assistant_message"));
    let summary = summary.map(|text| text[..text.floor_char_boundary(SUMMARY)].to_owned());
    let failed = outcome(told, payload) == Some(Outcome::Failed);
    let error = error_text(told, failed).or_else(|| error_text(payload, failed));
    let mut said = Said { summary, error, ..Said::default() };
    let names = [named, text(payload, "session_id")];
    for id in names.into_iter().flatten().filter_map(|name| name.parse::<SessionId>().ok()) {
        let info = match well.info(&id) {
            Err(stepwell::Error::NoSession(_)) => None,
            other => Some(other?).filter(|info| info.trashed_at.is_none()),
        };
        if info.is_some() {
            let outcome = outcome(told, payload).unwrap_or_else(|| from_transcript(payload));
            return end(well, &id, outcome, said);
        }
    }
    let Some(call) = Call::of(payload) else {
        return Ok(not_stopped("no_session", named.map(ToOwned::to_owned)));
    };
    if let Some(subagent) = call.subagent() {
        said.metadata.insert(SUBAGENT.to_owned(), subagent.into());
    }
    for info in call.delegations(well)? {
        let known = info.head.metadata.get(SUBAGENT).and_then(Value::as_str);
        if known.is_some() && known == call.subagent() {
            return Ok(ended(&info.head.id, "already_finalized", info.head.phase));
        }
        if is_final(&info) {
            continue;
        }
        let outcome = outcome(told, payload).unwrap_or_else(|| call.outcome());
        let id = &info.head.id;
        let stopped = end(well, id, outcome, said.clone())?;
        // Another hook ended this one just now. If it told of the same agent's end, that
        // was it; all of them look in the same order, so no other was taken for it.
        let told = well.info(id)?.head.metadata;
        let same = call.subagent().is_some()
            && told.get(SUBAGENT).and_then(Value::as_str) == call.subagent();
        if stopped.finalized || same {
            return Ok(stopped);
        }
    }
    Ok(not_stopped("no_session", named.map(ToOwned::to_owned)))
}

/// Where a payload may say what went wrong, and where it says so only if something did.
const ERRORS: [&str; 4] = ["error", "error_message", "last_error", "errors"];
const IF_FAILED: [&str; 5] = ["message", "stderr", "reason", "result", "output"];

/// What a payload says went wrong.
fn error_text(payload: &Payload, failed: bool) -> Option<String> {
    let said = |names: &[&str]| names.iter().find_map(|name| error_in(payload.get(*name)?));
    // A word for how it ended says nothing more.
    let also = || said(&IF_FAILED).filter(|text| failed && sign_of(text).is_none());
    let told = said(&ERRORS).or_else(also)?;
    Some(told[..told.floor_char_boundary(SUMMARY)].to_owned())
}

/// An error as a text, as an object with one, or the first of a list.
fn error_in(value: &Value) -> Option<&str> {
    match value {
        Value::String(text) => Some(text.as_str()).filter(|text| !text.trim().is_empty()),
        Value::Object(error) => {
            ["message", "error"].iter().find_map(|name| error_in(error.get(*name)?))
        }
        Value::Array(errors) => errors.iter().find_map(error_in),
        _ => None,
    }
}

fn is_final(info: &SessionInfo) -> bool {
    info.head.phase.is_some_and(|phase| PhaseSet::Lifecycle.is_final(phase))
}

fn from_transcript(payload: &Payload) -> Outcome {
    Call::of(payload).map_or(Outcome::Completed, |call| call.outcome())
}

fn end(well: &Stepwell, id: &SessionId, outcome: Outcome, said: Said) -> Result<HookStop> {
    let info = well.info(id)?;
    if is_final(&info) {
        return Ok(ended(id, "already_finalized", info.head.phase));
    }
    match lifecycle::finalize(well, id, outcome, said)? {
        Finalized::Before => Ok(ended(id, "already_finalized", Some(outcome.into()))),
        Finalized::Otherwise(phase) => Ok(ended(id, "already_finalized", Some(phase))),
        Finalized::Now => {
            let answer = ended(id, "finalized", Some(outcome.into()));
            Ok(HookStop { finalized: true, ..answer })
        }
    }
}

fn ended(id: &SessionId, reason: &'static str, phase: Option<Phase>) -> HookStop {
    let outcome = phase.map(|phase| phase.as_str().to_owned());
    let (reason, agent_id) = (reason.to_owned(), Some(id.to_string()));
    HookStop { finalized: false, reason, agent_id, outcome }
}

/// How the agent ended, as far as the payload says. A failure that is told of anywhere
/// counts: one that was taken for a success would be final.
fn outcome(told: &Payload, payload: &Payload) -> Option<Outcome> {
    let said: Vec<Outcome> = [told, payload].into_iter().flat_map(signs).collect();
    let has = |outcome| said.contains(&outcome).then_some(outcome);
    has(Outcome::Failed).or_else(|| has(Outcome::Abandoned)).or_else(|| has(Outcome::Completed))
}

/// How it ended, by a word for that.
fn sign_of(word: &str) -> Option<Outcome> {
    Some(match word.trim().to_lowercase().as_str() {
        "completed" | "complete" | "success" | "succeeded" | "done" | "ok" => Outcome::Completed,
        "failed" | "failure" | "error" | "timeout" | "crashed" => Outcome::Failed,
        "abandoned" | "cancelled" | "canceled" | "aborted" => Outcome::Abandoned,
        _ => return None,
    })
}

/// Every sign of how it ended.
fn signs(payload: &Payload) -> Vec<Outcome> {
    let mut signs = Vec::new();
    let words = ["outcome", "status", "result"].into_iter().filter_map(|name| text(payload, name));
    signs.extend(words.filter_map(sign_of));
    // A flag may be told as a text.
    let flag = |name: &str| match payload.get(name)? {
        Value::Bool(flag) => Some(*flag),
        Value::String(text) => text.trim().to_lowercase().parse().ok(),
        _ => None,
    };
    let number = |value: &Value| value.as_i64().or_else(|| value.as_str()?.trim().parse().ok());
    let error = payload.get("error").map(|error| match error {
        Value::Null | Value::Bool(false) => false,
        Value::String(text) => !text.trim().is_empty(),
        _ => true,
    });
    let failed = [
        flag("success").map(|success| !success),
        flag("is_error"),
        payload.get("exit_code").and_then(number).map(|code| code != 0),
        error.filter(|failed| *failed),
    ];
    let sign = |failed: bool| if failed { Outcome::Failed } else { Outcome::Completed };
    signs.extend(failed.into_iter().flatten().map(sign));
    signs
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_outcome_is_told_in_many_ways() {
        let told = |json: &str| {
            let payload: Payload = serde_json::from_str(json).unwrap();
            outcome(object(&payload, "task_info").unwrap_or(&payload), &payload)
        };
        assert_eq!(
            told(r#"{"task_info":{"agent_id":"a"},"success":false}"#),
            Some(Outcome::Failed)
        );
        assert_eq!(told(r#"{"success":"false"}"#), Some(Outcome::Failed));
        assert_eq!(told(r#"{"exit_code":"1"}"#), Some(Outcome::Failed));
        assert_eq!(told(r#"{"status":"completed","error":"boom"}"#), Some(Outcome::Failed));
        assert_eq!(told(r#"{"success":true,"exit_code":3}"#), Some(Outcome::Failed));
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

    #[test]
    fn what_went_wrong_is_told_in_many_places() {
        let told = |json: &str| {
            let payload: Payload = serde_json::from_str(json).unwrap();
            error_text(&payload, outcome(&payload, &payload) == Some(Outcome::Failed))
        };
        for json in [
            r#"{"error":"boom"}"#,
            r#"{"result":"failed","stderr":"boom"}"#,
            r#"{"error":{"message":"boom","code":3}}"#,
            r#"{"error_message":"boom"}"#,
            r#"{"is_error":true,"message":"boom"}"#,
            r#"{"error":true,"result":"boom"}"#,
            r#"{"exit_code":2,"stderr":"boom"}"#,
            r#"{"status":"failed","reason":"boom"}"#,
            r#"{"status":"failed","output":"boom"}"#,
            r#"{"last_error":{"message":"boom"}}"#,
            r#"{"errors":["", "boom"]}"#,
        ] {
            assert_eq!(told(json).as_deref(), Some("boom"), "{json}");
        }
        // What a success says is no error, nor is a word for a failure its text.
        for json in [r#"{"success":true,"message":"all is well"}"#, r#"{"result":"failed"}"#, "{}"]
        {
            assert_eq!(told(json), None, "{json}");
        }
    }
}
