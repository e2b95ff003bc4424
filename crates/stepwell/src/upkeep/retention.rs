//! Which sessions a cleanup deletes: a policy and the sessions in, a plan out.

use std::collections::{BTreeSet, HashMap};
use std::time::Duration;

use crate::error::Result;
use crate::model::{Driver, Origin, Seq, SessionId, Status, Time};
use crate::sessions::ResumeLimits;
use crate::sessions::Stepwell;
use crate::store::Removal;
use crate::store::query::{Filter, Query};
use crate::store::query::{LedgerRows, TrashScope};
use crate::store::{SessionInfo, Target};

/// The rules of a cleanup. Without any rule it deletes nothing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Policy {
    /// Deletes sessions without a new event for this long.
    pub older_than: Option<Duration>,
    /// Keeps this many of the newest sessions. Without another rule, deletes all others.
    pub keep_last: Option<usize>,
    /// Deletes the oldest sessions until the rest has at most this many bytes.
    pub max_bytes: Option<u64>,
    /// Only sessions with one of these statuses; any, if empty.
    pub status: Vec<Status>,
    /// Only sessions with all of these tags.
    pub tags: Vec<String>,
    /// Only sessions with this driver.
    pub driver: Option<Driver>,
    /// Whether ledger rows are deleted as well: nothing else is left of their sessions.
    pub rows: LedgerRows,
    /// How long a running external agent may be silent before it counts as gone.
    pub silence: Duration,
}

impl Default for Policy {
    fn default() -> Self {
        Self {
            older_than: None,
            keep_last: None,
            max_bytes: None,
            status: Vec::new(),
            tags: Vec::new(),
            driver: None,
            rows: LedgerRows::Hidden,
            silence: ResumeLimits::default().timeout,
        }
    }
}

/// What a cleanup would do, so that it can be shown first.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Plan {
    /// Sessions to delete, oldest first. Their subagents' sessions are deleted with them.
    pub take: Vec<CleanupItem>,
    /// Sessions that match a rule but are exempt.
    pub protected: Vec<(SessionId, Exemption)>,
}

/// A session that a cleanup would delete.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CleanupItem {
    /// The session.
    pub id: SessionId,
    /// Its seq when it was judged. If the session has changed since, it stays.
    pub seq: Seq,
    /// The rule that it matches.
    pub because: CleanupReason,
    /// Its size, including its subagents' sessions.
    pub bytes: u64,
    /// How many subagents' sessions are deleted with it.
    pub subagents: usize,
}

/// A rule of a cleanup.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CleanupReason {
    /// No new event for too long.
    Age,
    /// Enough newer sessions.
    Count,
    /// Too many bytes.
    Bytes,
}

/// Why a session is exempt from cleanup.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Exemption {
    /// It runs.
    Running,
    /// It is pinned.
    Pinned,
    /// It is damaged, and a person should look at it first.
    Damaged,
    /// A rewind of it was interrupted, and only its log can finish that.
    HalfRewound,
    /// A session below it is exempt.
    Descendant(SessionId),
    /// Another user of the store started it, or a session below it.
    AnotherUsers,
}

impl Plan {
    /// The plan for all given sessions, none of which is in the trash.
    #[must_use]
    pub fn of(policy: &Policy, sessions: &[SessionInfo], now: Time) -> Self {
        let families = families(sessions);
        let mut roots: Vec<&Family<'_>> = families.iter().collect();
        roots.sort_by_key(|family| (family.updated, &family.root.head.id));
        let count = roots.len();
        let mut bytes: u64 = roots.iter().map(|family| family.bytes).sum();
        let mut plan = Self::default();
        for (n, family) in roots.into_iter().enumerate() {
            let recent = policy.keep_last.is_some_and(|keep| count - n <= keep);
            let rule = if recent { None } else { policy.names(family, bytes, now) };
            let Some(because) = rule else { continue };
            if let Some(protection) = family.protection(policy.silence, now) {
                plan.protected.push((family.root.head.id.clone(), protection));
                continue;
            }
            bytes -= family.bytes;
            plan.take.push(CleanupItem {
                id: family.root.head.id.clone(),
                seq: family.root.head.seq,
                because,
                bytes: family.bytes,
                subagents: family.below.len(),
            });
        }
        plan
    }

    /// The plan without these sessions of other users.
    #[must_use]
    pub fn but(mut self, of_others: &BTreeSet<SessionId>) -> Self {
        let is_others = |item: &CleanupItem| of_others.contains(&item.id);
        let (others, take) = self.take.into_iter().partition::<Vec<_>, _>(is_others);
        let kept = others.into_iter().map(|item| (item.id, Exemption::AnotherUsers));
        self.protected.extend(kept);
        Self { take, ..self }
    }

    /// The size that the plan frees.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.take.iter().map(|taken| taken.bytes).sum()
    }

    /// The plan as targets for a store.
    #[must_use]
    pub fn targets(&self) -> Vec<Target> {
        let target = |taken: &CleanupItem| Target {
            id: taken.id.clone(),
            unless_past: Some(taken.seq),
            place: TrashScope::Kept,
        };
        self.take.iter().map(target).collect()
    }
}

impl Policy {
    /// The rule that a family matches, when all remaining families have `bytes`.
    fn names(&self, family: &Family<'_>, bytes: u64, now: Time) -> Option<CleanupReason> {
        let head = &family.root.head;
        let meant = (self.status.is_empty() || self.status.contains(&head.status))
            && self.tags.iter().all(|tag| head.tags.contains(tag))
            && self.driver.is_none_or(|driver| driver == head.driver);
        let only_count =
            self.keep_last.is_some() && self.older_than.is_none() && self.max_bytes.is_none();
        if !meant {
            None
        } else if self.older_than.is_some_and(|age| now.since(family.updated) >= age) {
            Some(CleanupReason::Age)
        } else if self.max_bytes.is_some_and(|limit| bytes > limit) {
            Some(CleanupReason::Bytes)
        } else {
            only_count.then_some(CleanupReason::Count)
        }
    }
}

/// A session with its subagents' sessions: they are kept or deleted together.
struct Family<'a> {
    root: &'a SessionInfo,
    below: Vec<&'a SessionInfo>,
    /// The last update of any of them.
    updated: Time,
    bytes: u64,
}

impl Family<'_> {
    fn protection(&self, silence: Duration, now: Time) -> Option<Exemption> {
        protection(self.root, silence, now).or_else(|| {
            let protected = |below: &&&SessionInfo| protection(below, silence, now).is_some();
            let below = self.below.iter().find(protected)?;
            Some(Exemption::Descendant(below.head.id.clone()))
        })
    }
}

fn protection(info: &SessionInfo, silence: Duration, now: Time) -> Option<Exemption> {
    // A lease proves that a session is in use. An external agent has no lease; a status of running
    // counts until it has been silent for too long.
    let believed = match info.head.driver {
        Driver::Own => true,
        Driver::External => now.since(info.head.updated_at) < silence,
    };
    let runs = info.head.status == Status::Running && believed;
    if runs || info.held.is_some() {
        Some(Exemption::Running)
    } else if info.head.pinned {
        Some(Exemption::Pinned)
    } else if info.damage.is_some() {
        Some(Exemption::Damaged)
    } else {
        info.head.rewinding.map(|_| Exemption::HalfRewound)
    }
}

/// Groups sessions by the root of their subagents. A subagent without its parent is its own root.
fn families(sessions: &[SessionInfo]) -> Vec<Family<'_>> {
    let of_subagent = |info: &SessionInfo| matches!(info.head.origin, Origin::Subagent { .. });
    // Without subagents, the index is not needed.
    let known = if sessions.iter().any(of_subagent) { sessions } else { &[] };
    let index: HashMap<&SessionId, usize> =
        known.iter().enumerate().map(|(n, info)| (&info.head.id, n)).collect();
    let parent = |info: &SessionInfo| match &info.head.origin {
        Origin::Subagent { parent } => index.get(parent).copied(),
        _ => None,
    };
    let mut families: Vec<Option<Family<'_>>> = Vec::new();
    families.resize_with(sessions.len(), || None);
    for (n, info) in sessions.iter().enumerate() {
        // A store cannot create a cycle; the bound makes a forged one finite.
        let (mut at, mut steps) = (n, 0);
        while let Some(above) = parent(&sessions[at]).filter(|_| steps < sessions.len()) {
            (at, steps) = (above, steps + 1);
        }
        let root = &sessions[at];
        let (below, updated, bytes) = (Vec::new(), root.head.updated_at, 0);
        let family = families[at].get_or_insert(Family { root, below, updated, bytes });
        family.updated = family.updated.max(info.head.updated_at);
        family.bytes += info.bytes;
        if n != at {
            family.below.push(info);
        }
    }
    families.into_iter().flatten().collect()
}

impl Stepwell {
    /// What a cleanup would delete.
    pub fn plan_cleanup(&self, policy: &Policy) -> Result<Plan> {
        let filter = Filter { rows: policy.rows, ..Filter::default() };
        let sessions = self.store().list(&Query { filter, ..Query::default() })?.sessions;
        Ok(Plan::of(policy, &sessions, self.now()))
    }

    /// Deletes a plan's sessions, except those that have changed since.
    pub fn clean_up(&self, plan: &Plan) -> Result<Removal> {
        let removal = self.store().maintain().trash(&plan.targets())?;
        for id in &removal.taken {
            tracing::info!(session = %id, "session_deleted");
        }
        Ok(removal)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::log::Head;
    use crate::model::{Created, Recorded};
    use crate::store::Damage;

    const DAY: Duration = Duration::from_secs(24 * 60 * 60);
    const NOW: Time = Time::from_micros(1_800_000_000_000_000);

    /// A finished session of 100 bytes, last updated this many days ago.
    fn session(id: &str, days: u32) -> SessionInfo {
        let event = Created::new(id.parse().unwrap(), "t").into();
        let at = NOW.minus(DAY * days);
        let mut head = Head::begin(&Recorded { seq: Seq::new(9), at, id: None, event }).unwrap();
        head.status = Status::Success;
        SessionInfo {
            head,
            held: None,
            own_from: Seq::FIRST,
            trashed_at: None,
            damage: None,
            bytes: 100,
        }
    }

    fn below(id: &str, parent: &str, days: u32) -> SessionInfo {
        let mut info = session(id, days);
        info.head.origin = Origin::Subagent { parent: parent.parse().unwrap() };
        info
    }

    fn taken(policy: &Policy, sessions: &[SessionInfo]) -> Vec<String> {
        Plan::of(policy, sessions, NOW).take.iter().map(|taken| taken.id.to_string()).collect()
    }

    fn older_than(days: u32) -> Policy {
        Policy { older_than: Some(DAY * days), ..Policy::default() }
    }

    #[test]
    fn a_policy_without_rules_deletes_nothing() {
        assert!(taken(&Policy::default(), &[session("a", 900)]).is_empty());
    }

    #[test]
    fn age_deletes_old_sessions_oldest_first() {
        let all = [session("a", 8), session("b", 6), session("c", 30), session("d", 7)];
        assert_eq!(taken(&older_than(7), &all), ["c", "a", "d"]);
    }

    #[test]
    fn the_newest_are_kept_whatever_their_age() {
        let all = [session("a", 8), session("b", 9), session("c", 30)];
        let policy = Policy { keep_last: Some(2), ..older_than(7) };
        assert_eq!(taken(&policy, &all), ["c"]);
        let count = Policy { keep_last: Some(1), ..Policy::default() };
        assert_eq!(taken(&count, &all), ["c", "b"]);
    }

    #[test]
    fn a_size_limit_deletes_the_oldest_until_the_rest_fits() {
        let all = [session("a", 1), session("b", 2), session("c", 3)];
        let policy = Policy { max_bytes: Some(150), ..Policy::default() };
        assert_eq!(taken(&policy, &all), ["c", "b"]);
        assert_eq!(Plan::of(&policy, &all, NOW).bytes(), 200);
    }

    #[test]
    fn status_and_tags_narrow_what_may_go() {
        let mut failed = session("b", 9);
        failed.head.status = Status::Failed;
        failed.head.tags.insert("tmp".to_owned());
        let all = [session("a", 9), failed];
        let by_status = Policy { status: vec![Status::Failed], ..older_than(7) };
        assert_eq!(taken(&by_status, &all), ["b"]);
        let by_tag = Policy { tags: vec!["tmp".to_owned()], ..older_than(7) };
        assert_eq!(taken(&by_tag, &all), ["b"]);
    }

    #[test]
    fn running_pinned_damaged_and_half_rewound_sessions_stay_and_the_plan_says_why() {
        let (mut runs, mut pinned, mut damaged, mut half) =
            (session("a", 9), session("b", 9), session("c", 9), session("d", 9));
        runs.head.status = Status::Running;
        pinned.head.pinned = true;
        damaged.damage = Some(Damage { seq: Seq::FIRST, what: "x".to_owned() });
        half.head.rewinding = Some(Seq::FIRST);
        let plan = Plan::of(&older_than(7), &[runs, pinned, damaged, half], NOW);
        assert!(plan.take.is_empty());
        let why: Vec<_> = plan.protected.into_iter().map(|(_, why)| why).collect();
        let (damaged, half) = (Exemption::Damaged, Exemption::HalfRewound);
        assert_eq!(why, [Exemption::Running, Exemption::Pinned, damaged, half]);
    }

    #[test]
    fn a_protected_descendant_protects_its_ancestors() {
        let mut deep = below("c", "b", 9);
        deep.head.pinned = true;
        let all = [session("a", 9), below("b", "a", 9), deep];
        let plan = Plan::of(&older_than(7), &all, NOW);
        let c = "c".parse().unwrap();
        assert_eq!(plan.protected, [("a".parse().unwrap(), Exemption::Descendant(c))]);
        assert!(plan.take.is_empty());
    }

    #[test]
    fn subagents_go_with_their_parent_and_count_with_it() {
        let all = [session("a", 9), below("b", "a", 9), below("c", "b", 8)];
        let plan = Plan::of(&older_than(7), &all, NOW);
        assert_eq!(plan.take.len(), 1);
        assert_eq!((plan.take[0].bytes, plan.take[0].subagents), (300, 2));
        // One of them is recent, so the family is.
        let fresh = [session("a", 9), below("b", "a", 1)];
        assert!(taken(&older_than(7), &fresh).is_empty());
    }

    #[test]
    fn a_fork_is_independent_of_its_parent() {
        let mut fork = session("f", 1);
        fork.head.origin = Origin::Fork { parent: "a".parse().unwrap(), at: Seq::FIRST };
        fork.head.pinned = true;
        assert_eq!(taken(&older_than(7), &[session("a", 9), fork]), ["a"]);
    }

    #[test]
    fn a_silent_external_agent_can_be_deleted() {
        let mut external = session("a", 9);
        external.head.status = Status::Running;
        external.head.driver = Driver::External;
        assert_eq!(taken(&older_than(7), &[external.clone()]), ["a"]);
        // An agent that reports now and then counts as running.
        external.head.updated_at = NOW.minus(Duration::from_secs(29 * 60));
        let count = Policy { keep_last: Some(0), ..Policy::default() };
        let plan = Plan::of(&count, &[external], NOW);
        assert_eq!(plan.protected, [("a".parse().unwrap(), Exemption::Running)]);
        assert!(plan.take.is_empty());
    }
}
