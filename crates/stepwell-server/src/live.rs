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
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use futures_util::Stream;
use serde_json::json;
use stepwell::{Followed, Notice, Recorded, Seq, SessionId, Span, Stepwell};
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

/// A piece of a stream: the seq that it ends with, if it is an event, and its text.
#[derive(Clone, Debug, Default)]
struct Frame {
    seq: Option<Seq>,
    text: Bytes,
    /// Is it only for the user who runs the server?
    is_private: bool,
}

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
        self.order.lock().unwrap_or_else(PoisonError::into_inner)
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

/// What a stream sends: bytes of server-sent events.
pub(crate) type Events = mpsc::Receiver<Result<Bytes, Infallible>>;

/// Where a stream's bytes come from.
pub(crate) type EventSender = mpsc::Sender<Result<Bytes, Infallible>>;

/// The two ends of a stream. Whoever does not read holds up nobody but those who tell them.
pub(crate) fn stream() -> (EventSender, Events) {
    mpsc::channel(64)
}

impl Live {
    /// For a store, and the workspace whose runs are listened to.
    pub(crate) fn new(key: String, well: Stepwell, heard: Option<Workspace>) -> Self {
        Self { key, well, heard, sessions: Mutex::default(), changes: Mutex::default() }
    }

    fn sessions(&self) -> MutexGuard<'_, HashMap<SessionId, Arc<Following>>> {
        self.sessions.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Watches a session from an event on. Ends after `gone`, when it was erased.
    pub(crate) fn watch(
        self: &Arc<Self>,
        id: &SessionId,
        from: Seq,
        watcher: Watcher,
    ) -> Result<Events> {
        // Made before the log is read, so that nothing comes between.
        let Joined { so_far, news } = self.follow(id)?;
        let (to, events) = stream();
        let (well, id) = (self.well.clone(), id.clone());
        let work = move || {
            let mut next = from;
            let read = well.log(&id, Span { from, ..Span::ALL }).each(|event| {
                next = event.seq.next();
                send(&to, recorded(&well, &event))
                    .map_err(|()| stepwell::Error::NoSession(id.clone()))
            });
            if read.is_ok() {
                // With the last seq, so that whoever comes back misses nothing since.
                let Frame { text, .. } = info(&well, &id);
                let text = [format!("id: {}\n", next.prev()).as_bytes(), &text].concat();
                let _ = send(&to, Frame { text: Bytes::from(text), ..Frame::default() });
                for frame in so_far.into_iter().filter(|frame| watcher.may_see(frame)) {
                    let _ = send(&to, frame);
                }
                forward(news, next, watcher, &to);
            }
        };
        std::thread::spawn(work);
        Ok(events)
    }

    /// Tells somebody which sessions change, until they are gone or too slow.
    pub(crate) fn tell_changes(self: &Arc<Self>, to: EventSender) -> Result<()> {
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
                    let _ = to.send(frame(None, "gone", &json!({})));
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
        let mut changes = self.changes.lock().unwrap_or_else(PoisonError::into_inner);
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
                let mut changes = live.changes.lock().unwrap_or_else(PoisonError::into_inner);
                if sender.receiver_count() == 0 {
                    *changes = None;
                    return;
                }
            }
            *live.changes.lock().unwrap_or_else(PoisonError::into_inner) = None;
        });
        Ok(receiver)
    }
}

/// Passes on what a follower sends, from an event on, until the watcher is gone or too slow.
fn forward(
    mut news: broadcast::Receiver<Frame>,
    mut next: Seq,
    watcher: Watcher,
    to: &EventSender,
) {
    let Ok(waiting) = tokio::runtime::Builder::new_current_thread().enable_time().build() else {
        return;
    };
    loop {
        let told = waiting.block_on(async { tokio::time::timeout(HEARTBEAT, news.recv()).await });
        let frame = match told {
            Ok(Ok(frame)) => frame,
            // It comes back with the last seq that it saw.
            Ok(Err(_)) => return,
            Err(_) => Frame { text: Bytes::from_static(b": still here\n\n"), ..Frame::default() },
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
        let is_last = frame.text.starts_with(b"event: gone");
        if send(to, frame).is_err() || is_last {
            return;
        }
    }
}

fn send(to: &EventSender, frame: Frame) -> Result<(), ()> {
    to.blocking_send(Ok(frame.text)).map_err(drop)
}

/// An event without secrets, as it is shown.
fn recorded(well: &Stepwell, event: &Recorded) -> Frame {
    shown(well, Some(event.seq), "recorded", event)
}

/// A frame without secrets: what imports hold was never redacted.
fn shown(well: &Stepwell, seq: Option<Seq>, name: &str, data: &impl serde::Serialize) -> Frame {
    let json = serde_json::to_string(data).unwrap_or_default();
    let json = well.redactor().redact_json(&json).unwrap_or(json);
    framed(seq, name, &json)
}

/// A piece of what is being said. It has no id: it is not on record.
fn spoken(piece: &LivePiece) -> Frame {
    Frame { is_private: true, ..frame(None, "delta", piece) }
}

/// How a session stands now, for those who show it.
fn info(well: &Stepwell, id: &SessionId) -> Frame {
    match well.info(id) {
        Ok(info) => shown(well, None, "info", &Session::from(info)),
        Err(_) => frame(None, "gone", &json!({})),
    }
}

fn frame(seq: Option<Seq>, name: &str, data: &impl serde::Serialize) -> Frame {
    framed(seq, name, &serde_json::to_string(data).unwrap_or_default())
}

/// A frame of JSON, which has no line breaks, so that one line of data holds it.
fn framed(seq: Option<Seq>, name: &str, data: &str) -> Frame {
    let id = seq.map(|seq| format!("id: {seq}\n")).unwrap_or_default();
    let text = Bytes::from(format!("event: {name}\n{id}data: {data}\n\n"));
    Frame { seq, text, is_private: false }
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
        let item = events.recv().await?;
        to.may_hear().then_some((item, (events, to)))
    })
}
