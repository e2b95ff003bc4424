//! What can go wrong with a run before it begins or when it cannot be saved, and what would help.

mod advice;
mod kind;

use stepwell::model::Gate;
use stepwell::{Remedy, SessionId};

use crate::report::RunReport;

pub use kind::ErrorKind;

/// The result of everything that can fail here.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// What went wrong, naming the thing and the place. What a caller acts on has a variant of its own;
/// all else is [`Error::Refused`], in words and with what would help.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// An error of the store.
    #[error(transparent)]
    Store(#[from] stepwell::Error),
    /// An error of the workspace.
    #[error(transparent)]
    Workspace(#[from] stepwell_workspace::Error),
    /// An error of the agent.
    #[error(transparent)]
    Agent(#[from] stepwell_agent::Error),
    /// An error of a session's files.
    #[error(transparent)]
    Files(#[from] stepwell_files::Error),
    /// An error of the flow or of its spec.
    #[error(transparent)]
    Flow(#[from] stepwell_flow::Error),
    /// A request cannot be carried out.
    #[error("{why}")]
    Refused {
        /// What the caller should do.
        kind: ErrorKind,
        /// What cannot be done, and why.
        why: String,
        /// What would help.
        remedies: Vec<Remedy>,
    },
    /// No thread could be started.
    #[error("no threads to run on: {0}")]
    Thread(std::io::Error),
    /// It was interrupted before it began; nothing was recorded.
    #[error("interrupted before it began")]
    Interrupted,
    /// A flow is finished: nothing is left to do.
    #[error("{session} is finished: there is nothing left to do")]
    Finished {
        /// The session.
        session: SessionId,
    },
    /// Another process runs the session.
    #[error(transparent)]
    RunsElsewhere(stepwell::Error),
    /// The session does not wait for an answer.
    #[error("{session} {}does not wait for an answer", if *elsewhere { "runs elsewhere, and " } else { "" })]
    NotWaiting {
        /// The session.
        session: SessionId,
        /// Does another process run it?
        elsewhere: bool,
    },
    /// No question of that name waits.
    #[error("{name:?} is no question that waits in {session}")]
    NoGate {
        /// The session.
        session: SessionId,
        /// The name.
        name: String,
        /// Those that wait.
        open: Vec<Gate>,
    },
    /// An answer does not fit its question.
    #[error("[{gate}] {why}")]
    BadAnswer {
        /// The session.
        session: SessionId,
        /// The question's name.
        gate: String,
        /// What is wrong with it.
        why: String,
        /// Is it too late for any other? Else the question waits for one that fits.
        is_late: bool,
    },
    /// Another answer was first, and counts.
    #[error("[{gate}] was answered by {who} at {at}")]
    AnsweredBefore {
        /// The session.
        session: SessionId,
        /// The question's name.
        gate: String,
        /// Who answered.
        who: String,
        /// When they answered.
        at: stepwell::model::Time,
        /// The state of the session since.
        since: SinceAnswer,
    },
    /// An answer is not taken.
    #[error("[{gate}] {why}")]
    AnswerRefused {
        /// The session.
        session: SessionId,
        /// The question's name.
        gate: String,
        /// Why not.
        why: String,
    },
    /// A run's command asked for what only a person may do.
    #[error(
        "{what} is for people: an agent cannot do it from within its own run; type it in a terminal of your own"
    )]
    OnlyPeople {
        /// What was asked for.
        what: &'static str,
    },
    /// Something is wrong with one of a flow's agents.
    #[error("agent {agent}: {error}")]
    OfAgent {
        /// The agent.
        agent: String,
        /// What is wrong.
        error: Box<Error>,
    },
    /// What a run did could not be saved, so it stopped.
    #[error("the {what} stopped: what it did could not be saved: {error}")]
    Unsaved {
        /// `run` or `flow`.
        what: &'static str,
        /// Why not.
        error: stepwell::Error,
        /// How far it was.
        report: Box<RunReport>,
    },
    /// A run stopped with an error of its own.
    #[error("{error}")]
    Broken {
        /// What went wrong.
        error: Box<Error>,
        /// How far it was.
        report: Box<RunReport>,
    },
    /// The thread of a run ended without an answer: a defect of ours.
    #[error("the run's thread ended unexpectedly")]
    Panicked,
}

/// The state of a session after one of its questions was answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SinceAnswer {
    /// It runs.
    Runs,
    /// It does not run, and can be resumed.
    Stopped,
    /// Its run has ended.
    Ended,
}

impl Error {
    /// Why a session cannot be locked. If a run holds the session, the error says so.
    pub(crate) fn of_lock(error: stepwell::Error) -> Self {
        match error {
            stepwell::Error::Held { .. } => Self::RunsElsewhere(error),
            error => error.into(),
        }
    }
}
