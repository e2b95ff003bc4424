//! The process's surroundings, read here and nowhere else.

use std::path::PathBuf;
use std::sync::Arc;

use stepwell::clock::{Clock, SystemClock};
use stepwell::model::{Owner, Time};
use stepwell::store::{Liveness, Processes, SystemProcesses};
use stepwell_agent::tool::{IN_RUN, is_inside_run};
use stepwell_workspace::{Environment, Host};

use crate::runner::SUPERVISE;

/// The environment of this process.
#[derive(Debug)]
struct ProcessEnvironment;

impl Environment for ProcessEnvironment {
    #[expect(clippy::disallowed_methods, reason = "this is where the environment comes from")]
    fn get(&self, name: &str) -> Option<String> {
        std::env::var(name).ok()
    }

    fn names(&self) -> Vec<String> {
        std::env::vars_os().filter_map(|(name, _)| name.into_string().ok()).collect()
    }

    fn is_in_run(&self) -> bool {
        self.get(IN_RUN).is_some() || is_inside_run(SUPERVISE)
    }
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
    fn this(&self) -> Owner {
        Owner { host: self.0.clone(), ..SystemProcesses.this() }
    }

    fn pulse(&self, holder: &Owner) -> Liveness {
        match holder.host == self.0 {
            true => {
                let host = SystemProcesses.this().host;
                SystemProcesses.pulse(&Owner { host, ..holder.clone() })
            }
            false => Liveness::Unknown,
        }
    }
}

/// What this process finds around itself.
#[expect(clippy::disallowed_methods, reason = "this is where the environment comes from")]
pub(crate) fn of_this_process() -> Host {
    let set = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty());
    let home = set("HOME").map(PathBuf::from);
    // An XDG folder that is not absolute is to be ignored, says its specification.
    let base = |name: &str, below_home: &str| {
        let named = set(name).map(PathBuf::from).filter(|path| path.is_absolute());
        named.or_else(|| Some(home.as_ref()?.join(below_home)))
    };
    // Only a debug build lets itself be told the time and its machine: a lease that is
    // made with wrong ones protects nothing.
    let told = set("STEPWELL_NOW").filter(|_| cfg!(debug_assertions));
    let clock: Arc<dyn Clock> = match told.and_then(|time| time.to_str()?.parse().ok()) {
        Some(time) => Arc::new(Still(time)),
        None => Arc::new(SystemClock),
    };
    let machine = set("STEPWELL_HOST").filter(|_| cfg!(debug_assertions));
    let processes: Arc<dyn Processes> = match machine {
        Some(name) => Arc::new(Machine(name.to_string_lossy().into_owned())),
        None => Arc::new(SystemProcesses),
    };
    Host {
        folder: std::env::current_dir().ok(),
        config: base("XDG_CONFIG_HOME", ".config").map(|folder| folder.join("stepwell")),
        state: base("XDG_STATE_HOME", ".local/state").map(|folder| folder.join("stepwell")),
        runtime: set("XDG_RUNTIME_DIR")
            .map(PathBuf::from)
            .filter(|path| path.is_absolute())
            .map(|folder| folder.join("stepwell")),
        data: base("XDG_DATA_HOME", ".local/share"),
        home,
        program: std::env::current_exe().ok(),
        environment: Arc::new(ProcessEnvironment),
        clock,
        processes,
    }
}
