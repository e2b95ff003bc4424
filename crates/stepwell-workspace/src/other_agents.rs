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

/// Asks something that depends on where other agents' things are.
pub fn with_homes<T>(workspace: &Workspace, question: impl FnOnce(&Homes<'_>) -> T) -> T {
    let variable = |name: &str| workspace.host.variable(name).map(PathBuf::from);
    question(&Homes {
        home: workspace.host.home.as_deref(),
        data: workspace.host.data.as_deref(),
        workspace: Some(&workspace.place.root),
        variable: &variable,
    })
}

/// The places that are there, of one format or of all.
#[must_use]
pub fn places(workspace: &Workspace, only: Option<Format>) -> Vec<AgentPlace> {
    let formats = Format::all().filter(|format| only.is_none_or(|only| only == *format));
    let places = formats.flat_map(|format| {
        let paths = with_homes(workspace, |homes| format.places(homes)).into_iter();
        paths.map(move |path| AgentPlace { format, path })
    });
    places.filter(|place| place.path.exists()).collect()
}
