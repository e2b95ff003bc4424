//! A node that a flow would run next, as a dry run finds it.

use serde::Serialize;

/// A node that a flow would run next.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Upcoming {
    /// Its key, as the session's log names it.
    pub key: String,
    /// The agent that would be asked; `None` for a question to a person.
    pub agent: Option<String>,
    /// The prompt or the question; `None` if it cannot be rendered yet.
    pub asks: Option<String>,
}
