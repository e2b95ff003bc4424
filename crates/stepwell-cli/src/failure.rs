//! How a command ends: exit codes, and errors that name the next command to type.

use std::fmt::Display;
use std::io::{self, Write};
use std::process::ExitCode;

use stepwell::error::NoPoint;
use stepwell::{Error, ErrorKind};
use stepwell_terminal::{Explained, safe_to_tell};

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

    /// A failure in words, with its exit code.
    pub(crate) fn explained(Explained { message, hint }: Explained, exit: Exit) -> Self {
        Self::Said { message, hint, exit }
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
        let mut text = format!("error: {}\n", safe_to_tell(&message));
        if let Some(hint) = hint {
            text.push_str(&format!("hint: {}\n", safe_to_tell(&hint)));
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

/// The exit code for an error of the store.
fn store_exit(error: &Error) -> Exit {
    match error {
        Error::NoPoint(NoPoint::NoStep) | Error::BadPattern(_) => Exit::Usage,
        error => exit_of(error.kind()),
    }
}

fn agent_exit(error: &stepwell_agent::Error) -> Exit {
    match error {
        stepwell_agent::Error::Store(error) => store_exit(error),
        stepwell_agent::Error::Files(error) => files_exit(error),
        _ => Exit::Failed,
    }
}

fn files_exit(error: &stepwell_files::Error) -> Exit {
    match error {
        stepwell_files::Error::Store(error) => store_exit(error),
        stepwell_files::Error::HalfMoved { .. } => Exit::Damaged,
        _ => Exit::Failed,
    }
}

/// A spec is a kind of configuration.
fn flow_exit(error: &stepwell_flow::Error) -> Exit {
    match error {
        stepwell_flow::Error::Store(error) => store_exit(error),
        stepwell_flow::Error::Agent(error) => agent_exit(error),
        _ => Exit::Absent,
    }
}

fn formats_exit(error: &stepwell_formats::Error) -> Exit {
    match error {
        stepwell_formats::Error::Store(error) => store_exit(error),
        error => exit_of(error.kind()),
    }
}

fn workspace_exit(error: &stepwell_workspace::Error) -> Exit {
    use stepwell_workspace::Error as Workspace;
    match error {
        Workspace::Store(error) => store_exit(error),
        Workspace::Formats(error) => formats_exit(error),
        error => exit_of_workspace(error.kind()),
    }
}

fn exit_of_workspace(kind: stepwell_workspace::ErrorKind) -> Exit {
    use stepwell_workspace::ErrorKind as Kind;
    match kind {
        Kind::Store(kind) => exit_of(kind),
        Kind::Config | Kind::Absent => Exit::Absent,
        Kind::Misspelt => Exit::Usage,
        Kind::Invalid | Kind::Io => Exit::Failed,
        Kind::Damaged => Exit::Damaged,
    }
}

fn runtime_exit(error: &stepwell_runtime::Error) -> Exit {
    use stepwell_runtime::Error as Run;
    match error {
        Run::Store(error) => store_exit(error),
        Run::Workspace(error) => workspace_exit(error),
        Run::Agent(error) => agent_exit(error),
        Run::Files(error) => files_exit(error),
        Run::Flow(error) => flow_exit(error),
        Run::Broken { error, .. } => runtime_exit(error),
        error => exit_of_run(error.kind()),
    }
}

/// The exit code for what a run's error says the caller should do.
pub(crate) fn exit_of_run(kind: stepwell_runtime::ErrorKind) -> Exit {
    use stepwell_runtime::ErrorKind as Kind;
    match kind {
        Kind::Store(kind) => exit_of(kind),
        Kind::Workspace(kind) => exit_of_workspace(kind),
        Kind::Config => Exit::Absent,
        Kind::Usage => Exit::Usage,
        Kind::Credentials => Exit::Credentials,
        Kind::Busy => Exit::Busy,
        Kind::Unsaved => Exit::Damaged,
        Kind::Interrupted => Exit::Interrupted,
        Kind::Invalid | Kind::Absent => Exit::Failed,
    }
}

/// An error in words, with the exit code that says what kind it is.
macro_rules! failure_from {
    ($($error:ty: $exit:ident,)*) => {$(
        impl From<$error> for Failure {
            fn from(error: $error) -> Self {
                Self::explained((&error).into(), $exit(&error))
            }
        }
    )*};
}

failure_from! {
    Error: store_exit,
    stepwell_agent::Error: agent_exit,
    stepwell_files::Error: files_exit,
    stepwell_flow::Error: flow_exit,
    stepwell_workspace::Error: workspace_exit,
    stepwell_runtime::Error: runtime_exit,
}

impl From<stepwell_formats::Error> for Failure {
    fn from(error: stepwell_formats::Error) -> Self {
        match error {
            // The answer's own stream; a file's name is added by whoever opened it.
            stepwell_formats::Error::Write(error) => error.into(),
            error => Self::explained((&error).into(), formats_exit(&error)),
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
