//! Values computed from a head.

use serde::{Deserialize, Serialize};

use super::{Head, MAX_SCOPE_BYTES};
use crate::model::{Driver, LEDGER_SCOPE, Spent, Status, StopReason};

/// What an imported session had spent before its first run here.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ImportedSpent {
    /// The sum.
    pub spent: Spent,
    /// The model that spent it.
    pub model: String,
    /// That model's provider.
    pub provider: String,
}

impl Head {
    /// The provider of `model`: that of the session's first model, unless a run has since chosen
    /// another.
    #[must_use]
    pub fn model_provider(&self) -> &str {
        let chosen = self.settings.as_ref().and_then(|settings| settings.model.as_deref());
        let provider = chosen.and_then(|chosen| provider_within(chosen, &self.model));
        provider.unwrap_or(&self.provider)
    }

    /// The system that it was imported from, or that stores it here. `None` if the name is too long
    /// for the index.
    #[must_use]
    pub fn system(&self) -> Option<&String> {
        let system = self.source.as_ref().map(|source| &source.system);
        system.filter(|system| system.len() <= MAX_SCOPE_BYTES)
    }

    /// Is it a row of the ledger, which outlives a deleted session?
    #[must_use]
    pub fn is_ledger_row(&self) -> bool {
        self.scope.as_deref() == Some(LEDGER_SCOPE)
    }

    /// The head as it reads without a live runner.
    #[must_use]
    pub fn without_runner(mut self) -> Self {
        if self.status == Status::Running && self.driver == Driver::Own {
            self.status = Status::Interrupted;
            self.stop_reason = Some(self.why_stopped(StopReason::Crashed));
        }
        self
    }

    /// Did a person stop the last run, rather than a crash or a limit? Such a session stays stopped
    /// until a person sends it a message or resumes it. Opening it, or answering one of its
    /// questions, does not.
    #[must_use]
    pub fn was_stopped(&self) -> bool {
        self.status == Status::Interrupted && self.stop_reason == Some(StopReason::UserInterrupt)
    }

    /// Why a run stopped, given the recorded reason. A run that crashed after a person asked it to
    /// stop counts as stopped by that person, so it is not resumed automatically.
    pub(super) const fn why_stopped(&self, recorded: StopReason) -> StopReason {
        match recorded {
            StopReason::Crashed if self.stopping => StopReason::UserInterrupt,
            other => other,
        }
    }

    /// Does a stored head match this one, a fold of all events? A stored head may lack fields that
    /// did not exist when it was written. In a flow, it may have the first model.
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

    /// Called when a run begins. Prices of earlier calls may be unknown for good, so their sum is
    /// kept apart before the first run here.
    pub(super) fn note_imported(&mut self) {
        let first = self.settings.is_none() && self.source.is_some();
        if first && self.spent.unpriced > 0 {
            let (model, provider) = (self.model.clone(), self.model_provider().to_owned());
            self.imported = Some(ImportedSpent { spent: self.spent, model, provider });
        }
    }
}

/// The provider in a model's name as people type it: `provider/model`, or `script:FILE`.
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
    fn a_flows_model_is_the_last_one_that_any_agent_used() {
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
        // A stored head with the first model is accepted, too.
        assert!(head.is_stored_as(&Head { model: "large".to_owned(), ..head.clone() }));
        assert!(!head.is_stored_as(&Head { model: "large".to_owned(), steps: 7, ..head.clone() }));
        // Without a flow, another lane is a separate conversation.
        let head = folded(created(), events());
        assert_eq!(head.model, "large");
        assert!(!head.is_stored_as(&Head { model: "small".to_owned(), ..head.clone() }));
    }

    #[test]
    fn spending_before_the_first_run_here_is_kept_apart() {
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
        // A head stored before this field existed is accepted.
        assert!(head.is_stored_as(&Head { imported: None, ..head.clone() }));
        assert!(!head.is_stored_as(&Head { steps: 7, imported: None, ..head.clone() }));
        assert!(!Head { imported: None, ..head.clone() }.is_stored_as(&head));
        // Nothing is kept if all prices are known, or if all was spent here.
        assert_eq!(folded(imported, vec![here(), chose("other/small")]).imported, None);
        assert_eq!(folded(created(), vec![elsewhere(), chose("other/small")]).imported, None);
    }
}
