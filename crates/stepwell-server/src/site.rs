//! What handlers work with. A reading one has a [`Look`], a changing one an [`Act`]: each is made
//! only for a caller who may have it.

use std::collections::HashMap;
use std::ops::Deref;
use std::sync::Arc;

use stepwell::{Clock, SessionId, Stepwell, Who};
use stepwell_runtime::Runtime;
use stepwell_runtime::detached::{DetachedAnswer, DetachedRequest, Work};

use crate::access::AccessLog;
use crate::mcp_handler::McpHandler;
use crate::problem::{Problem, Result};
use crate::repeats::Repeats;
use crate::security::{Caller, Guard, Role};
use crate::stores::{OpenStore, Stores};

/// What the server is made of.
#[derive(Debug)]
pub(crate) struct Site {
    pub(crate) stores: Stores,
    pub(crate) guard: Guard,
    pub(crate) limits: Limits,
    pub(crate) repeats: Repeats,
    pub(crate) mcp: Option<Arc<dyn McpHandler>>,
    pub(crate) access: Option<Arc<dyn AccessLog>>,
    pub(crate) clock: Arc<dyn Clock>,
}

/// What is not offered, whoever asks.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Limits {
    pub(crate) read_only: bool,
    pub(crate) may_yolo: bool,
}

/// A request by somebody who may look.
#[derive(Debug)]
pub(crate) struct Look<'a> {
    pub(crate) site: &'a Site,
    pub(crate) caller: &'a Caller,
    /// The store that is meant.
    pub(crate) store: Arc<OpenStore>,
    parameters: &'a HashMap<String, String>,
}

/// A request by somebody who may change something.
#[derive(Debug)]
pub(crate) struct Act<'a>(Look<'a>);

impl<'a> Look<'a> {
    /// A look into the store that a request names.
    pub(crate) fn new(
        site: &'a Site,
        caller: &'a Caller,
        store: Option<&str>,
        parameters: &'a HashMap<String, String>,
    ) -> Result<Self> {
        Ok(Self { site, caller, store: site.stores.get(store)?, parameters })
    }

    /// The same for somebody who may change something.
    pub(crate) fn act(self) -> Result<Act<'a>> {
        if self.site.limits.read_only {
            return Err(
                Problem::denied("this server is read-only").hint("start it without --read-only")
            );
        }
        match self.caller.role {
            Role::Operator => Ok(Act(self)),
            Role::Viewer => Err(Problem::denied(format!("{} may only look", self.caller.name))),
        }
    }

    pub(crate) fn well(&self) -> &Stepwell {
        &self.store.well
    }

    /// The session that the path names.
    pub(crate) fn session(&self) -> Result<SessionId> {
        self.store.session(self.parameter("id"))
    }

    /// A part of the path.
    pub(crate) fn parameter(&self, name: &str) -> &str {
        self.parameters.get(name).map(String::as_str).unwrap_or_default()
    }

    pub(crate) fn runtime(&self) -> &Runtime {
        &self.store.runtime
    }
}

impl<'a> Deref for Act<'a> {
    type Target = Look<'a>;

    fn deref(&self) -> &Look<'a> {
        &self.0
    }
}

impl Act<'_> {
    /// Who acts, as the log has it.
    pub(crate) fn who(&self) -> Who {
        Who::from(format!("web: {}", self.caller.name))
    }

    /// The runtime, acting for the caller.
    pub(crate) fn acting(&self) -> Runtime {
        let runtime = match self.caller.is_user {
            true => self.store.runtime.clone(),
            false => self.store.runtime.for_others(),
        };
        runtime.acting_as(self.who())
    }

    /// Has a process of its own do something.
    pub(crate) fn launch(&self, work: Work) -> Result<DetachedAnswer> {
        let launcher = self.site.stores.launcher(&self.store).ok_or_else(|| {
            Problem::denied("this server starts nothing").hint("start it with --workspace DIR")
        })?;
        let request = DetachedRequest { who: Some(self.who().name), work };
        launcher.start(&request).map_err(|error| Problem::failed(error.to_string()))
    }
}
