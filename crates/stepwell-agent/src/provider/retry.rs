//! Retries after transient failures.

use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use backon::{BackoffBuilder, ExponentialBuilder};
use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use tokio::time::{Instant, sleep};

use super::{Answer, CallError, Delta, Fault, Provider, Request};

/// The retry policy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Patience {
    /// The most attempts, the first included.
    pub attempts: usize,
    /// The first wait. Each wait is twice the last plus random jitter of up to the same length, so
    /// that many callers that failed together do not retry together.
    pub first: Duration,
    /// The longest wait, unless the provider asks for more.
    pub longest: Duration,
    /// No wait begins that would end later than this after the first attempt.
    pub total: Duration,
    /// The seed of the jitter. Take it from the run's entropy.
    pub seed: u64,
}

impl Default for Patience {
    /// Six attempts over a few minutes: rate limits count by the minute, and a longer outage is
    /// worth stopping for.
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

/// A failed call that will be retried.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Waiting {
    /// The number of the failed attempt; the first is 1.
    pub attempt: usize,
    /// The most attempts.
    pub attempts: usize,
    /// The wait before the next attempt.
    pub wait: Duration,
    /// Why the last attempt failed.
    pub error: CallError,
}

type Told = dyn Fn(&Waiting) + Send + Sync;

/// A provider that retries transient failures.
///
/// A retry starts over: every [`Delta`] of the failed call is void, which [`Delta::Void`] reports
/// before the wait. Only a complete answer is returned.
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
    /// Without an observer of the waits.
    pub fn new(inner: P, patience: Patience) -> Self {
        Self { inner, patience, observer: Box::new(|_| {}), calls: AtomicU64::new(0) }
    }

    /// Calls `observer` before each wait.
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
