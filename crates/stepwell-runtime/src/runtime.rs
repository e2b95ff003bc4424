//! What runs are started with: a workspace, and what a front end brings along.

use std::collections::BTreeMap;
use std::sync::Arc;

use stepwell::model::{EventId, Who};
use stepwell::sessions::NewSession;
use stepwell::sqlite::Access;
use stepwell::{Acting, Created, NewEvent, Session, SessionId, Stepwell};
use stepwell_agent::agent::{Agent, builtin};
use stepwell_agent::run::{EventSink, RunEvent};
use stepwell_agent::tool::Supervisor;
use stepwell_workspace::{Workspace, ownership};

use crate::error::Result;
use crate::notice::{Notice, Notices};
use crate::trust::Trust;

/// Starts and resumes runs in a workspace. Cloning is cheap.
#[derive(Clone, Debug)]
pub struct Runtime {
    workspace: Arc<Workspace>,
    notices: Notices,
    supervisor: Option<Supervisor>,
    /// Is somebody there who reads of sessions that crashed?
    announces_crashes: bool,
    /// Where the events of the run go that this one was cloned for.
    events: EventSink,
    /// Who acts; absent, this process's user.
    who: Option<Who>,
    /// The name of the event that is recorded next.
    event: Option<EventId>,
}

impl Runtime {
    /// A runtime in a workspace. Nobody reads its notices yet.
    #[must_use]
    pub fn new(workspace: Workspace) -> Self {
        Self {
            workspace: Arc::new(workspace),
            notices: Notices::to_nobody(),
            supervisor: None,
            announces_crashes: false,
            events: EventSink::nobody(),
            who: None,
            event: None,
        }
    }

    /// The same, with someone who reads its notices.
    #[must_use]
    pub fn telling(self, notices: Notices) -> Self {
        Self { notices, ..self }
    }

    /// The same, where a person reads notices. Only then are sessions that crashed announced: each
    /// is announced once, and a program would not pass it on.
    #[must_use]
    pub fn with_reader(self, reads: bool) -> Self {
        Self { announces_crashes: reads, ..self }
    }

    pub(crate) const fn announces_crashes(&self) -> bool {
        self.announces_crashes
    }

    /// The same, with a program that ends what commands started.
    #[must_use]
    pub fn supervised_by(self, supervisor: Option<Supervisor>) -> Self {
        Self { supervisor, ..self }
    }

    /// The same for one run, whose events go there.
    pub(crate) fn with_events(&self, events: EventSink) -> Self {
        Self { events, ..self.clone() }
    }

    /// The same in another form of the workspace.
    pub(crate) fn in_workspace(&self, workspace: Workspace) -> Self {
        Self { workspace: Arc::new(workspace), ..self.clone() }
    }

    /// The workspace.
    #[must_use]
    pub fn workspace(&self) -> &Workspace {
        &self.workspace
    }

    pub(crate) fn tell(&self, notice: Notice) {
        self.notices.tell(notice);
    }

    /// Tells of something in the run that this one was cloned for.
    pub(crate) fn tell_event(&self, event: RunEvent) {
        self.events.tell(event);
    }

    pub(crate) const fn supervisor(&self) -> Option<&Supervisor> {
        self.supervisor.as_ref()
    }

    /// Who answers and speaks here: the user, by the name that the machine knows them by, unless
    /// a front end [speaks for somebody](Self::acting_as).
    #[must_use]
    pub fn who(&self) -> Who {
        self.who.clone().unwrap_or_else(|| self.workspace().host.processes.this().who())
    }

    /// Whom a front end speaks for.
    pub(crate) const fn acting(&self) -> Option<&Who> {
        self.who.as_ref()
    }

    /// Has somebody the name of this user, though nothing here says that it was them?
    pub(crate) fn is_namesake(&self, who: &Who) -> bool {
        let me = self.who();
        who.login.is_none() && me.name == who.name
    }

    /// The same, for somebody whom a front end speaks for.
    #[must_use]
    pub fn acting_as(self, who: Who) -> Self {
        Self { who: Some(who), ..self }
    }

    /// The same, naming the event that it records next, so that a request that is sent again
    /// records nothing.
    #[must_use]
    pub fn naming_event(self, event: Option<EventId>) -> Self {
        Self { event, ..self }
    }

    /// A well that writes for whoever this speaks for.
    pub(crate) fn acting_well(&self, well: &Stepwell) -> Stepwell {
        well.acting(Acting { who: self.who.clone(), event: self.event })
    }

    /// A name for a session that is to begin here. Nothing is recorded yet.
    ///
    /// # Errors
    /// If the store cannot be read.
    pub fn new_session_id(&self) -> Result<SessionId> {
        Ok(match self.workspace().open_if_present()? {
            Some(well) => well.new_id(),
            None => Stepwell::in_memory().new_id_like(self.workspace().id_format()),
        })
    }

    /// Whether what a session's log allows was allowed by this user.
    #[must_use]
    pub fn trust(&self, session: &SessionId) -> Trust {
        Trust::of(&self.workspace, session)
    }

    /// The same for somebody who is not the user: what they allow counts as `talk.from` says.
    #[must_use]
    pub fn for_others(&self) -> Self {
        self.in_workspace(self.workspace.for_others())
    }

    /// The agents that a run can be started with: those that are built in, and the user's own.
    #[must_use]
    pub fn agents(&self) -> BTreeMap<String, Agent> {
        let mut agents = builtin();
        agents.extend(self.workspace().config.agents.clone());
        agents
    }

    /// Makes a session that is the user's own. It is marked before it is there, so that a process
    /// that dies in between does not leave a session that its own user is refused. What somebody
    /// else made under the same name is not marked.
    pub(crate) fn create_own(
        &self,
        well: &Stepwell,
        created: Created,
        events: Vec<NewEvent>,
    ) -> Result<Session> {
        let id = created.id.clone();
        let is_known = ownership::is_own(self.workspace(), &id) || well.store().exists(&id)?;
        if !is_known {
            ownership::mark(self.workspace(), &id);
        }
        let made = well.create(NewSession { created, events });
        if made.is_err() && !is_known {
            ownership::unmark(self.workspace(), &id);
        }
        Ok(made?)
    }

    /// The store, open for writing.
    pub(crate) fn writing(&self) -> Result<Stepwell> {
        Ok(self.workspace().open_existing(Access::Write)?)
    }

    /// The well of a new session: the workspace's, or one in memory.
    pub(crate) fn well_for_new(&self) -> Result<NewWell> {
        match self.workspace().config.settings.auto_save {
            true => Ok(NewWell::Kept(self.workspace().open_or_create()?)),
            false => Ok(NewWell::InMemory(Stepwell::in_memory())),
        }
    }
}

/// Where a new session is kept.
pub(crate) enum NewWell {
    Kept(Stepwell),
    InMemory(Stepwell),
}
