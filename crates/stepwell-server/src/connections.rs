//! Limits on connections: their number, the size of request heads, and their time.
//!
//! A slow or idle client cannot block the server. A client that does not read its answer is
//! disconnected. When all connections are in use, the oldest one without a token makes room for a
//! new one.

mod paced;
mod slots;

use std::future::Future;
use std::net::{SocketAddr, TcpListener};
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio_rustls::TlsAcceptor;

use paced::Paced;
pub(crate) use slots::Peer;
use slots::{Slot, Slots};

/// The most open connections.
const MOST: usize = 256;

/// The largest head of a request, in bytes.
const HEAD: usize = 64 * 1024;

/// The time limit for a request's head, and for the TLS handshake.
const HEAD_TIME: Duration = Duration::from_secs(10);

/// Serves connections until the server stops. Pending requests are still answered.
pub(crate) async fn serve(
    listeners: Vec<TcpListener>,
    router: Router,
    tls: Option<Arc<rustls::ServerConfig>>,
    shutdown: watch::Receiver<bool>,
) -> std::io::Result<()> {
    let slots = Slots::new(MOST);
    let acceptor = tls.map(TlsAcceptor::from);
    let mut accepting = JoinSet::new();
    for listener in listeners {
        listener.set_nonblocking(true)?;
        let listener = tokio::net::TcpListener::from_std(listener)?;
        let (router, slots, acceptor) = (router.clone(), slots.clone(), acceptor.clone());
        let mut shutdown = shutdown.clone();
        accepting.spawn(async move {
            let mut open = JoinSet::new();
            loop {
                let accepted = tokio::select! {
                    accepted = listener.accept() => accepted,
                    () = asked(&mut shutdown) => break,
                };
                // A connection that closed at once does not stop the server.
                let Ok((stream, peer)) = accepted else { continue };
                let slot = tokio::select! {
                    slot = slots.acquire(peer) => slot,
                    () = asked(&mut shutdown) => break,
                };
                let (router, acceptor, stop) = (router.clone(), acceptor.clone(), shutdown.clone());
                open.spawn(hold(slot, stream, acceptor, router, stop));
                while open.try_join_next().is_some() {}
            }
            open.join_all().await;
        });
    }
    accepting.join_all().await;
    Ok(())
}

/// Serves a connection until it ends, or has to make room for another.
async fn hold(
    slot: Slot,
    stream: TcpStream,
    acceptor: Option<TlsAcceptor>,
    router: Router,
    stop: watch::Receiver<bool>,
) {
    // Otherwise a short piece waits for the acknowledgement of the one before, for up to 40 ms. A
    // failure only costs time.
    let _ = stream.set_nodelay(true);
    let router = router.layer(axum::Extension(slot.peer()));
    let stream = Paced::new(stream);
    let answered = async {
        match acceptor {
            None => answer(stream, router, stop).await,
            Some(acceptor) => {
                let shaken = tokio::time::timeout(HEAD_TIME, acceptor.accept(stream));
                if let Ok(Ok(stream)) = shaken.await {
                    answer(stream, router, stop).await;
                }
            }
        }
    };
    tokio::select! {
        () = answered => {}
        () = slot.is_needed() => {}
    }
}

async fn answer(
    stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static,
    router: Router,
    stop: watch::Receiver<bool>,
) {
    answer_within(HEAD_TIME, stream, router, stop).await;
}

async fn answer_within(
    head_time: Duration,
    stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static,
    router: Router,
    mut stop: watch::Receiver<bool>,
) {
    let service = TowerToHyperService::new(router);
    let connection = http1::Builder::new()
        .max_buf_size(HEAD)
        .timer(TokioTimer::new())
        .header_read_timeout(head_time)
        .serve_connection(TokioIo::new(stream), service);
    tokio::pin!(connection);
    tokio::select! {
        // Errors of a client's connection are ignored.
        _ = connection.as_mut() => {}
        () = asked(&mut stop) => {
            connection.as_mut().graceful_shutdown();
            let _ = tokio::time::timeout(Duration::from_secs(2), connection).await;
        }
    }
}

/// Waits for the request to stop.
async fn asked(stop: &mut watch::Receiver<bool>) {
    // If the sender is gone, the server cannot be stopped this way, and continues.
    if stop.wait_for(|stop| *stop).await.map(drop).is_err() {
        std::future::pending::<()>().await;
    }
}

/// Is this a loopback address?
pub(crate) fn is_local(address: SocketAddr) -> bool {
    address.ip().is_loopback()
}

/// The output of a future, unless it misses the deadline.
pub(crate) async fn in_time<T>(limit: Duration, work: impl Future<Output = T>) -> Option<T> {
    tokio::time::timeout(limit, work).await.ok()
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

    use super::*;

    #[tokio::test]
    async fn whoever_does_not_come_to_an_end_with_a_head_is_hung_up_on() {
        let (mut client, server) = tokio::io::duplex(1024);
        let router = Router::new().route("/", axum::routing::get(|| async { "there" }));
        let (_stop, stopped) = watch::channel(false);
        let head_time = Duration::from_millis(50);
        let served = tokio::spawn(answer_within(head_time, server, router, stopped));
        let request = "GET / HTTP/1.1\r\nhost: localhost\r\n\r\n";
        client.write_all(request.as_bytes()).await.unwrap();
        let mut answer = [0; 8];
        client.read_exact(&mut answer).await.unwrap();
        assert_eq!(&answer, b"HTTP/1.1");
        // The next request never ends, although it makes progress.
        let slow = async {
            // On a slow machine the server may have disconnected already.
            let _ = client.write_all(b"GET / HTTP/1.1\r\n").await;
            while client.write_all(b"x: y\r\n").await.is_ok() {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        };
        in_time(Duration::from_secs(60), slow).await.expect("it waits for ever");
        served.await.unwrap();
    }
}
