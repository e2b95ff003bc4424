//! Interrupted commands that have not ended yet.

use std::future::Future;
use std::sync::Arc;

use tokio::runtime::Handle;
use tokio::sync::watch;
use tokio::time::timeout;

use super::supervise::GONE;

/// The number of commands that are still ending. Clones share it.
#[derive(Clone, Debug, Default)]
pub struct Stopping(Arc<watch::Sender<usize>>);

/// Decrements the number when dropped.
struct Counted(Stopping);

impl Drop for Counted {
    fn drop(&mut self) {
        self.0.0.send_modify(|count| *count -= 1);
    }
}

impl Stopping {
    /// Counts a command until it has ended or is given up.
    pub(super) fn count(&self, ended: impl Future<Output: Send> + Send + 'static) {
        // Without a runtime nothing waits for it.
        let Ok(runtime) = Handle::try_current() else { return };
        self.0.send_modify(|count| *count += 1);
        let counted = Counted(self.clone());
        runtime.spawn(async move {
            let _ = timeout(GONE, ended).await;
            drop(counted);
        });
    }

    /// Waits until all have ended.
    pub(crate) async fn wait(&self) {
        // This struct owns the sender, so the wait cannot fail.
        let _ = self.0.subscribe().wait_for(|count| *count == 0).await;
    }
}

#[cfg(test)]
mod tests {
    use tokio::sync::oneshot;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn commands_are_waited_for_until_the_last_has_ended() {
        let stopping = Stopping::default();
        stopping.wait().await;
        let (first, ended) = oneshot::channel::<()>();
        stopping.count(ended);
        let (second, ended) = oneshot::channel::<()>();
        stopping.count(ended);
        let waiter = stopping.clone();
        let mut waits = tokio::spawn(async move { waiter.wait().await });
        drop(first);
        // The paused clock only advances when no task can run.
        assert!(timeout(GONE / 2, &mut waits).await.is_err());
        drop(second);
        assert!(timeout(GONE / 4, &mut waits).await.is_ok());
    }

    #[tokio::test(start_paused = true)]
    async fn a_command_that_does_not_end_is_given_up() {
        let stopping = Stopping::default();
        stopping.count(std::future::pending::<()>());
        assert!(timeout(GONE * 2, stopping.wait()).await.is_ok());
    }
}
