//! What a server works with, and how it comes to a session's workspace.

use std::path::Path;

use stepwell_runtime::{Runtime, Supervisor};
use stepwell_workspace::{Host, Notices, Wanted, Workspace, known_stores};

/// What a server works with.
#[derive(Clone, Debug)]
pub struct Setup {
    /// What the process finds around itself.
    pub host: Host,
    /// Which store and settings are wanted; the folder is each session's own.
    pub wanted: Wanted,
    /// The program that ends what commands started.
    pub supervisor: Option<Supervisor>,
    /// Are methods offered that the protocol may still change?
    pub unstable: bool,
    /// Our version, as the client shows it.
    pub version: String,
}

impl Setup {
    /// A runtime in a folder, or in the workspace of a session that lies elsewhere.
    pub(crate) fn runtime(
        &self,
        cwd: Option<&Path>,
        session: Option<&str>,
    ) -> Result<Runtime, stepwell_workspace::Error> {
        let (mut host, mut wanted) = (self.host.clone(), self.wanted.clone());
        if let Some(cwd) = cwd {
            (host.folder, wanted.folder) = (Some(cwd.to_owned()), Some(cwd.to_owned()));
        }
        let mut workspace = Workspace::locate(host, wanted, Notices::to_nobody())?;
        if let Some(session) = session {
            known_stores::go_to_session(&mut workspace, session)?;
        }
        Ok(Runtime::new(workspace).supervised_by(self.supervisor.clone()))
    }
}
