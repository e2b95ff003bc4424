//! The input line, and the words that wait to be sent.

use std::collections::VecDeque;

use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};

use crate::clean::Clean;
use crate::completion::{Completion, Wanted, wanted};
use crate::editor::{Editor, Move};
use crate::effect::Effect;

/// What is typed, and what waits to be sent.
#[derive(Clone, Debug, Default)]
pub struct Composer {
    /// What is typed.
    pub editor: Editor,
    /// What completes it.
    pub completion: Option<Completion>,
    /// What was said and is not in the conversation yet.
    pub queue: Vec<Clean>,
    /// What was typed while a command of the user's ran: it is sent behind what that writes.
    pub(crate) held: VecDeque<String>,
    /// Text that Tab put aside. It is typed again when no question waits.
    pub(crate) aside: Option<String>,
    /// For the task of a session that has not begun: what the user's own commands wrote.
    pub(crate) carried: Vec<String>,
    /// Words that were not sent when the user left.
    pub(crate) unsent: Vec<String>,
}

impl Composer {
    /// A key that edits.
    pub(crate) fn edit(&mut self, key: KeyEvent) {
        let far = key.modifiers.intersects(KeyModifiers::ALT | KeyModifiers::CONTROL);
        match key.code {
            KeyCode::Backspace if far => self.editor.cut_to(Move::WordLeft),
            KeyCode::Backspace => self.editor.backspace(),
            KeyCode::Delete if far => self.editor.cut_to(Move::WordRight),
            KeyCode::Delete => self.editor.delete(),
            KeyCode::Left if far => self.editor.jump(Move::WordLeft),
            KeyCode::Right if far => self.editor.jump(Move::WordRight),
            KeyCode::Left => self.editor.jump(Move::Left),
            KeyCode::Right => self.editor.jump(Move::Right),
            KeyCode::Home => self.editor.jump(Move::Home),
            KeyCode::End => self.editor.jump(Move::End),
            KeyCode::Char('b') if key.modifiers == KeyModifiers::ALT => {
                self.editor.jump(Move::WordLeft);
            }
            KeyCode::Char('f') if key.modifiers == KeyModifiers::ALT => {
                self.editor.jump(Move::WordRight);
            }
            KeyCode::Char('d') if key.modifiers == KeyModifiers::ALT => {
                self.editor.cut_to(Move::WordRight);
            }
            _ => {
                if let Some(c) = typed(key) {
                    self.editor.insert(c.encode_utf8(&mut [0; 4]));
                }
            }
        }
    }

    /// A letter with Ctrl that edits.
    pub(crate) fn edit_with_control(&mut self, c: char) {
        match c {
            'j' => self.editor.insert("\n"),
            'a' => self.editor.jump(Move::Home),
            'e' => self.editor.jump(Move::End),
            'b' => self.editor.jump(Move::Left),
            'f' => self.editor.jump(Move::Right),
            'p' => self.editor.recall_older(),
            'n' => self.editor.recall_newer(),
            'h' => self.editor.backspace(),
            'w' => self.editor.cut_to(Move::WordLeft),
            'u' => self.editor.cut_to(Move::Home),
            'k' => self.editor.cut_to(Move::End),
            'y' => self.editor.paste_cut(),
            'd' => self.editor.delete(),
            _ => {}
        }
    }

    /// Looks what completes what is typed now.
    pub(crate) fn complete(&mut self) -> Vec<Effect> {
        let before = self.completion.take();
        match wanted(&self.editor) {
            Wanted::Nothing => Vec::new(),
            Wanted::Ready(mut completion) => {
                // Of other offers, the first is selected.
                let same = before.filter(|before| before.offers == completion.offers);
                completion.selected = same.map_or(0, |before| before.selected);
                self.completion = Some(completion);
                Vec::new()
            }
            Wanted::Files { typed, .. } => vec![Effect::ListFiles(typed)],
        }
    }

    /// Takes words out of the queue of what was said, and tells if they were there.
    pub(crate) fn unqueue(&mut self, words: &str) -> bool {
        let shown = Clean::new(words);
        let at = self.queue.iter().position(|said| *said == shown);
        at.map(|at| self.queue.remove(at)).is_some()
    }

    /// Takes all that is queued, as texts.
    pub(crate) fn take_queue(&mut self) -> String {
        let said: Vec<String> = self.queue.drain(..).map(|said| said.to_string()).collect();
        said.join("\n\n")
    }

    /// Types words again, before what is typed by now.
    pub(crate) fn type_again(&mut self, words: &str) {
        match self.editor.is_empty() {
            true => self.editor.set(words),
            false => {
                let both = format!("{words}\n\n{}", self.editor.text());
                self.editor.set(&both);
            }
        }
    }
}

/// The character that a key types, if it types one.
pub(crate) fn typed(key: KeyEvent) -> Option<char> {
    match (key.code, key.modifiers.difference(KeyModifiers::SHIFT).is_empty()) {
        (KeyCode::Char(c), true) => Some(c),
        _ => None,
    }
}
