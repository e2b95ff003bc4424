//! How a flow ended, as an answer and an exit code.

use std::collections::BTreeMap;
use std::time::Duration;

use serde::Serialize;
use stepwell::{Gate, Lane, LaneState, Standing, Status, StopReason, Usage};
use stepwell_agent::provider::Fault;
use stepwell_agent::redact::Redactor;
use stepwell_flow::{Ended, Unwritten};

use super::super::report::Costs;
use crate::app::App;
use crate::failure::{Exit, Result};
use crate::output::note;
use crate::text::{cost, count, grouped, one_line};
use crate::wire;

/// How a flow ended.
pub(super) struct Report<'a> {
    pub(super) standing: &'a Standing,
    pub(super) ended: &'a Ended,
    pub(super) took: Duration,
    pub(super) redactor: &'a Redactor,
    pub(super) resumed_from: Option<u64>,
    pub(super) lanes: BTreeMap<Lane, LaneState>,
    pub(super) by_agent: BTreeMap<String, Usage>,
    /// Where artifacts are.
    pub(super) output: &'a std::path::Path,
    pub(super) wants_events: bool,
}

#[derive(Serialize)]
struct Answer<'a> {
    session_id: &'a str,
    flow: &'a str,
    pattern: &'a str,
    status: Status,
    stop_reason: Option<StopReason>,
    output: serde_json::Value,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<String>,
    gates: Vec<Waiting<'a>>,
    artifacts: Vec<String>,
    steps: u64,
    duration_seconds: f64,
    model: &'a str,
    costs: Costs,
    tokens_by_agent: BTreeMap<&'a str, Tokens>,
    #[serde(skip_serializing_if = "Option::is_none")]
    resumed_from: Option<u64>,
}

/// A question that waits, as programs see it.
#[derive(Serialize)]
pub(crate) struct Waiting<'a> {
    id: &'a str,
    prompt: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    default: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    deadline: Option<stepwell::Time>,
}

impl<'a> Waiting<'a> {
    pub(crate) fn new(gate: &'a Gate) -> Self {
        let (id, prompt, deadline) = (&gate.id, &gate.prompt, gate.deadline);
        Self { id, prompt, default: gate.default.as_deref(), deadline }
    }
}

#[derive(Serialize)]
struct Tokens {
    input: u64,
    output: u64,
    cached: u64,
    total: u64,
}

impl Report<'_> {
    pub(super) fn print(&self, app: &mut App) -> Result<()> {
        let head = &self.standing.head;
        if app.out.is_json() {
            return app.out.object(&self.answer());
        }
        if self.wants_events {
            return Ok(());
        }
        if self.ended.status == Status::Success {
            let said = match &self.ended.output {
                serde_json::Value::String(text) => text.clone(),
                value => value.to_string(),
            };
            app.out.line(crate::text::visible(self.redactor.redact(said.trim_end()).as_ref()))?;
        }
        app.out.flush()?;
        for artifact in &self.ended.artifacts {
            note(format_args!("wrote {}", self.output.join(&artifact.path).display()));
        }
        let reason = self.ended.reason.map(wire::word).map(|it| format!(" ({it})"));
        let steps = count(usize::try_from(head.steps).unwrap_or(usize::MAX), "step");
        let (tokens, seconds) = (grouped(head.spent.usage.total()), self.took.as_secs());
        note(format_args!(
            "{} {}{}: {steps}, {tokens} tokens, {}, {seconds}s",
            head.id,
            self.ended.status,
            reason.unwrap_or_default(),
            cost(&head.spent)
        ));
        if let Some(error) = &self.ended.error {
            note(format_args!("error: {}", one_line(&error.to_string())));
        }
        if app.config.settings.auto_save {
            self.hints();
        }
        Ok(())
    }

    fn hints(&self) {
        let id = &self.standing.head.id;
        let many = self.ended.open.len() > 1;
        match self.ended.status {
            Status::Success => {}
            Status::Paused => {
                for gate in &self.ended.open {
                    note(format_args!("\n[{}] {}", gate.id, gate.prompt));
                    if let Some(default) = &gate.default {
                        note(format_args!("default: {}", one_line(default)));
                    }
                    if let Some(deadline) = gate.deadline {
                        note(format_args!("until: {deadline}"));
                    }
                }
                let first = self.ended.open.first();
                let which = match first.filter(|_| many) {
                    Some(gate) => format!(" --gate {}", gate.id),
                    None => String::new(),
                };
                match first {
                    Some(gate) if super::is_permission(gate) => {
                        note(format_args!(
                            "hint: stepwell resume {id}{which} --approve, or --deny"
                        ));
                    }
                    _ => note(format_args!(
                        "hint: stepwell resume {id}{which} --respond \"your answer\""
                    )),
                }
            }
            Status::Partial if self.ended.reason == Some(StopReason::BudgetExceeded) => {
                note(format_args!(
                    "hint: stepwell resume {id} --max-tokens N, or --budget USD, gives it more"
                ));
            }
            Status::Partial if self.ended.reason == Some(StopReason::MaxSteps) => {
                note(format_args!("hint: stepwell resume {id} --max-steps N gives it more"));
            }
            Status::Partial if self.ended.reason == Some(StopReason::Timeout) => {
                note(format_args!("hint: stepwell resume {id} --timeout TIME gives it more"));
            }
            _ => note(match self.ended.error.as_ref().and_then(|error| error.unwritten) {
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
                None => self.hint_of_failure(),
            }),
        }
    }

    /// What helps where something failed that is no file.
    fn hint_of_failure(&self) -> String {
        let id = &self.standing.head.id;
        let Some(error) = &self.ended.error else { return format!("hint: stepwell resume {id}") };
        // Its time is up: only an answer helps.
        if let Some(gate) = self.ended.open.iter().find(|gate| gate.id == error.node) {
            let which = match self.ended.open.len() {
                1 => String::new(),
                _ => format!(" --gate {}", gate.id),
            };
            return format!("hint: stepwell resume {id}{which} --respond \"your answer\"");
        }
        match error.fault {
            Some(_) => format!("hint: stepwell resume {id}"),
            // No call failed: what was asked for, or how, is the spec's.
            None => format!(
                "hint: stepwell resume {id}; if the spec is to blame, mend it and add \
                 --use-current-spec"
            ),
        }
    }

    fn answer(&self) -> Answer<'_> {
        let head = &self.standing.head;
        let plain = |text: &str| self.redactor.redact(text).into_owned();
        let by_source = self.lanes.iter().map(|(lane, state)| (lane.to_string(), state.spent));
        let tokens = |usage: &Usage| Tokens {
            input: usage.input,
            output: usage.output,
            cached: usage.cached,
            total: usage.total(),
        };
        let by_agent = self.by_agent.iter().map(|(name, usage)| (name.as_str(), tokens(usage)));
        let flow = head.flow.as_ref();
        Answer {
            session_id: head.id.as_str(),
            flow: flow.map_or("", |flow| &flow.name),
            pattern: flow.map_or("", |flow| &flow.pattern),
            status: self.ended.status,
            stop_reason: self.ended.reason,
            output: self.ended.output.clone(),
            error: self.ended.error.as_ref().map(|error| plain(&error.to_string())),
            gates: self.ended.open.iter().map(Waiting::new).collect(),
            artifacts: self.ended.artifacts.iter().map(|it| it.path.clone()).collect(),
            steps: head.steps,
            duration_seconds: self.took.as_secs_f64(),
            model: &head.model,
            costs: Costs::by_lane(&head.spent, by_source),
            tokens_by_agent: by_agent.collect(),
            resumed_from: self.resumed_from,
        }
    }
}

/// The exit code that tells how a flow ended.
pub(super) fn exit(ended: &Ended) -> Exit {
    use stepwell::Status::{Failed, Interrupted, Partial, Paused, Success};
    let fault = ended.error.as_ref().and_then(|error| error.fault);
    match (ended.status, fault) {
        (Failed, Some(Fault::Auth)) => Exit::Credentials,
        (Failed, Some(Fault::UnknownModel)) => Exit::Absent,
        (Success, _) => Exit::Done,
        (Partial, _) => Exit::Partial,
        (Paused, _) => Exit::Paused,
        (Interrupted, _) => Exit::Interrupted,
        _ => Exit::Failed,
    }
}
