//! How the sessions stand that this process last wrote to, so that an append need not
//! read back what the one before it wrote.
//!
//! What is kept here may be out of date: the append itself finds out, since it names the
//! version that it was made for, and is then done anew from what the database says.

use std::collections::{BTreeMap, HashMap};

use parking_lot::Mutex;
use stepwell::backend::SessionRow;
use stepwell::log::LaneState;
use stepwell::{Lane, SessionId};

/// How many are kept: more than a process has runners, few enough to forget.
const LIMIT: usize = 256;

/// One session as it stood.
#[derive(Clone, Debug)]
pub(crate) struct Known {
    pub(crate) row: SessionRow,
    pub(crate) version: i64,
    /// Its lanes, but for the one in its row.
    pub(crate) lanes: BTreeMap<Lane, LaneState>,
}

/// The sessions that are known.
#[derive(Debug, Default)]
pub(crate) struct HeadCache(Mutex<HashMap<SessionId, Box<Known>>>);

impl HeadCache {
    fn known(&self) -> parking_lot::MutexGuard<'_, HashMap<SessionId, Box<Known>>> {
        self.0.lock()
    }

    /// How a session stood. It is the caller's to bring back when it has moved on.
    pub(crate) fn take(&self, id: &SessionId) -> Option<Box<Known>> {
        self.known().remove(id)
    }

    /// Keeps how a session stands now.
    pub(crate) fn keep(&self, known: Box<Known>) {
        let mut all = self.known();
        if all.len() >= LIMIT {
            all.clear();
        }
        all.insert(known.row.head.id.clone(), known);
    }
}
