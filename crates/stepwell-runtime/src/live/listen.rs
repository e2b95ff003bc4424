//! The listener's side: pieces of a session's run, from whichever process runs it.

use std::net::Shutdown;
use std::ops::ControlFlow;
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::Duration;

use parking_lot::Mutex;
use stepwell::model::Origin;
use stepwell::{SessionId, Stepwell};
use stepwell_wire::{LivePiece, MessageLine, read_messages};
use stepwell_workspace::Workspace;

use super::socket::Address;

/// How often a run that was not reached is tried again, and for how long after a nudge: a runner
/// opens its socket a moment after its first event.
const AGAIN: Duration = Duration::from_millis(100);
const TRIES: u32 = 20;

/// How far up the runs of a subagent are looked for.
const DEEPEST: usize = 32;

/// Listens until it is dropped.
#[derive(Debug)]
pub struct Listening {
    nudges: Option<mpsc::Sender<()>>,
    open: Arc<Mutex<Open>>,
}

/// The connection, while there is one.
#[derive(Debug, Default)]
struct Open {
    stream: Option<UnixStream>,
    is_over: bool,
}

/// Listens to the run of a session, be it a subagent's. `tell` is called with each piece, on a
/// thread of its own. Pieces of the subagents below the session come as well, under their names.
///
/// When the run ends, the next one is listened to; [`Listening::nudge`] says that it may be there.
#[must_use = "it listens until it is dropped"]
pub fn listen(
    workspace: &Workspace,
    well: &Stepwell,
    session: &SessionId,
    tell: impl FnMut(LivePiece) + Send + 'static,
) -> Listening {
    let (nudges, nudged) = mpsc::channel();
    let open = Arc::new(Mutex::new(Open::default()));
    let ways = ways(workspace, well, session);
    let mut ear = Ear { session: session.clone(), ways, open: Arc::clone(&open), tell };
    let thread = std::thread::Builder::new().name("stepwell-listen".to_owned());
    // Without the thread, whole answers come from the log.
    let _ = thread.spawn(move || ear.run(&nudged));
    Listening { nudges: Some(nudges), open }
}

impl Listening {
    /// A run may have begun: it is looked for again, if none is heard.
    pub fn nudge(&self) {
        if let Some(nudges) = &self.nudges {
            let _ = nudges.send(());
        }
    }
}

impl Drop for Listening {
    fn drop(&mut self) {
        self.nudges = None;
        let mut open = self.open.lock();
        open.is_over = true;
        if let Some(stream) = open.stream.take() {
            // Whoever reads from it reads its end.
            let _ = stream.shutdown(Shutdown::Both);
        }
    }
}

/// The sockets by which a session may be heard: its own, and those of the runs that it is part of.
fn ways(workspace: &Workspace, well: &Stepwell, session: &SessionId) -> Vec<Address> {
    let mut ways = vec![Address::of(workspace, session)];
    let mut at = session.clone();
    while ways.len() < DEEPEST
        && let Ok(info) = well.info(&at)
        && let Origin::Subagent { parent } = info.head.origin
    {
        ways.push(Address::of(workspace, &parent));
        at = parent;
    }
    ways
}

/// Reads what comes.
struct Ear<T> {
    session: SessionId,
    ways: Vec<Address>,
    open: Arc<Mutex<Open>>,
    tell: T,
}

impl<T: FnMut(LivePiece)> Ear<T> {
    fn run(&mut self, nudged: &mpsc::Receiver<()>) {
        let mut tries = 0;
        loop {
            tries += 1;
            if self.hear() {
                tries = 0;
            }
            let again = match tries < TRIES {
                true => nudged.recv_timeout(AGAIN),
                false => nudged.recv().map_err(|_| RecvTimeoutError::Disconnected),
            };
            match again {
                Ok(()) => tries = 0,
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => return,
            }
            while nudged.try_recv().is_ok() {}
        }
    }

    /// Hears a run to its end. False, if there is none.
    fn hear(&mut self) -> bool {
        let reach = |(above, way): (usize, &Address)| Some((above > 0, way.connect()?));
        let Some((is_above, stream)) = self.ways.iter().enumerate().find_map(reach) else {
            return false;
        };
        let Ok(reader) = stream.try_clone() else { return false };
        {
            let mut open = self.open.lock();
            if open.is_over {
                return false;
            }
            open.stream = Some(stream);
        }
        let (session, tell) = (&self.session, &mut self.tell);
        read_messages(reader, |line| {
            // Newer runners may send what is not known here.
            if let MessageLine::Whole(line) = line
                && let Ok(piece) = serde_json::from_slice::<LivePiece>(&line)
                // A run above says much that is not the session's.
                && (!is_above || piece.session == *session)
            {
                tell(piece);
            }
            ControlFlow::Continue(())
        });
        self.open.lock().stream = None;
        true
    }
}
