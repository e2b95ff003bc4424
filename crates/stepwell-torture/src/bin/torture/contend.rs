//! Writing concurrently with other processes.

use std::path::Path;
use std::time::Duration;

use stepwell::sqlite::SqliteStore;
use stepwell::store::{Append, Lease, Write};
use stepwell::{Error, Seq, SessionId, Store};
use stepwell_torture::{Line, Load, Rng, Shape};

use crate::{Fallible, claim, kill_self, lease, report, wait_for_start};

/// Appends `events` events to a session without another writer.
pub(crate) fn fill(folder: &Path, session: &SessionId, by: &str, events: u64) -> Fallible {
    wait_for_start()?;
    // All processes open the empty folder at once: one of them creates the store.
    let store = SqliteStore::open(folder)?;
    let lease = lease(&store, session)?;
    let mut rng = Rng::new(u64::from(std::process::id()));
    let mut last = Seq::FIRST;
    while last.get() < events {
        let left = u8::try_from((events - last.get()).min(3))?;
        last = append(&store, &lease, by, rng.next_u64(), left)?;
    }
    drop(store);
    report(&Line::Closed)
}

/// When a contending process stops.
#[derive(Clone, Copy)]
pub(crate) struct Goal {
    /// The number of events that the session is to have.
    pub(crate) target: u64,
    /// The number of the lease at which it kills itself; 0 for never.
    pub(crate) die_at: u64,
}

/// Contends for a session's lease until the session has `target` events.
pub(crate) fn contend(folder: &Path, session: &SessionId, by: &str, goal: Goal) -> Fallible {
    let Goal { target, die_at } = goal;
    let store = SqliteStore::open(folder)?;
    report(&Line::Opened)?;
    wait_for_start()?;
    let mut rng = Rng::new(u64::from(std::process::id()));
    let mut held: u64 = 0;
    loop {
        let lease = acquire_blocking(&store, session, &mut rng)?;
        held += 1;
        report(&Line::Leased(session.clone(), lease.epoch))?;
        let mut last = store.info(session)?.head.seq;
        for _ in 0..rng.between(1, 4) {
            if last.get() < target {
                let events = u8::try_from(rng.between(1, 4))?;
                last = append(&store, &lease, by, rng.next_u64(), events)?;
            }
        }
        if held == die_at {
            kill_self();
        }
        store.release(&lease)?;
        report(&Line::Released(session.clone()))?;
        if last.get() >= target {
            break;
        }
        // A runner that released a session does something else for a while.
        pause(&mut rng);
    }
    drop(store);
    report(&Line::Closed)
}

/// Acquires the lease, however long others hold it.
fn acquire_blocking(store: &dyn Store, session: &SessionId, rng: &mut Rng) -> Fallible<Lease> {
    loop {
        match store.acquire(session, &claim()) {
            Ok(lease) => return Ok(lease),
            Err(Error::Held { .. }) => pause(rng),
            Err(error) => return Err(error.into()),
        }
    }
}

fn append(store: &dyn Store, lease: &Lease, by: &str, token: u64, events: u8) -> Fallible<Seq> {
    let load =
        Load { token, shape: Shape::Many(events), by: by.to_owned(), epoch: lease.epoch.get() };
    let session = lease.session.clone();
    let written = store.write(Write::Append(Append {
        session: session.clone(),
        epoch: Some(lease.epoch),
        expected: None,
        events: load.events().into(),
    }))?;
    report(&Line::Appended(session, load, written.first, written.last))?;
    Ok(written.last)
}

#[expect(clippy::disallowed_methods, reason = "another process's lease can only be polled")]
fn pause(rng: &mut Rng) {
    std::thread::sleep(Duration::from_micros(rng.between(200, 1_000)));
}
