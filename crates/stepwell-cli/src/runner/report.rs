//! How a run ended, as text and as JSON.

use std::collections::BTreeMap;
use std::time::Duration;

use serde::Serialize;
use serde_json::value::RawValue;
use stepwell::gates::Gates;
use stepwell::{Lane, LaneState, Session, Spent, Standing, State, Status, StopReason};
use stepwell_agent::provider::Fault;
use stepwell_agent::redact::Redactor;
use stepwell_agent::run::Ended;

use super::Flags;
use super::tally::Tally;
use crate::app::App;
use crate::failure::{Exit, Result};
use crate::output::note;
use crate::text::{cost, count, grouped, one_line};
use crate::wire;

/// How a run ended.
pub(super) struct Report<'a> {
    pub(super) standing: &'a Standing,
    pub(super) ended: &'a Ended,
    pub(super) took: Duration,
    /// Takes secrets out of what a program may write to a file.
    pub(super) redactor: &'a Redactor,
    pub(super) resumed_from: Option<u64>,
    pub(super) lanes: BTreeMap<Lane, LaneState>,
    /// Sessions of its subagents, and of theirs.
    pub(super) subagents: Vec<Standing>,
    /// What it waits for.
    pub(super) waiting: Option<String>,
}

#[derive(Serialize)]
struct Answer<'a> {
    session_id: &'a str,
    status: Status,
    stop_reason: StopReason,
    output: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<String>,
    steps: u64,
    tools_used: &'a [String],
    files_modified: &'a [String],
    duration_seconds: f64,
    model: &'a str,
    costs: Costs,
    /// The seq that the session was at when this invocation took it up.
    resumed_from: Option<u64>,
}

/// What the whole session used, over all of its invocations, with its subagents.
#[derive(Serialize)]
pub(super) struct Costs {
    total_input_tokens: u64,
    total_output_tokens: u64,
    total_cached_tokens: u64,
    total_tokens: u64,
    /// Absent where a call's price is not known.
    total_cost_usd: Option<Box<RawValue>>,
    by_source: BTreeMap<String, Option<Box<RawValue>>>,
}

impl Costs {
    /// What was spent, and what of it each lane did.
    pub(super) fn by_lane(spent: &Spent, lanes: impl Iterator<Item = (String, Spent)>) -> Self {
        Self::of(spent, lanes.map(|(lane, spent)| (lane, price(&spent))).collect())
    }

    fn of(spent: &Spent, by_source: BTreeMap<String, Option<Box<RawValue>>>) -> Self {
        Self {
            total_input_tokens: spent.usage.input,
            total_output_tokens: spent.usage.output,
            total_cached_tokens: spent.usage.cached,
            total_tokens: spent.usage.total(),
            total_cost_usd: price(spent),
            by_source,
        }
    }
}

/// What was spent, unless the price of some of it is not known.
fn price(spent: &Spent) -> Option<Box<RawValue>> {
    (spent.unpriced == 0).then(|| wire::money(spent.cost))
}

impl Report<'_> {
    pub(super) fn print(&self, flags: &Flags, app: &mut App) -> Result<()> {
        let head = &self.standing.head;
        let mut spent = head.spent;
        self.subagents.iter().for_each(|below| spent += below.head.spent);
        let usage = spent.usage;
        if app.out.is_json() {
            let plain = |text: &str| self.redactor.redact(text).into_owned();
            let files: Vec<String> =
                self.ended.files_modified.iter().map(|path| plain(path)).collect();
            let lanes =
                self.lanes.iter().map(|(lane, state)| (lane.to_string(), price(&state.spent)));
            let below = self
                .subagents
                .iter()
                .map(|it| (format!("subagent:{}", it.head.id), price(&it.head.spent)));
            let by_source = lanes.chain(below);
            return app.out.object(&Answer {
                session_id: head.id.as_str(),
                status: self.ended.status,
                stop_reason: self.ended.reason,
                output: &self.redactor.redact(&self.ended.output),
                error: self.ended.error.as_ref().map(|error| plain(&error.to_string())),
                steps: head.steps,
                tools_used: &self.ended.tools_used,
                files_modified: &files,
                duration_seconds: self.took.as_secs_f64(),
                model: &head.model,
                costs: Costs::of(&spent, by_source.collect()),
                resumed_from: self.resumed_from,
            });
        }
        if flags.events {
            return Ok(());
        }
        let (status, reason) = (self.ended.status, wire::word(self.ended.reason));
        let steps = count(usize::try_from(head.steps).unwrap_or(usize::MAX), "step");
        let tokens = grouped(usage.total());
        let (cost, seconds) = (cost(&spent), self.took.as_secs());
        note(format_args!(
            "{} {status} ({reason}): {steps}, {tokens} tokens, {cost}, {seconds}s",
            head.id
        ));
        if let Some(error) = &self.ended.error {
            note(format_args!("error: {}", one_line(&error.to_string())));
        }
        let id = &head.id;
        if !app.config.settings.auto_save {
            return Ok(());
        }
        match status {
            Status::Paused => {
                if let Some(prompt) = &self.waiting {
                    note(format_args!("It wants to: {}", one_line(prompt)));
                }
                note(format_args!("hint: stepwell resume {id} --approve, or --deny"));
            }
            Status::Success => {}
            Status::Partial => {
                if self.ended.reason == StopReason::LlmDone {
                    note("Nothing of what it wanted to do was allowed.");
                }
                note(format_args!("hint: stepwell resume {id}{}", self.with_more(flags)));
            }
            _ => note(format_args!("hint: stepwell resume {id}")),
        }
        Ok(())
    }

    /// What to type to have more of what stopped the run.
    fn with_more(&self, flags: &Flags) -> &'static str {
        let total = flags.budget_total.or(self.standing.head.budget);
        match self.ended.reason {
            StopReason::ContextFull => " --model PROVIDER/NAME, with a larger context",
            StopReason::BudgetExceeded if flags.max_tokens.is_some() => {
                " --max-tokens N, with more of them"
            }
            StopReason::BudgetExceeded if flags.budget.is_none() && total.is_some() => {
                " --budget-total USD, with more of it"
            }
            StopReason::BudgetExceeded => " --budget USD, with more of it",
            _ => "",
        }
    }
}

/// The answer of a run that could not be saved: how far it was, and why it is no further.
pub(super) fn unsaved(
    tally: &Tally,
    error: &str,
    (took, resumed_from): (Duration, Option<u64>),
    app: &mut App,
) -> Result<()> {
    if !app.out.is_json() {
        return Ok(());
    }
    let State { head, lanes } = &tally.state;
    let mut spent = head.spent;
    tally.below.values().for_each(|below| spent += below.spent);
    let lanes = lanes.iter().map(|(lane, state)| (lane.to_string(), price(&state.spent)));
    let below = tally.below.values().map(|it| (format!("subagent:{}", it.id), price(&it.spent)));
    app.out.object(&Answer {
        session_id: head.id.as_str(),
        status: Status::Interrupted,
        stop_reason: StopReason::Crashed,
        output: &tally.output,
        error: Some(error.to_owned()),
        steps: head.steps,
        tools_used: &tally.tools_used,
        files_modified: &tally.files_modified,
        duration_seconds: took.as_secs_f64(),
        model: &head.model,
        costs: Costs::of(&spent, lanes.chain(below).collect()),
        resumed_from,
    })
}

/// The last question that waits, which is the one that a plain yes or no answers.
pub(super) fn waiting(session: &Session) -> Result<Option<String>> {
    let gates = Gates::of(&**session.well().store(), session.id())?;
    Ok(gates.open().next_back().map(|asked| asked.gate.prompt.clone()))
}

/// The exit code that tells how a run ended.
pub(super) fn exit(ended: &Ended) -> Exit {
    use stepwell::Status::{Failed, Interrupted, Partial, Paused, Success};
    match (ended.status, &ended.error) {
        (Failed, Some(error)) if error.fault == Fault::Auth => Exit::Credentials,
        (Failed, Some(error)) if error.fault == Fault::UnknownModel => Exit::Absent,
        (Success, _) => Exit::Done,
        (Partial, _) => Exit::Partial,
        (Paused, _) => Exit::Paused,
        (Interrupted, _) => Exit::Interrupted,
        _ => Exit::Failed,
    }
}
