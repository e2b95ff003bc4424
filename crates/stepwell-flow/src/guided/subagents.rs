//! Tasks of subagents, each in its own git worktree, which is merged when the task is done.

use std::num::{NonZeroU32, NonZeroU64};
use std::sync::Arc;

use serde_json::{Map, Value, json};
use stepwell::model::{Fate, Money, NodeKey, Outcome, Spent};
use stepwell::{Event, Lane, SessionId};
use stepwell_agent::permission::Mode;
use stepwell_agent::run::{Dispatcher, SubagentRequest, SubagentSetup};
use stepwell_agent::tool;

use super::answers::TaskReport;
use super::calls::{CallResult, PlannedCall};
use super::guide::Guide;
use crate::halt::Halt;
use crate::spec::TaskBudget;

/// A task for a subagent.
pub(super) struct Subtask<'a> {
    pub(super) key: &'a NodeKey,
    pub(super) lane: Lane,
    /// The name of its session and commit.
    pub(super) name: String,
    pub(super) prompt: String,
    pub(super) starting: &'a dyn Fn() -> Vec<Event>,
    pub(super) finishing: &'a dyn Fn(&Value) -> Vec<Event>,
}

impl Guide<'_, '_> {
    /// Gives a task to a subagent in a worktree. If its changes are not merged, the task failed.
    pub(super) async fn by_subagent(&self, subtask: Subtask<'_>) -> Result<Value, Halt> {
        let Subtask { key, lane, name, prompt, starting, finishing } = subtask;
        let fail = |why: String| self.flow.fail(key, None, &why, None);
        let base = self.flow.agents.setup(self.config.execute.as_str(), None).map_err(fail)?;
        let Some(inner) = base.dispatcher.clone() else {
            return Err(fail("there are no subagents here".to_owned()));
        };
        let dispatch = tool::builtin().into_iter();
        let mut dispatch =
            dispatch.filter(|tool| tool.effect() == stepwell::model::Effect::Resumable);
        let Some(tool) = dispatch.next() else {
            return Err(fail("there is no tool that starts subagents".to_owned()));
        };
        let (mode, budget) = (base.rules.mode, self.share());
        let of_lane = lane.clone();
        let read = |result: &CallResult| self.read_subagent(&of_lane, result);
        let call = PlannedCall {
            key,
            lane,
            purpose: prompt.clone(),
            tool,
            arguments: json!({
                "task": prompt,
                "name": name,
                "workspace": "worktree",
                "merge": true,
                // The ship phase decides about the commit.
                "uncommitted": true,
            }),
            // The user asked for subagents, so starting one needs no approval; their own calls
            // follow the mode.
            mode: Mode::Yolo,
            dispatcher: Some(Arc::new(Bounded { inner, mode, budget })),
            starting,
            finishing,
            read: &read,
        };
        let before = self.spent_below(&of_lane);
        let done = self.call(&call).await;
        let after = self.spent_below(&of_lane);
        let tokens = after.usage.total().saturating_sub(before.usage.total());
        self.flow.shared_budget.pay_for_below(tokens, after.cost.minus(before.cost));
        done
    }

    /// The spending of the subagents that a lane started, and of all below them.
    fn spent_below(&self, lane: &Lane) -> Spent {
        let children: Vec<SessionId> = {
            let state = self.flow.state();
            let started = state.past.said(lane).iter();
            started
                .filter_map(|event| match &event.event {
                    Event::ToolStarted(started) => started.child.clone(),
                    _ => None,
                })
                .collect()
        };
        let well = self.flow.session.well();
        let mut spent = Spent::default();
        for child in children {
            spent += well.info(&child).map(|it| it.head.spent).unwrap_or_default();
            let below = well.subagents(&child).unwrap_or_default();
            below.iter().for_each(|info| spent += info.head.spent);
        }
        spent
    }

    /// The budget of one subagent: a task's, and at most its share of what is left.
    fn share(&self) -> TaskBudget {
        let (left, own) = (self.flow.shared_budget.left(), &self.config.task_budget);
        let most = self.config.parallel.map_or(1, NonZeroU32::get);
        let tokens = left.tokens.map(|left| (left / u64::from(most)).max(1));
        let tokens = tokens.and_then(NonZeroU64::new);
        let cost = left.cost.map(|left| Money::from_picos(left.as_picos() / i128::from(most)));
        TaskBudget {
            max_tokens: own.max_tokens.into_iter().chain(tokens).min(),
            max_cost_usd: own.max_cost_usd.into_iter().chain(cost).min(),
        }
    }

    /// The result of a subagent's task. It is done if its changes are in the workspace.
    fn read_subagent(&self, lane: &Lane, result: &CallResult) -> Map<String, Value> {
        if result.outcome != Outcome::Done {
            let summary = crate::text::plain(&result.text, 1_500);
            return TaskReport { done: false, summary }.output();
        }
        // The fate of its worktree follows its last words.
        let words = result.text.split("\n\n[subagent ").next().unwrap_or_default();
        let report = TaskReport::parse(words);
        match self.unmerged(lane) {
            Some(why) if report.done => TaskReport { done: false, summary: why }.output(),
            _ => report.output(),
        }
    }

    /// Why the changes of a lane's last subagent are not in the workspace.
    fn unmerged(&self, lane: &Lane) -> Option<String> {
        let child: SessionId = {
            let state = self.flow.state();
            let started = state.past.said(lane).iter().rev();
            started
                .filter_map(|event| match &event.event {
                    Event::ToolStarted(started) => started.child.clone(),
                    _ => None,
                })
                .next()?
        };
        let head = self.flow.session.well().info(&child).ok()?.head;
        let outcome = head.facts.subagent?.outcome?;
        let is_kept = outcome.fate == Fate::Kept && outcome.count > 0;
        is_kept.then(|| {
            let why = if outcome.why.is_empty() { "it was kept apart" } else { &outcome.why };
            format!("what subagent {child} did is not merged: {why}")
        })
    }
}

/// Sets subagents up with the work's mode and a task's budget.
struct Bounded {
    inner: Arc<dyn Dispatcher>,
    mode: Mode,
    budget: TaskBudget,
}

impl Dispatcher for Bounded {
    fn set_up(&self, request: &SubagentRequest<'_>) -> Result<SubagentSetup, String> {
        let SubagentRequest { order, parent, child, reserve, .. } = *request;
        let (model, mode) = (request.model.clone(), self.mode);
        let mut subagent =
            self.inner.set_up(&SubagentRequest { order, parent, child, model, mode, reserve })?;
        let rules = &mut subagent.setup.rules;
        rules.mode = rules.mode.min(self.mode);
        let tokens = self.budget.max_tokens.map(NonZeroU64::get);
        rules.limits.tokens = rules.limits.tokens.into_iter().chain(tokens).min();
        rules.limits.budget = rules.limits.budget.into_iter().chain(self.budget.max_cost_usd).min();
        Ok(subagent)
    }
}
