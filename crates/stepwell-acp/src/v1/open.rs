//! A session that a client has open, and the run that goes on in it.

use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use parking_lot::{Mutex, MutexGuard};
use serde_json::{Value, json};
use stepwell::Seq;
use stepwell::sessions::{GUARD, WakeOnDrop};
use stepwell_runtime::{Error, OpenGate};
use tokio::runtime::Handle;
use tokio::sync::oneshot;
use tokio::task::AbortHandle;

use crate::turn::{
    Begin, Chunk, Conversation, Input, Prompt, Running, TurnEnd, TurnEvent, offered, works_in,
};

use super::client::Client;
use super::{ask, list};

/// A session that a client has open.
#[derive(Debug)]
pub(super) struct Open {
    pub(super) conversation: Arc<Conversation>,
    running: Mutex<Option<Running>>,
    /// Questions that the client is asked now, by their names.
    asks: Mutex<HashMap<String, AbortHandle>>,
    /// Held while a command is carried out, which tells itself what it did.
    commanded: Mutex<()>,
    /// Held by the command that the client waits for: other prompts come behind it.
    command_turn: Arc<tokio::sync::Mutex<()>>,
    /// There while a thread watches the session; dropping it ends the thread.
    watch: Mutex<Option<WakeOnDrop>>,
    /// Was it closed? Then nothing begins in it any more.
    closed: AtomicBool,
}

/// The turn of a prompt.
#[derive(Debug)]
pub(super) struct Turn {
    /// How it ends. Without an end, the run that went on did not take the prompt in.
    pub(super) end: oneshot::Receiver<TurnEnd>,
    /// The run that it began; none, if one goes on that takes it in.
    pub(super) began: Option<Running>,
}

impl Open {
    pub(super) fn new(conversation: Conversation) -> Arc<Self> {
        Arc::new(Self {
            conversation: Arc::new(conversation),
            running: Mutex::default(),
            asks: Mutex::default(),
            commanded: Mutex::default(),
            command_turn: Arc::default(),
            watch: Mutex::default(),
            closed: AtomicBool::new(false),
        })
    }

    pub(super) fn name(&self) -> &str {
        self.conversation.id().as_str()
    }

    fn asks(&self) -> MutexGuard<'_, HashMap<String, AbortHandle>> {
        self.asks.lock()
    }

    /// The run that goes on, if one does.
    pub(super) fn running(&self) -> Option<Running> {
        let running = self.running.lock();
        running.clone().filter(|running| !running.is_over())
    }

    /// Tells the client of something.
    pub(super) fn tell(&self, client: &Client, event: &TurnEvent) {
        client.tell(self.name(), event);
    }

    /// Sends an update.
    pub(super) fn send(&self, client: &Client, update: &Value) {
        client.send(self.name(), update);
    }

    /// Tells which commands there are.
    pub(super) fn tell_commands(&self, client: &Client) {
        let command = |command: &stepwell_runtime::command::SlashCommand| {
            let mut one = json!({"name": command.name, "description": command.help});
            if !command.arguments.is_empty() {
                one["input"] = json!({"hint": command.arguments});
            }
            one
        };
        let commands: Vec<Value> = offered().map(command).collect();
        let update =
            json!({"sessionUpdate": "available_commands_update", "availableCommands": commands});
        self.send(client, &update);
    }

    /// Tells where it works, if that is not the folder that the client named.
    pub(super) fn tell_root(&self, client: &Client, folder: &Path) {
        let root = self.conversation.root();
        let folder = std::fs::canonicalize(folder).unwrap_or_else(|_| folder.to_owned());
        if folder != root {
            self.tell(client, &TurnEvent::Notice(works_in(&root, &folder)));
        }
    }

    /// Tells the conversation so far.
    pub(super) fn tell_history(&self, client: &Client) -> Result<(), Error> {
        match self.running() {
            Some(running) => running.retell(&self.conversation),
            None => {
                let (told, last) = self.conversation.history(Seq::MAX)?;
                told.iter().for_each(|event| self.tell(client, event));
                self.conversation.set_told(last);
                Ok(())
            }
        }
    }

    /// Tells what the session is called, and when it last changed.
    pub(super) fn tell_info(&self, client: &Client) {
        if let Ok(Some(head)) = self.conversation.head() {
            let redactor = self.conversation.runtime().workspace().redactor().with_own_count();
            let head = head.redacted(&redactor);
            let update = json!({
                "sessionUpdate": "session_info_update",
                "title": list::title(&head),
                "updatedAt": head.updated_at.to_string(),
            });
            self.send(client, &update);
        }
    }

    /// Does something that tells itself what it did: nobody else does meanwhile.
    pub(super) fn command<T>(&self, work: impl FnOnce() -> T) -> T {
        let _held = self.commanded.lock();
        work()
    }

    /// The turn of a command: while one is held, no other prompt begins.
    pub(super) fn command_turn(&self) -> Arc<tokio::sync::Mutex<()>> {
        Arc::clone(&self.command_turn)
    }

    /// Tells what was recorded since the client was last told of something, unless a run tells it.
    /// Was there anything to tell?
    pub(super) fn catch_up(&self, client: &Client) -> bool {
        if self.running().is_some() {
            return false;
        }
        // What cannot be read now is told later.
        let told = self.conversation.catch_up().unwrap_or_default();
        // Its title is told with the time of the change.
        let told_of = told.iter().filter(|event| !matches!(event, TurnEvent::Title(_)));
        told_of.for_each(|event| self.tell(client, event));
        !told.is_empty()
    }

    /// Tells what the session waits for.
    pub(super) fn tell_waiting(&self, client: &Client) {
        if self.conversation.is_held().unwrap_or_default() {
            return;
        }
        for open in self.conversation.open_gates().unwrap_or_default() {
            self.tell(client, &TurnEvent::Text(Chunk::question(&open.gate)));
        }
    }

    /// What a run of this session does with what it tells.
    fn on_event(self: &Arc<Self>, client: &Arc<Client>, event: TurnEvent) {
        match event {
            TurnEvent::Ask(gate) => {
                let name = gate.gate.id.clone();
                let asking = Arc::clone(self).ask(Arc::clone(client), gate);
                let task = tokio::spawn(asking).abort_handle();
                if let Some(before) = self.asks().insert(name, task) {
                    before.abort();
                }
            }
            TurnEvent::Answered { gate } => {
                if let Some(task) = self.asks().remove(&gate) {
                    task.abort();
                }
            }
            TurnEvent::Ended { .. } => self.ask_nothing(),
            event => self.tell(client, &event),
        }
    }

    /// Asks the client. An answer is on its way to the log when this ends; without one the question
    /// stays as it is.
    async fn ask(self: Arc<Self>, client: Arc<Client>, gate: Box<OpenGate>) {
        let answer = ask::answer(&client, &self.conversation, &gate).await;
        let Some(running) = self.running() else { return };
        match answer {
            Ok(Some(answer)) => running.send(Input::Answer(gate, answer, None)),
            Ok(None) | Err(_) => running.send(Input::Leave),
        }
    }

    /// Takes back what the client is asked. The questions themselves stay.
    pub(super) fn ask_nothing(&self) {
        self.asks().drain().for_each(|(_, task)| task.abort());
    }

    /// Has a prompt reach the session; whoever waits is told of the turn's end. A run that goes on
    /// takes it in, else one begins.
    pub(super) fn prompt(self: &Arc<Self>, client: &Arc<Client>, text: &str) -> Turn {
        let (waiter, end) = oneshot::channel();
        let mut running = self.running.lock();
        let began = match running.as_ref().filter(|running| !running.is_over()) {
            Some(running) => {
                running.send(Input::Say(text.to_owned(), waiter));
                None
            }
            None => {
                let begin = Begin::Prompt(Prompt(text.to_owned()));
                let began = self.start(client, begin, Some(waiter));
                *running = Some(began.clone());
                Some(began)
            }
        };
        Turn { end, began }
    }

    /// Follows a run that goes on elsewhere, if one does; else tells what others did meanwhile.
    pub(super) fn follow(self: &Arc<Self>, client: &Arc<Client>) {
        let mut running = self.running.lock();
        let is_on = running.as_ref().is_some_and(|running| !running.is_over());
        if is_on || self.is_closed() {
            return;
        }
        if self.conversation.is_held().unwrap_or_default() {
            *running = Some(self.start(client, Begin::Follow, None));
            return;
        }
        drop(running);
        if self.catch_up(client) {
            self.tell_info(client);
        }
    }

    /// Watches the session from now on, on a thread of its own: whoever runs it next is followed.
    /// One that is not on record yet is watched after its first turn.
    pub(super) fn watch(self: &Arc<Self>, client: &Arc<Client>) {
        let mut watched = self.watch.lock();
        if watched.is_some() || self.is_closed() {
            return;
        }
        let Ok(Some(changes)) = self.conversation.subscribe() else { return };
        *watched = Some(changes.wake_on_drop());
        drop(watched);
        let (open, client, tokio) = (Arc::downgrade(self), Arc::clone(client), Handle::current());
        let watch = move || loop {
            let changed = changes.next(GUARD);
            let Some(open) = open.upgrade().filter(|open| !open.is_closed()) else { return };
            match changed {
                Ok(None) => {}
                Ok(Some(_)) => {
                    if let Some(running) = open.running() {
                        tokio.block_on(running.over());
                    }
                    let _inside = tokio.enter();
                    open.command(|| open.follow(&client));
                }
                // The store is gone.
                Err(_) => return,
            }
        };
        // Without the thread, what others do is told with the next turn.
        let _ = std::thread::Builder::new().name("acp-watch".to_owned()).spawn(watch);
    }

    fn start(
        self: &Arc<Self>,
        client: &Arc<Client>,
        begin: Begin,
        waiter: Option<oneshot::Sender<TurnEnd>>,
    ) -> Running {
        // It holds the run.
        let (open, client) = (Arc::downgrade(self), Arc::clone(client));
        let sink = Arc::new(move |event| {
            if let Some(open) = open.upgrade() {
                open.on_event(&client, event);
            }
        });
        Running::start(Arc::clone(&self.conversation), begin, waiter, sink)
    }

    /// Was it closed?
    pub(super) fn is_closed(&self) -> bool {
        self.closed.load(Ordering::Relaxed)
    }

    /// Ends what goes on, as when the client goes: a question stays.
    pub(super) async fn leave(&self) {
        self.closed.store(true, Ordering::Relaxed);
        *self.watch.lock() = None;
        self.ask_nothing();
        if let Some(running) = self.running() {
            running.send(Input::Go);
            running.over().await;
        }
        self.conversation.close_servers().await;
    }
}
