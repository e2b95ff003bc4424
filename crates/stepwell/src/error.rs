//! What can go wrong, and what the caller should do about it.

mod remedy;

use std::io;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use crate::model::work::ERASED;
use crate::model::{
    Digest, Epoch, EventId, InvalidName, MAX_TASKS, Owner, Phase, PhaseSet, Seq, SessionId,
    TaskStatus, Time,
};

pub use remedy::{Action, GateChoice, Listing, Remedy};

/// The result of every fallible function of this crate.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// A failure, with the thing and the place that it concerns.
#[derive(Debug, thiserror::Error)]
#[expect(missing_docs, reason = "each message says what its variant and its fields mean")]
pub enum Error {
    #[error(transparent)]
    InvalidName(#[from] InvalidName),
    #[error("session {session}: {}", refused(kind, why))]
    Illegal { session: SessionId, kind: String, why: String },
    #[error("{what} could not be read back: {why}")]
    Unreadable { what: String, why: String },
    #[error("{what} has {size} bytes; at most {limit} are accepted")]
    TooLarge { what: String, size: u64, limit: u64 },

    #[error(transparent)]
    NoPoint(#[from] NoPoint),
    #[error(transparent)]
    BadPattern(#[from] BadPattern),
    #[error("{why}")]
    Task { session: SessionId, why: TaskRefused },
    #[error("session {session} has no question {question:?}")]
    NoQuestion { session: SessionId, question: String, asked: Vec<String> },
    #[error("session {session} already has the label {label:?}")]
    LabelTaken { session: SessionId, label: String },
    #[error("{session} is {phase}; this phase is final")]
    FinalPhase { session: SessionId, phase: Phase },
    #[error("session {session} is run by Stepwell, not by an external agent")]
    NotAnAgent { session: SessionId },
    #[error("{session} has the events 1 to {last}, not {seq}")]
    NoEvent { session: SessionId, seq: Seq, last: Seq },
    #[error("event {seq} of {session} is {kind}, not a message")]
    NotAMessage { session: SessionId, seq: Seq, kind: String },
    #[error("unknown phase {name:?}")]
    UnknownPhase { name: String },
    #[error(
        "a rewind of {session} was interrupted at seq {began}, and its files may be half moved; \
         nothing was done"
    )]
    HalfRewound { session: SessionId, began: Seq, trashed: bool },

    #[error("no session {0}")]
    NoSession(SessionId),
    #[error("no session matches {0:?}")]
    NoMatch(String),
    #[error("{name:?} fits several sessions: {}", list(candidates))]
    Ambiguous { name: String, candidates: Vec<SessionId> },
    #[error("no blob {0}")]
    NoBlob(Digest),
    #[error("no store at {0}")]
    NoStore(PathBuf),

    #[error("session {0} exists already")]
    Exists(SessionId),
    #[error("session {session} is at seq {actual}, not at {expected}")]
    UnexpectedSeq { session: SessionId, expected: Seq, actual: Seq },
    #[error("session {session}: event {seq} was pruned meanwhile")]
    Pruned { session: SessionId, seq: Seq },
    #[error("session {session}: event id {id} already names another event, at seq {seq}")]
    EventIdReused { session: SessionId, id: EventId, seq: Seq },
    #[error("session {0} is in the trash; restore it first")]
    Trashed(SessionId),

    #[error("session {session} is in use by {holder} until {expires}")]
    Held { session: SessionId, holder: Box<Owner>, expires: Time },
    #[error(
        "session {session} runs in {holder}, which has not handled the request yet; it is \
         recorded, and that process will handle it"
    )]
    NotDoneYet { session: SessionId, holder: Box<Owner> },
    #[error(
        "session {session} is run by {login}, who accepts requests of others only if their \
         configuration has talk.from = \"store\""
    )]
    SomebodyElses { session: SessionId, login: String },
    #[error("{session} is being rewound; nothing was done")]
    BeingRewound { session: SessionId },
    #[error("store {path} is busy: another process has been writing for {waited_ms} ms")]
    Busy { path: PathBuf, waited_ms: u64 },

    #[error("session {session}: lease epoch {epoch} was lost; {}", now_held(*current))]
    Fenced { session: SessionId, epoch: Epoch, current: Option<Epoch> },
    #[error("session {session}: only the runner that holds its lease may record {kind}")]
    NeedsLease { session: SessionId, kind: String },

    #[error("session {session} is damaged at seq {seq}: {what}")]
    Damaged { session: SessionId, seq: Seq, what: String },
    #[error("session {0}: this log was altered since you last saw it")]
    Altered(SessionId),
    #[error("blob {digest} is damaged: {what}")]
    DamagedBlob { digest: Digest, what: String },
    #[error("store {path} is damaged: {what}")]
    DamagedStore { path: PathBuf, what: String },

    #[error("store {path} has format {found}; this version reads up to {known}")]
    Newer { path: PathBuf, found: u32, known: u32 },
    #[error("{path} is not a Stepwell store: {what}")]
    NotAStore { path: PathBuf, what: String },
    #[error(
        "{} is a symbolic link to {}: Stepwell does not write through links in a workspace",
        link.display(), target.display()
    )]
    Link { link: PathBuf, target: PathBuf },
    #[error(
        "{file} has {names} hard links: Stepwell does not write to a file that other folders share"
    )]
    Shared { file: PathBuf, names: u64 },
    #[error(
        "store {path} was not opened: it contains the {kind} {name:?}, which is not Stepwell's"
    )]
    ForeignObject { path: PathBuf, kind: &'static str, name: String },
    #[error("store {path} cannot be used here: {what}")]
    Unsupported { path: PathBuf, what: String },
    #[error("store {path} has no namespace {namespace}, or this role may not use it")]
    NotAMember { path: PathBuf, namespace: String },

    #[error("store {path} is open for reading only")]
    ReadOnly { path: PathBuf },
    #[error("{path}: permission denied while {doing}")]
    Denied { path: PathBuf, doing: &'static str },
    #[error("no space left for store {path}; this write was not saved")]
    Full { path: PathBuf },
    #[error("{path}: {source} while {doing}")]
    Io { path: PathBuf, doing: &'static str, source: io::Error },
    #[error("store {path}: {what} while {doing}")]
    Database { path: PathBuf, doing: &'static str, what: String },
    #[error("store {path} failed while saving ({what}) and must be reopened")]
    Broken { path: PathBuf, what: String },
}

fn list(ids: &[SessionId]) -> String {
    ids.iter().map(SessionId::as_str).collect::<Vec<_>>().join(", ")
}

fn now_held(current: Option<Epoch>) -> String {
    current
        .map_or_else(|| "no process holds it now".to_owned(), |e| format!("epoch {e} holds it now"))
}

/// What the caller should do about an error.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ErrorKind {
    /// The request is wrong: change it.
    Invalid,
    /// The named thing does not exist, or the name fits several: name another.
    Absent,
    /// The state has changed since it was read: read it again, then decide.
    Conflict,
    /// Another process is using it: try again later.
    Busy,
    /// The right to write was lost: stop, or acquire the lease again.
    Fenced,
    /// Stored data is damaged: verify and repair it.
    Damaged,
    /// This version or place cannot read it: upgrade, or move it.
    Incompatible,
    /// Not allowed: change permissions, or open the store for writing.
    Denied,
    /// The disk is full: make room and try again.
    Full,
    /// The machine failed; nothing was acknowledged.
    Io,
}

impl Error {
    /// The class of the error, by which a caller decides what to do.
    #[must_use]
    pub const fn kind(&self) -> ErrorKind {
        match self {
            Self::InvalidName(_)
            | Self::Illegal { .. }
            | Self::SomebodyElses { .. }
            | Self::Unreadable { .. }
            | Self::TooLarge { .. }
            | Self::NoPoint(_)
            | Self::BadPattern(_)
            | Self::Task { .. }
            | Self::NoQuestion { .. }
            | Self::LabelTaken { .. }
            | Self::FinalPhase { .. }
            | Self::NotAnAgent { .. }
            | Self::NoEvent { .. }
            | Self::NotAMessage { .. }
            | Self::UnknownPhase { .. }
            | Self::HalfRewound { .. } => ErrorKind::Invalid,
            Self::NoSession(_)
            | Self::NoMatch(_)
            | Self::Ambiguous { .. }
            | Self::NoBlob(_)
            | Self::NoStore(_) => ErrorKind::Absent,
            Self::Exists(_)
            | Self::UnexpectedSeq { .. }
            | Self::Pruned { .. }
            | Self::EventIdReused { .. }
            | Self::Trashed(_) => ErrorKind::Conflict,
            Self::Held { .. }
            | Self::NotDoneYet { .. }
            | Self::BeingRewound { .. }
            | Self::Busy { .. } => ErrorKind::Busy,
            Self::Fenced { .. } | Self::NeedsLease { .. } => ErrorKind::Fenced,
            Self::Damaged { .. }
            | Self::Altered(_)
            | Self::DamagedBlob { .. }
            | Self::DamagedStore { .. } => ErrorKind::Damaged,
            Self::Newer { .. }
            | Self::NotAStore { .. }
            | Self::Link { .. }
            | Self::Shared { .. }
            | Self::ForeignObject { .. }
            | Self::Unsupported { .. }
            | Self::NotAMember { .. } => ErrorKind::Incompatible,
            Self::ReadOnly { .. } | Self::Denied { .. } => ErrorKind::Denied,
            Self::Full { .. } => ErrorKind::Full,
            Self::Io { .. } | Self::Database { .. } | Self::Broken { .. } => ErrorKind::Io,
        }
    }

    /// What would help, the best first. Empty if the message already says everything.
    #[must_use]
    pub fn remedies(&self) -> Vec<Remedy> {
        let of = |action, id: &SessionId| vec![Remedy::Session(action, id.clone())];
        match self {
            Self::NoPoint(no_point) => no_point.remedies(),
            Self::Task { session, .. } => of(Action::ShowTasks, session),
            Self::NoQuestion { session, asked, .. } if asked.is_empty() => of(Action::Ask, session),
            Self::NoQuestion { asked, .. } => vec![Remedy::Choose(asked.clone())],
            Self::LabelTaken { session, .. } => of(Action::Unlabel, session),
            Self::FinalPhase { session, .. } => of(Action::ShowPhase, session),
            Self::NotAnAgent { session } | Self::Exists(session) => of(Action::Show, session),
            Self::NoEvent { session, .. } | Self::NotAMessage { session, .. } => {
                of(Action::ShowMessages, session)
            }
            Self::UnknownPhase { .. } => {
                let names = PhaseSet::Lifecycle.phases().iter().map(ToString::to_string);
                vec![Remedy::Choose(names.collect())]
            }
            Self::HalfRewound { session, trashed, .. } => {
                let restore = trashed.then(|| Remedy::Session(Action::Restore, session.clone()));
                restore.into_iter().chain(of(Action::FinishRewind, session)).collect()
            }
            Self::NoMatch(_) | Self::NoSession(_) => vec![Remedy::List(Listing::Sessions)],
            Self::Ambiguous { .. } => vec![Remedy::MoreOfTheId],
            Self::NoStore(_) => vec![Remedy::MakeStore],
            Self::Trashed(session) => of(Action::Restore, session),
            Self::Held { session, .. } => of(Action::Follow, session),
            Self::BeingRewound { .. } | Self::Busy { .. } => vec![Remedy::Wait],
            Self::Damaged { session, .. } => of(Action::Verify, session),
            Self::DamagedStore { .. } | Self::DamagedBlob { .. } => vec![Remedy::Repair],
            Self::Newer { .. } => vec![Remedy::Upgrade],
            Self::Full { .. } => vec![Remedy::Retry],
            _ => Vec::new(),
        }
    }
}

/// The text of [`Error::Illegal`]. A refused edit is its own explanation.
fn refused(kind: &str, why: &str) -> String {
    match kind {
        "edited" => why.to_owned(),
        kind => format!("{kind} is not possible: {why}"),
    }
}

/// A text that names no point of a session.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NoPoint {
    /// The session has no such event.
    #[error("{session} has the events 1 to {last}, not {seq}")]
    Event {
        /// The session.
        session: SessionId,
        /// The seq that was requested.
        seq: u64,
        /// The session's last event.
        last: Seq,
    },
    /// The session has no such checkpoint.
    #[error("{session} has no checkpoint {name:?}")]
    Checkpoint {
        /// The session.
        session: SessionId,
        /// The name that was requested.
        name: String,
        /// The names of its checkpoints.
        known: Vec<String>,
    },
    /// `-0` goes back no step.
    #[error("-0 goes back no step; -1 goes back one")]
    NoStep,
    /// The session has fewer steps.
    #[error("{session} has {}, not {asked}", steps(*has))]
    Steps {
        /// The session.
        session: SessionId,
        /// How many steps it has.
        has: usize,
        /// How many steps back were requested.
        asked: usize,
    },
    /// The agent has done nothing since the user's last message.
    #[error("session {session}: the agent did nothing after your last message, at seq {said}")]
    NothingDone {
        /// The session.
        session: SessionId,
        /// The user's last message.
        said: Seq,
    },
    /// The session has no message of a user.
    #[error("session {session} has no message from a user")]
    NothingSaid {
        /// The session.
        session: SessionId,
    },
}

impl NoPoint {
    /// What would help.
    pub(crate) fn remedies(&self) -> Vec<Remedy> {
        let of = |action, id: &SessionId| Remedy::Session(action, id.clone());
        match self {
            Self::Event { .. } | Self::NoStep => Vec::new(),
            Self::Checkpoint { session, known, .. } if known.is_empty() => {
                vec![of(Action::Checkpoint, session)]
            }
            Self::Checkpoint { known, .. } => vec![Remedy::Choose(known.clone())],
            Self::Steps { session, .. } => vec![of(Action::ShowEvents, session)],
            Self::NothingDone { session, .. } | Self::NothingSaid { session } => {
                vec![of(Action::Rewind, session), of(Action::ShowEvents, session)]
            }
        }
    }
}

fn steps(n: usize) -> String {
    if n == 1 { "1 step".to_owned() } else { format!("{n} steps") }
}

/// Why a change to the plan is refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[expect(missing_docs, reason = "each message says what its variant and its fields mean")]
pub enum TaskRefused {
    #[error("unknown task {id:?}; {}", planned(.known))]
    NoTask { id: String, known: Vec<String> },
    #[error("there is a task {0:?} already")]
    Taken(String),
    #[error("{0:?} cannot name a task: use 1 to 64 of A-Z, a-z, 0-9, dot, underscore and hyphen")]
    BadName(String),
    #[error("task {0:?} has no description")]
    Empty(String),
    #[error("task {id:?}: {what}")]
    Unfit { id: String, what: String },
    #[error("the plan would have more than {MAX_TASKS} tasks")]
    TooMany,
    #[error("these tasks would wait for each other: {}", .0.join(" after "))]
    Cycle(Vec<String>),
    #[error("task {id:?} cannot be {status}: it waits for {}", .after.join(", "))]
    Waits { id: String, status: TaskStatus, after: Vec<String> },
    #[error("task {0:?} is unrecoverable; plan another one in its place")]
    Final(String),
}

fn planned(known: &[String]) -> String {
    match known {
        [] => "the plan is empty".to_owned(),
        known => format!("expected one of: {}", known.join(", ")),
    }
}

/// Why a pattern is refused.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum BadPattern {
    /// It is not a regular expression.
    #[error("invalid pattern: {0}")]
    Syntax(regex::Error),
    /// It matches the empty text, and so would erase everything.
    #[error("the pattern matches the empty text, so it would erase everything")]
    MatchesNothing,
    /// It matches the mark that a scrub leaves, so every scrub would match again.
    #[error("the pattern matches {ERASED}, the mark that replaces erased text")]
    MatchesMark,
    /// The rule is recorded, and would repeat the text that is to be erased.
    #[error("the rule, which is recorded, matches the pattern")]
    MatchesRule,
}
