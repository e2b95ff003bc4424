//! The lines of a transcript that is written, and where Claude Code would go on with it.

use std::collections::{HashMap, HashSet};

use super::ending::Ending;
use crate::journal::tree::{Tip, key};
use crate::json::fields::Fields;

/// The lines that were written.
#[derive(Debug, Default)]
pub(super) struct Rows {
    /// By the keys of their names, and what each follows.
    written: HashMap<u64, Option<u64>>,
    ending: Ending,
}

impl Rows {
    /// A line is written, behind that one.
    pub(super) fn note(&mut self, line: &Fields<'_>, parent: Option<&str>) {
        self.ending.line(line);
        if let Some(name) = line.text("uuid") {
            self.written.insert(key(&name), parent.map(key));
        }
    }

    /// Was a line of that name written?
    pub(super) fn has(&self, name: &str) -> bool {
        self.written.contains_key(&key(name))
    }

    /// The line of the conversation behind which Claude Code would go on; none, if it would begin
    /// anew. Nothing, if there is no line. Lines beside the conversation belong to what they
    /// follow; `spoken` has the others.
    pub(super) fn end(&self, spoken: &HashSet<u64>) -> Option<Option<u64>> {
        let mut at = match self.ending.tip(|line, other| self.follows(line, other))? {
            Tip::Beginning => None,
            Tip::Line(line) => Some(line),
        };
        for _ in 0..self.written.len() {
            let Some(line) = at.filter(|line| !spoken.contains(line)) else { break };
            at = self.parent(line);
        }
        Some(at)
    }

    /// Is a line another one, or behind it? `None`, if that one was not written.
    fn follows(&self, line: u64, other: u64) -> Option<bool> {
        self.written.get(&other)?;
        let mut at = Some(line);
        // A transcript may go in circles.
        for _ in 0..=self.written.len() {
            match at {
                Some(line) if line == other => return Some(true),
                Some(line) => at = self.parent(line),
                None => break,
            }
        }
        Some(false)
    }

    fn parent(&self, line: u64) -> Option<u64> {
        self.written.get(&line).copied().flatten()
    }
}
