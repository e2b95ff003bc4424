//! Answering prompts.

use std::sync::Arc;

use serde_json::json;
use stepwell_runtime::{ErrorKind, Interrupt};
use tokio::sync::OwnedMutexGuard;
use tokio::task::block_in_place;

use crate::rpc::Id;
use crate::turn::{Chunk, Command, TurnEnd, TurnEvent};

use super::agent::Agent;
use super::input::{self, read};
use super::open::{Open, Turn};
use super::open_prompts::Prompted;
use super::stop_reason::stop_reason;

impl Agent {
    /// Takes a prompt in, and has it answered when its turn ends.
    pub(super) fn prompt(self: &Arc<Self>, id: Id, params: serde_json::Value) {
        let ready = self.check_greeted().and_then(|()| {
            let asked: input::Prompt = read(params)?;
            let open = self.opened(&asked.session_id)?;
            Ok((open, input::text(&asked.prompt)?))
        });
        let (open, text) = match ready {
            Ok(ready) => ready,
            Err(error) => return self.client.peer.respond(&id, Err(error)),
        };
        let command = match Command::read(&text) {
            Ok(command) => command,
            Err(not_here) => return self.tell_and_end(&id, &open, not_here.to_string()),
        };
        let prompted = Prompted::new(open.name(), command.is_some());
        let stop = prompted.stop.clone();
        self.prompts.open().insert(id.clone(), prompted);
        // Prompts come behind a command that is carried out.
        let free = open.command_turn().try_lock_owned().ok();
        let session = open.name().to_owned();
        let agent = Arc::clone(self);
        let asked = Asked { id, open, stop };
        let task = match command {
            Some(command) => tokio::spawn(async move { agent.command(asked, command, free).await }),
            None => {
                let first = free.and_then(|_free| self.say(&asked, &text));
                tokio::spawn(async move { agent.words(asked, &text, first).await })
            }
        };
        self.prompts.keep(&session, task);
    }

    /// Says a prompt's words to its session; nothing, if it was cancelled.
    fn say(&self, asked: &Asked, text: &str) -> Option<Turn> {
        let mut prompts = self.prompts.open();
        let prompted = prompts.get_mut(&asked.id)?;
        if prompted.withdrawn || prompted.cancelled || asked.open.is_closed() {
            return None;
        }
        let turn = asked.open.prompt(&self.client, text);
        prompted.began.clone_from(&turn.began);
        Some(turn)
    }

    /// Has a model hear what a prompt says.
    async fn words(&self, asked: Asked, text: &str, first: Option<Turn>) {
        let mut turn = first;
        let end = loop {
            turn = match turn {
                None => {
                    let free = asked.open.command_turn();
                    tokio::select! {
                        () = asked.stop.asked() => break TurnEnd::Cancelled,
                        _free = free.lock() => match self.say(&asked, text) {
                            None => break TurnEnd::Cancelled,
                            turn => turn,
                        },
                    }
                }
                Some(turn) => tokio::select! {
                    () = asked.stop.asked() => break TurnEnd::Cancelled,
                    end = turn.end => match end {
                        Ok(end) => break end,
                        // The run ended before it took the prompt in: another one begins.
                        Err(_) => None,
                    },
                },
            };
        };
        block_in_place(|| {
            asked.open.tell_info(&self.client);
            asked.open.watch(&self.client);
        });
        self.end(&asked.id, end);
    }

    /// Carries a slash command out, when those before it are done.
    async fn command(&self, asked: Asked, command: Command, free: Option<OwnedMutexGuard<()>>) {
        let Asked { id, open, stop } = asked;
        let turn = match free {
            Some(free) => Some(free),
            None => tokio::select! {
                () = stop.asked() => None,
                free = open.command_turn().lock_owned() => Some(free),
            },
        };
        if turn.is_none() || stop.is_asked() {
            return self.end(&id, TurnEnd::Cancelled);
        }
        let mode = || open.conversation.holds().ok().map(|holds| holds.mode);
        let work = || {
            let before = mode();
            let answer = command.run(&open.conversation, &stop);
            if let Some(mode) = mode().filter(|mode| Some(*mode) != before) {
                self.tell_mode(&open, mode.as_str());
            }
            // What cannot be told now is told with the next change.
            let _ = self.tell_options(&open);
            open.catch_up(&self.client);
            open.tell_info(&self.client);
            answer
        };
        let answer = block_in_place(|| open.command(work));
        drop(turn);
        match answer {
            Err(error) if error.kind() == ErrorKind::Interrupted && stop.is_asked() => {
                self.end(&id, TurnEnd::Cancelled);
            }
            answer => {
                self.prompts.open().remove(&id);
                self.tell_and_end(&id, &open, answer.unwrap_or_else(|error| error.to_string()));
            }
        }
    }

    /// Answers a prompt whose turn ended.
    fn end(&self, id: &Id, end: TurnEnd) {
        let withdrawn = self.prompts.open().remove(id).is_some_and(|it| it.withdrawn);
        self.client.peer.respond(id, stop_reason(end, withdrawn));
    }

    /// Answers a prompt that no model is asked about.
    fn tell_and_end(&self, id: &Id, open: &Open, text: String) {
        let message = format!("command-{}", serde_json::to_string(id).unwrap_or_default());
        open.tell(&self.client, &TurnEvent::Text(Chunk { message, text }));
        self.client.peer.respond(id, Ok(json!({"stopReason": "end_turn"})));
    }
}

/// A prompt that is being answered.
struct Asked {
    id: Id,
    open: Arc<Open>,
    stop: Interrupt,
}
