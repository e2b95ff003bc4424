//! What a key, a run or a store's answer changes, and what is wanted done then. Pure.

mod chat;
mod opening;
mod page;
mod question;
mod reply;
mod run;
mod slash;
mod watch;
mod work;

pub use chat::KEYS;

use std::time::Duration;

use crossterm::event::{KeyCode, KeyEvent, KeyEventKind, KeyModifiers};

use crate::effect::{Effect, Input};
use crate::state::State;

/// Within this, a second Escape or Ctrl+C belongs to the first.
const TWICE: Duration = Duration::from_millis(1500);

impl State {
    /// Takes something in. The time is since the program began.
    pub fn update(&mut self, now: Duration, input: Input) -> Vec<Effect> {
        self.now = now;
        let mut effects = self.handle(input);
        for effect in &effects {
            if let Effect::Run { command, .. } = effect {
                self.changing = reply::moved_by(command).or(self.changing.take());
            }
        }
        if self.gates.questions.is_empty()
            && let Some(text) = self.composer.aside.take()
        {
            self.give_back(&text);
        }
        self.mark_read();
        if self.closed && !self.has_left() {
            effects.extend(self.wind_up());
        }
        effects
    }

    /// Nobody types any more: questions are left for later, and what works is waited for.
    fn wind_up(&mut self) -> Vec<Effect> {
        let works = self.is_busy() || self.shells.running > 0 || self.is_opening();
        match (self.asked().is_some() && !self.is_watching(), works) {
            (true, _) => self.later(),
            (false, true) => Vec::new(),
            (false, false) => self.leave(),
        }
    }

    fn handle(&mut self, input: Input) -> Vec<Effect> {
        match input {
            Input::Key(key) if key.kind == KeyEventKind::Release => Vec::new(),
            Input::Key(key) => self.key(key),
            Input::Line(line) => self.line(&line),
            Input::Closed => {
                self.closed = true;
                Vec::new()
            }
            Input::Cancel => self.cancel(),
            Input::Ending => self.leave(),
            Input::Paste(text) => self.paste(&text),
            Input::Resize { columns, rows } => {
                (self.look.columns, self.look.rows) = (columns, rows);
                self.lay_out_anew();
                Vec::new()
            }
            Input::Tick => Vec::new(),
            Input::Run(told) => {
                let effects = self.told(told);
                self.lay_out();
                effects
            }
            Input::Elsewhere { session, told } => {
                let effects = self.told_elsewhere(&session, told);
                self.lay_out();
                effects
            }
            Input::Reply(reply) => {
                let effects = self.reply(reply);
                self.lay_out();
                effects
            }
        }
    }

    fn key(&mut self, key: KeyEvent) -> Vec<Effect> {
        if let Some(effects) = self.key_everywhere(key) {
            return effects;
        }
        if self.page.is_some() {
            return self.page_key(key);
        }
        if self.keep_typed(key) {
            return Vec::new();
        }
        if self.asked().is_some()
            && let Some(effects) = self.question_key(key)
        {
            return effects;
        }
        self.chat_key(key)
    }

    /// Keys that mean the same wherever one is.
    fn key_everywhere(&mut self, key: KeyEvent) -> Option<Vec<Effect>> {
        match (key.code, key.modifiers) {
            (KeyCode::Char('c'), KeyModifiers::CONTROL) => Some(self.cancel()),
            (KeyCode::Char('z'), KeyModifiers::CONTROL) => Some(vec![Effect::Suspend]),
            _ => None,
        }
    }

    /// Cancels what is nearest: a page, what is typed, the turn. Twice, it leaves.
    fn cancel(&mut self) -> Vec<Effect> {
        let twice = self.presses.cancel.is_some_and(|last| self.now.saturating_sub(last) < TWICE);
        if twice {
            return self.leave();
        }
        self.presses.cancel = Some(self.now);
        self.say_for(TWICE, "Ctrl+C again leaves; nothing is lost");
        if self.page.take().is_some() {
            return Vec::new();
        }
        self.composer.completion = None;
        if let Some(asked) = self.gates.questions.first_mut()
            && std::mem::take(&mut asked.pattern)
        {
            self.composer.editor.clear();
            return Vec::new();
        }
        if !self.composer.editor.is_empty() {
            let typed = self.composer.editor.text().to_owned();
            self.composer.editor.remember(&typed);
            self.composer.editor.clear();
            return Vec::new();
        }
        self.stop()
    }

    fn paste(&mut self, text: &str) -> Vec<Effect> {
        match &self.page {
            Some(_) => self.page_paste(text),
            None => {
                self.begin_reply();
                self.composer.editor.insert(text);
                self.composer.completion = None;
                Vec::new()
            }
        }
    }

    /// A whole line, where the screen is not redrawn: an answer to a question, or words.
    fn line(&mut self, line: &str) -> Vec<Effect> {
        self.view.lines = true;
        if self.keep_line(line) {
            return Vec::new();
        }
        match self.asked().is_some() {
            true => self.question_line(line),
            false if line.trim() == "?" => {
                self.open_help();
                Vec::new()
            }
            false => {
                self.composer.editor.set(line);
                self.submit()
            }
        }
    }
}
