//! Which sessions a server shows, and what it may do.

/// Which sessions the server shows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Scope {
    /// The sessions of this workspace.
    #[default]
    Workspace,
    /// The sessions of all of the user's stores.
    Everywhere,
}

/// Permissions besides reading.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Access {
    /// Recording sessions of external agents.
    Record,
    /// Changing labels and tags of any session, and forking it.
    Manage,
}

impl Access {
    /// Its name on the command line.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Record => "record",
            Self::Manage => "manage",
        }
    }
}

/// The options of a server.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// Which sessions it shows.
    pub scope: Scope,
    /// Permissions besides reading.
    pub allow: Vec<Access>,
}

impl Options {
    /// The arguments of the command that starts such a server.
    #[must_use]
    pub fn arguments(&self) -> Vec<String> {
        let mut arguments = vec!["mcp".to_owned()];
        if self.scope == Scope::Everywhere {
            arguments.push("--everywhere".to_owned());
        }
        if !self.allow.is_empty() {
            let words: Vec<&str> = self.allow.iter().map(|access| access.as_str()).collect();
            arguments.extend(["--allow".to_owned(), words.join(",")]);
        }
        arguments
    }
}
