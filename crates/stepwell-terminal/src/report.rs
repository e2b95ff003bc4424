//! How a run ended, in words: a summary, and what to type next.

use stepwell::model::Gate;
use stepwell::{SessionId, Status, StopReason};
use stepwell_flow::Unwritten;
use stepwell_runtime::flow::is_permission;
use stepwell_runtime::{FlowReport, RunReport};

use crate::text::{cost_or, count, grouped, one_line, word};

/// Which limits were set for the run by hand.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Limits {
    /// A budget in dollars.
    pub budget: bool,
    /// A number of tokens.
    pub tokens: bool,
}

/// How an agent's run ended, and what to do next.
#[must_use]
pub fn of_agent(report: &RunReport, limits: Limits) -> Vec<String> {
    let mut lines = summary(report);
    if report.saved {
        after_agent(report, limits, &mut lines);
    }
    lines
}

fn after_agent(report: &RunReport, limits: Limits, lines: &mut Vec<String>) {
    let id = &report.session;
    match report.status {
        Status::Paused => {
            // The last question that waits is the one that a plain yes or no answers.
            if let Some(gate) = report.waiting.last() {
                lines.push(format!("It wants to: {}", one_line(&gate.prompt)));
            }
            lines.push(format!("hint: stepwell resume {id} --approve, or --deny"));
        }
        Status::Success if report.was_done => lines.push(format!(
            "{id} was finished already, so nothing was done.\n\
             hint: stepwell resume {id} \"TEXT\" gives it more to do; stepwell fork {id} or \
             stepwell rewind {id} goes back to try another way"
        )),
        Status::Success => {}
        Status::Partial => {
            if report.reason == Some(StopReason::LlmDone) {
                lines.push("None of its calls was run; the log says why.".to_owned());
            }
            lines.push(format!("hint: stepwell resume {id}{}", with_more(report, limits)));
        }
        _ => lines.push(resume(id)),
    }
}

/// How a flow ended, and what to do next.
#[must_use]
pub fn of_flow(report: &RunReport, flow: &FlowReport) -> Vec<String> {
    let wrote = |artifact| format!("wrote {}", flow.folder.join(artifact).display());
    let mut lines: Vec<String> = flow.artifacts.iter().map(wrote).collect();
    lines.extend(summary(report));
    match report.status {
        _ if !report.saved => {}
        Status::Success => {}
        Status::Paused => waiting(report, &mut lines),
        _ => lines.push(after_flow(report)),
    }
    lines
}

fn after_flow(report: &RunReport) -> String {
    let id = &report.session;
    if report.status == Status::Partial {
        match report.reason {
            Some(StopReason::BudgetExceeded) => {
                return format!(
                    "hint: stepwell resume {id} --max-tokens N, or --budget USD, gives it more"
                );
            }
            Some(StopReason::MaxSteps) => {
                return format!("hint: stepwell resume {id} --max-steps N gives it more");
            }
            Some(StopReason::Timeout) => {
                return format!("hint: stepwell resume {id} --timeout TIME gives it more");
            }
            _ => {}
        }
    }
    match report.error.as_ref().and_then(|error| error.unwritten) {
        Some(Unwritten::InTheWay) => format!("hint: stepwell resume {id} --force, or --output DIR"),
        Some(Unwritten::Described) => format!(
            "hint: mend outputs.artifacts in the spec, then: \
             stepwell resume {id} --use-current-spec"
        ),
        Some(Unwritten::Folder) => {
            format!("hint: when that is mended, stepwell resume {id}, or --output DIR")
        }
        None => after_failure(report),
    }
}

/// One line that says how a run ended, and what went wrong, if something did.
fn summary(report: &RunReport) -> Vec<String> {
    let reason = match (report.reason, report.status) {
        (Some(reason), _) => format!(" ({})", word(reason)),
        // Guided work stopped by itself; the error says what is left.
        (None, Status::Partial) => " (work is left)".to_owned(),
        (None, _) => String::new(),
    };
    let steps = count(usize::try_from(report.steps).unwrap_or(usize::MAX), "step");
    let tokens = grouped(report.spent.usage.total());
    // Nothing can be done with the name of what was not saved.
    let name = if report.saved { format!("{} ", report.session) } else { String::new() };
    let ended = format!(
        "{name}{}{}: {steps}, {tokens} tokens, {}, {}s",
        report.status,
        reason,
        cost_or(report.estimate, &report.spent),
        report.took.as_secs()
    );
    let error = report.error.as_ref();
    let error = error.map(|error| format!("error: {}", one_line(&error.message)));
    std::iter::once(ended).chain(error).collect()
}

fn resume(id: &SessionId) -> String {
    format!("hint: stepwell resume {id}")
}

/// What to type to have more of what stopped the run.
fn with_more(report: &RunReport, limits: Limits) -> &'static str {
    match report.reason {
        Some(StopReason::ContextFull) => " --model PROVIDER/NAME, with a larger context",
        Some(StopReason::BudgetExceeded) if limits.tokens => " --max-tokens N, with more of them",
        Some(StopReason::BudgetExceeded) if !limits.budget && report.budget_total.is_some() => {
            " --budget-total USD, with more of it"
        }
        Some(StopReason::BudgetExceeded) => " --budget USD, with more of it",
        _ => "",
    }
}

/// Says what a flow waits for, and how to answer.
fn waiting(report: &RunReport, lines: &mut Vec<String>) {
    let id = &report.session;
    for gate in &report.waiting {
        lines.push(format!("\n[{}] {}", gate.id, gate.prompt));
        lines.extend(gate.default.as_ref().map(|it| format!("default: {}", one_line(it))));
        lines.extend(gate.deadline.map(|deadline| format!("until: {deadline}")));
    }
    let first = report.waiting.first();
    let which = first.map(|gate| which(report, gate)).unwrap_or_default();
    lines.push(match first {
        Some(gate) if is_permission(gate) => {
            format!("hint: stepwell resume {id}{which} --approve, or --deny")
        }
        _ => format!("hint: stepwell resume {id}{which} --respond \"your answer\""),
    });
}

/// The flag that names a question, where several wait.
fn which(report: &RunReport, gate: &Gate) -> String {
    if report.waiting.len() > 1 { format!(" --gate {}", gate.id) } else { String::new() }
}

/// What helps where something failed that is no file.
fn after_failure(report: &RunReport) -> String {
    let id = &report.session;
    let Some(error) = &report.error else { return resume(id) };
    // Its time is up: only an answer helps.
    let at = |gate: &&Gate| error.node.as_ref() == Some(&gate.id);
    if let Some(gate) = report.waiting.iter().find(at) {
        let which = which(report, gate);
        return format!("hint: stepwell resume {id}{which} --respond \"your answer\"");
    }
    match error.fault {
        Some(_) => resume(id),
        // Guided work that ends with something left goes on with it if it is resumed.
        None if report.status == Status::Partial => {
            format!("hint: stepwell resume {id} continues it; stepwell state {id}")
        }
        // Nobody wrote a spec for guided work.
        None if report.flow.as_ref().is_some_and(|flow| flow.pattern == "guided") => {
            format!("hint: stepwell resume {id} tries it again; stepwell state {id}")
        }
        // No call failed: what was asked for, or how, is the spec's.
        None => format!(
            "hint: stepwell resume {id}; if the spec is to blame, mend it and add \
             --use-current-spec"
        ),
    }
}
