//! Connections as the pool keeps them, each with the statements that are prepared on it.

use std::cell::RefCell;
use std::collections::HashMap;

use tokio::task::AbortHandle;
use tokio_postgres::types::Type;
use tokio_postgres::{Client, Config, Error, Statement};
use tokio_postgres_rustls::MakeRustlsConnect;

use crate::connect;
use crate::fault::DbError;

/// One connection.
pub(crate) struct PooledConn {
    pub(crate) client: Client,
    /// Ends the task that moves its bytes.
    driver: AbortHandle,
    /// By their texts: what was prepared, and for values of which types.
    statements: RefCell<HashMap<String, (Vec<Type>, Statement)>>,
}

impl PooledConn {
    /// Makes a connection; its bytes are moved by the runtime that this runs within.
    pub(crate) async fn make(config: &Config, tls: &MakeRustlsConnect) -> Result<Self, DbError> {
        let (client, driver) = connect::connect(config, tls).await?;
        let driver = tokio::spawn(async {
            if let Err(error) = driver.await {
                tracing::debug!(error = %crate::fault::said(&error), "connection_ended");
            }
        });
        let driver = driver.abort_handle();
        Ok(Self { client, driver, statements: RefCell::default() })
    }

    /// A statement of one text, prepared once.
    pub(crate) async fn prepared(
        &self,
        sql: &str,
        types: impl Iterator<Item = &Type> + Clone,
    ) -> Result<Statement, Error> {
        if let Some((known, statement)) = self.statements.borrow().get(sql)
            && types.clone().eq(known)
        {
            return Ok(statement.clone());
        }
        let types: Vec<Type> = types.cloned().collect();
        let statement = self.client.prepare_typed(sql, &types).await?;
        self.statements.borrow_mut().insert(sql.to_owned(), (types, statement.clone()));
        Ok(statement)
    }
}

impl Drop for PooledConn {
    /// Nobody waits any more for what is in flight, and it is not cancelled either.
    fn drop(&mut self) {
        self.driver.abort();
    }
}
