//! A flow that runs: its session, what is known of it, and how things are recorded.
//!
//! All lanes run in one task, so nothing here needs to be sent between threads but what a
//! provider is told through.

use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, HashMap};
use std::rc::Rc;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use serde_json::Value;
use stepwell::{
    Digest, Event, NewEvent, Node, NodeKey, NodeState, Recorded, Seq, Session, Spent, Usage,
};
use stepwell_agent::provider::Fault;
use stepwell_agent::run::{Past, Purse, Setup};
use tokio::sync::{Semaphore, watch};

use crate::agents::Agents;
use crate::halt::{Halt, NodeFailure};
use crate::history::History;
use crate::memo::Memo;
use crate::observer::{FlowEvent, NodeStatus, Observer};
use crate::rehearsal::Upcoming;
use crate::spec::Spec;
use crate::template::Scope;

/// A flow that runs in a session.
pub struct Flow<'a> {
    pub(crate) session: &'a Session,
    pub(crate) spec: &'a Spec,
    pub(crate) agents: &'a dyn Agents,
    /// What templates see of the flow's variables.
    pub(crate) variables: Scope,
    pub(crate) state: Mutex<FlowState<'a>>,
    pub(crate) purse: Purse,
    /// Where the session stood when it was read.
    pub(crate) read_to: Seq,
    /// How many agents may work at once.
    pub(crate) permits: Semaphore,
    /// Does nothing begin any more?
    pub(crate) halted: Cell<bool>,
    pub(crate) interrupt: watch::Receiver<bool>,
    agent_setups: RefCell<HashMap<Role, Rc<AgentSetup>>>,
    /// Files that are recorded as written, and what they held.
    pub(crate) artifacts: BTreeMap<String, Digest>,
    /// What would be done next, if nothing is to be done or recorded.
    pub(crate) rehearsal: Option<RefCell<Vec<Upcoming>>>,
}

/// An agent, and tools in place of its own.
type Role = (String, Option<Vec<String>>);

/// What is known of the session, and who is told.
pub(crate) struct FlowState<'a> {
    pub(crate) memo: Memo,
    pub(crate) past: Past,
    pub(crate) observer: &'a mut dyn Observer,
}

/// What an agent works with, and what it is told.
pub(crate) struct AgentSetup {
    pub(crate) setup: Arc<Setup>,
    pub(crate) system: String,
}

/// What a flow is made of.
pub struct Parts<'a> {
    /// Its session.
    pub session: &'a Session,
    /// What it is to do.
    pub spec: &'a Spec,
    /// Knows its agents.
    pub agents: &'a dyn Agents,
    /// What its variables are.
    pub variables: Scope,
    /// Who is told.
    pub observer: &'a mut dyn Observer,
    /// Becomes true when the user wants it to stop.
    pub interrupt: watch::Receiver<bool>,
    /// What it may use.
    pub purse: Purse,
}

impl<'a> Flow<'a> {
    /// Takes a flow up where its session stands.
    #[must_use]
    pub fn new(parts: Parts<'a>, history: History) -> Self {
        let Parts { session, spec, agents, mut variables, observer, interrupt, purse } = parts;
        if !variables.has("name") {
            variables.set("name", &spec.name);
        }
        let History { memo, past, seq, artifacts, .. } = history;
        let most = usize::try_from(spec.runtime.max_parallel().get()).unwrap_or(usize::MAX);
        Self {
            session,
            spec,
            agents,
            variables,
            state: Mutex::new(FlowState { memo, past, observer }),
            purse,
            read_to: seq,
            permits: Semaphore::new(most.min(Semaphore::MAX_PERMITS)),
            halted: Cell::new(false),
            interrupt,
            agent_setups: RefCell::default(),
            artifacts,
            rehearsal: None,
        }
    }

    pub(crate) fn state(&self) -> MutexGuard<'_, FlowState<'a>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Is nothing to begin any more?
    pub(crate) fn is_halted(&self) -> bool {
        self.halted.get()
    }

    /// Lets work begin again: the patterns are about to be walked anew.
    pub(crate) fn restart(&self) {
        self.halted.set(false);
    }

    /// What an agent works with. It is found once.
    pub(crate) fn agent_setup(
        &self,
        key: &NodeKey,
        agent: &str,
        tools: Option<&[String]>,
    ) -> Result<Rc<AgentSetup>, Halt> {
        let name = (agent.to_owned(), tools.map(<[String]>::to_vec));
        if let Some(agent_setup) = self.agent_setups.borrow().get(&name) {
            return Ok(Rc::clone(agent_setup));
        }
        let fail = |what: String| self.fail(key, Some(agent), &what, None);
        let Some(described) = self.spec.agents.get(agent) else {
            return Err(fail(format!("there is no agent {agent:?}")));
        };
        let setup = self.agents.setup(agent, tools).map_err(fail)?;
        let system = described.prompt.template.render(&self.variables);
        let system = system.map_err(|error| fail(format!("agents.{agent}.prompt: {error}")))?;
        let agent_setup = Rc::new(AgentSetup { setup, system });
        self.agent_setups.borrow_mut().insert(name, Rc::clone(&agent_setup));
        Ok(agent_setup)
    }

    /// Records events, all or none, takes them in, and tells of them.
    pub(crate) fn record(&self, events: Vec<Event>) -> Result<(), Halt> {
        if self.rehearsal.is_some() {
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

    /// Records how a node stands, and tells of it.
    pub(crate) fn record_node(&self, node: NodeEvent<'_>, more: Vec<Event>) -> Result<(), Halt> {
        let NodeEvent { key, agent, state, output, usage, error } = node;
        let told = error.clone();
        let who = output.as_ref().and_then(|output| Some(output.get("who")?.as_str()?.to_owned()));
        let who = who.filter(|_| agent.is_none());
        let node = Node { key: key.to_string(), state, output, usage, error };
        let mut events = vec![node.into()];
        events.extend(more);
        self.record(events)?;
        let spent = self.purse.spent();
        let (error, who) = (told.as_deref(), who.as_deref());
        let status = NodeStatus { key, agent, who, state, error, spent: &spent };
        self.state().observer.on_event(FlowEvent::Node(status));
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

    /// What failed at a node whose own work is done.
    pub(crate) fn failure(&self, key: &NodeKey, what: &str) -> NodeFailure {
        let what = self.agents.redactor().redact(what).into_owned();
        NodeFailure::at(key.to_string(), what)
    }

    /// What was spent so far.
    #[must_use]
    pub fn spent(&self) -> Spent {
        self.purse.spent()
    }
}

/// How a node stands, to be recorded.
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

impl FlowState<'_> {
    /// Takes an event in, and tells of it.
    pub(crate) fn apply(&mut self, event: Recorded) {
        self.memo.apply(&event);
        self.observer.on_event(FlowEvent::Recorded(&event));
        self.past.take(event);
    }
}
