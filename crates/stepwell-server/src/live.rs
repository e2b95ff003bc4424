//! Live streams: a session's log as it grows, and changes of sessions.
//!
//! One thread follows a session for all of its watchers, and ends with the last of them. A watcher
//! first reads the recorded events, then receives new ones from the follower. A watcher that is too
//! slow loses its stream; it reconnects with its last seq, so nothing is missed.
//!
//! A model's pieces are not redacted, so they go only to the user who runs the server, and only on
//! their own machine.

use std::collections::HashMap;
use std::convert::Infallible;
use std::fmt::Write as _;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures_util::Stream;
use parking_lot::{Mutex, MutexGuard};
use serde_json::json;
use stepwell::sessions::{Followed, Notice};
use stepwell::store::Span;
use stepwell::{Recorded, Seq, SessionId, Stepwell};
use stepwell_runtime::live::{InOrder, Listening, LivePiece, listen};
use stepwell_wire::Session;
use stepwell_workspace::Workspace;
use tokio::sync::{broadcast, mpsc};

use crate::problem::Result;

/// How many frames a slow watcher may be behind before its stream ends.
const BEHIND: usize = 1024;

/// How often a follower checks whether it still has watchers.
const PATIENCE: Duration = Duration::from_secs(2);

/// The interval of keep-alives in an idle stream.
const HEARTBEAT: Duration = Duration::from_secs(15);

/// An event of a stream: its name, its seq if it is recorded, and its data.
#[derive(Clone, Debug)]
struct Frame {
    name: &'static str,
    seq: Option<Seq>,
    /// JSON without line breaks, which fits on one line of a frame.
    data: Arc<str>,
    /// Only for the user who runs the server?
    is_private: bool,
}

/// The name of the frame for an erased session.
const GONE: &str = "gone";

/// The name of the frame for a session that cannot be followed now.
const LOST: &str = "lost";

/// The kind of a watcher.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Watcher {
    /// The user who runs the server, who also receives live pieces.
    User,
    /// Any other caller.
    Other,
}

impl Watcher {
    fn may_see(self, frame: &Frame) -> bool {
        self == Self::User || !frame.is_private
    }
}

/// A followed session.
#[derive(Debug)]
struct Following {
    session: SessionId,
    frames: broadcast::Sender<Frame>,
    order: Mutex<InOrder>,
}

/// The start of a watch: the answer so far, and the coming frames.
struct Joined {
    so_far: Vec<Frame>,
    news: broadcast::Receiver<Frame>,
}

impl Following {
    fn new(session: SessionId, told: Seq) -> Self {
        let (frames, _) = broadcast::channel(BEHIND);
        let order = Mutex::new(InOrder::new(session.clone(), told));
        Self { session, frames, order }
    }

    fn order(&self) -> MutexGuard<'_, InOrder> {
        self.order.lock()
    }

    /// No frame is sent between the two.
    fn join(&self) -> Joined {
        let order = self.order();
        Joined {
            so_far: order.so_far().iter().map(spoken).collect(),
            news: self.frames.subscribe(),
        }
    }

    /// Sends a live piece. Pieces of subagents have their own streams.
    fn hear(&self, piece: LivePiece) {
        if piece.session == self.session {
            let mut order = self.order();
            for piece in order.hear(piece) {
                let _ = self.frames.send(spoken(&piece));
            }
        }
    }

    fn tell(&self, well: &Stepwell, event: &Recorded) {
        let mut order = self.order();
        let _ = self.frames.send(recorded(well, event));
        for piece in order.told(event) {
            let _ = self.frames.send(spoken(&piece));
        }
    }
}

/// The followers of one store.
#[derive(Debug)]
pub(crate) struct Live {
    /// The store's name in requests.
    key: String,
    well: Stepwell,
    /// Where to listen for live pieces; `None` for not at all.
    heard: Option<Workspace>,
    sessions: Mutex<HashMap<SessionId, Arc<Following>>>,
    changes: Mutex<Option<broadcast::Sender<Frame>>>,
}

/// A part of a stream.
#[derive(Debug)]
pub(crate) enum Piece {
    /// Bytes of server-sent events.
    Bytes(Bytes),
    /// The stream ends here: its client has missed something, and reconnects for it.
    End,
}

/// The parts of a stream.
pub(crate) type Events = mpsc::Receiver<Piece>;

/// The sending end of a stream for one session, or of one that several sessions share.
#[derive(Clone, Debug)]
pub(crate) struct Outlet {
    to: mpsc::Sender<Piece>,
    /// The beginning of the object around each frame's data, which names the session.
    around: Option<Arc<str>>,
}

/// The two ends of a stream. A slow client delays only its own stream.
pub(crate) fn stream() -> (Outlet, Events) {
    let (to, events) = mpsc::channel(64);
    (Outlet { to, around: None }, events)
}

impl Outlet {
    /// The same stream, for frames of one of several sessions.
    pub(crate) fn of_session(&self, store: &str, session: &str) -> Self {
        let (store, session) = (json!(store), json!(session));
        let around = format!("{{\"store\":{store},\"session\":{session},\"data\":");
        Self { to: self.to.clone(), around: Some(around.into()) }
    }

    /// Sends that the session does not exist.
    pub(crate) fn say_gone(self) {
        self.say(GONE);
    }

    /// Sends that the session cannot be followed now.
    pub(crate) fn say_lost(self) {
        self.say(LOST);
    }

    fn say(self, name: &'static str) {
        // The client has not begun to read, so sending could block.
        std::thread::spawn(move || self.send(&frame(None, name, &json!({}))));
    }

    fn send(&self, frame: &Frame) -> Result<(), ()> {
        let mut text = format!("event: {}\n", frame.name);
        if let Some(seq) = frame.seq {
            let _ = writeln!(text, "id: {seq}");
        }
        let _ = match &self.around {
            None => write!(text, "data: {}\n\n", frame.data),
            Some(around) => write!(text, "data: {around}{}}}\n\n", frame.data),
        };
        self.send_bytes(text.into())
    }

    fn send_bytes(&self, bytes: Bytes) -> Result<(), ()> {
        self.to.blocking_send(Piece::Bytes(bytes)).map_err(drop)
    }

    /// Ends the stream, also for other sessions that share it.
    fn end(&self) {
        let _ = self.to.blocking_send(Piece::End);
    }
}

/// A request to watch a session.
#[derive(Debug)]
pub(crate) struct Watch {
    pub(crate) id: SessionId,
    /// The first requested event; `None` for the next new one.
    pub(crate) from: Option<Seq>,
    pub(crate) watcher: Watcher,
}

impl Live {
    /// For a store, and the workspace with the runs to listen to.
    pub(crate) fn new(key: String, well: Stepwell, heard: Option<Workspace>) -> Self {
        Self { key, well, heard, sessions: Mutex::default(), changes: Mutex::default() }
    }

    fn sessions(&self) -> MutexGuard<'_, HashMap<SessionId, Arc<Following>>> {
        self.sessions.lock()
    }

    /// Watches a session. If it is erased, the last frame is `gone`.
    pub(crate) fn watch(self: &Arc<Self>, watch: Watch, to: Outlet) -> Result<()> {
        let Watch { id, from, watcher } = watch;
        // Joined before the log is read, so that no event is missed in between.
        let Joined { so_far, news } = self.follow(&id)?;
        let well = self.well.clone();
        // A client cannot have seen anything beyond the end.
        let end = well.info(&id)?.head.seq.next();
        let from = from.map_or(end, |from| from.clamp(Seq::FIRST, end));
        let work = move || {
            let mut next = from;
            let read = well.log(&id, Span { from, ..Span::ALL }).each(|event| {
                next = event.seq.next();
                to.send(&recorded(&well, &event))
                    .map_err(|()| stepwell::Error::NoSession(id.clone()))
            });
            if read.is_err() {
                return to.end();
            }
            // With the last seq, so that a client that reconnects misses nothing.
            let _ = to.send(&Frame { seq: Some(next.prev()), ..info(&well, &id) });
            for frame in so_far.iter().filter(|frame| watcher.may_see(frame)) {
                let _ = to.send(frame);
            }
            forward(news, next, watcher, &to);
        };
        std::thread::spawn(work);
        Ok(())
    }

    /// Sends which sessions change, until the client is gone or too slow.
    pub(crate) fn tell_changes(self: &Arc<Self>, to: Outlet) -> Result<()> {
        let news = self.follow_all()?;
        std::thread::spawn(move || forward(news, Seq::ZERO, Watcher::Other, &to));
        Ok(())
    }

    /// Joins a session's follower. The first watcher starts it.
    fn follow(self: &Arc<Self>, id: &SessionId) -> Result<Joined> {
        let mut sessions = self.sessions();
        if let Some(following) = sessions.get(id) {
            return Ok(following.join());
        }
        let told = self.well.info(id)?.head.seq;
        let following = Arc::new(Following::new(id.clone(), told));
        let joined = following.join();
        sessions.insert(id.clone(), Arc::clone(&following));
        let live = Arc::clone(self);
        std::thread::spawn(move || live.run_follower(&following, told.next()));
        Ok(joined)
    }

    fn run_follower(&self, following: &Arc<Following>, from: Seq) {
        let (well, id, to) = (self.well.clone(), &following.session, &following.frames);
        let Ok(mut follower) = well.follow(id, from) else { return self.let_go(id) };
        let heard = self.heard.as_ref().map(|workspace| {
            let following = Arc::clone(following);
            listen(workspace, &well, id, move |piece| following.hear(piece))
        });
        loop {
            let mut any = false;
            let looked = follower.look(|event| {
                any = true;
                following.tell(&well, &event);
                Ok::<_, stepwell::Error>(())
            });
            match looked {
                Ok(Followed::Erased) => {
                    let _ = to.send(frame(None, GONE, &json!({})));
                    return self.let_go(id);
                }
                Ok(_) => {}
                Err(_) => return self.let_go(id),
            }
            if any {
                let _ = to.send(info(&well, id));
                // Another process may run it now.
                heard.iter().for_each(Listening::nudge);
            }
            if follower.wait(PATIENCE).is_err() {
                return self.let_go(id);
            }
            // Checked under the lock, so that no watcher joins a follower that is ending.
            let mut sessions = self.sessions();
            if to.receiver_count() == 0 {
                sessions.remove(id);
                return;
            }
        }
    }

    fn let_go(&self, id: &SessionId) {
        self.sessions().remove(id);
    }

    fn follow_all(self: &Arc<Self>) -> Result<broadcast::Receiver<Frame>> {
        let mut changes = self.changes.lock();
        if let Some(sender) = &*changes {
            return Ok(sender.subscribe());
        }
        let news = self.well.subscribe()?;
        let (sender, receiver) = broadcast::channel(BEHIND);
        *changes = Some(sender.clone());
        let live = Arc::clone(self);
        std::thread::spawn(move || {
            loop {
                let told = match news.next(PATIENCE) {
                    Ok(Some(Notice::Changed(change))) => {
                        let changed = json!({"id": change.session, "store": live.key});
                        Some(frame(None, "changed", &changed))
                    }
                    Ok(Some(Notice::Reset)) => {
                        Some(frame(None, "reset", &json!({"store": live.key})))
                    }
                    Ok(None) => None,
                    Err(_) => break,
                };
                if let Some(told) = told {
                    let _ = sender.send(told);
                }
                let mut changes = live.changes.lock();
                if sender.receiver_count() == 0 {
                    *changes = None;
                    return;
                }
            }
            *live.changes.lock() = None;
        });
        Ok(receiver)
    }
}

/// Forwards a follower's frames from an event on, until the client is gone or too slow.
fn forward(mut news: broadcast::Receiver<Frame>, mut next: Seq, watcher: Watcher, to: &Outlet) {
    let Ok(waiting) = tokio::runtime::Builder::new_current_thread().enable_time().build() else {
        return to.end();
    };
    loop {
        let told = waiting.block_on(async { tokio::time::timeout(HEARTBEAT, news.recv()).await });
        let frame = match told {
            Ok(Ok(frame)) => frame,
            // The client reconnects with its last seq.
            Ok(Err(_)) => return to.end(),
            Err(_) => match to.send_bytes(Bytes::from_static(b": still here\n\n")) {
                Ok(()) => continue,
                Err(()) => return,
            },
        };
        if let Some(seq) = frame.seq {
            if seq < next {
                continue;
            }
            next = seq.next();
        }
        if !watcher.may_see(&frame) {
            continue;
        }
        if to.send(&frame).is_err() {
            return;
        }
        if frame.name == GONE {
            // This session's own stream ends; a shared one continues.
            if to.around.is_none() {
                to.end();
            }
            return;
        }
    }
}

/// A redacted event.
fn recorded(well: &Stepwell, event: &Recorded) -> Frame {
    shown(well, Some(event.seq), "recorded", event)
}

/// A redacted frame: imported events were never redacted.
fn shown(
    well: &Stepwell,
    seq: Option<Seq>,
    name: &'static str,
    data: &impl serde::Serialize,
) -> Frame {
    let json = serde_json::to_string(data).unwrap_or_default();
    let json = well.redactor().redact_json(&json).unwrap_or(json);
    Frame { name, seq, data: json.into(), is_private: false }
}

/// A live piece. It has no id, because it is not recorded.
fn spoken(piece: &LivePiece) -> Frame {
    Frame { is_private: true, ..frame(None, "delta", piece) }
}

/// The current state of a session.
fn info(well: &Stepwell, id: &SessionId) -> Frame {
    match well.info(id) {
        Ok(info) => shown(well, None, "info", &Session::from(info)),
        Err(_) => frame(None, GONE, &json!({})),
    }
}

fn frame(seq: Option<Seq>, name: &'static str, data: &impl serde::Serialize) -> Frame {
    let data = serde_json::to_string(data).unwrap_or_default().into();
    Frame { name, seq, data, is_private: false }
}

/// The receiver of a stream.
pub(crate) trait Recipient: Send + 'static {
    /// May it still receive? Checked before each piece, so that a logout ends the stream.
    fn may_hear(&self) -> bool;
}

/// A channel as the body of an answer.
pub(crate) fn body(
    events: Events,
    to: impl Recipient,
) -> impl Stream<Item = Result<Bytes, Infallible>> {
    futures_util::stream::unfold((events, to), |(mut events, to)| async move {
        match events.recv().await? {
            Piece::Bytes(bytes) => to.may_hear().then_some((Ok(bytes), (events, to))),
            Piece::End => None,
        }
    })
}
