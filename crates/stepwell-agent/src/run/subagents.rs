//! A run's subagents: their identity, limits and outcome, read from the logs.

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

/// How deep subagents may start subagents. Passing a task on further does not make it easier.
const MAX_DEPTH: u32 = 3;

/// Knows the agents that can be subagents.
pub trait Dispatcher: Send + Sync {
    /// The parts of a subagent's run, or the reason for the model why there is none.
    fn set_up(&self, request: &SubagentRequest<'_>) -> std::result::Result<SubagentSetup, String>;
}

/// A request for a subagent.
#[derive(Debug)]
pub struct SubagentRequest<'a> {
    /// The model's order.
    pub order: &'a Order,
    /// The parent's session.
    pub parent: &'a Head,
    /// The subagent's session, if it exists.
    pub child: Option<&'a Head>,
    /// The model that the user gave it earlier.
    pub model: Option<String>,
    /// The loosest mode that it may have.
    pub mode: Mode,
    /// The budget of the subagent's whole session; `None` if unlimited.
    pub reserve: Option<Money>,
}

/// A subagent that is ready to begin.
#[derive(Debug)]
pub struct SubagentSetup {
    /// The parts of its run. The driver sets its folder, its share of the parent's budget, and its
    /// depth.
    pub setup: Setup,
    /// The first event of its session, under any name.
    pub created: Created,
    /// The next events of its session: instructions, task, memory.
    pub begins: Vec<NewEvent>,
    /// Its standing instructions.
    pub system: String,
}

/// What is left of the run's limits for a subagent.
#[derive(Clone, Copy, Debug)]
pub(super) struct Allowance {
    cost: Option<Money>,
    tokens: Option<u64>,
}

/// The subagents of a run. The run does the recording in its own log.
#[derive(Clone, Copy)]
pub(super) struct Subagents<'r> {
    pub(super) session: &'r Session,
    pub(super) setup: &'r Setup,
    /// The run's current rules.
    pub(super) rules: &'r Rules,
    pub(super) state: &'r State,
    /// What was spent before this run.
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

    /// The parsed order of a call, and its depth.
    pub(super) fn ordered(
        &self,
        call: &ToolCall,
        preview: impl FnOnce() -> String,
    ) -> std::result::Result<(Order, u32), Refusal> {
        let arguments = serde_json::from_str(&call.arguments)
            .map_err(|error| format!("the arguments are not JSON: {error}"))?;
        let order = Order::parse(&arguments)?;
        let head = self.session.info()?.head;
        let depth = head.facts.subagent.as_deref().map_or(0, |record| record.depth) + 1;
        if depth > MAX_DEPTH {
            return Err("subagents cannot start subagents at this depth: do the task yourself"
                .to_owned()
                .into());
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
            return Err("no subagents are available here: do the task yourself".to_owned().into());
        };
        let parent = &self.session.info()?.head;
        let mode = self.setup.rules.mode;
        let model = match child {
            Some(child) => self.session.well().weigh(&child.id)?.mine.model,
            None => None,
        };
        Ok(dispatcher.set_up(&SubagentRequest { order, parent, child, model, mode, reserve })?)
    }

    /// The budget of a subagent's whole session, given what is left.
    pub(super) fn reserve(&self, left: Allowance, child: Option<&Head>) -> Result<Option<Money>> {
        let so_far = match child {
            Some(head) => total(self.session, head)?.cost,
            None => Money::ZERO,
        };
        Ok(left.cost.map(|left| so_far.plus(left)))
    }

    /// The child of a call: the existing one, or a new id. A fork shares its parent's calls, but
    /// not its children.
    pub(super) fn child_of(&self, call: &ToolCall) -> Result<(SessionId, Option<Head>)> {
        let well = self.session.well();
        if let Some(id) = self.state.child(&call.id) {
            if !well.store().exists(id)? {
                // An erased child may have left a worktree, which must not be touched.
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

    /// Why a call's child cannot continue now: a user may be running it, may have deleted it, or it
    /// is in a copy of the workspace. The parent waits for it.
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

    /// What is left of the run's limits.
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

    /// Limits a subagent to what is left. Returns whether its own limits are lower.
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

    /// Creates the worktree of a child, if it has one.
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

    /// Did the model receive a child's outcome in a part of the conversation that was rewound?
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

    /// The outcome of a child that ended before its parent received it.
    pub(super) fn ended_before(&self, id: &SessionId, setup: &Setup) -> Result<Option<Ended>> {
        let head = self.session.well().store().info(id)?.head;
        let reason = head.stop_reason.unwrap_or(StopReason::LlmDone);
        let over = match head.status {
            Status::Success | Status::Failed | Status::Abandoned => true,
            // A person may have raised the limit since.
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

    /// The outcome of a child as its parent's model receives it.
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
    /// The model receives the reason.
    Told(Done),
    /// Recording failed.
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

/// What all subagents below a session spent.
pub(super) fn below(session: &Session) -> Result<Spent> {
    let mut spent = Spent::default();
    let all = session.well().subagents(session.id())?;
    all.iter().for_each(|info| spent += info.head.spent);
    Ok(spent)
}

/// What a session and all subagents below it spent.
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
