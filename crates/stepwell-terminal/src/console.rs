//! Who reads what is written, and how it stands out.

use std::fmt::Display;
use std::io::{self, Write};

use crate::text::{visible, without_secrets};

/// What the standard streams are.
#[derive(Clone, Copy, Debug)]
pub struct Terminal {
    /// Can a question be asked and answered?
    pub can_ask: bool,
    /// Is the answer read by a person?
    pub output: bool,
    /// How many columns it has; unlimited in a pipe.
    pub width: Option<usize>,
    /// Does the user want no colour, whatever the terminal can do?
    pub plain: bool,
}

/// How the answer is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// For people.
    Text,
    /// For programs: one object, or one per line.
    Json,
}

/// Who reads the answer, and whether they can be asked.
#[derive(Clone, Copy, Debug)]
pub struct Console {
    /// What the standard streams are.
    pub terminal: Terminal,
    /// How the answer is written.
    pub form: Form,
    /// Whether in colours.
    pub paint: Paint,
}

impl Console {
    /// Does a person see what happens as it does?
    pub fn is_live(self) -> bool {
        self.terminal.output && self.terminal.can_ask
    }
}

/// Tells something that is not the answer, on stderr.
pub fn note(text: impl Display) {
    // Nobody is left to tell if stderr is closed.
    let _ = writeln!(io::stderr(), "{}", safe_to_tell(&text.to_string()));
}

/// The text as it may be told beside an answer: without secrets, which a name that was imported may
/// hold, and without what would move the cursor.
#[must_use]
pub fn safe_to_tell(text: &str) -> String {
    visible(&without_secrets(text))
}

/// Colours, if they are wanted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Paint {
    /// No colours.
    Plain,
    /// Colours.
    Colour,
}

/// How a piece of text stands out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Style {
    /// Not at all.
    Plain,
    /// Headings and questions.
    Bold,
    /// What matters less.
    Dim,
    /// Failures, and lines that go.
    Red,
    /// What went well, and lines that come.
    Green,
    /// Warnings, and what waits.
    Yellow,
    /// What begins.
    Cyan,
}

impl Paint {
    /// The text in a style. Escapes take no room on the screen, so paint what was cut
    /// and padded already.
    pub fn paint(self, style: Style, text: &str) -> String {
        let code = match style {
            Style::Plain => "0",
            Style::Bold => "1",
            Style::Dim => "2",
            Style::Red => "31",
            Style::Green => "32",
            Style::Yellow => "33",
            Style::Cyan => "36",
        };
        match self {
            Self::Colour if style != Style::Plain => format!("\u{1b}[{code}m{text}\u{1b}[0m"),
            _ => text.to_owned(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_told_holds_no_secret_of_a_name_that_was_imported() {
        let key = format!("ghp_{}", "a1B2c3".repeat(6));
        let told = safe_to_tell(&format!("{key:?} is an agent of codex\u{1b}[2J"));
        assert_eq!(told, "\"[redacted:github-token]\" is an agent of codex\u{fffd}[2J");
    }
}
