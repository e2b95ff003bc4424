//! How a command ends: exit codes, and errors that name the next command to type.

use std::fmt::Display;
use std::io::{self, Write};
use std::process::ExitCode;

use stepwell::{Error, ErrorKind, NoPoint};

use crate::wording;

/// What a process says by its exit code. The numbers are a promise to scripts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Exit {
    /// All is done.
    Done = 0,
    /// The command failed.
    Failed = 1,
    /// The command was typed wrongly.
    Usage = 2,
    /// The configuration is wrong, or a name means no session or several.
    Absent = 3,
    /// The provider refused the credentials.
    Credentials = 4,
    /// A limit stopped the run; it can be resumed.
    Partial = 5,
    /// Another process holds the session.
    Busy = 6,
    /// Stored data is damaged, or what was done could not be saved.
    Damaged = 7,
    /// The run waits for a human.
    Paused = 8,
    /// The run was interrupted; it can be resumed.
    Interrupted = 130,
}

impl Exit {
    /// What another Stepwell says by its exit code.
    pub(crate) fn from_code(code: i32) -> Self {
        let all = [
            Self::Done,
            Self::Usage,
            Self::Absent,
            Self::Credentials,
            Self::Partial,
            Self::Busy,
            Self::Damaged,
            Self::Paused,
            Self::Interrupted,
        ];
        all.into_iter().find(|exit| *exit as i32 == code).unwrap_or(Self::Failed)
    }
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(exit as u8)
    }
}

/// Why a command did not do what it was asked.
#[derive(Debug)]
pub(crate) enum Failure {
    /// Something to tell the user.
    Said {
        /// What went wrong.
        message: String,
        /// The next command to type.
        hint: Option<String>,
        /// How the process ends.
        exit: Exit,
    },
    /// Whoever read the answer has had enough of it. That is no error.
    ClosedPipe,
}

impl Display for Failure {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Said { message, .. } => f.write_str(message),
            Self::ClosedPipe => f.write_str("the pipe was closed"),
        }
    }
}

/// The result of a command's parts.
pub(crate) type Result<T, E = Failure> = std::result::Result<T, E>;

impl Failure {
    pub(crate) fn new(exit: Exit, message: impl Display) -> Self {
        Self::Said { message: message.to_string(), hint: None, exit }
    }

    /// The same failure with the next command to type, in place of a general one.
    pub(crate) fn hint(self, hint: impl Display) -> Self {
        match self {
            Self::Said { message, exit, .. } => {
                Self::Said { message, hint: Some(hint.to_string()), exit }
            }
            Self::ClosedPipe => Self::ClosedPipe,
        }
    }

    /// The same failure, naming the file that it is about.
    pub(crate) fn at(self, path: &std::path::Path) -> Self {
        match self {
            Self::Said { message, hint, exit } => {
                Self::Said { message: format!("{}: {message}", path.display()), hint, exit }
            }
            Self::ClosedPipe => Self::ClosedPipe,
        }
    }

    /// A failure to read or write one of the user's files.
    pub(crate) fn file(path: &std::path::Path, doing: &str, error: &io::Error) -> Self {
        Self::new(Exit::Failed, format_args!("{}: {error} while {doing}", path.display()))
    }

    /// Says it on stderr; the answer ends the process.
    pub(crate) fn report(self) -> ExitCode {
        let Self::Said { message, hint, exit } = self else { return ExitCode::SUCCESS };
        let mut text = format!("error: {}\n", crate::text::visible(&message));
        if let Some(hint) = hint {
            text.push_str(&format!("hint: {}\n", crate::text::visible(&hint)));
        }
        // Nobody is left to tell if stderr is closed.
        let _ = io::stderr().write_all(text.as_bytes());
        exit.into()
    }
}

/// The exit code for what the library says the caller should do.
fn exit_of(kind: ErrorKind) -> Exit {
    match kind {
        ErrorKind::Invalid | ErrorKind::Conflict => Exit::Failed,
        ErrorKind::Absent | ErrorKind::Incompatible => Exit::Absent,
        ErrorKind::Busy | ErrorKind::Fenced => Exit::Busy,
        ErrorKind::Damaged | ErrorKind::Denied | ErrorKind::Full | ErrorKind::Io => Exit::Damaged,
    }
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        let exit = match &error {
            Error::NoPoint(NoPoint::NoStep) | Error::BadPattern(_) => Exit::Usage,
            error => exit_of(error.kind()),
        };
        let hint = match &error {
            Error::NoPoint(no_point) => wording::no_point(no_point),
            Error::Task { session, .. } => {
                Some(format!("stepwell tasks {session} shows what is planned"))
            }
            Error::NoQuestion { session, asked, .. } => Some(match &asked[..] {
                [] => format!("nothing was asked; stepwell state {session} ask \"TEXT\" does"),
                asked => format!("asked were {}", asked.join(", ")),
            }),
            Error::LabelTaken { session, .. } => {
                Some(format!("stepwell label {session} --clear takes it away"))
            }
            Error::FinalPhase { session, .. } => Some(format!("stepwell agent get {session}")),
            Error::NotAnAgent { session } => Some(format!("stepwell show {session}")),
            Error::NoEvent { session, .. } | Error::NotAMessage { session, .. } => {
                Some(format!("stepwell show {session} --view shows messages with their seqs"))
            }
            Error::UnknownPhase { .. } => Some(wording::phases()),
            Error::BeingRewound { .. } => Some("try again when that is done".to_owned()),
            Error::HalfRewound { session: id, trashed, .. } => {
                let finish = format!("stepwell rewind {id} --finish finishes it");
                Some(match trashed {
                    true => format!("stepwell trash restore {id} brings it back; then {finish}"),
                    false => finish,
                })
            }
            Error::NoMatch(_) | Error::NoSession(_) => {
                Some("stepwell sessions --all lists what is here".to_owned())
            }
            Error::Ambiguous { .. } => Some("type more of the id, or all of it".to_owned()),
            Error::NoStore(_) => Some("stepwell init makes a store here".to_owned()),
            Error::Trashed(id) => Some(format!("stepwell trash restore {id}")),
            Error::Exists(id) => Some(format!("stepwell show {id}")),
            Error::Held { session, .. } => Some(format!("stepwell log -f {session} follows it")),
            Error::Busy { .. } => Some("type the command again".to_owned()),
            Error::Damaged { session, .. } => Some(format!("stepwell verify {session}")),
            Error::DamagedStore { .. } | Error::DamagedBlob { .. } => {
                Some("stepwell doctor".to_owned())
            }
            Error::Newer { .. } => Some("install a newer stepwell".to_owned()),
            Error::Full { .. } => Some("make room, then type the command again".to_owned()),
            _ => None,
        };
        Self::Said { message: error.to_string(), hint, exit }
    }
}

impl From<stepwell_formats::Error> for Failure {
    fn from(error: stepwell_formats::Error) -> Self {
        use stepwell_formats::Error as Formats;
        match error {
            Formats::Store(error) => error.into(),
            // The answer's own stream; a file's name is added by whoever opened it.
            Formats::Write(error) => error.into(),
            error => {
                let failure = Self::new(exit_of(error.kind()), &error);
                match &error {
                    Formats::Differs { session, .. } => {
                        failure.hint(format_args!("stepwell show {session} shows the one here"))
                    }
                    Formats::NotWhole { session, .. } => failure
                        .hint(format_args!("copy or import {session} first: that adds the rest")),
                    Formats::NoParent { parent, .. } => {
                        failure.hint(format_args!("export {parent}, which brings it along"))
                    }
                    Formats::Newer { .. } => failure.hint("install a newer stepwell"),
                    Formats::NotRecognised { .. } => failure.hint("stepwell formats lists them"),
                    Formats::Locked { .. } => failure.hint("type the command again"),
                    Formats::Exists { .. } | Formats::ExistsBeside { .. } => {
                        failure.hint("--force replaces it")
                    }
                    Formats::NotReplaced { .. }
                    | Formats::InTheWay { .. }
                    | Formats::Stranger { .. } => {
                        failure.hint("name another place, or move that away")
                    }
                    Formats::NoEnding { path, ending } => {
                        failure.hint(format_args!("name it {}.{ending}", path.display()))
                    }
                    _ => failure,
                }
            }
        }
    }
}

impl From<stepwell_agent::Error> for Failure {
    fn from(error: stepwell_agent::Error) -> Self {
        use stepwell_agent::Error as Agent;
        match error {
            Agent::Store(error) => error.into(),
            Agent::Files(error) => error.into(),
            Agent::NothingToSend { ref session, .. } => {
                let hint =
                    format!("stepwell run \"TASK\" --session {session} says something in it");
                Self::new(Exit::Failed, &error).hint(hint)
            }
            error => Self::new(Exit::Failed, &error),
        }
    }
}

impl From<stepwell_files::Error> for Failure {
    fn from(error: stepwell_files::Error) -> Self {
        use stepwell_files::Error as Files;
        match error {
            Files::Store(error) => error.into(),
            Files::HalfMoved { .. } => Self::new(Exit::Damaged, &error)
                .hint("when that is mended, type the command again: it is finished first"),
            error => Self::new(Exit::Failed, &error),
        }
    }
}

impl From<stepwell_workspace::Error> for Failure {
    fn from(error: stepwell_workspace::Error) -> Self {
        use stepwell_workspace::{Error as Workspace, ErrorKind as Kind};
        let exit = match error.kind() {
            Kind::Store(kind) => exit_of(kind),
            Kind::Config | Kind::Absent => Exit::Absent,
            Kind::Misspelt => Exit::Usage,
            Kind::Invalid | Kind::Io => Exit::Failed,
            Kind::Damaged => Exit::Damaged,
        };
        let hint = error.remedy().map(|remedy| wording::remedy(&remedy));
        let message = match error {
            Workspace::Store(error) => return error.into(),
            Workspace::Formats(error) => return error.into(),
            Workspace::Config { at, why, .. } => format!("{}: {why}", wording::config_place(&at)),
            error => error.to_string(),
        };
        Self::Said { message, hint, exit }
    }
}

impl From<stepwell_runtime::Error> for Failure {
    fn from(error: stepwell_runtime::Error) -> Self {
        use stepwell_runtime::{Error as Run, ErrorKind as Kind};
        let exit = match error.kind() {
            Kind::Store(kind) => exit_of(kind),
            Kind::Config => Exit::Absent,
            Kind::Usage => Exit::Usage,
            Kind::Credentials => Exit::Credentials,
            Kind::Busy => Exit::Busy,
            Kind::Unsaved => Exit::Damaged,
            Kind::Interrupted => Exit::Interrupted,
            Kind::Workspace(_) | Kind::Invalid => Exit::Failed,
        };
        let hint = error.remedy().map(|remedy| wording::run_remedy(&remedy));
        match error {
            Run::Store(error) => error.into(),
            Run::Workspace(error) => error.into(),
            Run::Agent(error) => error.into(),
            Run::Files(error) => error.into(),
            Run::Flow(error) => error.into(),
            Run::Broken { error, .. } => (*error).into(),
            Run::RootOutside { ref source_of, .. } => {
                let source = source_of.as_ref().map(wording::source).unwrap_or_default();
                Self::Said { message: format!("{source}: {error}"), hint, exit }
            }
            Run::OtherVariable { .. } => {
                let message = error.to_string().replacen("variable ", "--var ", 1);
                Self::Said { message, hint, exit }
            }
            error => Self::Said { message: error.to_string(), hint, exit },
        }
    }
}

impl From<io::Error> for Failure {
    /// Of writing the answer: every other file names itself, with [`Failure::file`].
    fn from(error: io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::BrokenPipe => Self::ClosedPipe,
            _ => Self::new(Exit::Failed, format_args!("the answer could not be written: {error}")),
        }
    }
}
