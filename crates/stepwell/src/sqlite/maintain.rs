//! Maintenance of the store.

use std::path::{Path, PathBuf};

use super::{SqliteStore, blob, feed, file, search, sqlite_error};
use crate::error::Result;
use crate::failpoint::failpoint;
use crate::model::{Owner, Seq, SessionId};
use crate::store::{
    DiskUse, Indexed, Maintain, Place, Removal, Scrub, Target, Verdict, read, remove, write,
};

impl Maintain for SqliteStore {
    fn trash(&self, targets: &[Target]) -> Result<Removal> {
        let targets = targets.to_vec();
        self.writer()?.submit(move |rows, world| remove::trash(rows, world, &targets))
    }

    fn restore(&self, ids: &[SessionId]) -> Result<Removal> {
        let ids = ids.to_vec();
        self.writer()?.submit(move |rows, _| remove::restore(rows, &ids))
    }

    fn purge(&self, targets: &[Target]) -> Result<Removal> {
        let targets = targets.to_vec();
        let removal = self.writer()?.submit(move |rows, world| {
            let removal = remove::purge(rows, world, &targets)?;
            if !removal.taken.is_empty() {
                blob::sweep(rows)?;
                feed::forget_removed(rows)?;
                search::compact(rows)?;
            }
            failpoint("purge.before_commit");
            Ok(removal)
        })?;
        failpoint("purge.after_commit");
        // The log holds the erased data until it is copied and emptied.
        self.checkpoint();
        Ok(removal)
    }

    fn scrub(&self, scrub: Scrub) -> Result<Seq> {
        let seq = self.writer()?.submit(move |rows, world| {
            let seq = write::scrub(rows, world, scrub)?;
            search::compact(rows)?;
            Ok(seq)
        })?;
        self.checkpoint();
        Ok(seq)
    }

    fn disk_use(&self) -> Result<DiskUse> {
        let mut used = self.read(|rows, _| {
            let number = |sql| rows.one(sql, [], |row| row.get(0)).map(Option::unwrap_or_default);
            Ok(DiskUse {
                events: number("SELECT coalesce(sum(length(CAST(body AS BLOB))), 0) FROM events")?,
                blobs: number("SELECT coalesce(sum(length(data)), 0) FROM blobs")?,
                total: number(
                    "SELECT page_count * page_size FROM pragma_page_count, pragma_page_size",
                )?,
            })
        })?;
        for suffix in ["-wal", "-shm"] {
            let mut name = self.path.as_os_str().to_owned();
            name.push(suffix);
            used.total += std::fs::metadata(PathBuf::from(name)).map_or(0, |meta| meta.len());
        }
        Ok(used)
    }

    fn place(&self, id: &SessionId, at: Option<Seq>) -> Result<Option<Place>> {
        self.read(|rows, _| read::place(rows, &read::find(rows, id)?, at))
    }

    fn verify(&self, id: &SessionId) -> Result<Verdict> {
        let verdict =
            self.read(|rows, _| Ok(read::reread(rows, &read::find(rows, id)?)?.verdict))?;
        if let Some(damage) = &verdict.damage {
            self.mark(id, damage);
        }
        Ok(verdict)
    }

    fn repair(&self, id: &SessionId) -> Result<Verdict> {
        let id = id.clone();
        self.writer()?.submit(move |rows, _| remove::repair(rows, &id))
    }

    fn stale_leases(&self) -> Result<Vec<(SessionId, Owner)>> {
        let found = self.read(|rows, _| {
            let sql = "SELECT s.id, l.holder FROM leases l JOIN sessions s ON s.key = l.session \
                       WHERE l.holder IS NOT NULL AND NOT alive(l.holder, l.expires)";
            rows.all(sql, [], |row| Ok((row.get::<_, String>(0)?, row.get::<_, String>(1)?)))
        })?;
        // An unreadable row belongs to a damaged session, which is reported elsewhere.
        let read = |(id, holder): (String, String)| {
            Some((id.parse().ok()?, serde_json::from_str(&holder).ok()?))
        };
        Ok(found.into_iter().filter_map(read).collect())
    }

    fn integrity(&self) -> Result<Vec<String>> {
        let mut found = self.read(|rows, _| {
            rows.all("PRAGMA quick_check(100)", [], |row| row.get::<_, String>(0))
        })?;
        found.retain(|line| line != "ok");
        if self.writer.is_some()
            && let Err(error) = self.writer()?.submit(|rows, _| search::check(rows))
        {
            found.push(error.to_string());
        }
        let mode = file::mode(&self.path).unwrap_or(0o600);
        if mode & 0o077 != 0 {
            found.push(format!("others can read it: its mode is {mode:03o}, not 600"));
        }
        Ok(found)
    }

    fn catch_up(&self, _told: &dyn Fn(Indexed)) -> Result<()> {
        loop {
            let pending = self.read(|rows, _| search::pending(rows))?;
            if pending.is_empty() {
                return Ok(());
            }
            for chunk in search::chunks(pending) {
                self.writer()?.submit(move |rows, _| {
                    search::index(rows, &chunk)?;
                    failpoint("search.before_commit");
                    Ok(())
                })?;
                failpoint("search.after_commit");
            }
        }
    }

    fn rebuild_search(&self) -> Result<()> {
        self.writer()?.submit(|rows, _| search::reset(rows))?;
        self.catch_up(&|_| {})
    }

    fn shrink(&self) -> Result<()> {
        self.sweep_blobs()?;
        let vacuumed = match &self.writer {
            Some(pipeline) => pipeline.between(|conn| conn.execute_batch("VACUUM")),
            None => Ok(()),
        };
        self.checkpoint();
        vacuumed.map_err(|error| sqlite_error(&self.path, "returning free space", &error))
    }

    fn backup(&self, to: &Path) -> Result<()> {
        self.readers.with(self, |conn| file::copy(conn, &self.path, to))
    }

    fn close(&self) -> Result<()> {
        // The next search indexes what is not indexed yet.
        self.checkpoint();
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sessions::{Deps, Stepwell};
    use crate::sqlite::SqliteOptions;

    #[test]
    fn a_failed_shrink_is_reported_and_loses_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let store = SqliteStore::open_with(folder.path(), SqliteOptions::default()).unwrap();
        let store = std::sync::Arc::new(store);
        let well = Stepwell::with(std::sync::Arc::clone(&store) as _, Deps::default());
        let id = well.create(well.draft("a task")).unwrap().id().clone();
        assert!(store.shrink().is_ok());
        // `VACUUM` attaches a database, and SQLite's limit for those is used up here.
        store.writer().unwrap().between(|conn| {
            for n in 0..10 {
                conn.execute_batch(&format!("ATTACH ':memory:' AS taken_{n}")).unwrap();
            }
        });
        let error = store.shrink().unwrap_err();
        assert!(error.to_string().contains("returning free space"), "{error}");
        assert!(well.info(&id).is_ok());
    }
}
