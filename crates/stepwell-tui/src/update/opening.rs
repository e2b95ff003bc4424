//! Which session is open: opening another one, what is typed until it is there, and beginning anew.

use std::path::PathBuf;

use stepwell::model::OwnCommand;
use stepwell::{Event, Status};
use stepwell_runtime::command::{Invocation, Verb};

use super::watch::left_open;
use crate::clean::Clean;
use crate::effect::{Effect, Opened, RunSettings, StorePlace};
use crate::state::{Before, Opening, State};
use crate::transcript::{Transcript, Whose};

impl State {
    /// Has a session opened. What is typed meanwhile is for it, and no other one is opened.
    pub fn open_session(
        &mut self,
        session: String,
        store: Option<PathBuf>,
        resume: bool,
    ) -> Vec<Effect> {
        self.openings += 1;
        let opening = self.openings;
        self.opening = Some(Opening { number: opening, since: self.now });
        vec![Effect::Open { session, store, resume, opening }]
    }

    /// Reads the open session anew, where it lies.
    pub(super) fn open_anew(&mut self) -> Vec<Effect> {
        let Some(session) = self.session.as_ref().map(|card| card.id.to_string()) else {
            return Vec::new();
        };
        let store = self.away.as_ref().map(|place| place.store.clone());
        self.open_session(session, store, false)
    }

    /// Is the user bound to what is open now? Says why.
    pub(super) fn is_bound(&mut self) -> bool {
        let why = if self.is_working() {
            "the agent works: Esc stops it first"
        } else if self.shells > 0 {
            "your command runs: Esc stops it first"
        } else if self.opening.is_some() {
            "one moment: a session is being opened"
        } else {
            return false;
        };
        self.say_briefly(why);
        true
    }

    /// Keeps what is typed for the session that is being opened. Whoever leaves does not wait.
    pub(super) fn keep_early(&mut self, typed: &str) -> Option<Vec<Effect>> {
        self.opening?;
        let quits = Invocation::parse(typed).is_ok_and(|it| it.command.verb == Verb::Quit);
        if quits {
            return Some(self.leave());
        }
        self.early.push_back(typed.to_owned());
        self.say_briefly("it is sent when the session is open");
        Some(Vec::new())
    }

    /// Sends what was typed while a session was being opened. Whoever left meanwhile has it kept.
    fn send_early(&mut self) -> Vec<Effect> {
        let mut effects = Vec::new();
        while self.opening.is_none()
            && let Some(typed) = self.early.pop_front()
        {
            let is_words = !typed.starts_with(['!', '/']);
            match self.leaving {
                true if is_words => self.held.push_back(typed),
                true => self.unsent.push(typed),
                false => effects.extend(self.submit_text(&typed)),
            }
        }
        if self.leaving && self.shells == 0 {
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
        if self.opening.is_none_or(|now| now.number != opening) {
            return Vec::new();
        }
        (self.opening, self.forked) = (None, None);
        self.failed(why, hint);
        let early: Vec<String> = self.early.drain(..).collect();
        self.give_back(&early.join("\n\n"));
        if self.leaving { self.leave() } else { Vec::new() }
    }

    /// Shows a session that was opened. Only the newest opening counts.
    pub(super) fn opened(&mut self, opened: Opened) -> Vec<Effect> {
        if self.opening.is_none_or(|now| now.number != opened.opening) {
            return Vec::new();
        }
        self.opening = None;
        let opening = opened.opening;
        let store = |place: &Option<StorePlace>| place.as_ref().map(|place| place.store.clone());
        let moved = store(&opened.place) != store(&self.away);
        self.away.clone_from(&opened.place);
        let mut effects = Vec::new();
        if moved {
            effects.push(Effect::Enter { opening });
        }
        // Whoever leaves only has their words kept.
        let resume = opened.resume && !self.leaving;
        effects.extend(self.show_opened(Opened { resume, ..opened }));
        effects.extend(self.send_early());
        effects
    }

    fn show_opened(&mut self, opened: Opened) -> Vec<Effect> {
        let is_same = self.seen == opened.seq;
        let mut effects = self.let_go();
        self.helpers.clear();
        let Opened { card, events, more, seq, .. } = &opened;
        let before = self.session.take();
        let whose = if card.is_flow { Whose::Flow } else { Whose::Agent };
        let is_open = before.as_ref().is_some_and(|open| open.id == card.id);
        if !is_open {
            self.session = before;
            self.end_visit();
            self.choose_anew();
            self.recall(events);
        }
        self.transcript = Transcript::of(events, *more, whose);
        (self.page, self.start, self.session) = (None, None, None);
        self.queue.clear();
        self.questions.clear();
        self.answering.clear();
        if is_open {
            // It changed: what of it still counts is not printed again.
            self.transcript.skip_printing();
            if !is_same {
                self.note("the session was changed; Ctrl+T shows what counts now");
            }
        } else if !std::mem::take(&mut self.carried).is_empty() {
            self.note("what your own commands wrote before is not told to this session");
        }
        if let Some(from) = self.forked.take().filter(|from| *from != card.id) {
            self.note(format!("this is another session: {}, a fork of {from}", card.id));
        }
        if *more {
            self.note("earlier messages: Ctrl+T");
        }
        (self.seen, self.keeps_words, self.sending) = (*seq, false, None);
        self.tried.clear();
        effects.extend(self.go_on_with(opened));
        effects
    }

    /// What was cut off goes on, and what waits is asked again: a run does both. What a person
    /// stopped, what ended before it was done, or was forked or taken back, waits for a word.
    fn go_on_with(&mut self, opened: Opened) -> Vec<Effect> {
        let Opened { card, unheard, resume, rests, stopped, waiting, seq, elsewhere, .. } = opened;
        let (session, status, is_flow) = (card.id.clone(), card.status, card.is_flow);
        self.session = Some(card);
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
        if self.session.is_some() || std::mem::take(&mut self.began_anew) {
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
                    self.editor.remember(&format!("!{}", own.command));
                    self.editor.remember(behind);
                }
                None => self.editor.remember(&said),
            }
        }
    }

    /// What is open now is left. What commands of it write is still told to it; words that waited for
    /// them are typed again.
    fn end_visit(&mut self) {
        if let Some(card) = &self.session
            && self.shells > 0
        {
            self.earlier.insert(self.visit, card.id.clone());
        }
        self.visit.0 += 1;
        let held: Vec<String> = self.held.drain(..).collect();
        self.give_back(&held.join("\n\n"));
    }

    /// Nothing is open any more. What was chosen for it goes with it.
    pub(super) fn begin_anew(&mut self) {
        self.end_visit();
        if self.session.take().is_some() {
            (self.settings, self.began_anew) = (self.given.clone(), true);
        }
        self.transcript = Transcript::default();
        self.queue.clear();
        self.questions.clear();
        self.answering.clear();
        self.helpers.clear();
        self.tried.clear();
        (self.keeps_words, self.sending, self.retype) = (false, None, None);
    }

    /// The next session is begun where the terminal began.
    pub(super) fn go_home(&mut self) -> Vec<Effect> {
        self.away.take().map(|_| Effect::GoHome).into_iter().collect()
    }

    /// Keeps what is open, in case that what is begun instead cannot begin.
    pub(super) fn begin_instead(&mut self) {
        let before = self.session.clone().map(|session| Before {
            session,
            transcript: std::mem::take(&mut self.transcript),
            settings: self.settings.clone(),
            helpers: std::mem::take(&mut self.helpers),
            seen: self.seen,
            keeps_words: self.keeps_words,
        });
        self.begin_anew();
        self.before = before.map(Box::new);
    }

    /// It could not begin: what was open before is open again.
    pub(super) fn open_what_was_before(&mut self) {
        let Some(before) = self.before.take() else { return };
        self.end_visit();
        self.began_anew = false;
        self.session = Some(before.session);
        self.transcript = before.transcript;
        self.transcript.skip_printing();
        (self.settings, self.helpers) = (before.settings, before.helpers);
        (self.seen, self.keeps_words) = (before.seen, before.keeps_words);
    }
}
