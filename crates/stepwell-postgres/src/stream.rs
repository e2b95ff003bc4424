//! A socket that is read only by a thread that may wait for it.
//!
//! The driver asks for bytes whenever it runs, and wants to be told when there are some.
//! Here a thread waits for its own answer, so it is the system that wakes it, and nobody
//! in between: reading waits if it has leave to, and otherwise says that there is nothing.

use std::io::{self, Read as _, Write as _};
use std::net::{Shutdown, TcpStream};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// The most that is read at once: answers are short, and the buffer is cleared first.
const READ: usize = 16 << 10;

/// A connected socket, as the driver sees it.
pub(crate) struct Stream(Arc<Socket>);

/// A connected socket, as the one who waits for its answers sees it.
pub(crate) struct Socket {
    transport: Transport,
    /// May reading wait, once?
    leave: AtomicBool,
}

enum Transport {
    Tcp(TcpStream),
    Unix(UnixStream),
}

impl Socket {
    /// A socket that waits for so long at most, in either direction.
    pub(crate) fn tcp(stream: TcpStream, longest: Duration) -> io::Result<Arc<Self>> {
        stream.set_nodelay(true)?;
        Self::new(Transport::Tcp(stream), longest)
    }

    /// The same of a path.
    pub(crate) fn unix(stream: UnixStream, longest: Duration) -> io::Result<Arc<Self>> {
        Self::new(Transport::Unix(stream), longest)
    }

    fn new(transport: Transport, longest: Duration) -> io::Result<Arc<Self>> {
        let socket = Self { transport, leave: AtomicBool::new(false) };
        socket.wait_at_most(longest)?;
        Ok(Arc::new(socket))
    }

    /// Has it wait for so long at most from now on, in either direction.
    pub(crate) fn wait_at_most(&self, longest: Duration) -> io::Result<()> {
        let longest = Some(longest);
        match &self.transport {
            Transport::Tcp(stream) => {
                stream.set_read_timeout(longest).and_then(|()| stream.set_write_timeout(longest))
            }
            Transport::Unix(stream) => {
                stream.set_read_timeout(longest).and_then(|()| stream.set_write_timeout(longest))
            }
        }
    }

    /// What the driver takes.
    pub(crate) fn stream(self: &Arc<Self>) -> Stream {
        Stream(Arc::clone(self))
    }

    /// Does something that may wait for bytes once, and then goes on without. Whoever asks
    /// must have sent all that the other side waits for. Were bytes asked for?
    pub(crate) fn waiting<T>(&self, work: impl FnOnce() -> T) -> (T, bool) {
        self.leave.store(true, Ordering::Relaxed);
        let done = work();
        (done, !self.leave.swap(false, Ordering::Relaxed))
    }

    /// Would reading answer at once? So it is when the other side is gone, too.
    pub(crate) fn has_news(&self) -> bool {
        let at_once = Timespec { tv_sec: 0, tv_nsec: 0 };
        let mut asked = [PollFd::new(self, PollFlags::IN)];
        loop {
            match poll(&mut asked, Some(&at_once)) {
                // A signal came between: nothing is known yet.
                Err(Errno::INTR) => {}
                found => return !matches!(found, Ok(0)),
            }
        }
    }
}

impl AsFd for Socket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        match &self.transport {
            Transport::Tcp(stream) => stream.as_fd(),
            Transport::Unix(stream) => stream.as_fd(),
        }
    }
}

/// Does it again when a signal came between, and names a wait that was too long.
fn waited<T>(mut work: impl FnMut() -> io::Result<T>) -> io::Result<T> {
    loop {
        match work() {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                return Err(io::Error::new(io::ErrorKind::TimedOut, "no answer in time"));
            }
            done => return done,
        }
    }
}

impl AsyncRead for Stream {
    fn poll_read(
        self: Pin<&mut Self>,
        _: &mut Context<'_>,
        into: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        if !self.0.leave.swap(false, Ordering::Relaxed) {
            return Poll::Pending;
        }
        let room = into.initialize_unfilled_to(into.remaining().min(READ));
        let read = waited(|| match &self.0.transport {
            Transport::Tcp(stream) => (&mut &*stream).read(room),
            Transport::Unix(stream) => (&mut &*stream).read(room),
        })?;
        into.advance(read);
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for Stream {
    fn poll_write(
        self: Pin<&mut Self>,
        _: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Poll::Ready(waited(|| match &self.0.transport {
            Transport::Tcp(stream) => (&mut &*stream).write(bytes),
            Transport::Unix(stream) => (&mut &*stream).write(bytes),
        }))
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(match &self.0.transport {
            Transport::Tcp(stream) => stream.shutdown(Shutdown::Write),
            Transport::Unix(stream) => stream.shutdown(Shutdown::Write),
        })
    }
}
