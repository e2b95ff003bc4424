//! Tool calls that the plan makes, not a model: checks, the start of the program, subagents. Each
//! runs in its own lane through the same machinery as an agent's calls, so it is recorded before it
//! begins, needs an approval if the mode says so, and is never repeated silently.

use std::rc::Rc;
use std::sync::Arc;

use futures_util::future::BoxFuture;
use serde_json::{Map, Value};
use stepwell::model::{Money, NodeKey, Outcome, Part, Role, ToolCall, Usage};
use stepwell::{Event, Lane, Message, Recorded, Seq};
use stepwell_agent::context::Context;
use stepwell_agent::context::window::is_request;
use stepwell_agent::machine::Limits;
use stepwell_agent::permission::Mode;
use stepwell_agent::provider::{Answer, CallError, Delta, Ended, Provider, Request};
use stepwell_agent::run::{Allowed, Dispatcher, Setup, SharedBudget};
use stepwell_agent::tool::Tool;

use super::guide::Guide;
use crate::ask::{Ask, Worker};
use crate::flow::AgentSetup;
use crate::halt::Halt;

/// A tool call that the plan makes.
pub(super) struct PlannedCall<'a> {
    pub(super) key: &'a NodeKey,
    pub(super) lane: Lane,
    /// Its purpose, for its lane.
    pub(super) purpose: String,
    pub(super) tool: Arc<dyn Tool>,
    pub(super) arguments: Value,
    /// The mode for its approval.
    pub(super) mode: Mode,
    /// Knows the subagents that it may start.
    pub(super) dispatcher: Option<Arc<dyn Dispatcher>>,
    /// Recorded together with its start and with its result.
    pub(super) starting: &'a dyn Fn() -> Vec<Event>,
    pub(super) finishing: &'a dyn Fn(&Value) -> Vec<Event>,
    /// Converts its result to the node's output.
    pub(super) read: &'a dyn Fn(&CallResult) -> Map<String, Value>,
}

/// The result of a call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct CallResult {
    pub(super) outcome: Outcome,
    /// Its output.
    pub(super) text: String,
}

/// How often a call is repeated if the process died during it.
const REPEATS: u32 = 20;

impl Guide<'_, '_> {
    /// Makes a call, or finds its recorded result.
    pub(super) async fn call(&self, call: &PlannedCall<'_>) -> Result<Value, Halt> {
        let flow = self.flow;
        if let Some(output) = flow.state().memo.result(call.key) {
            return Ok(output.clone());
        }
        let agent = self.config.execute.as_str();
        self.note_upcoming(call.key, Some(agent), || Some(call.purpose.clone()))?;
        self.may_start()?;
        let fail = |why: String| flow.fail(call.key, None, &why, None);
        let base = flow.agents.setup(self.config.execute.as_str(), None).map_err(fail)?;
        let setup = AgentSetup { setup: Arc::new(planned(&base, call)), system: String::new() };
        // A call without a cost does not count against the budget.
        let shared_budget =
            SharedBudget::new(Allowed::default(), stepwell::model::Spent::default(), 0);
        let read = |_: &str| match self.result_of(call.key, &call.lane) {
            Some(result) if result.outcome == Outcome::Unknown => {
                Err("it was cut off together with the run, so it is made again".to_owned())
            }
            Some(result) => Ok((call.read)(&result)),
            None => Err("the call was not made".to_owned()),
        };
        let ask = Ask {
            lane: call.lane.clone(),
            agent: self.config.execute.as_str(),
            tools: None,
            prompt: &|| Ok(call.purpose.clone()),
            read: &read,
            retries: REPEATS,
        };
        let (starting, finishing) = (call.starting, call.finishing);
        let (setup, shared_budget) = (&setup, &shared_budget);
        let worker = Worker { setup, shared_budget, starting, finishing, judges_denied: true };
        let permit = flow.permits.acquire().await;
        self.may_start()?;
        let done = flow.ask_worker(call.key, &ask, &worker).await;
        drop(permit);
        self.halting(done)
    }

    /// Keeps other nodes from starting if this one stopped the flow.
    pub(super) fn halting(&self, done: Result<Value, Halt>) -> Result<Value, Halt> {
        if let Err(halt) = &done
            && halt.stops_flow()
        {
            self.flow.halted.set(true);
        }
        done
    }

    /// The result of the last call in a node's lane.
    fn result_of(&self, key: &NodeKey, lane: &Lane) -> Option<CallResult> {
        let state = self.flow.state();
        let began = state.memo.node(key).map_or(Seq::ZERO, |noted| noted.first_start);
        last_result(state.past.said(lane), began)
    }
}

/// The result of the last denied call, if all of an agent's calls since its last prompt were
/// denied.
pub(super) fn all_denied(said: &[Recorded]) -> Option<String> {
    let asks =
        |event: &Recorded| matches!(&event.event, Event::Message(message) if is_request(message));
    let since = &said[said.iter().rposition(asks).map_or(0, |asked| asked + 1)..];
    let outcomes = since.iter().filter_map(|event| match &event.event {
        Event::ToolFinished(finished) => Some(finished.outcome),
        _ => None,
    });
    let denied = outcomes.fold(None, |all: Option<bool>, outcome| {
        Some(all.unwrap_or(true) && outcome == Outcome::Denied)
    });
    match denied {
        Some(true) => last_result(since, Seq::ZERO).map(|result| result.text),
        _ => None,
    }
}

fn last_result(said: &[Recorded], began: Seq) -> Option<CallResult> {
    let since = || said.iter().rev().filter(|event| event.seq > began);
    let outcome = since().find_map(|event| match &event.event {
        Event::ToolFinished(finished) => Some(finished.outcome),
        _ => None,
    })?;
    let text = since().find_map(|event| match &event.event {
        Event::Message(message) => message.parts.iter().find_map(|part| match part {
            Part::ToolResult(result) => Some(result.text.clone()),
            _ => None,
        }),
        _ => None,
    })?;
    Some(CallResult { outcome, text })
}

/// The setup of a planned call: tools and keys of the agent that executes tasks, without a model.
fn planned(base: &Setup, call: &PlannedCall<'_>) -> Setup {
    let name = call.tool.spec().name.clone();
    let mut setup = base.clone();
    setup.provider = Arc::new(PlanSpeaks {
        key: call.key.to_string().replace('/', "-"),
        tool: name.clone(),
        arguments: call.arguments.to_string(),
    });
    setup.model = PLAN.to_owned();
    setup.cost = Arc::new(|_| Some(Money::ZERO));
    setup.rules.effects = [(name, call.tool.effect())].into();
    setup.rules.mode = call.mode;
    setup.rules.limits = Limits::default();
    setup.tools = vec![Arc::clone(&call.tool)];
    setup.dispatcher.clone_from(&call.dispatcher);
    setup.context = Context::default();
    setup.timeout = None;
    setup
}

/// The model name under which the plan's own messages are recorded.
const PLAN: &str = "plan";

/// Replaces the model: requests the single call, and is done when it has the result.
#[derive(Debug)]
struct PlanSpeaks {
    /// The node's key, which is part of the call's id.
    key: String,
    tool: String,
    arguments: String,
}

impl Provider for PlanSpeaks {
    fn name(&self) -> &str {
        PLAN
    }

    fn answer<'a>(
        &'a self,
        request: Request<'a>,
        _: &'a mut (dyn FnMut(Delta) + Send),
    ) -> BoxFuture<'a, Result<Answer, CallError>> {
        let has_result = |message: &Message| {
            message.parts.iter().any(|part| matches!(part, Part::ToolResult(_)))
        };
        let asked = request
            .messages
            .iter()
            .rposition(|message| message.role == Role::User && !has_result(message));
        let since = &request.messages[asked.map_or(0, |asked| asked + 1)..];
        let message = match since.iter().any(has_result) {
            true => Message::assistant("It was done as planned."),
            false => {
                // The number of earlier answers makes the id unique.
                let id = format!("{}-{}", self.key, request.turn.answers);
                let (name, arguments) = (self.tool.clone(), self.arguments.clone());
                let call = ToolCall { id, name, arguments, opaque: None };
                let mut message = Message::assistant("");
                message.parts = vec![Part::ToolCall(call)];
                message
            }
        };
        let (usage, cost) = (Some(Usage::default()), Some(Money::ZERO));
        Box::pin(async move { Ok(Answer { message, usage, cost, ended: Ended::Complete }) })
    }
}

/// An agent's setup with other limits.
pub(super) fn with_limits(base: &Rc<AgentSetup>, limits: Limits) -> AgentSetup {
    let mut setup = Setup::clone(&base.setup);
    setup.rules.limits = limits;
    AgentSetup { setup: Arc::new(setup), system: base.system.clone() }
}
