//! A run's subagents: who they are, what they may use, and what became of them, as the logs say.

use stepwell::log::Head;
use stepwell::model::{Effect, Kind, Money, Origin, Spent, Subagent, ToolCall};
use stepwell::store::Span;
use stepwell::{Created, Event, NewEvent, Session, SessionId, Status, StopReason};

use super::isolation;
use super::{Ended, FrontEnd, Notice, Run, Setup};
use crate::error::{Error, Result};
use crate::machine::{Baseline, Rules, State};
use crate::permission::Mode;
use crate::tool::{Done, Isolation, Order};

/// How deep subagents start subagents of their own: a task that is not done by then is not
/// made easier by handing it on.
const MAX_DEPTH: u32 = 3;

/// Knows the agents that can be dispatched.
pub trait Dispatcher: Send + Sync {
    /// What a subagent works with, or what the model should know of why there is none.
    fn set_up(&self, request: &SubagentRequest<'_>) -> std::result::Result<SubagentSetup, String>;
}

/// What a subagent is wanted for.
#[derive(Debug)]
pub struct SubagentRequest<'a> {
    /// What the model asked for.
    pub order: &'a Order,
    /// The session that asks.
    pub parent: &'a Head,
    /// The subagent's session, if it began before.
    pub child: Option<&'a Head>,
    /// The model that the user gave it then.
    pub model: Option<String>,
    /// When a person is asked, at the loosest.
    pub mode: Mode,
    /// What the subagent's session may cost in all; absent, there is no limit.
    pub reserve: Option<Money>,
}

/// A subagent that is ready to begin.
#[derive(Debug)]
pub struct SubagentSetup {
    /// What its run works with. Where it works, what it may use of the parent's budget, and how
    /// deep it may dispatch are the driver's to settle.
    pub setup: Setup,
    /// A description of its session, under any name.
    pub created: Created,
    /// What its session begins with: its instructions, its task, what it remembers.
    pub begins: Vec<NewEvent>,
    /// Its standing instructions.
    pub system: String,
}

/// What is left for a subagent of what the run may use.
#[derive(Clone, Copy, Debug)]
pub(super) struct Allowance {
    cost: Option<Money>,
    tokens: Option<u64>,
}

/// The subagents of a run. It records nothing in the run's own log; the run does.
#[derive(Clone, Copy)]
pub(super) struct Subagents<'r> {
    pub(super) session: &'r Session,
    pub(super) setup: &'r Setup,
    /// What the run may do now.
    pub(super) rules: &'r Rules,
    pub(super) state: &'r State,
    /// What was spent before the run began.
    pub(super) since: &'r Baseline,
}

impl Subagents<'_> {
    /// The files that the session changed.
    pub(super) fn changed_files(&self) -> Result<Vec<String>> {
        let facts = self.session.keyed_events(&[Kind::File])?.into_iter();
        let files = facts.filter_map(|fact| match fact.event {
            Event::File(file) if file.path != "." => Some(file.path),
            _ => None,
        });
        Ok(files.collect())
    }

    /// What a call asks for, and how deep that would be.
    pub(super) fn ordered(
        &self,
        call: &ToolCall,
        preview: impl FnOnce() -> String,
    ) -> std::result::Result<(Order, u32), Refusal> {
        let arguments = serde_json::from_str(&call.arguments)
            .map_err(|error| format!("the arguments are no JSON: {error}"))?;
        let order = Order::parse(&arguments)?;
        let head = self.session.info()?.head;
        let depth = head.facts.subagent.as_deref().map_or(0, |record| record.depth) + 1;
        if depth > MAX_DEPTH {
            return Err("there are no subagents at this depth: do it yourself".to_owned().into());
        }
        if self.setup.dry_run && order.isolation == Isolation::Worktree {
            let text = format!("dry run, not done: {}", preview());
            return Err(Refusal::Told(Done::ok(text)));
        }
        Ok((order, depth))
    }

    pub(super) fn set_up(
        &self,
        order: &Order,
        child: Option<&Head>,
        reserve: Option<Money>,
    ) -> std::result::Result<SubagentSetup, Refusal> {
        let Some(dispatcher) = &self.setup.dispatcher else {
            return Err("there are no subagents here: do it yourself".to_owned().into());
        };
        let parent = &self.session.info()?.head;
        let mode = self.setup.rules.mode;
        let model = match child {
            Some(child) => self.session.well().weigh(&child.id)?.mine.model,
            None => None,
        };
        Ok(dispatcher.set_up(&SubagentRequest { order, parent, child, model, mode, reserve })?)
    }

    /// What a subagent's session may cost in all, given what is left.
    pub(super) fn reserve(&self, left: Allowance, child: Option<&Head>) -> Result<Option<Money>> {
        let so_far = match child {
            Some(head) => total(self.session, head)?.cost,
            None => Money::ZERO,
        };
        Ok(left.cost.map(|left| so_far.plus(left)))
    }

    /// The child of a call: the one that it started before, or a new name. A fork shares its
    /// parent's calls, not its children.
    pub(super) fn child_of(&self, call: &ToolCall) -> Result<(SessionId, Option<Head>)> {
        let well = self.session.well();
        if let Some(id) = self.state.child(&call.id) {
            if !well.store().exists(id)? {
                // One that was erased may have left work behind, which is not touched.
                let left = isolation::Site::new(&self.setup.place, id).is_taken();
                return Ok((if left { well.new_id() } else { id.clone() }, None));
            }
            let head = well.store().info(id)?.head;
            let ours = Origin::Subagent { parent: self.session.id().clone() };
            if head.origin == ours {
                return Ok((id.clone(), Some(head)));
            }
        }
        Ok((well.new_id(), None))
    }

    /// Why a call's child cannot be gone on with now: a user may run it by hand, have deleted it,
    /// or be in a copy of the workspace. It is waited for.
    pub(super) fn obstacle(&self, call: &ToolCall) -> Result<Option<Notice>> {
        let (id, child) = self.child_of(call)?;
        if child.is_none() {
            return Ok(None);
        }
        let info = self.session.well().store().info(&id)?;
        if info.trashed_at.is_some() {
            return Ok(Some(Notice::SubagentInTrash { session: id }));
        }
        if let Some(held) = info.held {
            let holder = held.holder.to_string();
            return Ok(Some(Notice::SubagentHeld { session: id, holder }));
        }
        let works = |it: &Subagent| it.isolation == Isolation::Worktree && it.outcome.is_none();
        let is_copy = info.head.facts.subagent.as_deref().is_some_and(works)
            && isolation::Site::new(&self.setup.place, &id).is_copy();
        Ok(is_copy.then_some(Notice::WorkspaceIsCopy { session: id }))
    }

    /// What is left of what the run may use.
    pub(super) fn allowance(&self) -> Allowance {
        let limits = &self.rules.limits;
        let (total, since) = (self.state.total(), self.since.spent);
        let here = limits.budget.map(|limit| limit.minus(total.cost.minus(since.cost)));
        let whole = limits.budget_total.map(|limit| limit.minus(total.cost));
        let used = total.usage.total().saturating_sub(since.usage.total());
        Allowance {
            cost: here.into_iter().chain(whole).min().map(|left| left.max(Money::ZERO)),
            tokens: limits.tokens.map(|limit| limit.saturating_sub(used)),
        }
    }

    /// Holds a subagent to what is left. Says whether its own limits are the nearer ones.
    pub(super) fn bind(
        &self,
        setup: &mut Setup,
        left: Allowance,
        reserve: Option<Money>,
        depth: u32,
    ) -> bool {
        let limits = &mut setup.rules.limits;
        let nearer =
            |own: Option<Money>| own.is_some_and(|own| left.cost.is_none_or(|it| own < it));
        let fewer = limits.tokens.is_some_and(|own| left.tokens.is_none_or(|it| own < it));
        let own_binds = nearer(limits.budget) || fewer;
        limits.budget_total = reserve;
        limits.tokens = limits.tokens.into_iter().chain(left.tokens).min();
        setup.rules.retry_unsafe = self.setup.rules.retry_unsafe;
        setup.rules.mode = setup.rules.mode.min(self.state.mode(&self.setup.rules));
        setup.dry_run = self.setup.dry_run;
        setup.place.withheld.extend(self.setup.place.withheld.iter().cloned());
        setup.dispatcher.clone_from(&self.setup.dispatcher);
        if depth >= MAX_DEPTH {
            setup.tools.retain(|tool| tool.effect() != Effect::Resumable);
        }
        let effects = setup.tools.iter().map(|tool| (tool.spec().name.clone(), tool.effect()));
        setup.rules.effects = effects.collect();
        own_binds
    }

    /// Makes the worktree of a child that works in one.
    pub(super) fn make_worktree(
        &self,
        id: &SessionId,
        record: &mut Subagent,
    ) -> Result<std::result::Result<(), String>> {
        if record.isolation == Isolation::ReadOnly || record.outcome.is_some() {
            return Ok(Ok(()));
        }
        let site = isolation::Site::new(&self.setup.place, id);
        if let Err(why) = site.make(record) {
            return Ok(Err(why));
        }
        if !record.ready {
            record.ready = true;
            self.session.well().edit(id, record.clone().into())?;
        }
        Ok(Ok(()))
    }

    /// Was the model told of a child's end in a part of the conversation that was rewound?
    pub(super) fn was_told(&self, call: &ToolCall, child: &SessionId) -> Result<isolation::Told> {
        /// How many events are read at a time.
        const PAGE: usize = 1_000;
        if self.session.keyed_events(&[Kind::Rewound, Kind::Undone])?.is_empty() {
            return Ok(isolation::Told::Never);
        }
        let mut begun = false;
        let mut span = Span { limit: PAGE, ..Span::ALL };
        loop {
            let events = self.session.events(span)?.intact(self.session.id())?;
            let Some(last) = events.last().map(|event| event.seq) else {
                return Ok(isolation::Told::Never);
            };
            for event in events {
                match event.event {
                    Event::ToolStarted(it) if it.call_id == call.id => {
                        begun = it.child.as_ref() == Some(child);
                    }
                    Event::ToolFinished(it) if begun && it.call_id == call.id => {
                        return Ok(isolation::Told::Before);
                    }
                    _ => {}
                }
            }
            span.from = last.next();
        }
    }

    /// How a child ended, if it has, and only its parent was not told yet.
    pub(super) fn ended_before(&self, id: &SessionId, setup: &Setup) -> Result<Option<Ended>> {
        let head = self.session.well().store().info(id)?.head;
        let reason = head.stop_reason.unwrap_or(StopReason::LlmDone);
        let over = match head.status {
            Status::Success | Status::Failed | Status::Abandoned => true,
            // A person may have given it more of what it ran out of.
            Status::Partial => matches!(reason, StopReason::MaxSteps | StopReason::ContextFull),
            _ => false,
        };
        if !over {
            return Ok(None);
        }
        let child = self.session.well().lock(id)?;
        let run = Run::new(&child, setup, FrontEnd::nobody())?;
        Ok(Some(Ended { status: head.status, reason, ..run.ended }))
    }

    /// What the model is told of how a child ended.
    pub(super) fn report(&self, id: &SessionId, ended: &Ended) -> Result<Done> {
        let head = self.session.well().store().info(id)?.head;
        let spent = total(self.session, &head)?;
        let cost = match spent.unpriced {
            0 => format!("${}", spent.cost),
            _ => "at an unknown cost".to_owned(),
        };
        let (steps, status) = (stepwell::model::counted(head.steps, "step"), ended.status.as_str());
        let words = crate::tool::cut(ended.output.trim(), self.setup.place.output_limit);
        let line = format!("[subagent {id}: {status}, {steps}, {cost}]");
        if ended.status == Status::Success {
            let words = if words.is_empty() { "(no last words)" } else { words };
            return Ok(Done::ok(format!("{words}\n\n{line}")));
        }
        let why = ended.error.as_ref().map(ToString::to_string).or(head.error);
        let reason = serde_json::to_value(ended.reason).unwrap_or_default();
        let why = why.unwrap_or_else(|| reason.as_str().unwrap_or_default().to_owned());
        let mut text = format!(
            "{line}\nIt did not finish: {why}. Give a smaller task to another subagent, or do it \
             yourself; the user can resume session {id}"
        );
        if !words.is_empty() {
            text.push_str("\n\nIts last words:\n");
            text.push_str(words);
        }
        Ok(Done::failed(text))
    }
}

/// Why a subagent does not begin.
pub(super) enum Refusal {
    /// For a reason that the model is told.
    Told(Done),
    /// What was done could not be recorded.
    Broken(Error),
}

impl<E: Into<Error>> From<E> for Refusal {
    fn from(error: E) -> Self {
        Self::Broken(error.into())
    }
}

impl From<String> for Refusal {
    fn from(why: String) -> Self {
        Self::Told(Done::failed(why))
    }
}

/// What all below a session spent.
pub(super) fn below(session: &Session) -> Result<Spent> {
    let mut spent = Spent::default();
    let all = session.well().subagents(session.id())?;
    all.iter().for_each(|info| spent += info.head.spent);
    Ok(spent)
}

/// What a session spent with all below it.
fn total(session: &Session, head: &Head) -> Result<Spent> {
    let mut spent = head.spent;
    let all = session.well().subagents(&head.id)?;
    all.iter().for_each(|info| spent += info.head.spent);
    Ok(spent)
}

/// What a call asks for, before anything was done.
pub(super) fn first_record(call: &ToolCall, order: &Order, depth: u32) -> Subagent {
    Subagent {
        call: call.id.clone(),
        depth,
        isolation: order.isolation,
        merge: order.merge,
        uncommitted: order.uncommitted,
        base: None,
        ready: false,
        misses_changes: false,
        outcome: None,
    }
}
