//! Where in a set of phases a session's work is, folded from what was recorded. Pure.

use stepwell::model::{Phase, PhaseSet};

/// Where in a set of phases a session's work is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PhaseState {
    /// The set.
    pub set: PhaseSet,
    /// The phase.
    pub phase: Phase,
    /// How often plan went back to discuss.
    pub returns: u32,
}

impl PhaseState {
    /// Where a session of this set begins.
    #[must_use]
    pub const fn begin(set: PhaseSet) -> Self {
        Self { set, phase: set.initial(), returns: 0 }
    }

    /// Takes in that a phase was entered.
    pub const fn enter(&mut self, phase: Phase) {
        match (self.phase, phase) {
            (Phase::Plan, Phase::Discuss) => self.returns += 1,
            (_, Phase::Idle) => self.returns = 0,
            _ => {}
        }
        self.phase = phase;
    }
}
