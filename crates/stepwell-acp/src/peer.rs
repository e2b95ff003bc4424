//! The client, as the agent talks to it: answers, notifications, and requests of our own.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use parking_lot::{Mutex, MutexGuard};
use serde::Serialize;
use serde_json::{Value, json};
use tokio::sync::oneshot;

use crate::lines::Outgoing;
use crate::rpc::{self, Id, Result, RpcError};

/// The client. Cloning is cheap.
#[derive(Clone, Debug)]
pub(crate) struct Peer {
    outgoing: Outgoing,
    waiting: Arc<Mutex<HashMap<Id, oneshot::Sender<Result<Value>>>>>,
    last: Arc<AtomicI64>,
}

/// A request of ours that waits for its answer. Whoever drops it tells the client that the answer
/// is no longer wanted.
#[derive(Debug)]
pub(crate) struct Asked {
    peer: Peer,
    id: Id,
    answer: Option<oneshot::Receiver<Result<Value>>>,
}

impl Peer {
    pub(crate) fn new(outgoing: Outgoing) -> Self {
        Self { outgoing, waiting: Arc::default(), last: Arc::default() }
    }

    fn waiting(&self) -> MutexGuard<'_, HashMap<Id, oneshot::Sender<Result<Value>>>> {
        self.waiting.lock()
    }

    /// Answers a request.
    pub(crate) fn respond(&self, id: &Id, answer: Result<Value>) {
        self.outgoing.send(&rpc::response(id, answer));
    }

    /// Tells the client something.
    pub(crate) fn notify(&self, method: &str, params: &impl Serialize) {
        self.outgoing.send(&json!({"jsonrpc": "2.0", "method": method, "params": params}));
    }

    /// Asks the client something.
    pub(crate) fn ask(&self, method: &str, params: &impl Serialize) -> Asked {
        let id = Id::Number(self.last.fetch_add(1, Ordering::Relaxed) + 1);
        let (tell, answer) = oneshot::channel();
        self.waiting().insert(id.clone(), tell);
        let message = json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params});
        self.outgoing.send(&message);
        Asked { peer: self.clone(), id, answer: Some(answer) }
    }

    /// Takes in an answer. One that nobody waits for any more is nothing.
    pub(crate) fn answered(&self, id: &Id, answer: Result<Value>) {
        if let Some(tell) = self.waiting().remove(id) {
            let _ = tell.send(answer);
        }
    }

    /// The client is gone: nothing is answered any more.
    pub(crate) fn gone(&self) {
        self.waiting().clear();
    }
}

impl Asked {
    /// Waits for the answer.
    pub(crate) async fn answer(mut self) -> Result<Value> {
        let gone = || RpcError::internal("the client is gone");
        let Some(answer) = self.answer.as_mut() else { return Err(gone()) };
        let answer = answer.await.unwrap_or_else(|_| Err(gone()));
        self.answer = None;
        answer
    }
}

impl Drop for Asked {
    fn drop(&mut self) {
        let waited = self.peer.waiting().remove(&self.id);
        if self.answer.is_some() && waited.is_some() {
            self.peer.notify("$/cancel_request", &json!({"requestId": self.id}));
        }
    }
}
