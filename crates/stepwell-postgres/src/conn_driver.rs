//! A connection whose bytes are moved by whoever waits for its answer.
//!
//! The driver would have a task of a runtime do that: a hand-over to send, one to be
//! answered, and a thread that watches the sockets. Here the thread that asks writes to
//! the socket and waits at it, and the system wakes it when the answer is there.

use std::cell::RefCell;
use std::future::Future;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context, Poll};

use tokio_postgres::Connection;
use tokio_postgres::tls::MakeTlsConnect;
use tokio_postgres_rustls::MakeRustlsConnect;

use crate::stream::{Socket, Stream};
use crate::wait::ThreadWaker;

/// The driver's half that moves bytes.
pub(crate) type Mover = Connection<Stream, <MakeRustlsConnect as MakeTlsConnect<Stream>>::Stream>;

/// A connection's bytes.
pub(crate) struct ConnDriver {
    /// Gone when the connection has ended.
    mover: RefCell<Option<Mover>>,
    socket: Arc<Socket>,
}

impl ConnDriver {
    /// A connection whose two sides have greeted each other.
    pub(crate) fn new(mover: Mover, socket: Arc<Socket>) -> Self {
        Self { mover: RefCell::new(Some(mover)), socket }
    }

    /// The answer of some work with the connection's client; none, if the connection ended.
    pub(crate) fn answer<T>(&self, work: impl Future<Output = T>) -> Option<T> {
        let mut work = pin!(work);
        ThreadWaker::with(|bell, context| {
            loop {
                if let Poll::Ready(answer) = work.as_mut().poll(context) {
                    return Some(answer);
                }
                if !self.is_open() {
                    return None;
                }
                // What the work asked for is sent now, and what came before is handed to it.
                bell.hush();
                self.move_bytes(context);
                if self.is_open() && !bell.has_rung() {
                    self.socket.waiting(|| self.move_bytes(context));
                }
            }
        })
    }

    /// Is the connection still one, as far as is known here without asking?
    pub(crate) fn is_alive(&self) -> bool {
        // Something may be said before the end.
        while self.is_open() && self.socket.has_news() {
            ThreadWaker::with(|_, context| self.socket.waiting(|| self.move_bytes(context)));
        }
        self.is_open()
    }

    fn is_open(&self) -> bool {
        self.mover.borrow().is_some()
    }

    /// Moves what can be moved. When the connection ends, whoever waits for it is told so.
    fn move_bytes(&self, context: &mut Context<'_>) {
        let mut mover = self.mover.borrow_mut();
        if let Some(open) = mover.as_mut()
            && let Poll::Ready(ended) = Pin::new(open).poll(context)
        {
            if let Err(error) = ended {
                tracing::debug!(error = %crate::fault::said(&error), "connection_ended");
            }
            *mover = None;
        }
    }
}
