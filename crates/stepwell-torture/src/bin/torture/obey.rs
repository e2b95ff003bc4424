//! Doing what a test orders, one thing after another, whatever the store answers.

use std::collections::BTreeMap;
use std::io::{self, BufRead};
use std::path::Path;
use std::sync::Barrier;
use std::thread::ScopedJoinHandle;
use std::time::Duration;

use stepwell::{Append, Claim, Error, Lease, Search, SessionId, SqliteStore, Store, Write};
use stepwell_torture::{Dice, Line, Load, Order, Refusal, bytes_of, word_of};

use crate::{Fallible, create, say, this};

/// Does the orders on stdin until there are no more.
pub(crate) fn orders(folder: &Path) -> Fallible {
    let mut servant = Servant { folder, store: None, leases: BTreeMap::new() };
    for order in io::stdin().lock().lines() {
        let order: Order = serde_json::from_str(&order?)?;
        servant.obey(order)?;
    }
    Ok(())
}

struct Servant<'a> {
    folder: &'a Path,
    store: Option<SqliteStore>,
    leases: BTreeMap<SessionId, Lease>,
}

impl Servant<'_> {
    fn obey(&mut self, order: Order) -> Fallible {
        match order {
            Order::Open => {
                let opened = SqliteStore::open(self.folder).map(|store| {
                    self.store = Some(store);
                    Line::Opened
                });
                answer("open", opened)
            }
            Order::Close => {
                self.store = None;
                say(&Line::Closed)
            }
            order => match self.store.take() {
                Some(store) => {
                    let done = self.with_store(&store, order);
                    self.store = Some(store);
                    done
                }
                // The store did not open, and said so.
                None => Ok(()),
            },
        }
    }

    fn with_store(&mut self, store: &SqliteStore, order: Order) -> Fallible {
        match order {
            Order::Open | Order::Close => Ok(()),
            Order::Create(session) => {
                say(&Line::Creating(session.clone()))?;
                let made = create(store, &session);
                answer("create", self.hold(made).map(|()| Line::Created(session)))
            }
            Order::Acquire(session, ttl) => {
                let claim = Claim { holder: this(), ttl: Duration::from_millis(ttl) };
                let taken = store.acquire(&session, &claim);
                let epoch = taken.as_ref().ok().map(|lease| lease.epoch);
                let held = self.hold(taken);
                answer("acquire", held.map(|()| Line::Leased(session, epoch.expect("it is held"))))
            }
            Order::Renew(session, ttl) => {
                let Some(lease) = self.leases.get(&session) else {
                    return Ok(());
                };
                let renewed = store.renew(lease, Duration::from_millis(ttl));
                answer("renew", renewed.map(|lease| Line::Leased(session, lease.epoch)))
            }
            Order::Release(session) => {
                let Some(lease) = self.leases.get(&session) else {
                    return Ok(());
                };
                answer("release", store.release(lease).map(|()| Line::Released(session)))
            }
            Order::Append(session, load) => self.append(store, session, load),
            Order::Put(token) => {
                say(&Line::Putting(token))?;
                answer("put", store.put_blob(&bytes_of(token)).map(|_| Line::Put(token)))
            }
            Order::Crowd(threads) => crowd(store, threads),
            Order::Search(token) => {
                let found = store.search(&Search::new(word_of(token)));
                answer("search", found.map(|found| Line::Found(token, found.hits.len())))
            }
            Order::Purge(session) => {
                say(&Line::Purging(session.clone()))?;
                let purged = store.purge(&[session.clone().into()]);
                answer("purge", purged.map(|_| Line::Purged(session)))
            }
        }
    }

    fn hold(&mut self, lease: Result<Lease, Error>) -> Result<(), Error> {
        lease.map(|lease| {
            self.leases.insert(lease.session.clone(), lease);
        })
    }

    fn append(&self, store: &SqliteStore, session: SessionId, load: Load) -> Fallible {
        // A lease that was refused leaves nothing to append under.
        let Some(lease) = self.leases.get(&session) else {
            return Ok(());
        };
        say(&Line::Trying(session.clone(), load.clone()))?;
        let written = store.write(Write::Append(Append {
            session: session.clone(),
            epoch: Some(lease.epoch),
            expected: None,
            events: load.events(),
        }));
        answer(
            "append",
            written.map(|written| Line::Kept(session, load, written.first, written.last)),
        )
    }
}

/// Every second thread stores 4 MB that do not compress: more than SQLite keeps in
/// memory, so that a full disk shows in the middle of a transaction that they share.
fn crowd(store: &SqliteStore, threads: u64) -> Fallible {
    let together = Barrier::new(usize::try_from(threads)?);
    let put = |thread: u64| {
        let mut dice = Dice::new(thread);
        let words = if thread.is_multiple_of(2) { 1 << 13 } else { 1 << 19 };
        let bytes: Vec<u8> = (0..words).flat_map(|_| dice.roll().to_le_bytes()).collect();
        together.wait();
        store.put_blob(&bytes).map(|_| Line::Put(thread))
    };
    let put = &put;
    let results: Vec<_> = std::thread::scope(|scope| {
        let running: Vec<_> = (0..threads).map(|thread| scope.spawn(move || put(thread))).collect();
        let join = |handle: ScopedJoinHandle<'_, _>| handle.join();
        running.into_iter().map(join).collect()
    });
    for result in results {
        answer("crowd", result.map_err(|_| "a thread panicked")?)?;
    }
    Ok(())
}

fn answer(doing: &str, result: Result<Line, Error>) -> Fallible {
    say(&result.unwrap_or_else(|error| Line::Refused(Refusal::new(doing, &error))))
}
