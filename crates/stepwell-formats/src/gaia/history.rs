//! An agent's way through its phases. A history may say what cannot be, such as leaving a
//! final phase: of that, what leads to where the agent is.

use stepwell::model::{Move, Phase, PhaseChanged, PhaseSet, Time};

use crate::json::fields::{Fields, elements};
use crate::snapshot::moment;

const SET: PhaseSet = PhaseSet::Lifecycle;

/// The way that a state tells of.
#[derive(Debug, Default)]
pub(super) struct PhaseHistory {
    /// The moves, each from where the one before led.
    pub(super) moves: Vec<(Option<Time>, PhaseChanged)>,
    /// What is not as it should be.
    pub(super) faults: Vec<String>,
}

impl PhaseHistory {
    /// The way in a state.
    pub(super) fn of(state: &Fields<'_>) -> Self {
        let mut way = Self::default();
        let raw = state.raw("history").unwrap_or("[]");
        let all = elements(raw).unwrap_or_else(|_| {
            way.faults.push("its history is no list".to_owned());
            Vec::new()
        });
        let entries: Vec<Entry> = all.into_iter().map(Entry::of).collect();
        let mut at = SET.initial();
        for (n, entry) in entries.iter().enumerate() {
            let Some(to) = entry.to else {
                way.faults.push(format!("entry {} of its history names no phase", n + 1));
                continue;
            };
            let is_last = entries[n + 1..].iter().all(|later| later.to.is_none());
            // A final phase that was left all the same was none.
            if SET.is_final(to) && !is_last {
                way.faults.push(format!("its history leaves {to}, which is final"));
                continue;
            }
            if entry.from != Some(at) {
                let from = entry.from.map_or("nowhere", Phase::as_str);
                way.faults.push(format!("its history goes from {from} to {to}, after {at}"));
            }
            way.go(&mut at, to, entry.at);
        }
        let stands = state.text("phase").unwrap_or_default();
        match SET.parse(&stands) {
            None => way.faults.push(format!("{stands:?} is no phase")),
            Some(phase) if phase == at => {}
            // Finalizing an agent adds no entry to its history.
            Some(phase) if SET.is_final(phase) && state.has("finalized_at") => {
                let said = |name: &str| state.raw(name).and_then(moment);
                way.go(&mut at, phase, said("finalized_at").or_else(|| said("last_updated")));
            }
            Some(phase) => {
                way.faults.push(format!("it is in {phase}, and its history ends in {at}"));
                way.go(&mut at, phase, state.raw("last_updated").and_then(moment));
            }
        }
        way.no_later_than(state.raw("last_updated").and_then(moment));
        way
    }

    /// When a state was last updated is what GAIA-OPS goes by: no move is told as later.
    fn no_later_than(&mut self, updated: Option<Time>) {
        let Some(updated) = updated else { return };
        let late =
            self.moves.iter_mut().filter_map(|(at, _)| at.as_mut()).filter(|at| **at > updated);
        let mut found = false;
        for at in late {
            *at = updated;
            found = true;
        }
        if found {
            let what = "its history goes on after last_updated, which counts";
            self.faults.push(what.to_owned());
        }
    }

    fn go(&mut self, at: &mut Phase, to: Phase, when: Option<Time>) {
        if SET.judge(*at, to, 0) == Move::Legal {
            self.moves.push((when, PhaseChanged { from: *at, to }));
            *at = to;
        }
    }
}

struct Entry {
    from: Option<Phase>,
    to: Option<Phase>,
    at: Option<Time>,
}

impl Entry {
    fn of(raw: &str) -> Self {
        let fields = Fields::parse(raw).unwrap_or_default();
        let phase = |name: &str| SET.parse(&fields.text(name)?);
        Self {
            from: phase("from_phase"),
            to: phase("to_phase"),
            at: fields.raw("timestamp").and_then(moment),
        }
    }
}
