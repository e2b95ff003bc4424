//! Messages as lines over two streams, such as stdin and stdout.
//!
//! The library's own transport answers a malformed request without its id, so that the client waits
//! for ever, and drops pending answers when the input ends. This transport answers each request
//! that has an id.

use std::collections::HashSet;
use std::io::{self, Read, Write};
use std::ops::ControlFlow;
use std::sync::{Arc, mpsc as blocking};
use std::thread;
use std::time::Duration;

use parking_lot::Mutex;
use rmcp::RoleServer;
use rmcp::model::{
    ClientJsonRpcMessage, ErrorData, JsonRpcMessage, RequestId, ServerJsonRpcMessage,
};
use rmcp::transport::Transport;
use serde_json::Value;
use stepwell_wire::{LONGEST_MESSAGE, MessageLine, read_messages, request_id};
use tokio::sync::{Notify, mpsc, oneshot, watch};
use tokio::time::timeout;

/// How many messages are read ahead.
const READ_AHEAD: usize = 16;

/// How long pending answers may take after the input ended. A call that waits for a busy store
/// takes up to five seconds.
const DRAIN: Duration = Duration::from_secs(10);

/// How long the client then has to read the answers.
const LAST_WORDS: Duration = Duration::from_secs(2);

/// Messages as lines over two streams.
pub(crate) struct Lines {
    incoming: mpsc::Receiver<MessageLine>,
    outgoing: blocking::Sender<Outgoing>,
    unanswered: Arc<Unanswered>,
    /// Has the connection ended?
    over: watch::Sender<bool>,
    /// Was there a request yet? Earlier messages have no meaning.
    begun: bool,
}

struct Outgoing {
    line: Vec<u8>,
    written: Option<oneshot::Sender<io::Result<()>>>,
}

/// Requests without an answer so far.
#[derive(Debug, Default)]
struct Unanswered {
    ids: Mutex<HashSet<RequestId>>,
    fewer: Notify,
}

impl Unanswered {
    fn add(&self, id: RequestId) {
        self.ids.lock().insert(id);
    }

    fn remove(&self, id: &RequestId) {
        self.ids.lock().remove(id);
        self.fewer.notify_one();
    }

    async fn none_left(&self) {
        while !self.ids.lock().is_empty() {
            self.fewer.notified().await;
        }
    }
}

impl Lines {
    /// Reads and writes on separate threads.
    pub(crate) fn new(
        input: impl Read + Send + 'static,
        output: impl Write + Send + 'static,
    ) -> io::Result<Self> {
        let (lines, incoming) = mpsc::channel(READ_AHEAD);
        let (outgoing, answers) = blocking::channel();
        let named = |name: &str| thread::Builder::new().name(name.to_owned());
        named("mcp-input").spawn(move || {
            read_messages(input, |line| match lines.blocking_send(line) {
                Ok(()) => ControlFlow::Continue(()),
                Err(_) => ControlFlow::Break(()),
            });
        })?;
        named("mcp-output").spawn(move || write_lines(output, &answers))?;
        let (unanswered, over) = (Arc::default(), watch::Sender::new(false));
        Ok(Self { incoming, outgoing, unanswered, over, begun: false })
    }

    /// Waits until all answers are written.
    async fn written(&self) {
        let (written, done) = oneshot::channel();
        if self.outgoing.send(Outgoing { line: Vec::new(), written: Some(written) }).is_ok() {
            // If the writer is gone, nothing more is written.
            let _ = done.await;
        }
    }

    fn refuse(&self, id: Option<RequestId>, error: ErrorData) {
        let message = ServerJsonRpcMessage::error(error, id);
        let Ok(mut line) = serde_json::to_vec(&message) else { return };
        line.push(b'\n');
        // If the client is gone, it needs no answer.
        let _ = self.outgoing.send(Outgoing { line, written: None });
    }

    /// Parses a line. Returns a message for the server, if it is one.
    fn read_line(&mut self, line: &[u8]) -> Option<ClientJsonRpcMessage> {
        let line = line.strip_prefix(b"\xef\xbb\xbf").unwrap_or(line).trim_ascii();
        if line.is_empty() {
            return None;
        }
        let value = match serde_json::from_slice::<Value>(line) {
            Ok(value) => value,
            Err(why) => {
                let why = format!("the message is not JSON: {why}");
                self.refuse(named(request_id(line)), ErrorData::parse_error(why, None));
                return None;
            }
        };
        let id = named(value.get("id").cloned());
        let is_request = value.get("id").is_some() && value.get("method").is_some();
        let has_list = value.get("params").is_some_and(Value::is_array);
        match serde_json::from_value::<ClientJsonRpcMessage>(value) {
            Ok(JsonRpcMessage::Request(request)) => {
                self.begun = true;
                self.unanswered.add(request.id.clone());
                Some(JsonRpcMessage::Request(request))
            }
            Ok(JsonRpcMessage::Notification(notification)) => {
                let message = JsonRpcMessage::Notification(notification);
                self.forget_cancelled(&message);
                self.begun.then_some(message)
            }
            // The server sends no requests, so responses are unexpected.
            Ok(JsonRpcMessage::Response(_) | JsonRpcMessage::Error(_)) => None,
            Err(_) if is_request && has_list => {
                let why = "`params` is a list; an object is expected";
                self.refuse(id, ErrorData::invalid_params(why, None));
                None
            }
            Err(_) if is_request => {
                self.refuse(id, ErrorData::invalid_request("not a JSON-RPC request", None));
                None
            }
            Err(_) => {
                self.refuse(None, ErrorData::invalid_request("not a JSON-RPC message", None));
                None
            }
        }
    }

    /// A cancelled request gets no answer.
    fn forget_cancelled(&self, message: &ClientJsonRpcMessage) {
        use rmcp::model::ClientNotification::CancelledNotification;
        if let JsonRpcMessage::Notification(it) = message
            && let CancelledNotification(cancelled) = &it.notification
            && let Some(id) = &cancelled.params.request_id
        {
            self.unanswered.remove(id);
        }
    }
}

impl Transport<RoleServer> for Lines {
    type Error = io::Error;

    fn send(
        &mut self,
        message: ServerJsonRpcMessage,
    ) -> impl Future<Output = io::Result<()>> + Send + 'static {
        let (outgoing, unanswered) = (self.outgoing.clone(), Arc::clone(&self.unanswered));
        let mut over = self.over.subscribe();
        async move {
            let mut line = serde_json::to_vec(&message)?;
            line.push(b'\n');
            let (written, done) = oneshot::channel();
            let gone = || io::Error::from(io::ErrorKind::BrokenPipe);
            outgoing.send(Outgoing { line, written: Some(written) }).map_err(|_| gone())?;
            match &message {
                JsonRpcMessage::Response(answer) => unanswered.remove(&answer.id),
                JsonRpcMessage::Error(error) => {
                    error.id.iter().for_each(|id| unanswered.remove(id));
                }
                _ => {}
            }
            tokio::select! {
                sent = done => sent.unwrap_or_else(|_| Err(gone())),
                _ = over.wait_for(|over| *over) => Err(gone()),
            }
        }
    }

    async fn receive(&mut self) -> Option<ClientJsonRpcMessage> {
        loop {
            match self.incoming.recv().await {
                Some(MessageLine::Whole(line)) => {
                    if let Some(message) = self.read_line(&line) {
                        return Some(message);
                    }
                }
                Some(MessageLine::TooLong { id }) => {
                    let why = format!("a message has more than {LONGEST_MESSAGE} bytes");
                    self.refuse(named(id), ErrorData::invalid_request(why, None));
                }
                None => {
                    // Pending requests are still answered.
                    let _ = timeout(DRAIN, self.unanswered.none_left()).await;
                    // Unless the client stopped reading.
                    let _ = timeout(LAST_WORDS, self.written()).await;
                    self.over.send_replace(true);
                    return None;
                }
            }
        }
    }

    async fn close(&mut self) -> io::Result<()> {
        self.incoming.close();
        Ok(())
    }
}

/// A request's id, if it has a valid one.
fn named(id: Option<Value>) -> Option<RequestId> {
    serde_json::from_value(id?).ok()
}

fn write_lines(mut output: impl Write, answers: &blocking::Receiver<Outgoing>) {
    for Outgoing { line, written } in answers {
        let done = output.write_all(&line).and_then(|()| output.flush());
        let failed = done.is_err();
        if let Some(written) = written {
            let _ = written.send(done);
        }
        if failed {
            return;
        }
    }
}
