//! A session that a client has open, and the run that goes on in it.

use std::collections::HashMap;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use serde_json::{Value, json};
use stepwell_agent::mcp::{Address, DEFAULT_START, Program, Reach, Server, ServerName};
use stepwell_runtime::OpenGate;
use tokio::sync::oneshot;
use tokio::task::AbortHandle;

use crate::rpc::{Result, RpcError};
use crate::turn::{
    Begin, Brought, Chunk, Conversation, Input, Prompt, Running, TurnEnd, TurnEvent, offered,
};

use super::ask;
use super::client::Client;
use super::input::{McpServer, RemoteKind};

/// A session that a client has open.
#[derive(Debug)]
pub(super) struct Open {
    pub(super) conversation: Arc<Conversation>,
    running: Mutex<Option<Running>>,
    /// Questions that the client is asked now, by their names.
    asks: Mutex<HashMap<String, AbortHandle>>,
}

impl Open {
    pub(super) fn new(conversation: Conversation) -> Arc<Self> {
        let conversation = Arc::new(conversation);
        Arc::new(Self { conversation, running: Mutex::default(), asks: Mutex::default() })
    }

    pub(super) fn name(&self) -> &str {
        self.conversation.id().as_str()
    }

    fn asks(&self) -> MutexGuard<'_, HashMap<String, AbortHandle>> {
        self.asks.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The run that goes on, if one does.
    pub(super) fn running(&self) -> Option<Running> {
        let running = self.running.lock().unwrap_or_else(PoisonError::into_inner);
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
        let command = |command: &stepwell_workspace::slash::SlashCommand| {
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

    /// Tells what the session waits for.
    pub(super) fn tell_waiting(&self, client: &Client) {
        if self.conversation.is_held().unwrap_or_default() {
            return;
        }
        for gate in self.conversation.open_gates().unwrap_or_default() {
            let hint = match gate.gate.call {
                Some(_) => "\n\nAnswer yes, always, no or never; or say what to do instead.",
                None => "",
            };
            let (message, text) =
                (format!("gate-{}", gate.gate.id), gate.gate.prompt.clone() + hint);
            self.tell(client, &TurnEvent::Text(Chunk { message, text }));
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
    pub(super) fn prompt(
        self: &Arc<Self>,
        client: &Arc<Client>,
        text: &str,
    ) -> oneshot::Receiver<TurnEnd> {
        let (waiter, end) = oneshot::channel();
        let mut running = self.running.lock().unwrap_or_else(PoisonError::into_inner);
        match running.as_ref().filter(|running| !running.is_over()) {
            Some(running) => running.send(Input::Say(text.to_owned(), waiter)),
            None => {
                let begin = Begin::Prompt(Prompt(text.to_owned()));
                *running = Some(self.start(client, begin, Some(waiter)));
            }
        }
        end
    }

    /// Follows a run that goes on elsewhere, if one does.
    pub(super) fn follow(self: &Arc<Self>, client: &Arc<Client>, from: stepwell::Seq) {
        let mut running = self.running.lock().unwrap_or_else(PoisonError::into_inner);
        let is_ours = running.as_ref().is_some_and(|running| !running.is_over());
        if !is_ours && self.conversation.is_held().unwrap_or_default() {
            *running = Some(self.start(client, Begin::Follow(from), None));
        }
    }

    fn start(
        self: &Arc<Self>,
        client: &Arc<Client>,
        begin: Begin,
        waiter: Option<oneshot::Sender<TurnEnd>>,
    ) -> Running {
        let (open, client) = (Arc::clone(self), Arc::clone(client));
        let sink = Arc::new(move |event| open.on_event(&client, event));
        Running::start(Arc::clone(&self.conversation), begin, waiter, sink)
    }

    /// Ends what goes on, as when the client goes: a question stays.
    pub(super) async fn leave(&self) {
        self.ask_nothing();
        if let Some(running) = self.running() {
            running.send(Input::Go);
            running.over().await;
        }
        self.conversation.close_servers().await;
    }
}

/// What a client brings to a session: its MCP servers, and folders besides the workspace.
pub(super) fn brought(
    servers: Vec<McpServer>,
    folders: Vec<std::path::PathBuf>,
    cwd: &Path,
) -> Result<Brought> {
    if let Some(folder) = folders.iter().find(|folder| !folder.is_absolute()) {
        let why = format!("{} is no absolute path", folder.display());
        return Err(RpcError::invalid_params(why));
    }
    let servers = servers.into_iter().map(|server| read_server(server, cwd));
    Ok(Brought { servers: servers.collect::<Result<_>>()?, folders })
}

fn read_server(server: McpServer, cwd: &Path) -> Result<Server> {
    let (name, reach) = match server {
        McpServer::Remote { kind: RemoteKind::Sse, name, .. } => {
            let why = format!("{name}: servers over sse are not supported");
            return Err(RpcError::invalid_params(why));
        }
        McpServer::Remote { name, url, headers, .. } => {
            let headers = headers.into_iter().map(|it| (it.name, it.value)).collect();
            (name, Reach::Address(Address { url, headers, key: None }))
        }
        McpServer::Program { name, command, args, env } => {
            let program = Program {
                program: command.to_string_lossy().into_owned(),
                arguments: args,
                variables: env.into_iter().map(|it| (it.name, it.value)).collect(),
                folder: cwd.to_owned(),
            };
            (name, Reach::Program(program))
        }
    };
    let name = server_name(&name)?;
    Ok(Server { name, reach, start: DEFAULT_START, timeout: None })
}

/// A name that can stand in front of a tool's: clients' names may hold anything.
fn server_name(name: &str) -> Result<ServerName> {
    let plain = |it: char| if it.is_ascii_alphanumeric() || it == '-' { it } else { '_' };
    let mut plain: String = name.chars().map(plain).take(32).collect();
    while plain.contains("__") {
        plain = plain.replace("__", "_");
    }
    let plain = plain.trim_matches(['_', '-']);
    plain.parse().map_err(|why: String| RpcError::invalid_params(format!("{name:?}: {why}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_clients_server_gets_a_name_that_tools_can_have() {
        for (given, name) in [("github", "github"), ("My Files!", "My_Files"), ("a__b_", "a_b")] {
            assert_eq!(server_name(given).unwrap().as_str(), name);
        }
        assert!(server_name("…").is_err());
    }
}
