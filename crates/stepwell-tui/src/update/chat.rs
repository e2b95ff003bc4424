//! Keys in the conversation.

use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use stepwell::model::Mode;

use super::TWICE;
use crate::clean::Clean;
use crate::composer::typed;
use crate::editor::Move;
use crate::effect::{Effect, PointsFor};
use crate::page::{Content, Page, Picker};
use crate::session::Reach;
use crate::state::State;
use crate::transcript::Block;

/// The keys, as help shows them.
pub const KEYS: &[(&str, &str)] = &[
    ("Enter", "send; while the agent works, it is told before its next step"),
    ("Shift+Enter, Ctrl+J", "a new line"),
    ("Up, Down", "what you said before"),
    ("Esc", "stop the turn"),
    ("Esc Esc", "go back to an earlier point"),
    ("Ctrl+C", "cancel; twice, leave"),
    ("Ctrl+R", "find sessions; again, search further"),
    ("Ctrl+T", "the whole conversation"),
    ("Ctrl+O", "show all of tools' output, or fold it; at a question, all of it"),
    ("Ctrl+G", "write in your own editor"),
    ("Ctrl+L", "draw anew"),
    ("Shift+Tab", "change when you are asked"),
    ("@", "name a file"),
    ("!", "run a command of your own; the agent is told"),
    ("/", "a command"),
    ("?", "this page"),
    (
        "at a question",
        "arrows choose an answer, Enter gives it; words and Enter say no, and why; Tab puts your words aside",
    ),
];

impl State {
    pub(super) fn chat_key(&mut self, key: KeyEvent) -> Vec<Effect> {
        if let Some(effects) = self.completion_key(key) {
            return effects;
        }
        let control = key.modifiers.contains(KeyModifiers::CONTROL);
        match key.code {
            KeyCode::Char(c) if control => return self.control_key(c),
            KeyCode::Esc => return self.escape(),
            KeyCode::BackTab => return self.next_mode(),
            KeyCode::Enter if key.modifiers.intersects(KeyModifiers::SHIFT | KeyModifiers::ALT) => {
                self.composer.editor.insert("\n");
            }
            KeyCode::Enter => return self.enter(),
            KeyCode::Up if self.select_start(false) => return Vec::new(),
            KeyCode::Down if self.select_start(true) => return Vec::new(),
            KeyCode::Up => {
                if !self.composer.editor.go(Move::Up) {
                    self.composer.editor.recall_older();
                }
                return Vec::new();
            }
            KeyCode::Down => {
                if !self.composer.editor.go(Move::Down) {
                    self.composer.editor.recall_newer();
                }
                return Vec::new();
            }
            KeyCode::Char('?') if self.composer.editor.is_empty() => {
                self.open_help();
                return Vec::new();
            }
            _ => {
                if typed(key).is_some()
                    && let Some(start) = self.start_list_mut()
                {
                    start.selected = None;
                }
                self.composer.edit(key);
            }
        }
        self.composer.complete()
    }

    fn control_key(&mut self, c: char) -> Vec<Effect> {
        match c {
            'd' if self.composer.editor.is_empty() => return self.leave(),
            'g' => return vec![Effect::Edit(self.composer.editor.text().to_owned())],
            'l' => return vec![Effect::Redraw],
            'r' => return self.open_picker(Reach::Workspace, ""),
            't' => self.open_text("transcript", Content::Transcript),
            'o' if self.asked().is_some() => self.show_question(),
            'o' => {
                self.view.details = !self.view.details;
                let now = if self.view.details { "shown in full" } else { "folded" };
                self.say_briefly(format!(
                    "tools' output is {now}; Ctrl+T shows what was said before"
                ));
            }
            c => self.composer.edit_with_control(c),
        }
        self.composer.complete()
    }

    fn completion_key(&mut self, key: KeyEvent) -> Option<Vec<Effect>> {
        let completion = self.composer.completion.as_mut()?;
        match key.code {
            KeyCode::Up => completion.go(false),
            KeyCode::Down => completion.go(true),
            KeyCode::Tab => {
                let completion = self.composer.completion.take()?;
                completion.accept(&mut self.composer.editor);
            }
            KeyCode::Enter if key.modifiers.is_empty() => {
                let completion = self.composer.completion.take()?;
                if completion.is_typed(&self.composer.editor) {
                    return Some(self.submit());
                }
                completion.accept(&mut self.composer.editor);
                // A command without arguments needs no second Enter.
                let usage = completion.offers.get(completion.selected)?.text.as_str();
                if usage.starts_with('/') && !usage.contains(' ') {
                    return Some(self.submit());
                }
            }
            KeyCode::Esc => self.composer.completion = None,
            _ => return None,
        }
        Some(Vec::new())
    }

    fn select_start(&mut self, down: bool) -> bool {
        if !self.composer.editor.is_empty() {
            return false;
        }
        let Some(start) = self.start_list_mut().filter(|start| !start.rows.is_empty()) else {
            return false;
        };
        let last = start.rows.len() - 1;
        start.selected = match (start.selected, down) {
            (None, true) => Some(0),
            (None, false) => Some(last),
            (Some(0), false) => None,
            (Some(at), true) => Some((at + 1).min(last)),
            (Some(at), false) => Some(at - 1),
        };
        true
    }

    fn enter(&mut self) -> Vec<Effect> {
        // A backslash at the end of a line makes it go on, where no other key does.
        if self.composer.editor.before_cursor().ends_with('\\') {
            self.composer.editor.backspace();
            self.composer.editor.insert("\n");
            return Vec::new();
        }
        if self.composer.editor.is_empty()
            && let Some(start) = self.start_list()
            && let Some(row) = start.selected.and_then(|at| start.rows.get(at))
        {
            let (session, store) = (row.id.to_string(), row.store.clone());
            return match self.is_bound() {
                true => Vec::new(),
                false => self.open_session(session, store, true),
            };
        }
        self.submit()
    }

    /// Sends what is typed: words, a command of the terminal, or one of the user's own.
    pub(super) fn submit(&mut self) -> Vec<Effect> {
        self.composer.completion = None;
        if self.composer.editor.text().trim().is_empty() {
            return Vec::new();
        }
        let text = self.composer.editor.take();
        let trimmed = text.trim();
        match self.keep_early(trimmed) {
            Some(effects) => effects,
            None => self.submit_text(trimmed),
        }
    }

    /// Sends something that was typed.
    pub(super) fn submit_text(&mut self, trimmed: &str) -> Vec<Effect> {
        // A path is no command.
        let is_command = trimmed.starts_with('/')
            && !trimmed.split_whitespace().next().is_some_and(|word| word[1..].contains('/'));
        match is_command {
            true => self.slash(trimmed),
            // The order is the one in which it was typed.
            false if self.shells.running > 0 => {
                self.composer.queue.push(Clean::new(trimmed));
                self.composer.held.push_back(trimmed.to_owned());
                self.say_briefly("it is sent when your command is done");
                Vec::new()
            }
            false => self.say_or_run(trimmed),
        }
    }

    /// Sends words, or runs a command of the user's own.
    pub(super) fn say_or_run(&mut self, typed: &str) -> Vec<Effect> {
        let Some(command) = typed.strip_prefix('!') else { return self.send(typed.to_owned()) };
        match command.trim() {
            "" => Vec::new(),
            command => {
                self.transcript.push(Block::User(Clean::new(typed)));
                self.shells.running += 1;
                self.shells.since = self.now;
                vec![Effect::Shell { command: command.to_owned(), visit: self.visit }]
            }
        }
    }

    fn escape(&mut self) -> Vec<Effect> {
        let twice = self.presses.escape.is_some_and(|last| self.now.saturating_sub(last) < TWICE);
        if twice {
            self.presses.escape = None;
            return self.open_points(PointsFor::Rewind);
        }
        self.presses.escape = Some(self.now);
        match self.is_busy() || self.shells.running > 0 {
            true => self.stop(),
            false => {
                if self.phase.is_open() {
                    self.say_for(TWICE, "Esc again goes back to an earlier point");
                }
                Vec::new()
            }
        }
    }

    /// When a person is asked, as it holds for the next run.
    #[must_use]
    pub fn mode(&self) -> Mode {
        let kept = self.phase.card().and_then(|card| card.mode);
        let usual = self.away.as_ref().map_or(self.look.mode, |place| place.mode);
        self.settings.mode.or(kept).unwrap_or(usual)
    }

    fn next_mode(&mut self) -> Vec<Effect> {
        // From the usual one, being asked more often comes first, and never being asked last.
        let next = match self.mode() {
            Mode::ConfirmSensitive => Mode::ConfirmAll,
            Mode::ConfirmAll => Mode::Yolo,
            Mode::Yolo => Mode::ConfirmSensitive,
        };
        self.set_mode(next);
        Vec::new()
    }

    pub(super) fn set_mode(&mut self, mode: Mode) {
        self.settings.mode = Some(mode);
        let when = if self.is_working() { " from the next turn on" } else { "" };
        let means = match mode {
            Mode::ConfirmAll => "you are asked before every tool",
            Mode::ConfirmSensitive => "you are asked before something changes",
            Mode::Yolo => "you are never asked",
        };
        self.say_briefly(format!("{mode}: {means}{when}"));
    }

    pub(super) fn open_picker(&mut self, reach: Reach, words: &str) -> Vec<Effect> {
        let mut picker = Picker { reach, ..Picker::default() };
        picker.words.insert(words);
        self.open_page(Page::Picker(picker));
        self.find()
    }

    pub(super) fn open_points(&mut self, purpose: PointsFor) -> Vec<Effect> {
        match self.phase.card() {
            Some(_) if self.is_working() && purpose == PointsFor::Rewind => {
                self.say_briefly("the agent works: Esc stops it first");
                Vec::new()
            }
            Some(card) => vec![Effect::ListPoints { session: card.id.clone(), purpose }],
            None => {
                self.say_briefly("no session is open yet");
                Vec::new()
            }
        }
    }
}
