//! What a run tells, in the terminal's own words.

use stepwell::model::{AskedCall, Choice, NodeState, ToolCall};
use stepwell::{Remedy, SessionId, Status};
use stepwell_agent::permission::may_be_remembered;
use stepwell_agent::provider::Delta;
use stepwell_runtime::{Error, OpenGate, RunEvent, RunReport};
use stepwell_terminal::{Explained, text, wording};

use crate::clean::Clean;
use crate::told::{Always, Ended, Question, QuestionKind, Told, ToolOutcome, ToolRun};

/// Whose run it is.
pub(crate) struct Listener<'a> {
    /// The session.
    pub(crate) session: &'a SessionId,
}

impl Listener<'_> {
    /// An event in the terminal's own words; none, if there is nothing to show. How a run ended is
    /// told by its report.
    pub(crate) fn hear(&self, event: RunEvent) -> Option<Told> {
        Some(match event {
            RunEvent::Recorded(event) => Told::Recorded(Box::new(event)),
            RunEvent::Waiting(waited) => Told::Waiting(waited),
            RunEvent::Delta(Delta::Text(text)) => Told::Text(text),
            RunEvent::Delta(Delta::Thinking(text)) => Told::Thinking(text),
            RunEvent::Delta(Delta::Void) => Told::Void,
            RunEvent::ToolStarted { call, tool, preview } => {
                let (tool, preview) = (Clean::line(&tool), short(&tool, &preview));
                Told::ToolStarted(ToolRun { call, tool, preview })
            }
            RunEvent::ToolOutput { call, ran, tail, .. } => {
                Told::ToolOutput { call, ran, tail: Clean::new(&tail) }
            }
            RunEvent::ToolFinished { call, outcome, told, .. } => {
                Told::ToolFinished { call, outcome: outcome.into(), output: Clean::new(&told) }
            }
            RunEvent::ToolCutOff { call, .. } => {
                Told::ToolFinished { call, outcome: ToolOutcome::CutOff, output: Clean::default() }
            }
            RunEvent::Step { spent, .. } => {
                Told::Step { cost: Clean::line(&spent.price()), context: None }
            }
            RunEvent::Approval(open) => Told::Asked(Box::new(self.question(&open))),
            RunEvent::Answered(answer) => Told::Answered {
                session: answer.session,
                gate: answer.gate,
                answer: Clean::line(&answer.answer.text()),
                who: Clean::line(&answer.who.to_string()),
                at: Clean::line(&text::second(answer.at)),
            },
            // What is recorded of it says the rest.
            RunEvent::Node(node) => {
                let status = match node.state {
                    NodeState::Started => return None,
                    NodeState::Done | NodeState::Skipped => Status::Success,
                    NodeState::Failed => Status::Failed,
                };
                Told::NodeOver { name: Clean::line(&node.key), status }
            }
            RunEvent::Within { node, event, .. } => self.within(&node, *event)?,
            RunEvent::Child { session, event } => self.within(session.as_str(), *event)?,
            RunEvent::Notice(notice) => Told::Notice(Clean::new(&wording::run_notice(&notice))),
            // The recorded event says it; the report says how it ended.
            RunEvent::Delta(Delta::Call) | RunEvent::Compacted { .. } | RunEvent::Ended { .. } => {
                return None;
            }
        })
    }

    /// What happens in a subagent or a flow's node. Its end is told here: no report follows.
    fn within(&self, name: &str, event: RunEvent) -> Option<Told> {
        let told = match event {
            RunEvent::Ended { status, .. } => {
                Told::Ended(Ended { status, why: Clean::default(), hint: None })
            }
            event => self.hear(event)?,
        };
        Some(Told::Within { name: Clean::line(name), told: Box::new(told) })
    }

    /// A question, as it is shown.
    pub(crate) fn question(&self, open: &OpenGate) -> Question {
        let (gate, here) = (&open.gate, open.here.as_ref());
        let call = gate.call.as_deref();
        let known = here.and_then(|here| here.call.as_ref());
        // Whoever only follows is asked in the same words.
        let asks = match (here, known.is_some() || call.is_some()) {
            (Some(here), true) => format!("Allow {}?", here.preview),
            (None, true) => format!("Allow {}?", gate.prompt),
            (_, false) => gate.prompt.clone(),
        };
        let prompt = Clean::new(&asks);
        let detail = here.and_then(|here| here.detail.as_deref());
        let detail = detail.map(str::to_owned).or_else(|| call.and_then(kept_detail));
        let asker = open.task.as_deref().unwrap_or(open.session.as_str());
        let asker = (open.session != *self.session).then(|| Clean::line(asker));
        let kind = match stepwell_runtime::flow::is_permission(gate) {
            true => QuestionKind::Approval,
            false => QuestionKind::Words,
        };
        Question {
            session: open.session.clone(),
            gate: gate.id.clone(),
            prompt,
            kind,
            detail: detail.as_deref().map(Clean::new),
            asker,
            default: gate.default.as_deref().map(Clean::line),
            tool: known.map(|it| &it.name).or(call.map(|it| &it.tool)).map(|it| Clean::line(it)),
            always: always(known, call),
        }
    }
}

/// What "always" would be about, where it can be said.
fn always(known: Option<&ToolCall>, asked: Option<&AskedCall>) -> Option<Always> {
    match (known, asked) {
        (Some(call), _) => may_be_remembered(call).then(|| Always { call: Some(call.clone()) }),
        (None, Some(asked)) => {
            asked.offered().contains(&Choice::Always).then_some(Always { call: None })
        }
        (None, None) => None,
    }
}

/// What a call would do, as its question keeps it. A long diff is kept in part; then the call's
/// arguments say the rest.
fn kept_detail(call: &AskedCall) -> Option<String> {
    let detail = call.detail.as_deref()?;
    Some(match detail.trim_end().ends_with(" more lines") {
        true => format!("{detail}\nAll that the call says:\n{}", call.arguments),
        false => detail.to_owned(),
    })
}

/// What a call does, without the tool's name, which stands before it.
fn short(tool: &str, preview: &str) -> Clean {
    Clean::line(preview.strip_prefix(tool).unwrap_or(preview))
}

/// How a run ended.
pub(crate) fn report(report: &RunReport) -> Ended {
    use stepwell::StopReason;
    let reason = match report.reason {
        Some(StopReason::LlmDone | StopReason::UserInterrupt | StopReason::Gate) | None => {
            String::new()
        }
        Some(reason) => format!("it stopped: {}", reason.as_str().replace('_', " ")),
    };
    let why = report.error.as_ref().map_or(reason, |error| error.message.clone());
    Ended { status: report.status, why: Clean::new(&why), hint: None }
}

/// How a run ended that could not begin, or could not be saved.
pub(crate) fn failure(error: &Error) -> Ended {
    let (why, hint) = explained(error);
    Ended { status: Status::Failed, why, hint }
}

/// What went wrong, and what would help here.
pub(crate) fn explained(error: &Error) -> (Clean, Option<Clean>) {
    let Explained { message: why, hint } = error.into();
    let hint = match &error.remedies()[..] {
        [Remedy::Model { name, key }, ..] => Some(wording::choose_model(name, key.as_deref())),
        _ => hint,
    };
    (Clean::new(&why), hint.map(|hint| Clean::new(&hint)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_diff_that_is_kept_in_part_is_followed_by_all_that_the_call_says() {
        let call = |detail: &str| AskedCall {
            tool: "write_file".to_owned(),
            effect: stepwell::model::Effect::Idempotent,
            arguments: r#"{"content":"all of it"}"#.to_owned(),
            detail: Some(detail.to_owned()),
            choices: Vec::new(),
            holds_secret: false,
        };
        let kept = kept_detail(&call("@@ -0,0 +1 @@\n+x\n… 900 more lines\n"));
        assert!(kept.is_some_and(|kept| kept.ends_with("all of it\"}")));
        assert_eq!(kept_detail(&call("+x\n")).as_deref(), Some("+x\n"));
    }
}
