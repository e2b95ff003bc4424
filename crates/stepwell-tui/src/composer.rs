//! The input line, and the words that wait to be sent.

use std::collections::VecDeque;

use crate::clean::Clean;
use crate::completion::Completion;
use crate::editor::Editor;

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
