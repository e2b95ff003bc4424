//! Many new sessions at once: worked out in memory, and written with a few statements however many
//! they are.
//!
//! As for a draft, the shared logic runs over what is known: these sessions are new, so the database
//! has nothing of them. Where it asks for more than that, or says no, the batch is done write by write.

use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, HashMap, HashSet};
use std::ops::ControlFlow;

use stepwell::backend::{
    Base, Facts, Inserted, Key, LeaseRow, OwnRow, Row, Rows, Sealed, SessionRow, Stretch,
    TxnContext, head_sum, write,
};
use stepwell::log::{LaneState, State};
use stepwell::model::{Digest, Driver, EventId, Origin, Time};
use stepwell::store::query::RecordQuery;
use stepwell::store::{Order, Write, Written};
use stepwell::{Error, Lane, Result, Seq, SessionId};

use crate::rows::{PgRows, cost_column, json, number, signed, version_column};
use crate::transport::params;
use crate::write_token::Marks;

/// Fewer writes than this take no more time one by one.
const FEWEST: usize = 8;

/// Does a batch that only makes new sessions, and fills them. None, if it is another one.
pub(crate) fn try_write(
    rows: &PgRows<'_>,
    context: TxnContext<'_>,
    writes: &[Write],
    marks: Marks,
) -> Result<Option<Vec<Written>>> {
    let Some(ids) = all_new(writes) else { return Ok(None) };
    let there = "SELECT 1 FROM stepwell.sessions WHERE namespace = $1 AND id = ANY ($2) LIMIT 1";
    let params = params![rows.namespace => INT4, ids => TEXT_ARRAY];
    if rows.one(there, params)?.is_some() {
        return Ok(None);
    }
    let new = NewRows::default();
    let mut answers = Vec::with_capacity(writes.len());
    for (n, one) in writes.iter().enumerate() {
        new.mark.set(marks.of(n, one));
        match write::write(&new, context, one.clone()) {
            Ok(written) => answers.push(written),
            Err(_) => return Ok(None),
        }
    }
    new.insert(rows)?;
    Ok(Some(answers))
}

/// The sessions of a batch, if it makes each before it writes to it, and all of them are roots that
/// nobody runs.
fn all_new(writes: &[Write]) -> Option<Vec<&str>> {
    if writes.len() < FEWEST {
        return None;
    }
    let mut made = HashSet::new();
    let mut ids = Vec::new();
    for one in writes {
        let is_known = match one {
            Write::Create(create) => {
                let is_plain = create.created.origin == Origin::Root && create.claim.is_none();
                ids.push(create.created.id.as_str());
                is_plain && made.insert(&create.created.id)
            }
            Write::Append(append) => made.contains(&append.session),
            Write::Prune(_) => false,
        };
        if !is_known {
            return None;
        }
    }
    Some(ids)
}

/// A session that is about to be written.
struct New {
    row: SessionRow,
    lanes: BTreeMap<Lane, LaneState>,
    events: Vec<(OwnRow, Option<[u8; 16]>)>,
}

/// Sessions that nobody has seen yet. Their keys are their places here.
#[derive(Default)]
struct NewRows {
    all: RefCell<Vec<New>>,
    places: RefCell<HashMap<SessionId, usize>>,
    /// Marks the events of the write that is under way.
    mark: Cell<Option<[u8; 16]>>,
}

/// Only the database knows.
fn unknown<T>() -> Result<T> {
    Err(Error::Unreadable { what: "a new session".to_owned(), why: "it asks for more".to_owned() })
}

fn place(key: Key) -> usize {
    usize::try_from(key).unwrap_or(usize::MAX)
}

impl NewRows {
    fn with<T>(&self, key: Key, look: impl FnOnce(&mut New) -> T) -> Result<T> {
        match self.all.borrow_mut().get_mut(place(key)) {
            Some(new) => Ok(look(new)),
            None => unknown(),
        }
    }

    fn insert(&self, rows: &PgRows<'_>) -> Result<()> {
        let all = self.all.borrow();
        let keys = insert_sessions(rows, &all)?;
        insert_heads(rows, &all, &keys)?;
        insert_events(rows, &all, &keys)?;
        insert_lanes(rows, &all, &keys)
    }
}

fn insert_sessions(rows: &PgRows<'_>, all: &[New]) -> Result<Vec<Key>> {
    let heads = || all.iter().map(|new| &new.row.head);
    let ids: Vec<&str> = heads().map(|head| head.id.as_str()).collect();
    let external: Vec<bool> = heads().map(|head| head.driver == Driver::External).collect();
    let created: Vec<i64> = heads().map(|head| head.created_at.as_micros()).collect();
    let labels: Vec<Option<&[u8]>> =
        heads().map(|head| head.label.as_deref().map(str::as_bytes)).collect();
    let tasks: Vec<Vec<u8>> = heads().map(|head| head.task.to_lowercase().into_bytes()).collect();
    let agents: Vec<&[u8]> = heads().map(|head| head.agent.as_bytes()).collect();
    let workspaces: Vec<&[u8]> = heads().map(|head| head.workspace.as_bytes()).collect();
    let rewinding: Vec<bool> = heads().map(|head| head.rewinding.is_some()).collect();
    let systems: Vec<Option<&[u8]>> =
        heads().map(|head| head.system().map(String::as_bytes)).collect();
    let scopes: Vec<Option<&[u8]>> =
        heads().map(|head| head.scope.as_deref().map(str::as_bytes)).collect();
    let made = rows.all(
        "INSERT INTO stepwell.sessions (namespace, id, subagent, external, created, label, tags, \
         task, agent, workspace, rewinding, system, scope) SELECT $1, n.id, false, n.external, \
         n.created, n.label, '{}', n.task, n.agent, n.workspace, n.rewinding, n.system, n.scope \
         FROM unnest($2, $3, $4, $5, $6, $7, $8, $9, $10, $11) AS n (id, external, created, label, \
         task, agent, workspace, rewinding, system, scope) RETURNING id, key",
        params![
            rows.namespace => INT4, ids => TEXT_ARRAY, external => BOOL_ARRAY,
            created => INT8_ARRAY, labels => BYTEA_ARRAY, tasks => BYTEA_ARRAY,
            agents => BYTEA_ARRAY, workspaces => BYTEA_ARRAY, rewinding => BOOL_ARRAY,
            systems => BYTEA_ARRAY, scopes => BYTEA_ARRAY,
        ],
    )?;
    let mut keys: HashMap<String, Key> = HashMap::new();
    for row in made {
        keys.insert(rows.get(&row, 0)?, rows.get(&row, 1)?);
    }
    let keys: Vec<Key> = ids.iter().map(|id| keys.get(*id).copied().unwrap_or_default()).collect();
    // An array of arrays would have to be of one length, and few have tags.
    for (new, key) in all.iter().zip(&keys).filter(|(new, _)| !new.row.head.tags.is_empty()) {
        let tags: Vec<&[u8]> = new.row.head.tags.iter().map(String::as_bytes).collect();
        rows.run(
            "UPDATE stepwell.sessions SET tags = $3 WHERE namespace = $1 AND key = $2",
            params![rows.namespace => INT4, key => INT8, tags => BYTEA_ARRAY],
        )?;
    }
    Ok(keys)
}

fn insert_heads(rows: &PgRows<'_>, all: &[New], keys: &[Key]) -> Result<()> {
    let each = || all.iter().map(|new| &new.row);
    let texts: Vec<Vec<u8>> = each().map(|row| json(&row.head)).collect();
    let seqs: Vec<i64> = each().map(|row| number(row.head.seq)).collect();
    let updated: Vec<i64> = each().map(|row| row.head.updated_at.as_micros()).collect();
    let statuses: Vec<&str> = each().map(|row| row.head.status.as_str()).collect();
    let costs: Vec<i64> = each().map(|row| cost_column(row.head.spent.cost)).collect();
    let steps: Vec<i64> = each().map(|row| signed(row.head.steps)).collect();
    let bytes: Vec<i64> = each().map(|row| signed(row.bytes)).collect();
    let chains: Vec<&[u8]> = each().map(|row| row.chain.as_bytes().as_slice()).collect();
    let sums: Vec<Vec<u8>> =
        each().zip(&texts).map(|(row, text)| head_sum(text, &row.chain).to_vec()).collect();
    let models: Vec<&[u8]> = each().map(|row| row.head.model.as_bytes()).collect();
    let lanes: Vec<Option<Vec<u8>>> = each().map(|row| row.lane.as_ref().map(json)).collect();
    rows.run(
        "WITH noted AS (INSERT INTO stepwell.indexed (session, namespace, seq) \
         SELECT k, $1, 0 FROM unnest($2) AS k) \
         INSERT INTO stepwell.heads (session, namespace, version, seq, fence, updated, status, \
         cost, steps, bytes, unindexed, chain, sum, model, lane, head) \
         SELECT n.key, $1, 1, n.seq, 0, n.updated, n.status, n.cost, n.steps, n.bytes, true, \
         n.chain, n.sum, n.model, n.lane, n.head \
         FROM unnest($2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13) AS n (key, seq, updated, \
         status, cost, steps, bytes, chain, sum, model, lane, head)",
        params![
            rows.namespace => INT4, keys => INT8_ARRAY, seqs => INT8_ARRAY,
            updated => INT8_ARRAY, statuses => TEXT_ARRAY, costs => INT8_ARRAY,
            steps => INT8_ARRAY, bytes => INT8_ARRAY, chains => BYTEA_ARRAY, sums => BYTEA_ARRAY,
            models => BYTEA_ARRAY, lanes => BYTEA_ARRAY, texts => BYTEA_ARRAY,
        ],
    )
}

fn insert_events(rows: &PgRows<'_>, all: &[New], keys: &[Key]) -> Result<()> {
    let each =
        || all.iter().zip(keys).flat_map(|(new, key)| new.events.iter().map(move |it| (it, *key)));
    let sessions: Vec<Key> = each().map(|(_, key)| key).collect();
    let seqs: Vec<i64> = each().map(|((row, _), _)| number(row.seq)).collect();
    let ats: Vec<i64> = each().map(|((row, _), _)| row.at.as_micros()).collect();
    let versions: Vec<i32> = each().map(|((row, _), _)| version_column(row)).collect();
    let kinds: Vec<&[u8]> = each().map(|((row, _), _)| row.kind.as_bytes()).collect();
    let chains: Vec<&[u8]> = each().map(|((row, _), _)| row.chain.as_bytes().as_slice()).collect();
    let ids: Vec<Option<&[u8]>> =
        each().map(|((row, _), _)| row.id.as_ref().map(|id| id.as_bytes().as_slice())).collect();
    let marks: Vec<Option<&[u8]>> =
        each().map(|((_, mark), _)| mark.as_ref().map(<[u8; 16]>::as_slice)).collect();
    let names: Vec<Option<&[u8]>> =
        each().map(|((row, _), _)| row.key.as_deref().map(str::as_bytes)).collect();
    let bodies: Vec<&[u8]> = each().map(|((row, _), _)| &*row.body).collect();
    let copied: Vec<bool> = each().map(|((row, _), _)| row.login.is_nobody()).collect();
    rows.run(
        "INSERT INTO stepwell.events (namespace, session, seq, at, version, spilled, kind, chain, \
         id, mark, key, body, copied) SELECT $1, n.session, n.seq, n.at, n.version, false, n.kind, \
         n.chain, n.id, n.mark, n.key, n.body, n.copied \
         FROM unnest($2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12) AS n (session, seq, at, \
         version, kind, chain, id, mark, key, body, copied)",
        params![
            rows.namespace => INT4, sessions => INT8_ARRAY, seqs => INT8_ARRAY, ats => INT8_ARRAY,
            versions => INT4_ARRAY, kinds => BYTEA_ARRAY, chains => BYTEA_ARRAY,
            ids => BYTEA_ARRAY, marks => BYTEA_ARRAY, names => BYTEA_ARRAY,
            bodies => BYTEA_ARRAY, copied => BOOL_ARRAY,
        ],
    )
}

fn insert_lanes(rows: &PgRows<'_>, all: &[New], keys: &[Key]) -> Result<()> {
    let (mut sessions, mut names, mut states) = (Vec::new(), Vec::new(), Vec::new());
    for (new, key) in all.iter().zip(keys) {
        for (lane, state) in &new.lanes {
            sessions.push(*key);
            names.push(lane.as_str().as_bytes());
            states.push(json(state));
        }
    }
    if sessions.is_empty() {
        return Ok(());
    }
    rows.run(
        "INSERT INTO stepwell.lanes (session, namespace, lane, state) \
         SELECT n.session, $1, n.lane, n.state FROM unnest($2, $3, $4) AS n (session, lane, state)",
        params![
            rows.namespace => INT4, sessions => INT8_ARRAY, names => BYTEA_ARRAY,
            states => BYTEA_ARRAY,
        ],
    )
}

impl Rows for NewRows {
    fn session(&self, id: &SessionId) -> Result<Option<SessionRow>> {
        let place = self.places.borrow().get(id).copied();
        Ok(place.and_then(|place| Some(self.all.borrow().get(place)?.row.clone())))
    }

    fn session_by_key(&self, _key: Key) -> Result<Option<SessionRow>> {
        unknown()
    }

    fn insert_session(&self, row: &SessionRow) -> Result<Inserted> {
        let mut all = self.all.borrow_mut();
        self.places.borrow_mut().insert(row.head.id.clone(), all.len());
        let key = Key::try_from(all.len()).unwrap_or(Key::MAX);
        let row = SessionRow { key, ..row.clone() };
        all.push(New { row, lanes: BTreeMap::new(), events: Vec::new() });
        Ok(Inserted { key, last_epoch: None })
    }

    fn update_session(&self, row: &SessionRow) -> Result<()> {
        self.with(row.key, |new| new.row = row.clone())
    }

    fn set_trashed(&self, _keys: &[Key], _when: Time) -> Result<()> {
        unknown()
    }

    fn put_lease(&self, _key: Key, _lease: &LeaseRow) -> Result<()> {
        unknown()
    }

    fn lanes(&self, key: Key) -> Result<BTreeMap<Lane, LaneState>> {
        self.with(key, |new| new.lanes.clone())
    }

    fn lane(&self, key: Key, lane: &Lane) -> Result<LaneState> {
        self.with(key, |new| new.lanes.get(lane).copied().unwrap_or_default())
    }

    fn put_lane(&self, key: Key, lane: &Lane, state: &LaneState) -> Result<()> {
        self.with(key, |new| {
            new.lanes.insert(lane.clone(), *state);
        })
    }

    fn insert_event(&self, key: Key, sealed: &Sealed<'_>) -> Result<u64> {
        if !sealed.spill.is_empty() || !sealed.names.is_empty() || sealed.row.spilled {
            return unknown();
        }
        let event = (sealed.row.clone().into_owned(), self.mark.get());
        self.with(key, |new| new.events.push(event))?;
        Ok(sealed.row.body.len() as u64)
    }

    fn replace_event(&self, _key: Key, _sealed: &Sealed<'_>) -> Result<()> {
        unknown()
    }

    fn event_by_id(&self, key: Key, id: &EventId) -> Result<Option<OwnRow>> {
        self.with(key, |new| {
            let found = new.events.iter().find(|(row, _)| row.id.as_ref() == Some(id));
            found.map(|(row, _)| row.clone())
        })
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

    fn put_snapshot(&self, _key: Key, _state: &State) -> Result<()> {
        unknown()
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
