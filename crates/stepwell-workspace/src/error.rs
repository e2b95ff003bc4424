//! What can go wrong here, and what the caller should do about it.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use stepwell::error::{Action, Listing};
use stepwell::{Remedy, SessionId};

/// How the address of a team's store is written.
const ADDRESS: &str = "postgres://user@host:port/database?namespace=team";

/// The result of everything that can fail here.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// What went wrong, naming the thing and the place.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// An error of the store.
    #[error(transparent)]
    Store(#[from] stepwell::Error),
    /// Sessions of other agents could not be read or written.
    #[error(transparent)]
    Formats(#[from] stepwell_formats::Error),
    /// A team's database was never set up for sessions.
    #[error(transparent)]
    TeamStoreNotSetUp(stepwell::Error),
    /// A name of a store looks like an address and is none.
    #[error(transparent)]
    Address(stepwell::Error),
    /// A name means no session.
    #[error("no session matches {name:?}{lies}")]
    NoMatch {
        /// The name.
        name: String,
        /// Where it means one.
        lies: Lies,
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
    /// The configuration is wrong.
    #[error("{at}: {why}")]
    Config {
        /// Where it is wrong.
        at: ConfigPlace,
        /// What is wrong there.
        why: String,
        /// What would help.
        remedies: Vec<Remedy>,
    },
    /// Only a team's store keeps for itself how long it keeps sessions.
    #[error("this store is in a folder, and settings of your own decide")]
    RetentionIsSetting,
    /// A team's store is another role's to change.
    #[error("only the store's owner, role {role}, can change its retention")]
    NotStoreOwner {
        /// The owner.
        role: String,
    },
    /// Something else cannot be done.
    #[error("{why}")]
    Refused {
        /// What the caller should do.
        kind: ErrorKind,
        /// What cannot be done, and why.
        why: String,
        /// What would help.
        remedies: Vec<Remedy>,
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

impl fmt::Display for Lies {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Nowhere => Ok(()),
            Self::NoStoreHere => f.write_str("; there is no store here"),
            Self::InTrash(id) => write!(f, "; {id} is in the trash"),
            Self::NotInTrash(id) => write!(f, "; {id} is not in the trash"),
            Self::Erased(_) => f.write_str("; it was erased, and left a row in the ledger"),
            Self::InStore(store) => write!(f, "; one does in {}", store.display()),
        }
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
    pub const fn kind(&self) -> ErrorKind {
        match self {
            Self::Store(error) | Self::TeamStoreNotSetUp(error) => ErrorKind::Store(error.kind()),
            Self::Address(_) | Self::RetentionIsSetting => ErrorKind::Misspelt,
            Self::Formats(error) => ErrorKind::Store(error.kind()),
            Self::NoMatch { .. } => ErrorKind::Absent,
            Self::NotStoreOwner { .. } => ErrorKind::Invalid,
            Self::File { .. } => ErrorKind::Io,
            Self::Config { .. } => ErrorKind::Config,
            Self::Refused { kind, .. } => *kind,
        }
    }

    /// What would help, the best first.
    #[must_use]
    pub fn remedies(&self) -> Vec<Remedy> {
        let of = |action, id: &SessionId| Remedy::Session(action, id.clone());
        vec![match self {
            Self::Store(error) => return error.remedies(),
            Self::Formats(error) => return error.remedies(),
            Self::TeamStoreNotSetUp(_) => Remedy::MakeStore,
            Self::Address(_) => Remedy::Choose(vec![ADDRESS.to_owned()]),
            Self::NoMatch { lies, .. } => match lies {
                Lies::Nowhere => Remedy::List(Listing::Sessions),
                Lies::NoStoreHere => Remedy::MakeStore,
                Lies::InTrash(id) => of(Action::Restore, id),
                Lies::NotInTrash(id) | Lies::Erased(id) => of(Action::Show, id),
                Lies::InStore(store) => Remedy::UseStore(store.clone()),
            },
            Self::Config { remedies, .. } | Self::Refused { remedies, .. } => {
                return remedies.clone();
            }
            Self::RetentionIsSetting | Self::NotStoreOwner { .. } | Self::File { .. } => {
                return Vec::new();
            }
        }]
    }

    /// Makes the error of a file of the user's from what the system said.
    pub fn file(path: &Path, doing: &'static str) -> impl FnOnce(io::Error) -> Self {
        move |source| Self::File { path: path.to_owned(), doing, source }
    }

    /// Something cannot be done.
    pub(crate) fn refused(kind: ErrorKind, why: impl Into<String>) -> Self {
        Self::Refused { kind, why: why.into(), remedies: Vec::new() }
    }

    /// What the user asked for cannot be done.
    pub(crate) fn invalid(why: impl Into<String>) -> Self {
        Self::refused(ErrorKind::Invalid, why)
    }

    /// The same error with what would help.
    pub(crate) fn helped_by(mut self, remedy: Remedy) -> Self {
        if let Self::Config { remedies, .. } | Self::Refused { remedies, .. } = &mut self {
            remedies.push(remedy);
        }
        self
    }
}
