//! Moves of what a model is shown, and of files: rewinds and compactions.

use schemars::JsonSchema;
use serde::Serialize;
use stepwell::model::{Compacted, FileChanged, FileState, Scope};
use stepwell::{Message, Seq, SessionId};

/// A rewind that was done, or would be.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct Rewind {
    /// The session.
    pub id: SessionId,
    /// The last event that counts.
    pub to: Seq,
    /// What is moved.
    pub scope: Scope,
    /// The rewind that is taken back by this one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub undone: Option<Seq>,
    /// Was it done?
    pub done: bool,
    /// The event that ended it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub seq: Option<Seq>,
    /// The checkpoint that was made before it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub checkpoint: Option<String>,
    /// What the model is no longer shown.
    pub leaves: RewoundWork,
    /// What the model is shown again.
    pub returns: RewoundWork,
    /// What was done since the rewind that is taken back, and is set aside only by force.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub since: Option<WorkSince>,
    /// The files that are moved.
    pub files: Vec<MovedFile>,
    /// The files that stay as they are, and why.
    pub left: Vec<LeftFile>,
    /// The files that are in the way, and why.
    pub conflicts: Vec<LeftFile>,
}

/// A rewind that was cut off, and what finishing it would do.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct UnfinishedRewind {
    /// The session.
    pub id: SessionId,
    /// The last event that counts.
    pub to: Seq,
    /// What is moved.
    pub scope: Scope,
    /// Where the rewind began that was cut off.
    pub cut_off: Seq,
    /// Is it finished?
    pub done: bool,
    /// The files that are still to be moved.
    pub files: Vec<MovedFile>,
    /// The files that stay as they are, and why.
    pub left: Vec<LeftFile>,
}

/// Part of what a session did, that a rewind takes back.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub struct RewoundWork {
    /// Answers of a model, each with the calls that it asked for.
    pub steps: usize,
    /// All messages.
    pub messages: usize,
    /// Changes of planned tasks.
    #[serde(skip_serializing_if = "is_zero")]
    pub tasks: usize,
    /// Questions and answers of a discussion.
    #[serde(skip_serializing_if = "is_zero")]
    pub questions: usize,
    /// Moves to another phase.
    #[serde(skip_serializing_if = "is_zero")]
    pub phases: usize,
    /// Changes of the goal.
    #[serde(skip_serializing_if = "is_zero")]
    pub goals: usize,
    /// Compactions, and compactions that were undone.
    #[serde(skip_serializing_if = "is_zero")]
    pub compactions: usize,
    /// Answers of a person to what a run waited with.
    #[serde(skip_serializing_if = "is_zero")]
    pub answers: usize,
}

impl RewoundWork {
    /// Is it nothing?
    #[must_use]
    pub fn is_none(self) -> bool {
        self == Self::default()
    }

    /// What is left of it without a part of it.
    #[must_use]
    pub const fn without(self, part: Self) -> Self {
        Self {
            steps: self.steps - part.steps,
            messages: self.messages - part.messages,
            tasks: self.tasks - part.tasks,
            questions: self.questions - part.questions,
            phases: self.phases - part.phases,
            goals: self.goals - part.goals,
            compactions: self.compactions - part.compactions,
            answers: self.answers - part.answers,
        }
    }
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
fn is_zero(n: &usize) -> bool {
    *n == 0
}

/// What was done since a rewind.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct WorkSince {
    /// What was done.
    #[serde(flatten)]
    pub work: RewoundWork,
    /// Files that were changed.
    pub files: Vec<String>,
}

/// A file that a rewind moves.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct MovedFile {
    /// Where, relative to the workspace.
    pub path: String,
    /// What is done to it.
    pub action: MovedFileAction,
}

impl From<&FileChanged> for MovedFile {
    fn from(change: &FileChanged) -> Self {
        let action = match (&change.before, &change.after) {
            (_, FileState::Absent) => MovedFileAction::Remove,
            (FileState::File { blob: now, .. }, FileState::File { blob: then, .. })
                if now == then =>
            {
                MovedFileAction::Mode
            }
            _ => MovedFileAction::Restore,
        };
        Self { path: change.path.clone(), action }
    }
}

/// What a rewind does to a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum MovedFileAction {
    /// The file goes.
    Remove,
    /// Only its mode changes.
    Mode,
    /// It gets the contents that it had.
    Restore,
}

impl MovedFileAction {
    /// Its word.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Remove => "remove",
            Self::Mode => "mode",
            Self::Restore => "restore",
        }
    }
}

/// A file that a rewind does not move, and why.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct LeftFile {
    /// Where, relative to the workspace.
    pub path: String,
    /// Why the file was left as it is.
    pub why: String,
}

/// What a compaction did.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct Compaction {
    /// The session.
    pub id: SessionId,
    /// The compaction; null, if there was nothing to take out.
    pub compacted: Option<Compacted>,
    /// Were messages left out without a summary of them?
    pub truncated: bool,
    /// Was whoever runs the session asked to do it, before the model's next call?
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub asked: bool,
}

/// A compaction that was taken back.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct CompactionUndone {
    /// The session.
    pub id: SessionId,
    /// The compaction.
    pub undone: Seq,
    /// About how many tokens the model was shown before.
    pub tokens_before: u64,
    /// About how many it is shown now.
    pub tokens_after: u64,
}

/// What compactions hide from the model.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct CompactionDiff {
    /// The session.
    pub id: SessionId,
    /// What the model no longer sees.
    pub hidden: Vec<ViewMove>,
    /// What stands in its place.
    pub summaries: Vec<ViewMove>,
}

/// A message that is hidden, or stands in for others.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct ViewMove {
    /// The event.
    pub seq: Seq,
    /// The message.
    #[serde(flatten)]
    pub message: Message,
}
