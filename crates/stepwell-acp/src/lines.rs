//! Messages as lines over two streams, each on a thread of its own.

use std::io::{self, Read, Write};
use std::ops::ControlFlow;
use std::sync::mpsc as blocking;
use std::thread;
use std::time::Duration;

use serde_json::Value;
use stepwell::log::Redactor;
use stepwell_wire::{MessageLine, read_messages};
use tokio::sync::mpsc;

/// How many messages are read ahead.
const READ_AHEAD: usize = 64;

/// How long the client has to read what is left when it goes.
const LAST_WORDS: Duration = Duration::from_secs(2);

/// Where messages to the client go: the only way out, and secrets do not take it. What sessions
/// hold that were imported was never redacted. Sending never waits. Cloning is cheap.
#[derive(Clone, Debug)]
pub(crate) struct Outgoing {
    lines: blocking::Sender<Option<Vec<u8>>>,
    redactor: Redactor,
}

impl Outgoing {
    /// Sends a message without the secrets in it. A client that is gone needs none.
    pub(crate) fn send(&self, message: &Value) {
        let line = message.to_string();
        let mut line = self.redactor.redact_json(&line).unwrap_or(line);
        line.push('\n');
        let _ = self.lines.send(Some(line.into_bytes()));
    }

    /// Nothing follows: the writer ends after what was sent before.
    pub(crate) fn close(&self) {
        let _ = self.lines.send(None);
    }
}

/// The two streams.
pub(crate) struct Lines {
    /// What comes.
    pub(crate) incoming: mpsc::Receiver<MessageLine>,
    /// Where answers go.
    pub(crate) outgoing: Outgoing,
    /// Ends when the writer has.
    written: blocking::Receiver<()>,
}

impl Lines {
    pub(crate) fn new(
        input: impl Read + Send + 'static,
        output: impl Write + Send + 'static,
        redactor: Redactor,
    ) -> io::Result<Self> {
        let (lines, incoming) = mpsc::channel(READ_AHEAD);
        let (outgoing, messages) = blocking::channel();
        let named = |name: &str| thread::Builder::new().name(name.to_owned());
        named("acp-input").spawn(move || {
            read_messages(input, |line| match lines.blocking_send(line) {
                Ok(()) => ControlFlow::Continue(()),
                Err(_) => ControlFlow::Break(()),
            });
        })?;
        let (writing, written) = blocking::channel();
        named("acp-output").spawn(move || {
            let _writing: blocking::Sender<()> = writing;
            write_lines(output, &messages);
        })?;
        Ok(Self { incoming, outgoing: Outgoing { lines: outgoing, redactor }, written })
    }

    /// Waits until everything that was sent is written, unless the client reads nothing any more.
    pub(crate) fn finish(self) {
        self.outgoing.close();
        // Nothing is ever sent: the channel ends with the writer.
        let _ = self.written.recv_timeout(LAST_WORDS);
    }
}

fn write_lines(mut output: impl Write, messages: &blocking::Receiver<Option<Vec<u8>>>) {
    while let Ok(Some(line)) = messages.recv() {
        if output.write_all(&line).and_then(|()| output.flush()).is_err() {
            return;
        }
    }
}
