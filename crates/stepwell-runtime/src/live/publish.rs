//! The runner's side: what its model says goes to those who listen.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use parking_lot::{Mutex, MutexGuard};
use stepwell::{Lane, Recorded, Seq, Session, SessionId};
use stepwell_agent::provider::Delta;
use stepwell_agent::run::RunEvent;
use stepwell_wire::{LivePiece, LivePieceKind};
use tokio::io::AsyncWriteExt as _;
use tokio::net::{UnixListener, UnixStream};
use tokio::sync::{mpsc, oneshot};
use tokio::task::{AbortHandle, JoinSet};

use super::answers::Answers;
use super::in_order::answer;
use super::socket::{Address, SocketFile};
use crate::runtime::Runtime;

/// How many bytes may wait for a listener before it is dropped as too slow.
const BEHIND: usize = 1 << 20;

/// How many may listen to a run.
const MOST_LISTENERS: usize = 64;

/// How long what was said last may take to arrive when the run is over.
const GOODBYE: Duration = Duration::from_millis(500);

/// Publishes a run's pieces until it is dropped.
#[derive(Debug)]
pub(crate) struct Publisher {
    stage: Arc<Stage>,
    /// Dropping it ends the thread that listeners join by.
    _ends: oneshot::Sender<()>,
    _file: SocketFile,
}

/// What is being said in a run, and to whom.
#[derive(Debug)]
pub(crate) struct Stage {
    session: SessionId,
    inside: Mutex<Inside>,
}

#[derive(Debug, Default)]
struct Inside {
    /// The last event of each session that this run recorded.
    recorded: HashMap<SessionId, Seq>,
    answers: Answers,
    listeners: Vec<Listener>,
}

/// Somebody who listens.
#[derive(Debug)]
struct Listener {
    lines: mpsc::UnboundedSender<Arc<[u8]>>,
    /// How many bytes wait to be written.
    behind: Arc<AtomicUsize>,
    task: AbortHandle,
}

impl Publisher {
    /// Opens the socket of a session's run. Absent, there is no folder for it; then nobody listens,
    /// and the run goes on all the same.
    pub(crate) fn open(session: &Session, runtime: &Runtime) -> Option<Self> {
        let id = session.id();
        let bound = Address::of(runtime.workspace(), id).bind();
        let bound = bound.and_then(|bound| {
            bound.listener.set_nonblocking(true)?;
            Ok(bound)
        });
        let bound = match bound {
            Ok(bound) => bound,
            Err(error) => {
                tracing::debug!(session = %id, %error, "live_pieces_not_published");
                return None;
            }
        };
        let stage = Arc::new(Stage { session: id.clone(), inside: Mutex::default() });
        let head = session.info().ok()?.head.seq;
        stage.inside().recorded.insert(id.clone(), head);
        let (ends, ended) = oneshot::channel();
        let (staged, listener) = (Arc::clone(&stage), bound.listener);
        let thread = std::thread::Builder::new().name("stepwell-live".to_owned());
        thread.spawn(move || serve(&staged, listener, ended)).ok()?;
        bound.file.sweep();
        Some(Self { stage, _ends: ends, _file: bound.file })
    }

    pub(crate) fn stage(&self) -> Arc<Stage> {
        Arc::clone(&self.stage)
    }
}

impl Stage {
    fn inside(&self) -> MutexGuard<'_, Inside> {
        self.inside.lock()
    }

    /// Passes an event on, if it is a piece and somebody listens.
    pub(crate) fn see(&self, event: &RunEvent) {
        self.see_in(&self.session, None, event);
    }

    fn see_in(&self, session: &SessionId, lane: Option<&Lane>, event: &RunEvent) {
        match event {
            RunEvent::Child { session, event } => self.see_in(session, None, event),
            RunEvent::Within { lane, event, .. } => self.see_in(session, Some(lane), event),
            RunEvent::Recorded(recorded) => self.inside().recorded(session, recorded),
            RunEvent::Delta(delta) => {
                let main = Lane::main();
                self.inside().said(session, lane.unwrap_or(&main), delta);
            }
            RunEvent::ToolOutput { call, tool, ran, tail } => self.aside(session, lane, || {
                let (call, tool, tail) = (call.clone(), tool.clone(), tail.clone());
                LivePieceKind::Output { call, tool, ran_ms: millis(*ran), tail }
            }),
            RunEvent::Waiting(waited) => {
                self.aside(session, lane, || LivePieceKind::Waiting { waited_ms: millis(*waited) });
            }
            _ => {}
        }
    }

    /// Sends what nobody who joins later needs.
    fn aside(
        &self,
        session: &SessionId,
        lane: Option<&Lane>,
        kind: impl FnOnce() -> LivePieceKind,
    ) {
        let mut inside = self.inside();
        if !inside.listeners.is_empty() {
            let lane = lane.cloned().unwrap_or_else(Lane::main);
            inside.send(session, &lane, kind());
        }
    }

    /// Lets somebody listen: first to what was said of the present answers.
    fn join(&self, stream: UnixStream, tasks: &mut JoinSet<()>) {
        // The folder lets nobody else in; this is for one that was opened to others since.
        let own = rustix::process::geteuid().as_raw();
        if !stream.peer_cred().is_ok_and(|peer| peer.uid() == own) {
            return;
        }
        let mut inside = self.inside();
        inside.listeners.retain(|it| !it.lines.is_closed());
        if inside.listeners.len() >= MOST_LISTENERS {
            return;
        }
        let (lines, queue) = mpsc::unbounded_channel();
        let behind = Arc::new(AtomicUsize::new(0));
        let task = tasks.spawn(write(stream, queue, Arc::clone(&behind)));
        let listener = Listener { lines, behind, task };
        for piece in inside.answers.so_far() {
            listener.send(&line(&piece));
        }
        inside.listeners.push(listener);
    }
}

impl Inside {
    fn recorded(&mut self, session: &SessionId, recorded: &Recorded) {
        match self.recorded.get_mut(session) {
            Some(last) => *last = recorded.seq.max(*last),
            None => drop(self.recorded.insert(session.clone(), recorded.seq)),
        }
        if let Some(message) = answer(recorded) {
            let seq = recorded.seq;
            self.answers.of(session, &message.lane).record(seq);
            self.send(session, &message.lane, LivePieceKind::Recorded { seq });
        }
    }

    fn said(&mut self, session: &SessionId, lane: &Lane, delta: &Delta) {
        let after = self.recorded.get(session).copied().unwrap_or_default();
        let answer = self.answers.of(session, lane);
        answer.after = after;
        let kind: fn(String) -> LivePieceKind = match delta {
            Delta::Text(text) => {
                answer.text.push_str(text);
                |text| LivePieceKind::Text { text }
            }
            Delta::Thinking(text) => {
                answer.thinking.push_str(text);
                |text| LivePieceKind::Thinking { text }
            }
            Delta::Void => {
                answer.clear();
                |_| LivePieceKind::Void
            }
            Delta::Call => return,
        };
        if !self.listeners.is_empty() {
            let text = match delta {
                Delta::Text(text) | Delta::Thinking(text) => text.clone(),
                Delta::Call | Delta::Void => String::new(),
            };
            self.send(session, lane, kind(text));
        }
    }

    /// Sends a piece to all who listen; those who are too slow are dropped.
    fn send(&mut self, session: &SessionId, lane: &Lane, kind: LivePieceKind) {
        if self.listeners.is_empty() {
            return;
        }
        let after = self.recorded.get(session).copied().unwrap_or_default();
        let (session, lane) = (session.clone(), lane.clone());
        let line = line(&LivePiece { session, lane, after, kind });
        self.listeners.retain(|listener| listener.send(&line));
    }
}

impl Listener {
    /// Has a line written, unless too much waits already. False, if nobody is there any more.
    fn send(&self, line: &Arc<[u8]>) -> bool {
        let behind = self.behind.fetch_add(line.len(), Ordering::Relaxed);
        // A line alone may be of any length.
        if behind > 0 && behind + line.len() > BEHIND {
            self.task.abort();
            return false;
        }
        self.lines.send(Arc::clone(line)).is_ok()
    }
}

fn line(piece: &LivePiece) -> Arc<[u8]> {
    let mut line = serde_json::to_vec(piece).unwrap_or_default();
    line.push(b'\n');
    line.into()
}

fn millis(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}

/// Lets listeners join until the run is over. It sleeps while none comes.
fn serve(
    stage: &Stage,
    listener: std::os::unix::net::UnixListener,
    mut ended: oneshot::Receiver<()>,
) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let Ok(runtime) = runtime else { return };
    runtime.block_on(async {
        let Ok(listener) = UnixListener::from_std(listener) else { return };
        let mut tasks = JoinSet::new();
        loop {
            tokio::select! {
                // Nothing is ever sent: only the run's end closes it.
                _ = &mut ended => break,
                Some(_) = tasks.join_next() => {}
                joined = listener.accept() => match joined {
                    Ok((stream, _)) => stage.join(stream, &mut tasks),
                    Err(_) => break,
                }
            }
        }
        drop(listener);
        stage.inside().listeners.clear();
        let written = async { while tasks.join_next().await.is_some() {} };
        let _ = tokio::time::timeout(GOODBYE, written).await;
    });
}

/// Writes a listener's lines as fast as it reads.
async fn write(
    mut stream: UnixStream,
    mut queue: mpsc::UnboundedReceiver<Arc<[u8]>>,
    behind: Arc<AtomicUsize>,
) {
    while let Some(line) = queue.recv().await {
        if stream.write_all(&line).await.is_err() {
            return;
        }
        behind.fetch_sub(line.len(), Ordering::Relaxed);
    }
}
