//! Live streams: a session's log as it grows, and which sessions changed.
//!
//! However many watch a session, one thread follows it; it ends when nobody does. A watcher first
//! reads what is recorded, then goes on with what the follower sends. One that is too slow loses
//! its stream and comes back with the last seq that it saw, so nothing is missed.
//!
//! What a model says while it speaks is not redacted, so it goes only to the user who runs the
//! server, and only on their own machine.

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

/// How long a follower waits before it looks whether anyone is left.
const PATIENCE: Duration = Duration::from_secs(2);

/// How often an idle stream says that it is there.
const HEARTBEAT: Duration = Duration::from_secs(15);

/// An event of a stream: its name, the seq that it ends with, if it is on record, and its data.
#[derive(Clone, Debug)]
struct Frame {
    name: &'static str,
    seq: Option<Seq>,
    /// JSON, which has no line breaks, so that one line of a frame holds it.
    data: Arc<str>,
    /// Is it only for the user who runs the server?
    is_private: bool,
}

/// The frame that says that a session was erased.
const GONE: &str = "gone";

/// The frame that says that a session cannot be followed now.
const LOST: &str = "lost";

/// Who watches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Watcher {
    /// The user who runs the server: they hear the model while it speaks.
    User,
    /// Somebody else.
    Other,
}

impl Watcher {
    fn may_see(self, frame: &Frame) -> bool {
        self == Self::User || !frame.is_private
    }
}

/// A session that is followed.
#[derive(Debug)]
struct Following {
    session: SessionId,
    frames: broadcast::Sender<Frame>,
    order: Mutex<InOrder>,
}

/// What somebody gets who begins to watch: what is being said, and what comes.
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

    /// Nothing is sent between what was said and what comes.
    fn join(&self) -> Joined {
        let order = self.order();
        Joined {
            so_far: order.so_far().iter().map(spoken).collect(),
            news: self.frames.subscribe(),
        }
    }

    /// Sends what the model says. What its subagents say is in streams of their own.
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
    /// Where runs are listened to; absent, they are not.
    heard: Option<Workspace>,
    sessions: Mutex<HashMap<SessionId, Arc<Following>>>,
    changes: Mutex<Option<broadcast::Sender<Frame>>>,
}

/// A part of what a stream sends.
#[derive(Debug)]
pub(crate) enum Piece {
    /// Bytes of server-sent events.
    Bytes(Bytes),
    /// The stream ends here: its reader has missed something, and comes back for it.
    End,
}

/// What a stream sends.
pub(crate) type Events = mpsc::Receiver<Piece>;

/// Where frames are sent: to a stream of their own, or to one that several sessions share.
#[derive(Clone, Debug)]
pub(crate) struct Outlet {
    to: mpsc::Sender<Piece>,
    /// The beginning of the object around each frame's data, which names the session.
    around: Option<Arc<str>>,
}

/// The two ends of a stream. Whoever does not read holds up nobody but those who tell them.
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

    /// Says that there is no such session.
    pub(crate) fn say_gone(self) {
        self.say(GONE);
    }

    /// Says that a session cannot be followed now.
    pub(crate) fn say_lost(self) {
        self.say(LOST);
    }

    fn say(self, name: &'static str) {
        // Nobody reads yet: whoever opens the stream does not wait for that.
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

    /// Ends the stream, also for others who share it.
    fn end(&self) {
        let _ = self.to.blocking_send(Piece::End);
    }
}

/// A session to be watched.
#[derive(Debug)]
pub(crate) struct Watch {
    pub(crate) id: SessionId,
    /// The first event that is wanted; absent, the next one.
    pub(crate) from: Option<Seq>,
    pub(crate) watcher: Watcher,
}

impl Live {
    /// For a store, and the workspace whose runs are listened to.
    pub(crate) fn new(key: String, well: Stepwell, heard: Option<Workspace>) -> Self {
        Self { key, well, heard, sessions: Mutex::default(), changes: Mutex::default() }
    }

    fn sessions(&self) -> MutexGuard<'_, HashMap<SessionId, Arc<Following>>> {
        self.sessions.lock()
    }

    /// Watches a session. Its last frame is `gone`, when it was erased.
    pub(crate) fn watch(self: &Arc<Self>, watch: Watch, to: Outlet) -> Result<()> {
        let Watch { id, from, watcher } = watch;
        // Made before the log is read, so that nothing comes between.
        let Joined { so_far, news } = self.follow(&id)?;
        let well = self.well.clone();
        // Behind the end nothing was seen yet.
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
            // With the last seq, so that whoever comes back misses nothing since.
            let _ = to.send(&Frame { seq: Some(next.prev()), ..info(&well, &id) });
            for frame in so_far.iter().filter(|frame| watcher.may_see(frame)) {
                let _ = to.send(frame);
            }
            forward(news, next, watcher, &to);
        };
        std::thread::spawn(work);
        Ok(())
    }

    /// Tells somebody which sessions change, until they are gone or too slow.
    pub(crate) fn tell_changes(self: &Arc<Self>, to: Outlet) -> Result<()> {
        let news = self.follow_all()?;
        std::thread::spawn(move || forward(news, Seq::ZERO, Watcher::Other, &to));
        Ok(())
    }

    /// What a session's follower sends. The first watcher starts it.
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
                // Whoever runs it now may be another.
                heard.iter().for_each(Listening::nudge);
            }
            if follower.wait(PATIENCE).is_err() {
                return self.let_go(id);
            }
            // Looked at under the lock, so that nobody joins one that ends.
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

/// Passes on what a follower sends, from an event on, until the watcher is gone or too slow.
fn forward(mut news: broadcast::Receiver<Frame>, mut next: Seq, watcher: Watcher, to: &Outlet) {
    let Ok(waiting) = tokio::runtime::Builder::new_current_thread().enable_time().build() else {
        return to.end();
    };
    loop {
        let told = waiting.block_on(async { tokio::time::timeout(HEARTBEAT, news.recv()).await });
        let frame = match told {
            Ok(Ok(frame)) => frame,
            // It comes back with the last seq that it saw.
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
            // A stream of its own is over then; others who share one go on.
            if to.around.is_none() {
                to.end();
            }
            return;
        }
    }
}

/// An event without secrets, as it is shown.
fn recorded(well: &Stepwell, event: &Recorded) -> Frame {
    shown(well, Some(event.seq), "recorded", event)
}

/// A frame without secrets: what imports hold was never redacted.
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

/// A piece of what is being said. It has no id: it is not on record.
fn spoken(piece: &LivePiece) -> Frame {
    Frame { is_private: true, ..frame(None, "delta", piece) }
}

/// How a session stands now, for those who show it.
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

/// Somebody to whom a stream is sent.
pub(crate) trait Recipient: Send + 'static {
    /// May they still hear it? Asked before each piece: who logged out hears nothing more.
    fn may_hear(&self) -> bool;
}

/// A receiver as the body of an answer.
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
