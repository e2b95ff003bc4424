//! Serving a client over two streams, until it goes.

use std::io::{self, Read, Write};
use std::time::Duration;

use stepwell::log::Redactor;
use stepwell_wire::{LONGEST_MESSAGE, MessageLine};
use tokio::time::timeout;

use crate::lines::Lines;
use crate::peer::Peer;
use crate::rpc::{self, Id, Incoming, RpcError};
use crate::setup::Setup;
use crate::v1::Agent;

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
    let redactor = Redactor::with_environment([], setup.host.secrets());
    let mut lines = Lines::new(input, output, redactor)?;
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
            Some(MessageLine::TooLong { id }) => {
                let why = format!("a message has more than {LONGEST_MESSAGE} bytes");
                let error = RpcError::invalid_request(why);
                Some(Incoming::Wrong { id: Id::of(id), error })
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
