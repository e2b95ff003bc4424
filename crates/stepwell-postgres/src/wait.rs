//! Waiting for an answer on a thread that may itself belong to an async program.
//!
//! A runtime's `block_on` would refuse to run inside another runtime.

use std::future::Future;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, Wake, Waker};
use std::thread::Thread;
use std::time::{Duration, Instant};

/// Wakes one thread, with a system call only if it sleeps.
pub(crate) struct ThreadWaker {
    thread: Thread,
    rung: AtomicBool,
    asleep: AtomicBool,
}

impl Wake for ThreadWaker {
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

impl ThreadWaker {
    /// Does something with this thread's bell, and with what rings it.
    pub(crate) fn with<T>(work: impl FnOnce(&Self, &mut Context<'_>) -> T) -> T {
        BELL.with(|(bell, waker)| work(bell, &mut Context::from_waker(waker)))
    }

    /// What rang before is taken care of.
    pub(crate) fn hush(&self) {
        self.rung.store(false, Ordering::SeqCst);
    }

    /// Has it rung since?
    pub(crate) fn has_rung(&self) -> bool {
        self.rung.load(Ordering::SeqCst)
    }

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
    static BELL: (Arc<ThreadWaker>, Waker) = {
        let (rung, asleep) = (AtomicBool::new(false), AtomicBool::new(false));
        let bell = Arc::new(ThreadWaker { thread: std::thread::current(), rung, asleep });
        (Arc::clone(&bell), Waker::from(bell))
    };
}

/// Waits for an answer for so long.
#[expect(clippy::disallowed_methods, reason = "a wait is bounded in real time")]
pub(crate) fn wait<T>(work: impl Future<Output = T>, longest: Duration) -> Option<T> {
    // In a task of the caller's, tokio would have some things wait until the task gives way,
    // and whoever waits here never does.
    let mut work = pin!(tokio::task::unconstrained(work));
    let mut until = None;
    ThreadWaker::with(|bell, context| {
        loop {
            // What rang before is seen by what is polled now.
            bell.hush();
            if let Poll::Ready(answer) = work.as_mut().poll(context) {
                return Some(answer);
            }
            let until = *until.get_or_insert_with(|| Instant::now() + longest);
            if !bell.sleep(until) {
                return None;
            }
        }
    })
}
