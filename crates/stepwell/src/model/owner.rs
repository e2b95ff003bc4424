//! A process that can hold a lease.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::talk::Who;

/// Who holds a lease: a process, told apart from a later one that got its number.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Owner {
    /// The machine's name.
    pub host: String,
    /// Which start of that machine.
    pub boot: String,
    /// Which set of process numbers: a container has its own.
    #[serde(default)]
    pub namespace: String,
    /// The process number.
    pub pid: u32,
    /// When that process started, in the machine's own words.
    pub started: String,
    /// Whose process it is; empty, if that is not known.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub user: String,
}

impl Owner {
    /// Who that is, as events name it.
    #[must_use]
    pub fn who(&self) -> Who {
        Who::new(&self.user, &self.host)
    }
}

impl fmt::Display for Owner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "process {} on {}", self.pid, self.host)
    }
}
