//! A running flow: its session, its state, and how events are recorded.
//!
//! All lanes run in one task, so only the state that a provider's callbacks reach is shared
//! between threads.

use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, HashMap, HashSet};
use std::rc::Rc;
use std::sync::Arc;

use parking_lot::{Mutex, MutexGuard};
use serde::Serialize;
use serde_json::Value;
use stepwell::log::Redactor;
use stepwell::model::{Digest, Node, NodeKey, NodeState, Spent, Usage};
use stepwell::{Event, NewEvent, Recorded, Seq, Session};
use stepwell_agent::provider::Fault;
use stepwell_agent::run::{
    EventSink, FrontEnd, NodeStatus, Past, RunEvent, Setup, SharedBudget, Wishes,
};
use tokio::sync::{Semaphore, watch};

use crate::halt::{Halt, NodeFailure};
use crate::history::History;
use crate::memo::Memo;
use crate::spec::Spec;
use crate::template::Scope;

/// A flow running in a session.
pub struct Flow<'a> {
    pub(crate) session: &'a Session,
    pub(crate) spec: &'a Spec,
    pub(crate) agents: &'a dyn Agents,
    /// The flow's variables, as templates see them.
    pub(crate) variables: Scope,
    pub(crate) state: Arc<Mutex<FlowState>>,
    /// Where events go.
    pub(crate) events: EventSink,
    /// Requests of the front end.
    pub(crate) wishes: Wishes,
    /// Questions that were reported to the front end.
    pub(crate) announced: RefCell<HashSet<String>>,
    pub(crate) shared_budget: SharedBudget,
    /// The last event that was read when the flow started.
    pub(crate) read_to: Seq,
    /// Limits how many agents run at once.
    pub(crate) permits: Semaphore,
    /// Set once no further node may start.
    pub(crate) halted: Cell<bool>,
    pub(crate) interrupt: watch::Receiver<bool>,
    agent_setups: RefCell<HashMap<AgentKey, Rc<AgentSetup>>>,
    /// Files that are recorded as written, and the digests of their contents.
    pub(crate) artifacts: BTreeMap<String, Digest>,
    /// In a dry run, the nodes that would run next. Nothing runs or is recorded.
    pub(crate) dry_run: Option<RefCell<Vec<Upcoming>>>,
}

/// A node that a flow would run next.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Upcoming {
    /// Its key, as the session's log names it.
    pub key: String,
    /// The agent that would be asked; `None` for a question to a person.
    pub agent: Option<String>,
    /// The prompt or the question; `None` if it cannot be rendered yet.
    pub asks: Option<String>,
}

/// Provides what a flow's agents run with: models, tools, keys.
pub trait Agents {
    /// The setup of one agent. `tools`, if given, replace the agent's own. The error says why
    /// the agent cannot run.
    fn setup(&self, agent: &str, tools: Option<&[String]>) -> Result<Arc<Setup>, String>;

    /// Removes secrets from everything that is written.
    fn redactor(&self) -> &Redactor;
}

/// An agent with the tools that replace its own, if any.
#[derive(PartialEq, Eq, Hash)]
struct AgentKey {
    agent: String,
    tools: Option<Vec<String>>,
}

/// What the session recorded so far, and the front end.
pub(crate) struct FlowState {
    pub(crate) memo: Memo,
    pub(crate) past: Past,
    pub(crate) events: EventSink,
}

pub(crate) fn locked(state: &Mutex<FlowState>) -> MutexGuard<'_, FlowState> {
    state.lock()
}

/// What an agent runs with, and its rendered system prompt.
pub(crate) struct AgentSetup {
    pub(crate) setup: Arc<Setup>,
    pub(crate) system: String,
}

/// What [`Flow::new`] needs.
pub struct Parts<'a> {
    /// The session it runs in.
    pub session: &'a Session,
    /// The checked spec.
    pub spec: &'a Spec,
    /// Provides its agents.
    pub agents: &'a dyn Agents,
    /// The values of its variables.
    pub variables: Scope,
    /// Its front end. [`run`](Flow::run) says whether it waits for answers.
    pub front: FrontEnd,
    /// Becomes true when the user interrupts.
    pub interrupt: watch::Receiver<bool>,
    /// The budget that all its agents share.
    pub shared_budget: SharedBudget,
}

impl<'a> Flow<'a> {
    /// Starts a flow, or resumes it from its session's history.
    #[must_use]
    pub fn new(parts: Parts<'a>, history: History) -> Self {
        let Parts { session, spec, agents, mut variables, front, interrupt, shared_budget } = parts;
        let FrontEnd { events, wishes, .. } = front;
        if !variables.has("name") {
            variables.set("name", &spec.name);
        }
        let History { memo, past, seq, artifacts, .. } = history;
        let max = usize::try_from(spec.runtime.max_parallel().get()).unwrap_or(usize::MAX);
        Self {
            session,
            spec,
            agents,
            variables,
            state: Arc::new(Mutex::new(FlowState { memo, past, events: events.clone() })),
            events,
            wishes,
            announced: RefCell::default(),
            shared_budget,
            read_to: seq,
            permits: Semaphore::new(max.min(Semaphore::MAX_PERMITS)),
            halted: Cell::new(false),
            interrupt,
            agent_setups: RefCell::default(),
            artifacts,
            dry_run: None,
        }
    }

    pub(crate) fn state(&self) -> MutexGuard<'_, FlowState> {
        locked(&self.state)
    }

    /// Whether no further node may start.
    pub(crate) fn is_halted(&self) -> bool {
        self.halted.get()
    }

    /// Lets nodes start again, before the pattern is walked again.
    pub(crate) fn restart(&self) {
        self.halted.set(false);
    }

    /// The setup of an agent, built on first use.
    pub(crate) fn agent_setup(
        &self,
        key: &NodeKey,
        agent: &str,
        tools: Option<&[String]>,
    ) -> Result<Rc<AgentSetup>, Halt> {
        let setup_key = AgentKey { agent: agent.to_owned(), tools: tools.map(<[String]>::to_vec) };
        if let Some(agent_setup) = self.agent_setups.borrow().get(&setup_key) {
            return Ok(Rc::clone(agent_setup));
        }
        let fail = |what: String| self.fail(key, Some(agent), &what, None);
        let Some(described) = self.spec.agents.get(agent) else {
            return Err(fail(format!("unknown agent {agent:?}")));
        };
        let setup = self.agents.setup(agent, tools).map_err(fail)?;
        let system = described.prompt.template.render(&self.variables);
        let system = system.map_err(|error| fail(format!("agents.{agent}.prompt: {error}")))?;
        let agent_setup = Rc::new(AgentSetup { setup, system });
        self.agent_setups.borrow_mut().insert(setup_key, Rc::clone(&agent_setup));
        Ok(agent_setup)
    }

    /// Records events atomically, applies them to the state, and reports them.
    pub(crate) fn record(&self, events: Vec<Event>) -> Result<(), Halt> {
        if self.dry_run.is_some() {
            return Err(Halt::NotStarted);
        }
        let at = self.session.now();
        let entries = events.iter().cloned().map(|event| NewEvent::from(event).at(at)).collect();
        let mut seq = match self.session.append_all(entries) {
            Ok(written) => written.first,
            Err(error) => {
                self.halted.set(true);
                return Err(error.into());
            }
        };
        let mut state = self.state();
        for event in events {
            state.apply(Recorded { seq, at, id: None, event });
            seq = seq.next();
        }
        Ok(())
    }

    /// Records a node's new state, and reports it.
    pub(crate) fn record_node(&self, node: NodeEvent<'_>, more: Vec<Event>) -> Result<(), Halt> {
        let NodeEvent { key, agent, state, output, usage, error } = node;
        let reported_error = error.clone();
        let who = output.as_ref().and_then(|output| Some(output.get("who")?.as_str()?.to_owned()));
        let who = who.filter(|_| agent.is_none());
        let node = Node { key: key.to_string(), state, output, usage, error };
        let mut events = vec![node.into()];
        events.extend(more);
        self.record(events)?;
        self.events.tell(RunEvent::Node(NodeStatus {
            key: key.to_string(),
            agent: agent.map(str::to_owned),
            who,
            state,
            error: reported_error,
            spent: self.shared_budget.spent(),
        }));
        Ok(())
    }

    /// Records that a node failed.
    pub(crate) fn fail(
        &self,
        key: &NodeKey,
        agent: Option<&str>,
        what: &str,
        fault: Option<Fault>,
    ) -> Halt {
        let what = self.agents.redactor().redact(what).into_owned();
        let node = NodeEvent {
            error: Some(what.clone()),
            ..NodeEvent::new(key, agent, NodeState::Failed)
        };
        match self.record_node(node, Vec::new()) {
            Ok(()) => Halt::Failed(NodeFailure { fault, ..NodeFailure::at(key.to_string(), what) }),
            Err(halt) => halt,
        }
    }

    /// A failure at a node whose own result is already recorded.
    pub(crate) fn failure(&self, key: &NodeKey, what: &str) -> NodeFailure {
        let what = self.agents.redactor().redact(what).into_owned();
        NodeFailure::at(key.to_string(), what)
    }

    /// What the flow has spent so far, earlier runs included.
    #[must_use]
    pub fn spent(&self) -> Spent {
        self.shared_budget.spent()
    }
}

/// A node's new state, to be recorded.
pub(crate) struct NodeEvent<'a> {
    pub(crate) key: &'a NodeKey,
    pub(crate) agent: Option<&'a str>,
    pub(crate) state: NodeState,
    pub(crate) output: Option<Value>,
    pub(crate) usage: Option<Usage>,
    pub(crate) error: Option<String>,
}

impl<'a> NodeEvent<'a> {
    pub(crate) const fn new(key: &'a NodeKey, agent: Option<&'a str>, state: NodeState) -> Self {
        Self { key, agent, state, output: None, usage: None, error: None }
    }
}

impl FlowState {
    /// Applies a recorded event, and reports it.
    pub(crate) fn apply(&mut self, event: Recorded) {
        self.memo.apply(&event);
        self.events.tell(RunEvent::Recorded(event.clone()));
        self.past.add(event);
    }
}
