//! How a flow ended, as text and as JSON.

use stepwell::{Gate, Status, StopReason};
use stepwell_flow::Unwritten;
use stepwell_runtime::flow::is_permission;
use stepwell_runtime::{FlowReport, RunReport};
use stepwell_terminal::note;
use stepwell_terminal::text::{one_line, visible};

use super::Flags;
use super::report::summary;
use crate::failure::Result;
use crate::output::Output;

/// Prints how a flow ended.
pub(super) fn print(
    report: &RunReport,
    flow: &FlowReport,
    flags: &Flags,
    out: &mut Output,
) -> Result<()> {
    if out.is_json() {
        return out.object(&report.flow_answer(flow));
    }
    if flags.events {
        return Ok(());
    }
    if report.status == Status::Success {
        out.line(visible(report.redacted_output.trim_end()))?;
    }
    out.flush()?;
    for artifact in &flow.artifacts {
        note(format_args!("wrote {}", flow.folder.join(artifact).display()));
    }
    summary(report);
    if report.saved {
        hints(report);
    }
    Ok(())
}

fn hints(report: &RunReport) {
    let id = &report.session;
    match report.status {
        Status::Success => {}
        Status::Paused => waiting(report),
        Status::Partial if report.reason == Some(StopReason::BudgetExceeded) => {
            note(format_args!(
                "hint: stepwell resume {id} --max-tokens N, or --budget USD, gives it more"
            ));
        }
        Status::Partial if report.reason == Some(StopReason::MaxSteps) => {
            note(format_args!("hint: stepwell resume {id} --max-steps N gives it more"));
        }
        Status::Partial if report.reason == Some(StopReason::Timeout) => {
            note(format_args!("hint: stepwell resume {id} --timeout TIME gives it more"));
        }
        _ => note(match report.error.as_ref().and_then(|error| error.unwritten) {
            Some(Unwritten::InTheWay) => {
                format!("hint: stepwell resume {id} --force, or --output DIR")
            }
            Some(Unwritten::Described) => format!(
                "hint: mend outputs.artifacts in the spec, then: \
                 stepwell resume {id} --use-current-spec"
            ),
            Some(Unwritten::Folder) => {
                format!("hint: when that is mended, stepwell resume {id}, or --output DIR")
            }
            None => of_failure(report),
        }),
    }
}

/// Says what a flow waits for, and how to answer.
fn waiting(report: &RunReport) {
    let id = &report.session;
    for gate in &report.waiting {
        note(format_args!("\n[{}] {}", gate.id, gate.prompt));
        if let Some(default) = &gate.default {
            note(format_args!("default: {}", one_line(default)));
        }
        if let Some(deadline) = gate.deadline {
            note(format_args!("until: {deadline}"));
        }
    }
    let first = report.waiting.first();
    let which = match first.filter(|_| report.waiting.len() > 1) {
        Some(gate) => format!(" --gate {}", gate.id),
        None => String::new(),
    };
    match first {
        Some(gate) if is_permission(gate) => {
            note(format_args!("hint: stepwell resume {id}{which} --approve, or --deny"));
        }
        _ => note(format_args!("hint: stepwell resume {id}{which} --respond \"your answer\"")),
    }
}

/// What helps where something failed that is no file.
fn of_failure(report: &RunReport) -> String {
    let id = &report.session;
    let Some(error) = &report.error else { return format!("hint: stepwell resume {id}") };
    // Its time is up: only an answer helps.
    let at = |gate: &&Gate| error.node.as_ref() == Some(&gate.id);
    if let Some(gate) = report.waiting.iter().find(at) {
        let which = match report.waiting.len() {
            1 => String::new(),
            _ => format!(" --gate {}", gate.id),
        };
        return format!("hint: stepwell resume {id}{which} --respond \"your answer\"");
    }
    match error.fault {
        Some(_) => format!("hint: stepwell resume {id}"),
        // Guided work that ends with something left goes on with it if it is resumed.
        None if report.status == Status::Partial => {
            format!("hint: stepwell resume {id} goes on with it; stepwell state {id}")
        }
        // No call failed: what was asked for, or how, is the spec's.
        None => format!(
            "hint: stepwell resume {id}; if the spec is to blame, mend it and add \
             --use-current-spec"
        ),
    }
}
