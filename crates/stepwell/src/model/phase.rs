//! Phases of work: two sets, their legal moves, and which phases can be resumed.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::status::Status;

/// One phase. Its [`PhaseSet`] holds the rules.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
#[expect(missing_docs, reason = "the two sets below describe them in their order of work")]
pub enum Phase {
    // Phases of `PhaseSet::Lifecycle`.
    Initializing,
    Investigating,
    Planning,
    Approval,
    Executing,
    Validating,
    Completed,
    Failed,
    Abandoned,
    // Phases of `PhaseSet::Workflow`.
    Idle,
    Initialize,
    Discuss,
    Plan,
    Execute,
    Verify,
    Runtime,
    Ship,
}

/// A set of phases with its rules.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum PhaseSet {
    /// initializing, investigating, planning, approval, executing, validating, and the final
    /// completed, failed and abandoned. Any phase that is not final may move to any other.
    Lifecycle,
    /// idle, initialize, discuss, plan, execute, verify, runtime, ship. Moves follow a fixed table;
    /// plan may go back to discuss three times.
    Workflow,
}

/// How often work may go back from plan to discuss.
pub const MAX_DISCUSS_RETURNS: u32 = 3;

/// A set's judgment of a move between two of its phases.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Move {
    /// Allowed.
    Legal,
    /// The session is already in that phase; nothing needs recording.
    Stay,
    /// Not allowed; these are the phases that can follow.
    Illegal(Vec<Phase>),
}

use Phase::{
    Abandoned, Approval, Completed, Discuss, Execute, Executing, Failed, Idle, Initialize,
    Initializing, Investigating, Plan, Planning, Runtime, Ship, Validating, Verify,
};

impl PhaseSet {
    /// The set's phases in their order of work. A session starts in the first.
    #[must_use]
    pub const fn phases(self) -> &'static [Phase] {
        match self {
            Self::Lifecycle => &[
                Initializing,
                Investigating,
                Planning,
                Approval,
                Executing,
                Validating,
                Completed,
                Failed,
                Abandoned,
            ],
            Self::Workflow => &[Idle, Initialize, Discuss, Plan, Execute, Verify, Runtime, Ship],
        }
    }

    /// Is this one of the set's phases?
    #[must_use]
    pub fn has(self, phase: Phase) -> bool {
        self.phases().contains(&phase)
    }

    /// Where a new session starts.
    #[must_use]
    pub const fn initial(self) -> Phase {
        self.phases()[0]
    }

    /// The set's phase of that name.
    #[must_use]
    pub fn parse(self, name: &str) -> Option<Phase> {
        self.phases().iter().copied().find(|phase| phase.as_str() == name)
    }

    /// Can a session in this phase be resumed?
    #[must_use]
    pub const fn resumable(self, phase: Phase) -> bool {
        match self {
            Self::Lifecycle => matches!(phase, Investigating | Planning | Approval),
            Self::Workflow => !matches!(phase, Idle | Ship),
        }
    }

    /// Is this phase final?
    #[must_use]
    pub const fn is_final(self, phase: Phase) -> bool {
        matches!((self, phase), (Self::Lifecycle, Completed | Failed | Abandoned))
    }

    /// The phases that may follow `from` after plan went back to discuss `returns` times.
    #[must_use]
    pub fn next(self, from: Phase, returns: u32) -> Vec<Phase> {
        let table: &[Phase] = match (self, from) {
            (Self::Lifecycle, _) if self.is_final(from) => &[],
            (Self::Lifecycle, _) => {
                return self.phases().iter().copied().filter(|to| *to != from).collect();
            }
            (Self::Workflow, Idle) => &[Initialize],
            (Self::Workflow, Initialize) => &[Discuss, Execute, Idle],
            (Self::Workflow, Discuss) => &[Plan, Execute, Idle],
            (Self::Workflow, Plan) if returns >= MAX_DISCUSS_RETURNS => &[Execute, Plan, Idle],
            (Self::Workflow, Plan) => &[Execute, Plan, Discuss, Idle],
            (Self::Workflow, Execute) => &[Verify, Ship, Idle],
            (Self::Workflow, Verify) => &[Runtime, Ship, Execute, Idle],
            (Self::Workflow, Runtime) => &[Ship, Execute, Idle],
            (Self::Workflow, Ship) => &[Idle],
            (Self::Workflow, _) => &[],
        };
        table.to_vec()
    }

    /// Judges a move.
    #[must_use]
    pub fn judge(self, from: Phase, to: Phase, returns: u32) -> Move {
        let legal = self.next(from, returns);
        if legal.contains(&to) {
            Move::Legal
        } else if from == to {
            Move::Stay
        } else {
            Move::Illegal(legal)
        }
    }

    /// The status of a session of an external agent in this phase.
    #[must_use]
    pub const fn status(self, phase: Phase) -> Status {
        match phase {
            Completed | Ship => Status::Success,
            Failed => Status::Failed,
            Abandoned => Status::Abandoned,
            Approval => Status::Paused,
            _ => Status::Running,
        }
    }
}

impl Phase {
    /// The phase's name.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Initializing => "initializing",
            Investigating => "investigating",
            Planning => "planning",
            Approval => "approval",
            Executing => "executing",
            Validating => "validating",
            Completed => "completed",
            Failed => "failed",
            Abandoned => "abandoned",
            Idle => "idle",
            Initialize => "initialize",
            Discuss => "discuss",
            Plan => "plan",
            Execute => "execute",
            Verify => "verify",
            Runtime => "runtime",
            Ship => "ship",
        }
    }
}

impl fmt::Display for Phase {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The table of moves, written down independently of the code.
    const MOVES: &str = "idle>initialize initialize>discuss initialize>execute initialize>idle \
        discuss>plan discuss>execute discuss>idle plan>execute plan>plan plan>discuss plan>idle \
        execute>verify execute>ship execute>idle verify>runtime verify>ship verify>execute \
        verify>idle runtime>ship runtime>execute runtime>idle ship>idle";

    #[test]
    fn workflow_moves_are_exactly_the_table() {
        let set = PhaseSet::Workflow;
        let table: Vec<_> = MOVES.split_whitespace().collect();
        for from in set.phases() {
            for to in set.phases() {
                let listed = table.contains(&&*format!("{from}>{to}"));
                assert_eq!(set.judge(*from, *to, 0) == Move::Legal, listed, "{from}>{to}");
            }
        }
    }

    #[test]
    fn plan_goes_back_to_discuss_three_times_and_no_more() {
        assert_eq!(PhaseSet::Workflow.judge(Plan, Discuss, 2), Move::Legal);
        assert_eq!(
            PhaseSet::Workflow.judge(Plan, Discuss, 3),
            Move::Illegal(vec![Execute, Plan, Idle])
        );
    }

    #[test]
    fn lifecycle_moves_freely_until_a_final_phase() {
        let set = PhaseSet::Lifecycle;
        for from in set.phases() {
            for to in set.phases() {
                let expected = match (set.is_final(*from), from == to) {
                    (_, true) => Move::Stay,
                    (true, false) => Move::Illegal(vec![]),
                    (false, false) => Move::Legal,
                };
                assert_eq!(set.judge(*from, *to, 0), expected, "{from}>{to}");
            }
        }
    }

    #[test]
    fn exactly_these_phases_can_be_resumed() {
        let resumable = |set: PhaseSet| -> Vec<_> {
            set.phases().iter().filter(|p| set.resumable(**p)).map(|p| p.as_str()).collect()
        };
        assert_eq!(resumable(PhaseSet::Lifecycle), ["investigating", "planning", "approval"]);
        assert_eq!(
            resumable(PhaseSet::Workflow),
            ["initialize", "discuss", "plan", "execute", "verify", "runtime"]
        );
    }

    #[test]
    fn names_read_back_within_their_own_set_only() {
        for set in [PhaseSet::Lifecycle, PhaseSet::Workflow] {
            for phase in set.phases() {
                assert_eq!(set.parse(phase.as_str()), Some(*phase));
                let json = serde_json::to_string(phase).unwrap();
                assert_eq!(json, format!("{:?}", phase.as_str()));
            }
        }
        assert_eq!(PhaseSet::Workflow.parse("approval"), None);
    }
}
