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

use crate::audience::{Audience, News, Standing};
use crate::halt::{Fallen, Halt};
use crate::history::History;
use crate::memo::Memo;
use crate::spec::Spec;
use crate::staff::Staff;
use crate::template::Scope;

/// A flow that runs in a session.
pub struct Flow<'a> {
    pub(crate) session: &'a Session,
    pub(crate) spec: &'a Spec,
    pub(crate) staff: &'a dyn Staff,
    /// What templates see of the flow's variables.
    pub(crate) variables: Scope,
    pub(crate) desk: Mutex<Desk<'a>>,
    pub(crate) purse: Purse,
    /// Where the session stood when it was read.
    pub(crate) read_to: Seq,
    /// How many agents may work at once.
    pub(crate) permits: Semaphore,
    /// Does nothing begin any more?
    pub(crate) held: Cell<bool>,
    pub(crate) interrupt: watch::Receiver<bool>,
    hired: RefCell<HashMap<Role, Rc<Hired>>>,
    /// Files that are recorded as written, and what they held.
    pub(crate) artifacts: BTreeMap<String, Digest>,
}

/// An agent, and tools in place of its own.
type Role = (String, Option<Vec<String>>);

/// What is known of the session, and who is told.
pub(crate) struct Desk<'a> {
    pub(crate) memo: Memo,
    pub(crate) past: Past,
    pub(crate) audience: &'a mut dyn Audience,
}

/// What an agent works with, and what it is told.
pub(crate) struct Hired {
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
    pub staff: &'a dyn Staff,
    /// What its variables are.
    pub variables: Scope,
    /// Who is told.
    pub audience: &'a mut dyn Audience,
    /// Becomes true when the user wants it to stop.
    pub interrupt: watch::Receiver<bool>,
    /// What it may use.
    pub purse: Purse,
}

impl<'a> Flow<'a> {
    /// Takes a flow up where its session stands.
    #[must_use]
    pub fn new(parts: Parts<'a>, history: History) -> Self {
        let Parts { session, spec, staff, mut variables, audience, interrupt, purse } = parts;
        if !variables.has("name") {
            variables.set("name", &spec.name);
        }
        let History { memo, past, seq, artifacts, .. } = history;
        let most = usize::try_from(spec.runtime.max_parallel().get()).unwrap_or(usize::MAX);
        Self {
            session,
            spec,
            staff,
            variables,
            desk: Mutex::new(Desk { memo, past, audience }),
            purse,
            read_to: seq,
            permits: Semaphore::new(most.min(Semaphore::MAX_PERMITS)),
            held: Cell::new(false),
            interrupt,
            hired: RefCell::default(),
            artifacts,
        }
    }

    pub(crate) fn desk(&self) -> MutexGuard<'_, Desk<'a>> {
        self.desk.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Is nothing to begin any more?
    pub(crate) fn is_held(&self) -> bool {
        self.held.get()
    }

    /// Lets work begin again: the patterns are about to be walked anew.
    pub(crate) fn release(&self) {
        self.held.set(false);
    }

    /// What an agent works with. It is found once.
    pub(crate) fn hire(
        &self,
        key: &NodeKey,
        agent: &str,
        tools: Option<&[String]>,
    ) -> Result<Rc<Hired>, Halt> {
        let name = (agent.to_owned(), tools.map(<[String]>::to_vec));
        if let Some(hired) = self.hired.borrow().get(&name) {
            return Ok(Rc::clone(hired));
        }
        let fail = |what: String| self.fail(key, Some(agent), &what, None);
        let Some(described) = self.spec.agents.get(agent) else {
            return Err(fail(format!("there is no agent {agent:?}")));
        };
        let setup = self.staff.hire(agent, tools).map_err(fail)?;
        let system = described.prompt.template.render(&self.variables);
        let system = system.map_err(|error| fail(format!("agents.{agent}.prompt: {error}")))?;
        let hired = Rc::new(Hired { setup, system });
        self.hired.borrow_mut().insert(name, Rc::clone(&hired));
        Ok(hired)
    }

    /// Records events, all or none, takes them in, and tells of them.
    pub(crate) fn record(&self, events: Vec<Event>) -> Result<(), Halt> {
        let at = self.session.now();
        let entries = events.iter().cloned().map(|event| NewEvent::from(event).at(at)).collect();
        let mut seq = match self.session.append_all(entries) {
            Ok(written) => written.first,
            Err(error) => {
                self.held.set(true);
                return Err(error.into());
            }
        };
        let mut desk = self.desk();
        for event in events {
            desk.take(Recorded { seq, at, id: None, event });
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
        let standing = Standing { key, agent, who, state, error, spent: &spent };
        self.desk().audience.saw(News::Node(standing));
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
        let what = self.staff.redactor().redact(what).into_owned();
        let node = NodeEvent {
            error: Some(what.clone()),
            ..NodeEvent::new(key, agent, NodeState::Failed)
        };
        match self.record_node(node, Vec::new()) {
            Ok(()) => Halt::Failed(Fallen { fault, ..Fallen::at(key.to_string(), what) }),
            Err(halt) => halt,
        }
    }

    /// What failed at a node whose own work is done.
    pub(crate) fn fallen(&self, key: &NodeKey, what: &str) -> Fallen {
        let what = self.staff.redactor().redact(what).into_owned();
        Fallen::at(key.to_string(), what)
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

impl Desk<'_> {
    /// Takes an event in, and tells of it.
    pub(crate) fn take(&mut self, event: Recorded) {
        self.memo.take(&event);
        self.audience.saw(News::Recorded(&event));
        self.past.take(event);
    }
}
