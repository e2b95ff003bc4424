//! How an agent's run ended, as text, as JSON, and as an exit code.

use stepwell::{Status, StopReason};
use stepwell_agent::provider::Fault;
use stepwell_runtime::{Error, RunReport};
use stepwell_terminal::note;
use stepwell_terminal::text::word;
use stepwell_terminal::text::{cost, count, grouped, one_line};

use super::Flags;
use crate::failure::{Exit, Result};
use crate::output::Output;

/// Prints how a run ended.
pub(super) fn print(report: &RunReport, flags: &Flags, out: &mut Output) -> Result<()> {
    if out.is_json() {
        return out.object(&stepwell_wire::RunReport::from(report));
    }
    if flags.events {
        return Ok(());
    }
    summary(report);
    let id = &report.session;
    if !report.saved {
        return Ok(());
    }
    match report.status {
        Status::Paused => {
            // The last question that waits is the one that a plain yes or no answers.
            if let Some(gate) = report.waiting.last() {
                note(format_args!("It wants to: {}", one_line(&gate.prompt)));
            }
            note(format_args!("hint: stepwell resume {id} --approve, or --deny"));
        }
        Status::Success if report.was_done => note(format_args!(
            "{id} was finished already, so nothing was done.\n\
             hint: stepwell resume {id} \"TEXT\" gives it more to do; stepwell fork {id} or \
             stepwell rewind {id} goes back to try another way"
        )),
        Status::Success => {}
        Status::Partial => {
            if report.reason == Some(StopReason::LlmDone) {
                note("Nothing of what it wanted to do was allowed.");
            }
            note(format_args!("hint: stepwell resume {id}{}", with_more(report, flags)));
        }
        _ => note(format_args!("hint: stepwell resume {id}")),
    }
    Ok(())
}

/// One line that says how a run ended, and what went wrong, if something did.
pub(super) fn summary(report: &RunReport) {
    let reason = report.reason.map(|reason| format!(" ({})", word(reason)));
    let steps = count(usize::try_from(report.steps).unwrap_or(usize::MAX), "step");
    let tokens = grouped(report.spent.usage.total());
    note(format_args!(
        "{} {}{}: {steps}, {tokens} tokens, {}, {}s",
        report.session,
        report.status,
        reason.unwrap_or_default(),
        cost(&report.spent),
        report.took.as_secs()
    ));
    if let Some(error) = &report.error {
        note(format_args!("error: {}", one_line(&error.message)));
    }
}

/// What to type to have more of what stopped the run.
fn with_more(report: &RunReport, flags: &Flags) -> &'static str {
    match report.reason {
        Some(StopReason::ContextFull) => " --model PROVIDER/NAME, with a larger context",
        Some(StopReason::BudgetExceeded) if flags.max_tokens.is_some() => {
            " --max-tokens N, with more of them"
        }
        Some(StopReason::BudgetExceeded)
            if flags.budget.is_none() && report.budget_total.is_some() =>
        {
            " --budget-total USD, with more of it"
        }
        Some(StopReason::BudgetExceeded) => " --budget USD, with more of it",
        _ => "",
    }
}

/// The answer of a run that could not be saved: how far it was, and why it is no further.
pub(super) fn unsaved(error: &Error, out: &mut Output) -> Result<()> {
    let (Error::Unsaved { report, .. } | Error::Broken { report, .. }) = error else {
        return Ok(());
    };
    if !out.is_json() {
        return Ok(());
    }
    let answer = stepwell_wire::RunReport::from(&**report);
    out.object(&stepwell_wire::RunReport { error: Some(error.to_string()), ..answer })
}

/// The exit code that tells how a run ended.
pub(super) fn exit(report: &RunReport) -> Exit {
    use stepwell::Status::{Failed, Interrupted, Partial, Paused, Success};
    let fault = report.error.as_ref().and_then(|error| error.fault);
    match (report.status, fault) {
        (Failed, Some(Fault::Auth)) => Exit::Credentials,
        (Failed, Some(Fault::UnknownModel)) => Exit::Absent,
        (Success, _) => Exit::Done,
        (Partial, _) => Exit::Partial,
        (Paused, _) => Exit::Paused,
        (Interrupted, _) => Exit::Interrupted,
        _ => Exit::Failed,
    }
}
