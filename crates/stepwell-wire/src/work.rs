//! How a session's work stands: its goal, phase, tasks and questions.

use schemars::JsonSchema;
use serde::Serialize;
use stepwell::{Phase, PhaseSet, Question, SessionId, Status, Task, TaskStatus, Tasks, Time};

/// How a session's work stands.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct WorkState {
    /// The session.
    pub id: SessionId,
    /// How it stands.
    pub status: Status,
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
    /// When.
    pub timestamp: Time,
    /// When it was last resumed; absent, if it never was.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub resumed_at: Option<Time>,
    /// What was asked, and answered.
    pub questions: Vec<Question>,
    /// What is planned.
    pub tasks: Vec<TaskInfo>,
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
