//! A node that an agent works on: its lane gets a prompt, or resumes where it stopped.

use std::sync::Arc;

use serde_json::{Map, Value};
use stepwell::log::RedactMessages as _;
use stepwell::model::{NodeKey, NodeState, Role, Usage};
use stepwell::{Event, Lane, Message, Recorded, Seq, Status, StopReason};
use stepwell_agent::context::window::is_request;
use stepwell_agent::provider::GO_ON;
use stepwell_agent::run::{
    Ended, EventSink, FrontEnd, NodeStatus, Patience, Run, RunEvent, SharedBudget,
};

use crate::flow::{AgentSetup, Flow, NodeEvent, locked};
use crate::halt::Halt;

/// Turns an answer into a node's output. The error tells the agent why its answer is unusable.
pub(crate) type Read<'a> = dyn Fn(&str) -> Result<Map<String, Value>, String> + 'a;

/// A prompt for an agent.
pub(crate) struct Ask<'a> {
    /// The conversation it belongs to.
    pub(crate) lane: Lane,
    /// The agent's name in the spec.
    pub(crate) agent: &'a str,
    /// Tools that replace the agent's own.
    pub(crate) tools: Option<&'a [String]>,
    /// Renders the prompt. Called only while the node has no result.
    pub(crate) prompt: &'a dyn Fn() -> Result<String, String>,
    /// Reads the answer.
    pub(crate) read: &'a Read<'a>,
    /// How often the agent is asked again if its answer is unusable.
    pub(crate) retries: u32,
}

/// The agent of a lane, and what else is recorded.
pub(crate) struct Worker<'a> {
    pub(crate) setup: &'a AgentSetup,
    /// The budget that pays for its calls.
    pub(crate) shared_budget: &'a SharedBudget,
    /// Recorded together with the node's start.
    pub(crate) starting: &'a dyn Fn() -> Vec<Event>,
    /// Recorded together with its result.
    pub(crate) finishing: &'a dyn Fn(&Value) -> Vec<Event>,
    /// Does the reader of the answer handle an agent whose calls were all denied? Otherwise the
    /// flow stops.
    pub(crate) judges_denied: bool,
}

impl Flow<'_> {
    /// Asks an agent, or resumes its lane.
    pub(crate) async fn ask(&self, key: &NodeKey, ask: &Ask<'_>) -> Result<Value, Halt> {
        let setup = self.agent_setup(key, ask.agent, ask.tools)?;
        let (starting, finishing) = (&Vec::new, &|_: &Value| Vec::new());
        let (setup, shared_budget) = (&*setup, &self.shared_budget);
        let worker = Worker { setup, shared_budget, starting, finishing, judges_denied: false };
        self.ask_worker(key, ask, &worker).await
    }

    /// Like [`ask`](Self::ask), with another worker.
    pub(crate) async fn ask_worker(
        &self,
        key: &NodeKey,
        ask: &Ask<'_>,
        worker: &Worker<'_>,
    ) -> Result<Value, Halt> {
        let noted = self.state().memo.node(key).map(|noted| noted.state);
        match noted {
            // A retry after a failure: the prompt is already in the lane.
            Some(NodeState::Failed) if self.was_asked(key, &ask.lane) => {
                let again = NodeEvent::new(key, Some(ask.agent), NodeState::Started);
                self.record_node(again, Vec::new())?;
                self.show_unredacted_again(ask);
            }
            None | Some(NodeState::Failed) => self.start(key, ask, worker)?,
            Some(_) => {
                self.report_running(key, ask.agent);
                self.show_unredacted_again(ask);
            }
        }
        loop {
            let ended = self.drive(key, ask, worker).await?;
            self.check_success(key, worker, ask.agent, &ended)?;
            let answer = self.last_answer(&ask.lane);
            match (ask.read)(&answer) {
                Ok(output) => {
                    let usage = Some(self.usage(key, &ask.lane));
                    let output = Value::Object(output);
                    let more = (worker.finishing)(&output);
                    let done = NodeEvent {
                        output: Some(output.clone()),
                        usage,
                        ..NodeEvent::new(key, Some(ask.agent), NodeState::Done)
                    };
                    self.record_node(done, more)?;
                    return Ok(output);
                }
                Err(why) if self.retries_used(key, &ask.lane) < ask.retries => {
                    let text = format!("Your answer cannot be used: {why}. Answer again.");
                    let message = Message::user(text).in_lane(ask.lane.clone());
                    let message = self.agents.redactor().redact_message(message).0;
                    self.record(vec![message.into()])?;
                }
                Err(why) => {
                    let times = ask.retries + 1;
                    let what = format!("no usable answer in {times} attempts; the last: {why}");
                    return Err(self.fail(key, Some(ask.agent), &what, None));
                }
            }
            if self.is_halted() {
                return Err(Halt::NotStarted);
            }
        }
    }

    /// Records that a node starts, together with the prompt of its agent.
    fn start(&self, key: &NodeKey, ask: &Ask<'_>, worker: &Worker<'_>) -> Result<(), Halt> {
        let agent_setup = worker.setup;
        let prompt = (ask.prompt)().map_err(|why| self.fail(key, Some(ask.agent), &why, None))?;
        // Providers reject an empty message.
        let prompt = if prompt.trim().is_empty() { "Go on.".to_owned() } else { prompt };
        let redactor = self.agents.redactor();
        let mut messages: Vec<Event> = Vec::new();
        let system = Message::system(&agent_setup.system).in_lane(ask.lane.clone());
        let (system, _) = redactor.redact_message(system);
        if !agent_setup.system.trim().is_empty()
            && self.instructions(&ask.lane) != Some(system.text())
        {
            messages.push(system.into());
        }
        let user = Message::user(prompt.as_str()).in_lane(ask.lane.clone());
        messages.push(redactor.redact_message(user).0.into());
        messages.extend((worker.starting)());
        self.record_node(NodeEvent::new(key, Some(ask.agent), NodeState::Started), messages)?;
        self.show_unredacted(&ask.lane, &prompt);
        Ok(())
    }

    /// Lets the model see the prompt with its secrets, which the recorded prompt lacks.
    fn show_unredacted(&self, lane: &Lane, prompt: &str) {
        let recorded = self.agents.redactor().redact_message(Message::user(prompt)).0.text();
        if recorded != prompt {
            self.state().past.show_unredacted(lane, &recorded, prompt);
        }
    }

    /// The same for a prompt that an earlier process recorded. If it cannot be rendered again,
    /// the model sees the redacted prompt.
    fn show_unredacted_again(&self, ask: &Ask<'_>) {
        if let Ok(prompt) = (ask.prompt)() {
            self.show_unredacted(&ask.lane, &prompt);
        }
    }

    /// Runs a lane until something stops it.
    async fn drive(
        &self,
        key: &NodeKey,
        ask: &Ask<'_>,
        worker: &Worker<'_>,
    ) -> Result<Ended, Halt> {
        let agent_setup = worker.setup;
        let at = self.state().past.lane(&ask.lane, worker.shared_budget);
        let mut run =
            Run::in_lane(self.session, &agent_setup.setup, self.lane_front(key, &ask.lane), at);
        let ended = async {
            if !run.is_over() && !agent_setup.system.trim().is_empty() {
                run.instruct(&agent_setup.system)?;
            }
            run.drive(self.interrupt.clone()).await
        };
        ended.await.map_err(|error| Halt::Broken(error.into()))
    }

    /// Maps the end of a lane's run to its node: only success continues.
    fn check_success(
        &self,
        key: &NodeKey,
        worker: &Worker<'_>,
        agent: &str,
        ended: &Ended,
    ) -> Result<(), Halt> {
        Err(match ended.status {
            Status::Success => return Ok(()),
            // All calls of the agent were denied, and it has finished its answer.
            Status::Partial if worker.judges_denied && ended.reason == StopReason::LlmDone => {
                return Ok(());
            }
            Status::Paused => Halt::Paused,
            Status::Partial => Halt::Limit(ended.reason),
            Status::Interrupted => Halt::Interrupted,
            _ => {
                let error = ended.error.as_ref();
                let what = error.map_or_else(|| "it failed".to_owned(), ToString::to_string);
                self.fail(key, Some(agent), &what, error.map(|error| error.fault))
            }
        })
    }

    fn report_running(&self, key: &NodeKey, agent: &str) {
        self.events.tell(RunEvent::Node(NodeStatus {
            key: key.to_string(),
            agent: Some(agent.to_owned()),
            who: None,
            state: NodeState::Started,
            error: None,
            spent: self.shared_budget.spent(),
        }));
    }

    /// The flow's front end, as a lane's run sees it. A lane never waits for an answer while other
    /// lanes run: the question is recorded, and asked once all lanes have stopped. The same holds
    /// for a subagent's question: the subagent has paused by then, and the flow asks for it.
    fn lane_front(&self, key: &NodeKey, lane: &Lane) -> FrontEnd {
        let (state, above) = (Arc::clone(&self.state), self.events.clone());
        let (node, lane) = (key.to_string(), lane.clone());
        let events = EventSink::to(move |event| match event {
            RunEvent::Recorded(event) => locked(&state).apply(event),
            RunEvent::Notice(_) => above.tell(event),
            event if event.question().is_some() => {}
            event => {
                let (node, lane, event) = (node.clone(), lane.clone(), Box::new(event));
                above.tell(RunEvent::Within { node, lane, event });
            }
        });
        FrontEnd { events, patience: Patience::Pause, wishes: self.wishes.clone() }
    }

    /// The newest system message of a lane.
    fn instructions(&self, lane: &Lane) -> Option<String> {
        let state = self.state();
        let mut messages = state.past.said(lane).iter().rev().filter_map(message);
        messages.find(|(_, message)| message.role == Role::System).map(|(_, it)| it.text())
    }

    /// The last answer in a lane. A truncated answer with its continuation counts as one.
    fn last_answer(&self, lane: &Lane) -> String {
        let state = self.state();
        let mut parts: Vec<String> = Vec::new();
        let mut continues = true;
        for (_, message) in state.past.said(lane).iter().rev().filter_map(message) {
            match message.role {
                Role::Assistant if continues => parts.push(message.text()),
                Role::User if message.text() == GO_ON => {
                    continues = true;
                    continue;
                }
                Role::System => continue,
                _ => break,
            }
            continues = false;
        }
        parts.reverse();
        parts.concat()
    }

    /// Whether the node's agent got its prompt before the node failed.
    fn was_asked(&self, key: &NodeKey, lane: &Lane) -> bool {
        let state = self.state();
        let Some(began) = state.memo.node(key).map(|noted| noted.first_start) else { return false };
        state.past.said(lane).iter().any(|event| event.seq > began && is_prompt(event))
    }

    /// How often a node's agent was asked again since the node last started.
    fn retries_used(&self, key: &NodeKey, lane: &Lane) -> u32 {
        let state = self.state();
        let Some(noted) = state.memo.node(key) else { return 0 };
        let asked = state.past.said(lane).iter().filter(|event| event.seq > noted.last_start);
        let asked = asked.filter(|event| is_prompt(event)).count();
        // The first prompt was recorded with the first start and is not a retry.
        let first = usize::from(noted.last_start == noted.first_start);
        u32::try_from(asked.saturating_sub(first)).unwrap_or(u32::MAX)
    }

    /// The tokens that a node's agent used.
    fn usage(&self, key: &NodeKey, lane: &Lane) -> Usage {
        let state = self.state();
        let began = state.memo.node(key).map_or(Seq::ZERO, |noted| noted.first_start);
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

/// Whether the event is a message that asks the agent for something.
fn is_prompt(event: &Recorded) -> bool {
    message(event).is_some_and(|(_, message)| is_request(message))
}
