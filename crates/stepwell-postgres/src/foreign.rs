//! Other programs' tables on a server: read in one snapshot, and never written.

use std::pin::pin;
use std::sync::atomic::AtomicI64;

use futures_util::TryStreamExt as _;
use stepwell::{Error, Result};
use tokio_postgres::types::{ToSql, Type};

use crate::address::Address;
use crate::transport::{Conn, Patience, Pool, TimeSource, params};

/// What a server holds that is not Stepwell's.
pub struct ForeignTables {
    // Dropped first: it belongs to the pool.
    conn: Conn,
    pool: Pool,
}

impl std::fmt::Debug for ForeignTables {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("ForeignTables").field(&self.pool).finish()
    }
}

impl ForeignTables {
    /// Reaches a server. All that is read is as it is there now.
    pub fn open(address: Address) -> Result<Self> {
        let mut patience = Patience::new(address.opening);
        let pool = Pool::new(address, TimeSource::Server(AtomicI64::new(0)), None)?;
        let conn = pool.connect(&mut patience).map_err(|met| met.on_opening(pool.path()))?;
        let begin = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY";
        conn.run(begin).map_err(|met| met.on_opening(pool.path()))?;
        Ok(Self { conn, pool })
    }

    /// The columns of a table; none, if there is no such table where the server looks for names.
    pub fn columns(&self, table: &str) -> Result<Vec<String>> {
        let sql = "SELECT attname::text FROM pg_attribute WHERE attrelid = to_regclass($1) \
                   AND attnum > 0 AND NOT attisdropped ORDER BY attnum";
        let rows = self.conn.query(sql, params![table => TEXT]);
        let rows = rows.map_err(|met| met.into_error(self.pool.path(), READING))?;
        Ok(rows.iter().map(|row| row.get(0)).collect())
    }

    /// Tells each row of an answer whose columns are all bytes, as it comes.
    pub fn each_row<E: From<Error>>(
        &self,
        sql: &str,
        mut each: impl FnMut(&[Option<&[u8]>]) -> Result<(), E>,
    ) -> Result<(), E> {
        let none: [(&(dyn ToSql + Sync), Type); 0] = [];
        let mut stopped = Ok(());
        let read = self.conn.answer(async {
            let rows = self.conn.client().query_typed_raw(sql, none).await?;
            let mut rows = pin!(rows);
            while let Some(row) = rows.try_next().await? {
                let cells =
                    (0..row.len()).map(|n| row.try_get(n)).collect::<Result<Vec<_>, _>>()?;
                stopped = each(&cells);
                if stopped.is_err() {
                    break;
                }
            }
            Ok(())
        });
        stopped?;
        Ok(read.map_err(|met| met.into_error(self.pool.path(), READING))?)
    }
}

const READING: &str = "reading another program's tables";
