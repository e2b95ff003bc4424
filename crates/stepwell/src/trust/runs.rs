//! Whose runs recorded what: the settings in a log tell one run from the next.

use crate::model::{Seq, Who};

/// The runs of a session, as far as its settings tell them apart.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Runs {
    begun: Vec<Begun>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Begun {
    from: Seq,
    /// Who began it; none, if the user did.
    by: Option<Who>,
}

impl Runs {
    /// Notes that a run begins. `by` is who else began it.
    pub(super) fn begin(&mut self, from: Seq, by: Option<Who>) {
        self.begun.push(Begun { from, by });
    }

    /// Who else's run an event belongs to. None, if it is the user's own, or if nobody says.
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
