//! An append as one statement: the head moves on if it is still what the append was made
//! for, and only then are the events there.

use std::fmt::Write as _;

use stepwell::Result;
use stepwell::model::EventId;
use tokio_postgres::types::{ToSql, Type};

use crate::draft::Entry;
use crate::fault::DbError;
use crate::order::{Columns, Order, Sent};
use crate::rows::blob::REPLACE;
use crate::rows::{json, number, signed, version_column};
use crate::transport::{Conn, Param, Pool, SERVER_TIME};

/// Sends an append. An error of the kind [`DbError::Lost`] leaves open whether it was kept.
pub(crate) fn send(
    pool: &Pool,
    conn: &Conn,
    namespace: i32,
    order: &Order,
) -> Result<Sent, DbError> {
    let Order { known, draft, .. } = order;
    let columns = &order.columns;
    let slices = [columns.chain.as_bytes().as_slice(), &columns.sum[..], order.model()];
    let events = Events::of(&draft.events);
    let blobs = Blobs::of(&draft.events);
    let lanes: Vec<(Vec<u8>, Vec<u8>)> = draft
        .lanes
        .iter()
        .map(|(lane, state)| (lane.as_str().as_bytes().to_vec(), json(state)))
        .collect();
    let (lane_names, lane_states): (Vec<_>, Vec<_>) = lanes.into_iter().unzip();
    let (snapshot_seqs, snapshots): (Vec<i64>, Vec<&[u8]>) =
        draft.snapshots.iter().map(|(seq, state)| (number(*seq), state.as_slice())).unzip();
    let mark = order.mark.as_ref().map(<[u8; 16]>::as_slice);
    let (old_seq, bytes) = (number(known.row.head.seq), signed(draft.bytes));
    let (fence, known_chain) = (order.fence(), known.row.chain.as_bytes().as_slice());
    let now = pool.time.now().as_micros();

    let mut text = Text::default();
    let session = text.bind(&known.row.key, Type::INT8);
    let team = text.bind(&namespace, Type::INT4);
    let version = text.bind(&known.version, Type::INT8);
    let at = text.bind(&old_seq, Type::INT8);
    let chain = text.bind(&known_chain, Type::BYTEA);
    let mut held = format!(
        "namespace = {team} AND session = {session} AND version = {version} AND seq = {at} \
         AND chain = {chain}"
    );
    if let Some(fence) = &fence {
        let _ = write!(held, " AND fence = {}", text.bind(fence, Type::INT8));
    }
    if known.row.base.is_some() && events.ids.iter().any(Option::is_some) {
        let ids = text.bind(&events.ids, Type::BYTEA_ARRAY);
        let _ = write!(held, " AND NOT EXISTS ({})", shared_ids(&team, &session, &ids));
    }
    let added = text.bind(&bytes, Type::INT8);
    let named = if blobs.names.is_empty() { None } else { Some(blobs.bind_names(&mut text)) };
    let blob_bytes = match &named {
        None => String::new(),
        // A text that spills now is not in the table yet; its size is known.
        Some(Named { names, .. }) => {
            let spilled = text.bind(&blobs.spilled_bytes, Type::INT8);
            let spills = text.bind(&blobs.spills, Type::BYTEA_ARRAY);
            format!(
                " + {spilled} + (SELECT coalesce(sum(b.stored), 0)::bigint FROM unnest({names}) n (d) \
                 JOIN stepwell.blobs b ON b.namespace = {team} AND b.digest = n.d \
                 WHERE n.d <> ALL ({spills}))"
            )
        }
    };
    let assigned = assign(columns, &slices, &mut text);
    let _ = write!(
        text.sql,
        "WITH moved AS (UPDATE stepwell.heads SET version = version + 1, unindexed = true, \
         change = pg_current_xact_id(), \
         bytes = bytes + {added}{blob_bytes}, {assigned} WHERE {held} RETURNING bytes)"
    );
    let into = Owner { session, team };
    events.insert(&mut text, &into, &mark);
    if let Some(named) = &named {
        blobs.insert(&mut text, &into, named, &now);
    }
    let Owner { session, team } = &into;
    if !lane_names.is_empty() {
        let names = text.bind(&lane_names, Type::BYTEA_ARRAY);
        let states = text.bind(&lane_states, Type::BYTEA_ARRAY);
        let _ = write!(
            text.sql,
            ", turned AS (INSERT INTO stepwell.lanes (session, namespace, lane, state) \
             SELECT {session}, {team}, l.lane, l.state FROM moved, unnest({names}, {states}) \
             AS l (lane, state) ON CONFLICT (namespace, session, lane) DO UPDATE SET state = excluded.state)"
        );
    }
    if !snapshots.is_empty() {
        let seqs = text.bind(&snapshot_seqs, Type::INT8_ARRAY);
        let states = text.bind(&snapshots, Type::BYTEA_ARRAY);
        let _ = write!(
            text.sql,
            ", folded AS (INSERT INTO stepwell.snapshots (session, seq, namespace, state) \
             SELECT {session}, f.seq, {team}, f.state FROM moved, unnest({seqs}, {states}) \
             AS f (seq, state) ON CONFLICT (namespace, session, seq) DO UPDATE SET state = excluded.state)"
        );
    }
    let _ = write!(text.sql, " SELECT bytes, {SERVER_TIME} FROM moved");

    let answer = conn.query_hot(&text.sql, &text.params)?;
    let Some(answer) = answer.first() else { return Ok(Sent::Stale) };
    pool.time.told(answer.get(1));
    Ok(Sent::Done(answer.get(0)))
}

/// Is one of these ids among the events that the session shares?
fn shared_ids(team: &str, session: &str, ids: &str) -> String {
    format!(
        "WITH RECURSIVE shared (key, at) AS (\
         SELECT base_key, base_at FROM stepwell.sessions \
         WHERE namespace = {team} AND key = {session} \
         UNION ALL SELECT s.base_key, least(s.base_at, shared.at) FROM stepwell.sessions s \
         JOIN shared ON s.namespace = {team} AND s.key = shared.key \
         WHERE s.base_key IS NOT NULL) \
         SELECT 1 FROM shared JOIN stepwell.events e \
         ON e.namespace = {team} AND e.session = shared.key WHERE e.seq <= shared.at AND e.id = ANY ({ids})"
    )
}

/// A statement and its values, as they come.
#[derive(Default)]
struct Text<'a> {
    sql: String,
    params: Vec<Param<'a>>,
}

impl<'a> Text<'a> {
    /// Adds a value; the answer stands for it.
    fn bind(&mut self, value: &'a (dyn ToSql + Sync), kind: Type) -> String {
        self.params.push((value, kind));
        format!("${}", self.params.len())
    }
}

/// Sets the columns of a head.
fn assign<'a>(head: &'a Columns, slices: &'a [&'a [u8]; 3], text: &mut Text<'a>) -> String {
    let [chain, sum, model] = slices;
    let columns: [(&str, &'a (dyn ToSql + Sync), Type); 10] = [
        ("seq", &head.seq, Type::INT8),
        ("updated", &head.updated, Type::INT8),
        ("status", &head.status, Type::TEXT),
        ("cost", &head.cost, Type::INT8),
        ("steps", &head.steps, Type::INT8),
        ("chain", chain, Type::BYTEA),
        ("sum", sum, Type::BYTEA),
        ("model", model, Type::BYTEA),
        ("lane", &head.lane, Type::BYTEA),
        ("head", &head.head, Type::BYTEA),
    ];
    let assign = |(name, value, kind)| format!("{name} = {}", text.bind(value, kind));
    columns.map(assign).join(", ")
}

/// Events as columns.
#[derive(Default)]
struct Events<'a> {
    seqs: Vec<i64>,
    ats: Vec<i64>,
    versions: Vec<i32>,
    spilled: Vec<bool>,
    kinds: Vec<&'a [u8]>,
    chains: Vec<&'a [u8]>,
    ids: Vec<Option<&'a [u8]>>,
    keys: Vec<Option<&'a [u8]>>,
    bodies: Vec<&'a [u8]>,
    copied: Vec<bool>,
}

impl<'a> Events<'a> {
    fn of(events: &'a [Entry]) -> Self {
        let id = |id: &'a EventId| id.as_bytes().as_slice();
        let mut all = Self::default();
        for Entry { row, .. } in events {
            all.seqs.push(number(row.seq));
            all.ats.push(row.at.as_micros());
            all.versions.push(version_column(row));
            all.spilled.push(row.spilled);
            all.kinds.push(row.kind.as_bytes());
            all.chains.push(row.chain.as_bytes().as_slice());
            all.ids.push(row.id.as_ref().map(id));
            all.keys.push(row.key.as_deref().map(str::as_bytes));
            all.bodies.push(&*row.body);
            all.copied.push(row.login.is_nobody());
        }
        all
    }

    fn insert(&'a self, text: &mut Text<'a>, into: &Owner, mark: &'a Option<&'a [u8]>) {
        let Owner { session, team } = into;
        let mark = text.bind(mark, Type::BYTEA);
        let columns: [(&'a (dyn ToSql + Sync), Type); 10] = [
            (&self.seqs, Type::INT8_ARRAY),
            (&self.ats, Type::INT8_ARRAY),
            (&self.versions, Type::INT4_ARRAY),
            (&self.spilled, Type::BOOL_ARRAY),
            (&self.kinds, Type::BYTEA_ARRAY),
            (&self.chains, Type::BYTEA_ARRAY),
            (&self.ids, Type::BYTEA_ARRAY),
            (&self.keys, Type::BYTEA_ARRAY),
            (&self.bodies, Type::BYTEA_ARRAY),
            (&self.copied, Type::BOOL_ARRAY),
        ];
        let columns = columns.map(|(value, kind)| text.bind(value, kind)).join(", ");
        let _ = write!(
            text.sql,
            ", said AS (INSERT INTO stepwell.events (session, seq, namespace, at, version, spilled, \
             kind, chain, id, mark, key, body, copied) SELECT {session}, e.seq, {team}, e.at, \
             e.version, e.spilled, e.kind, e.chain, e.id, {mark}, e.key, e.body, e.copied FROM moved, \
             unnest({columns}) AS e (seq, at, version, spilled, kind, chain, id, key, body, copied))"
        );
    }
}

/// Where rows go: the session's and the namespace's numbers, as the statement names them.
struct Owner {
    session: String,
    team: String,
}

/// Which blobs are named where, as the statement names both.
struct Named {
    names: String,
    places: String,
}

/// Blobs that events name, and the texts that spill with them, as columns.
struct Blobs<'a> {
    names: Vec<&'a [u8]>,
    places: Vec<i64>,
    spills: Vec<&'a [u8]>,
    sizes: Vec<i64>,
    data: Vec<&'a [u8]>,
    /// What the spilled texts add to the session's bytes, each as often as it is named.
    spilled_bytes: i64,
}

impl<'a> Blobs<'a> {
    fn of(events: &'a [Entry]) -> Self {
        let mut all = Self {
            names: Vec::new(),
            places: Vec::new(),
            spills: Vec::new(),
            sizes: Vec::new(),
            data: Vec::new(),
            spilled_bytes: 0,
        };
        for event in events {
            for (digest, size, data) in &event.spill {
                let digest = digest.as_bytes().as_slice();
                if !all.spills.contains(&digest) {
                    all.spills.push(digest);
                    all.sizes.push(*size);
                    all.data.push(data);
                }
            }
            for digest in &event.names {
                all.names.push(digest.as_bytes().as_slice());
                all.places.push(number(event.row.seq));
            }
        }
        for name in &all.names {
            if let Some(n) = all.spills.iter().position(|spill| spill == name) {
                all.spilled_bytes += all.data[n].len() as i64;
            }
        }
        all
    }

    fn bind_names(&'a self, text: &mut Text<'a>) -> Named {
        let names = text.bind(&self.names, Type::BYTEA_ARRAY);
        Named { names, places: text.bind(&self.places, Type::INT8_ARRAY) }
    }

    fn insert(&'a self, text: &mut Text<'a>, into: &Owner, named: &Named, now: &'a i64) {
        let (Owner { session, team }, Named { names, places }) = (into, named);
        let now = text.bind(now, Type::INT8);
        let digests = text.bind(&self.spills, Type::BYTEA_ARRAY);
        let sizes = text.bind(&self.sizes, Type::INT8_ARRAY);
        let data = text.bind(&self.data, Type::BYTEA_ARRAY);
        let _ = write!(
            text.sql,
            ", kept AS (INSERT INTO stepwell.blobs (namespace, digest, size, stored, touched, data) \
             SELECT {team}, b.digest, b.size, length(b.data), {now}, b.data FROM moved, \
             unnest({digests}, {sizes}, {data}) AS b (digest, size, data) \
             {REPLACE}), \
             named AS (INSERT INTO stepwell.refs (namespace, digest, session, seq) \
             SELECT DISTINCT {team}, r.digest, {session}, r.seq FROM moved, \
             unnest({names}, {places}) AS r (digest, seq) ON CONFLICT DO NOTHING)"
        );
    }
}
