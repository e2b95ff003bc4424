//! Writing everything that can be written, until killed.

use std::path::Path;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};

use stepwell::{
    Append, Lease, Search, SessionId, SqliteStore, Status, StatusChanged, Stepwell, Store, Write,
    on_failpoint,
};
use stepwell_torture::{Dice, Line, Load, Shape, bytes_of, word_of};

use crate::{Fallible, create, die, lease, say};

/// After so many steps nobody is going to kill it any more.
const STEPS: u64 = 400;

static POINT: OnceLock<(String, u64)> = OnceLock::new();
static PASSED: AtomicU64 = AtomicU64::new(0);

/// Has this process die at the `n`th time that it passes a failpoint.
pub(crate) fn die_at(point: &str, n: u64) {
    POINT.set((point.to_owned(), n)).expect("there is one point");
    on_failpoint(|passed| {
        let Some((point, n)) = POINT.get() else {
            return;
        };
        if passed == point && PASSED.fetch_add(1, Ordering::SeqCst) + 1 == *n {
            die();
        }
    });
}

/// Forks a session, with a first event of the fork's own, and may die of it.
pub(crate) fn fork(folder: &Path, parent: &SessionId, point: &str, n: u64) -> Fallible {
    let well = Stepwell::open(folder)?;
    die_at(point, n);
    let waits = StatusChanged { status: Status::Interrupted, reason: None, error: None };
    drop(well.fork_with(parent, None, vec![waits.into()])?);
    say(&Line::Closed)
}

struct Writer<'a> {
    store: SqliteStore,
    lease: Lease,
    by: &'a str,
    dice: Dice,
    last: Option<u64>,
}

/// Opens the store and does one thing after another: first each one once, then as
/// the dice fall.
pub(crate) fn forever(folder: &Path, session: &SessionId, by: &str, seed: u64) -> Fallible {
    let store = SqliteStore::open(folder)?;
    say(&Line::Opened)?;
    let mut writer =
        Writer { lease: lease(&store, session)?, store, by, dice: Dice::new(seed), last: None };
    for step in 0..STEPS {
        let what = if step < 7 { step } else { writer.dice.below(20) };
        match what {
            1 | 7..=9 => writer.append(Shape::Many(2 + u8::try_from(step % 7)?))?,
            2 | 10 => writer.append(Shape::Spill)?,
            3 | 11 => writer.file()?,
            4 => writer.search()?,
            5 => writer.scratch(step)?,
            6 => writer.hand_back()?,
            _ => writer.append(Shape::One)?,
        }
    }
    drop(writer);
    say(&Line::Closed)
}

impl Writer<'_> {
    fn load(&mut self, shape: Shape) -> Load {
        Load {
            token: self.dice.roll(),
            shape,
            by: self.by.to_owned(),
            epoch: self.lease.epoch.get(),
        }
    }

    fn append(&mut self, shape: Shape) -> Fallible {
        let load = self.load(shape);
        self.append_to(&self.lease.clone(), load)
    }

    fn append_to(&mut self, lease: &Lease, load: Load) -> Fallible {
        say(&Line::Trying(lease.session.clone(), load.clone()))?;
        let written = self.store.write(Write::Append(Append {
            session: lease.session.clone(),
            epoch: Some(lease.epoch),
            expected: None,
            events: load.events(),
        }))?;
        self.last = Some(load.token);
        let session = lease.session.clone();
        say(&Line::Kept(session, load, written.first, written.last))
    }

    /// Stores a blob, then the event that names it.
    fn file(&mut self) -> Fallible {
        let load = self.load(Shape::File);
        say(&Line::Putting(load.token))?;
        self.store.put_blob(&bytes_of(load.token))?;
        say(&Line::Put(load.token))?;
        self.append_to(&self.lease.clone(), load)
    }

    /// Searches what it wrote last.
    fn search(&mut self) -> Fallible {
        let Some(token) = self.last else {
            return Ok(());
        };
        let found = self.store.search(&Search::new(word_of(token)))?;
        say(&Line::Found(token, found.hits.len()))
    }

    /// Makes a session, writes to it, and erases it.
    fn scratch(&mut self, step: u64) -> Fallible {
        let session: SessionId = format!("scratch-{}-{step}", self.by).parse()?;
        say(&Line::Creating(session.clone()))?;
        let lease = create(&self.store, &session)?;
        say(&Line::Created(session.clone()))?;
        let load = self.load(Shape::Spill);
        self.append_to(&lease, load)?;
        self.search()?;
        self.last = None;
        self.store.release(&lease)?;
        say(&Line::Purging(session.clone()))?;
        let removal = self.store.purge(&[session.clone().into()])?;
        if removal.taken != [session.clone()] {
            return Err(format!("the purge left {:?}", removal.left).into());
        }
        say(&Line::Purged(session))
    }

    /// Gives the lease back and takes it again.
    fn hand_back(&mut self) -> Fallible {
        self.store.release(&self.lease)?;
        self.lease = lease(&self.store, &self.lease.session.clone())?;
        Ok(())
    }
}
