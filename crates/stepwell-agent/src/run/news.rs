//! Waits for changes of a session without blocking a thread of the runtime.

use std::sync::Arc;

use stepwell::sessions::{GUARD, Subscription};
use stepwell::{SessionId, Stepwell};

/// The changes of one session, from the moment of subscription.
#[derive(Clone, Debug)]
pub struct News(Arc<Subscription>);

impl News {
    /// Subscribes to a session.
    ///
    /// # Errors If the store cannot be read.
    pub fn of(well: &Stepwell, session: &SessionId) -> stepwell::Result<Self> {
        Ok(Self(Arc::new(well.subscribe_to(session)?)))
    }

    /// Returns when the session may have changed. Dropping the future ends the wait.
    pub async fn changed(&self) {
        let _wake = self.0.wake_on_drop();
        let news = Arc::clone(&self.0);
        // After a failed read the caller reads again, and finds out if the session is gone.
        let failed = tokio::task::spawn_blocking(move || news.next(GUARD).is_err()).await;
        if failed.unwrap_or(true) {
            tokio::time::sleep(PAUSE).await;
        }
    }
}

/// The pause after a failed read.
const PAUSE: std::time::Duration = std::time::Duration::from_millis(250);
