//! The current phase of a session, folded from its events. Pure.

use stepwell::model::{Phase, PhaseSet};

/// The current phase within a set of phases.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PhaseState {
    /// The set.
    pub set: PhaseSet,
    /// The current phase.
    pub phase: Phase,
    /// How often the work went back from plan to discuss.
    pub returns: u32,
}

impl PhaseState {
    /// The first phase of a set.
    #[must_use]
    pub const fn begin(set: PhaseSet) -> Self {
        Self { set, phase: set.initial(), returns: 0 }
    }

    /// Records that the work entered a phase.
    pub const fn enter(&mut self, phase: Phase) {
        match (self.phase, phase) {
            (Phase::Plan, Phase::Discuss) => self.returns += 1,
            (_, Phase::Idle) => self.returns = 0,
            _ => {}
        }
        self.phase = phase;
    }
}
