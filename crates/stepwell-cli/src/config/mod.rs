//! Configuration: typed settings, read from files, the environment and flags, each
//! with where its value came from.

mod load;
mod settings;
mod value;
mod write;

use std::fmt;
use std::path::PathBuf;

pub(crate) use load::user_file;
pub(crate) use settings::{KEYS, Key, Settings, nearest};
pub(crate) use value::IdStyle;
pub(crate) use write::{beside, commented, put, replace};

/// The settings in force, and where each came from.
#[derive(Debug)]
pub(crate) struct Config {
    pub(crate) settings: Settings,
    /// By the place of their key in [`KEYS`].
    sources: Vec<Source>,
}

impl Default for Config {
    fn default() -> Self {
        Self { settings: Settings::default(), sources: vec![Source::Default; KEYS.len()] }
    }
}

/// Where a value came from. Later ones win.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Source {
    Default,
    File(PathBuf),
    Variable(String),
    Flag,
}

impl fmt::Display for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Default => f.write_str("default"),
            Self::File(path) => write!(f, "{}", path.display()),
            Self::Variable(name) => f.write_str(name),
            Self::Flag => f.write_str("--config"),
        }
    }
}

impl Config {
    /// Where the value of a key came from.
    pub(crate) fn source(&self, key: &Key) -> &Source {
        let place = KEYS.iter().position(|other| other.name == key.name);
        place.map_or(&Source::Default, |place| &self.sources[place])
    }
}
