//! What the process finds around itself: its folder, the environment, the terminal.
//! Read once, here, so that everything else is a function of it.

use std::collections::BTreeMap;
use std::io::IsTerminal;
use std::path::PathBuf;
use std::sync::Arc;

use stepwell::{Clock, Holder, Processes, Pulse, SystemClock, SystemProcesses, Time};

/// What the process finds around itself.
#[derive(Clone, Debug)]
pub(crate) struct World {
    /// The folder it was started in.
    pub(crate) folder: Option<PathBuf>,
    /// The user's home.
    pub(crate) home: Option<PathBuf>,
    /// The variables that are ours, `STEPWELL_*`.
    pub(crate) variables: BTreeMap<String, String>,
    /// Where the user's configuration is, `~/.config/stepwell`.
    pub(crate) config: Option<PathBuf>,
    /// Where we remember things for the user, `~/.local/state/stepwell`.
    pub(crate) state: Option<PathBuf>,
    /// What the standard streams are.
    pub(crate) terminal: Terminal,
    /// Tells the time.
    pub(crate) clock: Arc<dyn Clock>,
    /// Knows this process and whether others live.
    pub(crate) processes: Arc<dyn Processes>,
}

/// A clock that stands still, for tests of what depends on the time.
#[derive(Debug)]
struct Still(Time);

impl Clock for Still {
    fn now(&self) -> Time {
        self.0
    }
}

/// A machine of another name, for tests of what several do: it can judge none but its own
/// processes.
#[derive(Debug)]
struct Machine(String);

impl Processes for Machine {
    fn this(&self) -> Holder {
        Holder { host: self.0.clone(), ..SystemProcesses.this() }
    }

    fn pulse(&self, holder: &Holder) -> Pulse {
        match holder.host == self.0 {
            true => {
                let host = SystemProcesses.this().host;
                SystemProcesses.pulse(&Holder { host, ..holder.clone() })
            }
            false => Pulse::Unknown,
        }
    }
}

/// What the standard streams are.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Terminal {
    /// Can a question be asked and answered?
    pub(crate) can_ask: bool,
    /// Is the answer read by a person?
    pub(crate) output: bool,
    /// How many columns it has; unlimited in a pipe.
    pub(crate) width: Option<usize>,
    /// Does the user want no colour, whatever the terminal can do?
    pub(crate) plain: bool,
}

impl World {
    #[expect(clippy::disallowed_methods, reason = "this is where the environment comes from")]
    pub(crate) fn of_this_process() -> Self {
        let set = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty());
        let home = set("HOME").map(PathBuf::from);
        // An XDG folder that is not absolute is to be ignored, says its specification.
        let folder = |name: &str, below_home: &str| {
            let named = set(name).map(PathBuf::from).filter(|path| path.is_absolute());
            let folder = named.or_else(|| Some(home.as_ref()?.join(below_home)))?;
            Some(folder.join("stepwell"))
        };
        let ours = |(name, value): (std::ffi::OsString, std::ffi::OsString)| {
            let name = name.into_string().ok().filter(|name| name.starts_with("STEPWELL_"))?;
            Some((name, value.to_string_lossy().into_owned()))
        };
        let columns = set("COLUMNS").and_then(|columns| columns.to_str()?.parse().ok());
        let (output, input) = (std::io::stdout(), std::io::stdin());
        // Only a debug build lets itself be told the time and its machine: a lease that is
        // made with wrong ones protects nothing.
        let told = set("STEPWELL_NOW").filter(|_| cfg!(debug_assertions));
        let told = told.and_then(|time| time.to_str()?.parse().ok());
        let clock: Arc<dyn Clock> = match told {
            Some(time) => Arc::new(Still(time)),
            None => Arc::new(SystemClock),
        };
        let machine = set("STEPWELL_HOST").filter(|_| cfg!(debug_assertions));
        let processes: Arc<dyn Processes> = match machine {
            Some(name) => Arc::new(Machine(name.to_string_lossy().into_owned())),
            None => Arc::new(SystemProcesses),
        };
        Self {
            clock,
            processes,
            folder: std::env::current_dir().ok(),
            variables: std::env::vars_os().filter_map(ours).collect(),
            config: folder("XDG_CONFIG_HOME", ".config"),
            state: folder("XDG_STATE_HOME", ".local/state"),
            home: home.clone(),
            terminal: Terminal {
                can_ask: input.is_terminal() && std::io::stderr().is_terminal(),
                output: output.is_terminal(),
                width: columns
                    .filter(|_| output.is_terminal())
                    .or_else(|| width(&output))
                    .filter(|width| *width > 0),
                plain: set("NO_COLOR").is_some() || set("TERM").is_some_and(|term| term == "dumb"),
            },
        }
    }

    /// A variable that holds a key. Read when it is needed, and kept nowhere.
    #[expect(clippy::disallowed_methods, reason = "this is where the environment comes from")]
    pub(crate) fn key(&self, name: &str) -> Option<String> {
        std::env::var(name).ok().filter(|key| !key.trim().is_empty())
    }

    /// The values of variables whose names say that they are secret. Read when they are
    /// needed, to keep them out of what is written.
    pub(crate) fn secrets(&self) -> Vec<String> {
        // Some are written in one word, such as PGPASSWORD.
        const ENDINGS: [&str; 7] =
            ["_KEY", "_TOKEN", "_SECRET", "PASSWORD", "PASSWD", "_PASS", "_CREDENTIALS"];
        let is_secret = |name: &str| ENDINGS.iter().any(|ending| name.ends_with(ending));
        let variables = std::env::vars_os().filter_map(|(name, value)| {
            let name = name.to_str()?.to_ascii_uppercase();
            is_secret(&format!("_{name}")).then(|| value.into_string().ok())?
        });
        variables.collect()
    }

    /// One of our variables.
    pub(crate) fn variable(&self, name: &str) -> Option<&str> {
        self.variables.get(name).map(String::as_str).filter(|value| !value.is_empty())
    }
}

fn width(output: &std::io::Stdout) -> Option<usize> {
    let size = rustix::termios::tcgetwinsize(output).ok()?;
    Some(usize::from(size.ws_col))
}
