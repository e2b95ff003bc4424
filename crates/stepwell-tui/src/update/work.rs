//! Guided work: a goal is led through the phases, and each phase has a command.

use stepwell::model::{Answer, Phase};
use stepwell_runtime::command::{Command, SessionCommand, Verb};

use crate::effect::Effect;
use crate::state::State;
use crate::told::QuestionKind;
use crate::transcript::{Transcript, Whose};

/// The phase that a command is about.
fn phase(verb: Verb) -> Option<Phase> {
    Some(match verb {
        Verb::Discuss => Phase::Discuss,
        Verb::Plan => Phase::Plan,
        Verb::Execute => Phase::Execute,
        Verb::Verify => Phase::Verify,
        Verb::Ship => Phase::Ship,
        _ => return None,
    })
}

/// The phases in which nobody is asked, for one who begins with a later one.
fn unasked(first: Phase) -> Vec<Phase> {
    let all = [Phase::Discuss, Phase::Plan, Phase::Execute];
    let asked_from = match first {
        Phase::Discuss => 0,
        Phase::Plan => 1,
        Phase::Execute => 2,
        _ => all.len(),
    };
    all[..asked_from].to_vec()
}

/// Words between blanks; quotes keep blanks in a word.
fn quoted(typed: &str) -> Vec<String> {
    let (mut words, mut word, mut open) = (Vec::new(), None::<String>, None::<char>);
    for c in typed.chars() {
        match (open, c) {
            (Some(quote), c) if c == quote => open = None,
            (None, '"' | '\'') => {
                word.get_or_insert_default();
                open = Some(c);
            }
            (None, c) if c.is_whitespace() => words.extend(word.take()),
            _ => word.get_or_insert_default().push(c),
        }
    }
    words.extend(word);
    words
}

impl State {
    /// A command that is about a phase: it begins guided work on a goal, answers what such work asks
    /// so that it gets there, or moves a conversation that has phases.
    pub(super) fn phase_command(&mut self, verb: Verb, goal: &str) -> Vec<Effect> {
        let Some(wanted) = phase(verb) else { return Vec::new() };
        if !goal.is_empty() {
            return self.start_work(goal, wanted);
        }
        match self.phase.card() {
            Some(card) if card.is_guided => self.go_to_phase(wanted),
            Some(card) if card.phase.is_some() && !card.is_flow => {
                let (session, visit) = (card.id.to_string(), self.visit);
                let command = Command::Session(session, SessionCommand::enter(wanted));
                vec![Effect::Run { command, visit }]
            }
            _ => {
                self.say_briefly(format!("what is the goal? /{wanted} GOAL"));
                Vec::new()
            }
        }
    }

    fn start_work(&mut self, goal: &str, first: Phase) -> Vec<Effect> {
        if self.is_bound() {
            return Vec::new();
        }
        let mut effects = self.let_go();
        self.begin_instead();
        self.transcript = Transcript::new(Whose::Flow);
        self.note(format!("guided work: {goal}"));
        self.begin_work();
        let (goal, settings) = (goal.to_owned(), self.settings.clone());
        effects.push(Effect::StartWork { goal, unasked: unasked(first), settings });
        effects
    }

    /// Begins a flow: its spec, then its variables.
    pub(super) fn start_flow(&mut self, typed: &str) -> Vec<Effect> {
        if self.is_bound() {
            return Vec::new();
        }
        // The command line's way to write a variable is understood, too.
        let mut words = quoted(typed).into_iter().filter(|word| word != "--var");
        let Some(spec) = words.next() else {
            self.say_briefly("which one? /flow SPEC [NAME=VALUE…]");
            return Vec::new();
        };
        let mut effects = self.let_go();
        self.begin_instead();
        self.transcript = Transcript::new(Whose::Flow);
        self.note(format!("flow: {spec}"));
        self.begin_work();
        let (variables, settings) = (words.collect(), self.settings.clone());
        effects.push(Effect::StartFlow { spec, variables, settings });
        effects
    }

    /// Guided work is led to a phase by the answer to what it asks.
    fn go_to_phase(&mut self, wanted: Phase) -> Vec<Effect> {
        if !self.is_busy() {
            return self.go_on();
        }
        let at = self.phase.card().and_then(|card| card.phase.clone());
        let at = at.as_ref().map_or("", |phase| phase.as_str());
        let asks = self.asked().is_some_and(|asked| asked.question.kind == QuestionKind::Words);
        let answer = match (at, wanted) {
            ("discuss", Phase::Plan | Phase::Execute | Phase::Verify | Phase::Ship) => "skip all",
            ("plan", Phase::Execute | Phase::Verify | Phase::Ship) => "approve",
            ("ship", Phase::Ship) => "commit",
            ("plan", Phase::Discuss) => {
                self.say_briefly("say: reject, and why; then it is discussed again");
                return Vec::new();
            }
            _ => {
                self.say_briefly(format!("it is in phase {at}, and goes on by itself"));
                return Vec::new();
            }
        };
        match asks {
            true => self.answer(Answer::Text(answer.to_owned())),
            false => {
                self.say_briefly(format!("it works in phase {at}; it asks before it goes on"));
                Vec::new()
            }
        }
    }
}
