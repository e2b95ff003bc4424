//! Which error is of which kind, and what would help against it.

use stepwell::error::{Action, Listing};
use stepwell::model::Owner;
use stepwell::{Remedy, SessionId};

use super::{Error, ErrorKind, SinceAnswer};

impl Error {
    /// A request cannot be carried out.
    #[must_use]
    pub fn refused(kind: ErrorKind, why: impl Into<String>) -> Self {
        Self::Refused { kind, why: why.into(), remedies: Vec::new() }
    }

    /// The configuration or a spec is wrong, or what is named is not there.
    pub(crate) fn config(why: impl Into<String>) -> Self {
        Self::refused(ErrorKind::Config, why)
    }

    /// The request is wrong.
    pub(crate) fn usage(why: impl Into<String>) -> Self {
        Self::refused(ErrorKind::Usage, why)
    }

    /// It cannot be done as things are.
    pub(crate) fn invalid(why: impl Into<String>) -> Self {
        Self::refused(ErrorKind::Invalid, why)
    }

    /// The same error with what would help.
    #[must_use]
    pub fn helped_by(mut self, remedy: Remedy) -> Self {
        if let Self::Refused { remedies, .. } = &mut self {
            remedies.push(remedy);
        }
        self
    }

    /// The same error with what would help, done to a session.
    pub(crate) fn helped(self, action: Action, session: &SessionId) -> Self {
        self.helped_by(Remedy::Session(action, session.clone()))
    }

    /// What the caller should do.
    #[must_use]
    pub fn kind(&self) -> ErrorKind {
        match self {
            Self::Refused { kind, .. } => *kind,
            Self::Workspace(error) => ErrorKind::Workspace(error.kind()),
            Self::Store(error) | Self::RunsElsewhere(error) => ErrorKind::Store(error.kind()),
            Self::Files(stepwell_files::Error::HalfMoved { .. }) | Self::Unsaved { .. } => {
                ErrorKind::Unsaved
            }
            Self::Files(error) => of_part(error.kind(), ErrorKind::Invalid),
            Self::Agent(error) => of_part(error.kind(), ErrorKind::Invalid),
            Self::Flow(error) => of_part(error.kind(), ErrorKind::Config),
            Self::Finished { .. } | Self::NoGate { .. } => ErrorKind::Config,
            Self::BadAnswer { .. } => ErrorKind::Usage,
            Self::NotWaiting { elsewhere: true, .. } | Self::AnsweredBefore { .. } => {
                ErrorKind::Busy
            }
            Self::Interrupted => ErrorKind::Interrupted,
            Self::OfAgent { error, .. } | Self::Broken { error, .. } => error.kind(),
            Self::Thread(_)
            | Self::OnlyPeople { .. }
            | Self::NotWaiting { .. }
            | Self::AnswerRefused { .. }
            | Self::Panicked => ErrorKind::Invalid,
        }
    }

    /// What would help, the best first.
    #[must_use]
    pub fn remedies(&self) -> Vec<Remedy> {
        let of = |action, id: &SessionId| Remedy::Session(action, id.clone());
        vec![match self {
            Self::Refused { remedies, .. } => return remedies.clone(),
            Self::RunsElsewhere(stepwell::Error::Held { session, .. }) => {
                return vec![of(Action::Attach, session), of(Action::Stop, session)];
            }
            Self::Store(error) | Self::RunsElsewhere(error) => return error.remedies(),
            Self::Workspace(error) => return error.remedies(),
            Self::Agent(error) => return error.remedies(),
            Self::Files(error) => return error.remedies(),
            Self::Flow(error) => return error.remedies(),
            Self::OfAgent { error, .. } | Self::Broken { error, .. } => return error.remedies(),
            Self::Finished { session } => {
                return vec![of(Action::ShowEvents, session), of(Action::Rewind, session)];
            }
            Self::NotWaiting { session, elsewhere: true } => of(Action::Attach, session),
            Self::NoGate { open, .. } if open.is_empty() => Remedy::List(Listing::Gates),
            Self::NoGate { session, open, .. } => Remedy::answer(session, open),
            Self::NotWaiting { session, .. } | Self::BadAnswer { session, is_late: true, .. } => {
                of(Action::Resume, session)
            }
            Self::BadAnswer { session, .. } => of(Action::Respond, session),
            Self::AnsweredBefore { session, since, .. } => match since {
                SinceAnswer::Runs => of(Action::Attach, session),
                SinceAnswer::Stopped => of(Action::Resume, session),
                SinceAnswer::Ended => of(Action::Show, session),
            },
            // Another process continued it, and may be done.
            Self::Unsaved { error: stepwell::Error::Fenced { .. }, report, .. } => {
                of(Action::Show, &report.session)
            }
            Self::Unsaved { report, .. } => of(Action::Resume, &report.session),
            Self::Thread(_)
            | Self::Interrupted
            | Self::OnlyPeople { .. }
            | Self::AnswerRefused { .. }
            | Self::Panicked => return Vec::new(),
        }]
    }

    /// Who holds the session, if that is why it cannot be run.
    #[must_use]
    pub fn holder(&self) -> Option<&Owner> {
        match self {
            Self::Store(stepwell::Error::Held { holder, .. })
            | Self::Workspace(stepwell_workspace::Error::Store(stepwell::Error::Held {
                holder,
                ..
            }))
            | Self::RunsElsewhere(stepwell::Error::Held { holder, .. }) => Some(holder),
            _ => None,
        }
    }
}

/// The kind of an error of a crate below, whose own refusals are of the kind `refused`.
const fn of_part(kind: stepwell::ErrorKind, refused: ErrorKind) -> ErrorKind {
    match kind {
        stepwell::ErrorKind::Invalid => refused,
        kind => ErrorKind::Store(kind),
    }
}
