//! Waiting without holding up a thread of the runtime: for changes of a session, and for something that
//! takes its time.

use std::sync::Arc;
use std::time::Duration;

use stepwell::sessions::{GUARD, Subscription};
use stepwell::{SessionId, Stepwell};
use tokio::time::{Instant, MissedTickBehavior, interval_at};

/// The changes of one session, from the moment of subscription.
#[derive(Clone, Debug)]
pub struct News(Arc<Subscription>);

impl News {
    /// Subscribes to a session.
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
        // After a failed read the caller reads again, and finds out if the session is gone.
        let failed = tokio::task::spawn_blocking(move || news.next(GUARD).is_err()).await;
        if failed.unwrap_or(true) {
            tokio::time::sleep(PAUSE).await;
        }
    }
}

/// How long a failed look is not taken again.
const PAUSE: Duration = Duration::from_millis(250);

/// The interval between progress reports: short enough to show movement, long enough not to flicker.
const TICK: Duration = Duration::from_millis(500);

/// Waits for something, and tells every now and then for how long.
pub(super) async fn ticking<T>(
    waited_for: impl Future<Output = T>,
    mut tell: impl FnMut(Duration),
) -> T {
    let begun = Instant::now();
    let mut ticks = interval_at(begun + TICK, TICK);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    tokio::pin!(waited_for);
    loop {
        tokio::select! {
            biased;
            done = &mut waited_for => return done,
            _ = ticks.tick() => tell(begun.elapsed()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn what_takes_its_time_is_told_of_until_it_is_done() {
        let mut told = Vec::new();
        let done = ticking(tokio::time::sleep(Duration::from_millis(1_700)), |waited| {
            told.push(waited.as_millis());
        });
        done.await;
        assert_eq!(told, [500, 1_000, 1_500]);
    }
}
