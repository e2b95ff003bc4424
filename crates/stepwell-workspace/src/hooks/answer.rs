//! Hooks, answered whatever happens: no fault of ours reaches the agent that asks.

use std::io::Read;
use std::panic::{AssertUnwindSafe, catch_unwind};

use serde_json::{Value, json};
use stepwell::Stepwell;
use stepwell::model::Phase;
use stepwell::sessions::lifecycle::{self, Begin, Update};
use stepwell::sqlite::Access;
use stepwell_wire::{HookSample, HookStop};

use super::{Delegation, Log, Payload, not_stopped, pre_delegate, subagent_stop};
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

impl Workspace {
    /// Answers whoever is about to delegate a task, and notes it in the hooks' log.
    pub fn answer_pre_delegate(
        &self,
        payload: Result<Payload, String>,
    ) -> HookAnswer<stepwell_wire::Delegation> {
        const HOOK: &str = "pre-delegate";
        let payload = match payload {
            Ok(payload) => payload,
            Err(why) => {
                let answer = Delegation::no("invalid_json", None).answer;
                return self.without_payload(HOOK, answer, why);
            }
        };
        let asked = payload.clone();
        let done = guarded(|| match self.place.has_store() {
            false => Ok(Delegation::no("no_existing_session", Some(asked))),
            true => {
                let root = self.place.root.display().to_string();
                pre_delegate(&*self.existing(Access::Write)?, asked, self.delegating(&root))
            }
        });
        let (Delegation { answer, why }, fault) = match done {
            Ok(done) => (done, None),
            Err(fault) => (Delegation::no("error", Some(payload)), self.note_fault(HOOK, fault)),
        };
        let id = answer.agent_id.as_deref().unwrap_or("-");
        self.log_hook(&format!("{HOOK} {} {id} {why}", answer.reason));
        HookAnswer { answer, fault }
    }

    /// Ends the session of an agent that stopped, and notes it in the hooks' log.
    pub fn answer_subagent_stop(&self, payload: Result<Payload, String>) -> HookAnswer<HookStop> {
        const HOOK: &str = "subagent-stop";
        let payload = match payload {
            Ok(payload) => payload,
            Err(why) => return self.without_payload(HOOK, not_stopped("invalid_json", None), why),
        };
        let done = guarded(|| match self.place.has_store() {
            false => Ok(not_stopped("no_session", None)),
            true => subagent_stop(&*self.existing(Access::Write)?, &payload),
        });
        let (answer, fault) = match done {
            Ok(done) => (done, None),
            Err(fault) => {
                let named = payload.get("agent_id").and_then(Value::as_str);
                let answer = not_stopped("error", named.map(ToOwned::to_owned));
                (answer, self.note_fault(HOOK, fault))
            }
        };
        let id = answer.agent_id.as_deref().unwrap_or("-");
        self.log_hook(&format!("{HOOK} {} {id}", answer.reason));
        HookAnswer { answer, fault }
    }

    fn without_payload<T>(&self, hook: &str, answer: T, why: String) -> HookAnswer<T> {
        self.log_hook(&format!("{hook} invalid_json {why}"));
        HookAnswer { answer, fault: Some(HookFault::NoPayload(why)) }
    }

    fn note_fault(&self, hook: &str, why: String) -> Option<HookFault> {
        self.log_hook(&format!("{hook} error {why}"));
        Some(HookFault::Ours(why))
    }

    /// Writes to the hooks' log, without secrets: whoever calls a hook names its agent. A log that cannot be written is no reason to fail.
    fn log_hook(&self, says: &str) {
        if let Some(log) = Log::of(&self.place.store)
            && let Err(error) = log.write(self.now(), &self.redactor().redact(says))
        {
            tracing::warn!(%error, "hooks_log_not_written");
        }
    }

    /// What each hook answers to samples, over a store in memory that holds one agent to take up.
    ///
    /// # Errors
    /// If a hook fails.
    pub fn hook_samples(&self) -> Result<Vec<HookSample>> {
        let well = Stepwell::in_memory();
        let root = self.place.root.display().to_string();
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
                    pre_delegate(&well, input.clone(), self.delegating(&root))?.answer,
                ),
                _ => serde_json::to_value(subagent_stop(&well, &input)?),
            };
            let (hook, sample) = (hook.to_owned(), sample.to_owned());
            answered.push(HookSample { hook, sample, input, answer: answer.unwrap_or_default() });
        }
        Ok(answered)
    }
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
