//! Where Claude Code goes on with a transcript: behind its last line, or where a checkpoint says.
//!
//! A `last-prompt` line is a checkpoint: it names the line that the conversation ends with. Later
//! lines count if they follow that one. A rewind writes a checkpoint that is explicit: with no
//! line behind it, it holds whatever the lines before it follow.

use super::said::lane;
use crate::journal::tree::{Tip, key};
use crate::json::fields::Fields;
use stepwell::Lane;

/// What the lines so far say of the end of the conversation. Lines are known by their keys.
#[derive(Debug, Default)]
pub(super) struct Ending {
    last_row: Option<u64>,
    checkpoint: Option<Checkpoint>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Checkpoint {
    /// The line; none, if the conversation was rewound to its beginning.
    leaf: Option<u64>,
    /// Is it explicit, with no line behind it?
    holds: bool,
}

impl Ending {
    /// Another line of the transcript.
    pub(super) fn line(&mut self, line: &Fields<'_>) {
        match line.text("type").as_deref() {
            Some("user" | "assistant" | "system" | "attachment") => self.row(line),
            Some("last-prompt") => self.checkpoint(line),
            _ => {}
        }
    }

    fn row(&mut self, line: &Fields<'_>) {
        let is_snapshot = line.text("subtype").as_deref() == Some("file_snapshot");
        let Some(name) = line.text("uuid").filter(|_| !is_snapshot) else { return };
        if lane(line) != Lane::main() {
            return;
        }
        self.last_row = Some(key(&name));
        match (line.text("subtype").as_deref(), &mut self.checkpoint) {
            (Some("compact_boundary"), checkpoint) => *checkpoint = None,
            (_, Some(Checkpoint { leaf: None, .. })) => self.checkpoint = None,
            (_, Some(checkpoint)) => checkpoint.holds = false,
            (_, None) => {}
        }
    }

    fn checkpoint(&mut self, line: &Fields<'_>) {
        let is_explicit = line.is_true("explicit");
        let leaf = line.text("leafUuid").map(|name| key(&name));
        match leaf {
            Some(_) => {
                let same = self.checkpoint.is_some_and(|it| it.holds && it.leaf == leaf);
                self.checkpoint = Some(Checkpoint { leaf, holds: is_explicit || same });
            }
            None if is_explicit && line.raw("leafUuid") == Some("null") => {
                self.checkpoint = Some(Checkpoint { leaf, holds: true });
            }
            None => {}
        }
    }

    /// Where the conversation ends; `None`, if the transcript has no line. `follows` says whether
    /// the first line is behind the second one, or is that line; `None` of a second one that is
    /// not there.
    pub(super) fn tip(&self, follows: impl Fn(u64, u64) -> Option<bool>) -> Option<Tip> {
        let last = self.last_row?;
        let Some(Checkpoint { leaf, holds }) = self.checkpoint else {
            return Some(Tip::Line(last));
        };
        let Some(leaf) = leaf else { return Some(Tip::Beginning) };
        Some(match follows(last, leaf) {
            Some(true) if !holds => Tip::Line(last),
            Some(_) => Tip::Line(leaf),
            None => Tip::Line(last),
        })
    }

    /// Where an explicit checkpoint with no line behind it says that the conversation ends.
    pub(super) fn held(&self) -> Option<Tip> {
        let checkpoint = self.checkpoint.filter(|it| it.holds)?;
        Some(checkpoint.leaf.map_or(Tip::Beginning, Tip::Line))
    }
}
