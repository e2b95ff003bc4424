//! A node whose work is an agent's: its lane is asked, or taken up where it stands.

use serde_json::{Map, Value};
use stepwell::{Event, Lane, Message, NodeKey, NodeState, Recorded, Role, Seq, Status, Usage};
use stepwell_agent::context::window::is_request;
use stepwell_agent::provider::GO_ON;
use stepwell_agent::run::{Ended, Happening, Question as Permission, Reply, Run, Watcher};

use crate::flow::{AgentSetup, Flow, FlowState, NodeEvent};
use crate::halt::Halt;
use crate::observer::{FlowEvent, NodeStatus};

/// Makes an output of an answer; the error is what the agent is told of why it is no good.
type Read<'a> = dyn Fn(&str) -> Result<Map<String, Value>, String> + 'a;

/// What an agent is asked.
pub(crate) struct Ask<'a> {
    /// The conversation that it is part of.
    pub(crate) lane: Lane,
    /// The agent.
    pub(crate) agent: &'a str,
    /// Tools in place of its own.
    pub(crate) tools: Option<&'a [String]>,
    /// What it is asked. Only made if it has no result yet.
    pub(crate) prompt: &'a dyn Fn() -> Result<String, String>,
    /// What becomes of its answer.
    pub(crate) read: &'a Read<'a>,
    /// How often it is asked again when its answer is no good.
    pub(crate) retries: u32,
}

impl Flow<'_> {
    /// Asks an agent, or goes on where its lane stands.
    pub(crate) async fn ask(&self, key: &NodeKey, ask: &Ask<'_>) -> Result<Value, Halt> {
        let agent_setup = self.agent_setup(key, ask.agent, ask.tools)?;
        let noted = self.state().memo.node(key).map(|noted| noted.state);
        match noted {
            // Taken up again; what it was asked is in its lane.
            Some(NodeState::Failed) if self.was_asked(key, &ask.lane) => {
                let again = NodeEvent::new(key, Some(ask.agent), NodeState::Started);
                self.record_node(again, Vec::new())?;
                self.reveal_again(ask);
            }
            None | Some(NodeState::Failed) => self.begin(key, ask, &agent_setup)?,
            Some(_) => {
                self.tell_running(key, ask.agent);
                self.reveal_again(ask);
            }
        }
        loop {
            let ended = self.drive(key, ask, &agent_setup).await?;
            self.ended(key, ask, &ended)?;
            let answer = self.answer(&ask.lane);
            match (ask.read)(&answer) {
                Ok(output) => {
                    let usage = Some(self.used(key, &ask.lane));
                    let output = Value::Object(output);
                    let done = NodeEvent {
                        output: Some(output.clone()),
                        usage,
                        ..NodeEvent::new(key, Some(ask.agent), NodeState::Done)
                    };
                    self.record_node(done, Vec::new())?;
                    return Ok(output);
                }
                Err(why) if self.asked_again(key, &ask.lane) < ask.retries => {
                    let text = format!("Your answer cannot be used: {why}. Answer again.");
                    let message = Message::user(text).in_lane(ask.lane.clone());
                    let message = self.agents.redactor().redact_message(message).0;
                    self.record(vec![message.into()])?;
                }
                Err(why) => {
                    let times = ask.retries + 1;
                    let what = format!("{times} answers could not be used; the last: {why}");
                    return Err(self.fail(key, Some(ask.agent), &what, None));
                }
            }
            if self.is_halted() {
                return Err(Halt::NotStarted);
            }
        }
    }

    /// Records that a node starts, together with what its agent is asked.
    fn begin(&self, key: &NodeKey, ask: &Ask<'_>, agent_setup: &AgentSetup) -> Result<(), Halt> {
        let prompt = (ask.prompt)().map_err(|why| self.fail(key, Some(ask.agent), &why, None))?;
        // No provider takes a message that says nothing.
        let prompt = if prompt.trim().is_empty() { "Go on.".to_owned() } else { prompt };
        let redactor = self.agents.redactor();
        let mut said: Vec<Event> = Vec::new();
        let system = Message::system(&agent_setup.system).in_lane(ask.lane.clone());
        let (system, _) = redactor.redact_message(system);
        if !agent_setup.system.trim().is_empty() && self.stands(&ask.lane) != Some(system.text()) {
            said.push(system.into());
        }
        let user = Message::user(prompt.as_str()).in_lane(ask.lane.clone());
        said.push(redactor.redact_message(user).0.into());
        self.record_node(NodeEvent::new(key, Some(ask.agent), NodeState::Started), said)?;
        self.reveal(&ask.lane, &prompt);
        Ok(())
    }

    /// Shows what an agent was asked as it was said: what was recorded lacks its secrets.
    fn reveal(&self, lane: &Lane, prompt: &str) {
        let recorded = self.agents.redactor().redact_message(Message::user(prompt)).0.text();
        if recorded != prompt {
            self.state().past.reveal(lane, &recorded, prompt);
        }
    }

    /// The same for one that was asked before this process began: it is asked in the same words,
    /// if they can still be found.
    fn reveal_again(&self, ask: &Ask<'_>) {
        if let Ok(prompt) = (ask.prompt)() {
            self.reveal(&ask.lane, &prompt);
        }
    }

    /// Runs a lane until something stops it.
    async fn drive(
        &self,
        key: &NodeKey,
        ask: &Ask<'_>,
        agent_setup: &AgentSetup,
    ) -> Result<Ended, Halt> {
        let mut ear = Ear { state: &self.state, key };
        let at = self.state().past.lane(&ask.lane, &self.purse);
        let mut run = Run::in_lane(self.session, &agent_setup.setup, &mut ear, at);
        let ended = async {
            if !run.is_over() && !agent_setup.system.trim().is_empty() {
                run.instruct(&agent_setup.system)?;
            }
            run.drive(self.interrupt.clone()).await
        };
        ended.await.map_err(|error| Halt::Broken(error.into()))
    }

    /// What the end of a lane's run means for its node.
    fn ended(&self, key: &NodeKey, ask: &Ask<'_>, ended: &Ended) -> Result<(), Halt> {
        Err(match ended.status {
            Status::Success => return Ok(()),
            Status::Paused => Halt::Paused,
            Status::Partial => Halt::Limit(ended.reason),
            Status::Interrupted => Halt::Interrupted,
            _ => {
                let error = ended.error.as_ref();
                let what = error.map_or_else(|| "it failed".to_owned(), ToString::to_string);
                self.fail(key, Some(ask.agent), &what, error.map(|error| error.fault))
            }
        })
    }

    fn tell_running(&self, key: &NodeKey, agent: &str) {
        let spent = self.purse.spent();
        let (agent, state, error) = (Some(agent), NodeState::Started, None);
        let status = NodeStatus { key, agent, who: None, state, error, spent: &spent };
        self.state().observer.on_event(FlowEvent::Node(status));
    }

    /// The instructions that stand in a lane.
    fn stands(&self, lane: &Lane) -> Option<String> {
        let state = self.state();
        let mut messages = state.past.said(lane).iter().rev().filter_map(message);
        messages.find(|(_, message)| message.role == Role::System).map(|(_, it)| it.text())
    }

    /// What an agent last said in a lane. An answer that was cut short and gone on with is one.
    fn answer(&self, lane: &Lane) -> String {
        let state = self.state();
        let mut parts: Vec<String> = Vec::new();
        let mut goes_on = true;
        for (_, message) in state.past.said(lane).iter().rev().filter_map(message) {
            match message.role {
                Role::Assistant if goes_on => parts.push(message.text()),
                Role::User if message.text() == GO_ON => {
                    goes_on = true;
                    continue;
                }
                Role::System => continue,
                _ => break,
            }
            goes_on = false;
        }
        parts.reverse();
        parts.concat()
    }

    /// Was a node's agent asked, before it failed?
    fn was_asked(&self, key: &NodeKey, lane: &Lane) -> bool {
        let state = self.state();
        let Some(began) = state.memo.node(key).map(|noted| noted.began) else { return false };
        state.past.said(lane).iter().any(|event| event.seq > began && is_ask(event))
    }

    /// How often a node's agent was asked again since the node last began.
    fn asked_again(&self, key: &NodeKey, lane: &Lane) -> u32 {
        let state = self.state();
        let Some(noted) = state.memo.node(key) else { return 0 };
        let asked = state.past.said(lane).iter().filter(|event| event.seq > noted.since);
        let asked = asked.filter(|event| is_ask(event)).count();
        // What it was asked in the first place came with its first beginning.
        let first = usize::from(noted.since == noted.began);
        u32::try_from(asked.saturating_sub(first)).unwrap_or(u32::MAX)
    }

    /// What a node's agent used.
    fn used(&self, key: &NodeKey, lane: &Lane) -> Usage {
        let state = self.state();
        let began = state.memo.node(key).map_or(Seq::ZERO, |noted| noted.began);
        let mut used = Usage::default();
        for event in state.past.said(lane).iter().filter(|event| event.seq > began) {
            let usage = match &event.event {
                Event::Message(message) => message.usage,
                Event::Compacted(compacted) => compacted.usage,
                _ => None,
            };
            used += usage.unwrap_or_default();
        }
        used
    }
}

fn message(event: &Recorded) -> Option<(Seq, &Message)> {
    match &event.event {
        Event::Message(message) => Some((event.seq, message)),
        _ => None,
    }
}

/// Is an agent asked for something in it?
fn is_ask(event: &Recorded) -> bool {
    message(event).is_some_and(|(_, message)| is_request(message))
}

/// Hears what a lane's run records, and what happens in it.
struct Ear<'a, 'd> {
    state: &'a std::sync::Mutex<FlowState<'d>>,
    key: &'a NodeKey,
}

impl Watcher for Ear<'_, '_> {
    fn saw(&mut self, happening: Happening<'_>) {
        let mut state = self.state.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        match happening {
            Happening::Recorded(event) => state.apply(event.clone()),
            Happening::Notice(text) => state.observer.on_event(FlowEvent::Notice(text)),
            happening => state.observer.on_event(FlowEvent::Within(self.key, &happening)),
        }
    }

    /// Nobody is asked while other lanes run: the question is recorded, and asked when they
    /// have come to their ends.
    fn ask(&mut self, _: &Permission<'_>, _: &dyn Fn() -> bool) -> Reply {
        Reply::Later
    }
}
