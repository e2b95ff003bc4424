//! Opening rows: each is checked against the chain and read back as an event. Where there are
//! many, a second thread helps: checking and reading take longer than fetching.

use std::collections::VecDeque;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

use super::rows::Rows;
use super::{Damage, Slice};
use crate::codec::Row;
use crate::{Digest, Recorded, Result};

/// Fewer rows are opened sooner than a thread is started.
const MANY: usize = 500;

/// How many rows are handed over at once: few enough to be shared fairly, and enough that
/// handing over costs nothing beside them.
const BATCH: usize = 64;

/// How many batches may wait. Whoever fetches more helps instead, which bounds memory.
const WAITING: usize = 8;

/// A row, and the chain's value that it has to follow.
type Link = (Row, Digest);

/// A row that was opened.
enum Opened {
    Event(Recorded),
    /// What a scrub put in an event's place.
    Scrubbed(Recorded),
    /// Right so far; its long texts are for whoever can fetch them.
    Spilled(Row),
    Damaged(Damage),
}

/// Rows that were opened together, in their order.
type Batch = Vec<Opened>;

/// What is handed from one thread to the other.
#[derive(Default)]
struct Desk {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    waiting: VecDeque<(usize, Vec<Link>)>,
    /// The batches that were opened, by their numbers.
    opened: Vec<Option<Batch>>,
    closed: bool,
}

impl Desk {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Opens the batch that has waited longest. Was there one?
    fn open_one(&self) -> bool {
        let Some((number, links)) = self.lock().waiting.pop_front() else { return false };
        let batch = links.into_iter().map(|(row, prev)| open(row, &prev)).collect();
        self.lock().opened[number] = Some(batch);
        true
    }

    /// Opens batches until there will be no more.
    fn help(&self) {
        loop {
            while self.open_one() {}
            let state = self.lock();
            let idle = |state: &mut State| state.waiting.is_empty() && !state.closed;
            let state = self.changed.wait_while(state, idle);
            let state = state.unwrap_or_else(PoisonError::into_inner);
            if state.waiting.is_empty() && state.closed {
                return;
            }
        }
    }

    fn close(&self) {
        self.lock().closed = true;
        self.changed.notify_all();
    }
}

/// Closes when it is dropped: a helper never waits for someone who is gone.
struct Closing<'a>(&'a Desk);

impl Drop for Closing<'_> {
    fn drop(&mut self) {
        self.0.close();
    }
}

/// Takes rows in, and opens them.
pub(super) struct Opener<'a> {
    desk: &'a Desk,
    batch: Vec<Link>,
    taken: usize,
}

/// Opens the rows that `fetch` takes in, about as many as `expected`. What `fetch` found wrong
/// itself comes after whatever is wrong with those rows.
pub(super) fn opened(
    rows: &dyn Rows,
    expected: usize,
    fetch: impl FnOnce(&mut Opener<'_>) -> Result<Option<Damage>>,
) -> Result<Slice> {
    let desk = Desk::default();
    let damage = std::thread::scope(|scope| -> Result<Option<Damage>> {
        let closing = Closing(&desk);
        if expected >= MANY {
            let helper = std::thread::Builder::new().name("opening".to_owned());
            // Without a helper it takes longer, and is as right.
            let _ = helper.spawn_scoped(scope, || desk.help());
        }
        let mut opener = Opener { desk: &desk, batch: Vec::new(), taken: 0 };
        let damage = fetch(&mut opener)?;
        opener.hand_over();
        while desk.open_one() {}
        drop(closing);
        Ok(damage)
    })?;
    Ok(gathered(rows, desk, damage))
}

impl Opener<'_> {
    /// How many rows were taken in.
    pub(super) fn taken(&self) -> usize {
        self.taken
    }

    /// Takes a row in that has to follow the chain's value `prev`.
    pub(super) fn take(&mut self, row: Row, prev: Digest) {
        self.taken += 1;
        self.batch.push((row, prev));
        if self.batch.len() >= BATCH {
            self.hand_over();
        }
    }

    fn hand_over(&mut self) {
        let links = std::mem::replace(&mut self.batch, Vec::with_capacity(BATCH));
        let crowded = {
            let mut state = self.desk.lock();
            let number = state.opened.len();
            state.opened.push(None);
            state.waiting.push_back((number, links));
            state.waiting.len() > WAITING
        };
        self.desk.changed.notify_one();
        if crowded {
            self.desk.open_one();
        }
    }
}

fn open(row: Row, prev: &Digest) -> Opened {
    if let Err(what) = row.follows(prev) {
        return Opened::Damaged(Damage { seq: row.seq, what });
    }
    if row.spilled { Opened::Spilled(row) } else { read(&row, &mut |_| Ok(Vec::new())) }
}

fn read(row: &Row, blob: &mut dyn FnMut(&Digest) -> Result<Vec<u8>>) -> Opened {
    match row.open(blob) {
        Ok(event) if row.erased.is_some() => Opened::Scrubbed(event),
        Ok(event) => Opened::Event(event),
        Err(what) => Opened::Damaged(Damage { seq: row.seq, what }),
    }
}

/// What was opened, in order, up to the first that is damaged.
fn gathered(rows: &dyn Rows, desk: Desk, fetched: Option<Damage>) -> Slice {
    let state = desk.state.into_inner().unwrap_or_else(PoisonError::into_inner);
    let count = state.opened.iter().flatten().map(Vec::len).sum();
    let mut slice = Slice { events: Vec::with_capacity(count), scrubbed: 0, damage: None };
    for opened in state.opened.into_iter().flatten().flatten() {
        let opened = match opened {
            Opened::Spilled(row) => read(&row, &mut |digest| rows.blob(digest)),
            opened => opened,
        };
        match opened {
            Opened::Event(event) => slice.events.push(event),
            Opened::Scrubbed(event) => {
                slice.events.push(event);
                slice.scrubbed += 1;
            }
            Opened::Damaged(damage) => {
                slice.damage = Some(damage);
                return slice;
            }
            // Read just now.
            Opened::Spilled(_) => {}
        }
    }
    slice.damage = fetched;
    slice
}
