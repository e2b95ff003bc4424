//! Connections as the pool keeps them, each with the statements that are prepared on it.

use std::cell::RefCell;
use std::collections::HashMap;
use std::future::poll_fn;
use std::pin::pin;
use std::task::{Context, Poll, Waker};

use tokio_postgres::tls::MakeTlsConnect;
use tokio_postgres::types::Type;
use tokio_postgres::{Client, Config, Connection, Error, Socket, Statement};
use tokio_postgres_rustls::MakeRustlsConnect;

use super::remembered::Facts;

/// The driver's half of a connection that moves its bytes.
pub(crate) type Driver = Connection<Socket, <MakeRustlsConnect as MakeTlsConnect<Socket>>::Stream>;

/// The way to one server.
#[derive(Clone, Debug)]
pub(crate) struct Way {
    /// The host with its port.
    pub(crate) shown: String,
    pub(super) config: Config,
}

/// One connection.
pub(crate) struct PooledConn {
    pub(crate) client: Client,
    /// What moves its bytes, when it is asked to; gone once the connection has ended.
    driver: RefCell<Option<Driver>>,
    /// By their texts: what was prepared, and for values of which types.
    statements: RefCell<HashMap<String, (Vec<Type>, Statement)>>,
    /// Where it leads.
    pub(super) way: Way,
    /// What the server there said of itself.
    pub(super) facts: Option<Facts>,
}

impl PooledConn {
    pub(super) fn new(client: Client, driver: Driver, way: Way) -> Self {
        let (driver, statements) = (RefCell::new(Some(driver)), RefCell::default());
        Self { client, driver, statements, way, facts: None }
    }

    /// Is it still open, as far as can be told without asking the server?
    pub(crate) fn is_open(&self) -> bool {
        self.move_bytes(&mut Context::from_waker(Waker::noop()));
        !self.client.is_closed()
    }

    /// Does some work with the client. Whoever polls this moves the bytes too: a question goes out
    /// and its answer comes in without another thread between.
    pub(crate) async fn while_moving<T>(&self, work: impl Future<Output = T>) -> T {
        let mut work = pin!(work);
        let mut asked = false;
        poll_fn(|context| {
            if !asked {
                asked = true;
                if let Poll::Ready(done) = work.as_mut().poll(context) {
                    return Poll::Ready(done);
                }
            }
            self.move_bytes(context);
            work.as_mut().poll(context)
        })
        .await
    }

    /// Moves the bytes that can be moved now, and has the context's waker told of more.
    fn move_bytes(&self, context: &mut Context<'_>) {
        let mut driver = self.driver.borrow_mut();
        while let Some(open) = driver.as_mut() {
            match open.poll_message(context) {
                Poll::Pending => return,
                // A notice, which nobody asked for.
                Poll::Ready(Some(Ok(_))) => {}
                Poll::Ready(Some(Err(error))) => {
                    tracing::debug!(error = %crate::fault::said(&error), "connection_ended");
                    *driver = None;
                }
                Poll::Ready(None) => *driver = None,
            }
        }
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
