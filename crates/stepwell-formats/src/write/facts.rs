//! What a session is as a whole, where a form has no place for it: each such fact is named.

use stepwell::log::Head;
use stepwell::model::{Role, Time};
use stepwell::{Lane, Message, Status, StopReason};

use crate::read::steps::Steps;
use crate::write::writer::Losses;

/// What they are called in a warning.
pub(crate) const FACTS: &str = "facts of the session";

/// A session begins when its first line is written, give or take this: in microseconds.
const A_MINUTE: u64 = 60_000_000;

/// What a form says of a session as a whole, as whoever reads it would understand it.
#[derive(Clone, Debug, Default)]
pub(crate) struct Says<'a> {
    pub(crate) status: Option<(Status, Option<StopReason>)>,
    pub(crate) error: bool,
    pub(crate) task: &'a str,
    pub(crate) agent: &'a str,
    pub(crate) model: &'a str,
    /// Whose model it is.
    pub(crate) provider: &'a str,
    pub(crate) steps: u64,
    pub(crate) cost: bool,
    /// When it was last changed.
    pub(crate) updated: bool,
    /// When it began, where the form says so otherwise.
    pub(crate) began: Option<Time>,
}

/// Names each fact of a session that a form does not say.
pub(crate) fn count_facts(losses: &mut Losses, head: &Head, says: &Says<'_>) {
    let mut name = |lost: bool, what: String| {
        if lost {
            losses.name(FACTS, what);
        }
    };
    let (status, reason) = says.status.map_or((None, None), |(status, why)| (Some(status), why));
    let runs = head.status == Status::Running;
    name(!runs && status != Some(head.status), format!("status {}", head.status));
    if let Some(why) = head.stop_reason {
        name(reason != Some(why), format!("stop reason {why}"));
    }
    name(head.error.is_some() && !says.error, "error".to_owned());
    let told = |now: &str, there: &str| now.trim().is_empty() || now.trim() == there.trim();
    name(!told(&head.task, says.task), "task".to_owned());
    name(!told(&head.agent, says.agent), format!("agent {}", head.agent));
    name(!told(&head.model, says.model), format!("model {}", head.model));
    let provider = head.model_provider();
    name(!told(provider, says.provider), format!("provider {provider}"));
    name(head.steps != says.steps, format!("steps {}", head.steps));
    name(!head.spent.cost.is_zero() && !says.cost, format!("cost {}", head.spent.price()));
    name(!says.updated, "when it was updated".to_owned());
    let told_late = |began: Time| began.as_micros().abs_diff(head.created_at.as_micros());
    let late = says.began.is_some_and(|began| told_late(began) >= A_MINUTE);
    name(late, "when it began".to_owned());
}

/// What a transcript says of its session by its lines alone.
#[derive(Debug, Default)]
pub(crate) struct Transcript {
    steps: Steps,
    done: u64,
    /// The first that the user said.
    asked: Option<String>,
    /// When the first line was written.
    began: Option<Time>,
    /// When the last one was.
    ended: Option<Time>,
    /// The model of the last answer, where lines name it.
    model: String,
    /// Was something said here, which did not come from the system?
    grew: bool,
}

/// What a system's transcripts can say beside the conversation.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Form {
    pub(crate) system: &'static str,
    /// Do lines name the model?
    pub(crate) names_models: bool,
    /// Is the agent named somewhere?
    pub(crate) names_agent: bool,
    /// Do lines say what an answer cost?
    pub(crate) names_costs: bool,
    /// Whose models it is that its sessions are read with; absent, it is the one that a session
    /// from there began with, and nobody's in others.
    pub(crate) provider: Option<&'static str>,
}

/// Where a message was said.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Said {
    Here,
    /// In the system that it is written for.
    There,
}

impl Transcript {
    /// A message is written.
    pub(crate) fn said(&mut self, message: &Message, at: Time, said: Said) {
        if message.lane != Lane::main() {
            return;
        }
        self.began.get_or_insert(at);
        self.ended = self.ended.max(Some(at));
        self.grew |= said == Said::Here;
        self.done += u64::from(self.steps.said(message).is_some());
        match message.role {
            Role::User if self.asked.is_none() && message.is_from_user() => {
                self.asked = Some(message.text());
            }
            Role::Assistant => self.model = message.model.clone().unwrap_or_default(),
            _ => {}
        }
    }

    /// The next line follows an earlier one.
    pub(crate) fn went_back(&mut self) {
        self.steps.went_back();
    }

    /// Names each fact of the session that its lines do not say.
    pub(crate) fn name_losses(&self, losses: &mut Losses, head: &Head, form: Form) {
        let ours = head.source.as_ref().is_some_and(|it| it.system == form.system);
        let stands = self.steps.status();
        let known = ours && !self.grew;
        // A line of the system's own says that it was aborted.
        let aborted = known && head.status == stands.status;
        let reason = if aborted { head.stop_reason } else { stands.reason };
        let apart = |at: Time| at.as_micros().abs_diff(head.updated_at.as_micros());
        let says = Says {
            status: Some((stands.status, reason)),
            error: false,
            task: if ours { &head.task } else { self.asked.as_deref().unwrap_or_default() },
            agent: if ours || form.names_agent { &head.agent } else { "" },
            model: if known {
                &head.model
            } else if form.names_models {
                &self.model
            } else {
                ""
            },
            provider: match form.provider {
                _ if known => head.model_provider(),
                Some(provider) => provider,
                None if ours => &head.provider,
                None => "",
            },
            steps: if known { head.steps } else { self.done },
            cost: form.names_costs,
            updated: known || self.ended.is_some_and(|ended| apart(ended) < A_MINUTE),
            began: self.began.filter(|_| !ours),
        };
        count_facts(losses, head, &says);
    }
}
