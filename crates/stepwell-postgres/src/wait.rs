//! Waiting for an answer on a thread that may itself belong to an async program.
//!
//! The runtime's own thread watches the sockets; this one sleeps until it is woken. A
//! runtime's `block_on` would refuse to run inside another runtime.

use std::future::Future;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, Wake, Waker};
use std::thread::Thread;
use std::time::{Duration, Instant};

/// Wakes one thread, with a system call only if it sleeps.
struct Bell {
    thread: Thread,
    rung: AtomicBool,
    asleep: AtomicBool,
}

impl Wake for Bell {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        self.rung.store(true, Ordering::SeqCst);
        if self.asleep.load(Ordering::SeqCst) {
            self.thread.unpark();
        }
    }
}

impl Bell {
    /// Sleeps until it rings. Has it, in time?
    #[expect(clippy::disallowed_methods, reason = "a wait is bounded in real time")]
    fn sleep(&self, until: Instant) -> bool {
        self.asleep.store(true, Ordering::SeqCst);
        let mut rung = self.rung.load(Ordering::SeqCst);
        while !rung {
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                break;
            }
            std::thread::park_timeout(left);
            rung = self.rung.load(Ordering::SeqCst);
        }
        self.asleep.store(false, Ordering::SeqCst);
        rung
    }
}

thread_local! {
    /// This thread's bell, with a waker that rings it. They are needed at every answer.
    static BELL: (Arc<Bell>, Waker) = {
        let (rung, asleep) = (AtomicBool::new(false), AtomicBool::new(false));
        let bell = Arc::new(Bell { thread: std::thread::current(), rung, asleep });
        (Arc::clone(&bell), Waker::from(bell))
    };
}

/// Waits for an answer for so long.
pub(crate) fn wait<T>(work: impl Future<Output = T>, longest: Duration) -> Option<T> {
    BELL.with(|(bell, waker)| wait_at(bell, &mut Context::from_waker(waker), work, longest))
}

#[expect(clippy::disallowed_methods, reason = "a wait is bounded in real time")]
fn wait_at<T>(
    bell: &Bell,
    context: &mut Context<'_>,
    work: impl Future<Output = T>,
    longest: Duration,
) -> Option<T> {
    let mut work = pin!(work);
    let mut until = None;
    loop {
        // What rang before is seen by what is polled now.
        bell.rung.store(false, Ordering::SeqCst);
        if let Poll::Ready(answer) = work.as_mut().poll(context) {
            return Some(answer);
        }
        let until = *until.get_or_insert_with(|| Instant::now() + longest);
        if !bell.sleep(until) {
            return None;
        }
    }
}
