//! Messages as lines over two streams, each on a thread of its own.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::sync::mpsc as blocking;
use std::thread;

use serde_json::Value;
use tokio::sync::mpsc;

/// The longest message that is read: a prompt with a large file in it fits.
pub(crate) const LONGEST_MESSAGE: usize = 24 << 20;

/// How many messages are read ahead.
const READ_AHEAD: usize = 64;

/// A line of the input.
pub(crate) enum Line {
    /// It.
    Whole(Vec<u8>),
    /// It was longer than any message, and is not kept.
    TooLong,
}

/// Where messages to the client go. Sending never waits. Cloning is cheap.
#[derive(Clone, Debug)]
pub(crate) struct Outgoing(blocking::Sender<Option<Vec<u8>>>);

impl Outgoing {
    /// Sends a message. A client that is gone needs none.
    pub(crate) fn send(&self, message: &Value) {
        if let Ok(mut line) = serde_json::to_vec(message) {
            line.push(b'\n');
            let _ = self.0.send(Some(line));
        }
    }

    /// Nothing follows: the writer ends after what was sent before.
    pub(crate) fn close(&self) {
        let _ = self.0.send(None);
    }
}

/// The two streams.
pub(crate) struct Lines {
    /// What comes.
    pub(crate) incoming: mpsc::Receiver<Line>,
    /// Where answers go.
    pub(crate) outgoing: Outgoing,
    writer: thread::JoinHandle<()>,
}

impl Lines {
    pub(crate) fn new(
        input: impl Read + Send + 'static,
        output: impl Write + Send + 'static,
    ) -> io::Result<Self> {
        let (lines, incoming) = mpsc::channel(READ_AHEAD);
        let (outgoing, messages) = blocking::channel();
        let named = |name: &str| thread::Builder::new().name(name.to_owned());
        named("acp-input").spawn(move || read_lines(input, &lines))?;
        let writer = named("acp-output").spawn(move || write_lines(output, &messages))?;
        Ok(Self { incoming, outgoing: Outgoing(outgoing), writer })
    }

    /// Waits until everything that was sent is written.
    pub(crate) fn finish(self) {
        self.outgoing.close();
        // A panic of the writer is its own.
        let _ = self.writer.join();
    }
}

fn read_lines(input: impl Read, lines: &mpsc::Sender<Line>) {
    let mut input = BufReader::new(input);
    loop {
        let mut line = Vec::new();
        let bound = LONGEST_MESSAGE as u64 + 1;
        match input.by_ref().take(bound).read_until(b'\n', &mut line) {
            Ok(0) | Err(_) => return,
            Ok(_) => {}
        }
        let is_whole = line.last() == Some(&b'\n') || line.len() <= LONGEST_MESSAGE;
        let line = match is_whole {
            true => Line::Whole(line),
            false if skip_line(&mut input).is_err() => return,
            false => Line::TooLong,
        };
        if lines.blocking_send(line).is_err() {
            return;
        }
    }
}

/// Reads past the end of a line, and keeps none of it.
fn skip_line(input: &mut impl BufRead) -> io::Result<()> {
    loop {
        let read = input.fill_buf()?;
        if read.is_empty() {
            return Ok(());
        }
        let end = read.iter().position(|byte| *byte == b'\n');
        let length = end.map_or(read.len(), |end| end + 1);
        input.consume(length);
        if end.is_some() {
            return Ok(());
        }
    }
}

fn write_lines(mut output: impl Write, messages: &blocking::Receiver<Option<Vec<u8>>>) {
    while let Ok(Some(line)) = messages.recv() {
        if output.write_all(&line).and_then(|()| output.flush()).is_err() {
            return;
        }
    }
}
