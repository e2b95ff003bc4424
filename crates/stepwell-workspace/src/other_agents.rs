//! Other agents of this machine: where they keep their sessions.

use std::path::PathBuf;

use stepwell_formats::{Format, Homes};

use crate::workspace::Workspace;

/// A place where an agent keeps sessions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AgentPlace {
    /// What it keeps there.
    pub format: Format,
    /// The folder or file.
    pub path: PathBuf,
}

impl Workspace {
    /// Asks something that depends on where other agents' things are.
    pub fn ask_homes<T>(&self, question: impl FnOnce(&Homes<'_>) -> T) -> T {
        let variable = |name: &str| self.host.variable(name).map(PathBuf::from);
        question(&Homes {
            home: self.host.home.as_deref(),
            data: self.host.data.as_deref(),
            workspace: Some(&self.place.root),
            variable: &variable,
        })
    }

    /// The places that are there, of one format or of all.
    #[must_use]
    pub fn agent_places(&self, only: Option<Format>) -> Vec<AgentPlace> {
        let formats = Format::all().filter(|format| only.is_none_or(|only| only == *format));
        let places = formats.flat_map(|format| {
            let paths = self.ask_homes(|homes| format.places(homes)).into_iter();
            paths.map(move |path| AgentPlace { format, path })
        });
        places.filter(|place| place.path.exists()).collect()
    }
}
