//! Waiting for changes of a session without holding up a thread of the runtime.

use std::sync::Arc;

use stepwell::sessions::{GUARD, Subscription};
use stepwell::{SessionId, Stepwell};

/// The changes of one session, from when this was made.
#[derive(Clone, Debug)]
pub struct News(Arc<Subscription>);

impl News {
    /// News of a session.
    ///
    /// # Errors
    /// If the store cannot be read.
    pub fn of(well: &Stepwell, session: &SessionId) -> stepwell::Result<Self> {
        Ok(Self(Arc::new(well.subscribe_to(session)?)))
    }

    /// Returns when the session may have changed. Dropping the future ends the wait.
    pub async fn changed(&self) {
        let _wake = self.0.wake_on_drop();
        let news = Arc::clone(&self.0);
        // A look that failed is taken again; a session that is gone says so when it is read.
        let failed = tokio::task::spawn_blocking(move || news.next(GUARD).is_err()).await;
        if failed.unwrap_or(true) {
            tokio::time::sleep(PAUSE).await;
        }
    }
}

/// How long a failed look is not taken again.
const PAUSE: std::time::Duration = std::time::Duration::from_millis(250);
