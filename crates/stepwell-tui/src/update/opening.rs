//! Which session is open: opening another one, what is typed until it is there, and beginning anew.

use std::collections::VecDeque;
use std::path::PathBuf;

use stepwell::model::OwnCommand;
use stepwell::{Event, SessionId, Status};
use stepwell_runtime::command::{Invocation, Verb};

use super::watch::left_open;
use crate::clean::Clean;
use crate::effect::{Effect, Opened, RunSettings, StorePlace, Visit};
use crate::phase::{Before, Open, Opening, Phase, Start};
use crate::state::State;
use crate::transcript::{Transcript, Whose};

impl State {
    /// Has a session opened. What is typed meanwhile is for it, and no other one is opened.
    pub fn open_session(
        &mut self,
        session: String,
        store: Option<PathBuf>,
        resume: bool,
    ) -> Vec<Effect> {
        self.start_opening(session, store, resume, None)
    }

    fn start_opening(
        &mut self,
        session: String,
        store: Option<PathBuf>,
        resume: bool,
        fork_of: Option<SessionId>,
    ) -> Vec<Effect> {
        self.counts.openings += 1;
        let number = self.counts.openings;
        self.passage.open(Opening { number, since: self.now, early: VecDeque::new(), fork_of });
        vec![Effect::Open { session, store, resume, opening: number }]
    }

    /// Opens a session that was made, unless something else is done here by now.
    pub(super) fn open_made(
        &mut self,
        session: &str,
        visit: Visit,
        fork_of: Option<SessionId>,
    ) -> Vec<Effect> {
        let is_free = !self.is_working() && self.shells.running == 0 && !self.is_opening();
        match is_free && visit == self.visit {
            true => {
                let store = self.away.as_ref().map(|place| place.store.clone());
                self.start_opening(session.to_owned(), store, false, fork_of)
            }
            false => {
                self.note(format!("{session} is there; /resume {session} opens it"));
                Vec::new()
            }
        }
    }

    /// Reads the open session anew, where it lies.
    pub(super) fn open_anew(&mut self) -> Vec<Effect> {
        let Some(session) = self.phase.card().map(|card| card.id.to_string()) else {
            return Vec::new();
        };
        let store = self.away.as_ref().map(|place| place.store.clone());
        self.open_session(session, store, false)
    }

    /// Is the user bound to what is open now? Says why.
    pub(super) fn is_bound(&mut self) -> bool {
        let why = if self.is_working() {
            "the agent works: Esc stops it first"
        } else if self.shells.running > 0 {
            "your command runs: Esc stops it first"
        } else if self.is_opening() {
            "one moment: a session is being opened"
        } else {
            return false;
        };
        self.say_briefly(why);
        true
    }

    /// Keeps what is typed for the session that is being opened. Whoever leaves does not wait.
    pub(super) fn keep_early(&mut self, typed: &str) -> Option<Vec<Effect>> {
        let opening = self.passage.opening_mut()?;
        let quits = Invocation::parse(typed).is_ok_and(|it| it.command.verb == Verb::Quit);
        if quits {
            return Some(self.leave());
        }
        opening.early.push_back(typed.to_owned());
        self.say_briefly("it is sent when the session is open");
        Some(Vec::new())
    }

    /// Sends what was typed while a session was being opened. Whoever left meanwhile has it kept.
    fn send_early(&mut self, mut early: VecDeque<String>) -> Vec<Effect> {
        let mut effects = Vec::new();
        while !self.is_opening()
            && let Some(typed) = early.pop_front()
        {
            let is_words = !typed.starts_with(['!', '/']);
            match self.passage.is_leaving() {
                true if is_words => self.composer.held.push_back(typed),
                true => self.composer.unsent.push(typed),
                false => effects.extend(self.submit_text(&typed)),
            }
        }
        // One of them opens another session: the rest is for that one.
        if let Some(opening) = self.passage.opening_mut() {
            opening.early.extend(early);
        }
        if self.passage.is_leaving() && self.shells.running == 0 {
            effects.extend(self.leave());
        }
        effects
    }

    /// A session could not be opened: what was meant for it is typed again.
    pub(super) fn not_opened(
        &mut self,
        opening: u64,
        why: &Clean,
        hint: Option<&Clean>,
    ) -> Vec<Effect> {
        let Some(over) = self.passage.end(opening) else { return Vec::new() };
        self.failed(why, hint);
        self.give_back(&Vec::from(over.early).join("\n\n"));
        if self.passage.is_leaving() { self.leave() } else { Vec::new() }
    }

    /// Shows a session that was opened. Only the newest opening counts.
    pub(super) fn opened(&mut self, opened: Opened) -> Vec<Effect> {
        let opening = opened.opening;
        let Some(over) = self.passage.end(opening) else { return Vec::new() };
        let store = |place: &Option<StorePlace>| place.as_ref().map(|place| place.store.clone());
        let moved = store(&opened.place) != store(&self.away);
        self.away.clone_from(&opened.place);
        let mut effects = Vec::new();
        if moved {
            effects.push(Effect::Enter { opening });
        }
        // Whoever leaves only has their words kept.
        let resume = opened.resume && !self.passage.is_leaving();
        effects.extend(self.show_opened(Opened { resume, ..opened }, over.fork_of));
        effects.extend(self.send_early(over.early));
        effects
    }

    fn show_opened(&mut self, opened: Opened, fork_of: Option<SessionId>) -> Vec<Effect> {
        let is_same = self.phase.seen() == opened.seq;
        let mut effects = self.let_go();
        self.helpers.clear();
        let Opened { card, events, more, seq, .. } = &opened;
        let whose = if card.is_flow { Whose::Flow } else { Whose::Agent };
        let is_open = self.is_open(&card.id);
        if !is_open {
            self.end_visit();
            self.choose_anew();
            self.recall(events);
        }
        self.transcript = Transcript::of(events, *more, whose);
        self.page = None;
        self.composer.queue.clear();
        self.gates.clear();
        if is_open {
            // It changed: what of it still counts is not printed again.
            self.transcript.skip_printing();
            if !is_same {
                self.note("the session was changed; Ctrl+T shows what counts now");
            }
        } else if !std::mem::take(&mut self.composer.carried).is_empty() {
            self.note("what your own commands wrote before is not told to this session");
        }
        if let Some(from) = fork_of.filter(|from| *from != card.id) {
            self.note(format!("this is another session: {}, a fork of {from}", card.id));
        }
        if *more {
            self.note("earlier messages: Ctrl+T");
        }
        let retype = self.phase.close().filter(|_| is_open).and_then(|before| before.retype);
        self.phase = Phase::Open(Box::new(Open { seen: *seq, retype, ..Open::new(card.clone()) }));
        effects.extend(self.go_on_with(opened));
        effects
    }

    /// What was cut off goes on, and what waits is asked again: a run does both. What a person
    /// stopped, what ended before it was done, or was forked or taken back, waits for a word.
    fn go_on_with(&mut self, opened: Opened) -> Vec<Effect> {
        let Opened { card, unheard, resume, rests, stopped, waiting, seq, elsewhere, .. } = opened;
        let (session, status, is_flow) = (card.id.clone(), card.status, card.is_flow);
        if let Some(elsewhere) = elsewhere {
            return self.watch(elsewhere, seq);
        }
        let cut_off = status == Status::Interrupted && !rests;
        let goes_on = !stopped && (waiting > 0 || unheard > 0 || cut_off);
        if !resume || !goes_on {
            self.transcript.end_open_calls(left_open(waiting));
            let why = match status {
                _ if stopped => Some("it was stopped"),
                Status::Partial => Some("it ended before it was done"),
                _ => None,
            };
            if let (true, Some(why)) = (resume, why) {
                let next =
                    if is_flow { "/continue goes on" } else { "say what is next, or /continue" };
                self.note(format!("{why}: {next}"));
            }
            return Vec::new();
        }
        self.begin_work();
        vec![Effect::Resume { session, say: None, settings: self.settings.clone() }]
    }

    /// What was chosen for another session is not meant for the one that is opened.
    fn choose_anew(&mut self) {
        if self.phase.start().is_none_or(|start| start.follows_another) {
            self.settings = RunSettings::default();
        }
    }

    /// What was said in a session can be recalled.
    fn recall(&mut self, events: &[stepwell::Recorded]) {
        for event in events {
            let Event::Message(message) = &event.event else { continue };
            let said = message.text();
            if !message.is_from_user() || said == stepwell_agent::provider::NOT_DONE {
                continue;
            }
            match OwnCommand::read(&said) {
                Some((own, behind)) => {
                    self.composer.editor.remember(&format!("!{}", own.command));
                    self.composer.editor.remember(behind);
                }
                None => self.composer.editor.remember(&said),
            }
        }
    }

    /// What is open now is left. What commands of it write is still told to it; words that waited for
    /// them are typed again.
    fn end_visit(&mut self) {
        if let Some(card) = self.phase.card()
            && self.shells.running > 0
        {
            self.shells.earlier.insert(self.visit, card.id.clone());
        }
        self.visit.0 += 1;
        let held: Vec<String> = self.composer.held.drain(..).collect();
        self.give_back(&held.join("\n\n"));
    }

    /// Nothing is open any more. What was chosen for it goes with it.
    pub(super) fn begin_anew(&mut self) {
        self.end_visit();
        if self.phase.close().is_some() {
            self.settings = self.given.clone();
            self.phase = Phase::Start(Start { follows_another: true, ..Start::default() });
        }
        self.transcript = Transcript::default();
        self.composer.queue.clear();
        self.gates.clear();
        self.helpers.clear();
    }

    /// The next session is begun where the terminal began.
    pub(super) fn go_home(&mut self) -> Vec<Effect> {
        self.away.take().map(|_| Effect::GoHome).into_iter().collect()
    }

    /// Keeps what is open, in case that what is begun instead cannot begin.
    pub(super) fn begin_instead(&mut self) {
        let open = self.phase.open().map(|open| Open {
            seen: open.seen,
            keeps_words: open.keeps_words,
            ..Open::new(open.card.clone())
        });
        let before = open.map(|open| Before {
            open,
            transcript: std::mem::take(&mut self.transcript),
            settings: self.settings.clone(),
            helpers: std::mem::take(&mut self.helpers),
        });
        self.begin_anew();
        if let Some(start) = self.phase.start_mut() {
            (start.list, start.instead_of) = (None, before.map(Box::new));
        }
    }

    /// It could not begin: what was open before is open again.
    pub(super) fn open_what_was_before(&mut self) {
        let before = self.phase.start_mut().and_then(|start| start.instead_of.take());
        let Some(before) = before else { return };
        self.end_visit();
        self.phase = Phase::Open(Box::new(before.open));
        self.transcript = before.transcript;
        self.transcript.skip_printing();
        (self.settings, self.helpers) = (before.settings, before.helpers);
    }
}
