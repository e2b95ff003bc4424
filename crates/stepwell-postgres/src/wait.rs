//! Waiting for an answer on a thread that may itself belong to an async program.
//!
//! What is waited for is driven by the runtime's own thread; this one only sleeps until
//! it is woken. A runtime's `block_on` would refuse to run inside another runtime.

use std::future::Future;
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker};
use std::thread::Thread;
use std::time::{Duration, Instant};

struct Unpark(Thread);

impl Wake for Unpark {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        self.0.unpark();
    }
}

thread_local! {
    /// Wakes this thread. It is asked for at every answer, so it is made once.
    static WAKER: Waker = Waker::from(Arc::new(Unpark(std::thread::current())));
}

/// Waits for an answer for so long.
#[expect(clippy::disallowed_methods, reason = "a wait is bounded in real time")]
pub(crate) fn wait<T>(work: impl Future<Output = T>, longest: Duration) -> Option<T> {
    let waker = WAKER.with(Waker::clone);
    let mut context = Context::from_waker(&waker);
    let mut work = pin!(work);
    let mut began = None;
    loop {
        if let Poll::Ready(answer) = work.as_mut().poll(&mut context) {
            return Some(answer);
        }
        let began = *began.get_or_insert_with(Instant::now);
        let left = longest.saturating_sub(began.elapsed());
        if left.is_zero() {
            return None;
        }
        std::thread::park_timeout(left);
    }
}
