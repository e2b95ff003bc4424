//! Follows the session that is open, and tells when it changes, whoever changes it.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use stepwell::{SessionId, Stepwell};

use crate::driver::Inputs;
use crate::effect::{Input, Reply};

/// How long one wait for a change lasts. Then it is seen whether it is still waited for.
const WAIT: Duration = Duration::from_secs(5);

/// Follows one session at a time.
#[derive(Debug, Default)]
pub(super) struct Follower {
    session: Option<SessionId>,
    /// Which thread is the newest: the others end.
    newest: Arc<AtomicU64>,
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
        let (newest, inputs) = (Arc::clone(&self.newest), inputs.clone());
        let (number, session) = (newest.fetch_add(1, Ordering::Relaxed) + 1, session.clone());
        std::thread::spawn(move || {
            while newest.load(Ordering::Relaxed) == number {
                let told = match subscription.next(WAIT) {
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
    }
}
