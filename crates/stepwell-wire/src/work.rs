//! The state of a session's work: its goal, phase, tasks and questions.

use schemars::JsonSchema;
use serde::Serialize;
use stepwell::model::{Phase, PhaseSet, Question, Task, TaskStatus, Time};
use stepwell::work::Tasks;
use stepwell::{SessionId, Status, StopReason};

use crate::run::WaitingGate;

/// The state of a session's work.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct WorkState {
    /// The session.
    pub id: SessionId,
    /// Its status.
    pub status: Status,
    /// Why it stopped; absent, if it did not.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stop_reason: Option<StopReason>,
    /// The error that stopped it, or the remaining work; absent, if there is none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// The goal; null, if none was set.
    pub goal: Option<String>,
    /// The phase; null, if it has none.
    pub phase: Option<Phase>,
    /// The phases that can follow.
    pub next_phases: Vec<Phase>,
    /// The planned tasks by status.
    pub progress: Progress,
    /// The last action; empty, if there was none.
    pub last_action: String,
    /// When the last action happened.
    pub timestamp: Time,
    /// When it was last resumed; absent, if it never was.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub resumed_at: Option<Time>,
    /// The questions of the discussion, with answers.
    pub questions: Vec<Question>,
    /// The planned tasks.
    pub tasks: Vec<TaskInfo>,
    /// The questions that wait for a person; absent, if there are none.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub waits_for: Vec<WaitingGate>,
    /// The progress of guided work; absent for other work.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub guided: Option<GuidedInfo>,
}

/// The progress of guided work, beyond phase and tasks.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct GuidedInfo {
    /// The number of drafts of the plan.
    pub drafts: u32,
    /// The started tasks that are not finished.
    pub at_work: Vec<TaskAtWork>,
    /// The last verification round; absent before the first.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub verification: Option<VerificationRound>,
    /// The commit; absent, if nothing was committed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub commit: Option<String>,
}

/// A started task that is not finished.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct TaskAtWork {
    /// Its id within the session.
    pub id: String,
    /// Its place in the plan, from 1.
    pub number: usize,
    /// The number of its last attempt, from 1.
    pub attempt: u32,
}

/// A verification round.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct VerificationRound {
    /// Its number, from 1.
    pub round: u32,
    /// The last allowed round; then the work stops with what is left. A resume allows as many
    /// again.
    pub most: u32,
    /// The finished checks.
    pub checks: Vec<CheckResult>,
    /// The review; absent, if there is none yet.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub review: Option<ReviewResult>,
    /// The result of trying the program; absent, if there is none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub program: Option<CheckResult>,
    /// The tasks that this round added to the plan.
    pub repairs: Vec<String>,
}

/// The result of a check command.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct CheckResult {
    /// The command line.
    pub command: String,
    /// `done`, `failed`, `timed_out`, or `denied` if it was not allowed to run.
    pub outcome: String,
}

/// A review.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct ReviewResult {
    /// The number of required changes; 0, if it passes.
    pub issues: usize,
    /// The summary.
    pub summary: String,
}

/// The planned tasks by status.
#[derive(Clone, Copy, Debug, Serialize, JsonSchema)]
pub struct Progress {
    /// All tasks.
    pub tasks: usize,
    /// Not started.
    pub pending: usize,
    /// Started.
    pub running: usize,
    /// Done.
    pub done: usize,
    /// Failed.
    pub failed: usize,
    /// Skipped.
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
    /// Its id within the session.
    pub id: String,
    /// For example `create` or `modify`.
    pub action: String,
    /// What to do.
    pub description: String,
    /// Ids of tasks that must come first.
    pub deps: Vec<String>,
    /// Its status.
    pub status: TaskStatus,
    /// The files that it concerns.
    pub files: Vec<String>,
    /// The unfinished tasks among `deps`.
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

/// The phase of a session.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct PhaseInfo {
    /// The session.
    pub id: SessionId,
    /// The set of its phases.
    pub phases: PhaseSet,
    /// The phase.
    pub phase: Phase,
    /// The phases that can follow.
    pub next: Vec<Phase>,
    /// Can a session in this phase be resumed?
    pub resumable: bool,
}
