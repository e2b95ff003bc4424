//! The environment of handlers. A reading handler receives a [`Look`], a changing one an [`Act`];
//! each is only created for a caller with that permission.

use std::collections::HashMap;
use std::sync::Arc;

use stepwell::clock::Clock;
use stepwell::model::{EventId, Mode, Who};
use stepwell::{Acting, Event, Recorded, SessionId, Stepwell};
use stepwell_runtime::command::{Reply, SessionCommand};
use stepwell_runtime::detached::{DetachedAnswer, DetachedRequest, Grants, Work};
use stepwell_runtime::{Interrupt, Runtime};

use crate::access::AccessLog;
use crate::mcp_handler::McpHandler;
use crate::problem::{Problem, Result};
use crate::repeats::Repeats;
use crate::security::{Caller, Guard, Role};
use crate::stores::{OpenStore, Stores};
use crate::tidying::Tidying;

/// The parts of the server.
#[derive(Debug)]
pub(crate) struct Site {
    pub(crate) stores: Stores,
    pub(crate) tidying: Tidying,
    pub(crate) guard: Guard,
    pub(crate) limits: Limits,
    pub(crate) repeats: Repeats,
    pub(crate) mcp: Option<Arc<dyn McpHandler>>,
    pub(crate) access: Option<Arc<dyn AccessLog>>,
    pub(crate) clock: Arc<dyn Clock>,
}

/// What the server refuses to every caller.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Limits {
    pub(crate) read_only: bool,
    pub(crate) may_yolo: bool,
}

/// A request by a caller who may read.
#[derive(Debug)]
pub(crate) struct Look<'a> {
    pub(crate) site: &'a Site,
    pub(crate) caller: &'a Caller,
    /// The store.
    pub(crate) store: Arc<OpenStore>,
    parameters: &'a HashMap<String, String>,
}

/// A request by a caller who may change something.
#[derive(Debug)]
pub(crate) struct Act<'a> {
    /// What it may look at.
    pub(crate) look: Look<'a>,
    /// The name of the event that it becomes: asked for again, nothing is recorded.
    event: Option<EventId>,
}

impl<'a> Look<'a> {
    /// Read access to the store of a request.
    pub(crate) fn new(
        site: &'a Site,
        caller: &'a Caller,
        store: Option<&str>,
        parameters: &'a HashMap<String, String>,
    ) -> Result<Self> {
        Ok(Self { site, caller, store: site.stores.get(store, caller)?, parameters })
    }

    /// Write access, if the caller may have it.
    pub(crate) fn act(self, event: Option<EventId>) -> Result<Act<'a>> {
        if self.site.limits.read_only {
            return Err(
                Problem::denied("this server is read-only").hint("start it without --read-only")
            );
        }
        match self.caller.role {
            Role::Operator => Ok(Act { look: self, event }),
            Role::Viewer => Err(Problem::denied(format!("{} may only read", self.caller.name))),
        }
    }

    pub(crate) fn well(&self) -> &Stepwell {
        &self.store.well
    }

    /// The session in the path.
    pub(crate) fn session(&self) -> Result<SessionId> {
        self.store.session(self.parameter("id"))
    }

    /// A parameter of the path.
    pub(crate) fn parameter(&self, name: &str) -> &str {
        self.parameters.get(name).map(String::as_str).unwrap_or_default()
    }

    pub(crate) fn runtime(&self) -> &Runtime {
        &self.store.runtime
    }
}

impl Act<'_> {
    /// The author for events.
    pub(crate) fn who(&self) -> Who {
        self.look.caller.who()
    }

    /// The runtime, acting for the caller.
    pub(crate) fn acting(&self) -> Runtime {
        let runtime = match self.look.caller.is_user {
            true => self.look.store.runtime.clone(),
            false => self.look.store.runtime.for_others(),
        };
        runtime.acting_as(self.who()).naming_event(self.event)
    }

    /// The store, with the caller as author.
    pub(crate) fn acting_well(&self) -> Stepwell {
        self.look.well().acting(Acting { who: Some(self.who()), event: self.event })
    }

    /// Carries out a command about the session that the path names, for the caller.
    pub(crate) fn run(&self, what: SessionCommand) -> Result<Reply> {
        let id = self.look.session()?;
        Ok(self.acting().run_in(&self.look.store.well, &id, what, &Interrupt::default())?)
    }

    /// What this very request recorded earlier, if it is repeated. The log is checked because it
    /// remembers keys for longer than the server does; a key that was used for another request is
    /// refused.
    pub(crate) fn done_before(
        &self,
        id: &SessionId,
        is_same: impl FnOnce(&Event) -> bool,
    ) -> Result<Option<Recorded>> {
        let Some(name) = &self.event else { return Ok(None) };
        match self.look.well().store().event(id, name)? {
            Some(done) if !is_same(&done.event) => Err(Problem::other_request()),
            done => Ok(done),
        }
    }

    /// A text as the log would have it: redacted.
    pub(crate) fn as_recorded(&self, text: &str) -> String {
        self.look.well().redactor().redact(text).into_owned()
    }

    /// The caller's permissions, whatever the request asks for.
    fn grants(&self) -> Grants {
        let loosest_mode = (!self.look.site.limits.may_yolo).then_some(Mode::ConfirmSensitive);
        Grants { is_other: !self.look.caller.is_user, loosest_mode }
    }

    /// Starts a process for this work.
    pub(crate) fn launch(&self, work: Work) -> Result<DetachedAnswer> {
        let launcher = self.look.site.stores.launcher(&self.look.store).ok_or_else(|| {
            Problem::denied("this server starts nothing").hint("start it with --workspace DIR")
        })?;
        let request = DetachedRequest { who: Some(self.who().name), grants: self.grants(), work };
        launcher.start(&request).map_err(|error| Problem::failed(error.to_string()))
    }
}
