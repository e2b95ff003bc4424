//! Subagents: a tool call that is a run of its own, in its own session.
//!
//! The child's id is recorded with the start of the call, and its budget with its first events,
//! before it spends anything. After a crash the resumed call finds its child and continues it. The
//! child's own log gives the usual guarantees for its calls and tools.

use futures_util::future::LocalBoxFuture;
use stepwell::log::Head;
use stepwell::model::{Change, Edited, Effect, Outcome, StatusChanged, Subagent, ToolCall};
use stepwell::sessions::NewSession;
use stepwell::{Created, Session, SessionId, Status, StopReason};
use tokio::sync::watch as signal;

use super::isolation;
use super::others::SCRUBBED;
use super::subagents::{Refusal, SubagentSetup, Subagents, below, first_record};
use super::{Cancel, Ended, Run, RunEvent};
use crate::error::Result;
use crate::machine::Stop;
use crate::provider::CallError;
use crate::tool::{Done, Isolation, Order, Plan};

/// Why the parent's run ends, if the subagent ends it.
pub(super) type Halt = Option<(Stop, Option<CallError>)>;

impl Run<'_> {
    pub(super) const fn subagents(&self) -> Subagents<'_> {
        let (session, setup) = (self.session, self.setup);
        let (rules, state, since) = (&self.rules, &self.state, &self.since);
        Subagents { session, setup, rules, state, since }
    }

    /// Runs a tool or a subagent.
    pub(super) async fn perform(&mut self, call: ToolCall, cut: Cancel<'_>) -> Result<Halt> {
        match self.tool(&call.name).map(|tool| tool.effect()) {
            Some(Effect::Resumable) => self.dispatch(call, cut).await,
            _ => self.run_tool(call, cut).await.map(|()| None),
        }
    }

    async fn dispatch(&mut self, call: ToolCall, cut: Cancel<'_>) -> Result<Halt> {
        let begun = tokio::time::Instant::now();
        if let Some(notice) = self.subagents().obstacle(&call)? {
            self.front.events.notice(notice);
            return Ok(Some((super::interrupted(), None)));
        }
        let ready = match self.ready(&call) {
            Ok(ready) => ready,
            Err(Refusal::Told(done)) => return self.finish(&call, &done, 0).map(|()| None),
            Err(Refusal::Broken(error)) => return Err(error),
        };
        let Ready { id, order, subagent, mut record, own_binds, fresh } = ready;
        let ended = match self.subagents().ended_before(&id, &subagent.setup)? {
            Some(ended) => ended,
            None => self.descend(&id, &order, Child { subagent, fresh }, &cut).await?,
        };
        self.state.below = below(self.session)?;
        if cut.is_due() {
            let (call, tool) = (call.id, call.name);
            self.front.events.tell(RunEvent::ToolCutOff { call, tool });
            return Ok(None);
        }
        match (ended.status, ended.reason) {
            (Status::Paused, _) => return self.pause(&call, &id),
            // The shared budget of the whole tree is used up. After it is raised, the child
            // continues.
            (Status::Partial, StopReason::BudgetExceeded) if !own_binds => {
                return Ok(Some((Stop::limit(StopReason::BudgetExceeded), None)));
            }
            _ => {}
        }
        self.settle_gates(&call, &id)?;
        let mut done = self.subagents().report(&id, &ended)?;
        if record.isolation == Isolation::Worktree {
            let site = isolation::Site::new(&self.setup.place, &id);
            let told = self.subagents().was_told(&call, &id)?;
            let save = |it: &Subagent| self.session.well().edit(&id, it.clone().into()).map(drop);
            if let Some((said, changed)) =
                site.wrap_up(&mut record, &ended, order.name(), told, save)?
            {
                done.text.push_str(&said);
                done.changed = changed;
            }
        }
        let took = u64::try_from(begun.elapsed().as_millis()).unwrap_or(u64::MAX);
        self.finish(&call, &done, took).map(|()| None)
    }

    /// Prepares the subagent, and creates its session if there is none.
    fn ready(&mut self, call: &ToolCall) -> std::result::Result<Ready, Refusal> {
        let subagents = self.subagents();
        let (order, depth) = subagents.ordered(call, || self.preview(call))?;
        let (id, child) = subagents.child_of(call)?;
        let unkept = self.calls.unkept.get(&call.id);
        if let Some(why) = unkept.filter(|why| child.is_none() || **why == SCRUBBED) {
            let denied = Done { outcome: Outcome::Denied, ..Done::failed((*why).to_owned()) };
            return Err(Refusal::Told(denied));
        }
        let left = subagents.allowance();
        let reserve = subagents.reserve(left, child.as_ref())?;
        let mut subagent = subagents.set_up(&order, child.as_ref(), reserve)?;
        let remembered = child.as_ref().and_then(|it| it.facts.subagent.as_deref().cloned());
        let mut record = remembered.unwrap_or_else(|| first_record(call, &order, depth));
        let place = &self.setup.place;
        match record.isolation {
            Isolation::ReadOnly => isolation::only_looks(&mut subagent.setup, &order, place)?,
            Isolation::Worktree => {
                let site = isolation::Site::new(place, &id);
                let own = if record.uncommitted { subagents.changed_files()? } else { Vec::new() };
                site.prepare(&mut record, &own)?;
                site.place(&mut subagent.setup, &order)?;
            }
        }
        let own_binds = subagents.bind(&mut subagent.setup, left, reserve, depth);
        let fresh = self.begin_child(call, &id, child.as_ref(), &mut subagent, &record)?;
        if let Err(why) = self.subagents().make_worktree(&id, &mut record)? {
            if let Some(child) = fresh {
                let error = Some(why.clone());
                child.append(StatusChanged { status: Status::Failed, reason: None, error })?;
            }
            return Err(why.into());
        }
        Ok(Ready { id, order, subagent, record, own_binds, fresh })
    }

    /// Records that the call starts a child, and creates the child with its budget. A child that
    /// exists gets its new budget. Nothing is spent before that is on disk.
    fn begin_child(
        &mut self,
        call: &ToolCall,
        id: &SessionId,
        child: Option<&Head>,
        subagent: &mut SubagentSetup,
        record: &Subagent,
    ) -> Result<Option<Session>> {
        if self.state.child(&call.id) != Some(id)
            && let Some(tool) = self.tool(&call.name)
        {
            self.start(call, &*tool, Plan { child: Some(id.clone()), ..Plan::default() })?;
        }
        let reserve = subagent.setup.rules.limits.budget_total;
        let budget = reserve.map_or(Change::Clear, Change::Set);
        match child {
            Some(head) if head.budget == reserve => {}
            Some(_) => {
                let edited = Edited { budget, ..Edited::default() };
                self.session.well().edit(id, edited)?;
            }
            None => {
                let created = Created {
                    id: id.clone(),
                    workspace: subagent.setup.place.root.display().to_string(),
                    ..subagent.created.clone()
                };
                let mut events = std::mem::take(&mut subagent.begins);
                events.push(Edited { budget, ..Edited::from(record.clone()) }.into());
                return self
                    .session
                    .spawn(NewSession { created, events })
                    .map(Some)
                    .map_err(Into::into);
            }
        }
        Ok(None)
    }

    /// Runs a child until something stops it.
    async fn descend(
        &mut self,
        id: &SessionId,
        order: &Order,
        child: Child,
        cut: &Cancel<'_>,
    ) -> Result<Ended> {
        let Child { mut subagent, fresh } = child;
        self.subagents().pass_answers(id)?;
        let now = tokio::time::Instant::now();
        let left = cut.deadline.map(|deadline| deadline.saturating_duration_since(now));
        subagent.setup.timeout = subagent.setup.timeout.into_iter().chain(left).min();
        let child = match fresh {
            Some(child) => child,
            None => {
                let child = self.session.well().resume(id)?;
                child.sign_run()?;
                child
            }
        };
        let mut run = Run::new(&child, &subagent.setup, self.front.child(id))?;
        run.others.accepted = self.others.accepted;
        if !run.is_over() {
            run.instruct(&subagent.system)?;
        }
        if run.is_new() {
            run.say(&order.task)?;
        } else if run.state.steps == 0 {
            run.show_unredacted(&order.task);
        }
        drive(run, cut.interrupt.clone()).await
    }
}

/// A prepared subagent.
struct Ready {
    id: SessionId,
    order: Order,
    subagent: SubagentSetup,
    record: Subagent,
    own_binds: bool,
    /// Its session, if it is new.
    fresh: Option<Session>,
}

/// A running subagent, and its session if it is new.
struct Child {
    subagent: SubagentSetup,
    fresh: Option<Session>,
}

/// Boxed, because a run inside a run would have an infinite size.
fn drive<'a>(run: Run<'a>, interrupt: signal::Receiver<bool>) -> LocalBoxFuture<'a, Result<Ended>> {
    Box::pin(run.drive(interrupt))
}
