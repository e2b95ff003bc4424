//! A clock and processes under a test's control.

use std::collections::HashMap;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use parking_lot::Mutex;
use stepwell::clock::Clock;
use stepwell::model::{Owner, Time};
use stepwell::store::{Liveness, Processes};

/// A clock that only moves when a test moves it.
#[derive(Debug)]
pub struct TestClock(AtomicI64);

impl Default for TestClock {
    /// 2026-02-23T14:30:22Z.
    fn default() -> Self {
        Self(AtomicI64::new(1_771_857_022_000_000))
    }
}

impl TestClock {
    /// Sets the time, forward or back.
    pub fn set(&self, now: Time) {
        self.0.store(now.as_micros(), Ordering::SeqCst);
    }

    /// Advances the clock and returns the new time.
    pub fn advance(&self, by: Duration) -> Time {
        let now = self.now().plus(by);
        self.set(now);
        now
    }
}

impl Clock for TestClock {
    fn now(&self) -> Time {
        Time::from_micros(self.0.load(Ordering::SeqCst))
    }
}

/// Processes that are alive unless a test says otherwise.
#[derive(Debug, Default)]
pub struct TestProcesses(Mutex<HashMap<Owner, Liveness>>);

impl TestProcesses {
    /// A process with this pid on this machine.
    #[must_use]
    pub fn holder(pid: u32) -> Owner {
        Owner {
            host: "here".to_owned(),
            boot: "first".to_owned(),
            namespace: String::new(),
            pid,
            started: "1".to_owned(),
            user: "ann".to_owned(),
        }
    }

    /// Marks that process as gone.
    pub fn mark_gone(&self, holder: &Owner) {
        self.mark(holder, Liveness::Gone);
    }

    /// Marks that process as running (again).
    pub fn mark_alive(&self, holder: &Owner) {
        self.mark(holder, Liveness::Alive);
    }

    /// Marks that process as unknown.
    pub fn mark_unknown(&self, holder: &Owner) {
        self.mark(holder, Liveness::Unknown);
    }

    fn mark(&self, holder: &Owner, pulse: Liveness) {
        let mut known = self.0.lock();
        known.insert(holder.clone(), pulse);
    }
}

impl Processes for TestProcesses {
    fn this(&self) -> Owner {
        Self::holder(1)
    }

    fn pulse(&self, holder: &Owner) -> Liveness {
        let known = self.0.lock();
        known.get(holder).copied().unwrap_or(Liveness::Alive)
    }
}
