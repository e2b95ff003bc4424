//! What can go wrong while reading sessions in or writing them out.

use std::io;
use std::path::PathBuf;

use stepwell::error::{Action, Listing};
use stepwell::model::Digest;
use stepwell::{ErrorKind, Remedy, Seq, SessionId};

/// The result of everything that can fail here.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// What went wrong, naming the thing and the place.
#[derive(Debug, thiserror::Error)]
#[expect(missing_docs, reason = "each message says what its variant and its fields mean")]
pub enum Error {
    #[error(transparent)]
    Store(#[from] stepwell::Error),
    #[error("the input could not be read: {0}")]
    Read(io::Error),
    #[error("the export could not be written: {0}")]
    Write(io::Error),

    #[error("the input is not a Stepwell archive: {why}")]
    NotAnArchive { why: String },
    #[error("the archive has version {found}; this version reads up to {known}")]
    Newer { found: u64, known: u64 },
    #[error("the archive is malformed at line {line}: {why}")]
    Malformed { line: usize, why: String },
    #[error("the archive ends too early, at line {line}: a part of it is missing")]
    Truncated { line: usize },
    #[error("line {line} of the archive has an entry of more than {limit} bytes")]
    TooLarge { line: usize, limit: u64 },

    #[error("session {session}, seq {seq}: the archive cannot be right: {why}")]
    Unfit { session: SessionId, seq: Seq, why: String },
    #[error("session {session}, seq {seq}: the store does not take it: {source}")]
    Refused { session: SessionId, seq: Seq, source: stepwell::Error },
    #[error("blob {digest}: the archive does not hold it in base64: {why}")]
    NotBase64 { digest: Digest, why: String },
    #[error("blob {digest}: the archive holds other bytes, whose digest is {found}")]
    WrongBlob { digest: Digest, found: Digest },

    #[error("{path}: {error}", path = path.display())]
    Unreadable { path: PathBuf, error: io::Error },
    #[error("{path}: {why}", path = path.display())]
    Foreign { path: PathBuf, why: String },
    #[error("{path}: no session of a known format", path = path.display())]
    NotRecognised { path: PathBuf },
    #[error("{path}: it has {size} bytes; at most {limit} are read", path = path.display())]
    FileTooLarge { path: PathBuf, size: u64, limit: u64 },
    #[error("{path}: another program is writing to it", path = path.display())]
    Locked { path: PathBuf },
    #[error("session {session} was continued both here and elsewhere")]
    Continued { session: SessionId },
    #[error("a reader told of a session that it had not begun")]
    Untold,
    #[error("{path} exists already", path = path.display())]
    Exists { path: PathBuf },
    #[error("{path} was written just now, for another session of the same name", path = path.display())]
    Twice { path: PathBuf },
    #[error("{path} exists already, and is where the rest of {of} goes", path = path.display(), of = of.display())]
    ExistsBeside { path: PathBuf, of: PathBuf },
    #[error("{path} is where the rest of {of} goes, and is no folder; it is not replaced", path = path.display(), of = of.display())]
    InTheWay { path: PathBuf, of: PathBuf },
    #[error("{path} is where the file is to be written, and is a folder; it is not replaced", path = path.display())]
    NotReplaced { path: PathBuf },
    #[error("{folder} is to be replaced, and holds {what}, which is no part of a session of this format", folder = folder.display(), what = what.display())]
    Stranger { folder: PathBuf, what: PathBuf },
    #[error("{path}: a folder of the same name without an ending goes with this session, and the name has none", path = path.display())]
    NoEnding { path: PathBuf, ending: &'static str },
    #[error("{path}: it could not be replaced, and what stood there is in {at}", path = path.display(), at = at.display())]
    LeftOver { path: PathBuf, at: PathBuf },
    #[error("{path}: {error} while writing it", path = path.display())]
    Unwritable { path: PathBuf, error: io::Error },
    #[error("the name {name:?} leads out of the folder that is written")]
    Outside { name: String },
    #[error("{format} is read, and not written")]
    NotWritten { format: &'static str },
    #[error("session {session} runs no flow, and {format} holds nothing else")]
    NotAFlow { session: SessionId, format: &'static str },
    #[error("this format is written to {wants}")]
    Shape { wants: &'static str },

    #[error("line {line} is no row of a table of tasks: {why}")]
    NotTasks { line: usize, why: String },

    #[error("session {session} is in the store already and differs from the archive at seq {seq}")]
    Differs { session: SessionId, seq: Seq },
    #[error("session {session} is in the store already, but only up to seq {}", seq.prev())]
    NotWhole { session: SessionId, seq: Seq },
    #[error("session {session} belongs to session {parent}, which is not in the store")]
    NoParent { session: SessionId, parent: SessionId },
}

impl Error {
    /// What the caller should do.
    #[must_use]
    pub const fn kind(&self) -> ErrorKind {
        match self {
            Self::Store(error) => error.kind(),
            Self::Read(_) | Self::Write(_) => ErrorKind::Io,
            Self::Unreadable { .. } | Self::Foreign { .. } | Self::FileTooLarge { .. } => {
                ErrorKind::Damaged
            }
            Self::NotAnArchive { .. }
            | Self::Malformed { .. }
            | Self::Truncated { .. }
            | Self::TooLarge { .. }
            | Self::Unfit { .. }
            | Self::Refused { .. }
            | Self::NotBase64 { .. }
            | Self::NotTasks { .. }
            | Self::Outside { .. }
            | Self::Untold
            | Self::Unwritable { .. }
            | Self::LeftOver { .. }
            | Self::NoEnding { .. }
            | Self::NotWritten { .. }
            | Self::NotAFlow { .. }
            | Self::Shape { .. }
            | Self::WrongBlob { .. } => ErrorKind::Invalid,
            Self::Locked { .. } => ErrorKind::Busy,
            Self::Newer { .. } => ErrorKind::Incompatible,
            Self::Differs { .. }
            | Self::NotWhole { .. }
            | Self::Continued { .. }
            | Self::Exists { .. }
            | Self::Twice { .. }
            | Self::ExistsBeside { .. }
            | Self::InTheWay { .. }
            | Self::NotReplaced { .. }
            | Self::Stranger { .. } => ErrorKind::Conflict,
            Self::NoParent { .. } | Self::NotRecognised { .. } => ErrorKind::Absent,
        }
    }

    /// What would help, the best first.
    #[must_use]
    pub fn remedies(&self) -> Vec<Remedy> {
        let of = |action, id: &SessionId| Remedy::Session(action, id.clone());
        vec![match self {
            Self::Store(error) => return error.remedies(),
            Self::Differs { session, .. } => of(Action::Show, session),
            Self::NotWhole { session: id, .. } | Self::NoParent { parent: id, .. } => {
                of(Action::Export, id)
            }
            Self::Newer { .. } => Remedy::Upgrade,
            Self::NotRecognised { .. } => Remedy::List(Listing::Formats),
            Self::Locked { .. } => Remedy::Wait,
            Self::Exists { .. } | Self::ExistsBeside { .. } => Remedy::Replace,
            Self::NotReplaced { .. } | Self::InTheWay { .. } | Self::Stranger { .. } => {
                Remedy::OtherPlace
            }
            Self::NoEnding { path, ending } => {
                Remedy::Choose(vec![format!("{}.{ending}", path.display())])
            }
            _ => return Vec::new(),
        }]
    }
}
