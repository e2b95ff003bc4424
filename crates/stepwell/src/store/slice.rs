//! Reading a session's events in order, each checked against the row before it. For long ranges,
//! other threads check and decode the events while this one reads on.

use std::borrow::Cow;
use std::ops::{ControlFlow, Range};
use std::sync::mpsc::{self, Receiver, Sender, SyncSender, TrySendError};
use std::thread::{self, Scope};

use super::rows::{Base, Rows, SessionRow, Stretch};
use super::{Damage, Order, Replaced, Slice, Span};
use crate::error::{Error, Result};
use crate::log::codec::{OwnRow, Row};
use crate::model::{Digest, Kind, Recorded, Seq};

/// From how many events on helpers are used. Fewer are read faster than a thread starts.
const MANY: u64 = 500;

/// Rows per batch.
const BATCH: usize = 64;

/// How many batches may wait for a helper. After that, the reader decodes the next one itself.
const WAITING: usize = 2;

/// The most helpers of one reader.
const MOST_HELPERS: usize = 3;

/// The damage of a missing event.
pub(super) const MISSING: &str = "it is missing";

/// The stretches of rows that make up a session's events 1..=`to`, oldest first.
pub(crate) fn stretches(rows: &dyn Rows, row: &SessionRow, to: Seq) -> Result<Vec<Stretch>> {
    let mut found = Vec::new();
    let (mut key, mut base, mut end) = (row.key, row.base, to.min(row.head.seq));
    loop {
        let from = base.map_or(Seq::FIRST, |base| base.at.next());
        if from <= end {
            found.push(Stretch { key, from, to: end });
        }
        let Some(Base { key: below, at }) = base else {
            break;
        };
        let below = rows.session_by_key(below)?.ok_or_else(|| {
            let what = "the session whose events it shares is gone".to_owned();
            Damage { seq: at, what }.into_error(&row.head.id)
        })?;
        end = end.min(at);
        (key, base) = (below.key, below.base);
    }
    found.reverse();
    Ok(found)
}

/// Reads events in the requested order, up to the first that fails its check.
pub(crate) fn slice(rows: &dyn Rows, row: &SessionRow, span: Span) -> Result<Slice> {
    if span.limit == 0 {
        return Ok(Slice::default());
    }
    let to = span.to.min(row.head.seq);
    let count = to.get().saturating_sub(span.from.prev().get()).min(span.limit as u64);
    if count < MANY {
        return read(rows, row, Span { to, ..span }, Opener::alone(rows, span.limit));
    }
    thread::scope(|scope| {
        let cores = thread::available_parallelism().map_or(1, usize::from);
        let helpers = Helpers::begin(scope, (cores - 1).min(MOST_HELPERS));
        read(rows, row, Span { to, ..span }, Opener { helpers, ..Opener::alone(rows, span.limit) })
    })
}

fn read(rows: &dyn Rows, row: &SessionRow, span: Span, opener: Opener<'_>) -> Result<Slice> {
    let mut stretches = stretches(rows, row, span.to)?;
    if span.order == Order::Newest {
        stretches.reverse();
    }
    // The chain links each row to the one before, so the row before the range is read as well.
    // Newest first, a row waits until the one before it is known.
    let below = span.from.prev().max(Seq::FIRST);
    let mut reader = Reader { span, prev: None, next: below, waiting: None, damage: None, opener };
    for stretch in stretches {
        let wanted = Stretch { from: stretch.from.max(below), ..stretch };
        if wanted.from > wanted.to {
            continue;
        }
        match rows.visit(wanted, span.order, &mut |row| Ok(reader.read(row))) {
            Ok(ControlFlow::Continue(())) => {}
            Ok(ControlFlow::Break(())) => return Ok(reader.finish()),
            // The database file is damaged below the rows. Events before the damage count.
            Err(Error::DamagedStore { what, .. }) => {
                let _ = reader.damaged(reader.expected(), what);
                return Ok(reader.finish());
            }
            Err(error) => return Err(error),
        }
    }
    reader.end();
    Ok(reader.finish())
}

/// Checks that rows come without a gap, and tracks the chain's value before each.
struct Reader<'a> {
    /// The requested range, ending at the log's end at the latest.
    span: Span,
    /// Oldest first: the previous row's chain.
    prev: Option<Digest>,
    /// Oldest first: the next expected seq.
    next: Seq,
    /// Newest first: the row after the next one.
    waiting: Option<OwnRow>,
    /// Why it stopped.
    damage: Option<Damage>,
    opener: Opener<'a>,
}

impl Reader<'_> {
    fn read(&mut self, row: Row<'_>) -> ControlFlow<()> {
        if row.seq != self.expected() {
            return self.damaged(self.expected(), MISSING.to_owned());
        }
        match self.span.order {
            Order::Oldest => self.read_next(row),
            Order::Newest => self.take_down(row),
        }
    }

    /// The seq of the next expected row.
    fn expected(&self) -> Seq {
        match (self.span.order, &self.waiting) {
            (Order::Oldest, _) => self.next,
            (Order::Newest, None) => self.span.to,
            (Order::Newest, Some(above)) => above.seq.prev(),
        }
    }

    fn read_next(&mut self, row: Row<'_>) -> ControlFlow<()> {
        self.next = row.seq.next();
        let prev = self.prev.replace(row.chain);
        if row.seq < self.span.from {
            return ControlFlow::Continue(());
        }
        self.opener.open(row, prev.unwrap_or(Digest::GENESIS))
    }

    fn take_down(&mut self, row: Row<'_>) -> ControlFlow<()> {
        let chain = row.chain;
        match self.waiting.replace(row.into_owned()) {
            None => ControlFlow::Continue(()),
            Some(above) => self.opener.open(above, chain),
        }
    }

    /// Called after the last row. Newest first, the first event is still waiting. In both orders,
    /// rows may be missing.
    fn end(&mut self) {
        let Span { from, to, order, .. } = self.span;
        if from > to {
            return;
        }
        let first = self.waiting.take_if(|row| row.seq == Seq::FIRST && from <= row.seq);
        if let Some(row) = first {
            let _ = self.opener.open(row, Digest::GENESIS);
        } else if order == Order::Newest {
            // The row before the range was read, so the range is complete.
            let seen = self.waiting.as_ref().is_some_and(|row| row.seq < from);
            if !seen {
                let _ = self.damaged(self.expected(), MISSING.to_owned());
            }
        } else if self.next <= to {
            let _ = self.damaged(self.next, MISSING.to_owned());
        }
    }

    fn damaged(&mut self, seq: Seq, what: String) -> ControlFlow<()> {
        self.damage = Some(Damage { seq, what });
        ControlFlow::Break(())
    }

    /// The result. Damage found by a row's own check precedes other damage.
    fn finish(self) -> Slice {
        let slice = self.opener.finish();
        Slice { damage: slice.damage.or(self.damage), ..slice }
    }
}

/// Checks rows and decodes their events, alone or with helpers.
struct Opener<'a> {
    rows: &'a dyn Rows,
    /// How many more are wanted.
    left: usize,
    slice: Slice,
    helpers: Option<Helpers>,
}

impl<'a> Opener<'a> {
    fn alone(rows: &'a dyn Rows, limit: usize) -> Self {
        Self { rows, left: limit, slice: Slice::default(), helpers: None }
    }

    /// Takes the next row, with the chain's value before it. Breaks when no more are wanted.
    fn open(&mut self, row: Row<'_>, prev: Digest) -> ControlFlow<()> {
        self.left -= 1;
        match &mut self.helpers {
            Some(helpers) => helpers.open(row, prev),
            None => add(&mut self.slice, self.rows, Opened::of(row, &prev))?,
        }
        if self.left == 0 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    }

    fn finish(mut self) -> Slice {
        let opened = self.helpers.map(Helpers::finish).unwrap_or_default();
        self.slice.events.reserve(opened.iter().map(Vec::len).sum());
        for one in opened.into_iter().flatten() {
            if add(&mut self.slice, self.rows, one).is_break() {
                break;
            }
        }
        self.slice
    }
}

/// A checked row.
struct Opened<'a> {
    seq: Seq,
    /// The row's bytes, if a scrub or prune replaced the original.
    replaced: Option<Vec<u8>>,
    content: Result<Content<'a>, String>,
}

#[expect(clippy::large_enum_variant, reason = "nearly every row is an event in full")]
enum Content<'a> {
    Event(Recorded),
    /// The row of an event with texts in blobs.
    Spilled(Row<'a>),
}

impl<'a> Opened<'a> {
    fn of(row: Row<'a>, prev: &Digest) -> Self {
        let (seq, replaced) = (row.seq, row.erased.map(|_| row.body.to_vec()));
        let content = row.follows(prev).and_then(|()| match row.spilled {
            true => Ok(Content::Spilled(row)),
            false => row.open(&mut |digest| Err(Error::NoBlob(*digest))).map(Content::Event),
        });
        Self { seq, replaced, content }
    }

    fn into_owned(self) -> Opened<'static> {
        let content = self.content.map(|content| match content {
            Content::Event(event) => Content::Event(event),
            Content::Spilled(row) => Content::Spilled(row.into_owned()),
        });
        Opened { seq: self.seq, replaced: self.replaced, content }
    }
}

/// Adds a row's event, or the reason why it is damaged.
fn add(slice: &mut Slice, rows: &dyn Rows, opened: Opened<'_>) -> ControlFlow<()> {
    let Opened { seq, replaced, content } = opened;
    let event = content.and_then(|content| match content {
        Content::Event(event) => Ok(event),
        Content::Spilled(row) => row.open(&mut |digest| rows.blob(digest)),
    });
    match event {
        Ok(event) => {
            if let Some(body) = replaced {
                match event.event.is_emptied() {
                    true => slice.pruned += 1,
                    false => slice.scrubbed += 1,
                }
                slice.replaced.push(Replaced { seq, body });
            }
            slice.events.push(event);
            ControlFlow::Continue(())
        }
        Err(what) => {
            slice.damage = Some(Damage { seq, what });
            ControlFlow::Break(())
        }
    }
}

/// A row whose body is in its batch, with the chain's value before it.
struct Linked {
    row: OwnRow,
    body: Range<usize>,
    prev: Digest,
}

/// Rows that are decoded together. Their bodies share one allocation, which returns to the reader:
/// memory that one thread allocates and another frees makes both wait.
#[derive(Default)]
struct Batch {
    rows: Vec<Linked>,
    bodies: Vec<u8>,
}

impl Batch {
    fn push(&mut self, row: Row<'_>, prev: Digest) {
        let start = self.bodies.len();
        self.bodies.extend_from_slice(&row.body);
        let (kind, body) = (Kind::own_name(&row.kind), Cow::Borrowed(&[][..]));
        let key = row.key.map(|key| key.into_owned().into());
        self.rows.push(Linked {
            row: Row { kind, key, body, ..row },
            body: start..self.bodies.len(),
            prev,
        });
    }

    /// Decodes its rows, and empties it.
    fn open(&mut self) -> Vec<Opened<'static>> {
        let bodies = &self.bodies;
        let open = |Linked { row, body, prev }: Linked| {
            Opened::of(Row { body: Cow::Borrowed(&bodies[body]), ..row }, &prev).into_owned()
        };
        let opened = self.rows.drain(..).map(open).collect();
        self.bodies.clear();
        opened
    }
}

/// A value with its batch's position.
type Placed<T> = (usize, T);

/// Threads that decode rows for the reader.
struct Helpers {
    queues: Vec<SyncSender<Placed<Batch>>>,
    opened: Receiver<Placed<(Vec<Opened<'static>>, Batch)>>,
    /// Decoded batches, in any order.
    done: Vec<Placed<Vec<Opened<'static>>>>,
    /// Empty batches for reuse.
    empty: Vec<Batch>,
    /// The batch being filled, with its position.
    next: Placed<Batch>,
}

impl Helpers {
    /// Starts `count` helpers; `None` if that is zero.
    fn begin<'scope>(scope: &'scope Scope<'scope, '_>, count: usize) -> Option<Self> {
        let (done, opened) = mpsc::channel();
        let start = |done: Sender<_>| {
            let (queue, batches) = mpsc::sync_channel::<Placed<Batch>>(WAITING);
            scope.spawn(move || {
                for (place, mut batch) in batches {
                    if done.send((place, (batch.open(), batch))).is_err() {
                        return;
                    }
                }
            });
            queue
        };
        let queues: Vec<_> = (0..count).map(|_| start(done.clone())).collect();
        let next = (0, Batch::default());
        let new = Self { queues, opened, done: Vec::new(), empty: Vec::new(), next };
        (count > 0).then_some(new)
    }

    fn open(&mut self, row: Row<'_>, prev: Digest) {
        self.next.1.push(row, prev);
        if self.next.1.rows.len() == BATCH {
            self.hand_over();
        }
    }

    /// Gives the full batch to a helper with room for it. If none has room, the reader is ahead and
    /// decodes it itself.
    fn hand_over(&mut self) {
        for (place, (opened, batch)) in self.opened.try_iter() {
            self.done.push((place, opened));
            self.empty.push(batch);
        }
        let empty = (self.next.0 + 1, self.empty.pop().unwrap_or_default());
        let mut full = std::mem::replace(&mut self.next, empty);
        for queue in &self.queues {
            match queue.try_send(full) {
                Ok(()) => return,
                Err(TrySendError::Full(back) | TrySendError::Disconnected(back)) => full = back,
            }
        }
        let (place, mut batch) = full;
        self.done.push((place, batch.open()));
        self.empty.push(batch);
    }

    /// All decoded rows, in order.
    fn finish(mut self) -> Vec<Vec<Opened<'static>>> {
        let (place, mut last) = self.next;
        self.done.push((place, last.open()));
        drop(self.queues);
        let mut batches = self.done;
        batches.extend(self.opened.into_iter().map(|(place, (opened, _))| (place, opened)));
        batches.sort_unstable_by_key(|(place, _)| *place);
        batches.into_iter().map(|(_, opened)| opened).collect()
    }
}
