//! Making the conversation shorter: when that is due, asking for the summary, recording it.

use stepwell::compactions::Extent;
use stepwell::{
    Compacted, Event, Facts, Kind, Lane, Message, MessageOrigin, Money, StopReason, Usage,
    WorkChange,
};
use tokio::sync::watch as signal;

use super::{Cancel, Reserved, Run, RunEvent, record};
use crate::context::plan::{Ask, Keep, Plan, Room, Why};
use crate::context::summary::{self, Held, NoSummary, Wanted};
use crate::context::tokens::Counter;
use crate::context::{Signs, Summariser};
use crate::error::Result;
use crate::machine::{By, Shrink, State, Stop};
use crate::provider::{CallError, Ended, Purpose, Request, Turn};

/// How far a run is.
pub(super) fn turn<'a>(state: &State, lane: &'a Lane, purpose: Purpose) -> Turn<'a> {
    Turn { purpose, answers: state.answers, summaries: state.summaries, lane: lane.as_str() }
}

/// What is to go.
#[derive(Clone, Debug)]
pub(super) struct Due {
    why: Why,
    plan: Plan,
    /// What the summarising model is asked, or why none is.
    request: Result<String, Option<&'static str>>,
}

/// How a wish to make a conversation shorter ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Shrunk {
    /// It is shorter.
    Done(Box<Compacted>),
    /// There is nothing to take out of it.
    AsShortAsItGets,
    /// The user interrupted it; nothing changed.
    Interrupted,
}

/// What came of the wish for a summary.
#[derive(Default)]
struct Said {
    /// What is to stand there.
    summary: Option<String>,
    /// Why nothing is, if something was wanted.
    fault: Option<String>,
    /// Who was asked, what that took, and what it cost.
    model: Option<String>,
    usage: Option<Usage>,
    cost: Option<Money>,
}

impl Run<'_> {
    /// Makes the conversation shorter, whether that is due or not.
    pub async fn shrink_now(mut self, mut interrupt: signal::Receiver<bool>) -> Result<Shrunk> {
        let Some(due) = self.plan(Why::Asked)? else { return Ok(Shrunk::AsShortAsItGets) };
        let by = self.state.summariser(&self.rules, &self.since, self.shrinking(&due));
        let mut cut = Cancel { interrupt: &mut interrupt, deadline: None };
        match self.take_out(due, by, &mut cut).await? {
            Ok(compacted) => Ok(Shrunk::Done(Box::new(compacted))),
            Err(_) => Ok(Shrunk::Interrupted),
        }
    }

    /// What is to go before the model is asked, if something is.
    pub(super) fn due(&mut self) -> Result<Option<Due>> {
        if !self.state.is_models_turn() {
            return Ok(None);
        }
        let signs =
            Signs { room: self.room(), turned: self.state.turned, refused: self.compactor.refused };
        match self.setup.context.policy.due(&self.window, &signs) {
            Some(why) => self.plan(why),
            None if self.is_asked_to_shrink()? => {
                let due = self.plan(Why::Asked)?;
                // It may be as short as it gets.
                self.compactor.wanted = due.is_some();
                Ok(due)
            }
            None => Ok(None),
        }
    }

    /// Did somebody ask this runner for a shorter conversation? It is looked for in the log right
    /// before the model is asked, so that it holds for that call. A flow's request is for every
    /// lane. A lane whose run begins again after a question finds the request again: it is done if
    /// the lane was compacted since.
    fn is_asked_to_shrink(&mut self) -> Result<bool> {
        if self.compactor.wanted {
            return Ok(true);
        }
        let (well, lease) = (self.session.well(), self.session.lease());
        let from = self.compactor.looked_to.next();
        let facts = Facts { from, ..Facts::of(&[Kind::WorkAsked, Kind::Compacted]) };
        for event in well.store().keyed(&lease.session, facts)? {
            self.compactor.looked_to = event.seq;
            match event.event {
                Event::Compacted(done) if done.lane == self.lane => self.compactor.wanted = false,
                Event::WorkAsked(asked)
                    if asked.epoch == lease.epoch && asked.change == WorkChange::Compact =>
                {
                    self.compactor.wanted |= well.judge(&lease.session)?.obeys(&asked);
                }
                _ => {}
            }
        }
        Ok(self.compactor.wanted)
    }

    /// Was a conversation refused that can be made shorter? Then it will be.
    pub(super) fn can_shrink(&mut self) -> Result<bool> {
        let policy = &self.setup.context.policy;
        self.compactor.refused =
            (policy.auto || policy.truncates) && self.plan(Why::Refused)?.is_some();
        if self.compactor.refused {
            let (counted, max_output) = (self.counted(), self.max_output());
            self.compactor.seen.was_too_long(counted, max_output);
        }
        Ok(self.compactor.refused)
    }

    /// Learns from what a provider says it was sent.
    pub(super) fn learn(&mut self, usage: Option<Usage>) {
        self.compactor.seen.calibration.learn(self.counted(), usage.map_or(0, |usage| usage.input));
    }

    /// How the conversation is to shrink before the model is asked, if it is.
    pub(super) fn shrink(&self) -> Option<Shrink> {
        self.compactor.due.as_ref().map(|due| self.shrinking(due))
    }

    fn shrinking(&self, due: &Due) -> Shrink {
        let (Ok(request), Some(by)) = (&due.request, &self.setup.context.summariser) else {
            return Shrink::Truncate;
        };
        let said = [Message::user(request.as_str())];
        let input = record::tokens(summary::INSTRUCTIONS, &said, &[]);
        let usage = Usage { input, output: most_said(&due.plan), ..Usage::default() };
        Shrink::Summarise { tokens: usage.total(), cost: (by.cost)(&usage) }
    }

    /// Makes the conversation shorter.
    pub(super) async fn compact(
        &mut self,
        by: By,
        mut cut: Cancel<'_>,
    ) -> Result<Option<(Stop, Option<CallError>)>> {
        let Some(due) = self.compactor.due.take() else { return Ok(None) };
        self.compactor.wanted = false;
        Ok(self.take_out(due, by, &mut cut).await?.err().map(|stop| (stop, None)))
    }

    /// The most tokens that a request may have.
    pub(super) fn most(&self) -> u64 {
        record::tokens(self.window.instructions(), self.window.messages(), &self.request.specs)
    }

    /// Everything that a request has, as we count.
    pub(super) fn counted(&self) -> u64 {
        self.window.tokens() + self.window.fixed() + self.request.spec_tokens
    }

    fn room(&self) -> Room {
        let fixed = self.window.fixed() + self.request.spec_tokens;
        self.setup.context.room(&self.compactor.seen, fixed, self.setup.max_output)
    }

    fn plan(&self, why: Why) -> Result<Option<Due>> {
        let policy = &self.setup.context.policy;
        let messages = self.window.entries().len();
        let keep = match policy.truncates {
            true => policy.keeps_truncated(why, messages, &self.compactor.seen.calibration),
            false => policy.keeps(why, &self.compactor.seen.calibration),
        };
        let plan = self.plan_keeping(keep, why)?;
        Ok(plan.map(|plan| Due { why, request: self.request(&plan), plan }))
    }

    fn plan_keeping(&self, keep: Keep, why: Why) -> Result<Option<Plan>> {
        let pins = self.session.pins()?;
        Ok(Plan::of(&Ask::new(&self.window, &pins, self.room(), keep, why)))
    }

    /// What goes by a plan.
    fn covered(&self, plan: &Plan) -> Vec<(&Message, MessageOrigin)> {
        let (messages, entries) = (self.window.messages(), self.window.entries());
        plan.covered.iter().map(|n| (&messages[*n], entries[*n].made)).collect()
    }

    /// What a summarising model is to be asked; the error says why none is, unless nobody
    /// wanted one.
    fn request(&self, plan: &Plan) -> Result<String, Option<&'static str>> {
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
        // Our count may be off, and a quarter is left for that.
        let most = by.length.map_or(u64::MAX, |length| (length / 4 * 3).saturating_sub(beside));
        let task = self.window.task();
        let (goal, task) = (self.window.goal(), task.as_deref());
        let wanted = Wanted { goal, task, words: plan.room / 2, counter, most };
        wanted
            .request(&self.covered(plan))
            .ok_or(Some("what is to be summarised does not fit the model that should do it"))
    }

    /// Takes out what is due, and records it; or stops, and nothing changed.
    async fn take_out(
        &mut self,
        due: Due,
        by: By,
        cut: &mut Cancel<'_>,
    ) -> Result<std::result::Result<Compacted, Stop>> {
        let Due { why, plan, request } = due;
        let said = match (by, request) {
            (By::Model, Ok(request)) => match self.summarise(&request, &plan, cut).await {
                Ok(said) => said,
                Err(stop) => return Ok(Err(stop)),
            },
            (_, Err(fault)) => Said { fault: fault.map(str::to_owned), ..Said::default() },
            (By::Nobody, Ok(_)) => {
                let fault = "a summary might cost more than is left of the budget".to_owned();
                Said { fault: Some(fault), ..Said::default() }
            }
        };
        let compacted = self.compacted(why, plan, said)?;
        let mut events: Vec<Event> = vec![compacted.clone().into()];
        // Together: whoever sees one sees the other.
        if compacted.is_truncation() && !std::mem::replace(&mut self.compactor.truncated, true) {
            events.push(Extent::Truncated.edited().into());
        }
        self.record(events)?;
        if let Some(usage) = compacted.usage {
            self.pay(usage, compacted.cost);
        }
        self.compactor.refused = false;
        self.request.tokens = self.most();
        let shrank = Box::new(compacted.clone());
        self.front.events.tell(RunEvent::Compacted { compacted: shrank, why });
        Ok(Ok(compacted))
    }

    /// The event that takes out what goes by a plan. Without a summary fewer messages may
    /// stay, and what earlier summaries held does if it fits.
    fn compacted(&self, why: Why, plan: Plan, said: Said) -> Result<Compacted> {
        let counter = self.window.counter();
        let messages = self.window.entries().len();
        // The last step goes with the rest before the model saw what came of it.
        let takes_last = |plan: &Plan| plan.covered.last() == messages.checked_sub(1).as_ref();
        let (plan, summary) = match said.summary {
            Some(summary) if takes_last(&plan) => {
                let (held, room) = (Held::of(self.covered(&plan)), plan.left.min(plan.taken / 2));
                (plan, Some(held.with_results(summary, counter, room)))
            }
            Some(summary) => (plan, Some(summary)),
            None => {
                let keep = self.setup.context.policy.keeps_truncated(
                    why,
                    messages,
                    &self.compactor.seen.calibration,
                );
                let plan = self.plan_keeping(keep, why)?.unwrap_or(plan);
                let held = Held::of(self.covered(&plan));
                let carried = match takes_last(&plan) {
                    true => held.left_of_last(counter, plan.left.min(plan.taken / 2)),
                    false => held.carried(counter, plan.room),
                };
                (plan, carried)
            }
        };
        let shown = summary.as_deref().map_or(0, |text| counter.message(&Message::user(text)));
        Ok(Compacted {
            tokens_before: self.compactor.seen.calibration.estimate(plan.before),
            tokens_after: self
                .compactor
                .seen
                .calibration
                .estimate(plan.before - plan.taken + shown),
            summary,
            usage: said.usage,
            cost: said.cost,
            model: said.model,
            fault: said.fault,
            ..plan.event(self.lane.clone())
        })
    }

    /// Room for a summary in what all lanes may use.
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

    /// Asks for a summary of what goes by a plan.
    async fn summarise(
        &self,
        request: &str,
        plan: &Plan,
        cut: &mut Cancel<'_>,
    ) -> std::result::Result<Said, Stop> {
        let Some(by) = &self.setup.context.summariser else { return Ok(Said::default()) };
        let asked = Said { model: Some(by.model.clone()), ..Said::default() };
        let messages = [Message::user(request)];
        let Ok(_room) = self.room_for_summary(&messages, plan, by).await else {
            let fault = "a summary might cost more than is left of the budget".to_owned();
            return Ok(Said { fault: Some(fault), ..Said::default() });
        };
        let request = Request {
            model: &by.model,
            system: summary::INSTRUCTIONS,
            messages: &messages,
            tools: &[],
            max_output: most_said(plan),
            turn: turn(&self.state, &self.lane, Purpose::Summary),
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
        // Providers that do not say what they used are estimated, as elsewhere.
        let usage = answer.usage.unwrap_or_else(|| Usage {
            input: record::tokens(summary::INSTRUCTIONS, &messages, &[]),
            output: record::tokens(&text, &[], &[]),
            ..Usage::default()
        });
        let cost = answer.cost.or_else(|| (by.cost)(&usage));
        let (counter, held) = (self.window.counter(), Held::of(self.covered(plan)));
        let summary = match answer.ended {
            Ended::Complete => {
                // It must be smaller than what it replaces.
                let room = plan.room.min(plan.taken.saturating_sub(1));
                held.complete(&text, counter, room)
            }
            Ended::OutputLimit | Ended::Filtered => Err(NoSummary::Partial),
        };
        let (summary, fault) = match summary {
            Ok(summary) => (Some(summary), None),
            Err(why) => (None, Some(why.to_string())),
        };
        Ok(Said { summary, fault, usage: Some(usage), cost, ..asked })
    }
}

/// The most tokens that a model may say: it cannot count its own, and what is too long is
/// worse than a little more.
fn most_said(plan: &Plan) -> u64 {
    plan.room + plan.room / 2
}
