//! Connections as the pool keeps them, each with the statements that are prepared on it.

use std::cell::RefCell;
use std::future::Future;
use std::time::Duration;

use deadpool::managed::{self, Metrics, RecycleError, RecycleResult};
use deadpool_postgres::ClientWrapper;
use tokio_postgres::types::Type;
use tokio_postgres::{Config, Error, Statement};
use tokio_postgres_rustls::MakeRustlsConnect;

use crate::conn_driver::ConnDriver;
use crate::connect::{self, Reached};
use crate::fault::DbError;

/// Makes connections for the pool.
pub(crate) struct PooledConns {
    config: Config,
    tls: MakeRustlsConnect,
    /// How long an answer is waited for.
    longest: Duration,
}

impl PooledConns {
    pub(crate) fn new(config: Config, tls: MakeRustlsConnect, longest: Duration) -> Self {
        Self { config, tls, longest }
    }
}

impl managed::Manager for PooledConns {
    /// Boxed: a connection is large, and the pool moves what it hands out.
    type Type = Box<PooledConn>;
    type Error = DbError;

    async fn create(&self) -> Result<Box<PooledConn>, DbError> {
        let Reached { client, driver } = connect::reach(&self.config, &self.tls, self.longest)?;
        // The client ends a task with itself that moves its bytes; here is none.
        let client = ClientWrapper::new(client, tokio::spawn(std::future::ready(())));
        Ok(Box::new(PooledConn { client, driver, hot: RefCell::new(None) }))
    }

    /// One that the server has closed meanwhile is not used again.
    async fn recycle(&self, conn: &mut Box<PooledConn>, _: &Metrics) -> RecycleResult<DbError> {
        match conn.driver.is_alive() {
            true => Ok(()),
            false => Err(RecycleError::message("it was closed")),
        }
    }
}

/// One connection.
pub(crate) struct PooledConn {
    client: ClientWrapper,
    driver: ConnDriver,
    /// The statement that is asked all the time.
    hot: RefCell<Option<(&'static str, Statement)>>,
}

impl PooledConn {
    pub(crate) fn client(&self) -> &ClientWrapper {
        &self.client
    }

    /// The answer of some work with the client; none, if the connection ended.
    pub(crate) fn answer<T>(&self, work: impl Future<Output = T>) -> Option<T> {
        self.driver.answer(work)
    }

    /// A statement of one text, prepared once.
    pub(crate) async fn prepared(
        &self,
        sql: &'static str,
        types: impl Iterator<Item = Type>,
    ) -> Result<Statement, Error> {
        if let Some((text, statement)) = &*self.hot.borrow()
            && std::ptr::eq(*text, sql)
        {
            return Ok(statement.clone());
        }
        let types: Vec<Type> = types.collect();
        let statement = self.client.prepare_typed_cached(sql, &types).await?;
        *self.hot.borrow_mut() = Some((sql, statement.clone()));
        Ok(statement)
    }
}
