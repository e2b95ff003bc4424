//! The client of a connection: what it can do, and how it is told of sessions.

use std::sync::atomic::{AtomicU64, Ordering};

use parking_lot::Mutex;
use serde_json::{Value, json};

use crate::peer::Peer;
use crate::turn::{Chunk, TurnEvent};

use super::input::Capabilities;
use super::update::update;

/// The client of a connection.
#[derive(Debug)]
pub(super) struct Client {
    pub(super) peer: Peer,
    /// What it can do, once it said so.
    able: Mutex<Option<Capabilities>>,
    /// How many notices it was told as text.
    notices: AtomicU64,
}

impl Client {
    pub(super) fn new(peer: Peer) -> Self {
        Self { peer, able: Mutex::default(), notices: AtomicU64::new(0) }
    }

    /// It says hello.
    pub(super) fn greet(&self, able: Capabilities) {
        *self.able.lock() = Some(able);
    }

    /// Has it said hello?
    pub(super) fn has_greeted(&self) -> bool {
        self.able.lock().is_some()
    }

    /// What it can do.
    pub(super) fn able(&self) -> Capabilities {
        let able = self.able.lock();
        able.clone().unwrap_or_default()
    }

    /// Tells it of something that happened in a session.
    pub(super) fn tell(&self, session: &str, event: &TurnEvent) {
        let able = self.able();
        let update = match event {
            TurnEvent::Notice(notice) if notice.for_all && !able.notices() => {
                let number = self.notices.fetch_add(1, Ordering::Relaxed) + 1;
                let description = notice.description.as_deref().unwrap_or_default();
                let text = format!("{}: {description}\n\n", notice.title);
                let chunk = Chunk { message: format!("notice-{number}"), text };
                update(&TurnEvent::Text(chunk), &able)
            }
            event => update(event, &able),
        };
        if let Some(update) = update {
            self.send(session, &update);
        }
    }

    /// Sends it an update of a session.
    pub(super) fn send(&self, session: &str, update: &Value) {
        self.peer.notify("session/update", &json!({"sessionId": session, "update": update}));
    }
}
