//! Whether a session can be resumed, and if not, why.

use std::collections::BTreeSet;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::error::Error;
use crate::error::Result;
use crate::model::SessionId;
use crate::model::{Change, Driver, Edited, Event, PhaseSet, Seq, Status, Time};
use crate::sessions::well::Stepwell;
use crate::store::query::{Page, Query};
use crate::store::{Order, SessionInfo, Span};

/// When an external agent counts as gone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ResumeLimits {
    /// The longest time since its last activity.
    pub timeout: Duration,
    /// The number of errors that is too many.
    pub max_errors: u64,
    /// How far ahead another machine's clock may be.
    pub drift: Duration,
}

impl Default for ResumeLimits {
    fn default() -> Self {
        Self {
            timeout: Duration::from_secs(30 * 60),
            max_errors: 3,
            drift: Duration::from_secs(60),
        }
    }
}

/// Can a session be resumed?
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ResumeDecision {
    /// The answer.
    pub should_resume: bool,
    /// The first failed check's reason, or `resumable`.
    pub reason: ResumeReason,
    /// Every check, in order.
    pub checks: Vec<ResumeCheck>,
}

/// One check and its result.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ResumeCheck {
    /// The reason if it fails.
    pub reason: ResumeReason,
    /// Did it pass?
    pub passed: bool,
}

/// Why a session can or cannot be resumed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum ResumeReason {
    /// All checks passed.
    Resumable,
    /// The session does not exist.
    NotFound,
    /// It is damaged.
    Damaged,
    /// It is in the trash.
    Trashed,
    /// A runner has it.
    Running,
    /// Its user gave it up.
    Abandoned,
    /// It is done.
    Finished,
    /// Its agent did not report that it can be resumed.
    NotReady,
    /// Sessions in its phase cannot be resumed.
    PhaseNotResumable,
    /// Its last activity is too long ago.
    TimedOut,
    /// Its last activity lies in the future.
    InTheFuture,
    /// It had too many errors.
    TooManyErrors,
}

/// Events per read, when searching for the last activity.
const PAGE: usize = 64;

/// Sessions per read, when searching for those that can be resumed.
const LOOK: usize = 200;

impl Stepwell {
    /// Whether a session can be resumed.
    pub fn resume_decision(&self, id: &SessionId, limits: ResumeLimits) -> Result<ResumeDecision> {
        match self.store().info(id) {
            Ok(info) => self.decide_resume(Some(&info), limits),
            Err(Error::NoSession(_)) => {
                tracing::info!(session = %id, "session_not_found");
                Ok(ResumeDecision::of(None, self.now(), limits))
            }
            Err(error) => Err(error),
        }
    }

    /// Whether a session with this info can be resumed.
    pub fn decide_resume(
        &self,
        info: Option<&SessionInfo>,
        limits: ResumeLimits,
    ) -> Result<ResumeDecision> {
        let mut info = info.cloned();
        if let Some(info) = info.as_mut().filter(|info| info.head.driver == Driver::External) {
            info.head.updated_at = self.active_at(info)?;
        }
        Ok(ResumeDecision::of(info.as_ref(), self.now(), limits))
    }

    /// Lists sessions that can be resumed now. Every page but the last has the query's length.
    pub fn list_ready(&self, query: &Query, limits: ResumeLimits) -> Result<Page> {
        let is_ready = |info: &SessionInfo| {
            self.decide_resume(Some(info), limits).is_ok_and(|it| it.should_resume)
        };
        let mut ready = Page { sessions: Vec::new(), next: query.after };
        loop {
            let rest = query.limit - ready.sessions.len();
            let looked = Query { after: ready.next, limit: rest.max(LOOK), ..query.clone() };
            let mut page = self.list(&looked)?;
            let found = page.sessions.iter().enumerate().filter(|(_, info)| is_ready(info));
            let ends_at = found.map(|(nth, _)| nth + 1).nth(rest.saturating_sub(1));
            // Only the store knows where a page ends, so a page that is too long is read again.
            if let Some(limit) = ends_at.filter(|end| *end < page.sessions.len()) {
                page = self.list(&Query { limit, ..looked })?;
            }
            ready.sessions.extend(page.sessions.into_iter().filter(is_ready));
            ready.next = page.next;
            if ready.next.is_none() || ready.sessions.len() >= query.limit {
                return Ok(ready);
            }
        }
    }

    /// When an external agent last did something. Labels, tags and pins are not its activity.
    fn active_at(&self, info: &SessionInfo) -> Result<Time> {
        let (mut to, mut limit) = (info.head.seq, 1);
        loop {
            let span = Span { from: Seq::FIRST, to, order: Order::Newest, limit };
            let events = self.store().events(&info.head.id, span)?.events;
            if let Some(last) = events.iter().find(|it| !is_filing(&it.event)) {
                let filed_since = last.seq < info.head.seq;
                let updated_at = info.head.updated_at;
                return Ok(if filed_since { last.at.min(updated_at) } else { updated_at });
            }
            limit = PAGE;
            match events.last() {
                Some(oldest) if oldest.seq > Seq::FIRST => to = oldest.seq.prev(),
                _ => return Ok(info.head.updated_at),
            }
        }
    }
}

/// Does an event change only how a session is found and kept?
fn is_filing(event: &Event) -> bool {
    let Event::Edited(edited) = event else { return false };
    let rest = Edited {
        label: Change::Keep,
        tag: BTreeSet::new(),
        untag: BTreeSet::new(),
        pinned: None,
        trashed: None,
        who: None,
        ..edited.clone()
    };
    rest == Edited::default()
}

impl ResumeDecision {
    /// Decides, purely from its arguments.
    #[must_use]
    pub fn of(info: Option<&SessionInfo>, now: Time, limits: ResumeLimits) -> Self {
        use ResumeReason as Reason;
        let mut checks = vec![(Reason::NotFound, info.is_some())];
        if let Some(info) = info {
            let head = &info.head;
            checks.push((Reason::Damaged, info.damage.is_none()));
            checks.push((Reason::Trashed, info.trashed_at.is_none()));
            match head.driver {
                Driver::Own => {
                    checks.push((Reason::Running, head.status != Status::Running));
                    checks.push((Reason::Abandoned, head.status != Status::Abandoned));
                    checks.push((Reason::Finished, head.status != Status::Success));
                }
                Driver::External => {
                    let resumable = |set: PhaseSet| head.phase.is_some_and(|p| set.resumable(p));
                    let phase = head.phases.is_some_and(resumable);
                    let age = now.since(head.updated_at);
                    checks.push((Reason::NotReady, head.ready));
                    checks.push((Reason::PhaseNotResumable, phase));
                    checks.push((Reason::TimedOut, age < limits.timeout));
                    checks.push((Reason::InTheFuture, head.updated_at <= now.plus(limits.drift)));
                    checks.push((Reason::TooManyErrors, head.errors < limits.max_errors));
                }
            }
        }
        let failed = checks.iter().find(|(_, passed)| !passed).copied();
        let reason = failed.map_or(Reason::Resumable, |(reason, _)| reason);
        let checks = checks.into_iter().map(|(reason, passed)| ResumeCheck { reason, passed });
        Self { should_resume: failed.is_none(), reason, checks: checks.collect() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::log::Head;
    use crate::model::{Created, Phase, Recorded, Seq};

    const NOW: Time = Time::from_micros(1_000_000_000_000);

    fn info(driver: Driver) -> SessionInfo {
        let mut created =
            Created::new("a-1".parse().unwrap(), "t").with_phases(PhaseSet::Lifecycle);
        created.driver = driver;
        let first = Recorded { seq: Seq::FIRST, at: NOW, id: None, event: created.into() };
        let head = Head::begin(&first).unwrap();
        SessionInfo {
            head,
            held: None,
            own_from: Seq::FIRST,
            trashed_at: None,
            damage: None,
            bytes: 0,
        }
    }

    /// A session that passes all five checks of an external agent.
    fn good() -> SessionInfo {
        let mut info = info(Driver::External);
        info.head.phase = Some(Phase::Approval);
        info.head.ready = true;
        info
    }

    #[test]
    fn labels_tags_and_pins_are_not_activity_of_an_agent() {
        let well = Stepwell::in_memory();
        let created = Created::new("a-1".parse().unwrap(), "t").with_phases(PhaseSet::Lifecycle);
        let created = Created { driver: Driver::External, ..created };
        let begun = well.now().minus(Duration::from_secs(45 * 60));
        let create = crate::store::Create { created, event_id: None, at: Some(begun), claim: None };
        well.store().write(crate::store::Write::Create(create)).unwrap();
        let id = "a-1".parse().unwrap();
        let timed_out = || {
            let decision = well.resume_decision(&id, ResumeLimits::default()).unwrap();
            let is_it = |it: &&ResumeCheck| it.reason == ResumeReason::TimedOut;
            !decision.checks.iter().find(is_it).unwrap().passed
        };
        assert!(timed_out());
        let tagged = Edited { tag: ["zz".to_owned()].into(), ..Edited::default() };
        let label = Change::Set("mine".to_owned());
        for filed in [tagged, Edited { label, pinned: Some(true), ..Edited::default() }] {
            well.append_freely(&id, filed.into()).unwrap();
            assert!(timed_out());
        }
        let ready = Edited { ready: Some(true), ..Edited::default() };
        well.append_freely(&id, ready.into()).unwrap();
        assert!(!timed_out());
    }

    fn reason(change: impl FnOnce(&mut SessionInfo)) -> ResumeReason {
        let mut info = good();
        change(&mut info);
        let decision = ResumeDecision::of(Some(&info), NOW, ResumeLimits::default());
        assert_eq!(decision.should_resume, decision.reason == ResumeReason::Resumable);
        decision.reason
    }

    #[test]
    fn each_of_the_five_checks_has_a_reason_of_its_own() {
        assert_eq!(
            ResumeDecision::of(None, NOW, ResumeLimits::default()).reason,
            ResumeReason::NotFound
        );
        assert_eq!(reason(|_| ()), ResumeReason::Resumable);
        assert_eq!(reason(|s| s.head.ready = false), ResumeReason::NotReady);
        assert_eq!(
            reason(|s| s.head.phase = Some(Phase::Executing)),
            ResumeReason::PhaseNotResumable
        );
        let ago = |secs| NOW.minus(Duration::from_secs(secs));
        assert_eq!(reason(|s| s.head.updated_at = ago(30 * 60)), ResumeReason::TimedOut);
        assert_eq!(reason(|s| s.head.updated_at = ago(30 * 60 - 1)), ResumeReason::Resumable);
        assert_eq!(reason(|s| s.head.errors = 3), ResumeReason::TooManyErrors);
        assert_eq!(reason(|s| s.head.errors = 2), ResumeReason::Resumable);
    }

    #[test]
    fn a_time_ahead_of_the_clock_is_fresh_only_within_drift() {
        let ahead = |secs| NOW.plus(Duration::from_secs(secs));
        assert_eq!(reason(|s| s.head.updated_at = ahead(60)), ResumeReason::Resumable);
        assert_eq!(reason(|s| s.head.updated_at = ahead(61)), ResumeReason::InTheFuture);
    }

    #[test]
    fn an_own_run_is_judged_by_its_status() {
        let decide = |status| {
            let mut info = info(Driver::Own);
            info.head.status = status;
            ResumeDecision::of(Some(&info), NOW, ResumeLimits::default()).reason
        };
        assert_eq!(decide(Status::Running), ResumeReason::Running);
        assert_eq!(decide(Status::Success), ResumeReason::Finished);
        assert_eq!(decide(Status::Abandoned), ResumeReason::Abandoned);
        for status in [Status::Interrupted, Status::Partial, Status::Failed, Status::Paused] {
            assert_eq!(decide(status), ResumeReason::Resumable);
        }
    }
}
