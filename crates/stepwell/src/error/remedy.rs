//! What a user can do about an error.

use std::fmt;
use std::path::{Path, PathBuf};

use crate::model::{Gate, SessionId};

/// What a user can do about an error. Each front end words these for itself: the command line as
/// commands, an editor as options. [`fmt::Display`] is for all others.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Remedy {
    /// An action on a session.
    Session(Action, SessionId),
    /// List what exists.
    List(Listing),
    /// Choose one of these names.
    Choose(Vec<String>),
    /// Type more of the session's id.
    MoreOfTheId,
    /// Answer one of these questions.
    Answer(Vec<GateChoice>),
    /// Choose a model, such as this one.
    Model {
        /// The model's name.
        name: String,
        /// The environment variable for its API key, if it is not set yet.
        key: Option<String>,
    },
    /// Set an environment variable.
    SetVariable(String),
    /// Set a configuration key.
    SetConfig {
        /// The key.
        key: &'static str,
        /// Its value.
        value: &'static str,
    },
    /// Set a flow's variables.
    GiveVariables(Vec<String>),
    /// Correct this: a file, or a part of the configuration or of a spec.
    Correct(String),
    /// Limit the run in another way.
    LimitRun,
    /// Choose a mode. The session is then the user's own.
    ChooseMode,
    /// Start the flow again from the beginning.
    BeginFlow,
    /// Create a store here, or set up the named one.
    MakeStore,
    /// Copy the store to another place.
    CopyStore,
    /// Use this store.
    UseStore(PathBuf),
    /// Resume the session in the folder where its files are.
    ResumeThere {
        /// The session.
        session: SessionId,
        /// Its workspace.
        root: PathBuf,
        /// Its store.
        store: PathBuf,
    },
    /// Repair the store.
    Repair,
    /// Ask for replacement of what exists.
    Replace,
    /// Name another folder or file.
    OtherPlace,
    /// Try again later: another process is using it.
    Wait,
    /// Remove the cause, then try again.
    Retry,
    /// Install a newer version.
    Upgrade,
}

/// An action on a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// Resume it.
    Resume,
    /// Send it a message.
    Say,
    /// Answer its question.
    Respond,
    /// Show it.
    Show,
    /// Show its events.
    ShowEvents,
    /// Show its messages.
    ShowMessages,
    /// Show which files it changed.
    ShowFiles,
    /// Show its tasks.
    ShowTasks,
    /// Show its phase.
    ShowPhase,
    /// Ask whether its external agent can resume it.
    AskDriver,
    /// Watch its log.
    Follow,
    /// Attach to its run.
    Attach,
    /// Stop its run.
    Stop,
    /// Restore it from the trash.
    Restore,
    /// Rewind it.
    Rewind,
    /// Rewind the conversation, and leave the files.
    RewindChat,
    /// Finish a rewind that was interrupted.
    FinishRewind,
    /// Verify its recorded bytes.
    Verify,
    /// Remove its label.
    Unlabel,
    /// Make a checkpoint.
    Checkpoint,
    /// Ask a question in it.
    Ask,
    /// Export it.
    Export,
    /// Hand it off to an agent that can resume flows.
    HandOver,
}

/// What can be listed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Listing {
    /// Sessions.
    Sessions,
    /// Open questions.
    Gates,
    /// Worktrees.
    Worktrees,
    /// Settings.
    Settings,
    /// MCP servers.
    Servers,
    /// Formats of other agents' sessions.
    Formats,
    /// Variables of a flow.
    Variables,
    /// Keys of a spec.
    SpecKeys,
}

/// An open question, and what to type to answer it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GateChoice {
    /// The session's id and the question's name.
    pub typed: String,
    /// The question's text.
    pub prompt: String,
}

impl Remedy {
    /// Answer one of these questions of a session.
    pub fn answer<'a>(session: &SessionId, open: impl IntoIterator<Item = &'a Gate>) -> Self {
        let choice = |gate: &Gate| GateChoice {
            typed: format!("{session}/{}", gate.id),
            prompt: gate.prompt.clone(),
        };
        Self::Answer(open.into_iter().map(choice).collect())
    }

    /// Correct a file.
    #[must_use]
    pub fn correct(path: &Path) -> Self {
        Self::Correct(path.display().to_string())
    }
}

impl fmt::Display for Remedy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Session(action, id) => write!(f, "{} {id}", action.words()),
            Self::List(listing) => write!(f, "list the {}", listing.words()),
            Self::Choose(names) => write!(f, "expected one of: {}", names.join(", ")),
            Self::MoreOfTheId => f.write_str("type more of the id"),
            Self::Answer(open) => {
                let names: Vec<&str> = open.iter().map(|it| it.typed.as_str()).collect();
                write!(f, "answer one of: {}", names.join(", "))
            }
            Self::Model { name, key: Some(key) } => {
                write!(f, "name the model {name}, and set {key}")
            }
            Self::Model { name, key: None } => write!(f, "name the model {name}"),
            Self::SetVariable(name) => write!(f, "set {name}"),
            Self::SetConfig { key, value } => write!(f, "set {key} to {value}"),
            Self::GiveVariables(names) => write!(f, "give {}", names.join(", ")),
            Self::Correct(what) => write!(f, "correct {what}"),
            Self::LimitRun => f.write_str("limit the tokens of this run"),
            Self::ChooseMode => f.write_str("choose a mode"),
            Self::BeginFlow => f.write_str("start the flow again"),
            Self::MakeStore => f.write_str("create the store"),
            Self::CopyStore => f.write_str("copy the store"),
            Self::UseStore(store) => write!(f, "use the store {}", store.display()),
            Self::ResumeThere { session, root, .. } => {
                write!(f, "resume {session} in {}", root.display())
            }
            Self::Repair => f.write_str("repair the store"),
            Self::Replace => f.write_str("ask to replace it"),
            Self::OtherPlace => f.write_str("name another file or folder"),
            Self::Wait => f.write_str("try again later"),
            Self::Retry => f.write_str("remove the cause, then try again"),
            Self::Upgrade => f.write_str("install a newer version"),
        }
    }
}

impl Action {
    /// The words before the session's id.
    const fn words(self) -> &'static str {
        match self {
            Self::Resume => "resume",
            Self::Say => "send a message to",
            Self::Respond => "answer the question of",
            Self::Show => "show",
            Self::ShowEvents => "show the events of",
            Self::ShowMessages => "show the messages of",
            Self::ShowFiles => "show the files of",
            Self::ShowTasks => "show the tasks of",
            Self::ShowPhase => "show the phase of",
            Self::AskDriver => "ask the agent of",
            Self::Follow | Self::Attach => "follow",
            Self::Stop => "stop",
            Self::Restore => "restore",
            Self::Rewind => "rewind",
            Self::RewindChat => "rewind only the conversation of",
            Self::FinishRewind => "finish the rewind of",
            Self::Verify => "verify",
            Self::Unlabel => "remove the label of",
            Self::Checkpoint => "make a checkpoint of",
            Self::Ask => "ask a question in",
            Self::Export => "export",
            Self::HandOver => "hand off",
        }
    }
}

impl Listing {
    const fn words(self) -> &'static str {
        match self {
            Self::Sessions => "sessions",
            Self::Gates => "open questions",
            Self::Worktrees => "worktrees",
            Self::Settings => "settings",
            Self::Servers => "MCP servers",
            Self::Formats => "formats",
            Self::Variables => "variables of the flow",
            Self::SpecKeys => "keys of a spec",
        }
    }
}
