//! Reports progress while something takes long.

use std::time::Duration;

use tokio::time::{Instant, MissedTickBehavior, interval_at};

/// The interval between reports: often enough to show progress, without flickering.
const TICK: Duration = Duration::from_millis(500);

/// Awaits a future, and reports regularly how long it has taken so far.
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
