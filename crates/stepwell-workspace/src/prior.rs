//! What a session ran with before, as far as that counts for its user. Pure.

use stepwell::trust::{Allowed, Disregarded, Weighed};
use stepwell::{Head, Mode, Money, Who};
use stepwell_catalog::model_name;

/// What a session ran with before.
#[derive(Clone, Debug)]
pub struct Prior<'a> {
    /// The session.
    pub head: &'a Head,
    /// What counts of what its log says was allowed.
    pub weighed: Weighed,
}

/// The agent that a session was last run by.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PriorAgent {
    /// Its name.
    pub name: String,
    /// Did the user choose it?
    pub mine: bool,
}

/// The model that a session was last run with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PriorModel {
    /// The user chose it.
    Mine(String),
    /// It was recorded without anyone choosing it: an import, or an earlier version.
    Recorded(String),
    /// Somebody else chose it.
    Others {
        /// The model.
        model: String,
        /// Who chose it.
        who: Who,
    },
    /// None is known.
    Unknown,
}

/// The metadata keys under which earlier versions kept what a session ran with.
const MODE: &str = "mode";
const MODEL: &str = "model";
const AGENT: &str = "agent";

/// What the names of models begin with that are read from a file.
const SCRIPT: &str = "script:";

impl Prior<'_> {
    /// The agent that it was last run by.
    #[must_use]
    pub fn agent(&self) -> Option<PriorAgent> {
        let Weighed { mine, theirs, .. } = &self.weighed;
        let recorded = || self.metadata(AGENT).or_else(|| Some(self.head.agent.clone()));
        let name = theirs.agent.clone().or_else(recorded).filter(|name| !name.is_empty());
        match &mine.agent {
            Some(name) => Some(PriorAgent { name: name.clone(), mine: true }),
            None => name.map(|name| PriorAgent { name, mine: false }),
        }
    }

    /// The mode that it runs in, unless its user names another. `usual` is what they say of all
    /// sessions, and `agents` what they say of its agent.
    #[must_use]
    pub fn mode(&self, usual: Mode, agents: Option<Mode>) -> Mode {
        let chosen_agent = self.agent().is_some_and(|agent| agent.mine);
        // Nobody else makes it looser by the choice of an agent.
        let agents = agents.map(|mode| if chosen_agent { mode } else { mode.min(usual) });
        let before = self.metadata(MODE).and_then(|mode| mode.parse().ok());
        self.weighed.mode(agents.unwrap_or(usual), before)
    }

    /// What all of it may cost.
    #[must_use]
    pub fn budget(&self) -> Option<Money> {
        self.weighed.budget(self.head.budget)
    }

    /// The model that it was last run with.
    #[must_use]
    pub fn model(&self) -> PriorModel {
        let Weighed { mine, theirs, .. } = &self.weighed;
        if let Some(model) = &mine.model {
            return PriorModel::Mine(model.clone());
        }
        if let Some(model) = theirs.model.clone() {
            return PriorModel::Others { model, who: theirs.who.clone() };
        }
        let named = || model_name(&self.head.provider, &self.head.model);
        match self.metadata(MODEL).unwrap_or_else(named) {
            model if model.is_empty() => PriorModel::Unknown,
            // What a file of someone else's says is not what a model says.
            model if model.starts_with(SCRIPT) => {
                PriorModel::Others { model, who: Who::from("someone") }
            }
            model => PriorModel::Recorded(model),
        }
    }

    /// What others allowed, and does not count for a run in this mode with this model. Answers
    /// are those since the model last spoke.
    #[must_use]
    pub fn disregarded(&self, mode: Mode, model: &str, spoke: stepwell::Seq) -> Vec<Disregarded> {
        let mut all = self.weighed.refused(mode, model);
        let rest = self.weighed.disregarded.iter().filter(|it| match it.what {
            Allowed::Mode(_) | Allowed::Model(_) | Allowed::Word(_) => false,
            Allowed::Always(_) => true,
            Allowed::Answer { .. } => it.seq > spoke,
        });
        all.extend(rest.cloned());
        all
    }

    fn metadata(&self, key: &str) -> Option<String> {
        Some(self.head.metadata.get(key)?.as_str()?.to_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use stepwell::{Created, Message, Settings, Stepwell};

    fn head(metadata: &[(&str, &str)]) -> Head {
        let well = Stepwell::in_memory();
        let created = well.draft("x").with_agent("build").with_model("acme", "large");
        let session = well.create(created).unwrap();
        session.append(Message::user("x")).unwrap();
        let metadata = metadata.iter().map(|(key, value)| ((*key).to_owned(), (*value).into()));
        Head { metadata: metadata.collect(), ..session.info().unwrap().head }
    }

    fn prior(head: &Head, mine: Settings, theirs: Settings) -> Prior<'_> {
        Prior { head, weighed: Weighed { mine, theirs, ..Weighed::default() } }
    }

    #[test]
    fn metadata_makes_nothing_looser() {
        let head = head(&[("mode", "yolo"), ("model", "script:evil.json")]);
        let prior = prior(&head, Settings::default(), Settings::default());
        assert_eq!(prior.mode(Mode::ConfirmSensitive, None), Mode::ConfirmSensitive);
        assert!(matches!(prior.model(), PriorModel::Others { .. }));
    }

    #[test]
    fn an_agent_that_somebody_else_chose_does_not_bring_a_looser_mode() {
        let head = head(&[]);
        let by = |name: &str| Settings { agent: Some(name.to_owned()), ..Settings::default() };
        let theirs = prior(&head, Settings::default(), by("wild"));
        let usual = Mode::ConfirmSensitive;
        assert_eq!(theirs.agent(), Some(PriorAgent { name: "wild".to_owned(), mine: false }));
        assert_eq!(theirs.mode(usual, Some(Mode::Yolo)), usual);
        assert_eq!(theirs.mode(usual, Some(Mode::ConfirmAll)), Mode::ConfirmAll);
        let mine = prior(&head, by("wild"), Settings::default());
        assert_eq!(mine.mode(usual, Some(Mode::Yolo)), Mode::Yolo);
    }

    #[test]
    fn a_model_is_mine_somebody_elses_or_just_recorded() {
        let head = head(&[]);
        let by = |name: &str| Settings { model: Some(name.to_owned()), ..Settings::default() };
        let of = |mine, theirs| prior(&head, mine, theirs).model();
        let none = Settings::default;
        assert_eq!(of(none(), none()), PriorModel::Recorded("acme/large".to_owned()));
        assert_eq!(of(by("a/b"), by("c/d")), PriorModel::Mine("a/b".to_owned()));
        assert!(
            matches!(of(none(), by("c/d")), PriorModel::Others { model, .. } if model == "c/d")
        );
    }

    #[test]
    fn a_session_that_was_created_without_a_model_has_none() {
        let well = Stepwell::in_memory();
        let session = well.create(Created::new("a".parse().unwrap(), "x")).unwrap();
        let head = session.info().unwrap().head;
        let prior = prior(&head, Settings::default(), Settings::default());
        assert_eq!(prior.model(), PriorModel::Unknown);
    }
}
