//! Follows the session that is open, and tells when it changes, whoever changes it.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use stepwell::sessions::{GUARD, WakeOnDrop};
use stepwell::{SessionId, Stepwell};

use crate::driver::Inputs;
use crate::effect::{Input, Reply};

/// Follows one session at a time.
#[derive(Debug, Default)]
pub(super) struct Follower {
    session: Option<SessionId>,
    /// Which thread is the newest: the others end.
    newest: Arc<AtomicU64>,
    /// Ends the wait of the newest thread.
    wake: Option<WakeOnDrop>,
}

impl Follower {
    /// Follows a session of a store, and no other any more.
    pub(super) fn follow(&mut self, well: &Stepwell, session: &SessionId, inputs: &Inputs) {
        if self.session.as_ref() == Some(session) {
            return;
        }
        // Without a subscription, the session is read when something is done with it.
        let Ok(subscription) = well.subscribe_to(session) else { return };
        self.session = Some(session.clone());
        let wake = subscription.wake_on_drop();
        let (newest, inputs) = (Arc::clone(&self.newest), inputs.clone());
        let (number, session) = (newest.fetch_add(1, Ordering::Relaxed) + 1, session.clone());
        self.wake = Some(wake);
        std::thread::spawn(move || {
            while newest.load(Ordering::Relaxed) == number {
                let told = match subscription.next(GUARD) {
                    Ok(Some(_)) => inputs.send(Input::Reply(Reply::Changed(session.clone()))),
                    Ok(None) => Ok(()),
                    Err(_) => return,
                };
                if told.is_err() {
                    return;
                }
            }
        });
    }

    /// Follows nothing any more: another store is looked at.
    pub(super) fn stop(&mut self) {
        self.session = None;
        self.newest.fetch_add(1, Ordering::Relaxed);
        self.wake = None;
    }
}
