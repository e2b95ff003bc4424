//! A socket that fails if its peer stops reading.

use std::future::Future;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::{Instant, Sleep, sleep_until};

/// The time limit for the next part of an answer.
const PART_TIME: Duration = Duration::from_secs(15);

/// How much the peer has to read in that time. Even a slow line reads more than four kilobytes a
/// second, and a client that only wants to occupy a connection has to work for it.
const PART: usize = 64 * 1024;

/// A socket that fails if its peer does not read.
#[derive(Debug)]
pub(crate) struct Paced<S> {
    inner: S,
    /// The deadline of a slow client; `None` while the client keeps up.
    late: Option<Pin<Box<Sleep>>>,
    /// How much the client has read since it became slow.
    taken: usize,
    part_time: Duration,
}

impl<S> Paced<S> {
    pub(crate) fn new(inner: S) -> Self {
        Self { inner, late: None, taken: 0, part_time: PART_TIME }
    }

    /// Checks the result of a write. A pending write gets a deadline.
    fn paced<T>(
        &mut self,
        context: &mut Context<'_>,
        written: Poll<io::Result<T>>,
        size: impl FnOnce(&T) -> usize,
    ) -> Poll<io::Result<T>> {
        match written {
            Poll::Ready(Ok(done)) => {
                self.taken += size(&done);
                if self.taken >= PART {
                    self.late = None;
                }
                Poll::Ready(Ok(done))
            }
            Poll::Ready(Err(error)) => Poll::Ready(Err(error)),
            Poll::Pending => {
                let until = Instant::now() + self.part_time;
                if self.late.is_none() {
                    self.taken = 0;
                }
                let late = self.late.get_or_insert_with(|| Box::pin(sleep_until(until)));
                ready!(late.as_mut().poll(context));
                Poll::Ready(Err(io::ErrorKind::TimedOut.into()))
            }
        }
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Paced<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.inner).poll_read(context, buffer)
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Paced<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.inner).poll_write(context, bytes);
        self.paced(context, written, |size| *size)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.inner).poll_write_vectored(context, bytes);
        self.paced(context, written, |size| *size)
    }

    fn is_write_vectored(&self) -> bool {
        self.inner.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let flushed = Pin::new(&mut self.inner).poll_flush(context);
        if matches!(flushed, Poll::Ready(Ok(()))) {
            // Everything was read: an idle stream may stay silent.
            self.late = None;
        }
        self.paced(context, flushed, |()| 0)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let shut = Pin::new(&mut self.inner).poll_shutdown(context);
        self.paced(context, shut, |()| 0)
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

    use super::*;

    fn paced<S>(inner: S) -> Paced<S> {
        Paced { part_time: Duration::from_millis(50), ..Paced::new(inner) }
    }

    #[tokio::test]
    async fn whoever_does_not_read_is_hung_up_on() {
        let (ours, _theirs) = tokio::io::duplex(1024);
        let refused = paced(ours).write_all(&[0; 4096]).await.unwrap_err();
        assert_eq!(refused.kind(), io::ErrorKind::TimedOut);
    }

    #[tokio::test]
    async fn whoever_takes_a_byte_now_and_then_is_too_slow() {
        let (ours, mut theirs) = tokio::io::duplex(16);
        let reads = tokio::spawn(async move {
            while theirs.read_u8().await.is_ok() {
                tokio::time::sleep(Duration::from_millis(2)).await;
            }
        });
        let refused = paced(ours).write_all(&[0; 8192]).await.unwrap_err();
        assert_eq!(refused.kind(), io::ErrorKind::TimedOut);
        reads.await.unwrap();
    }

    #[tokio::test]
    async fn whoever_caught_up_may_wait_for_long() {
        let (ours, mut theirs) = tokio::io::duplex(16);
        let mut ours = paced(ours);
        let mut read = [0; 64];
        for _ in 0..3 {
            let (sent, taken) =
                tokio::join!(ours.write_all(&[0; 64]), theirs.read_exact(&mut read));
            assert!(sent.is_ok() && taken.is_ok());
            ours.flush().await.unwrap();
            tokio::time::sleep(Duration::from_millis(60)).await;
        }
    }

    #[tokio::test]
    async fn whoever_reads_gets_it_all() {
        let (ours, mut theirs) = tokio::io::duplex(1024);
        let sent = tokio::spawn(async move { paced(ours).write_all(&[7; 1 << 20]).await });
        let mut read = Vec::new();
        theirs.read_to_end(&mut read).await.unwrap();
        assert!(sent.await.unwrap().is_ok() && read.len() == 1 << 20);
    }
}
