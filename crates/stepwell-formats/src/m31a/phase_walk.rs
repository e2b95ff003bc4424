//! How the work came to its phase. M31A remembers the last stops at the most; the way between
//! them is the shortest that its rules allow.

use std::collections::VecDeque;

use stepwell::model::{Move, Phase, PhaseChanged, PhaseSet, Time};

const SET: PhaseSet = PhaseSet::Workflow;

/// A way through phases, from where every session begins.
#[derive(Debug)]
pub(super) struct PhaseWalk {
    at: Phase,
    returns: u32,
}

impl PhaseWalk {
    pub(super) fn new() -> Self {
        Self { at: SET.initial(), returns: 0 }
    }

    /// Where it has come to.
    pub(super) const fn at(&self) -> Phase {
        self.at
    }

    /// The moves to a phase.
    pub(super) fn to(
        &mut self,
        phase: Phase,
        at: Option<Time>,
    ) -> Vec<(Option<Time>, PhaseChanged)> {
        let Some(stops) = self.shortest(phase) else { return Vec::new() };
        let mut moves = Vec::new();
        for to in stops {
            match (self.at, to) {
                (Phase::Plan, Phase::Discuss) => self.returns += 1,
                (_, Phase::Idle) => self.returns = 0,
                _ => {}
            }
            moves.push((at, PhaseChanged { from: self.at, to }));
            self.at = to;
        }
        moves
    }

    fn shortest(&self, to: Phase) -> Option<Vec<Phase>> {
        let mut waiting = VecDeque::from([(self.at, Vec::new())]);
        let mut seen = vec![self.at];
        while let Some((at, stops)) = waiting.pop_front() {
            if at == to {
                return Some(stops);
            }
            for next in SET.next(at, self.returns) {
                if !seen.contains(&next) && SET.judge(at, next, self.returns) == Move::Legal {
                    seen.push(next);
                    let mut stops = stops.clone();
                    stops.push(next);
                    waiting.push_back((next, stops));
                }
            }
        }
        None
    }
}

/// The phase of that name; none is idle.
pub(super) fn phase(name: &str) -> Option<Phase> {
    if name.is_empty() { Some(Phase::Idle) } else { SET.parse(name) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_phase_is_reached_by_legal_moves() {
        for first in SET.phases() {
            for then in SET.phases() {
                let mut way = PhaseWalk::new();
                let moves = [way.to(*first, None), way.to(*then, None)].concat();
                let mut at = Phase::Idle;
                for (_, change) in moves {
                    assert_eq!(change.from, at);
                    assert_eq!(SET.judge(at, change.to, 0), Move::Legal);
                    at = change.to;
                }
                assert_eq!(at, *then);
            }
        }
    }
}
