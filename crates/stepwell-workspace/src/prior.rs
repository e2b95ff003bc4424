//! What a session ran with before, as far as that counts for its user. Pure.

use std::collections::BTreeSet;

use stepwell::log::Head;
use stepwell::model::{Mode, Money, NodeState, Part, Role, Who};
use stepwell::trust::{Allowed, Disregarded, Weighed};
use stepwell::{Event, Recorded, Seq};
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

/// Questions that nobody is asked again, whoever answered them: the model went on since, or what
/// they were about was done.
#[derive(Clone, Debug, Default)]
pub struct Settled {
    before: Seq,
    done: BTreeSet<String>,
}

impl Settled {
    /// Those of an agent's session: all from before its model last spoke, and calls that began.
    #[must_use]
    pub fn of_agent(events: &[Recorded]) -> Self {
        let spoke = events.iter().rfind(|event| event.event.role() == Some(Role::Assistant));
        Self { before: spoke.map_or(Seq::ZERO, |event| event.seq), ..Self::of_flow(events) }
    }

    /// Those of a flow: nodes that are done, and calls that began.
    #[must_use]
    pub fn of_flow(events: &[Recorded]) -> Self {
        let mut done = BTreeSet::new();
        for event in events {
            match &event.event {
                Event::ToolStarted(started) => drop(done.insert(started.call_id.clone())),
                Event::Node(node) if node.state == NodeState::Done => {
                    done.insert(node.key.clone());
                }
                Event::Message(message) => done.extend(message.parts.iter().filter_map(answered)),
                _ => {}
            }
        }
        Self { before: Seq::ZERO, done }
    }

    /// All up to a seq.
    #[must_use]
    pub fn up_to(seq: Seq) -> Self {
        Self { before: seq, done: BTreeSet::new() }
    }

    fn has(&self, it: &Disregarded, gate: &str) -> bool {
        it.seq <= self.before || self.done.contains(gate)
    }
}

/// The call that a result answers.
fn answered(part: &Part) -> Option<String> {
    match part {
        Part::ToolResult(result) => Some(result.call_id.clone()),
        _ => None,
    }
}

/// What the names of models begin with that are read from a file.
const SCRIPT: &str = "script:";

impl Prior<'_> {
    /// The agent that it was last run by.
    #[must_use]
    pub fn agent(&self) -> Option<PriorAgent> {
        let Weighed { mine, theirs, .. } = &self.weighed;
        let recorded = || Some(self.head.agent.clone());
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
        self.weighed.mode(agents.unwrap_or(usual))
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
        match model_name(self.head.model_provider(), &self.head.model) {
            model if model.is_empty() => PriorModel::Unknown,
            // What a file of someone else's says is not what a model says.
            model if model.starts_with(SCRIPT) => {
                PriorModel::Others { model, who: Who::from("someone") }
            }
            model => PriorModel::Recorded(model),
        }
    }

    /// What others allowed, and does not count for a run in this mode with this model. Answers are
    /// those to questions that are asked again.
    #[must_use]
    pub fn disregarded(&self, mode: Mode, model: &str, settled: &Settled) -> Vec<Disregarded> {
        let mut all = self.weighed.refused(mode, model);
        let rest = self.weighed.disregarded.iter().filter(|it| match &it.what {
            Allowed::Mode(_) | Allowed::Model(_) | Allowed::Word(_) => false,
            Allowed::Always(_) => true,
            Allowed::Answer { gate, .. } => !settled.has(it, gate),
        });
        all.extend(rest.cloned());
        all
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use stepwell::model::Settings;
    use stepwell::{Created, Message, Stepwell};

    fn head() -> Head {
        let well = Stepwell::in_memory();
        let created = well.draft("x").with_agent("build").with_model("acme", "large");
        let session = well.create(created).unwrap();
        session.append(Message::user("x")).unwrap();
        session.info().unwrap().head
    }

    fn prior(head: &Head, mine: Settings, theirs: Settings) -> Prior<'_> {
        Prior { head, weighed: Weighed { mine, theirs, ..Weighed::default() } }
    }

    #[test]
    fn metadata_and_a_recorded_script_make_nothing_looser() {
        let texts = [("mode", "yolo"), ("model", "script:evil.json")];
        let metadata = texts.map(|(key, value)| (key.to_owned(), value.into())).into();
        let (provider, model) = ("script".to_owned(), "evil.json".to_owned());
        let head = Head { metadata, provider, model, ..head() };
        let prior = prior(&head, Settings::default(), Settings::default());
        assert_eq!(prior.mode(Mode::ConfirmSensitive, None), Mode::ConfirmSensitive);
        assert!(matches!(prior.model(), PriorModel::Others { .. }));
    }

    #[test]
    fn an_agent_that_somebody_else_chose_does_not_bring_a_looser_mode() {
        let head = head();
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
        let head = head();
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
    fn a_question_is_settled_when_its_call_began_its_node_is_done_or_the_model_spoke() {
        use stepwell::Lane;
        use stepwell::model::{Digest, Effect, Node, Time, ToolStarted};
        let gate = |seq: u64, gate: &str| Disregarded {
            seq: Seq::new(seq),
            at: Time::from_micros(1),
            who: Who::from("bob"),
            what: Allowed::Answer { gate: gate.to_owned(), answer: "yes".into() },
        };
        let log = |events: Vec<Event>| -> Vec<Recorded> {
            let at = Time::from_micros(1);
            let all = events.into_iter().zip(2..);
            all.map(|(event, n)| Recorded { seq: Seq::new(n), at, id: None, event }).collect()
        };
        let started = ToolStarted {
            lane: Lane::main(),
            call_id: "c1".to_owned(),
            tool: "run_command".to_owned(),
            effect: Effect::Unsafe,
            arguments: Digest::of(b"{}"),
            targets: Vec::new(),
            child: None,
        };
        let spoken = log(vec![Message::assistant("hm").into(), started.into()]);
        let settled = Settled::of_agent(&spoken);
        assert!(settled.has(&gate(9, "c1"), "c1") && settled.has(&gate(2, "c2"), "c2"));
        assert!(!settled.has(&gate(9, "c2"), "c2"));
        let node = |key: &str, state| -> Event {
            Node { key: key.to_owned(), state, output: None, usage: None, error: None }.into()
        };
        let nodes = vec![node("ask", NodeState::Done), node("more", NodeState::Started)];
        let settled = Settled::of_flow(&log(nodes));
        assert!(settled.has(&gate(9, "ask"), "ask") && !settled.has(&gate(9, "more"), "more"));
        assert!(Settled::up_to(Seq::new(9)).has(&gate(9, "c2"), "c2"));
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
