//! Waiting for an answer on a thread that may itself belong to an async program.
//!
//! A runtime's `block_on` would refuse to run inside another runtime.

use std::future::Future;
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker};
use std::thread::Thread;
use std::time::{Duration, Instant};

/// Wakes the thread that waits.
struct ThreadWaker(Thread);

impl Wake for ThreadWaker {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        self.0.unpark();
    }
}

thread_local! {
    /// This thread's waker: one is needed for every answer.
    static WAKER: Waker = Waker::from(Arc::new(ThreadWaker(std::thread::current())));
}

/// Waits for an answer for so long.
#[expect(clippy::disallowed_methods, reason = "a wait is bounded in real time")]
pub(crate) fn wait<T>(work: impl Future<Output = T>, longest: Duration) -> Option<T> {
    // In a task of the caller's, tokio would have some things wait until the task gives way,
    // and whoever waits here never does.
    let mut work = pin!(tokio::task::unconstrained(work));
    let until = Instant::now() + longest;
    WAKER.with(|waker| {
        let mut context = Context::from_waker(waker);
        loop {
            if let Poll::Ready(answer) = work.as_mut().poll(&mut context) {
                return Some(answer);
            }
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return None;
            }
            std::thread::park_timeout(left);
        }
    })
}
