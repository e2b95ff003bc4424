//! Runs every operation of a store until it is killed.

use std::path::Path;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};

use stepwell::failpoint::on_failpoint;
use stepwell::log::Redactor;
use stepwell::model::{Digest, StatusChanged};
use stepwell::sessions::ForkAt;
use stepwell::sqlite::SqliteStore;
use stepwell::store::query::Search;
use stepwell::store::{Append, Lease, Maintain as _, Write};
use stepwell::{SessionId, Status, Stepwell, Store};
use stepwell_torture::{Line, Load, Rng, Shape, bytes_of, word_of};

use crate::{Fallible, create, kill_self, lease, report};

/// It stops after this many steps: the test did not kill it.
const STEPS: u64 = 400;

/// The failpoint at which this process kills itself, and at which pass.
struct KillPoint {
    name: String,
    n: u64,
}

static POINT: OnceLock<KillPoint> = OnceLock::new();
static PASSED: AtomicU64 = AtomicU64::new(0);

/// Makes this process kill itself when it passes a failpoint for the `n`th time.
pub(crate) fn die_at(point: &str, n: u64) {
    let point = KillPoint { name: point.to_owned(), n };
    assert!(POINT.set(point).is_ok(), "the failpoint is set once");
    on_failpoint(|passed| {
        let Some(point) = POINT.get() else {
            return;
        };
        if passed == point.name && PASSED.fetch_add(1, Ordering::SeqCst) + 1 == point.n {
            kill_self();
        }
    });
}

/// Forks a session and adds one event; kills itself at the failpoint.
pub(crate) fn fork(folder: &Path, parent: &SessionId, point: &str, n: u64) -> Fallible {
    let well = Stepwell::open(folder)?;
    die_at(point, n);
    let interrupted = StatusChanged { status: Status::Interrupted, reason: None, error: None };
    drop(well.fork(parent, ForkAt { at: None, begins: vec![interrupted.into()] })?);
    report(&Line::Closed)
}

struct Writer<'a> {
    store: SqliteStore,
    lease: Lease,
    by: &'a str,
    rng: Rng,
    last: Option<u64>,
}

/// Opens the store and runs operations: first each one once, then random ones.
pub(crate) fn forever(folder: &Path, session: &SessionId, by: &str, seed: u64) -> Fallible {
    let store = SqliteStore::open(folder)?;
    report(&Line::Opened)?;
    let mut writer =
        Writer { lease: lease(&store, session)?, store, by, rng: Rng::new(seed), last: None };
    for step in 0..STEPS {
        let what = if step < 7 { step } else { writer.rng.below(20) };
        match what {
            1 | 7..=9 => writer.append(Shape::Many(2 + u8::try_from(step % 7)?))?,
            2 | 10 => writer.append(Shape::Spill)?,
            3 | 11 => writer.file()?,
            4 => writer.search()?,
            5 => writer.scratch(step)?,
            6 => writer.renew_lease()?,
            _ => writer.append(Shape::One)?,
        }
    }
    drop(writer);
    report(&Line::Closed)
}

impl Writer<'_> {
    fn load(&mut self, shape: Shape) -> Load {
        Load {
            token: self.rng.next_u64(),
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
        report(&Line::Appending(lease.session.clone(), load.clone()))?;
        let store: &dyn Store = &self.store;
        let written = store.write(Write::Append(Append {
            session: lease.session.clone(),
            epoch: Some(lease.epoch),
            expected: None,
            events: load.events().into(),
        }))?;
        self.last = Some(load.token);
        let session = lease.session.clone();
        report(&Line::Appended(session, load, written.first, written.last))
    }

    /// Stores a blob, then the event that refers to it.
    fn file(&mut self) -> Fallible {
        let load = self.load(Shape::File);
        report(&Line::Putting(load.token))?;
        let bytes = bytes_of(load.token);
        self.store.keep_blobs(&[(Digest::of(&bytes), &bytes)])?;
        report(&Line::Put(load.token))?;
        self.append_to(&self.lease.clone(), load)
    }

    /// Searches for its last append.
    fn search(&mut self) -> Fallible {
        let Some(token) = self.last else {
            return Ok(());
        };
        let found = self.store.search(&Search::new(word_of(token)), &Redactor::default())?;
        report(&Line::Found(token, found.hits.len()))
    }

    /// Creates a session, writes to it, and purges it.
    fn scratch(&mut self, step: u64) -> Fallible {
        let session: SessionId = format!("scratch-{}-{step}", self.by).parse()?;
        report(&Line::Creating(session.clone()))?;
        let lease = create(&self.store, &session)?;
        report(&Line::Created(session.clone()))?;
        let load = self.load(Shape::Spill);
        self.append_to(&lease, load)?;
        self.search()?;
        self.last = None;
        self.store.release(&lease)?;
        report(&Line::Purging(session.clone()))?;
        let removal = self.store.purge(&[session.clone().into()])?;
        if removal.taken != [session.clone()] {
            return Err(format!("the purge left {:?}", removal.left).into());
        }
        report(&Line::Purged(session))
    }

    /// Releases the lease and acquires it again.
    fn renew_lease(&mut self) -> Fallible {
        self.store.release(&self.lease)?;
        self.lease = lease(&self.store, &self.lease.session.clone())?;
        Ok(())
    }
}
