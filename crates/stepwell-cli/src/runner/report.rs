//! How a run ended, as text, as JSON, and as an exit code.

use stepwell::Status;
use stepwell_agent::provider::Fault;
use stepwell_runtime::{Error, RunReport};
use stepwell_terminal::note;
use stepwell_terminal::report::{Limits, of_agent, of_flow};
use stepwell_terminal::text::visible;

use super::Flags;
use crate::failure::{Exit, Result};
use crate::output::Output;

/// Prints how a run ended.
pub(super) fn print(report: &RunReport, flags: &Flags, out: &mut Output) -> Result<()> {
    let lines = match &report.flow {
        Some(flow) if out.is_json() => return out.object(&report.flow_answer(flow)),
        None if out.is_json() => return out.object(&stepwell_wire::RunReport::from(report)),
        _ if flags.events => return Ok(()),
        Some(flow) => {
            if report.status == Status::Success {
                out.line(visible(report.redacted_output.trim_end()))?;
            }
            out.flush()?;
            of_flow(report, flow)
        }
        None => {
            let (budget, tokens) = (flags.budget.is_some(), flags.max_tokens.is_some());
            of_agent(report, Limits { budget, tokens })
        }
    };
    lines.into_iter().for_each(note);
    Ok(())
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
