//! Writing beside other processes.

use std::path::Path;
use std::time::Duration;

use stepwell::{Append, Error, Lease, Seq, SessionId, SqliteStore, Store, Write};
use stepwell_torture::{Dice, Line, Load, Shape};

use crate::{Fallible, claim, die, lease, say, wait_for_start};

/// Appends `events` events to a session that nobody else writes to.
pub(crate) fn fill(folder: &Path, session: &SessionId, by: &str, events: u64) -> Fallible {
    wait_for_start()?;
    // All rivals come to the empty folder at once: one makes the store.
    let store = SqliteStore::open(folder)?;
    let lease = lease(&store, session)?;
    let mut dice = Dice::new(u64::from(std::process::id()));
    let mut last = Seq::FIRST;
    while last.get() < events {
        let left = u8::try_from((events - last.get()).min(3))?;
        last = append(&store, &lease, by, dice.roll(), left)?;
    }
    drop(store);
    say(&Line::Closed)
}

/// Fights for a session's lease until the session has `target` events.
pub(crate) fn fight(
    folder: &Path,
    session: &SessionId,
    by: &str,
    target: u64,
    lives: u64,
) -> Fallible {
    let store = SqliteStore::open(folder)?;
    say(&Line::Opened)?;
    wait_for_start()?;
    let mut dice = Dice::new(u64::from(std::process::id()));
    let mut held: u64 = 0;
    loop {
        let lease = insist(&store, session, &mut dice)?;
        held += 1;
        say(&Line::Leased(session.clone(), lease.epoch))?;
        let mut last = store.standing(session)?.head.seq;
        for _ in 0..dice.between(1, 4) {
            if last.get() < target {
                let events = u8::try_from(dice.between(1, 4))?;
                last = append(&store, &lease, by, dice.roll(), events)?;
            }
        }
        if held == lives {
            die();
        }
        store.release(&lease)?;
        say(&Line::Released(session.clone()))?;
        if last.get() >= target {
            break;
        }
        // A runner that has given a session back has other things to do.
        pause(&mut dice);
    }
    drop(store);
    say(&Line::Closed)
}

/// Takes the lease, however long others hold it.
fn insist(store: &SqliteStore, session: &SessionId, dice: &mut Dice) -> Fallible<Lease> {
    loop {
        match store.acquire(session, &claim()) {
            Ok(lease) => return Ok(lease),
            Err(Error::Held { .. }) => pause(dice),
            Err(error) => return Err(error.into()),
        }
    }
}

fn append(store: &SqliteStore, lease: &Lease, by: &str, token: u64, events: u8) -> Fallible<Seq> {
    let load =
        Load { token, shape: Shape::Many(events), by: by.to_owned(), epoch: lease.epoch.get() };
    let session = lease.session.clone();
    let written = store.write(Write::Append(Append {
        session: session.clone(),
        epoch: Some(lease.epoch),
        expected: None,
        events: load.events(),
    }))?;
    say(&Line::Kept(session, load, written.first, written.last))?;
    Ok(written.last)
}

#[expect(clippy::disallowed_methods, reason = "another process's lease can only be polled")]
fn pause(dice: &mut Dice) {
    std::thread::sleep(Duration::from_micros(dice.between(200, 1_000)));
}
