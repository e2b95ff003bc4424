//! What would help against an error: what the user can do next.

use std::fmt;
use std::path::{Path, PathBuf};

use crate::model::{Gate, SessionId};

/// What would help against an error. Every error offers these, and each front end has its own words
/// for them: the command line names commands, an editor its options. The text of [`fmt::Display`]
/// fits every other.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Remedy {
    /// Do this with a session.
    Session(Action, SessionId),
    /// Look at what there is.
    List(Listing),
    /// Name one of these instead.
    Choose(Vec<String>),
    /// Give more of the session's id.
    MoreOfTheId,
    /// Answer one of these questions.
    Answer(Vec<GateChoice>),
    /// Name a model, such as this one. The variable would hold its key, and is not set yet.
    Model {
        /// Its name.
        name: String,
        /// The variable.
        key: Option<String>,
    },
    /// Set a variable of the environment.
    SetVariable(String),
    /// Set a key of the configuration.
    SetConfig {
        /// The key.
        key: &'static str,
        /// Its value.
        value: &'static str,
    },
    /// Give a flow's variables.
    GiveVariables(Vec<String>),
    /// Correct what this names: a file, or a part of the configuration or of a spec.
    Correct(String),
    /// Limit this run by other means.
    LimitRun,
    /// Choose when to be asked, which makes the session the user's own.
    ChooseMode,
    /// Begin the flow anew.
    BeginFlow,
    /// Make a store here, or set up the one that is named.
    MakeStore,
    /// Copy the store to another place.
    CopyStore,
    /// Use this store.
    UseStore(PathBuf),
    /// Continue the session where its files are.
    ResumeThere {
        /// The session.
        session: SessionId,
        /// The root of its workspace.
        root: PathBuf,
        /// Its store.
        store: PathBuf,
    },
    /// Repair the store.
    Repair,
    /// Replace what is there.
    Replace,
    /// Name another place.
    OtherPlace,
    /// Try again: somebody else is at it.
    Wait,
    /// Try again when the cause is removed.
    Retry,
    /// Install a newer version.
    Upgrade,
}

/// What a user can do with a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// Continue it.
    Resume,
    /// Say something in it.
    Say,
    /// Answer its question.
    Respond,
    /// Look at it.
    Show,
    /// Look at its events.
    ShowEvents,
    /// Look at its messages.
    ShowMessages,
    /// Look at which files it changed.
    ShowFiles,
    /// Look at its tasks.
    ShowTasks,
    /// Look at its place in an agent's life.
    ShowPhase,
    /// Ask whether its own agent should continue it.
    AskDriver,
    /// Watch what is recorded in it.
    Follow,
    /// Watch its run, and answer it.
    Attach,
    /// Stop its run.
    Stop,
    /// Restore it from the trash.
    Restore,
    /// Rewind it.
    Rewind,
    /// Rewind its conversation, without files.
    RewindChat,
    /// Finish the rewind that was cut off.
    FinishRewind,
    /// Check what is stored of it.
    Verify,
    /// Remove its label.
    Unlabel,
    /// Make a checkpoint.
    Checkpoint,
    /// Ask a question in it.
    Ask,
    /// Export it.
    Export,
    /// Hand it to an agent that continues flows.
    HandOver,
}

/// What can be listed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Listing {
    /// Sessions.
    Sessions,
    /// Questions that wait.
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
    /// What a spec may say.
    SpecKeys,
}

/// A question that waits, and what to type for it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GateChoice {
    /// A part of the session's id, and the question's name.
    pub typed: String,
    /// What is asked.
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
            Self::MoreOfTheId => f.write_str("give more of the id"),
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
            Self::BeginFlow => f.write_str("begin the flow anew"),
            Self::MakeStore => f.write_str("set the store up"),
            Self::CopyStore => f.write_str("copy the store"),
            Self::UseStore(store) => write!(f, "use the store {}", store.display()),
            Self::ResumeThere { session, root, .. } => {
                write!(f, "resume {session} in {}", root.display())
            }
            Self::Repair => f.write_str("repair the store"),
            Self::Replace => f.write_str("ask for it to be replaced"),
            Self::OtherPlace => f.write_str("name another place"),
            Self::Wait => f.write_str("try again later"),
            Self::Retry => f.write_str("remove the cause, then try again"),
            Self::Upgrade => f.write_str("install a newer version"),
        }
    }
}

impl Action {
    /// What it is, before the name of a session.
    const fn words(self) -> &'static str {
        match self {
            Self::Resume => "resume",
            Self::Say => "say something in",
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
            Self::HandOver => "hand over",
        }
    }
}

impl Listing {
    const fn words(self) -> &'static str {
        match self {
            Self::Sessions => "sessions",
            Self::Gates => "questions that wait",
            Self::Worktrees => "worktrees",
            Self::Settings => "settings",
            Self::Servers => "MCP servers",
            Self::Formats => "formats",
            Self::Variables => "variables of the flow",
            Self::SpecKeys => "keys of a spec",
        }
    }
}
