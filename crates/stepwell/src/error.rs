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

/// The result of everything that can fail here.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// What went wrong, naming the thing and the place.
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
    #[error("{session}: there is no question {question:?}")]
    NoQuestion { session: SessionId, question: String, asked: Vec<String> },
    #[error("{session} bears the label {label:?} already")]
    LabelTaken { session: SessionId, label: String },
    #[error("{session} is {phase}; this phase is final")]
    FinalPhase { session: SessionId, phase: Phase },
    #[error("{session} is run by Stepwell itself, not by an agent of yours")]
    NotAnAgent { session: SessionId },
    #[error("{session} has the events 1 to {last}, not {seq}")]
    NoEvent { session: SessionId, seq: Seq, last: Seq },
    #[error("event {seq} of {session} is {kind}, not a message")]
    NotAMessage { session: SessionId, seq: Seq, kind: String },
    #[error("unknown phase {name:?}")]
    UnknownPhase { name: String },
    #[error(
        "a rewind of {session} was cut off at seq {began}, and its files may be half moved; \
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
    #[error("session {session}: event id {id} stands for another event, at seq {seq}")]
    EventIdReused { session: SessionId, id: EventId, seq: Seq },
    #[error("session {0} is in the trash; restore it first")]
    Trashed(SessionId),

    #[error("session {session} is held by {holder} until {expires}")]
    Held { session: SessionId, holder: Box<Owner>, expires: Time },
    #[error(
        "session {session} runs in {holder}, which has not done it yet; the request is on record, \
         and is done as soon as that process gets to it"
    )]
    NotDoneYet { session: SessionId, holder: Box<Owner> },
    #[error(
        "session {session} is run by {login}: what others ask of it is done only if their \
         configuration has talk.from = \"store\""
    )]
    SomebodyElses { session: SessionId, login: String },
    #[error("{session} is being rewound; nothing was done")]
    BeingRewound { session: SessionId },
    #[error("store {path} is busy: another process has been writing for {waited_ms} ms")]
    Busy { path: PathBuf, waited_ms: u64 },

    #[error("session {session}: lease epoch {epoch} was lost; {}", now_held(*current))]
    Fenced { session: SessionId, epoch: Epoch, current: Option<Epoch> },
    #[error("session {session}: only the holder of its lease may record {kind}")]
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
        "{} is a symbolic link to {}: Stepwell writes through no link that lies in a workspace",
        link.display(), target.display()
    )]
    Link { link: PathBuf, target: PathBuf },
    #[error(
        "{file} has {names} names (hard links): Stepwell writes to no file that another folder shares"
    )]
    Shared { file: PathBuf, names: u64 },
    #[error(
        "store {path} holds the {kind} {name:?}, which Stepwell did not make: it is not opened"
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
    #[error("no space left for store {path}; nothing of this write was kept")]
    Full { path: PathBuf },
    #[error("{path}: {source} while {doing}")]
    Io { path: PathBuf, doing: &'static str, source: io::Error },
    #[error("store {path}: {what} while {doing}")]
    Database { path: PathBuf, doing: &'static str, what: String },
    #[error("store {path} failed while saving ({what}) and must be opened anew")]
    Broken { path: PathBuf, what: String },
}

fn list(ids: &[SessionId]) -> String {
    ids.iter().map(SessionId::as_str).collect::<Vec<_>>().join(", ")
}

fn now_held(current: Option<Epoch>) -> String {
    current.map_or_else(|| "nobody holds it now".to_owned(), |e| format!("epoch {e} holds it now"))
}

/// What the caller should do about an error.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ErrorKind {
    /// What was asked is wrong; ask differently.
    Invalid,
    /// The named thing is not there, or the name fits several; name another.
    Absent,
    /// The state has moved on; read it again, then decide.
    Conflict,
    /// Someone else is at it; try again later.
    Busy,
    /// The right to write was lost; stop, or acquire the lease again.
    Fenced,
    /// Stored data is broken; verify and repair.
    Damaged,
    /// This version or place cannot read it; upgrade or move it.
    Incompatible,
    /// Not allowed here; change permissions, or open for writing.
    Denied,
    /// The disk is full; make room and ask again.
    Full,
    /// The machine failed; nothing was acknowledged.
    Io,
}

impl Error {
    /// What the caller should do.
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

    /// What would help, the best first. Many errors say all that is known.
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

/// Why something was refused. What is wrong with an edit of a session says enough.
fn refused(kind: &str, why: &str) -> String {
    match kind {
        "edited" => why.to_owned(),
        kind => format!("{kind} is not possible: {why}"),
    }
}

/// A text that means no point of a session.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NoPoint {
    /// The session has no such event.
    #[error("{session} has the events 1 to {last}, not {seq}")]
    Event {
        /// The session.
        session: SessionId,
        /// The event that was asked for.
        seq: u64,
        /// The last one that there is.
        last: Seq,
    },
    /// The session has no such checkpoint.
    #[error("{session} has no checkpoint {name:?}")]
    Checkpoint {
        /// The session.
        session: SessionId,
        /// The name.
        name: String,
        /// The names that there are.
        known: Vec<String>,
    },
    /// No step back is no point.
    #[error("-0 is no step back: steps are counted from 1, the last one")]
    NoStep,
    /// The session has fewer steps.
    #[error("{session} has {}, not {asked}", steps(*has))]
    Steps {
        /// The session.
        session: SessionId,
        /// How many it has.
        has: usize,
        /// How many back were asked for.
        asked: usize,
    },
    /// Nothing was done since the user last said something.
    #[error("{session}: nothing was done since what you said last, at seq {said}")]
    NothingDone {
        /// The session.
        session: SessionId,
        /// What was said.
        said: Seq,
    },
    /// Nobody said anything.
    #[error("{session}: nobody said anything to its agent")]
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

/// Why a change of the plan is not sound.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[expect(missing_docs, reason = "each message says what its variant and its fields mean")]
pub enum TaskRefused {
    #[error("there is no task {id:?}; {}", planned(.known))]
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
    #[error("task {id:?} cannot be {status}: it comes after {}", .after.join(", "))]
    Waits { id: String, status: TaskStatus, after: Vec<String> },
    #[error("task {0:?} is unrecoverable; plan another one in its place")]
    Final(String),
}

fn planned(known: &[String]) -> String {
    match known {
        [] => "none is planned".to_owned(),
        known => format!("expected one of: {}", known.join(", ")),
    }
}

/// Why a pattern cannot be used.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum BadPattern {
    /// It is no regular expression.
    #[error("the pattern is wrong: {0}")]
    Syntax(regex::Error),
    /// It would erase everything.
    #[error("the pattern matches everything, even nothing")]
    MatchesNothing,
    /// A scrub would match its own mark again and again.
    #[error("the pattern matches {ERASED}, the mark that replaces erased text")]
    MatchesMark,
    /// The reason, which is recorded, would repeat what is to be erased.
    #[error("the rule, which is recorded, matches the pattern")]
    MatchesRule,
}
