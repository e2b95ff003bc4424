//! Reports over many sessions: statistics, the ledger, searches, checks.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::Serialize;
use stepwell::model::Time;
use stepwell::report::SpentGroup;
use stepwell::store::query::Hit;
use stepwell::store::{Derived, DiskUse, Verdict};
use stepwell::{Seq, SessionId, Status};

use crate::{Damage, Dollars, SessionStatus, Spending};

/// Outcomes and costs of sessions.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct Statistics {
    /// The number of sessions, with subagents' sessions.
    pub sessions: u64,
    /// The number in each status.
    pub by_status: BTreeMap<SessionStatus, u64>,
    /// The share of successes among the sessions that succeeded, failed or were abandoned; null, if
    /// there are none.
    pub success_rate: Option<f64>,
    /// The number of resumed sessions.
    pub resumed: u64,
    /// The share of resumed sessions; null, if there are no sessions.
    pub resume_rate: Option<f64>,
    /// The share of successes among the resumed sessions; null, if there are none.
    pub resumed_success_rate: Option<f64>,
    /// What they spent.
    #[serde(flatten)]
    pub spending: Spending,
    /// Costs that were not recorded.
    #[serde(flatten)]
    pub unrecorded: UnrecordedCost,
    /// By the day of their beginning.
    pub by_day: Vec<StatisticsGroup>,
    /// By the model that they used last.
    pub by_model: Vec<StatisticsGroup>,
    /// By their agent.
    pub by_agent: Vec<StatisticsGroup>,
    /// By workspace.
    pub by_workspace: Vec<StatisticsGroup>,
    /// By source; `-` for sessions that began here.
    pub by_source: Vec<StatisticsGroup>,
}

/// A group of sessions and its spending.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct StatisticsGroup {
    /// The day, model, agent or folder; `-`, if it has no name.
    pub name: String,
    /// How many sessions.
    pub sessions: u64,
    /// What they spent.
    #[serde(flatten)]
    pub spending: Spending,
    /// Costs that were not recorded.
    #[serde(flatten)]
    pub unrecorded: UnrecordedCost,
}

/// Costs of sessions that were not recorded.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct UnrecordedCost {
    /// The estimated cost of sessions with known tokens but without a recorded cost. It is in no
    /// other sum.
    #[serde(rename = "estimated_cost_usd", skip_serializing_if = "Option::is_none")]
    pub estimate: Option<Dollars>,
    /// The number of sessions with calls of unknown price and without an estimate.
    pub unpriced_sessions: u64,
}

impl From<&SpentGroup> for UnrecordedCost {
    fn from(group: &SpentGroup) -> Self {
        let estimate = (group.estimated > 0).then(|| group.estimate.into());
        Self { estimate, unpriced_sessions: group.unpriced }
    }
}

impl From<&stepwell::report::Statistics> for Statistics {
    fn from(counted: &stepwell::report::Statistics) -> Self {
        let groups = |groups: &BTreeMap<String, SpentGroup>| {
            let group = |(name, group): (&String, &SpentGroup)| StatisticsGroup {
                name: name.clone(),
                sessions: group.sessions,
                spending: (&group.spent).into(),
                unrecorded: group.into(),
            };
            groups.iter().map(group).collect()
        };
        let by_status = counted.by_status.iter().map(|(status, n)| ((*status).into(), *n));
        let damaged = Some((SessionStatus::Damaged, counted.damaged)).filter(|(_, n)| *n > 0);
        Self {
            sessions: counted.all.sessions,
            by_status: by_status.chain(damaged).collect(),
            success_rate: counted.success_rate(),
            resumed: counted.resumed,
            resume_rate: counted.resume_rate(),
            resumed_success_rate: counted.resumed_success_rate(),
            spending: (&counted.all.spent).into(),
            unrecorded: (&counted.all).into(),
            by_day: groups(&counted.by_day),
            by_model: groups(&counted.by_model),
            by_agent: groups(&counted.by_agent),
            by_workspace: groups(&counted.by_workspace),
            by_source: groups(&counted.by_source),
        }
    }
}

/// The outcome of an ended session.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct LedgerEntry {
    /// The session.
    pub id: SessionId,
    /// Its status.
    pub status: Status,
    /// The user's task.
    pub task: String,
    /// When it began.
    pub began_at: Time,
    /// When it ended.
    pub ended_at: Time,
    /// The model that it used last.
    pub model: String,
    /// The type of its project; empty, if unknown.
    pub project_type: String,
    /// How many tasks it planned.
    pub tasks: usize,
    /// How many of them failed.
    pub failed: usize,
    /// How many of them were skipped.
    pub skipped: usize,
    /// Its cost with its subagents; a lower bound if `unpriced_calls` is not zero.
    pub cost: Dollars,
    /// Model calls of unknown price.
    pub unpriced_calls: u64,
    /// Its estimated cost, if only its tokens are known. It is in no other sum.
    #[serde(rename = "estimated_cost_usd", skip_serializing_if = "Option::is_none")]
    pub estimate: Option<Dollars>,
    /// From its beginning to its end.
    pub duration_seconds: u64,
    /// Commits made during the session; null without a git work tree.
    pub commits: Option<usize>,
}

/// A search hit.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct SearchHit {
    /// The session.
    pub session: SessionId,
    /// The event.
    pub seq: Seq,
    /// When it was recorded.
    pub at: Time,
    /// The event's kind.
    pub kind: String,
    /// The source of the session; absent, if it began here.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub source: Option<String>,
    /// The text around the match, without secrets.
    pub text: String,
    /// The positions of the matches in `text`, in bytes: pairs of begin and end.
    pub matches: Vec<(usize, usize)>,
    /// The session's store, if several are searched.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub store: Option<String>,
}

impl From<Hit> for SearchHit {
    fn from(hit: Hit) -> Self {
        Self {
            session: hit.session,
            seq: hit.seq,
            at: hit.at,
            kind: hit.kind,
            matches: hit.snippet.matches().iter().map(|place| (place.start, place.end)).collect(),
            text: hit.snippet.text().to_owned(),
            source: hit.source,
            store: None,
        }
    }
}

/// The size of a session.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct DiskUseOfSession {
    /// The session.
    pub id: SessionId,
    /// The bytes of its own events.
    pub bytes: u64,
    /// Is it in the trash?
    pub trashed: bool,
}

/// The size of a store.
#[derive(Clone, Copy, Debug, Serialize, JsonSchema)]
pub struct DiskUseTotal {
    /// The total.
    pub total: u64,
    /// The size of the events.
    pub events: u64,
    /// The size of the blobs: file contents and long texts.
    pub blobs: u64,
    /// How many sessions there are.
    pub sessions: usize,
}

impl DiskUseTotal {
    /// The size of a store with this number of sessions.
    #[must_use]
    pub const fn new(used: &DiskUse, sessions: usize) -> Self {
        Self { total: used.total, events: used.events, blobs: used.blobs, sessions }
    }
}

/// The result of verifying a session.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct Verified {
    /// The session.
    pub session: SessionId,
    /// Do all of its events match their digests?
    pub sound: bool,
    /// The number of intact events.
    pub intact: u64,
    /// How many of them were scrubbed.
    pub scrubbed: u64,
    /// How many of them another program pruned.
    pub pruned: u64,
    /// The first damage.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub damage: Option<Damage>,
    /// Does its head follow from its events?
    pub head_is_right: bool,
}

impl Verified {
    /// From the verdict of a verification.
    #[must_use]
    pub fn new(session: SessionId, verdict: &Verdict) -> Self {
        Self {
            session,
            sound: verdict.is_sound(),
            intact: verdict.intact,
            scrubbed: verdict.scrubbed,
            pruned: verdict.pruned,
            damage: verdict.damage.as_ref().map(Damage::from),
            head_is_right: verdict.derived == Derived::Right,
        }
    }
}

/// The result of one check of the store or its surroundings.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct CheckFinding {
    /// What was checked.
    pub check: String,
    /// The problems; empty, if there are none.
    pub problems: Vec<String>,
    /// The repair for them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub repair: Option<String>,
    /// Was it repaired?
    pub repaired: bool,
}
