//! How a run ended.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use serde_json::Value;
use stepwell::model::{Estimate, Gate, Spent, Usage};
use stepwell::{Seq, SessionId, Status, StopReason};
use stepwell_agent::provider::Fault;
use stepwell_flow::Unwritten;

/// How a run ended, and what the session came to with it. Nothing in it holds a secret, except what
/// the model said last: [`output`](Self::output) is as it was said.
#[derive(Clone, Debug)]
pub struct RunReport {
    /// The session.
    pub session: SessionId,
    /// How it stands.
    pub status: Status,
    /// Why it stopped.
    pub reason: Option<StopReason>,
    /// What went wrong, if something did.
    pub error: Option<Failure>,
    /// The model's last words, as they were said.
    pub output: String,
    /// The same without secrets.
    pub redacted_output: String,
    /// Tools that were used in this run, each once.
    pub tools_used: Vec<String>,
    /// Files that were changed in this run, each once.
    pub files_modified: Vec<String>,
    /// The session's steps, over all of its runs.
    pub steps: u64,
    /// The model.
    pub model: String,
    /// How long this run took.
    pub took: Duration,
    /// What the session used, over all of its runs, with its subagents.
    pub spent: Spent,
    /// What calls among these may have cost whose price nobody said.
    pub estimate: Option<Estimate>,
    /// What each lane and each subagent used of that.
    pub by_source: BTreeMap<String, Spent>,
    /// The questions that wait, in the order in which they were asked.
    pub waiting: Vec<Gate>,
    /// What the session may cost in all.
    pub budget_total: Option<stepwell::model::Money>,
    /// The seq that it was at when it was resumed; absent, it is new.
    pub resumed_from: Option<Seq>,
    /// Was it finished before, so that nothing was done?
    pub was_done: bool,
    /// Can it be resumed? A session that is not saved cannot.
    pub saved: bool,
    /// What only flows have.
    pub flow: Option<FlowReport>,
}

/// What went wrong in a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    /// In words, without secrets.
    pub message: String,
    /// What to do about it, if a call of the model failed.
    pub fault: Option<Fault>,
    /// Why an artifact of a flow could not be written.
    pub unwritten: Option<Unwritten>,
    /// The flow's node that it happened at.
    pub node: Option<String>,
}

/// What only flows have.
#[derive(Clone, Debug)]
pub struct FlowReport {
    /// The flow's name.
    pub name: String,
    /// Its pattern.
    pub pattern: String,
    /// Its last output.
    pub output: Value,
    /// The files that were written, below [`folder`](Self::folder).
    pub artifacts: Vec<String>,
    /// Where artifacts go.
    pub folder: PathBuf,
    /// What each agent used, over all of the flow's runs.
    pub by_agent: BTreeMap<String, Usage>,
}
