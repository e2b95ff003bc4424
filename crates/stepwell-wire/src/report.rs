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

/// How sessions went, and what they cost.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct Statistics {
    /// How many there are, subagents' included.
    pub sessions: u64,
    /// How many stand how.
    pub by_status: BTreeMap<SessionStatus, u64>,
    /// Of those that ended in success, failure or by being abandoned, the part that succeeded;
    /// null, if none ended.
    pub success_rate: Option<f64>,
    /// How many were resumed.
    pub resumed: u64,
    /// The part of them that was resumed; null, if there is none.
    pub resume_rate: Option<f64>,
    /// Of those that were resumed, the part that succeeded; null, if none was resumed.
    pub resumed_success_rate: Option<f64>,
    /// What all of them spent.
    #[serde(flatten)]
    pub spending: Spending,
    /// What else they cost.
    #[serde(flatten)]
    pub unrecorded: UnrecordedCost,
    /// By the day on which they began.
    pub by_day: Vec<StatisticsGroup>,
    /// By the model that they used last.
    pub by_model: Vec<StatisticsGroup>,
    /// By their agent.
    pub by_agent: Vec<StatisticsGroup>,
    /// By the folder that they worked in.
    pub by_workspace: Vec<StatisticsGroup>,
    /// By the system that they came from; `-`, if they were begun here.
    pub by_source: Vec<StatisticsGroup>,
}

/// Some sessions and what they spent.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct StatisticsGroup {
    /// The day, model, agent or folder; `-`, if it has no name.
    pub name: String,
    /// How many sessions.
    pub sessions: u64,
    /// What they spent.
    #[serde(flatten)]
    pub spending: Spending,
    /// What else they cost.
    #[serde(flatten)]
    pub unrecorded: UnrecordedCost,
}

/// The cost of sessions of which nobody recorded it.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct UnrecordedCost {
    /// What those may have cost of which only the tokens are known. It is in no other sum.
    #[serde(rename = "estimated_cost_usd", skip_serializing_if = "Option::is_none")]
    pub estimate: Option<Dollars>,
    /// How many sessions made calls whose price is not known, and are not estimated either.
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

/// What came of a session that has ended.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct LedgerEntry {
    /// The session.
    pub id: SessionId,
    /// How it ended.
    pub status: Status,
    /// What the user asked for.
    pub task: String,
    /// When it began.
    pub began_at: Time,
    /// When it ended.
    pub ended_at: Time,
    /// The model that it used last.
    pub model: String,
    /// The type of its project; empty, if it was not told.
    pub project_type: String,
    /// How many tasks it planned.
    pub tasks: usize,
    /// How many of them failed.
    pub failed: usize,
    /// How many of them were skipped.
    pub skipped: usize,
    /// What it cost with its subagents; a lower bound if `unpriced_calls` is not zero.
    pub cost: Dollars,
    /// Model calls whose price is not known.
    pub unpriced_calls: u64,
    /// What it may have cost, where only its tokens are known. It is in no other sum.
    #[serde(rename = "estimated_cost_usd", skip_serializing_if = "Option::is_none")]
    pub estimate: Option<Dollars>,
    /// From its beginning to its end.
    pub duration_seconds: u64,
    /// Commits that were made meanwhile; null, where there is no git work tree.
    pub commits: Option<usize>,
}

/// A place where a search found its words.
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
    /// The system that the session came from; absent, if it was begun here.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub source: Option<String>,
    /// Text around the words, without secrets.
    pub text: String,
    /// Where the words are in `text`, in bytes: pairs of begin and end.
    pub matches: Vec<(usize, usize)>,
    /// The store that it is in, where several are searched.
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

/// How many bytes a session takes.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct DiskUseOfSession {
    /// The session.
    pub id: SessionId,
    /// The bytes of its own events.
    pub bytes: u64,
    /// Is it in the trash?
    pub trashed: bool,
}

/// How many bytes a store takes.
#[derive(Clone, Copy, Debug, Serialize, JsonSchema)]
pub struct DiskUseTotal {
    /// All of them.
    pub total: u64,
    /// Those of events.
    pub events: u64,
    /// Those of blobs: file contents and long texts.
    pub blobs: u64,
    /// How many sessions there are.
    pub sessions: usize,
}

impl DiskUseTotal {
    /// What a store takes, with so many sessions in it.
    #[must_use]
    pub const fn new(used: &DiskUse, sessions: usize) -> Self {
        Self { total: used.total, events: used.events, blobs: used.blobs, sessions }
    }
}

/// Whether a session is as it was recorded.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct Verified {
    /// The session.
    pub session: SessionId,
    /// Is all of it as it was recorded?
    pub sound: bool,
    /// How many events are intact.
    pub intact: u64,
    /// How many of them were scrubbed.
    pub scrubbed: u64,
    /// How many of them another program had pruned.
    pub pruned: u64,
    /// Where it is damaged.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub damage: Option<Damage>,
    /// Does its summary in lists follow from its events?
    pub head_is_right: bool,
}

impl Verified {
    /// What reading a session again found.
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

/// What a check of the store or its surroundings found.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct CheckFinding {
    /// What was checked.
    pub check: String,
    /// What is wrong; empty, if all is well.
    pub problems: Vec<String>,
    /// What a repair does about it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub repair: Option<String>,
    /// Was it repaired?
    pub repaired: bool,
}
