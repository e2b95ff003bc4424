//! Housekeeping of the stores that are served: after changes, in threads of its own, and in each
//! store one at a time.

use std::collections::HashMap;
use std::convert::Infallible;
use std::hash::{Hash, Hasher};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use stepwell::Time;
use stepwell::coordinator::{Coordinator, Interrupt};
use stepwell_workspace::housekeeping::tidy;

use crate::stores::OpenStore;

/// How long a store is left alone after it was tidied. Sessions fall due by the day.
const EVERY: Duration = Duration::from_secs(3_600);

/// Tidies stores. Nobody waits for it.
#[derive(Debug)]
pub(crate) struct Tidying {
    stores: Coordinator<Tidied, Infallible>,
    /// When each store was tidied last.
    last: Mutex<HashMap<String, Time>>,
}

/// A store, known by its key.
#[derive(Clone, Debug)]
struct Tidied(Arc<OpenStore>);

impl Tidying {
    pub(crate) fn new() -> Self {
        let drain = |Tidied(store): &Tidied, _: &Interrupt| {
            tidy(store.runtime.workspace(), &store.well);
            Ok(())
        };
        Self { stores: Coordinator::new(drain), last: Mutex::default() }
    }

    /// Has a store tidied in which something was changed, unless that was done a short while ago.
    pub(crate) fn after_change(&self, store: &Arc<OpenStore>) {
        let now = store.well.now();
        let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        if last.get(&store.key).is_some_and(|at| now.since(*at) < EVERY) {
            return;
        }
        last.insert(store.key.clone(), now);
        // A server that stops, or has no thread to spare, leaves it to the next one.
        let _ = self.stores.wake(&Tidied(Arc::clone(store)));
    }
}

impl PartialEq for Tidied {
    fn eq(&self, other: &Self) -> bool {
        self.0.key == other.0.key
    }
}

impl Eq for Tidied {}

impl Hash for Tidied {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.0.key.hash(state);
    }
}
