//! Completing what is typed: commands behind a slash, files behind an at sign.

use stepwell_runtime::command::SlashCommand;

use crate::clean::Clean;
use crate::editor::Editor;

/// The most that is offered at once.
pub(crate) const MOST: usize = 8;

/// What is offered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Completion {
    /// What is completed.
    pub kind: CompletionKind,
    /// Where the word begins that is completed.
    pub from: usize,
    /// What is offered: the text, and what it is.
    pub offers: Vec<Offer>,
    /// Which is selected.
    pub selected: usize,
}

/// One of the things that are offered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Offer {
    /// What is inserted.
    pub text: Clean,
    /// What it is.
    pub help: Clean,
}

/// What is completed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CompletionKind {
    /// The name of a command.
    Command,
    /// The path of a file.
    File,
}

/// What a completion needs before it can offer something.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Wanted {
    /// It has all.
    Ready(Completion),
    /// Files whose names are like this.
    Files {
        /// What was typed behind the at sign.
        typed: String,
        /// Where the at sign is.
        from: usize,
    },
    /// Nothing is completed here.
    Nothing,
}

/// What is completed where the cursor is.
#[must_use]
pub(crate) fn wanted(editor: &Editor) -> Wanted {
    let before = editor.before_cursor();
    if let Some(typed) = before.strip_prefix('/') {
        let offers: Vec<_> = match typed.contains('\n') {
            true => Vec::new(),
            false => {
                SlashCommand::beginning_with(typed.trim_start()).into_iter().map(offer).collect()
            }
        };
        let complete = typed.contains(char::is_whitespace);
        return match offers.is_empty() || complete {
            true => Wanted::Nothing,
            false => Wanted::Ready(Completion {
                kind: CompletionKind::Command,
                from: 0,
                offers,
                selected: 0,
            }),
        };
    }
    let from = before
        .rfind(char::is_whitespace)
        .map_or(0, |at| at + before[at..].chars().next().map_or(1, char::len_utf8));
    match before[from..].strip_prefix('@') {
        Some(typed) => Wanted::Files { typed: typed.to_owned(), from },
        None => Wanted::Nothing,
    }
}

fn offer(command: &'static SlashCommand) -> Offer {
    Offer { text: Clean::new(&command.usage()), help: Clean::new(command.help) }
}

impl Completion {
    /// Files that were found.
    #[must_use]
    pub fn files(from: usize, files: &[String]) -> Option<Self> {
        let offers: Vec<_> = files
            .iter()
            .take(MOST)
            .map(|file| Offer { text: Clean::line(file), help: Clean::default() })
            .collect();
        (!offers.is_empty()).then_some(Self {
            kind: CompletionKind::File,
            from,
            offers,
            selected: 0,
        })
    }

    /// Selects the next or the one before.
    pub fn go(&mut self, down: bool) {
        let count = self.offers.len();
        self.selected = match down {
            true => (self.selected + 1) % count,
            false => (self.selected + count - 1) % count,
        };
    }

    /// Puts the selected one in place of what was typed.
    pub fn accept(&self, editor: &mut Editor) {
        let Some(offer) = self.offers.get(self.selected) else { return };
        let text = offer.text.as_str();
        match self.kind {
            CompletionKind::Command => {
                let name = text.split(' ').next().unwrap_or(text);
                editor.replace_from(self.from, &format!("{name} "));
            }
            // A path with blanks stays one word to whoever reads it.
            CompletionKind::File if text.contains(' ') => {
                editor.replace_from(self.from, &format!("@\"{text}\" "));
            }
            CompletionKind::File => editor.replace_from(self.from, &format!("@{text} ")),
        }
    }

    /// Is what was typed the selected one already?
    #[must_use]
    pub fn is_typed(&self, editor: &Editor) -> bool {
        let typed = editor.text().trim();
        self.kind == CompletionKind::Command
            && SlashCommand::find(typed.trim_start_matches('/')).is_some()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn typed(text: &str) -> Editor {
        let mut editor = Editor::default();
        editor.insert(text);
        editor
    }

    #[test]
    fn a_slash_offers_commands_only_at_the_beginning() {
        let Wanted::Ready(offered) = wanted(&typed("/rew")) else { panic!() };
        let mut editor = typed("/rew");
        offered.accept(&mut editor);
        assert_eq!(editor.text(), "/rewind ");
        assert_eq!(wanted(&typed("see /rew")), Wanted::Nothing);
        assert_eq!(wanted(&typed("/rewind -2")), Wanted::Nothing);
    }

    #[test]
    fn an_at_sign_asks_for_files_where_a_word_begins() {
        let asked = |text: &str, from| Wanted::Files { typed: text.to_owned(), from };
        assert_eq!(wanted(&typed("look at @src/ma")), asked("src/ma", 8));
        assert_eq!(wanted(&typed("me@home")), Wanted::Nothing);
        let files = ["src/main.rs".to_owned(), "a b.md".to_owned()];
        let mut offered = Completion::files(8, &files).unwrap();
        let mut editor = typed("look at @src/ma");
        offered.accept(&mut editor);
        assert_eq!(editor.text(), "look at @src/main.rs ");
        offered.go(false);
        let mut editor = typed("look at @a");
        offered.accept(&mut editor);
        assert_eq!(editor.text(), "look at @\"a b.md\" ");
    }
}
