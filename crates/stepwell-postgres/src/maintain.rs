//! Keeping the store in order.

use stepwell::backend::{read, remove, write};
use stepwell::model::{Owner, Time};
use stepwell::store::{DiskUse, Indexed, Maintain, Place, Removal, Scrub, Target, Verdict};
use stepwell::{Error, Result, Seq, SessionId};

use crate::engine::Attempt;
use crate::rows::blob;
use crate::search::{Left, Pending};
use crate::store::PostgresStore;
use crate::transport::params;
use crate::{feed, search};

/// How many events wait.
fn count(pending: &[Pending]) -> u64 {
    pending.iter().map(|it| it.events.unsigned_abs()).sum()
}

impl Maintain for PostgresStore {
    fn trash(&self, targets: &[Target]) -> Result<Removal> {
        let alone = Attempt::ALONE;
        let removal =
            self.engine.change(alone, |rows, context, _| remove::trash(rows, context, targets))?;
        removal.taken.iter().for_each(|id| self.engine.told(id));
        Ok(removal)
    }

    fn restore(&self, ids: &[SessionId]) -> Result<Removal> {
        let alone = Attempt::ALONE;
        let removal = self.engine.change(alone, |rows, _, _| remove::restore(rows, ids))?;
        removal.taken.iter().for_each(|id| self.engine.told(id));
        Ok(removal)
    }

    fn purge(&self, targets: &[Target]) -> Result<Removal> {
        let alone = Attempt::ALONE;
        let removal = self.engine.change(alone, |rows, context, _| {
            let removal = remove::purge(rows, context, targets)?;
            if !removal.taken.is_empty() {
                blob::sweep(rows)?;
                feed::forget_removed(rows)?;
            }
            Ok(removal)
        })?;
        removal.taken.iter().for_each(|id| self.engine.told(id));
        Ok(removal)
    }

    fn scrub(&self, scrub: Scrub) -> Result<Seq> {
        let alone = Attempt::ALONE;
        let id = scrub.session.clone();
        let seq = self
            .engine
            .change(alone, |rows, context, _| write::scrub(rows, context, scrub.clone()))?;
        self.engine.told(&id);
        Ok(seq)
    }

    fn disk_use(&self) -> Result<DiskUse> {
        self.engine.glance(|rows| {
            let sql = "SELECT (SELECT coalesce(sum(length(body)), 0)::bigint FROM stepwell.events \
                 WHERE namespace = $1), (SELECT coalesce(sum(stored), 0)::bigint \
                 FROM stepwell.blobs WHERE namespace = $1), \
                 (SELECT coalesce(sum(pg_total_relation_size(c.oid)), 0)::bigint FROM pg_class c \
                 JOIN pg_namespace n ON n.oid = c.relnamespace \
                 WHERE n.nspname = 'stepwell' AND c.relkind = 'r')";
            let row = rows.one(sql, params![rows.namespace => INT4])?;
            let Some(row) = row else { return Ok(DiskUse::default()) };
            let column = |n| rows.get::<i64>(&row, n).map(i64::unsigned_abs);
            Ok(DiskUse { events: column(0)?, blobs: column(1)?, total: column(2)? })
        })
    }

    fn place(&self, id: &SessionId, at: Option<Seq>) -> Result<Option<Place>> {
        self.engine.read(|rows, _| read::place(rows, &read::find(rows, id)?, at))
    }

    fn verify(&self, id: &SessionId) -> Result<Verdict> {
        let verdict =
            self.engine.read(|rows, _| Ok(read::reread(rows, &read::find(rows, id)?)?.verdict))?;
        if let Some(damage) = &verdict.damage {
            self.mark(id, damage);
        }
        Ok(verdict)
    }

    fn repair(&self, id: &SessionId) -> Result<Verdict> {
        let alone = Attempt::ALONE_REPEATED;
        self.engine.change(alone, |rows, _, _| remove::repair(rows, id))
    }

    fn stale_leases(&self) -> Result<Vec<(SessionId, Owner)>> {
        self.engine.read(|rows, context| {
            let sql = "SELECT s.id, l.holder, l.expires, l.epoch FROM stepwell.leases l \
                 JOIN stepwell.sessions s ON s.namespace = l.namespace AND s.key = l.session \
                 WHERE l.namespace = $1 AND l.holder IS NOT NULL";
            let mut stale = Vec::new();
            for row in rows.all(sql, params![rows.namespace => INT4])? {
                let (id, holder): (&str, &[u8]) = (rows.get(&row, 0)?, rows.get(&row, 1)?);
                let expires = Time::from_micros(rows.get(&row, 2)?);
                let epoch = stepwell::model::Epoch::new(rows.get::<i64>(&row, 3)?.unsigned_abs());
                // What cannot be read belongs to a damaged session, which is told of elsewhere.
                if let (Ok(id), Ok(holder)) = (id.parse(), serde_json::from_slice(holder)) {
                    let held = stepwell::store::LeaseInfo { epoch, holder, expires, login: None };
                    if held.is_dead(context.now, context.processes) {
                        stale.push((id, held.holder));
                    }
                }
            }
            Ok(stale)
        })
    }

    fn catch_up(&self, told: &dyn Fn(Indexed)) -> Result<()> {
        let pending = self.engine.glance(search::pending)?;
        // A standby is not waited for: it does not become one that writes.
        if !pending.is_empty() && self.engine.glance(search::is_standby)? {
            let (path, doing) = (self.address().shown().to_owned(), "indexing on a standby");
            return Err(Error::Denied { path, doing });
        }
        let all = count(&pending);
        let mut indexed = Indexed { done: 0, all };
        for batch in search::batches(&pending) {
            told(indexed);
            let once = Attempt::ONCE;
            while self.engine.change(once, |rows, _, _| search::index(rows, batch))? == Left::More {
            }
            indexed.done += count(batch);
        }
        told(Indexed { done: all, all });
        Ok(())
    }

    fn rebuild_search(&self) -> Result<()> {
        let alone = Attempt::ALONE_REPEATED;
        self.engine.change(alone, |rows, _, _| {
            for sql in [
                "DELETE FROM stepwell.docs WHERE namespace = $1",
                "UPDATE stepwell.indexed i SET seq = coalesce(s.base_at, 0) FROM stepwell.sessions s \
                 WHERE s.namespace = $1 AND s.key = i.session AND i.namespace = $1",
                "UPDATE stepwell.heads SET unindexed = true WHERE namespace = $1",
            ] {
                rows.run(sql, params![rows.namespace => INT4])?;
            }
            Ok(())
        })?;
        self.catch_up(&|_| {})
    }
}
