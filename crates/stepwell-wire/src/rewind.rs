//! Rewinds and compactions.

use schemars::JsonSchema;
use serde::Serialize;
use stepwell::model::{Compacted, FileChanged, FileState, Scope};
use stepwell::{Message, Seq, SessionId};

/// A rewind, done or previewed.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct Rewind {
    /// The session.
    pub id: SessionId,
    /// Its target: the last event that counts afterwards.
    pub to: Seq,
    /// Conversation, files, or both.
    pub scope: Scope,
    /// The rewind that this one undoes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub undone: Option<Seq>,
    /// Was it done?
    pub done: bool,
    /// The event at its end.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub seq: Option<Seq>,
    /// The checkpoint in front of it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub checkpoint: Option<String>,
    /// Work that leaves the model's view.
    pub leaves: RewoundWork,
    /// Work that comes back into it.
    pub returns: RewoundWork,
    /// Work since the rewind that is being undone; it is only set aside by force.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub since: Option<WorkSince>,
    /// The files that move.
    pub files: Vec<MovedFile>,
    /// The files that stay, with reasons.
    pub left: Vec<LeftFile>,
    /// The conflicting files, with reasons.
    pub conflicts: Vec<LeftFile>,
}

/// An interrupted rewind, and the effect of finishing it.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct UnfinishedRewind {
    /// The session.
    pub id: SessionId,
    /// Its target: the last event that counts afterwards.
    pub to: Seq,
    /// Conversation, files, or both.
    pub scope: Scope,
    /// Where the interrupted rewind began.
    pub cut_off: Seq,
    /// Was it finished?
    pub done: bool,
    /// The files that still have to move.
    pub files: Vec<MovedFile>,
    /// The files that stay, with reasons.
    pub left: Vec<LeftFile>,
}

/// A part of a session's work that a rewind affects.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub struct RewoundWork {
    /// Answers of a model, each with its calls.
    pub steps: usize,
    /// All messages.
    pub messages: usize,
    /// Changes of planned tasks.
    #[serde(skip_serializing_if = "is_zero")]
    pub tasks: usize,
    /// Questions and answers of a discussion.
    #[serde(skip_serializing_if = "is_zero")]
    pub questions: usize,
    /// Changes of the phase.
    #[serde(skip_serializing_if = "is_zero")]
    pub phases: usize,
    /// Changes of the goal.
    #[serde(skip_serializing_if = "is_zero")]
    pub goals: usize,
    /// Compactions and their undos.
    #[serde(skip_serializing_if = "is_zero")]
    pub compactions: usize,
    /// Answers to questions of a run.
    #[serde(skip_serializing_if = "is_zero")]
    pub answers: usize,
}

impl RewoundWork {
    /// Is it empty?
    #[must_use]
    pub fn is_none(self) -> bool {
        self == Self::default()
    }

    /// This work minus a part of it.
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

/// Work since a rewind.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct WorkSince {
    /// The work.
    #[serde(flatten)]
    pub work: RewoundWork,
    /// The changed files.
    pub files: Vec<String>,
}

/// A file that a rewind moves.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct MovedFile {
    /// The path, relative to the workspace.
    pub path: String,
    /// The action.
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
    /// The file is removed.
    Remove,
    /// Only its mode changes.
    Mode,
    /// The file gets an earlier content.
    Restore,
}

impl MovedFileAction {
    /// Its name in JSON.
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
    /// The path, relative to the workspace.
    pub path: String,
    /// The reason.
    pub why: String,
}

/// The result of a compaction.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct Compaction {
    /// The session.
    pub id: SessionId,
    /// The compaction; null, if there was nothing to compact.
    pub compacted: Option<Compacted>,
    /// Were messages dropped without a summary?
    pub truncated: bool,
    /// Was the request left to the session's runner, for the model's next call?
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub asked: bool,
}

/// A compaction that was undone.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct CompactionUndone {
    /// The session.
    pub id: SessionId,
    /// The compaction.
    pub undone: Seq,
    /// The approximate tokens of the view before.
    pub tokens_before: u64,
    /// The approximate tokens of the view now.
    pub tokens_after: u64,
}

/// The messages that compactions hide from the model.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct CompactionDiff {
    /// The session.
    pub id: SessionId,
    /// The hidden messages.
    pub hidden: Vec<ViewMove>,
    /// The summaries in their place.
    pub summaries: Vec<ViewMove>,
}

/// A hidden message, or a summary.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct ViewMove {
    /// The event.
    pub seq: Seq,
    /// The message.
    #[serde(flatten)]
    pub message: Message,
}
