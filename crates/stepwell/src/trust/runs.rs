//! Whose run recorded an event: settings mark the start of each run.

use crate::model::{Seq, Who};

/// The runs of a session, as its settings show them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Runs {
    begun: Vec<Begun>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Begun {
    from: Seq,
    /// Who started it; `None` for the user.
    by: Option<Who>,
}

impl Runs {
    /// Adds a run. `by` is the person who started it, if it was not the user.
    pub(super) fn begin(&mut self, from: Seq, by: Option<Who>) {
        self.begun.push(Begun { from, by });
    }

    /// The other person whose run an event belongs to. `None` if the run is the user's own, or
    /// unknown.
    #[must_use]
    pub fn others(&self, seq: Seq) -> Option<&Who> {
        let next = self.begun.partition_point(|run| run.from <= seq);
        self.begun[..next].last()?.by.as_ref()
    }

    /// Was an event recorded since the user's own last run, not counting one that begins now?
    #[must_use]
    pub fn is_since_own(&self, seq: Seq) -> bool {
        let after = self.begun.iter().rev().take_while(|run| run.from > seq);
        after.filter(|run| run.by.is_none()).nth(1).is_none()
    }
}
