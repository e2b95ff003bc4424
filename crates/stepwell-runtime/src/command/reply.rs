//! What a command found or did.

use stepwell::log::Head;
use stepwell::model::{Message, Phase, PhaseSet, Task};
use stepwell::store::Removal;
use stepwell::store::query::Hit;
use stepwell::work::Tasks;
use stepwell::work::compactions::ViewChange;
use stepwell::{SessionId, SessionInfo};
use stepwell_files::rewind::{CutOff, Done, Preview};
use stepwell_files::rewind_history::{Asked, Direction};
use stepwell_formats::{Format, Losses};
use stepwell_wire::{
    CheckpointInfo, CheckpointMade, Compaction, CompactionUndone, FileDiff, FileVersion, Forked,
    Label, McpServer, MessagePin, ModelView, Models, OpenGate, PhaseInfo, Pin, Tags, WorkState,
};
use stepwell_workspace::LedgerLines;
use stepwell_workspace::config::{Key, Source};
use stepwell_workspace::handoff::Handed;

use super::import::ImportReport;
use super::page::SessionPage;

/// What a command found or did, for front ends to word.
#[derive(Debug)]
#[expect(missing_docs, reason = "each is named as the command that it answers")]
#[expect(clippy::large_enum_variant, reason = "one of them is made for each command")]
pub enum Reply {
    Details(Box<SessionPage>),
    Label(Label),
    Tags(Tags),
    Pin(Pin),
    MessagePin(MessagePinned),
    Checkpoints(SessionId, Vec<CheckpointInfo>),
    CheckpointMade(CheckpointMade),
    Rewind(Box<MoveReply>),
    RewindFinished {
        id: SessionId,
        was_cut_off: bool,
    },
    Forked(Forked),
    Compaction(Box<CompactionReply>),
    CompactionUndone(CompactionUndone),
    /// There was no compaction to take back.
    NoCompaction(SessionId),
    CompactionDiff(SessionId, Vec<ViewChange>),
    Exported(Box<Exported>),
    HandedOver(Box<Handed>),
    Diff(Vec<FileDiff>),
    Files(FilesReply),
    Context(Box<ModelView>),
    State(Box<WorkReply>),
    Tasks(TasksReply),
    TasksChanged(TasksReply),
    Phase(PhaseReply),
    Deleted {
        /// The sessions that were named.
        asked: Vec<SessionId>,
        removal: Removal,
        /// For how many days they can be restored.
        days: u64,
    },
    Restored(Removal),
    Gates(Vec<OpenGate>),
    Found(Vec<Hit>),
    Models(Models),
    Ledger(LedgerLines),
    Settings(Vec<SettingShown>),
    Setting(SettingReply),
    Servers {
        servers: Vec<McpServer>,
        /// The file in which the user names servers.
        named_in: Option<std::path::PathBuf>,
    },
    Imported(Box<ImportReport>),
}

/// A message that was pinned, or is no longer.
#[derive(Clone, Debug)]
pub struct MessagePinned {
    /// The answer for programs.
    pub answer: MessagePin,
    /// The message, if it was pinned.
    pub message: Option<Message>,
    /// Is it shown to the model now? One that was compacted or rewound is not.
    pub is_shown: bool,
}

/// A session that was moved, or would be.
#[derive(Clone, Debug)]
pub struct MoveReply {
    /// The session.
    pub id: SessionId,
    /// Where it goes, and what is moved.
    pub asked: Asked,
    /// Which way it goes.
    pub way: Direction,
    /// The session before the move.
    pub info: SessionInfo,
    /// What came of it.
    pub outcome: MoveOutcome,
}

/// What came of a move.
#[derive(Clone, Debug)]
pub enum MoveOutcome {
    /// This would be done.
    Previewed(Preview),
    /// It was done, or something is in its way.
    Tried(Done),
    /// A rewind was cut off before: this is left to do of it.
    CutOff(Option<CutOff>),
}

/// A conversation that was shortened.
#[derive(Clone, Debug)]
pub struct CompactionReply {
    /// The answer for programs.
    pub answer: Compaction,
    /// The session before it.
    pub head: Head,
    /// How many tokens of the newest messages always stay.
    pub keeps: u64,
}

/// A session that was written to a file.
#[derive(Clone, Debug)]
pub struct Exported {
    /// The file or folder.
    pub path: std::path::PathBuf,
    /// Its format.
    pub format: Format,
    /// What was written.
    pub written: stepwell_formats::Exported,
}

impl Exported {
    /// What the format cannot hold.
    #[must_use]
    pub const fn losses(&self) -> &Losses {
        &self.written.losses
    }
}

/// The versions of files.
#[derive(Clone, Debug)]
pub struct FilesReply {
    /// The session.
    pub info: SessionInfo,
    /// The versions, the oldest first.
    pub versions: Vec<FileVersion>,
}

/// The state of a session's work.
#[derive(Clone, Debug)]
pub struct WorkReply {
    /// The state.
    pub state: WorkState,
    /// The tasks.
    pub tasks: Tasks,
}

/// Tasks of a session.
#[derive(Clone, Debug)]
pub struct TasksReply {
    /// The session.
    pub id: SessionId,
    /// All of its tasks.
    pub all: Tasks,
    /// Those that were asked for, or that were changed.
    pub chosen: Vec<Task>,
}

/// The phase of a session.
#[derive(Clone, Debug)]
pub enum PhaseReply {
    /// It is this one.
    Is(PhaseInfo),
    /// The session has no phases.
    NoPhases(SessionId),
    /// The set of the session's phases has none of that name.
    Unknown {
        /// The session.
        id: SessionId,
        /// The name.
        name: String,
        /// The set.
        set: PhaseSet,
    },
    /// The session cannot move to that phase from where it is.
    Illegal {
        /// The session.
        id: SessionId,
        /// Where it is.
        from: Phase,
        /// The phase that was asked for.
        to: Phase,
        /// The phases that it can move to.
        legal: Vec<Phase>,
    },
}

/// A setting, and where its value comes from.
#[derive(Clone, Debug)]
pub struct SettingShown {
    /// Its name.
    pub key: String,
    /// Its value, for programs.
    pub value: serde_json::Value,
    /// Its value, for people.
    pub text: String,
    /// Where it comes from.
    pub source: Source,
}

/// One setting, shown or changed.
#[derive(Clone, Debug)]
pub enum SettingReply {
    /// It is this.
    Is(SettingShown),
    /// It was set in a file.
    Set(SettingShown),
    /// It was removed from a file, or was not in it.
    Unset {
        /// Its name.
        key: String,
        /// Was it there?
        was_set: bool,
        /// The file.
        file: std::path::PathBuf,
    },
    /// This value counts only in the user's own configuration.
    OnlyUsers(&'static Key),
}
