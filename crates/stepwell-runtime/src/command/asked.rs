//! What can be asked for.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

use serde::{Deserialize, Serialize};
use serde_json::Value;
use stepwell::Seq;
use stepwell::model::{Change, Phase, Scope, Task, TaskStatus};
use stepwell::sqlite::Access;
use stepwell::store::query::Filter;
use stepwell::work::TaskEdit;
use stepwell_formats::{Existing, Format, Length, Mode};
use stepwell_wire::SessionStatus;
use stepwell_workspace::handoff::HandOver;

use crate::inspect::Depth;
use crate::servers::ServerQuery;

/// Something that a user wants done or shown.
#[derive(Clone, Debug, PartialEq)]
#[expect(clippy::large_enum_variant, reason = "one of them is made for each line that is typed")]
pub enum Command {
    /// About one session: its id, a part of it, its label, or `@last`.
    Session(String, SessionCommand),
    /// Moves sessions to the trash, with their subagents' sessions.
    Delete(Vec<String>),
    /// Takes sessions out of the trash.
    Restore(Vec<String>),
    /// Lists the questions that wait.
    Gates(GatesWanted),
    /// Searches what was said.
    Search(SearchWanted),
    /// Lists recent models and favourites.
    Models,
    /// Lists the results of sessions that have ended.
    Ledger(LedgerWanted),
    /// Shows or changes settings.
    Config(ConfigCommand),
    /// Lists MCP servers.
    Servers(ServerQuery),
    /// Imports sessions of other agents.
    Import(ImportRequest),
}

/// Something that a user wants done to one session, or shown of it.
#[derive(Clone, Debug, PartialEq)]
pub enum SessionCommand {
    /// Shows what it is, what it spent and its last messages.
    Show(Depth),
    /// Shows or changes its label.
    Label(Change<String>),
    /// Changes its tags; without any, shows them.
    Tag {
        /// The tags that are added.
        add: BTreeSet<String>,
        /// The tags that are removed.
        remove: BTreeSet<String>,
    },
    /// Protects it from cleanup.
    Pin,
    /// Lets cleanup remove it again.
    Unpin,
    /// Keeps a message in the conversation when it is compacted.
    PinMessage(Seq),
    /// Lets compaction remove a message again.
    UnpinMessage(Seq),
    /// Lists its checkpoints.
    Checkpoints,
    /// Names its present point.
    Checkpoint {
        /// The checkpoint's name.
        name: String,
        /// What is remembered with it.
        metadata: BTreeMap<String, Value>,
    },
    /// Moves it back, or takes a move back.
    Rewind(MoveCommand),
    /// Finishes a rewind that was cut off; files that someone else changed since stay.
    FinishRewind,
    /// Makes a session that shares its past.
    Fork {
        /// The last point that is shared; absent, its end.
        at: Option<String>,
        /// The fork's label.
        label: Option<String>,
    },
    /// Shortens the conversation.
    Compact(Shortening),
    /// Takes the last compaction back.
    UndoCompaction,
    /// Shows what compactions removed, and the summaries in its place.
    CompactionDiff,
    /// Writes it to a file.
    Export(Export),
    /// Hands it over to another agent.
    HandOver {
        /// The other agent's format.
        agent: Format,
        /// Is it written?
        how: HandOver,
    },
    /// Shows what it did to files between two points.
    Diff {
        /// The first point; absent, its beginning.
        from: Option<String>,
        /// The last point; absent, its end.
        to: Option<String>,
    },
    /// Lists the versions of the files that it changed, or of one of them.
    Files(Option<String>),
    /// Shows what the model would be sent.
    Context,
    /// Shows the state of its work.
    State,
    /// Sets its goal; an empty one removes it.
    Goal(String),
    /// Notes a question about the work.
    Ask(String),
    /// Answers such a question.
    AnswerQuestion {
        /// The question's number.
        question: String,
        /// The answer.
        text: String,
    },
    /// Lists its tasks; only those of these statuses, if some are named.
    Tasks(Vec<TaskStatus>),
    /// Changes its tasks.
    ChangeTasks(TaskChange),
    /// Shows its phase.
    Phase,
    /// Moves it to another phase.
    EnterPhase(String),
}

impl SessionCommand {
    /// Moves to a phase.
    #[must_use]
    pub fn enter(phase: Phase) -> Self {
        Self::EnterPhase(phase.to_string())
    }

    /// How the store is opened for it.
    #[must_use]
    pub fn access(&self) -> Access {
        match self {
            Self::Show(_)
            | Self::Label(Change::Keep)
            | Self::Checkpoints
            | Self::Rewind(MoveCommand { dry_run: true, .. })
            | Self::CompactionDiff
            | Self::Export(_)
            | Self::HandOver { how: HandOver::DryRun, .. }
            | Self::Diff { .. }
            | Self::Files(_)
            | Self::Context
            | Self::State
            | Self::Tasks(_)
            | Self::Phase => Access::Read,
            Self::Tag { add, remove } if add.is_empty() && remove.is_empty() => Access::Read,
            _ => Access::Write,
        }
    }
}

/// A move of a session.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct MoveCommand {
    /// Where to.
    pub to: RewindTo,
    /// What is moved.
    pub scope: Scope,
    /// Are files overwritten that someone else changed since, and is later work set aside?
    pub force: bool,
    /// Is it only shown what would be done?
    pub dry_run: bool,
}

impl MoveCommand {
    /// A move of the conversation and the files, which leaves alone what others changed.
    #[must_use]
    pub const fn to(to: RewindTo) -> Self {
        Self { to, scope: Scope::Both, force: false, dry_run: false }
    }
}

/// Where a rewind leads.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RewindTo {
    /// To a point: a seq, a checkpoint's name, or `-N` for N steps back.
    Point(String),
    /// To what the user said last: all that was done about it is taken back.
    LastWords,
    /// The last rewind is taken back.
    Undo,
    /// The last undo is taken back.
    Redo,
}

/// How a conversation is shortened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shortening {
    /// A model writes a summary of the old messages, if there is one that can be asked.
    Summary,
    /// Old messages are left out.
    Truncation,
}

/// From where a path is meant that is not absolute.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Folder {
    /// From the folder of the process.
    #[default]
    Process,
    /// From the folder of the workspace.
    Workspace,
}

/// A session to be written to a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Export {
    /// The format.
    pub format: Format,
    /// The file or folder.
    pub path: PathBuf,
    /// From where the path is meant.
    pub folder: Folder,
    /// What is done with a file that is there already.
    pub existing: Existing,
    /// How much of a long conversation is written.
    pub length: Length,
}

/// A change of a session's tasks.
#[derive(Clone, Debug, PartialEq)]
pub enum TaskChange {
    /// A task is added; without an id it gets the next free number.
    Add(Task),
    /// A task is changed.
    Edit(String, TaskEdit),
    /// Tasks are added; those of the same id are replaced.
    Load(Vec<Task>),
}

/// Which questions are listed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct GatesWanted {
    /// Only those of this session.
    pub session: Option<String>,
    /// Those of all of the user's stores.
    pub everywhere: bool,
}

/// What is searched for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SearchWanted {
    /// The words.
    pub text: String,
    /// How many hits at most.
    pub limit: usize,
}

/// Which sessions' results are listed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LedgerWanted {
    /// Which sessions.
    pub filter: Filter,
    /// Only those of these statuses; empty, of any.
    pub statuses: Vec<SessionStatus>,
    /// Those of all of the user's stores.
    pub everywhere: bool,
}

/// What is shown or changed of the settings.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ConfigCommand {
    /// Shows all.
    List,
    /// Shows one.
    Get(String),
    /// Sets one.
    Set {
        /// Its key.
        key: String,
        /// Its value.
        value: String,
        /// Where it is kept.
        file: SettingsFile,
    },
    /// Removes one, so that the default counts again.
    Unset {
        /// Its key.
        key: String,
        /// Where it is kept.
        file: SettingsFile,
    },
}

/// Where a setting is kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SettingsFile {
    /// In the workspace's `stepwell.toml`.
    Workspace,
    /// In the user's own configuration.
    User,
}

/// What is imported.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ImportRequest {
    /// Files, folders and addresses of servers. Without any, the folders are searched in which the
    /// agents of this machine keep their sessions.
    pub paths: Vec<PathBuf>,
    /// From where paths are meant.
    pub folder: Folder,
    /// Only this format.
    pub from: Option<Format>,
    /// Is anything written?
    pub mode: Mode,
}

impl ImportRequest {
    /// What an import would do of all that is found on this machine.
    #[must_use]
    pub fn dry_run() -> Self {
        let (paths, folder, from) = (Vec::new(), Folder::Workspace, None);
        Self { paths, folder, from, mode: Mode::Look }
    }

    /// Imports a file or folder.
    #[must_use]
    pub fn of(path: PathBuf) -> Self {
        Self { paths: vec![path], mode: Mode::Write, ..Self::dry_run() }
    }
}
