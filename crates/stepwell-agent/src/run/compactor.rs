//! The compactor: when to shrink a conversation, which messages go, and the summary that replaces
//! them. The run records the result.

use std::collections::HashSet;

use stepwell::log::MessageOrigin;
use stepwell::model::{Compacted, Kind, Money, Usage, WorkChange};
use stepwell::store::Facts;
use stepwell::{Event, Lane, Message, Seq, Session, StopReason};

use super::{Cancel, RequestSize, Reserved, Setup, SharedBudget, record};
use crate::context::plan::{Ask, Keep, Plan, Room, Why};
use crate::context::summary::{self, NoSummary, SummaryParts, Wanted};
use crate::context::tokens::Counter;
use crate::context::window::Window;
use crate::context::{Seen, Signs, Summariser};
use crate::error::Result;
use crate::machine::{Shrink, State, Stop};
use crate::provider::{Ended, Purpose, Request, Turn};

/// How far a run is.
pub(super) fn turn<'a>(state: &State, lane: &'a Lane, purpose: Purpose) -> Turn<'a> {
    Turn { purpose, answers: state.answers, summaries: state.summaries, lane: lane.as_str() }
}

/// A run's conversation, read-only.
#[derive(Clone, Copy)]
pub(super) struct Conversation<'r> {
    pub(super) session: &'r Session,
    pub(super) setup: &'r Setup,
    pub(super) lane: &'r Lane,
    pub(super) state: &'r State,
    pub(super) window: &'r Window,
    pub(super) request: &'r RequestSize,
    pub(super) shared_budget: Option<&'r SharedBudget>,
}

/// A due compaction.
#[derive(Clone, Debug)]
pub(super) struct Due {
    pub(super) why: Why,
    pub(super) plan: Plan,
    /// The request for the summary. The error says why there is none, if one was wanted.
    pub(super) request: Result<String, Option<&'static str>>,
    /// How the conversation shrinks.
    pub(super) shrink: Shrink,
}

/// A summary, or the reason why there is none.
#[derive(Default)]
pub(super) struct Said {
    /// The summary's text.
    summary: Option<String>,
    /// Why there is none, if one was wanted.
    fault: Option<String>,
    /// The summarising model, its usage and its cost.
    model: Option<String>,
    usage: Option<Usage>,
    cost: Option<Money>,
}

impl Said {
    /// Without a summary; `fault` says why, if one was wanted.
    pub(super) fn nothing(fault: Option<&str>) -> Self {
        Self { fault: fault.map(str::to_owned), ..Self::default() }
    }
}

/// Why a summary is not written if the budget or the tokens are used up.
pub(super) const TOO_DEAR: &str = "a summary might cost more than the rest of the budget";

/// The size of the conversation, and requests to compact it.
pub(super) struct Compactor {
    /// Requests since the first compaction, as digests.
    pub(super) asked: HashSet<u64>,
    pub(super) seen: Seen,
    /// The compaction that is due before the next call of the model.
    pub(super) due: Option<Due>,
    /// Did the provider refuse the conversation as too long?
    refused: bool,
    /// Does the session say that messages were truncated?
    pub(super) truncated: bool,
    /// Did a person ask this runner for a compaction?
    wanted: bool,
    /// The log was searched for such requests up to here.
    looked_to: Seq,
}

impl Compactor {
    /// Starts with what is known of the model, and whether messages were truncated before.
    pub(super) fn new(seen: Seen, truncated: bool) -> Self {
        Self {
            asked: HashSet::new(),
            seen,
            due: None,
            refused: false,
            truncated,
            wanted: false,
            looked_to: Seq::ZERO,
        }
    }

    /// Finds out whether a compaction is due before the next call of the model.
    pub(super) fn find_due(&mut self, of: Conversation<'_>) -> Result<()> {
        self.due = None;
        if !of.state.is_models_turn() {
            return Ok(());
        }
        let signs = Signs { room: self.room(of), turned: of.state.turned, refused: self.refused };
        self.due = match of.setup.context.policy.due(of.window, &signs) {
            Some(why) => self.plan(of, why)?,
            None if self.is_wanted(of)? => {
                let due = self.plan(of, Why::Asked)?;
                // There may be nothing to compact.
                self.wanted = due.is_some();
                due
            }
            None => None,
        };
        Ok(())
    }

    /// Did a person ask this runner for a compaction? The log is searched right before a call of
    /// the model, so that the request takes effect in time. A request to a flow concerns every
    /// lane. A lane whose run starts again after a question finds the request again: it is done if
    /// the lane was compacted since.
    fn is_wanted(&mut self, of: Conversation<'_>) -> Result<bool> {
        if self.wanted {
            return Ok(true);
        }
        let (well, lease) = (of.session.well(), of.session.lease());
        let from = self.looked_to.next();
        let facts = Facts { from, ..Facts::of(&[Kind::WorkAsked, Kind::Compacted]) };
        for event in well.store().keyed(&lease.session, facts)? {
            self.looked_to = event.seq;
            match event.event {
                Event::Compacted(done) if done.lane == *of.lane => self.wanted = false,
                Event::WorkAsked(asked)
                    if asked.epoch == lease.epoch && asked.change == WorkChange::Compact =>
                {
                    self.wanted |= well.judge(&lease.session)?.obeys(&asked);
                }
                _ => {}
            }
        }
        Ok(self.wanted)
    }

    /// Takes the due compaction, which fulfils the request for it.
    pub(super) fn take_due(&mut self) -> Option<Due> {
        let due = self.due.take()?;
        self.wanted = false;
        Some(due)
    }

    /// Was the conversation refused, at this output limit, and can it shrink? Then a compaction
    /// becomes due.
    pub(super) fn is_refused(&mut self, of: Conversation<'_>, max_output: u64) -> Result<bool> {
        let policy = &of.setup.context.policy;
        self.refused = (policy.auto || policy.truncates) && self.plan(of, Why::Refused)?.is_some();
        if self.refused {
            self.seen.was_too_long(of.request.counted(of.window), max_output);
        }
        Ok(self.refused)
    }

    /// Notes a finished compaction. Returns whether it is the session's first truncation.
    pub(super) fn has_shrunk(&mut self, compacted: &Compacted) -> bool {
        self.refused = false;
        compacted.is_truncation() && !std::mem::replace(&mut self.truncated, true)
    }

    fn room(&self, of: Conversation<'_>) -> Room {
        let fixed = of.window.fixed() + of.request.spec_tokens;
        of.setup.context.room(&self.seen, fixed, of.setup.max_output)
    }

    /// The compaction for a reason, and the request for its summary.
    pub(super) fn plan(&self, of: Conversation<'_>, why: Why) -> Result<Option<Due>> {
        let policy = &of.setup.context.policy;
        let messages = of.window.entries().len();
        let keep = match policy.truncates {
            true => policy.keeps_truncated(why, messages, &self.seen.calibration),
            false => policy.keeps(why, &self.seen.calibration),
        };
        let plan = self.plan_keeping(of, keep, why)?;
        Ok(plan.map(|plan| {
            let request = of.summary_request(&plan);
            let shrink = of.shrink(&request, &plan);
            Due { why, plan, request, shrink }
        }))
    }

    fn plan_keeping(&self, of: Conversation<'_>, keep: Keep, why: Why) -> Result<Option<Plan>> {
        let pins = of.session.pins()?;
        Ok(Plan::of(&Ask::new(of.window, &pins, self.room(of), keep, why)))
    }

    /// The event of a compaction. Without a summary fewer messages may stay, and earlier summaries
    /// are kept if they fit.
    pub(super) fn compacted(
        &self,
        of: Conversation<'_>,
        due: Due,
        said: Said,
    ) -> Result<Compacted> {
        let Due { why, plan, .. } = due;
        let counter = of.window.counter();
        let messages = of.window.entries().len();
        // The compaction includes the last step, whose results the model has not read.
        let takes_last = |plan: &Plan| plan.covered.last() == messages.checked_sub(1).as_ref();
        let (plan, summary) = match said.summary {
            Some(summary) if takes_last(&plan) => {
                let (held, room) =
                    (SummaryParts::of(of.covered(&plan)), plan.left.min(plan.taken / 2));
                (plan, Some(held.with_results(summary, counter, room)))
            }
            Some(summary) => (plan, Some(summary)),
            None => {
                let keep =
                    of.setup.context.policy.keeps_truncated(why, messages, &self.seen.calibration);
                let plan = self.plan_keeping(of, keep, why)?.unwrap_or(plan);
                let held = SummaryParts::of(of.covered(&plan));
                let carried = match takes_last(&plan) {
                    true => held.left_of_last(counter, plan.left.min(plan.taken / 2)),
                    false => held.carried(counter, plan.room),
                };
                (plan, carried)
            }
        };
        let shown = summary.as_deref().map_or(0, |text| counter.message(&Message::user(text)));
        Ok(Compacted {
            tokens_before: self.seen.calibration.estimate(plan.before),
            tokens_after: self.seen.calibration.estimate(plan.before - plan.taken + shown),
            summary,
            usage: said.usage,
            cost: said.cost,
            model: said.model,
            fault: said.fault,
            ..plan.event(of.lane.clone())
        })
    }
}

impl Conversation<'_> {
    /// How the conversation shrinks by a plan, with the cost of the summary.
    fn shrink(&self, request: &Result<String, Option<&'static str>>, plan: &Plan) -> Shrink {
        let (Ok(request), Some(by)) = (request, &self.setup.context.summariser) else {
            return Shrink::Truncate;
        };
        let said = [Message::user(request.as_str())];
        let input = record::tokens(summary::INSTRUCTIONS, &said, &[]);
        let usage = Usage { input, output: most_said(plan), ..Usage::default() };
        Shrink::Summarise { tokens: usage.total(), cost: (by.cost)(&usage) }
    }

    /// The messages that go by a plan.
    fn covered(&self, plan: &Plan) -> Vec<(&Message, MessageOrigin)> {
        let (messages, entries) = (self.window.messages(), self.window.entries());
        plan.covered.iter().map(|n| (&messages[*n], entries[*n].made)).collect()
    }

    /// The request for the summary. The error says why there is none, unless none was wanted.
    fn summary_request(&self, plan: &Plan) -> Result<String, Option<&'static str>> {
        if self.setup.context.policy.truncates {
            return Err(None);
        }
        let by = self.setup.context.summariser.as_ref();
        let by = by.ok_or(Some("there is no model to write a summary"))?;
        if plan.room == 0 {
            return Err(Some("there is no room for a summary"));
        }
        let counter = Counter(by.family);
        let beside = counter.text(summary::INSTRUCTIONS) + most_said(plan);
        // A quarter is left in case our token count is wrong.
        let most = by.length.map_or(u64::MAX, |length| (length / 4 * 3).saturating_sub(beside));
        let task = self.window.task();
        let (goal, task) = (self.window.goal(), task.as_deref());
        let wanted = Wanted { goal, task, words: plan.room / 2, counter, most };
        wanted
            .request(&self.covered(plan))
            .ok_or(Some("the text to summarise does not fit the summarising model"))
    }

    /// Reserves room for a summary in the limits that all lanes share.
    async fn room_for_summary(
        &self,
        messages: &[Message],
        plan: &Plan,
        by: &Summariser,
    ) -> std::result::Result<Option<Reserved<'_>>, StopReason> {
        let Some(shared_budget) = self.shared_budget else { return Ok(None) };
        let input = record::tokens(summary::INSTRUCTIONS, messages, &[]);
        let usage = Usage { input, output: most_said(plan), ..Usage::default() };
        shared_budget.reserve(usage.total(), (by.cost)(&usage)).await.map(Some)
    }

    /// Asks for the summary of a plan.
    pub(super) async fn summarise(
        &self,
        request: &str,
        plan: &Plan,
        cut: &mut Cancel<'_>,
    ) -> std::result::Result<Said, Stop> {
        let Some(by) = &self.setup.context.summariser else { return Ok(Said::default()) };
        let asked = Said { model: Some(by.model.clone()), ..Said::default() };
        let messages = [Message::user(request)];
        let Ok(_room) = self.room_for_summary(&messages, plan, by).await else {
            return Ok(Said::nothing(Some(TOO_DEAR)));
        };
        let request = Request {
            model: &by.model,
            system: summary::INSTRUCTIONS,
            messages: &messages,
            tools: &[],
            max_output: most_said(plan),
            turn: turn(self.state, self.lane, Purpose::Summary),
        };
        let mut unheard = |_| ();
        let answer = tokio::select! {
            answer = by.provider.answer(request, &mut unheard) => answer,
            stop = cut.off() => return Err(stop),
        };
        let answer = match answer {
            Ok(answer) => answer,
            Err(error) => return Ok(Said { fault: Some(error.to_string()), ..asked }),
        };
        let text = answer.message.text();
        // Without the provider's usage, the tokens are estimated, as elsewhere.
        let usage = answer.usage.unwrap_or_else(|| Usage {
            input: record::tokens(summary::INSTRUCTIONS, &messages, &[]),
            output: record::tokens(&text, &[], &[]),
            ..Usage::default()
        });
        let cost = answer.cost.or_else(|| (by.cost)(&usage));
        let (counter, held) = (self.window.counter(), SummaryParts::of(self.covered(plan)));
        let summary = match answer.ended {
            Ended::Complete => {
                // The summary must be smaller than what it replaces.
                let room = plan.room.min(plan.taken.saturating_sub(1));
                held.complete(&text, counter, room)
            }
            Ended::OutputLimit | Ended::Refused => Err(NoSummary::Partial),
        };
        let (summary, fault) = match summary {
            Ok(summary) => (Some(summary), None),
            Err(why) => (None, Some(why.to_string())),
        };
        Ok(Said { summary, fault, usage: Some(usage), cost, ..asked })
    }
}

/// The output limit of a summary. A model cannot count its own tokens, and a truncated summary is
/// worse than a slightly long one.
fn most_said(plan: &Plan) -> u64 {
    plan.room + plan.room / 2
}
