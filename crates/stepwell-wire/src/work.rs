//! How a session's work stands: its goal, phase, tasks and questions.

use schemars::JsonSchema;
use serde::Serialize;
use stepwell::model::{Phase, PhaseSet, Question, Task, TaskStatus, Time};
use stepwell::work::Tasks;
use stepwell::{SessionId, Status, StopReason};

use crate::run::WaitingGate;

/// How a session's work stands.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct WorkState {
    /// The session.
    pub id: SessionId,
    /// How it stands.
    pub status: Status,
    /// Why it stopped; absent, if it did not.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stop_reason: Option<StopReason>,
    /// What stopped it, or what is left to do; absent, if nothing is.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// What the work is to achieve; null, if nobody said.
    pub goal: Option<String>,
    /// The phase of the work; null, if it has none.
    pub phase: Option<Phase>,
    /// The phases that can be moved to.
    pub next_phases: Vec<Phase>,
    /// How many tasks there are, and how they stand.
    pub progress: Progress,
    /// What was done last; empty, if nothing was.
    pub last_action: String,
    /// When the last action was.
    pub timestamp: Time,
    /// When it was last resumed; absent, if it never was.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub resumed_at: Option<Time>,
    /// What was asked, and answered.
    pub questions: Vec<Question>,
    /// What is planned.
    pub tasks: Vec<TaskInfo>,
    /// What waits for a human; absent, if nothing does.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub waits_for: Vec<WaitingGate>,
    /// How far guided work is; absent, if the session does other work.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub guided: Option<GuidedInfo>,
}

/// How far guided work is, beyond its phase and its tasks.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct GuidedInfo {
    /// How many drafts of the plan were made.
    pub drafts: u32,
    /// The tasks that were begun and are not over.
    pub at_work: Vec<TaskAtWork>,
    /// The last round of verification; absent before the first.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub verification: Option<VerificationRound>,
    /// What was committed; absent, if nothing was.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub commit: Option<String>,
}

/// A task that was begun and is not over.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct TaskAtWork {
    /// Its name within the session.
    pub id: String,
    /// Its place in the plan, from 1.
    pub number: usize,
    /// Which attempt at it was begun last, from 1.
    pub attempt: u32,
}

/// A round of verification.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct VerificationRound {
    /// Which one, from 1.
    pub round: u32,
    /// After which one the work stops with what is left. A resume goes on with as many again.
    pub most: u32,
    /// The checks that came to an end.
    pub checks: Vec<CheckResult>,
    /// What the reviewer said; absent, if nobody reviewed it yet.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub review: Option<ReviewResult>,
    /// What became of the program that was tried; absent, if none was.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub program: Option<CheckResult>,
    /// The tasks that it added to the plan.
    pub repairs: Vec<String>,
}

/// What a command came to that had to succeed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct CheckResult {
    /// The command line.
    pub command: String,
    /// `done`, `failed`, `timed_out`, or `denied` if it was not allowed to run.
    pub outcome: String,
}

/// What a reviewer said.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct ReviewResult {
    /// How much must be changed; 0, if it passes.
    pub issues: usize,
    /// What it says of the whole.
    pub summary: String,
}

/// How many tasks there are, and how they stand.
#[derive(Clone, Copy, Debug, Serialize, JsonSchema)]
pub struct Progress {
    /// All tasks.
    pub tasks: usize,
    /// Not begun.
    pub pending: usize,
    /// Begun.
    pub running: usize,
    /// Done.
    pub done: usize,
    /// Failed.
    pub failed: usize,
    /// Left out.
    pub skipped: usize,
    /// Failed for good.
    pub unrecoverable: usize,
}

impl From<&Tasks> for Progress {
    fn from(tasks: &Tasks) -> Self {
        Self {
            tasks: tasks.len(),
            pending: tasks.count(TaskStatus::Pending),
            running: tasks.count(TaskStatus::Running),
            done: tasks.count(TaskStatus::Done),
            failed: tasks.count(TaskStatus::Failed),
            skipped: tasks.count(TaskStatus::Skipped),
            unrecoverable: tasks.count(TaskStatus::Unrecoverable),
        }
    }
}

/// A planned task.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct TaskInfo {
    /// Its name within the session.
    pub id: String,
    /// Such as `create` or `modify`.
    pub action: String,
    /// What is to be done.
    pub description: String,
    /// Tasks that come first.
    pub deps: Vec<String>,
    /// How it stands.
    pub status: TaskStatus,
    /// The files that it is about.
    pub files: Vec<String>,
    /// What still comes first.
    pub waits_for: Vec<String>,
}

impl TaskInfo {
    /// A task of a plan.
    #[must_use]
    pub fn new(task: &Task, plan: &Tasks) -> Self {
        let waits_for = plan.waits_for(task);
        let Task { id, action, description, deps, status, files } = task.clone();
        Self { id, action, description, deps, status, files, waits_for }
    }
}

/// Which phase a session's work is in.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct PhaseInfo {
    /// The session.
    pub id: SessionId,
    /// The set of its phases.
    pub phases: PhaseSet,
    /// The phase.
    pub phase: Phase,
    /// The phases that can be moved to.
    pub next: Vec<Phase>,
    /// Can a session in this phase be resumed?
    pub resumable: bool,
}
