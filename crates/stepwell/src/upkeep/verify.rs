//! Verifying many sessions on several threads.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc;
use std::thread;

use crate::error::{Error, Result};
use crate::model::{Seq, SessionId};
use crate::sessions::Stepwell;
use crate::store::query::{Filter, LedgerRows, Query, TrashScope};
use crate::store::{Damage, Derived, Verdict};

/// The most threads for verification: a disk serves no more, and others need it, too.
const MOST_THREADS: usize = 8;

impl Stepwell {
    /// The ids of all sessions, including the trash and ledger rows.
    ///
    /// # Errors
    /// If they cannot be listed.
    pub fn every_id(&self) -> Result<Vec<SessionId>> {
        let (place, rows) = (TrashScope::Anywhere, LedgerRows::Included);
        let filter = Filter { place, rows, ..Filter::default() };
        let sessions = self.sessions(Query { filter, ..Query::default() });
        sessions.map(|it| it.map(|info| info.head.id)).collect()
    }

    /// Verifies sessions, several at a time, and passes the results to `each` in the order of
    /// `ids`. The first error ends it.
    ///
    /// # Errors
    /// If a session cannot be read at all, or `each` fails.
    pub fn verify_each<E: From<Error>>(
        &self,
        ids: &[SessionId],
        mut each: impl FnMut(&SessionId, Verdict) -> Result<(), E>,
    ) -> Result<(), E> {
        let threads = thread::available_parallelism().map_or(1, usize::from);
        let threads = threads.min(MOST_THREADS).min(ids.len());
        let (next, stopped) = (AtomicUsize::new(0), AtomicBool::new(false));
        let (found, verdicts) = mpsc::channel();
        thread::scope(|scope| {
            for _ in 0..threads {
                let (found, next, stopped) = (found.clone(), &next, &stopped);
                scope.spawn(move || {
                    while !stopped.load(Ordering::Relaxed) {
                        let n = next.fetch_add(1, Ordering::Relaxed);
                        let Some(id) = ids.get(n) else { return };
                        if found.send((n, self.verify_listed(id))).is_err() {
                            return;
                        }
                    }
                });
            }
            drop(found);
            let told = in_order(&verdicts, |n, verdict: Result<Option<Verdict>>| match verdict? {
                Some(verdict) => each(&ids[n], verdict),
                None => Ok(()),
            });
            stopped.store(true, Ordering::Relaxed);
            told
        })
    }

    /// Verifies a listed session. `None` if it was purged since. A session that a broken store no
    /// longer finds is damaged as a whole.
    fn verify_listed(&self, id: &SessionId) -> Result<Option<Verdict>> {
        match self.store().maintain().verify(id) {
            Err(Error::NoSession(_)) => {
                let broken = self.store().maintain().integrity()?.into_iter().next();
                Ok(broken.map(|what| Verdict {
                    intact: 0,
                    scrubbed: 0,
                    pruned: 0,
                    damage: Some(Damage { seq: Seq::ZERO, what }),
                    derived: Derived::Wrong,
                }))
            }
            verdict => verdict.map(Some),
        }
    }
}

/// Passes numbered values on in order: early ones wait.
fn in_order<T, E>(
    from: &mpsc::Receiver<(usize, T)>,
    mut each: impl FnMut(usize, T) -> Result<(), E>,
) -> Result<(), E> {
    let (mut early, mut next) = (BTreeMap::new(), 0);
    for (n, it) in from {
        early.insert(n, it);
        while let Some(it) = early.remove(&next) {
            each(next, it)?;
            next += 1;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn early_results_wait_for_their_turn() {
        let (to, from) = mpsc::channel();
        for n in [2, 0, 1, 4, 3] {
            to.send((n, n * 10)).unwrap();
        }
        drop(to);
        let mut seen = Vec::new();
        let done: Result<(), ()> = in_order(&from, |n, it| {
            seen.push((n, it));
            Ok(())
        });
        assert_eq!(done, Ok(()));
        assert_eq!(seen, [(0, 0), (1, 10), (2, 20), (3, 30), (4, 40)]);
    }

    #[test]
    fn sessions_are_verified_in_the_order_of_their_ids_and_an_error_ends_it() {
        let well = Stepwell::in_memory();
        for _ in 0..50 {
            well.create(well.draft("one")).unwrap();
        }
        let ids = well.every_id().unwrap();
        let mut seen = Vec::new();
        let done: Result<()> = well.verify_each(&ids, |id, verdict| {
            assert!(verdict.is_sound());
            seen.push(id.clone());
            Ok(())
        });
        assert!(done.is_ok());
        assert_eq!(seen, ids);
        let mut count = 0;
        let stopped: Result<()> = well.verify_each(&ids, |id, _| {
            count += 1;
            Err(Error::NoSession(id.clone()))
        });
        assert!(stopped.is_err());
        assert_eq!(count, 1);
    }
}
