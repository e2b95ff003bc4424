//! A connection whose bytes are moved by whoever waits for its answer.
//!
//! The driver would have a task of the runtime do that: a hand-over to send and one to be
//! answered. Here the thread that asks writes to the socket and reads from it itself; the
//! runtime only tells it when there is something to read.

use std::cell::RefCell;
use std::future::{Future, poll_fn};
use std::pin::{Pin, pin};
use std::task::{Context, Poll, Waker};

use deadpool::managed::{self, Metrics, RecycleError, RecycleResult};
use deadpool_postgres::ClientWrapper;
use tokio_postgres::tls::MakeTlsConnect;
use tokio_postgres::types::Type;
use tokio_postgres::{Config, Connection, Error, Socket, Statement};
use tokio_postgres_rustls::MakeRustlsConnect;

type Wire = Connection<Socket, <MakeRustlsConnect as MakeTlsConnect<Socket>>::Stream>;

/// Makes lines for the pool.
pub(crate) struct Lines {
    config: Config,
    tls: MakeRustlsConnect,
}

impl Lines {
    pub(crate) fn new(config: Config, tls: MakeRustlsConnect) -> Self {
        Self { config, tls }
    }
}

impl managed::Manager for Lines {
    /// Boxed: a line is large, and the pool moves what it hands out.
    type Type = Box<Line>;
    type Error = Error;

    async fn create(&self) -> Result<Box<Line>, Error> {
        let (client, wire) = self.config.connect(self.tls.clone()).await?;
        // The client ends a task with itself that moves its bytes; here is none.
        let client = ClientWrapper::new(client, tokio::spawn(std::future::ready(())));
        let (wire, hot) = (RefCell::new(Some(wire)), RefCell::new(None));
        Ok(Box::new(Line { client, wire, hot }))
    }

    /// One that the server has closed meanwhile is not used again.
    async fn recycle(&self, line: &mut Box<Line>, _: &Metrics) -> RecycleResult<Error> {
        line.move_bytes(&mut Context::from_waker(Waker::noop()));
        match line.wire.get_mut() {
            Some(_) if !line.client.is_closed() => Ok(()),
            _ => Err(RecycleError::message("it was closed")),
        }
    }
}

/// One connection.
pub(crate) struct Line {
    client: ClientWrapper,
    /// Gone when it has ended.
    wire: RefCell<Option<Wire>>,
    /// The statement that is asked all the time.
    hot: RefCell<Option<(&'static str, Statement)>>,
}

impl Line {
    pub(crate) fn client(&self) -> &ClientWrapper {
        &self.client
    }

    /// Does some work with the client, and moves its bytes meanwhile.
    pub(crate) async fn drive<T>(&self, work: impl Future<Output = T>) -> T {
        let mut work = pin!(work);
        poll_fn(|context| {
            if let Poll::Ready(answer) = work.as_mut().poll(context) {
                return Poll::Ready(answer);
            }
            self.move_bytes(context);
            work.as_mut().poll(context)
        })
        .await
    }

    /// Moves what can be moved. When the connection ends, whoever waits for it is told so.
    fn move_bytes(&self, context: &mut Context<'_>) {
        let mut wire = self.wire.borrow_mut();
        if let Some(open) = wire.as_mut()
            && let Poll::Ready(ended) = Pin::new(open).poll(context)
        {
            if let Err(error) = ended {
                tracing::debug!(error = %crate::fault::said(&error), "connection_ended");
            }
            *wire = None;
        }
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
