//! An MCP server as a child process: started for a run, spoken to through pipes, and ended with it.

use std::io::{self, PipeReader, PipeWriter};
use std::os::unix::process::ExitStatusExt as _;
use std::pin::Pin;
use std::process::{Command, ExitStatus};
use std::sync::Arc;
use std::task::{Context, Poll};
use std::thread;
use std::time::Duration;

use parking_lot::{Mutex, MutexGuard};
use tokio::io::{AsyncRead, AsyncReadExt as _, DuplexStream, ReadBuf};
use tokio::net::unix::pipe;
use tokio::sync::{oneshot, watch};
use tokio::task::JoinHandle;
use tokio::time::timeout;

use super::{LARGEST_MESSAGE, Program, one_line};
use crate::tool::environment::hide_keys;
use crate::tool::supervise::{GRACE, Watched, exit_code, hold_server};
use crate::tool::{Supervisor, ToolEnv};

/// How many of its last bytes on stderr are kept.
const LAST_WORDS: usize = 300;

/// How long the output of an ended server is still read. Only a process that left the server's
/// group can hold the pipe open longer.
pub(super) const DRAIN: Duration = Duration::from_millis(250);

/// How much of a line that is not a message is kept.
const NONSENSE: usize = 80;

/// How long a server may take to end: its own time, the time between SIGTERM and SIGKILL, and some
/// for scheduling.
const GONE: Duration = GRACE.saturating_mul(5);

/// A server's process.
#[derive(Debug)]
pub(super) struct Process {
    /// How it ended, once it did.
    ended: watch::Receiver<Option<String>>,
    words: Arc<Mutex<ServerOutput>>,
    /// Closes when its stderr closes.
    silent: watch::Receiver<()>,
    /// The task that writes to it.
    writing: Mutex<Option<JoinHandle<()>>>,
}

impl Drop for Process {
    /// Without this, writing to a server that does not read would never end.
    fn drop(&mut self) {
        if let Some(writing) = self.writing.get_mut().take() {
            writing.abort();
        }
    }
}

/// Output that is not protocol messages.
#[derive(Debug, Default)]
struct ServerOutput {
    /// The end of its stderr.
    last: Vec<u8>,
    /// The first line of its stdout that is not a message.
    nonsense: Option<String>,
    /// Why its stdout is no longer read.
    deaf: Option<String>,
}

/// The server's output, and the input to it.
pub(super) type Streams = (Ear, DuplexStream);

/// How many bytes may wait to be written to it.
const WAITING: usize = 64 << 10;

impl Process {
    pub(super) fn start(program: &Program, place: &ToolEnv) -> io::Result<(Self, Streams)> {
        let (input, to_it) = io::pipe()?;
        let (from_it, output) = io::pipe()?;
        let (complaints, errors) = io::pipe()?;
        let ends = Ends { input, output, errors };
        let ended = match &place.supervisor {
            Some(supervisor) => supervised(program, supervisor, place, ends)?,
            None => threaded(program, place, ends)?,
        };
        let words = Arc::new(Mutex::new(ServerOutput::default()));
        let (listening, silent) = watch::channel(());
        let listen = listen(receiver(complaints)?, Arc::clone(&words));
        tokio::spawn(async move {
            listen.await;
            drop(listening);
        });
        let ear = Ear { pipe: receiver(from_it)?, words: Arc::clone(&words), line: Line::new() };
        let (mouth, mut said) = tokio::io::duplex(WAITING);
        let mut to_it = pipe::Sender::from_owned_fd(to_it.into())?;
        let writing = tokio::spawn(async move {
            // Fails if the server stops reading; ends if there is nothing more to write.
            let _ = tokio::io::copy(&mut said, &mut to_it).await;
        });
        let writing = Mutex::new(Some(writing));
        Ok((Self { ended, words, silent, writing }, (ear, mouth)))
    }

    /// Completes when the process has ended.
    pub(super) fn ended(&self) -> impl Future<Output = ()> + Send + 'static {
        let mut ended = self.ended.clone();
        async move {
            // If the sender is dropped, the end will never be reported.
            let _ = ended.wait_for(Option::is_some).await;
        }
    }

    /// Closes its input and waits briefly until it has ended.
    pub(super) async fn let_go(&self) {
        let writing = self.writing.lock().take();
        if let Some(mut writing) = writing
            && timeout(GRACE, &mut writing).await.is_err()
        {
            writing.abort();
        }
        let _ = timeout(GONE, self.ended()).await;
    }

    /// Why it does not answer: how it ended and its last output, else `otherwise`.
    pub(super) async fn explain(&self, otherwise: &str) -> String {
        // Its stdout closes slightly before the process is seen to end.
        let _ = timeout(GRACE, self.ended()).await;
        let _ = timeout(DRAIN, self.silent.clone().changed()).await;
        let ended = self.ended.borrow().clone();
        let deaf = self.words().deaf.clone();
        self.quoted(&deaf.or(ended).unwrap_or_else(|| otherwise.to_owned()))
    }

    /// `why`, with the server's last output.
    pub(super) fn quoted(&self, why: &str) -> String {
        let words = self.words();
        let last = one_line(&String::from_utf8_lossy(&words.last));
        match (last.is_empty(), &words.nonsense) {
            (false, _) => format!("{why}; its last words: {last}"),
            (true, Some(line)) => format!("{why}; it wrote a line that is not a message: {line}"),
            (true, None) => why.to_owned(),
        }
    }

    fn words(&self) -> MutexGuard<'_, ServerOutput> {
        self.words.lock()
    }
}

/// The child's ends of its pipes.
struct Ends {
    input: PipeReader,
    output: PipeWriter,
    errors: PipeWriter,
}

type Ended = watch::Receiver<Option<String>>;

/// Starts a supervisor, which starts the server.
fn supervised(
    program: &Program,
    supervisor: &Supervisor,
    place: &ToolEnv,
    ends: Ends,
) -> io::Result<Ended> {
    let rest = program.arguments.iter().map(Into::into).collect();
    let watched = Watched::Server(program.program.clone().into(), rest);
    let mut command = Command::new(&supervisor.program);
    command.args(&supervisor.arguments).args(watched.arguments()).stdin(ends.input);
    surround(&mut command, program, place);
    command.stdout(ends.output).stderr(ends.errors);
    let mut child = tokio::process::Command::from(command).spawn()?;
    let (say, ended) = watch::channel(None);
    tokio::spawn(async move {
        let how = match child.wait().await {
            Ok(status) if status.signal().is_some() => "its supervisor was killed".to_owned(),
            Ok(status) => how_it_ended(status),
            Err(error) => format!("waiting for it failed: {error}"),
        };
        // The receiver may be gone.
        let _ = say.send(Some(how));
    });
    Ok(ended)
}

/// Supervises in a thread. That is as good as a process while this process lives.
fn threaded(program: &Program, place: &ToolEnv, ends: Ends) -> io::Result<Ended> {
    let mut command = Command::new(&program.program);
    command.args(&program.arguments);
    surround(&mut command, program, place);
    command.stdout(ends.output).stderr(ends.errors);
    let (sender, receiver) = oneshot::channel();
    thread::Builder::new().name("server".to_owned()).spawn(move || {
        let _ = sender.send(hold_server(command, ends.input.into()));
    })?;
    let (say, ended) = watch::channel(None);
    tokio::spawn(async move {
        let how = match receiver.await {
            Ok(Ok(status)) => how_it_ended(status),
            Ok(Err(error)) => format!("it could not be started: {error}"),
            Err(_) => "the thread that supervised it panicked".to_owned(),
        };
        let _ = say.send(Some(how));
    });
    Ok(ended)
}

/// Sets the working directory and the environment.
fn surround(command: &mut Command, program: &Program, place: &ToolEnv) {
    command.current_dir(&program.folder);
    hide_keys(command, place);
    command.envs(&program.variables);
}

fn how_it_ended(status: ExitStatus) -> String {
    format!("it ended with exit code {}", exit_code(status))
}

fn receiver(reader: PipeReader) -> io::Result<pipe::Receiver> {
    pipe::Receiver::from_owned_fd(reader.into())
}

/// Reads stderr so that the server never blocks on it, and keeps the last part.
async fn listen(mut pipe: pipe::Receiver, words: Arc<Mutex<ServerOutput>>) {
    let mut buffer = vec![0; 4 << 10];
    while let Ok(len @ 1..) = pipe.read(&mut buffer).await {
        let heard = &buffer[..len];
        tracing::debug!(said = %String::from_utf8_lossy(heard).trim_end(), "a server's stderr");
        let mut words = words.lock();
        words.last.extend_from_slice(heard);
        let excess = words.last.len().saturating_sub(LAST_WORDS);
        words.last.drain(..excess);
    }
}

/// Its stdout. Fails at a message that is too long; the client library would drop it silently.
#[derive(Debug)]
pub(super) struct Ear {
    pipe: pipe::Receiver,
    words: Arc<Mutex<ServerOutput>>,
    line: Line,
}

impl AsyncRead for Ear {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        let polled = Pin::new(&mut self.pipe).poll_read(context, buffer);
        if let Poll::Ready(Ok(())) = polled {
            let this = &mut *self;
            let mut words = this.words.lock();
            for byte in &buffer.filled()[before..] {
                if let Some(nonsense) = this.line.push(*byte) {
                    words.nonsense.get_or_insert(nonsense);
                }
            }
            if this.line.length > LARGEST_MESSAGE {
                let why = format!("it wrote a line of more than {} MiB", LARGEST_MESSAGE >> 20);
                words.deaf.get_or_insert_with(|| why.clone());
                return Poll::Ready(Err(io::Error::other(why)));
            }
        }
        polled
    }
}

/// The line that is being read.
#[derive(Debug)]
struct Line {
    length: usize,
    /// Its first bytes, if it is not a message: messages are objects.
    nonsense: Vec<u8>,
}

impl Line {
    const fn new() -> Self {
        Self { length: 0, nonsense: Vec::new() }
    }

    /// Adds a byte. At the end of a line that is not a message, returns the line.
    fn push(&mut self, byte: u8) -> Option<String> {
        if byte == b'\n' {
            let line = std::mem::replace(self, Self::new());
            let text = one_line(&String::from_utf8_lossy(&line.nonsense));
            return Some(text).filter(|text| !text.is_empty());
        }
        let is_first = self.length == 0;
        self.length += 1;
        let is_nonsense = if is_first { byte != b'{' } else { !self.nonsense.is_empty() };
        if is_nonsense && self.nonsense.len() < NONSENSE {
            self.nonsense.push(byte);
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_message_is_noticed() {
        let mut line = Line::new();
        let mut heard = |text: &str| text.bytes().filter_map(|it| line.push(it)).last();
        assert_eq!(heard("{\"a\": 1}\n\n"), None);
        assert_eq!(heard("Listening on"), None);
        assert_eq!(heard(" port 1\n"), Some("Listening on port 1".to_owned()));
        assert_eq!(heard("{}\n"), None);
        assert_eq!(heard(&format!("{}\n", "x".repeat(999))).map(|it| it.len()), Some(NONSENSE));
    }
}
