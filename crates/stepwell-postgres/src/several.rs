//! Questions about several sessions at once, each of them one statement.

use std::collections::HashMap;

use stepwell::backend::{OwnRow, Row, read};
use stepwell::model::{Digest, Kind};
use stepwell::store::{Excerpt, LOOK_BACK};
use stepwell::{Error, Recorded, Result, Seq, SessionId};

use crate::rows::{EVENT_COLUMNS, EVENT_WIDTH, PgRows, blob, digest, read_event, seq};
use crate::transport::params;

/// An event that was found, or is missing, with the chain's value at the row below it.
struct FoundEvent {
    at: Seq,
    event: Option<OwnRow>,
    below: Option<Digest>,
}

/// A few events of each of several sessions.
pub(crate) fn excerpts(
    rows: &PgRows<'_>,
    ids: &[SessionId],
    wanted: &Excerpt<'_>,
) -> Result<Vec<Result<Vec<Recorded>>>> {
    let mut places: Vec<Option<Vec<FoundEvent>>> = ids.iter().map(|_| None).collect();
    for (n, place) in find(rows, ids, wanted)? {
        if let Some(places) = places.get_mut(n) {
            places.get_or_insert_default().push(place);
        }
    }
    let spilled = spilled(rows, places.iter().flatten().flatten())?;
    let mut blob = |digest: &Digest| match spilled.get(digest) {
        Some(bytes) => Ok(bytes.clone()),
        None => blob::get(rows, digest),
    };
    let mut open = |id: &SessionId, places: Option<Vec<FoundEvent>>| {
        let places = places.ok_or_else(|| Error::NoSession(id.clone()))?;
        let mut events = Vec::with_capacity(places.len());
        for FoundEvent { at, event, below } in places {
            let event = event.ok_or_else(|| read::missing(id, at))?;
            events.push(read::opened(id, below, &event, &mut blob)?);
        }
        Ok(events)
    };
    Ok(ids.iter().zip(places).map(|(id, places)| open(id, places)).collect())
}

/// Finds the rows: for each session that is there, by its place among the ids. The stretches of a
/// fork's log belong to the sessions that it grew out of.
fn find(
    rows: &PgRows<'_>,
    ids: &[SessionId],
    wanted: &Excerpt<'_>,
) -> Result<Vec<(usize, FoundEvent)>> {
    let sql = format!(
        "WITH RECURSIVE asked AS (\
         SELECT i.n, s.key, s.base_key, s.base_at, h.seq AS last, \
         coalesce(s.base_at, 0) + 1 AS own FROM unnest($2) WITH ORDINALITY AS i (id, n) \
         JOIN stepwell.sessions s ON s.namespace = $1 AND s.id = i.id \
         JOIN stepwell.heads h ON h.namespace = $1 AND h.session = s.key), \
         stretches (n, owner, low, high, base_key, base_at) AS (\
         SELECT n, key, own, last, base_key, base_at FROM asked \
         UNION ALL SELECT t.n, s.key, coalesce(s.base_at, 0) + 1, least(t.high, t.base_at), \
         s.base_key, s.base_at FROM stretches t JOIN stepwell.sessions s \
         ON s.namespace = $1 AND s.key = t.base_key), \
         places (n, place) AS (\
         SELECT a.n, f.place FROM asked a CROSS JOIN LATERAL (VALUES (1::bigint), (a.own)) \
         AS f (place) \
         UNION SELECT t.n, e.seq FROM stretches t JOIN stepwell.events e \
         ON e.namespace = $1 AND e.session = t.owner \
         AND e.kind = ANY ($3) AND e.key IS NOT NULL AND e.seq BETWEEN t.low AND t.high \
         UNION SELECT a.n, l.seq FROM asked a CROSS JOIN LATERAL (\
         SELECT e.seq FROM stretches t JOIN stepwell.events e \
         ON e.namespace = $1 AND e.session = t.owner AND e.seq BETWEEN greatest(t.low, a.last - $5 + 1) AND t.high \
         WHERE t.n = a.n AND e.kind = ANY ($4) ORDER BY e.seq DESC LIMIT 1) AS l) \
         SELECT found.*, p.n, p.place, before.chain FROM places p \
         LEFT JOIN stretches t ON t.n = p.n AND p.place BETWEEN t.low AND t.high \
         LEFT JOIN LATERAL (SELECT {EVENT_COLUMNS} FROM stepwell.events \
         WHERE namespace = $1 AND session = t.owner AND seq = p.place) AS found ON true \
         LEFT JOIN stretches b ON b.n = p.n AND p.place - 1 BETWEEN b.low AND b.high \
         LEFT JOIN LATERAL (SELECT e.chain FROM stepwell.events e \
         WHERE e.namespace = $1 AND e.session = b.owner AND e.seq = p.place - 1) AS before ON true \
         ORDER BY p.n, p.place"
    );
    let names: Vec<&str> = ids.iter().map(SessionId::as_str).collect();
    let words = |kinds: &[Kind]| -> Vec<Vec<u8>> {
        kinds.iter().map(|kind| kind.as_str().as_bytes().to_vec()).collect()
    };
    let params = params![
        rows.namespace => INT4, names => TEXT_ARRAY, words(wanted.keyed) => BYTEA_ARRAY,
        words(wanted.last) => BYTEA_ARRAY, LOOK_BACK as i64 => INT8,
    ];
    let mut found = Vec::new();
    for row in rows.all(&sql, params)? {
        let is_there = rows.get::<Option<i64>>(&row, 0)?.is_some();
        let event = is_there.then(|| read_event(rows, &row).map(Row::into_owned)).transpose()?;
        let n = usize::try_from(rows.get::<i64>(&row, EVENT_WIDTH)? - 1).unwrap_or(usize::MAX);
        let below: Option<&[u8]> = rows.get(&row, EVENT_WIDTH + 2)?;
        found.push((
            n,
            FoundEvent {
                at: seq(rows.get(&row, EVENT_WIDTH + 1)?),
                event,
                below: below.map(digest),
            },
        ));
    }
    Ok(found)
}

/// The texts that these events have elsewhere, fetched at once.
fn spilled<'a>(
    rows: &PgRows<'_>,
    places: impl Iterator<Item = &'a FoundEvent>,
) -> Result<HashMap<Digest, Vec<u8>>> {
    let mut names: Vec<Digest> = Vec::new();
    for event in places.filter_map(|place| place.event.as_ref()).filter(|event| event.spilled) {
        // Only asks which they are: what comes of it is thrown away.
        let _ = event.open(&mut |digest| {
            names.push(*digest);
            Ok(Vec::new())
        });
    }
    if names.is_empty() {
        return Ok(HashMap::new());
    }
    names.sort_unstable();
    names.dedup();
    match blob::get_all(rows, &names) {
        Ok(found) => Ok(names.into_iter().zip(found).collect()),
        // One that is damaged or gone is found so by whoever asks for it.
        Err(Error::NoBlob(_) | Error::DamagedBlob { .. }) => Ok(HashMap::new()),
        Err(error) => Err(error),
    }
}
