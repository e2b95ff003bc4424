//! Statistics: how sessions ended and what they cost.

use std::collections::BTreeMap;

use crate::model::{Estimate, Money, Spent, Status};
use crate::store::SessionInfo;

/// Counts of sessions. A session counts on the day it began, for the model it used last.
#[derive(Clone, Debug, Default)]
pub struct Statistics {
    /// All sessions.
    pub all: SpentGroup,
    /// Number of sessions by status, without damaged ones.
    pub by_status: BTreeMap<Status, u64>,
    /// Number of damaged sessions.
    pub damaged: u64,
    /// Number of resumed sessions.
    pub resumed: u64,
    /// Number of resumed sessions that succeeded.
    pub resumed_successes: u64,
    /// By the day on which they began.
    pub by_day: BTreeMap<String, SpentGroup>,
    /// By the model that they used last.
    pub by_model: BTreeMap<String, SpentGroup>,
    /// By agent.
    pub by_agent: BTreeMap<String, SpentGroup>,
    /// By workspace.
    pub by_workspace: BTreeMap<String, SpentGroup>,
    /// By the system that they were imported from.
    pub by_source: BTreeMap<String, SpentGroup>,
}

/// A group of sessions and what it spent.
#[derive(Clone, Copy, Debug, Default)]
pub struct SpentGroup {
    /// Number of sessions.
    pub sessions: u64,
    /// The recorded spending.
    pub spent: Spent,
    /// The estimated cost of calls of which only the tokens are known. It is in no other sum.
    pub estimate: Money,
    /// Number of sessions with an estimate.
    pub estimated: u64,
    /// Number of sessions with calls of unknown price that have no estimate either.
    pub unpriced: u64,
}

impl SpentGroup {
    fn count(&mut self, spent: &Spent, estimate: Option<Estimate>) {
        self.sessions += 1;
        self.spent += *spent;
        if let Some(estimate) = estimate {
            self.estimate += estimate.cost;
            self.estimated += 1;
        }
        let unknown = estimate.map_or(spent.unpriced > 0, |it| it.partial);
        self.unpriced += u64::from(unknown);
    }

    /// The cost for lists: the recorded cost, an estimate after `~`, and `?` for calls without
    /// either. They are shown apart, because their sum would mean nothing.
    #[must_use]
    pub fn price(&self) -> String {
        let mut parts = Vec::new();
        if !self.spent.cost.is_zero() {
            parts.push(format!("${:.4}", self.spent.cost));
        }
        if self.estimated > 0 {
            parts.push(format!("~${:.4}", self.estimate));
        }
        if self.unpriced > 0 {
            parts.push("?".to_owned());
        }
        if parts.is_empty() { "-".to_owned() } else { parts.join(" + ") }
    }
}

/// The name of a group without one.
const NAMELESS: &str = "-";

impl Statistics {
    /// Counts a session that began on `day`, by the caller's calendar, with an estimate of its cost
    /// if there is one.
    pub fn count(&mut self, info: &SessionInfo, day: String, estimate: Option<Estimate>) {
        let head = &info.head;
        match info.damage {
            Some(_) => self.damaged += 1,
            None => *self.by_status.entry(head.status).or_default() += 1,
        }
        if head.resumes > 0 {
            self.resumed += 1;
            self.resumed_successes += u64::from(head.status == Status::Success);
        }
        let named = |name: &str| if name.is_empty() { NAMELESS } else { name }.to_owned();
        let (model, agent) = (named(&head.model), named(&head.agent));
        let workspace = named(&head.workspace);
        let source = named(head.system().map_or("", String::as_str));
        let groups = [
            &mut self.all,
            self.by_day.entry(day).or_default(),
            self.by_model.entry(model).or_default(),
            self.by_agent.entry(agent).or_default(),
            self.by_workspace.entry(workspace).or_default(),
            self.by_source.entry(source).or_default(),
        ];
        groups.into_iter().for_each(|group| group.count(&head.spent, estimate));
    }

    /// The share of ended sessions that succeeded; `None` if none has ended.
    #[must_use]
    pub fn success_rate(&self) -> Option<f64> {
        let ended = self.by_status.iter().filter(|(status, _)| status.has_ended());
        let done = self.by_status.get(&Status::Success).copied().unwrap_or(0);
        rate(done, ended.map(|(_, n)| n).sum())
    }

    /// The share of sessions that were resumed; `None` if there are no sessions.
    #[must_use]
    pub fn resume_rate(&self) -> Option<f64> {
        rate(self.resumed, self.all.sessions)
    }

    /// The share of resumed sessions that succeeded; `None` if none was resumed.
    #[must_use]
    pub fn resumed_success_rate(&self) -> Option<f64> {
        rate(self.resumed_successes, self.resumed)
    }
}

fn rate(part: u64, whole: u64) -> Option<f64> {
    (whole > 0).then(|| part as f64 / whole as f64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::StopReason;
    use crate::sessions::Stepwell;
    use crate::store::query::Query;

    #[test]
    fn rates_count_only_ended_or_resumed_sessions() {
        let well = Stepwell::in_memory();
        let run = |agent: &str, status| {
            let session = well.create(well.draft("t").with_agent(agent)).unwrap();
            let id = session.id().clone();
            session.finish(status, Some(StopReason::LlmDone)).unwrap();
            id
        };
        run("a", Status::Success);
        run("", Status::Failed);
        let partial = run("a", Status::Partial);
        well.resume(&partial).unwrap().finish(Status::Success, None).unwrap();
        let mut counted = Statistics::default();
        assert_eq!((counted.success_rate(), counted.resume_rate()), (None, None));
        for info in well.sessions(Query::default()) {
            counted.count(&info.unwrap(), "2026-03-02".to_owned(), None);
        }
        assert_eq!(counted.all.sessions, 3);
        assert_eq!(counted.success_rate(), Some(2.0 / 3.0));
        assert_eq!(counted.resume_rate(), Some(1.0 / 3.0));
        assert_eq!(counted.resumed_success_rate(), Some(1.0));
        assert_eq!(counted.by_agent[NAMELESS].sessions, 1);
        assert_eq!(counted.by_day["2026-03-02"].sessions, 3);
    }

    #[test]
    fn one_session_without_a_price_does_not_hide_what_the_others_cost() {
        let money = |dollars: &str| dollars.parse::<Money>().unwrap();
        let spent = |cost: Option<Money>| {
            let mut spent = Spent::default();
            spent.count(crate::model::Usage { input: 9, ..crate::model::Usage::default() }, cost);
            spent
        };
        let mut group = SpentGroup::default();
        assert_eq!(group.price(), "-");
        group.count(&spent(None), None);
        assert_eq!(group.price(), "?");
        group.count(&spent(Some(money("0.25"))), None);
        let estimate = |partial| Estimate { cost: money("0.5"), partial };
        group.count(&spent(None), Some(estimate(false)));
        assert_eq!(group.price(), "$0.2500 + ~$0.5000 + ?");
        assert_eq!((group.estimated, group.unpriced, group.spent.cost), (1, 1, money("0.25")));
        group.count(&spent(None), Some(estimate(true)));
        assert_eq!((group.estimated, group.unpriced), (2, 2));
    }
}
