//! Housekeeping of the served stores after changes: in the background, one sweep a store at a time.

use std::collections::HashMap;
use std::io;
use std::mem;
use std::sync::Arc;
use std::thread::{self, JoinHandle};
use std::time::Duration;

use parking_lot::{Mutex, MutexGuard};
use stepwell::model::Time;
use stepwell_workspace::housekeeping::tidy;

use crate::stores::OpenStore;

/// The minimum time between two sweeps. Sessions become due by the day.
const EVERY: Duration = Duration::from_secs(3_600);

/// Sweeps stores in threads. Dropping it waits for running sweeps.
#[derive(Debug, Default)]
pub(crate) struct Tidying {
    /// The last sweep of each store, by the store's key.
    sweeps: Mutex<HashMap<String, Sweep>>,
}

#[derive(Debug)]
struct Sweep {
    begun: Time,
    /// If no thread could be spawned, the next sweep does its work.
    thread: io::Result<JoinHandle<()>>,
}

impl Tidying {
    /// Sweeps a changed store, unless it was swept within the last hour.
    pub(crate) fn after_change(&self, store: &Arc<OpenStore>) {
        let swept = Arc::clone(store);
        let sweep = move || tidy(swept.runtime.workspace(), &swept.well);
        self.sweep(&store.key, store.well.now(), sweep);
    }

    fn sweep(&self, key: &str, now: Time, sweep: impl FnOnce() + Send + 'static) {
        let mut sweeps = self.sweeps();
        if sweeps.get(key).is_some_and(|last| last.is_running() || now.since(last.begun) < EVERY) {
            return;
        }
        let thread = thread::Builder::new().name("tidying".to_owned()).spawn(sweep);
        sweeps.insert(key.to_owned(), Sweep { begun: now, thread });
    }

    fn sweeps(&self) -> MutexGuard<'_, HashMap<String, Sweep>> {
        self.sweeps.lock()
    }
}

impl Sweep {
    fn is_running(&self) -> bool {
        self.thread.as_ref().is_ok_and(|thread| !thread.is_finished())
    }
}

impl Drop for Tidying {
    fn drop(&mut self) {
        let sweeps = mem::take(&mut *self.sweeps());
        for thread in sweeps.into_values().filter_map(|sweep| sweep.thread.ok()) {
            // A panic was reported already, and must not prevent the other joins.
            let _ = thread.join();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;

    use super::*;

    const START: Time = Time::from_micros(0);

    #[test]
    fn a_store_is_swept_once_at_a_time_and_others_meanwhile() {
        let tidying = Tidying::default();
        let (release, held) = mpsc::channel::<()>();
        let (tell, swept) = mpsc::channel();
        let (first, second, other) = (tell.clone(), tell.clone(), tell);
        tidying.sweep("home", START, move || {
            let _ = held.recv();
            first.send("home, first").unwrap();
        });
        // The first one still runs after an hour.
        let later = START.plus(EVERY);
        tidying.sweep("home", later, move || second.send("home, second").unwrap());
        tidying.sweep("other", later, move || other.send("other").unwrap());
        assert_eq!(swept.recv(), Ok("other"));
        drop(release);
        drop(tidying);
        assert_eq!(swept.iter().collect::<Vec<_>>(), ["home, first"]);
    }

    #[test]
    fn a_store_is_left_alone_for_an_hour_after_a_sweep_even_one_that_panicked() {
        let tidying = Tidying::default();
        let (tell, swept) = mpsc::channel();
        let sweep = |at: Time, told: &'static str| {
            let tell = tell.clone();
            tidying.sweep("home", at, move || {
                tell.send(told).unwrap();
                panic!("a sweep that fails");
            });
            while tidying.sweeps()["home"].is_running() {
                thread::yield_now();
            }
        };
        sweep(START, "first");
        sweep(START.plus(EVERY - Duration::from_secs(1)), "too soon");
        sweep(START.plus(EVERY), "an hour later");
        assert_eq!(swept.try_iter().collect::<Vec<_>>(), ["first", "an hour later"]);
    }
}
