//! What a process finds around itself, as a plain value: a program fills it in, a test makes one up.

use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;

use stepwell::clock::{Clock, SystemClock};
use stepwell::model::Time;
use stepwell::store::{Processes, SystemProcesses};
use stepwell_catalog::{IN_RUN, is_private_variable};

/// What a process finds around itself.
#[derive(Clone, Debug)]
pub struct Host {
    /// The folder that it works in; none, if that is gone.
    pub folder: Option<PathBuf>,
    /// The user's home.
    pub home: Option<PathBuf>,
    /// Where the user's configuration is, such as `~/.config/stepwell`.
    pub config: Option<PathBuf>,
    /// Where we remember things for the user, such as `~/.local/state/stepwell`.
    pub state: Option<PathBuf>,
    /// Where we keep what ends with the user's login, such as `/run/user/1000/stepwell`. Nobody
    /// else may enter it.
    pub runtime: Option<PathBuf>,
    /// Where programs keep the user's data, such as `~/.local/share`.
    pub data: Option<PathBuf>,
    /// The program that runs, as the system knows it.
    pub program: Option<PathBuf>,
    /// The variables of the environment.
    pub environment: Arc<dyn Environment>,
    /// Tells the time.
    pub clock: Arc<dyn Clock>,
    /// Knows this process and whether others live.
    pub processes: Arc<dyn Processes>,
}

/// The variables of an environment. They hold secrets, so nobody keeps a copy of them: they are
/// read when they are needed.
pub trait Environment: fmt::Debug + Send + Sync {
    /// The value of a variable; none, if it is not set or is no text.
    fn get(&self, name: &str) -> Option<String>;

    /// The names of all variables that are texts.
    fn names(&self) -> Vec<String>;

    /// Did a run's command start this process? What only a person may do is refused then.
    fn is_in_run(&self) -> bool {
        self.get(IN_RUN).is_some()
    }
}

impl Environment for BTreeMap<String, String> {
    fn get(&self, name: &str) -> Option<String> {
        self.get(name).cloned()
    }

    fn names(&self) -> Vec<String> {
        self.keys().cloned().collect()
    }
}

/// What the names of our own variables begin with.
pub(crate) const OURS: &str = "STEPWELL_";

impl Host {
    /// A host with nothing in its environment, and no folders.
    #[must_use]
    pub fn bare() -> Self {
        Self {
            folder: None,
            home: None,
            config: None,
            state: None,
            runtime: None,
            data: None,
            program: None,
            environment: Arc::new(BTreeMap::new()),
            clock: Arc::new(SystemClock),
            processes: Arc::new(SystemProcesses),
        }
    }

    /// Now.
    #[must_use]
    pub fn now(&self) -> Time {
        self.clock.now()
    }

    /// A variable that says something.
    #[must_use]
    pub fn variable(&self, name: &str) -> Option<String> {
        self.environment.get(name).filter(|value| !value.trim().is_empty())
    }

    /// Our own variables.
    pub(crate) fn own_variables(&self) -> BTreeMap<String, String> {
        let names = self.environment.names().into_iter().filter(|name| name.starts_with(OURS));
        names.filter_map(|name| Some((name.clone(), self.environment.get(&name)?))).collect()
    }

    /// The values of variables whose names say that they are secret, to keep them out of what
    /// is written.
    #[must_use]
    pub fn secrets(&self) -> Vec<String> {
        let names = self.environment.names().into_iter().filter(|name| is_secret(name));
        names.filter_map(|name| self.environment.get(&name)).collect()
    }

    /// The variables that no program is given which an agent starts.
    #[must_use]
    pub fn private_variables(&self) -> Vec<String> {
        let mut names = self.environment.names();
        names.retain(|name| is_private_variable(name));
        names
    }

    /// The user's own configuration file.
    #[must_use]
    pub fn user_config(&self) -> Option<PathBuf> {
        self.config.as_ref().map(|folder| folder.join("config.toml"))
    }
}

fn is_secret(name: &str) -> bool {
    // Some are written in one word, such as PGPASSWORD.
    const ENDINGS: [&str; 7] =
        ["_KEY", "_TOKEN", "_SECRET", "PASSWORD", "PASSWD", "_PASS", "_CREDENTIALS"];
    ENDINGS.iter().any(|ending| {
        // One that is nothing but the ending's word counts too, such as TOKEN.
        let from = name.len().saturating_sub(ending.len());
        let ends = name.get(from..).is_some_and(|end| end.eq_ignore_ascii_case(ending));
        ends || ending.strip_prefix('_').is_some_and(|word| name.eq_ignore_ascii_case(word))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn with(variables: &[(&str, &str)]) -> Host {
        let environment: BTreeMap<String, String> =
            variables.iter().map(|(name, value)| ((*name).into(), (*value).into())).collect();
        Host { environment: Arc::new(environment), ..Host::bare() }
    }

    #[test]
    fn secrets_are_known_by_their_names() {
        let host = with(&[
            ("OPENAI_API_KEY", "a"),
            ("key", "b"),
            ("PGPASSWORD", "c"),
            ("GITHUB_TOKEN", "d"),
            ("KEYBOARD", "e"),
            ("MONKEY", "f"),
            ("PATH", "g"),
        ]);
        let mut secrets = host.secrets();
        secrets.sort();
        assert_eq!(secrets, ["a", "b", "c", "d"]);
    }

    #[test]
    fn what_agents_start_gets_no_keys_and_no_settings_of_ours() {
        let host = with(&[("OPENAI_API_KEY", "a"), ("STEPWELL_STORE", "b"), ("PATH", "c")]);
        assert_eq!(host.private_variables(), ["OPENAI_API_KEY", "STEPWELL_STORE"]);
    }

    #[test]
    fn a_variable_that_says_nothing_is_not_set() {
        let host = with(&[("STEPWELL_STORE", " "), ("STEPWELL_LOG", "info"), ("OTHER", "x")]);
        assert_eq!(host.variable("STEPWELL_STORE"), None);
        assert_eq!(host.variable("STEPWELL_LOG").as_deref(), Some("info"));
        assert_eq!(host.own_variables().len(), 2);
    }
}
