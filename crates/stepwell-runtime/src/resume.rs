//! Resuming a session, an agent's or a flow's: the order of it, written once.

use stepwell::error::Action;
use stepwell::log::Head;
use stepwell::model::{Driver, GateAnswered, Mode};
use stepwell::sessions::Recognised;
use stepwell::store::Span;
use stepwell::work::Gates;
use stepwell::{
    Error as StoreError, Lane, Remedy, Session, SessionId, SessionInfo, Status, Stepwell,
};
use stepwell_agent::machine::State;
use stepwell_agent::run::check_sendable;
use stepwell_workspace::{Prior, Settled, restore_worktree};

use crate::drive::{Agent, UserTurn};
use crate::error::{Error, Result};
use crate::flow::FlowWork;
use crate::gate_answer::{Fitting, record, tell_late};
use crate::handle::RunHandle;
use crate::mcp::Connected;
use crate::notice::Notice;
use crate::prepare::{Of, Prepared};
use crate::readiness::make_ready;
use crate::report::RunReport;
use crate::request::ResumeRequest;
use crate::runtime::Runtime;
use crate::thread::{Job, spawn};

impl Runtime {
    /// Resumes a session exactly where it stopped, or gives it more to do. Returns when the session
    /// is held and its run begins.
    ///
    /// # Errors
    /// If it cannot be resumed, somebody else runs it, or its agent, model or tools cannot be had.
    /// Then nothing was recorded, unless a rewind that was cut off was finished first.
    pub fn resume(&self, request: ResumeRequest) -> Result<RunHandle> {
        request.refuse_dry_answer()?;
        let interrupt = request.interrupt.clone();
        spawn(self, interrupt, move |job| resume(&request, job))
    }

    /// The same, but an answer reaches a session that runs elsewhere, and it goes on there.
    ///
    /// # Errors
    /// As [`resume`](Self::resume), and if the answer fits nothing that the session waits with.
    pub fn resume_or_answer(&self, request: ResumeRequest) -> Result<Resumed> {
        let Some(given) = request.answer.clone() else {
            return self.resume(request).map(Resumed::here);
        };
        self.refuse_in_run("answering")?;
        match self.resume(request.clone()) {
            Err(Error::RunsElsewhere(_)) => {}
            resumed => return resumed.map(Resumed::here),
        }
        let answered = self.answer(&request.session, &given, &request.flow)?;
        if given.gate.is_none() {
            self.tell_answered(&answered.session, &answered.gate)?;
        }
        match answered.goes_on {
            true => Ok(Resumed::Elsewhere),
            false => self.resume(ResumeRequest { answer: None, ..request }).map(Resumed::here),
        }
    }
}

impl Runtime {
    /// Tells what was answered, to whoever named no question.
    fn tell_answered(&self, session: &SessionId, gate: &str) -> Result<()> {
        let well = self.writing()?;
        let Some(asked) = Gates::named(&**well.store(), session, gate)?.asked.pop() else {
            return Ok(());
        };
        let answer = asked.answer.map(|given| given.answer.text().into_owned());
        let (gate, asked) = (asked.gate.id, asked.gate.prompt);
        self.tell(Notice::Answered { gate, asked, answer: answer.unwrap_or_default() });
        Ok(())
    }
}

/// Where a session goes on.
#[derive(Debug)]
pub enum Resumed {
    /// Here.
    Here(Box<RunHandle>),
    /// Where it ran already, with the answer.
    Elsewhere,
}

impl Resumed {
    fn here(handle: RunHandle) -> Self {
        Self::Here(Box::new(handle))
    }
}

/// What is resumed.
enum Work {
    Agent(Box<AgentWork>),
    Flow(Box<FlowWork>),
}

/// An agent's session that is resumed.
struct AgentWork {
    prepared: Prepared,
    words: UserTurn,
    connected: Option<Connected>,
    /// Is nothing left to be done?
    is_done: bool,
}

/// Resumes. Whoever brings an answer that comes too late is told whose was first.
fn resume(request: &ResumeRequest, job: &mut Job) -> Result<RunReport> {
    let runtime = job.runtime.clone();
    let resumed = resume_in_order(request, job);
    match (resumed, &request.answer) {
        (Err(error), Some(given)) => match runtime.writing() {
            Ok(well) => Err(tell_late(&well, &request.session, given, error)),
            Err(_) => Err(error),
        },
        (resumed, _) => resumed,
    }
}

/// The order of a resume. Whatever can be refused is refused before anything is recorded, and what
/// another process may have changed meanwhile is looked at again once the lease is taken.
fn resume_in_order(request: &ResumeRequest, job: &mut Job) -> Result<RunReport> {
    let runtime = job.runtime.clone();
    let well = runtime.writing()?;
    if let Some(given) = &request.answer {
        runtime.ask_again(&well, &request.session, given)?;
    }
    let info = well.settled_info(&request.session)?;
    let head = &info.head;
    refuse_agent(request, head, &runtime)?;
    refuse(request, &info, &runtime)?;
    recognise(&well, head, &runtime)?;
    make_worktree_whole(request, &well, head, &runtime)?;
    let mut work = Work::prepare(request, &well, head, &runtime)?;
    let answer = work.check_answer(request, &well, head, &runtime)?;
    work.connect(job)?;
    job.check_interrupt()?;
    make_ready(request.options.touch(), &well, Some(head), &runtime)?;
    let session = well.lock(&request.session).map_err(Error::of_lock)?;
    make_worktree_whole(request, &well, head, &runtime)?;
    work.check_again(&session, &well, head)?;
    if let Some(answer) = answer {
        let gate = answer.id.clone();
        let taken = work.record_answer(answer, &well, &session, &runtime)?;
        if taken && request.answer.as_ref().is_some_and(|given| given.gate.is_none()) {
            runtime.tell_answered(session.id(), &gate)?;
        }
    }
    work.mark_running(request, &session)?;
    work.run(request, session, head, job)
}

/// Refuses an agent that would answer or speak for its user, or have fewer questions asked.
fn refuse_agent(request: &ResumeRequest, head: &Head, runtime: &Runtime) -> Result<()> {
    if request.say.is_some() {
        runtime.refuse_in_run("saying something to a session")?;
    }
    if request.answer.is_some() {
        runtime.refuse_in_run("answering")?;
    }
    let own = head.settings.as_ref().and_then(|settings| settings.mode).unwrap_or(Mode::ConfirmAll);
    match request.options.mode {
        Some(mode) if mode > own => runtime.refuse_in_run("a mode that asks less"),
        _ => Ok(()),
    }
}

/// Refuses what cannot be resumed, or not so.
fn refuse(request: &ResumeRequest, info: &SessionInfo, runtime: &Runtime) -> Result<()> {
    let head = &info.head;
    if !runtime.workspace().config.settings.auto_save {
        return Err(not_saved());
    }
    refuse_external(head)?;
    let (session, is_flow) = (&head.id, head.flow.is_some());
    match (&request.say, is_flow) {
        // A flow's agents are asked what its spec says, and nothing else.
        (Some(_), true) => {
            let waits = head.status == Status::Paused;
            let why = format!(
                "{session} is a flow: it takes answers to its questions, and no other text"
            );
            let action = if waits { Action::Respond } else { Action::Resume };
            Err(Error::invalid(why).helped(action, session))
        }
        (None, _) if head.status == Status::Abandoned => {
            let refused = Error::invalid(format!("{session} was abandoned"));
            Err(match is_flow {
                true => refused.helped_by(Remedy::BeginFlow),
                false => refused.helped(Action::Say, session),
            })
        }
        // Before servers are started for nothing.
        _ => match &info.held {
            Some(held) => Err(Error::RunsElsewhere(StoreError::Held {
                session: session.clone(),
                holder: Box::new(held.holder.clone()),
                expires: held.expires,
            })),
            None => Ok(()),
        },
    }
}

/// Refuses a log that is not the one that the user saw, and says if they never saw it.
fn recognise(well: &Stepwell, head: &Head, runtime: &Runtime) -> Result<()> {
    let recognised = well.recognise(&head.id)?;
    if recognised == Recognised::FirstSeen && runtime.workspace().place.team.is_some() {
        runtime.tell(Notice::FirstSeen { session: head.id.clone() });
    }
    Ok(well.note_seen(&head.id)?)
}

/// Was nothing said to a session that counts and waits to be taken in?
fn nothing_counts(well: &Stepwell, head: &Head) -> Result<bool> {
    Ok(head.unheard == 0 || well.heard(&head.id, &Lane::main())?.0.is_empty())
}

/// Sessions are not saved here, so none can be resumed.
#[must_use]
pub fn not_saved() -> Error {
    let (key, value) = ("sessions.auto_save", "true");
    Error::config("sessions.auto_save is off, so a session cannot be resumed")
        .helped_by(Remedy::SetConfig { key, value })
}

/// A session that Stepwell does not run is its own agent's.
///
/// # Errors
/// If another program drives it.
pub fn refuse_external(head: &Head) -> Result<()> {
    match head.driver {
        Driver::Own => Ok(()),
        Driver::External => {
            let why = format!("{} is driven by an agent of yours, not by Stepwell", head.id);
            Err(Error::invalid(why).helped(Action::AskDriver, &head.id))
        }
    }
}

/// Sees to it that a session's worktree is whole, if it works in one. A dry run does not need it
/// to be.
fn make_worktree_whole(
    request: &ResumeRequest,
    well: &Stepwell,
    head: &Head,
    runtime: &Runtime,
) -> Result<()> {
    match request.options.dry_run {
        true => Ok(()),
        false => Ok(restore_worktree(well, head, runtime.workspace())?),
    }
}

impl Work {
    /// Settles agents, models, modes, budgets and tools.
    fn prepare(
        request: &ResumeRequest,
        well: &Stepwell,
        head: &Head,
        runtime: &Runtime,
    ) -> Result<Self> {
        if head.flow.is_some() {
            let work = FlowWork::prepare(request, well, head, runtime)?;
            return Ok(Self::Flow(Box::new(work)));
        }
        let words = match &request.say {
            Some(text) => UserTurn::More(text.clone()),
            None => UserTurn::Nothing,
        };
        let events = || well.store().events(&head.id, Span::ALL)?.intact(&head.id);
        // An empty conversation is never sent. What was said meanwhile is something to send.
        let is_silent = || nothing_counts(well, head);
        if request.say.is_none() && is_silent()? {
            check_sendable(head, events()?)?;
        }
        let prior = Prior { head, weighed: well.weigh(&head.id)? };
        let of = Of { session: Some(&prior), trust: request.trust };
        let prepared = Prepared::new(&request.options, of, runtime)?;
        prepared.check_priced(head, &well.subagents(&head.id)?)?;
        // Rewinds of earlier versions left the status as it was, and tasks may be open.
        let is_done = request.say.is_none() && head.status == Status::Success && is_silent()? && {
            let state = State::of(&events()?);
            state.is_over() && !state.is_unfinished()
        };
        if !is_done {
            let settled = match request.say {
                Some(_) => Settled::up_to(head.seq),
                None => Settled::of_agent(&events()?),
            };
            prepared.tell_disregarded(&prior, &settled, runtime);
        }
        Ok(Self::Agent(Box::new(AgentWork { prepared, words, connected: None, is_done })))
    }

    /// The answer that was given, made to fit its question. A session that is done stays done.
    fn check_answer(
        &self,
        request: &ResumeRequest,
        well: &Stepwell,
        head: &Head,
        runtime: &Runtime,
    ) -> Result<Option<GateAnswered>> {
        let Some(given) = &request.answer else { return Ok(None) };
        let Self::Agent(agent) = self else {
            let Self::Flow(flow) = self else { return Ok(None) };
            return flow.answer(given, head, well.now(), runtime).map(Some);
        };
        let session = &head.id;
        let gates = match &given.gate {
            None => Gates::waiting(&**well.store(), session)?,
            Some(name) => Gates::named(&**well.store(), session, name)?,
        };
        let Some(asked) = gates.open().next_back() else {
            return Err(Error::NotWaiting { session: session.clone(), elsewhere: false });
        };
        let fitting = Fitting { session, gate: &asked.gate, spec: None };
        let answer = fitting.answer(given.answer.clone(), well.now())?;
        let answer = match answer {
            stepwell::model::Answer::Deny { reason, never } => {
                let plain = |text: String| agent.prepared.redactor().redact(&text).into_owned();
                stepwell::model::Answer::Deny { reason: reason.map(plain), never }
            }
            answer => answer,
        };
        let answer = GateAnswered::new(asked.gate.id.clone(), answer, runtime.who());
        Ok(Some(answer))
    }

    /// Starts and reaches servers of tools.
    fn connect(&mut self, job: &mut Job) -> Result<()> {
        match self {
            Self::Agent(agent) => {
                let connecting = agent.prepared.connect(&job.interrupt, &job.runtime);
                let connected = job.tokio.block_on(connecting)?;
                job.keep(&connected);
                agent.connected = Some(connected);
                Ok(())
            }
            Self::Flow(flow) => flow.connect(job),
        }
    }

    /// Looks again at what another process may have changed until the lease was taken.
    fn check_again(&mut self, session: &Session, well: &Stepwell, head: &Head) -> Result<()> {
        match self {
            Self::Agent(agent) => {
                let now = well.info(&head.id)?.head;
                agent.is_done &= now.status == Status::Success && nothing_counts(well, &now)?;
                Ok(())
            }
            Self::Flow(flow) => flow.check_again(session),
        }
    }

    /// Records an answer. Of an agent's, nothing else was recorded yet, so that all stays as it is
    /// if another process was quicker; a flow goes on with the first answer, whoever's it is. Says
    /// whether this one was taken.
    fn record_answer(
        &self,
        answer: GateAnswered,
        well: &Stepwell,
        session: &Session,
        runtime: &Runtime,
    ) -> Result<bool> {
        let gate = answer.id.clone();
        match (self, record(well, None, session.id(), answer.into())) {
            (
                Self::Flow(_),
                Err(error @ (Error::AnsweredBefore { .. } | Error::AnswerRefused { .. })),
            ) => {
                runtime.tell(Notice::NotTaken { gate, why: error.to_string() });
                Ok(false)
            }
            (_, recorded) => recorded.map(|_| true),
        }
    }

    /// Records that the session runs again, and what it works with. One that is done stays as it
    /// is, even when it ended.
    fn mark_running(&mut self, request: &ResumeRequest, session: &Session) -> Result<()> {
        match self {
            Self::Agent(agent) if agent.is_done => Ok(()),
            Self::Agent(agent) => {
                session.mark_running()?;
                session.append_all(agent.prepared.remembered())?;
                Ok(())
            }
            Self::Flow(flow) => flow.mark_running(request, session),
        }
    }

    fn run(
        self,
        request: &ResumeRequest,
        session: Session,
        head: &Head,
        job: &mut Job,
    ) -> Result<RunReport> {
        match self {
            Self::Agent(agent) => {
                let AgentWork { prepared, words, connected, is_done } = *agent;
                let Some(connected) = connected else { return Err(Error::Panicked) };
                job.begin(&session, prepared.about(&session)?);
                let (resumed_from, was_done) = (Some(head.seq), is_done);
                Agent { session, prepared, connected, words, resumed_from, was_done }.drive(job)
            }
            Self::Flow(flow) => flow.run(request, session, Some(head.seq), job),
        }
    }
}
