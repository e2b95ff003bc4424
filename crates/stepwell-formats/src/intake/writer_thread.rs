//! Writes what was read, on a thread of its own, while more is read.

use std::panic::resume_unwind;
use std::sync::Arc;
use std::sync::mpsc::{SyncSender, sync_channel};
use std::thread::{Builder, JoinHandle};

use stepwell::Store;
use stepwell::store::{Append, Write};

use crate::Result;

/// How many appends wait for the one that is being written. Each is of some megabytes, and
/// all that wait are in memory.
const WAITING: usize = 1;

/// Appends in the order in which they are given. After one that fails nothing more is
/// written.
pub(super) struct Scribe {
    store: Arc<dyn Store>,
    at_work: Option<AtWork>,
}

struct AtWork {
    to: SyncSender<Append>,
    thread: JoinHandle<stepwell::Result<()>>,
}

impl Scribe {
    pub(super) fn new(store: &Arc<dyn Store>) -> Self {
        Self { store: Arc::clone(store), at_work: None }
    }

    /// Has this written, soon. The answer may be the failure of an earlier append.
    pub(super) fn hand_over(&mut self, append: Append) -> Result<()> {
        if self.at_work.is_none() {
            self.at_work = begin(&self.store);
        }
        let refused = match &self.at_work {
            None => return Ok(write(&*self.store, append)?),
            Some(at_work) => at_work.to.send(append).is_err(),
        };
        // It stops early only because it failed.
        if refused { self.join() } else { Ok(()) }
    }

    /// Waits until all that was handed over is durable, and writes this behind it.
    pub(super) fn finish(&mut self, last: Option<Append>) -> Result<()> {
        self.join()?;
        Ok(last.map_or(Ok(()), |append| write(&*self.store, append))?)
    }

    fn join(&mut self) -> Result<()> {
        let Some(AtWork { to, thread }) = self.at_work.take() else { return Ok(()) };
        drop(to);
        Ok(thread.join().unwrap_or_else(|panic| resume_unwind(panic))?)
    }
}

/// Where there is no thread to be had, whoever reads writes as well.
fn begin(store: &Arc<dyn Store>) -> Option<AtWork> {
    let (to, from) = sync_channel(WAITING);
    let store = Arc::clone(store);
    let work = move || from.iter().try_for_each(|append| write(&*store, append));
    let thread = Builder::new().name("import".to_owned()).spawn(work).ok()?;
    Some(AtWork { to, thread })
}

fn write(store: &dyn Store, append: Append) -> stepwell::Result<()> {
    store.write(Write::Append(append)).map(drop)
}

/// What was handed over is written even if the reading fails: the session is given back
/// only when nobody writes to it any more.
impl Drop for Scribe {
    fn drop(&mut self) {
        if let Some(AtWork { to, thread }) = self.at_work.take() {
            drop(to);
            let _ = thread.join();
        }
    }
}
