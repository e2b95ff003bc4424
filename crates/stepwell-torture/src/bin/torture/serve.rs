//! Handles requests of a test, one after another, whatever the store answers.

use std::collections::BTreeMap;
use std::io::{self, BufRead};
use std::path::Path;
use std::sync::Barrier;
use std::thread::ScopedJoinHandle;
use std::time::Duration;

use stepwell::log::Redactor;
use stepwell::sqlite::SqliteStore;
use stepwell::store::query::Search;
use stepwell::store::{Append, Lease, LeaseRequest, Write};
use stepwell::{Error, SessionId, Store};
use stepwell_torture::{Line, Load, Refusal, Request, Rng, bytes_of, word_of};

use crate::{Fallible, create, report, this_process};

/// Handles the requests on stdin until it ends.
pub(crate) fn requests(folder: &Path) -> Fallible {
    let mut server = Server { folder, store: None, leases: BTreeMap::new() };
    for request in io::stdin().lock().lines() {
        let request: Request = serde_json::from_str(&request?)?;
        server.handle(request)?;
    }
    Ok(())
}

struct Server<'a> {
    folder: &'a Path,
    store: Option<SqliteStore>,
    leases: BTreeMap<SessionId, Lease>,
}

impl Server<'_> {
    fn handle(&mut self, request: Request) -> Fallible {
        match request {
            Request::Open => {
                let opened = SqliteStore::open(self.folder).map(|store| {
                    self.store = Some(store);
                    Line::Opened
                });
                answer("open", opened)
            }
            Request::Close => {
                self.store = None;
                report(&Line::Closed)
            }
            request => match self.store.take() {
                Some(store) => {
                    let done = self.with_store(&store, request);
                    self.store = Some(store);
                    done
                }
                // Opening the store failed, which was reported.
                None => Ok(()),
            },
        }
    }

    fn with_store(&mut self, store: &dyn Store, request: Request) -> Fallible {
        match request {
            Request::Open | Request::Close => Ok(()),
            Request::Create(session) => {
                report(&Line::Creating(session.clone()))?;
                let created = create(store, &session);
                answer("create", self.keep_lease(created).map(|()| Line::Created(session)))
            }
            Request::Acquire(session, ttl) => {
                let claim =
                    LeaseRequest { holder: this_process(), ttl: Duration::from_millis(ttl) };
                let acquired = store.acquire(&session, &claim);
                let epoch = acquired.as_ref().ok().map(|lease| lease.epoch);
                let kept = self.keep_lease(acquired);
                answer("acquire", kept.map(|()| Line::Leased(session, epoch.expect("a lease"))))
            }
            Request::Renew(session, ttl) => {
                let Some(lease) = self.leases.get(&session) else {
                    return Ok(());
                };
                let renewed = store.renew(lease, Duration::from_millis(ttl));
                answer("renew", renewed.map(|lease| Line::Leased(session, lease.epoch)))
            }
            Request::Release(session) => {
                let Some(lease) = self.leases.get(&session) else {
                    return Ok(());
                };
                answer("release", store.release(lease).map(|()| Line::Released(session)))
            }
            Request::Append(session, load) => self.append(store, session, load),
            Request::Put(token) => {
                report(&Line::Putting(token))?;
                answer("put", store.put_blob(&bytes_of(token)).map(|_| Line::Put(token)))
            }
            Request::Crowd(threads) => put_concurrently(store, threads),
            Request::Search(token) => {
                let found = store.search(&Search::new(word_of(token)), &Redactor::default());
                answer("search", found.map(|found| Line::Found(token, found.hits.len())))
            }
            Request::Purge(session) => {
                report(&Line::Purging(session.clone()))?;
                let purged = store.maintain().purge(&[session.clone().into()]);
                answer("purge", purged.map(|_| Line::Purged(session)))
            }
        }
    }

    fn keep_lease(&mut self, lease: Result<Lease, Error>) -> Result<(), Error> {
        lease.map(|lease| {
            self.leases.insert(lease.session.clone(), lease);
        })
    }

    fn append(&self, store: &dyn Store, session: SessionId, load: Load) -> Fallible {
        // Acquiring the lease failed: there is nothing to append under.
        let Some(lease) = self.leases.get(&session) else {
            return Ok(());
        };
        report(&Line::Appending(session.clone(), load.clone()))?;
        let written = store.write(Write::Append(Append {
            session: session.clone(),
            epoch: Some(lease.epoch),
            expected: None,
            events: load.events().into(),
        }));
        answer(
            "append",
            written.map(|written| Line::Appended(session, load, written.first, written.last)),
        )
    }
}

/// Every second thread stores 4 MB of incompressible data: more than SQLite keeps in memory,
/// so that a full disk shows up inside a transaction that the threads share.
fn put_concurrently(store: &dyn Store, threads: u64) -> Fallible {
    let barrier = Barrier::new(usize::try_from(threads)?);
    let put = |thread: u64| {
        let mut rng = Rng::new(thread);
        let words = if thread.is_multiple_of(2) { 1 << 13 } else { 1 << 19 };
        let bytes: Vec<u8> = (0..words).flat_map(|_| rng.next_u64().to_le_bytes()).collect();
        barrier.wait();
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

/// Reports the result of a request.
fn answer(doing: &str, result: Result<Line, Error>) -> Fallible {
    report(&result.unwrap_or_else(|error| Line::Refused(Refusal::new(doing, &error))))
}
