//! An append worked out in memory, to be sent as one statement.
//!
//! The shared logic runs over what this process knows of the session. Where it asks for
//! more than that, or says no, the append is done in a transaction that reads what it
//! needs: a draft only ever says yes, and the statement checks what it was made from.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::ops::ControlFlow;

use stepwell::backend::{
    Base, Facts, Inserted, Key, LeaseRow, OwnRow, Row, Rows, Sealed, SessionRow, Stretch,
};
use stepwell::log::{LaneState, State};
use stepwell::model::{Digest, EventId, Time};
use stepwell::store::Order;
use stepwell::store::query::RecordQuery;
use stepwell::{Error, Lane, Result, Seq, SessionId};

use crate::head_cache::Known;
use crate::rows::blob;
use crate::rows::{json, same_cold};

/// What an append writes.
#[derive(Debug, Default)]
pub(crate) struct Draft {
    pub(crate) events: Vec<Entry>,
    pub(crate) lanes: BTreeMap<Lane, LaneState>,
    pub(crate) snapshots: Vec<(Seq, Vec<u8>)>,
    /// Bytes of bodies; those of blobs are the statement's to find out.
    pub(crate) bytes: u64,
    pub(crate) row: Option<Box<SessionRow>>,
}

/// An event with the blobs that go with it.
#[derive(Debug)]
pub(crate) struct Entry {
    pub(crate) row: OwnRow,
    /// Spilled texts, as they are stored: digest, size, bytes.
    pub(crate) spill: Vec<(Digest, i64, Vec<u8>)>,
    /// All blobs that it names.
    pub(crate) names: Vec<Digest>,
}

/// The rows that a draft is made over.
pub(crate) struct DraftRows<'a> {
    known: &'a Known,
    draft: RefCell<Draft>,
}

impl<'a> DraftRows<'a> {
    pub(crate) fn new(known: &'a Known) -> Self {
        Self { known, draft: RefCell::default() }
    }

    /// What was written; nothing, if it changes more than one statement does.
    pub(crate) fn into_draft(self) -> Option<Draft> {
        let draft = self.draft.into_inner();
        let row = draft.row.as_ref()?;
        same_cold(row, &self.known.row).then_some(draft)
    }
}

/// The draft needs what only the database knows.
fn unknown<T>() -> Result<T> {
    Err(Error::Unreadable { what: "a draft".to_owned(), why: "it asks for more".to_owned() })
}

impl Rows for DraftRows<'_> {
    fn session(&self, id: &SessionId) -> Result<Option<SessionRow>> {
        if *id == self.known.row.head.id { Ok(Some(self.known.row.clone())) } else { unknown() }
    }

    fn session_by_key(&self, _key: Key) -> Result<Option<SessionRow>> {
        unknown()
    }

    fn insert_session(&self, _row: &SessionRow) -> Result<Inserted> {
        unknown()
    }

    fn update_session(&self, row: &SessionRow) -> Result<()> {
        self.draft.borrow_mut().row = Some(Box::new(row.clone()));
        Ok(())
    }

    fn set_trashed(&self, _keys: &[Key], _when: Time) -> Result<()> {
        unknown()
    }

    fn put_lease(&self, _key: Key, _lease: &LeaseRow) -> Result<()> {
        unknown()
    }

    fn lanes(&self, _key: Key) -> Result<BTreeMap<Lane, LaneState>> {
        let mut lanes = self.known.lanes.clone();
        lanes.extend(self.draft.borrow().lanes.clone());
        Ok(lanes)
    }

    fn lane(&self, _key: Key, lane: &Lane) -> Result<LaneState> {
        let draft = self.draft.borrow();
        Ok(*draft
            .lanes
            .get(lane)
            .or_else(|| self.known.lanes.get(lane))
            .unwrap_or(&LaneState::default()))
    }

    fn put_lane(&self, _key: Key, lane: &Lane, state: &LaneState) -> Result<()> {
        self.draft.borrow_mut().lanes.insert(lane.clone(), *state);
        Ok(())
    }

    fn insert_event(&self, _key: Key, sealed: &Sealed<'_>) -> Result<u64> {
        let pack = |(digest, text): &(Digest, Vec<u8>)| {
            Ok((*digest, text.len() as i64, blob::packed(digest, text)?))
        };
        let spill = sealed.spill.iter().map(pack).collect::<Result<Vec<_>>>()?;
        let names = sealed.spill.iter().map(|(digest, _)| *digest);
        let names = names.chain(sealed.names.iter().copied()).collect();
        let bytes = sealed.row.body.len() as u64;
        let mut draft = self.draft.borrow_mut();
        draft.bytes += bytes;
        draft.events.push(Entry { row: sealed.row.clone().into_owned(), spill, names });
        Ok(bytes)
    }

    fn replace_event(&self, _key: Key, _sealed: &Sealed<'_>) -> Result<()> {
        unknown()
    }

    /// Ids of other appends are not known here; the statement fails if one is repeated.
    fn event_by_id(&self, _key: Key, id: &EventId) -> Result<Option<OwnRow>> {
        let draft = self.draft.borrow();
        let found = draft.events.iter().find(|event| event.row.id.as_ref() == Some(id));
        match found {
            // What a fork shares is looked through by the statement.
            None => Ok(None),
            Some(event) => Ok(Some(event.row.clone())),
        }
    }

    fn visit(
        &self,
        _stretch: Stretch,
        _order: Order,
        _visitor: &mut dyn FnMut(Row<'_>) -> Result<ControlFlow<()>>,
    ) -> Result<ControlFlow<()>> {
        unknown()
    }

    fn keyed_events(&self, _stretch: Stretch, _facts: Facts<'_>) -> Result<Vec<OwnRow>> {
        unknown()
    }

    fn records(&self, _stretch: Stretch, _query: &RecordQuery) -> Result<Vec<OwnRow>> {
        unknown()
    }

    fn prune(&self, _key: Key, _emptied: &[Sealed<'_>]) -> Result<u64> {
        unknown()
    }

    fn blob(&self, _digest: &Digest) -> Result<Vec<u8>> {
        unknown()
    }

    fn snapshot(&self, _key: Key, _at: Seq) -> Result<Option<State>> {
        unknown()
    }

    fn put_snapshot(&self, _key: Key, state: &State) -> Result<()> {
        self.draft.borrow_mut().snapshots.push((state.head.seq, json(state)));
        Ok(())
    }

    fn drop_snapshots(&self, _key: Key) -> Result<()> {
        unknown()
    }

    fn subagents(&self, _id: &SessionId) -> Result<Vec<Key>> {
        unknown()
    }

    fn last_own(&self, _key: Key) -> Result<Option<Seq>> {
        unknown()
    }

    fn forks(&self, _key: Key) -> Result<Vec<Base>> {
        unknown()
    }

    fn adopt(&self, _fork: Base, _from: &SessionRow) -> Result<()> {
        unknown()
    }

    fn rebase(&self, _fork: Key, _base: Base) -> Result<()> {
        unknown()
    }

    fn erase(&self, _keys: &[Key]) -> Result<()> {
        unknown()
    }

    fn reindex(&self, _row: &SessionRow) -> Result<()> {
        unknown()
    }

    fn replace_lanes(&self, _key: Key, _lanes: &BTreeMap<Lane, LaneState>) -> Result<()> {
        unknown()
    }
}
