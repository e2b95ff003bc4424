//! Asking again when a call failed in passing.

use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use backon::{BackoffBuilder, ExponentialBuilder};
use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use tokio::time::{Instant, sleep};

use super::{Answer, CallError, Delta, Fault, Provider, Request};

/// How long to keep asking.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Patience {
    /// How often it is asked at most, the first time included.
    pub attempts: usize,
    /// The first wait. Each one is twice the last, and up to as much again by chance, so
    /// that many who failed together do not come back together.
    pub first: Duration,
    /// The longest wait, unless the provider asks for more.
    pub longest: Duration,
    /// No wait begins that would end later than this after the first call began.
    pub total: Duration,
    /// Where chance begins. Take it from the run's entropy.
    pub seed: u64,
}

impl Default for Patience {
    /// Six calls over a few minutes: a rate limit counts by the minute, an outage that lasts
    /// longer is worth stopping for.
    fn default() -> Self {
        Self {
            attempts: 6,
            first: Duration::from_secs(1),
            longest: Duration::from_secs(30),
            total: Duration::from_secs(300),
            seed: 0,
        }
    }
}

/// A call failed and is asked again.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Waiting {
    /// Which call failed; the first is 1.
    pub attempt: usize,
    /// How many there may be.
    pub attempts: usize,
    /// How long until the next.
    pub wait: Duration,
    /// Why the last attempt failed.
    pub error: CallError,
}

type Told = dyn Fn(&Waiting) + Send + Sync;

/// A provider that is asked again on passing faults.
///
/// A call that is made again starts over: every [`Delta`] of the failed one is void, which
/// is told ([`Delta::Void`]) before the wait. Only a complete answer is returned.
pub struct Retrying<P> {
    inner: P,
    patience: Patience,
    observer: Box<Told>,
    calls: AtomicU64,
}

impl<P: fmt::Debug> fmt::Debug for Retrying<P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut shown = f.debug_struct("Retrying");
        shown.field("inner", &self.inner).field("patience", &self.patience).finish_non_exhaustive()
    }
}

impl<P: Provider> Retrying<P> {
    /// Nobody is told of the waits.
    pub fn new(inner: P, patience: Patience) -> Self {
        Self { inner, patience, observer: Box::new(|_| {}), calls: AtomicU64::new(0) }
    }

    /// Tells `observer` before each wait.
    #[must_use]
    pub fn telling(mut self, observer: impl Fn(&Waiting) + Send + Sync + 'static) -> Self {
        self.observer = Box::new(observer);
        self
    }

    fn waits(&self) -> impl Iterator<Item = Duration> {
        let call = self.calls.fetch_add(1, Ordering::Relaxed);
        ExponentialBuilder::new()
            .with_min_delay(self.patience.first)
            .with_max_delay(self.patience.longest)
            .with_max_times(self.patience.attempts.saturating_sub(1))
            .with_jitter()
            .with_jitter_seed(self.patience.seed.wrapping_add(call))
            .build()
    }
}

impl<P: Provider> Provider for Retrying<P> {
    fn name(&self) -> &str {
        self.inner.name()
    }

    fn answer<'a>(
        &'a self,
        request: Request<'a>,
        told: &'a mut (dyn FnMut(Delta) + Send),
    ) -> BoxFuture<'a, Result<Answer, CallError>> {
        async move {
            let first = Instant::now();
            let mut waits = self.waits();
            let mut attempt = 0;
            loop {
                attempt += 1;
                let mut began = false;
                let mut tell = |delta| {
                    began = true;
                    told(delta);
                };
                let error = match self.inner.answer(request, &mut tell).await {
                    Ok(answer) => return Ok(answer),
                    Err(error) => error,
                };
                let next = waits.next().filter(|_| error.fault.is_passing());
                let Some(wait) = next else { return Err(error) };
                let wait = match error.fault {
                    Fault::RateLimited(Some(asked)) => wait.max(asked),
                    _ => wait,
                };
                if first.elapsed().saturating_add(wait) > self.patience.total {
                    return Err(error);
                }
                let attempts = self.patience.attempts;
                if began {
                    told(Delta::Void);
                }
                (self.observer)(&Waiting { attempt, attempts, wait, error });
                sleep(wait).await;
            }
        }
        .boxed()
    }
}
