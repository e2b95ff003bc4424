//! Compactions in a transcript: a line for the boundary, and one for the summary.

use stepwell::model::{Compacted, Part, Role, Time};
use stepwell::{Lane, Message, Seq};

use super::Reading;
use crate::Result;
use crate::claude::SYSTEM;
use crate::read::neutral::Item;

/// A compaction whose summary is to come.
pub(super) struct Boundary {
    pub(super) at: Option<Time>,
    pub(super) uuid: String,
    pub(super) line: String,
    pub(super) tokens: u64,
    /// Messages that stay in view, if it preserved any.
    pub(super) preserved: Option<Vec<Seq>>,
}

/// The summary of a compaction, and its line.
pub(super) struct Summary {
    pub(super) parts: Vec<Part>,
    pub(super) uuid: String,
    pub(super) line: String,
}

impl Reading<'_> {
    /// Tells of a compaction.
    pub(super) fn compact(&mut self, boundary: Boundary, summary: Option<Summary>) -> Result<()> {
        let Boundary { at, uuid, line, tokens, preserved } = boundary;
        self.tree.turn();
        if preserved.is_some() {
            self.tree.seal();
        }
        let name = summary.as_ref().map(|it| it.uuid.clone()).unwrap_or_default();
        let place = if self.said.is_empty() {
            self.begin_compacted(at, &line, summary)?
        } else {
            let (parts, summary_line) = match summary {
                Some(summary) => (Some(summary.parts), summary.line),
                None => (None, String::new()),
            };
            let mut compacted = Compacted::new(Lane::main(), Seq::FIRST, self.last);
            compacted.summary = parts.map(|parts| Message::new(Role::User, parts).text());
            compacted.pinned = preserved.unwrap_or_default();
            compacted.tokens_before = tokens;
            self.push(Item::new(at, compacted))?;
            self.push(Item::beside(SYSTEM, at, format!("{line}\n{summary_line}")))?
        };
        self.tree.told([uuid.as_str(), name.as_str()], place);
        Ok(())
    }

    /// A transcript that begins with a compaction is a fork: what was summarised is in its
    /// parent's. The summary is the first that the model is shown.
    fn begin_compacted(
        &mut self,
        at: Option<Time>,
        line: &str,
        summary: Option<Summary>,
    ) -> Result<Seq> {
        let place = self.push(Item::alone(SYSTEM, at, line))?;
        let Some(Summary { parts, line, .. }) = summary else { return Ok(place) };
        let place = self.push(Item::new(at, Message::new(Role::Tool, parts)))?;
        self.said.push(place);
        self.push(Item::beside(SYSTEM, at, line + "\n"))
    }
}
