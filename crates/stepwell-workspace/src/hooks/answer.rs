//! Hooks, answered whatever happens: no fault of ours reaches the agent that asks.

use std::io::Read;
use std::panic::{AssertUnwindSafe, catch_unwind};

use serde_json::{Value, json};
use stepwell::Stepwell;
use stepwell::model::Phase;
use stepwell::sessions::lifecycle::{self, Begin, Update};
use stepwell::sqlite::Access;
use stepwell_wire::{HookSample, HookStop};

use super::{Delegation, Log, Payload, delegating, not_stopped, pre_delegate, subagent_stop};
use crate::error::Result;
use crate::workspace::Workspace;

/// The most that a hook reads.
const LIMIT: u64 = 50 << 20;

/// What a hook is told: a JSON object.
///
/// # Errors
/// Why there is none. It says where the text is wrong, not what it says: that may be a secret.
pub fn read_payload(from: impl Read) -> Result<Payload, String> {
    let mut text = Vec::new();
    from.take(LIMIT + 1).read_to_end(&mut text).map_err(|error| error.to_string())?;
    if text.len() as u64 > LIMIT {
        return Err(format!("more than {LIMIT} bytes"));
    }
    let text = text.strip_prefix(b"\xef\xbb\xbf").unwrap_or(&text);
    serde_json::from_slice(text).map_err(|error| {
        format!("{:?} error at line {} column {}", error.classify(), error.line(), error.column())
    })
}

/// The answer to a hook.
#[derive(Debug)]
pub struct HookAnswer<T> {
    /// What the hook prints.
    pub answer: T,
    /// What went wrong, if something did.
    pub fault: Option<HookFault>,
}

/// Why a hook's answer says nothing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum HookFault {
    /// It was told no JSON object.
    NoPayload(String),
    /// A fault of ours, which does not stop the agent.
    Ours(String),
}

/// Answers whoever is about to delegate a task, and notes it in the hooks' log.
pub fn answer_pre_delegate(
    workspace: &Workspace,
    payload: Result<Payload, String>,
) -> HookAnswer<stepwell_wire::Delegation> {
    const HOOK: &str = "pre-delegate";
    let payload = match payload {
        Ok(payload) => payload,
        Err(why) => {
            let answer = Delegation::no("invalid_json", None).answer;
            return without_payload(workspace, HOOK, answer, why);
        }
    };
    let asked = payload.clone();
    let done = guarded(|| match workspace.place.has_store() {
        false => Ok(Delegation::no("no_existing_session", Some(asked))),
        true => {
            let root = workspace.place.root.display().to_string();
            pre_delegate(
                &workspace.open_existing(Access::Write)?,
                asked,
                delegating(&workspace.config.settings, &root),
            )
        }
    });
    let (Delegation { answer, why }, fault) = match done {
        Ok(done) => (done, None),
        Err(fault) => (Delegation::no("error", Some(payload)), note_fault(workspace, HOOK, fault)),
    };
    let id = answer.agent_id.as_deref().unwrap_or("-");
    log_hook(workspace, &format!("{HOOK} {} {id} {why}", answer.reason));
    HookAnswer { answer, fault }
}

/// Ends the session of an agent that stopped, and notes it in the hooks' log.
pub fn answer_subagent_stop(
    workspace: &Workspace,
    payload: Result<Payload, String>,
) -> HookAnswer<HookStop> {
    const HOOK: &str = "subagent-stop";
    let payload = match payload {
        Ok(payload) => payload,
        Err(why) => {
            return without_payload(workspace, HOOK, not_stopped("invalid_json", None), why);
        }
    };
    let done = guarded(|| match workspace.place.has_store() {
        false => Ok(not_stopped("no_session", None)),
        true => subagent_stop(&workspace.open_existing(Access::Write)?, &payload),
    });
    let (answer, fault) = match done {
        Ok(done) => (done, None),
        Err(fault) => {
            let named = payload.get("agent_id").and_then(Value::as_str);
            let answer = not_stopped("error", named.map(ToOwned::to_owned));
            (answer, note_fault(workspace, HOOK, fault))
        }
    };
    let id = answer.agent_id.as_deref().unwrap_or("-");
    log_hook(workspace, &format!("{HOOK} {} {id}", answer.reason));
    HookAnswer { answer, fault }
}

fn without_payload<T>(workspace: &Workspace, hook: &str, answer: T, why: String) -> HookAnswer<T> {
    log_hook(workspace, &format!("{hook} invalid_json {why}"));
    HookAnswer { answer, fault: Some(HookFault::NoPayload(why)) }
}

fn note_fault(workspace: &Workspace, hook: &str, why: String) -> Option<HookFault> {
    log_hook(workspace, &format!("{hook} error {why}"));
    Some(HookFault::Ours(why))
}

/// Writes to the hooks' log, without secrets: whoever calls a hook names its agent. A log that cannot be written is no reason to fail.
fn log_hook(workspace: &Workspace, says: &str) {
    if let Some(log) = Log::of(&workspace.place.store)
        && let Err(error) = log.write(workspace.now(), &workspace.redactor().redact(says))
    {
        tracing::warn!(%error, "hooks_log_not_written");
    }
}

/// What each hook answers to samples, over a store in memory that holds one agent to take up.
///
/// # Errors
/// If a hook fails.
pub fn samples(workspace: &Workspace) -> Result<Vec<HookSample>> {
    let well = Stepwell::in_memory();
    let root = workspace.place.root.display().to_string();
    let begin = Begin {
        id: "agent-sample".parse().ok(),
        agent: "terraform-architect".to_owned(),
        purpose: "approval_workflow".to_owned(),
        workspace: root.clone(),
        metadata: [("task_id".to_owned(), "T001".into())].into(),
    };
    let id = lifecycle::create(&well, begin)?;
    let phase = Some(Phase::Approval);
    lifecycle::update(&well, &id, Update { phase, ..Update::default() })?;
    let named = json!({ "agent_name": "terraform-architect", "agent_id": id });
    let samples = [
        ("pre-delegate", "an agent's own", named.clone()),
        ("pre-delegate", "Claude Code's", claudes("PreToolUse")),
        ("subagent-stop", "an agent's own", named),
        ("subagent-stop", "Claude Code's", claudes("SubagentStop")),
    ];
    let mut answered = Vec::new();
    for (hook, sample, input) in samples {
        let Value::Object(input) = input else { continue };
        let answer = match hook {
            "pre-delegate" => serde_json::to_value(
                pre_delegate(&well, input.clone(), delegating(&workspace.config.settings, &root))?
                    .answer,
            ),
            _ => serde_json::to_value(subagent_stop(&well, &input)?),
        };
        let (hook, sample) = (hook.to_owned(), sample.to_owned());
        answered.push(HookSample { hook, sample, input, answer: answer.unwrap_or_default() });
    }
    Ok(answered)
}

/// What Claude Code tells of a delegation.
fn claudes(event: &str) -> Value {
    json!({
        "session_id": "sample-conversation", "transcript_path": "", "hook_event_name": event,
        "tool_name": "Task", "agent_type": "reviewer",
        "tool_input": { "subagent_type": "reviewer", "description": "review the change" },
    })
}

/// Does a hook's work. No fault in it, not even a panic, reaches the caller.
fn guarded<T>(work: impl FnOnce() -> Result<T>) -> Result<T, String> {
    match catch_unwind(AssertUnwindSafe(work)) {
        Ok(done) => done.map_err(|error| error.to_string()),
        Err(_) => Err("a fault in stepwell itself".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_payload_that_is_none_says_where_and_not_what() {
        let why = read_payload(&b"{\"token\": hunter2}"[..]).unwrap_err();
        assert_eq!(why, "Syntax error at line 1 column 11");
        assert!(read_payload(&b"\xef\xbb\xbf{}"[..]).unwrap().is_empty());
        assert!(read_payload(&b"[1]"[..]).is_err());
    }

    #[test]
    fn a_panic_in_a_hook_is_an_answer() {
        let done = guarded(|| -> Result<()> { panic!("boom") });
        assert_eq!(done, Err("a fault in stepwell itself".to_owned()));
    }
}
