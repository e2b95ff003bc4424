//! Blobs in SQLite: compressed, stored once for each digest, and kept while an event names them.

use std::cell::RefCell;
use std::io;
use std::time::Duration;

use rusqlite::{CachedStatement, OptionalExtension, params};
use zstd::bulk::{Compressor, Decompressor};

use super::sql::SqliteRows;
use crate::error::{Error, Result};
use crate::failpoint::failpoint;
use crate::log::MAX_BLOB_BYTES;
use crate::log::codec::Sealed;
use crate::model::Digest;

/// zstd's level. 3 is its default, and the last one before time grows faster than the savings.
const LEVEL: i32 = 3;

/// How long a blob without an event is kept: its event may be about to be written.
const GRACE: Duration = Duration::from_secs(24 * 60 * 60);

thread_local! {
    /// Reused, because creating one costs more than compressing a short text.
    static COMPRESSOR: RefCell<Option<Compressor<'static>>> = const { RefCell::new(None) };
    static DECOMPRESSOR: RefCell<Option<Decompressor<'static>>> = const { RefCell::new(None) };
}

fn compress(bytes: &[u8]) -> io::Result<Vec<u8>> {
    COMPRESSOR.with_borrow_mut(|kept| {
        let mut compressor = kept.take().map_or_else(|| Compressor::new(LEVEL), Ok)?;
        let done = compressor.compress(bytes)?;
        *kept = Some(compressor);
        Ok(done)
    })
}

fn decompress(data: &[u8], limit: usize) -> io::Result<Vec<u8>> {
    DECOMPRESSOR.with_borrow_mut(|kept| {
        let mut decompressor = kept.take().map_or_else(Decompressor::new, Ok)?;
        let done = decompressor.decompress(data, limit)?;
        *kept = Some(decompressor);
        Ok(done)
    })
}

/// Stores bytes under their digest. If they are stored already, only the time is updated. Damaged
/// bytes are replaced: otherwise every later write under the digest would use them.
pub(super) fn put(rows: &SqliteRows<'_>, digest: &Digest, bytes: &[u8]) -> Result<()> {
    if bytes.len() > MAX_BLOB_BYTES {
        let (size, limit) = (bytes.len() as u64, MAX_BLOB_BYTES as u64);
        return Err(Error::TooLarge { what: format!("blob {digest}"), size, limit });
    }
    match get(rows, digest) {
        Ok(_) => {
            let touch = "UPDATE blobs SET touched = ?2 WHERE digest = ?1";
            rows.run(touch, params![digest.as_bytes().as_slice(), rows.now.as_micros()])?;
            return Ok(());
        }
        Err(Error::NoBlob(_) | Error::DamagedBlob { .. }) => {}
        Err(error) => return Err(error),
    }
    let data = compress(bytes).map_err(|source| Error::Io {
        path: rows.path.to_owned(),
        doing: "compressing a blob",
        source,
    })?;
    rows.run(
        "INSERT INTO blobs (digest, size, touched, data) VALUES (?1, ?2, ?3, ?4) \
         ON CONFLICT (digest) DO UPDATE SET size = excluded.size, touched = excluded.touched, \
         data = excluded.data",
        params![digest.as_bytes().as_slice(), bytes.len(), rows.now.as_micros(), data],
    )?;
    failpoint("blob.after_insert");
    Ok(())
}

/// The bytes of a blob, checked against their digest.
pub(super) fn get(rows: &SqliteRows<'_>, digest: &Digest) -> Result<Vec<u8>> {
    get_by(&mut statement(rows)?, rows, digest)
}

/// The bytes of several blobs, in order, each checked against its digest.
pub(super) fn get_all(rows: &SqliteRows<'_>, digests: &[Digest]) -> Result<Vec<Vec<u8>>> {
    let mut statement = statement(rows)?;
    digests.iter().map(|digest| get_by(&mut statement, rows, digest)).collect()
}

fn statement<'a>(rows: &SqliteRows<'a>) -> Result<CachedStatement<'a>> {
    let sql = "SELECT size, data FROM blobs WHERE digest = ?1";
    rows.conn.prepare_cached(sql).map_err(|error| rows.fault(&error))
}

fn get_by(
    statement: &mut CachedStatement<'_>,
    rows: &SqliteRows<'_>,
    digest: &Digest,
) -> Result<Vec<u8>> {
    let read = |row: &rusqlite::Row<'_>| {
        // Compressed bytes need not be copied.
        Ok(unpacked(digest, row.get(0)?, row.get_ref(1)?.as_blob()?))
    };
    let found = statement.query_row([digest.as_bytes().as_slice()], read).optional();
    found.map_err(|error| rows.fault(&error))?.ok_or(Error::NoBlob(*digest))?
}

fn unpacked(digest: &Digest, size: usize, data: &[u8]) -> Result<Vec<u8>> {
    let damaged = |what: String| Error::DamagedBlob { digest: *digest, what };
    // The size comes from the disk, so it bounds the output and is not trusted for an allocation.
    let limit = size.min(MAX_BLOB_BYTES);
    let bytes = decompress(data, limit).map_err(|error| damaged(error.to_string()))?;
    if digest.matches(&bytes) {
        Ok(bytes)
    } else {
        Err(damaged("its bytes do not match its digest".to_owned()))
    }
}

/// Records which blobs an event names, and stores the texts moved out of it. Returns their stored
/// size.
pub(super) fn attach(rows: &SqliteRows<'_>, pos: i64, sealed: &Sealed<'_>) -> Result<u64> {
    let mut bytes = 0;
    for (digest, text) in &sealed.spill {
        put(rows, digest, text)?;
    }
    for digest in sealed.spill.iter().map(|(digest, _)| digest).chain(&sealed.names) {
        let sql = "SELECT length(data) FROM blobs WHERE digest = ?1";
        let size: Option<u64> = rows.one(sql, [digest.as_bytes().as_slice()], |row| row.get(0))?;
        bytes += size.ok_or(Error::NoBlob(*digest))?;
        let sql = "INSERT OR IGNORE INTO refs (digest, pos) VALUES (?1, ?2)";
        rows.run(sql, params![digest.as_bytes().as_slice(), pos])?;
    }
    Ok(bytes)
}

/// Removes the references of a range of events, and the blobs without any other. Returns the stored
/// size of the blobs they named.
pub(super) fn detach(rows: &SqliteRows<'_>, from: i64, to: i64) -> Result<u64> {
    let sql = "SELECT coalesce(sum(length(b.data)), 0) FROM refs r JOIN blobs b \
         ON b.digest = r.digest WHERE r.pos BETWEEN ?1 AND ?2";
    let bytes = rows.one(sql, [from, to], |row| row.get(0))?.unwrap_or(0);
    let named = unname(rows, from, to)?;
    drop_unnamed(rows, &named)?;
    Ok(bytes)
}

/// Replaces an event's references. Blobs that it named before and still names stay.
pub(super) fn reattach(rows: &SqliteRows<'_>, pos: i64, sealed: &Sealed<'_>) -> Result<()> {
    let named = unname(rows, pos, pos)?;
    attach(rows, pos, sealed)?;
    drop_unnamed(rows, &named)
}

fn unname(rows: &SqliteRows<'_>, from: i64, to: i64) -> Result<Vec<Vec<u8>>> {
    let sql = "SELECT DISTINCT digest FROM refs WHERE pos BETWEEN ?1 AND ?2";
    let named = rows.all(sql, [from, to], |row| row.get(0))?;
    rows.run("DELETE FROM refs WHERE pos BETWEEN ?1 AND ?2", [from, to])?;
    Ok(named)
}

fn drop_unnamed(rows: &SqliteRows<'_>, digests: &[Vec<u8>]) -> Result<()> {
    let sql = "DELETE FROM blobs WHERE digest = ?1 \
         AND NOT EXISTS (SELECT 1 FROM refs WHERE refs.digest = ?1)";
    digests.iter().try_for_each(|digest| rows.run(sql, [digest]).map(drop))
}

/// Removes blobs that no event has named within a day.
pub(super) fn sweep(rows: &SqliteRows<'_>) -> Result<usize> {
    rows.run(
        "DELETE FROM blobs WHERE touched < ?1 \
         AND NOT EXISTS (SELECT 1 FROM refs WHERE refs.digest = blobs.digest)",
        [rows.now.minus(GRACE).as_micros()],
    )
}
