//! A process that can hold a lease.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::talk::Who;

/// The process that holds a lease. It differs from a later process with the same number.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Owner {
    /// The machine's name.
    pub host: String,
    /// The id of that machine's boot.
    pub boot: String,
    /// The namespace of the process number: a container has its own.
    #[serde(default)]
    pub namespace: String,
    /// The process number.
    pub pid: u32,
    /// When the process started, in the machine's own format.
    pub started: String,
    /// The process's user; empty if unknown.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub user: String,
}

impl Owner {
    /// The process's user and host, as events record them.
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
