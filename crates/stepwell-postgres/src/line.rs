//! Connections as the pool keeps them, each with the statements that are prepared on it.

use std::cell::RefCell;
use std::future::Future;
use std::time::Duration;

use deadpool::managed::{self, Metrics, RecycleError, RecycleResult};
use deadpool_postgres::ClientWrapper;
use tokio_postgres::types::Type;
use tokio_postgres::{Config, Error, Statement};
use tokio_postgres_rustls::MakeRustlsConnect;

use crate::dial::{self, Reached};
use crate::fault::Trouble;
use crate::wire::Wire;

/// Makes lines for the pool.
pub(crate) struct Lines {
    config: Config,
    tls: MakeRustlsConnect,
    /// How long an answer is waited for.
    longest: Duration,
}

impl Lines {
    pub(crate) fn new(config: Config, tls: MakeRustlsConnect, longest: Duration) -> Self {
        Self { config, tls, longest }
    }
}

impl managed::Manager for Lines {
    /// Boxed: a line is large, and the pool moves what it hands out.
    type Type = Box<Line>;
    type Error = Trouble;

    async fn create(&self) -> Result<Box<Line>, Trouble> {
        let Reached { client, wire } = dial::reach(&self.config, &self.tls, self.longest)?;
        // The client ends a task with itself that moves its bytes; here is none.
        let client = ClientWrapper::new(client, tokio::spawn(std::future::ready(())));
        Ok(Box::new(Line { client, wire, hot: RefCell::new(None) }))
    }

    /// One that the server has closed meanwhile is not used again.
    async fn recycle(&self, line: &mut Box<Line>, _: &Metrics) -> RecycleResult<Trouble> {
        match line.wire.is_alive() {
            true => Ok(()),
            false => Err(RecycleError::message("it was closed")),
        }
    }
}

/// One connection.
pub(crate) struct Line {
    client: ClientWrapper,
    wire: Wire,
    /// The statement that is asked all the time.
    hot: RefCell<Option<(&'static str, Statement)>>,
}

impl Line {
    pub(crate) fn client(&self) -> &ClientWrapper {
        &self.client
    }

    /// The answer of some work with the client; none, if the connection ended.
    pub(crate) fn answer<T>(&self, work: impl Future<Output = T>) -> Option<T> {
        self.wire.answer(work)
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
