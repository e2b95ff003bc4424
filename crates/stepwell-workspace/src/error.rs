//! What can go wrong here, and what the caller should do about it.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use stepwell::SessionId;

/// The result of everything that can fail here.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// What went wrong, naming the thing and the place.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The store said so.
    #[error(transparent)]
    Store(#[from] stepwell::Error),
    /// Sessions of other agents could not be read or written.
    #[error(transparent)]
    Formats(#[from] stepwell_formats::Error),
    /// Nobody knows where another agent would look for a session.
    #[error("it is not known where {format} would look for the session")]
    NoHandoff {
        /// The other agent's format.
        format: &'static str,
    },
    /// A session says nothing that another agent could go on with.
    #[error("{session} has no conversation that {format} could go on with")]
    NothingToHandOver {
        /// The session.
        session: SessionId,
        /// The other agent's format.
        format: &'static str,
        /// Does it run a flow?
        is_flow: bool,
    },
    /// A team's database was never set up for sessions.
    #[error(transparent)]
    TeamStoreNotSetUp(stepwell::Error),
    /// What names a store looks like an address and is none.
    #[error(transparent)]
    Address(stepwell::Error),
    /// A team's store is not backed up from here.
    #[error("a team's store is backed up with its server")]
    ServersBackup,
    /// A team's store is not restored from here.
    #[error("a team's store is restored with its server")]
    ServersRestore,
    /// There is no backup to restore.
    #[error("{}: there is no such file", path.display())]
    NoBackup {
        /// Where it should be.
        path: PathBuf,
    },
    /// A backup is damaged: there may be another, and no store of the user's is concerned.
    #[error("the backup {} is damaged: {what}", path.display())]
    DamagedBackup {
        /// The backup.
        path: PathBuf,
        /// What is wrong with it.
        what: String,
    },
    /// A store is where one was to be made.
    #[error("there is a store in {} already", store.display())]
    StoreInTheWay {
        /// The store.
        store: PathBuf,
    },
    /// Sessions run in a store that was to be replaced.
    #[error("{} in this store", running(*sessions))]
    StoreInUse {
        /// How many.
        sessions: u64,
    },
    /// The folder that the process works in is gone.
    #[error("the current folder is gone")]
    NoFolder,
    /// A name means no session.
    #[error("no session matches {name:?}")]
    NoMatch {
        /// The name.
        name: String,
        /// Where it means one.
        lies: Lies,
    },
    /// A session works in a folder that is none of this store's worktrees.
    #[error("{session} works in {folder}, which is no worktree of this store")]
    ForeignFolder {
        /// The session.
        session: SessionId,
        /// The folder that it names.
        folder: String,
    },
    /// The worktree that a session works in was removed.
    #[error("the worktree of {session} is gone: {folder}")]
    WorktreeGone {
        /// The session.
        session: SessionId,
        /// Where it was.
        folder: String,
    },
    /// A removed worktree belongs to another repository than this folder's.
    #[error(
        "the worktree of {session} was removed, and is one of {}, not of this folder's repository",
        root.display()
    )]
    WorktreeElsewhere {
        /// The session that works in it.
        session: SessionId,
        /// The workspace that it grew out of.
        root: PathBuf,
        /// The store that the session is in.
        store: PathBuf,
    },
    /// A worktree could not be brought back.
    #[error("{session} cannot go on: {why}")]
    WorktreeNotRestored {
        /// The session that works in it.
        session: SessionId,
        /// What git said.
        why: String,
    },
    /// A file of the user's could not be read or written.
    #[error("{}: {source} while {doing}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// What was being done with it.
        doing: &'static str,
        /// Why it failed.
        source: io::Error,
    },
    /// Another agent's settings cannot be understood.
    #[error("{}: {source}; it was left as it is", path.display())]
    HookSettings {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        source: serde_json::Error,
    },
    /// The configuration is wrong.
    #[error("{at}: {why}")]
    Config {
        /// Where it is wrong.
        at: ConfigPlace,
        /// What is wrong there.
        why: String,
        /// What would help.
        remedy: Option<Box<Remedy>>,
    },
    /// A value does not fit its setting.
    #[error("{key} = {value}: {why}")]
    Value {
        /// The setting.
        key: &'static str,
        /// The value, unless it may be secret.
        value: String,
        /// Why it does not fit.
        why: String,
    },
    /// Another agent's settings cannot be changed as was asked.
    #[error("{}: {why}; it was left as it is", path.display())]
    ClientSettings {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        why: String,
    },
    /// The address of a store is to go into another program's settings, with the password in it.
    #[error(
        "the store's address has a password, which does not belong in another program's settings"
    )]
    PasswordInAddress,
    /// Prices in the configuration are none.
    #[error("{0}")]
    Prices(String),
    /// Only a team's store keeps for itself how long it keeps sessions.
    #[error("this store is in a folder, and settings of your own decide")]
    RetentionIsSetting,
    /// A team's store is another role's to change.
    #[error("only the store's owner, role {role}, can change its retention")]
    NotStoreOwner {
        /// The owner.
        role: String,
    },
    /// The file with the user's recent models cannot be understood.
    #[error("{}: {source}", path.display())]
    RecentModels {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        source: serde_json::Error,
    },
}

/// Where a name means a session that means none here.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Lies {
    /// It is not known.
    Nowhere,
    /// There is no store to look in.
    NoStoreHere,
    /// In the trash.
    InTrash(SessionId),
    /// Not in the trash, where it was looked for.
    NotInTrash(SessionId),
    /// Nowhere: it was erased, and left this row in the ledger.
    Erased(SessionId),
    /// In another store of the user's.
    InStore(PathBuf),
}

/// Where in the configuration something is wrong.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ConfigPlace {
    /// A file, as a whole or in one of its lines.
    File {
        /// The file.
        path: PathBuf,
        /// The line, from 1.
        line: Option<usize>,
    },
    /// A variable of the environment.
    Variable(String),
    /// The environment as a whole.
    Environment,
    /// A setting that was given for this one time.
    Override,
}

fn running(sessions: u64) -> String {
    match sessions {
        1 => "1 session runs".to_owned(),
        n => format!("{n} sessions run"),
    }
}

impl fmt::Display for ConfigPlace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::File { path, line: None } => write!(f, "{}", path.display()),
            Self::File { path, line: Some(line) } => write!(f, "{} line {line}", path.display()),
            Self::Variable(name) => f.write_str(name),
            Self::Environment => f.write_str("the environment"),
            Self::Override => f.write_str("the given settings"),
        }
    }
}

/// What would help. A front end says it in its own words: the command line with commands,
/// a server with routes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Remedy {
    /// Set the team's database up, if the role may.
    SetUpTeamStore,
    /// Name a store by an address without a password, which is given elsewhere.
    LeavePasswordOut,
    /// Write the address of a team's store as one.
    WriteAddress,
    /// Back the server up, or copy the store to a folder.
    BackUpServer,
    /// Restore the server, or copy a store to it.
    RestoreServer,
    /// Replace the store, or restore elsewhere.
    ReplaceStore,
    /// Stop the sessions that run.
    StopSessions,
    /// Look at the sessions that there are.
    ListSessions,
    /// Make a store here.
    MakeStore,
    /// Restore the session from the trash.
    Restore(SessionId),
    /// Look outside of the trash.
    LookOutsideTrash(SessionId),
    /// Look at the row that an erased session left in the ledger.
    ShowRow(SessionId),
    /// Use that store.
    UseStore(PathBuf),
    /// Rewind the conversation and leave files alone.
    RewindOnlyChat(SessionId),
    /// Bring the session's worktree back by running in it.
    BringWorktreeBack(SessionId),
    /// Resume the session in another workspace.
    ResumeThere {
        /// The session.
        session: SessionId,
        /// That workspace's root.
        root: PathBuf,
        /// The session's store.
        store: PathBuf,
    },
    /// Look at the session.
    ShowSession(SessionId),
    /// Hand the flow over to an agent that goes on with flows.
    HandOverFlow(SessionId),
    /// Say where the user's home is.
    SetHome,
    /// Look at the worktrees that there are.
    ListWorktrees,
    /// Look at the settings that there are.
    ListSettings,
    /// Write this in its place.
    Write(String),
    /// Mend the file with the recent models, or remove it.
    MendRecentModels,
}

/// What the caller should do about an error.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ErrorKind {
    /// What the store's own kind of error asks for.
    Store(stepwell::ErrorKind),
    /// The configuration must be mended first.
    Config,
    /// What was asked is wrong; ask differently.
    Invalid,
    /// A name or an address is written wrongly.
    Misspelt,
    /// The named thing is not there; name another.
    Absent,
    /// One of our own files is broken; mend or remove it.
    Damaged,
    /// The machine failed, or a file is not the user's to read or write.
    Io,
}

impl Error {
    /// What the caller should do.
    #[must_use]
    pub fn kind(&self) -> ErrorKind {
        match self {
            Self::Store(error) | Self::TeamStoreNotSetUp(error) => ErrorKind::Store(error.kind()),
            Self::Address(_) | Self::RetentionIsSetting => ErrorKind::Misspelt,
            Self::Formats(error) => ErrorKind::Store(error.kind()),
            Self::NoFolder
            | Self::NoMatch { .. }
            | Self::NoHandoff { .. }
            | Self::NoBackup { .. } => ErrorKind::Absent,
            Self::StoreInUse { .. } => ErrorKind::Store(stepwell::ErrorKind::Busy),
            Self::ServersBackup
            | Self::ServersRestore
            | Self::StoreInTheWay { .. }
            | Self::NotStoreOwner { .. }
            | Self::NothingToHandOver { .. }
            | Self::HookSettings { .. }
            | Self::ForeignFolder { .. }
            | Self::WorktreeGone { .. }
            | Self::WorktreeElsewhere { .. }
            | Self::WorktreeNotRestored { .. }
            | Self::ClientSettings { .. }
            | Self::PasswordInAddress
            | Self::Value { .. } => ErrorKind::Invalid,
            Self::File { .. } => ErrorKind::Io,
            Self::Config { .. } | Self::Prices(_) => ErrorKind::Config,
            Self::RecentModels { .. } | Self::DamagedBackup { .. } => ErrorKind::Damaged,
        }
    }

    /// What would help, if that is known.
    #[must_use]
    pub fn remedy(&self) -> Option<Remedy> {
        Some(match self {
            Self::NoHandoff { .. } => Remedy::SetHome,
            Self::NothingToHandOver { session, is_flow: true, .. } => {
                Remedy::HandOverFlow(session.clone())
            }
            Self::NothingToHandOver { session, .. } => Remedy::ShowSession(session.clone()),
            Self::TeamStoreNotSetUp(_) => Remedy::SetUpTeamStore,
            Self::Address(_) => Remedy::WriteAddress,
            Self::PasswordInAddress => Remedy::LeavePasswordOut,
            Self::ServersBackup => Remedy::BackUpServer,
            Self::ServersRestore => Remedy::RestoreServer,
            Self::StoreInTheWay { .. } => Remedy::ReplaceStore,
            Self::StoreInUse { .. } => Remedy::StopSessions,
            Self::NoMatch { lies, .. } => match lies {
                Lies::Nowhere => Remedy::ListSessions,
                Lies::NoStoreHere => Remedy::MakeStore,
                Lies::InTrash(id) => Remedy::Restore(id.clone()),
                Lies::NotInTrash(id) => Remedy::LookOutsideTrash(id.clone()),
                Lies::Erased(row) => Remedy::ShowRow(row.clone()),
                Lies::InStore(store) => Remedy::UseStore(store.clone()),
            },
            Self::ForeignFolder { session, .. } => Remedy::RewindOnlyChat(session.clone()),
            Self::WorktreeGone { session, .. } => Remedy::BringWorktreeBack(session.clone()),
            Self::WorktreeElsewhere { session, root, store } => Remedy::ResumeThere {
                session: session.clone(),
                root: root.clone(),
                store: store.clone(),
            },
            Self::WorktreeNotRestored { .. } => Remedy::ListWorktrees,
            Self::Config { remedy: Some(remedy), .. } => Remedy::clone(remedy),
            Self::RecentModels { .. } => Remedy::MendRecentModels,
            Self::Store(_)
            | Self::Formats(_)
            | Self::NoFolder
            | Self::NoBackup { .. }
            | Self::DamagedBackup { .. }
            | Self::Prices(_)
            | Self::RetentionIsSetting
            | Self::NotStoreOwner { .. }
            | Self::File { .. }
            | Self::HookSettings { .. }
            | Self::ClientSettings { .. }
            | Self::Config { remedy: None, .. }
            | Self::Value { .. } => return None,
        })
    }

    /// Makes the error of a file of the user's from what the system said.
    pub fn file(path: &Path, doing: &'static str) -> impl FnOnce(io::Error) -> Self {
        move |source| Self::File { path: path.to_owned(), doing, source }
    }
}
