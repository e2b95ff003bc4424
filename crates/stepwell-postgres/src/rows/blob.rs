//! Blobs in PostgreSQL: compressed, once for each digest and namespace, kept while an
//! event names them. A foreign key keeps a purge on one machine from taking what an
//! append on another is about to name.

use std::collections::HashMap;
use std::time::Duration;

use stepwell::backend::{Key, Sealed};
use stepwell::log::MAX_BLOB_BYTES;
use stepwell::model::Digest;
use stepwell::{Error, Result, Seq};

use super::pg_rows::{PgRows, number};
use crate::transport::params;

/// zstd's level: 3 is its default, and the last one before time grows faster than
/// what is saved.
const LEVEL: i32 = 3;

/// How long a blob that no event names is kept: its event may be on its way.
const GRACE: Duration = Duration::from_secs(24 * 60 * 60);

/// Bytes as they are stored.
pub(crate) fn packed(digest: &Digest, bytes: &[u8]) -> Result<Vec<u8>> {
    if bytes.len() > MAX_BLOB_BYTES {
        let (size, limit) = (bytes.len() as u64, MAX_BLOB_BYTES as u64);
        return Err(Error::TooLarge { what: format!("blob {digest}"), size, limit });
    }
    zstd::bulk::compress(bytes, LEVEL).map_err(|error| Error::Unreadable {
        what: format!("blob {digest}"),
        why: error.to_string(),
    })
}

/// What a write does that has the bytes of a blob that is there: it notes that they are wanted, and
/// puts its own in the place of others, which are damaged.
pub(crate) const REPLACE: &str = "ON CONFLICT (namespace, digest) DO UPDATE \
     SET touched = excluded.touched, size = excluded.size, stored = excluded.stored, \
     data = CASE WHEN blobs.data = excluded.data THEN blobs.data ELSE excluded.data END";

/// Stores bytes under their digest.
pub(crate) fn put(rows: &PgRows<'_>, digest: &Digest, bytes: &[u8]) -> Result<()> {
    let data = packed(digest, bytes)?;
    let sql = format!(
        "INSERT INTO stepwell.blobs (namespace, digest, size, stored, touched, data) \
         VALUES ($1, $2, $3, length($5), $4, $5) {REPLACE}"
    );
    rows.run(
        &sql,
        params![
            rows.namespace => INT4,
            digest.as_bytes().as_slice() => BYTEA,
            bytes.len() as i64 => INT8,
            rows.now.as_micros() => INT8,
            data => BYTEA,
        ],
    )
}

/// The bytes of a blob, checked against their digest.
pub(crate) fn get(rows: &PgRows<'_>, digest: &Digest) -> Result<Vec<u8>> {
    let sql = "SELECT size, data FROM stepwell.blobs WHERE namespace = $1 AND digest = $2";
    let params = params![rows.namespace => INT4, digest.as_bytes().as_slice() => BYTEA];
    let row = rows.one(sql, params)?.ok_or(Error::NoBlob(*digest))?;
    unpacked(digest, rows.get(&row, 0)?, rows.get(&row, 1)?)
}

fn unpacked(digest: &Digest, size: i64, data: &[u8]) -> Result<Vec<u8>> {
    let damaged = |what: String| Error::DamagedBlob { digest: *digest, what };
    // The size comes from outside: it bounds, but is not trusted to allocate.
    let limit = usize::try_from(size).unwrap_or(0).min(MAX_BLOB_BYTES);
    let bytes = zstd::bulk::decompress(data, limit).map_err(|error| damaged(error.to_string()))?;
    if digest.matches(&bytes) {
        Ok(bytes)
    } else {
        Err(damaged("its bytes do not match its digest".to_owned()))
    }
}

/// Notes which blobs an event names, storing its spilled texts. Returns their stored
/// bytes.
pub(crate) fn attach(rows: &PgRows<'_>, key: Key, sealed: &Sealed<'_>) -> Result<u64> {
    for (digest, text) in &sealed.spill {
        put(rows, digest, text)?;
    }
    let mut bytes = 0;
    for digest in sealed.spill.iter().map(|(digest, _)| digest).chain(&sealed.names) {
        let named = params![rows.namespace => INT4, digest.as_bytes().as_slice() => BYTEA];
        let sql = "SELECT stored FROM stepwell.blobs WHERE namespace = $1 AND digest = $2 \
             FOR KEY SHARE";
        let row = rows.one(sql, named)?.ok_or(Error::NoBlob(*digest))?;
        bytes += rows.get::<i64>(&row, 0)?.unsigned_abs();
        rows.run(
            "INSERT INTO stepwell.refs (namespace, digest, session, seq) VALUES ($1, $2, $3, $4) \
             ON CONFLICT DO NOTHING",
            params![
                rows.namespace => INT4,
                digest.as_bytes().as_slice() => BYTEA,
                key => INT8,
                number(sealed.row.seq) => INT8,
            ],
        )?;
    }
    Ok(bytes)
}

/// Forgets what the events of some sessions named, and the blobs that nothing names now.
pub(crate) fn detach_sessions(rows: &PgRows<'_>, keys: &[Key]) -> Result<()> {
    let sql = "WITH gone AS (DELETE FROM stepwell.refs \
         WHERE namespace = $1 AND session = ANY ($2) RETURNING digest) \
         SELECT DISTINCT digest FROM gone";
    let found = rows.all(sql, params![rows.namespace => INT4, keys => INT8_ARRAY])?;
    let named = found.iter().map(|row| rows.get(row, 0)).collect::<Result<Vec<_>>>()?;
    drop_unnamed(rows, &named)
}

/// Forgets what some events named, and the blobs that nothing names now. Returns the stored
/// bytes of what they named.
pub(crate) fn detach_all(rows: &PgRows<'_>, key: Key, seqs: &[i64]) -> Result<u64> {
    let sql = "WITH gone AS (DELETE FROM stepwell.refs \
         WHERE namespace = $3 AND session = $1 AND seq = ANY ($2) RETURNING digest) SELECT g.digest, sum(b.stored)::bigint FROM gone g \
         JOIN stepwell.blobs b ON b.namespace = $3 AND b.digest = g.digest GROUP BY g.digest";
    let params = params![key => INT8, seqs => INT8_ARRAY, rows.namespace => INT4];
    let (mut named, mut bytes) = (Vec::new(), 0);
    for row in rows.all(sql, params)? {
        named.push(rows.get(&row, 0)?);
        bytes += rows.get::<i64>(&row, 1)?.unsigned_abs();
    }
    drop_unnamed(rows, &named)?;
    Ok(bytes)
}

/// The bytes of several blobs, in order, each checked against its digest.
pub(crate) fn get_all(rows: &PgRows<'_>, digests: &[Digest]) -> Result<Vec<Vec<u8>>> {
    let sql = "SELECT digest, size, data FROM stepwell.blobs \
         WHERE namespace = $1 AND digest = ANY ($2)";
    let columns: Vec<&[u8]> = digests.iter().map(|it| it.as_bytes().as_slice()).collect();
    let mut found: HashMap<Vec<u8>, Vec<u8>> = HashMap::new();
    for row in rows.all(sql, params![rows.namespace => INT4, columns => BYTEA_ARRAY])? {
        let (column, size): (&[u8], i64) = (rows.get(&row, 0)?, rows.get(&row, 1)?);
        let Some(digest) = digests.iter().find(|digest| digest.as_bytes().as_slice() == column)
        else {
            continue;
        };
        found.insert(column.to_vec(), unpacked(digest, size, rows.get(&row, 2)?)?);
    }
    let bytes = |digest: &Digest| found.get(digest.as_bytes().as_slice()).cloned();
    digests.iter().map(|digest| bytes(digest).ok_or(Error::NoBlob(*digest))).collect()
}

/// Notes which blobs an event names now. One that it named before and still does stays.
pub(crate) fn reattach(rows: &PgRows<'_>, key: Key, sealed: &Sealed<'_>) -> Result<()> {
    let named = unname(rows, key, sealed.row.seq)?;
    attach(rows, key, sealed)?;
    drop_unnamed(rows, &named)
}

fn unname(rows: &PgRows<'_>, key: Key, seq: Seq) -> Result<Vec<Vec<u8>>> {
    let sql = "WITH gone AS (DELETE FROM stepwell.refs \
         WHERE namespace = $3 AND session = $1 AND seq = $2 RETURNING digest) \
         SELECT DISTINCT digest FROM gone";
    let params = params![key => INT8, number(seq) => INT8, rows.namespace => INT4];
    rows.all(sql, params)?.iter().map(|row| rows.get(row, 0)).collect()
}

fn drop_unnamed(rows: &PgRows<'_>, digests: &[Vec<u8>]) -> Result<()> {
    if digests.is_empty() {
        return Ok(());
    }
    rows.run(
        "DELETE FROM stepwell.blobs b WHERE namespace = $1 AND digest = ANY ($2) AND NOT EXISTS \
         (SELECT 1 FROM stepwell.refs r WHERE r.namespace = b.namespace AND r.digest = b.digest)",
        params![rows.namespace => INT4, digests => BYTEA_ARRAY],
    )
}

/// Removes blobs that were stored a day ago and that no event came to name.
pub(crate) fn sweep(rows: &PgRows<'_>) -> Result<usize> {
    let gone = rows.all(
        "DELETE FROM stepwell.blobs b WHERE namespace = $1 AND touched < $2 AND NOT EXISTS \
         (SELECT 1 FROM stepwell.refs r WHERE r.namespace = b.namespace AND r.digest = b.digest) \
         RETURNING 1",
        params![rows.namespace => INT4, rows.now.minus(GRACE).as_micros() => INT8],
    )?;
    Ok(gone.len())
}
