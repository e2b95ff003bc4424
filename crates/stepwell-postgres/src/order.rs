//! An append that is ready to be sent: what it was made for, what it writes, and how the
//! session stands then.

use stepwell::backend::{SessionRow, head_sum};
use stepwell::model::{Digest, Epoch};

use crate::draft::{Draft, Entry};
use crate::head_cache::Known;
use crate::rows::{cost_column, json, number, signed};

/// An append, worked out, and what it was made for.
#[derive(Debug)]
pub(crate) struct Order {
    pub(crate) known: Box<Known>,
    pub(crate) epoch: Option<Epoch>,
    pub(crate) mark: Option<[u8; 16]>,
    pub(crate) draft: Draft,
    /// How the session stands afterwards, but for its bytes.
    row: Box<SessionRow>,
    /// The same as columns.
    pub(crate) columns: Columns,
}

impl Order {
    /// An append, unless its draft says nothing of how the session stands afterwards.
    pub(crate) fn new(
        known: Box<Known>,
        epoch: Option<Epoch>,
        mark: Option<[u8; 16]>,
        mut draft: Draft,
    ) -> Option<Self> {
        let row = draft.row.take()?;
        let columns = Columns::of(&row);
        Some(Self { known, epoch, mark, draft, row, columns })
    }

    /// Its event, if it adds one, and changes nothing that appends seldom change.
    pub(crate) fn only_event(&self) -> Option<&Entry> {
        let draft = &self.draft;
        let [event] = &draft.events[..] else { return None };
        let (before, after) = (&self.known.row.head, &self.row.head);
        let plain = self.known.row.base.is_none()
            && draft.lanes.is_empty()
            && draft.snapshots.is_empty()
            && event.spill.is_empty()
            && event.names.is_empty()
            && event.row.version == 1
            && event.row.at == after.updated_at
            && !event.row.spilled
            && !event.row.login.is_nobody()
            && before.status == after.status
            && before.model == after.model;
        plain.then_some(event)
    }

    /// The model that the session then uses.
    pub(crate) fn model(&self) -> &[u8] {
        self.row.head.model.as_bytes()
    }

    /// The session's bytes afterwards, if no blobs come with its events.
    pub(crate) fn bytes(&self) -> u64 {
        self.row.bytes
    }

    pub(crate) fn fence(&self) -> Option<i64> {
        self.epoch.map(|epoch| signed(epoch.get()))
    }

    /// How the session stands, now that it has this many bytes.
    pub(crate) fn into_known(self, bytes: i64) -> Box<Known> {
        let Self { mut known, draft, row, .. } = self;
        known.row = *row;
        known.row.bytes = bytes.unsigned_abs();
        known.version += 1;
        known.lanes.extend(draft.lanes);
        if let Some((lane, _)) = &known.row.lane {
            known.lanes.remove(lane);
        }
        known
    }
}

/// What became of an append.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Sent {
    /// It is durable, and the session now has this many bytes.
    Done(i64),
    /// The session is not what the append was made for.
    Stale,
}

/// A head as columns.
#[derive(Debug)]
pub(crate) struct Columns {
    pub(crate) seq: i64,
    pub(crate) updated: i64,
    pub(crate) status: &'static str,
    pub(crate) cost: i64,
    pub(crate) steps: i64,
    pub(crate) chain: Digest,
    pub(crate) sum: [u8; 8],
    pub(crate) lane: Option<Vec<u8>>,
    pub(crate) head: Vec<u8>,
}

impl Columns {
    fn of(row: &SessionRow) -> Self {
        let head = json(&row.head);
        Self {
            seq: number(row.head.seq),
            updated: row.head.updated_at.as_micros(),
            status: row.head.status.as_str(),
            cost: cost_column(row.head.spent.cost),
            steps: signed(row.head.steps),
            chain: row.chain,
            sum: head_sum(&head, &row.chain),
            lane: row.lane.as_ref().map(json),
            head,
        }
    }
}
