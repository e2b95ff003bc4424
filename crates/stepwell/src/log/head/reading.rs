//! What a head says beyond its fields.

use serde::{Deserialize, Serialize};

use super::{Head, MAX_SCOPE_BYTES};
use crate::model::{Driver, LEDGER_SCOPE, Spent, Status, StopReason};

/// What a session had spent elsewhere, with which model.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ImportedSpent {
    /// What it had spent.
    pub spent: Spent,
    /// The model.
    pub model: String,
    /// Whose model that is.
    pub provider: String,
}

impl Head {
    /// Whose `model` is: that of the session's beginning, unless a run since then chose another
    /// one's.
    #[must_use]
    pub fn model_provider(&self) -> &str {
        let chosen = self.settings.as_ref().and_then(|settings| settings.model.as_deref());
        let provider = chosen.and_then(|chosen| provider_within(chosen, &self.model));
        provider.unwrap_or(&self.provider)
    }

    /// The system that it was imported from, or that keeps it here, as lists know it: a name
    /// that is too long for an index is none.
    #[must_use]
    pub fn system(&self) -> Option<&String> {
        let system = self.source.as_ref().map(|source| &source.system);
        system.filter(|system| system.len() <= MAX_SCOPE_BYTES)
    }

    /// Is it a row of the ledger: what stays of a session that is gone?
    #[must_use]
    pub fn is_ledger_row(&self) -> bool {
        self.scope.as_deref() == Some(LEDGER_SCOPE)
    }

    /// The head as it reads when its runner is known to be gone.
    #[must_use]
    pub fn without_runner(mut self) -> Self {
        if self.status == Status::Running && self.driver == Driver::Own {
            self.status = Status::Interrupted;
            self.stop_reason = Some(self.why_stopped(StopReason::Crashed));
        }
        self
    }

    /// Did a person stop the session's last run, rather than a crash or a limit? Such a session stays
    /// stopped until a person says something to it or resumes it. Neither opening it nor answering
    /// one of its questions has it go on.
    #[must_use]
    pub fn was_stopped(&self) -> bool {
        self.status == Status::Interrupted && self.stop_reason == Some(StopReason::UserInterrupt)
    }

    /// Why a run stopped, given the reason on record. A run that died after a person asked it to
    /// stop was stopped by that person: it does not go on by itself.
    pub(super) const fn why_stopped(&self, recorded: StopReason) -> StopReason {
        match recorded {
            StopReason::Crashed if self.stopping => StopReason::UserInterrupt,
            other => other,
        }
    }

    /// Is a stored head what this one, a fold of all events, says? What was not yet noted when
    /// the stored one was written may be missing there, and the model of a workflow may be the
    /// one that it began with.
    #[must_use]
    pub fn is_stored_as(&self, stored: &Self) -> bool {
        if self == stored {
            return true;
        }
        let mut older = self.clone();
        if stored.imported.is_none() {
            older.imported = None;
        }
        if self.flow.is_some() {
            older.model.clone_from(&stored.model);
        }
        older == *stored
    }

    /// A run begins here. What a session spent before its first one has other prices than what
    /// follows, and they may never be known.
    pub(super) fn note_imported(&mut self) {
        let first = self.settings.is_none() && self.source.is_some();
        if first && self.spent.unpriced > 0 {
            let (model, provider) = (self.model.clone(), self.model_provider().to_owned());
            self.imported = Some(ImportedSpent { spent: self.spent, model, provider });
        }
    }
}

/// The provider in a model's name as it is typed: `provider/model`, or `script:FILE`.
fn provider_within<'a>(name: &'a str, model: &str) -> Option<&'a str> {
    let provider = name.strip_suffix(model)?.strip_suffix(['/', ':'])?;
    (!model.is_empty() && !provider.is_empty()).then_some(provider)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::log::head::State;
    use crate::model::{Created, Event, Message, Recorded, Seq, Settings, Source, Time, Usage};

    fn folded(created: Created, events: Vec<Event>) -> Head {
        let all = std::iter::once(created.into()).chain(events).zip(1..);
        let all = all.map(|(event, n)| Recorded {
            seq: Seq::new(n),
            at: Time::from_micros(n as i64),
            id: None,
            event,
        });
        State::fold(&all.collect::<Vec<_>>()).unwrap().head
    }

    fn created() -> Created {
        Created::new("a-1".parse().unwrap(), "the task").with_model("acme", "large")
    }

    fn chose(model: &str) -> Event {
        Settings { model: Some(model.to_owned()), ..Settings::default() }.into()
    }

    fn answered(model: &str) -> Event {
        let mut message = Message::assistant("done");
        message.model = Some(model.to_owned());
        message.into()
    }

    #[test]
    fn the_provider_is_that_of_the_model_that_was_last_used() {
        let provider = |events| folded(created(), events).model_provider().to_owned();
        assert_eq!(provider(vec![]), "acme");
        assert_eq!(provider(vec![chose("other/small")]), "acme", "it has not answered yet");
        assert_eq!(provider(vec![chose("other/small"), answered("small")]), "other");
        assert_eq!(provider(vec![chose("other/x/small"), answered("x/small")]), "other");
        assert_eq!(provider(vec![chose("script:/a.yaml"), answered("/a.yaml")]), "script");
        assert_eq!(provider(vec![chose("acme/large"), answered("large")]), "acme");
        assert_eq!(provider(vec![chose("small"), answered("small")]), "acme");
    }

    #[test]
    fn a_workflows_model_is_the_one_that_one_of_its_agents_used_last() {
        let flow = crate::model::Flow {
            name: "chain".to_owned(),
            pattern: "chain".to_owned(),
            spec: String::new(),
            hash: crate::model::SpecHash::of(b""),
            variables: [].into(),
        };
        let in_lane = |model: &str| {
            let mut message = Message::assistant("done").in_lane("writer".parse().unwrap());
            message.model = Some(model.to_owned());
            Event::from(message)
        };
        let events = || vec![in_lane("large"), chose("other/small"), in_lane("small")];
        let head = folded(Created { flow: Some(flow), ..created() }, events());
        assert_eq!((&*head.model, head.model_provider()), ("small", "other"));
        // A head that was stored when only the beginning counted is as good.
        assert!(head.is_stored_as(&Head { model: "large".to_owned(), ..head.clone() }));
        assert!(!head.is_stored_as(&Head { model: "large".to_owned(), steps: 7, ..head.clone() }));
        // Elsewhere a lane is somebody else's conversation.
        let head = folded(created(), events());
        assert_eq!(head.model, "large");
        assert!(!head.is_stored_as(&Head { model: "small".to_owned(), ..head.clone() }));
    }

    #[test]
    fn what_was_spent_before_the_first_run_here_is_kept_apart_with_its_model() {
        let source = Source { system: "x".to_owned(), id: "1".to_owned(), started_at: None };
        let imported = Created { source: Some(source), ..created() };
        let usage = Usage { input: 10, ..Usage::default() };
        let elsewhere = || Event::from(Message::assistant("a").spending(usage, None));
        let here =
            || Event::from(Message::assistant("b").spending(usage, Some("1".parse().unwrap())));
        let head =
            folded(imported.clone(), vec![elsewhere(), chose("other/small"), here(), here()]);
        let before = head.imported.clone().unwrap();
        assert_eq!((before.spent.unpriced, before.spent.usage.input), (1, 10));
        assert_eq!((&*before.provider, &*before.model), ("acme", "large"));
        // One that was stored before this was noted is as good.
        assert!(head.is_stored_as(&Head { imported: None, ..head.clone() }));
        assert!(!head.is_stored_as(&Head { steps: 7, imported: None, ..head.clone() }));
        assert!(!Head { imported: None, ..head.clone() }.is_stored_as(&head));
        // Of what is known or was spent here, nothing needs to be kept.
        assert_eq!(folded(imported, vec![here(), chose("other/small")]).imported, None);
        assert_eq!(folded(created(), vec![elsewhere(), chose("other/small")]).imported, None);
    }
}
