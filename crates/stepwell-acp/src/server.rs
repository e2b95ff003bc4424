//! Serving a client over two streams, until it goes.

use std::io::{self, Read, Write};
use std::path::Path;
use std::time::Duration;

use stepwell_runtime::{Runtime, Supervisor};
use stepwell_wire::{LONGEST_MESSAGE, MessageLine};
use stepwell_workspace::{Host, Notices, Wanted, Workspace};
use tokio::time::timeout;

use crate::lines::Lines;
use crate::peer::Peer;
use crate::rpc::{self, Id, Incoming, RpcError};
use crate::v1::Agent;

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
        let mut workspace = Workspace::find(host, wanted, Notices::to_nobody())?;
        if let Some(session) = session {
            workspace.go_to_session(session)?;
        }
        Ok(Runtime::new(workspace).supervised_by(self.supervisor.clone()))
    }
}

/// How long runs have to end cleanly when the client is gone. What they started is stopped
/// within ten seconds.
const PARTING: Duration = Duration::from_secs(20);

/// Serves a client until its input ends, or `stop` does. Runs are then recorded as interrupted, or
/// paused if they wait for an answer.
///
/// # Errors
/// If no thread can be started.
pub async fn serve(
    setup: Setup,
    input: impl Read + Send + 'static,
    output: impl Write + Send + 'static,
    stop: impl Future<Output = ()>,
) -> io::Result<()> {
    let mut lines = Lines::new(input, output)?;
    let peer = Peer::new(lines.outgoing.clone());
    let agent = Agent::new(peer.clone(), setup);
    tokio::pin!(stop);
    loop {
        let line = tokio::select! {
            line = lines.incoming.recv() => line,
            () = &mut stop => None,
        };
        let message = match line {
            None => break,
            Some(MessageLine::Whole(line)) => rpc::read(&line),
            Some(MessageLine::TooLong) => {
                let why = format!("a message has more than {LONGEST_MESSAGE} bytes");
                Some(Incoming::Wrong { id: Id::Null, error: RpcError::invalid_request(why) })
            }
        };
        match message {
            None => {}
            Some(Incoming::Request { id, method, params }) => {
                agent.request(id, method, params).await;
            }
            Some(Incoming::Notification { method, params }) => agent.notified(&method, params),
            Some(Incoming::Response { id, answer }) => peer.answered(&id, answer),
            Some(Incoming::Wrong { id, error }) => peer.respond(&id, Err(error)),
        }
    }
    // A run that does not end in time is found cut off by the next one.
    let _ = timeout(PARTING, agent.leave()).await;
    tokio::task::block_in_place(|| lines.finish());
    Ok(())
}
