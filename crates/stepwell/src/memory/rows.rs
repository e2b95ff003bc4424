//! Rows in memory.

use std::cell::RefCell;
use std::collections::hash_map::Entry;
use std::collections::{BTreeMap, HashMap};
use std::ops::ControlFlow;

use crate::codec::{MAX_BLOB_BYTES, OwnRow, Row, Sealed};
use crate::store::Order;
use crate::store::changes::{ChangeKind, HeldLease, SessionChange};
use crate::store::query::RecordQuery;
use crate::store::rows::{Base, Facts, Key, LeaseRow, Rows, SessionRow, Stretch};
use crate::{
    Digest, Error, EventId, Kind, Lane, LaneState, Origin, Result, Seq, SessionId, State, Time,
};

/// All rows.
#[derive(Debug, Default)]
pub(super) struct Tables {
    sessions: BTreeMap<Key, Session>,
    keys: HashMap<SessionId, Key>,
    born: Key,
    blobs: HashMap<Digest, Blob>,
    /// The number of the last change.
    change: u64,
    /// The sessions by the number of their last change.
    changed: BTreeMap<u64, Key>,
    /// Sessions that were purged.
    removed: BTreeMap<u64, SessionId>,
}

/// A session with all that belongs to it.
#[derive(Clone, Debug)]
struct Session {
    row: SessionRow,
    /// The number of its last change.
    change: u64,
    lanes: BTreeMap<Lane, LaneState>,
    events: BTreeMap<Seq, Stored>,
    ids: HashMap<EventId, Seq>,
    snapshots: BTreeMap<Seq, State>,
}

#[derive(Clone, Debug)]
struct Stored {
    row: OwnRow,
    names: Vec<Digest>,
}

#[derive(Clone, Debug)]
struct Blob {
    bytes: Vec<u8>,
    /// How many events name it.
    named: usize,
}

impl Tables {
    pub(super) fn last_seq(&self, id: &SessionId) -> Option<Seq> {
        Some(self.sessions.get(self.keys.get(id)?)?.row.head.seq)
    }

    /// The number of the last change.
    pub(super) fn change(&self) -> u64 {
        self.change
    }

    /// The sessions that changed after that number, the oldest change first.
    pub(super) fn updated_since(&self, change: u64) -> Vec<SessionChange> {
        let changed = self.changed.range(change + 1..);
        changed.filter_map(|(_, key)| self.sessions.get(key)).map(Session::as_change).collect()
    }

    /// The sessions that were purged after that number.
    pub(super) fn removed_since(&self, change: u64) -> Vec<SessionId> {
        self.removed.range(change + 1..).map(|(_, id)| id.clone()).collect()
    }

    /// Leases that are held and had not run out by then.
    pub(super) fn held_leases(&self, at: Time) -> Vec<HeldLease> {
        let held = |session: &Session| {
            let held = session.row.held().filter(|held| held.expires > at)?;
            Some(HeldLease { key: session.row.key, change: session.as_change(), held })
        };
        self.sessions.values().filter_map(held).collect()
    }

    /// Gives a session's change the next number, which stays used if the transaction fails: then
    /// whoever follows the store is told in vain.
    fn touch(&mut self, key: Key) {
        self.change += 1;
        if let Some(session) = self.sessions.get_mut(&key) {
            self.changed.remove(&session.change);
            session.change = self.change;
            self.changed.insert(self.change, key);
        }
    }

    fn session(&mut self, key: Key) -> &mut Session {
        self.sessions.get_mut(&key).expect("the caller found the session in this transaction")
    }

    /// Notes that an event names blobs, or no longer does. What nothing names goes.
    fn name(&mut self, digests: &[Digest]) {
        for digest in digests {
            if let Some(blob) = self.blobs.get_mut(digest) {
                blob.named += 1;
            }
        }
    }

    fn unname(&mut self, digests: &[Digest]) {
        for digest in digests {
            if let Some(blob) = self.blobs.get_mut(digest) {
                blob.named -= 1;
                if blob.named == 0 {
                    self.blobs.remove(digest);
                }
            }
        }
    }
}

impl Session {
    fn as_change(&self) -> SessionChange {
        let updated = ChangeKind::Updated { seq: self.row.head.seq };
        let kind = if self.row.trashed_at.is_some() { ChangeKind::Trashed } else { updated };
        SessionChange { session: self.row.head.id.clone(), kind }
    }
}

/// The rows within one transaction, with the way back from each change.
pub(super) struct MemoryRows<'a> {
    tables: RefCell<&'a mut Tables>,
    now: Time,
    undo: RefCell<Vec<Undo>>,
}

type Undo = Box<dyn FnOnce(&mut Tables)>;

impl<'a> MemoryRows<'a> {
    pub(super) fn new(tables: &'a mut Tables, now: Time) -> Self {
        Self { tables: RefCell::new(tables), now, undo: RefCell::default() }
    }

    /// Has this transaction changed anything?
    pub(super) fn has_changed(&self) -> bool {
        !self.undo.borrow().is_empty()
    }

    /// Takes back what this transaction changed.
    pub(super) fn roll_back(&self) {
        let mut tables = self.tables.borrow_mut();
        self.undo.borrow_mut().drain(..).rev().for_each(|undo| undo(&mut tables));
    }

    pub(super) fn sessions(&self) -> Vec<SessionRow> {
        self.tables.borrow().sessions.values().map(|session| session.row.clone()).collect()
    }

    /// Bytes of events and of blobs.
    pub(super) fn bytes(&self) -> (u64, u64) {
        let tables = self.tables.borrow();
        let bodies = |session: &Session| -> usize {
            session.events.values().map(|event| event.row.body.len()).sum()
        };
        let events: usize = tables.sessions.values().map(bodies).sum();
        let blobs: usize = tables.blobs.values().map(|blob| blob.bytes.len()).sum();
        (events as u64, blobs as u64)
    }

    pub(super) fn put_blob(&self, digest: Digest, bytes: &[u8]) -> Result<()> {
        if bytes.len() > MAX_BLOB_BYTES {
            let (size, limit) = (bytes.len() as u64, MAX_BLOB_BYTES as u64);
            return Err(Error::TooLarge { what: format!("blob {digest}"), size, limit });
        }
        let mut tables = self.tables.borrow_mut();
        match tables.blobs.entry(digest) {
            Entry::Vacant(place) => {
                place.insert(Blob { bytes: bytes.to_vec(), named: 0 });
                self.undoing(move |tables| drop(tables.blobs.remove(&digest)));
            }
            // What is right is right, even if the transaction is taken back.
            Entry::Occupied(mut place) => bytes.clone_into(&mut place.get_mut().bytes),
        }
        Ok(())
    }

    /// Notes that a session is gone, under the next number.
    fn remember_removed(&self, id: &SessionId, changed: u64) -> u64 {
        let mut tables = self.tables.borrow_mut();
        tables.changed.remove(&changed);
        tables.change += 1;
        let change = tables.change;
        tables.removed.insert(change, id.clone());
        change
    }

    fn undoing(&self, undo: impl FnOnce(&mut Tables) + 'static) {
        self.undo.borrow_mut().push(Box::new(undo));
    }

    /// Changes a session in a way that only its clone can take back: for what is rare.
    fn change(&self, key: Key, change: impl FnOnce(&mut Session)) {
        let mut tables = self.tables.borrow_mut();
        let session = tables.session(key);
        let before = session.clone();
        change(session);
        self.undoing(move |tables| drop(tables.sessions.insert(key, before)));
    }

    fn get<T>(&self, key: Key, read: impl FnOnce(&Session) -> T) -> Option<T> {
        self.tables.borrow().sessions.get(&key).map(read)
    }

    /// Stores an event's spilled texts, and counts what it names.
    fn attach(&self, sealed: &Sealed<'_>) -> Result<(Vec<Digest>, u64)> {
        for (digest, text) in &sealed.spill {
            self.put_blob(*digest, text)?;
        }
        let names: Vec<Digest> =
            sealed.spill.iter().map(|(digest, _)| *digest).chain(sealed.names.clone()).collect();
        let mut tables = self.tables.borrow_mut();
        let mut bytes = 0;
        for digest in &names {
            bytes += tables.blobs.get(digest).ok_or(Error::NoBlob(*digest))?.bytes.len() as u64;
        }
        tables.name(&names);
        let named = names.clone();
        self.undoing(move |tables| {
            for digest in named {
                if let Some(blob) = tables.blobs.get_mut(&digest) {
                    blob.named -= 1;
                }
            }
        });
        Ok((names, bytes))
    }

    /// Lets go of blobs; a way back brings their bytes again.
    fn detach(&self, names: &[Digest]) {
        let mut tables = self.tables.borrow_mut();
        let before: Vec<(Digest, Option<Blob>)> =
            names.iter().map(|digest| (*digest, tables.blobs.get(digest).cloned())).collect();
        tables.unname(names);
        self.undoing(move |tables| {
            for (digest, blob) in before.into_iter().rev() {
                match blob {
                    Some(blob) => drop(tables.blobs.insert(digest, blob)),
                    None => drop(tables.blobs.remove(&digest)),
                }
            }
        });
    }
}

impl Rows for MemoryRows<'_> {
    fn session(&self, id: &SessionId) -> Result<Option<SessionRow>> {
        let key = self.tables.borrow().keys.get(id).copied();
        key.map_or(Ok(None), |key| self.session_by_key(key))
    }

    fn session_by_key(&self, key: Key) -> Result<Option<SessionRow>> {
        Ok(self.get(key, |session| session.row.clone()))
    }

    fn insert_session(&self, row: &SessionRow) -> Result<Key> {
        let mut tables = self.tables.borrow_mut();
        tables.born += 1;
        let (key, id) = (tables.born, row.head.id.clone());
        let session = Session {
            row: SessionRow { key, ..row.clone() },
            change: 0,
            lanes: BTreeMap::new(),
            events: BTreeMap::new(),
            ids: HashMap::new(),
            snapshots: BTreeMap::new(),
        };
        tables.keys.insert(id.clone(), key);
        tables.sessions.insert(key, session);
        tables.touch(key);
        self.undoing(move |tables| {
            tables.sessions.remove(&key);
            tables.keys.remove(&id);
        });
        Ok(key)
    }

    fn update_session(&self, row: &SessionRow) -> Result<()> {
        let mut tables = self.tables.borrow_mut();
        let session = tables.session(row.key);
        let row = SessionRow { lease: session.row.lease.clone(), ..row.clone() };
        let key = row.key;
        let before = std::mem::replace(&mut session.row, row);
        tables.touch(key);
        self.undoing(move |tables| tables.session(key).row = before);
        Ok(())
    }

    fn set_trashed(&self, keys: &[Key], when: Time) -> Result<()> {
        let mut tables = self.tables.borrow_mut();
        for &key in keys {
            let before = tables.session(key).row.trashed_at.replace(when);
            tables.touch(key);
            self.undoing(move |tables| tables.session(key).row.trashed_at = before);
        }
        Ok(())
    }

    fn put_lease(&self, key: Key, lease: &LeaseRow) -> Result<()> {
        let mut tables = self.tables.borrow_mut();
        let before = tables.session(key).row.lease.replace(lease.clone());
        // Another holder, or one that came back after its lease had run out, and no renewal.
        let renewed = before.as_ref().is_some_and(|before| {
            let holder = |lease: &LeaseRow| lease.held.clone().map(|(holder, _)| holder);
            let ran_out = before.held.as_ref().is_some_and(|(_, expires)| self.now >= *expires);
            before.epoch == lease.epoch && holder(before) == holder(lease) && !ran_out
        });
        if !renewed {
            tables.touch(key);
        }
        self.undoing(move |tables| tables.session(key).row.lease = before);
        Ok(())
    }

    fn lanes(&self, key: Key) -> Result<BTreeMap<Lane, LaneState>> {
        Ok(self.get(key, |session| session.lanes.clone()).unwrap_or_default())
    }

    fn lane(&self, key: Key, lane: &Lane) -> Result<LaneState> {
        let found = self.get(key, |session| session.lanes.get(lane).copied());
        Ok(found.flatten().unwrap_or_default())
    }

    fn put_lane(&self, key: Key, lane: &Lane, state: &LaneState) -> Result<()> {
        let mut tables = self.tables.borrow_mut();
        let before = tables.session(key).lanes.insert(lane.clone(), *state);
        let lane = lane.clone();
        self.undoing(move |tables| {
            let lanes = &mut tables.session(key).lanes;
            match before {
                Some(before) => drop(lanes.insert(lane, before)),
                None => drop(lanes.remove(&lane)),
            }
        });
        Ok(())
    }

    fn insert_event(&self, key: Key, sealed: &Sealed<'_>) -> Result<u64> {
        let (names, blob_bytes) = self.attach(sealed)?;
        let (seq, id) = (sealed.row.seq, sealed.row.id);
        let stored = Stored { row: sealed.row.clone().into_owned(), names };
        let mut tables = self.tables.borrow_mut();
        let session = tables.session(key);
        session.events.insert(seq, stored);
        session.ids.extend(id.map(|id| (id, seq)));
        self.undoing(move |tables| {
            let session = tables.session(key);
            session.events.remove(&seq);
            id.map(|id| session.ids.remove(&id));
        });
        Ok(sealed.row.body.len() as u64 + blob_bytes)
    }

    fn replace_event(&self, key: Key, sealed: &Sealed<'_>) -> Result<()> {
        let (names, _) = self.attach(sealed)?;
        let seq = sealed.row.seq;
        let mut freed = Vec::new();
        let stored = Stored { row: sealed.row.clone().into_owned(), names };
        self.change(key, |session| {
            freed = session.events.insert(seq, stored).map(|old| old.names).unwrap_or_default();
        });
        self.detach(&freed);
        Ok(())
    }

    fn event_by_id(&self, key: Key, id: &EventId) -> Result<Option<OwnRow>> {
        let found = self.get(key, |session| {
            let seq = session.ids.get(id)?;
            session.events.get(seq).map(|event| event.row.clone())
        });
        Ok(found.flatten())
    }

    fn visit(
        &self,
        stretch: Stretch,
        order: Order,
        visitor: &mut dyn FnMut(Row<'_>) -> Result<ControlFlow<()>>,
    ) -> Result<ControlFlow<()>> {
        let tables = self.tables.borrow();
        let Some(session) = tables.sessions.get(&stretch.key) else {
            return Ok(ControlFlow::Continue(()));
        };
        let mut events = session.events.range(stretch.from..=stretch.to);
        let mut next = || match order {
            Order::Oldest => events.next(),
            Order::Newest => events.next_back(),
        };
        while let Some((_, event)) = next() {
            if visitor(event.row.borrowed())? == ControlFlow::Break(()) {
                return Ok(ControlFlow::Break(()));
            }
        }
        Ok(ControlFlow::Continue(()))
    }

    fn keyed_events(&self, stretch: Stretch, facts: Facts<'_>) -> Result<Vec<OwnRow>> {
        let wanted = |event: &&Stored| {
            let kind = facts.kinds.iter().any(|kind| kind.as_str() == event.row.kind);
            let key = event.row.key.as_deref();
            kind && key.is_some() && (facts.key.is_none() || facts.key == key)
        };
        let found = self.get(stretch.key, |session| {
            let events = session.events.range(stretch.from..=stretch.to).map(|(_, event)| event);
            events.filter(wanted).map(|event| event.row.clone()).collect()
        });
        Ok(found.unwrap_or_default())
    }

    fn records(&self, stretch: Stretch, query: &RecordQuery) -> Result<Vec<OwnRow>> {
        let (first, last) = query.keys.ends();
        let found = self.get(stretch.key, |session| {
            let events = session.events.range(stretch.from..=stretch.to).map(|(_, event)| event);
            let mut found: Vec<(&str, &OwnRow)> = events
                .filter(|event| event.row.kind == Kind::Record.as_str())
                .filter_map(|event| Some((event.row.key.as_deref()?, &event.row)))
                .filter(|(key, _)| *key >= &*first && *key < &*last)
                .collect();
            found.sort_by_key(|(key, row)| (*key, row.seq));
            if query.order == Order::Newest {
                found.reverse();
            }
            found.into_iter().take(query.limit).map(|(_, row)| row.clone()).collect()
        });
        Ok(found.unwrap_or_default())
    }

    fn prune(&self, key: Key, emptied: &[Sealed<'_>]) -> Result<u64> {
        let mut freed = 0;
        let mut named = Vec::new();
        self.change(key, |session| {
            for sealed in emptied {
                let row = sealed.row.clone().into_owned();
                let new = row.body.len();
                let stored = Stored { row, names: Vec::new() };
                if let Some(old) = session.events.insert(sealed.row.seq, stored) {
                    freed += old.row.body.len().saturating_sub(new) as u64;
                    named.extend(old.names);
                }
            }
        });
        let tables = self.tables.borrow();
        let size = |digest| tables.blobs.get(digest).map_or(0, |blob| blob.bytes.len() as u64);
        freed += named.iter().map(size).sum::<u64>();
        drop(tables);
        self.detach(&named);
        Ok(freed)
    }

    fn blob(&self, digest: &Digest) -> Result<Vec<u8>> {
        let tables = self.tables.borrow();
        let bytes = tables.blobs.get(digest).map(|blob| blob.bytes.clone());
        let bytes = bytes.ok_or(Error::NoBlob(*digest))?;
        if digest.matches(&bytes) {
            return Ok(bytes);
        }
        let what = "its bytes do not match its digest".to_owned();
        Err(Error::DamagedBlob { digest: *digest, what })
    }

    fn snapshot(&self, key: Key, at: Seq) -> Result<Option<State>> {
        let newest = |session: &Session| {
            session.snapshots.range(..=at).next_back().map(|(_, state)| state.clone())
        };
        Ok(self.get(key, newest).flatten())
    }

    fn put_snapshot(&self, key: Key, state: &State) -> Result<()> {
        let seq = state.head.seq;
        self.tables.borrow_mut().session(key).snapshots.insert(seq, state.clone());
        self.undoing(move |tables| drop(tables.session(key).snapshots.remove(&seq)));
        Ok(())
    }

    fn drop_snapshots(&self, key: Key) -> Result<()> {
        let before = std::mem::take(&mut self.tables.borrow_mut().session(key).snapshots);
        self.undoing(move |tables| tables.session(key).snapshots = before);
        Ok(())
    }

    fn subagents(&self, id: &SessionId) -> Result<Vec<Key>> {
        let tables = self.tables.borrow();
        let of = |id: &SessionId| -> Vec<Key> {
            let rows = tables.sessions.values().map(|session| &session.row);
            let own = |row: &&SessionRow| matches!(&row.head.origin, Origin::Subagent { parent } if parent == id);
            rows.filter(own).map(|row| row.key).collect()
        };
        let mut below = of(id);
        let mut at = 0;
        while let Some(next) = below.get(at).and_then(|key| tables.sessions.get(key)) {
            below.extend(of(&next.row.head.id));
            at += 1;
        }
        Ok(below)
    }

    fn last_own(&self, key: Key) -> Result<Option<Seq>> {
        let last = |session: &Session| session.events.last_key_value().map(|(seq, _)| *seq);
        Ok(self.get(key, last).flatten())
    }

    fn forks(&self, key: Key) -> Result<Vec<Base>> {
        let tables = self.tables.borrow();
        let bases = tables.sessions.values().filter_map(|session| {
            let base = session.row.base.filter(|base| base.key == key)?;
            Some(Base { key: session.row.key, at: base.at })
        });
        Ok(bases.collect())
    }

    fn adopt(&self, fork: Base, from: &SessionRow) -> Result<()> {
        let (mut moved, mut snapshots) = (BTreeMap::new(), BTreeMap::new());
        self.change(from.key, |session| {
            let rest = session.events.split_off(&fork.at.next());
            moved = std::mem::replace(&mut session.events, rest);
            let rest = session.snapshots.split_off(&fork.at.next());
            snapshots = std::mem::replace(&mut session.snapshots, rest);
        });
        self.change(fork.key, |session| {
            let bytes: usize = moved.values().map(|event| event.row.body.len()).sum();
            session.row.bytes += bytes as u64;
            session.row.base = from.base;
            session.ids.extend(moved.values().filter_map(|e| Some((e.row.id?, e.row.seq))));
            session.events.append(&mut moved);
            session.snapshots.append(&mut snapshots);
        });
        Ok(())
    }

    fn rebase(&self, fork: Key, base: Base) -> Result<()> {
        self.change(fork, |session| session.row.base = Some(base));
        Ok(())
    }

    fn erase(&self, key: Key) -> Result<()> {
        let removed = self.tables.borrow_mut().sessions.remove(&key);
        let Some(session) = removed else {
            return Ok(());
        };
        let id = session.row.head.id.clone();
        self.tables.borrow_mut().keys.remove(&id);
        let change = self.remember_removed(&id, session.change);
        let names = session.events.values().flat_map(|event| event.names.clone());
        let names: Vec<Digest> = names.collect();
        self.undoing(move |tables| {
            tables.removed.remove(&change);
            tables.changed.insert(session.change, key);
            tables.keys.insert(id, key);
            tables.sessions.insert(key, session);
        });
        self.detach(&names);
        Ok(())
    }

    fn reindex(&self, _row: &SessionRow) -> Result<()> {
        // There is no index: a search reads the events.
        Ok(())
    }

    fn replace_lanes(&self, key: Key, lanes: &BTreeMap<Lane, LaneState>) -> Result<()> {
        let before =
            std::mem::replace(&mut self.tables.borrow_mut().session(key).lanes, lanes.clone());
        self.undoing(move |tables| tables.session(key).lanes = before);
        Ok(())
    }
}
