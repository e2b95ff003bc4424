//! The head: a session's current state, folded from its events.

mod reading;

pub use reading::ImportedSpent;

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use crate::model::usage::is_zero;
use crate::model::{
    Created, Driver, Edited, Elsewhere, Epoch, Event, Lane, Message, Money, Origin, Phase,
    PhaseSet, Recorded, Restored, Rewinding, Rewound, Seq, SessionId, Settings, Source, SpecHash,
    Spent, Status, StopReason, Time, Undone, Who,
};

/// How much of a task or an error the head repeats. The event has the rest; the head is rewritten
/// at every append and must stay small.
pub const PREVIEW_BYTES: usize = 2_000;

/// The longest scope, and the longest system name by which sessions can be listed. Both are
/// indexed.
pub const MAX_SCOPE_BYTES: usize = 1_000;

/// A session's current state. Its size does not depend on the log's length: what can grow (tasks,
/// files, nodes, phase history) is found through keyed events.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Head {
    /// The session's id.
    pub id: SessionId,
    /// The seq of its last event.
    pub seq: Seq,
    /// When the session began.
    pub created_at: Time,
    /// When an event was last recorded.
    pub updated_at: Time,
    /// The start of the task.
    pub task: String,
    /// The agent.
    pub agent: String,
    /// The model that last answered in the main lane; in a flow, in any lane.
    /// [`Self::model_provider`] is its provider.
    pub model: String,
    /// The provider of the session's first model.
    pub provider: String,
    /// The folder that it works in.
    pub workspace: String,
    /// Who drives it.
    pub driver: Driver,
    /// What it grew out of.
    pub origin: Origin,
    /// The flow that it runs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub flow: Option<FlowRef>,
    /// Where it was imported from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source: Option<Source>,
    /// What it belongs to, in the terms of the program that stores it here.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scope: Option<String>,
    /// Its status. In a head from a store, `running` means that its runner is alive; otherwise it
    /// reads `interrupted`.
    pub status: Status,
    /// Why the run stopped.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stop_reason: Option<StopReason>,
    /// The error that stopped it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// The phases of its work.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub phases: Option<PhaseSet>,
    /// Its current phase.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub phase: Option<Phase>,
    /// How often plan has gone back to discuss since the work began.
    #[serde(default, skip_serializing_if = "no_returns")]
    pub discuss_returns: u32,
    /// Can its external agent resume it?
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub ready: bool,
    /// Its name for people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub label: Option<String>,
    /// Its tags.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub tags: BTreeSet<String>,
    /// The users' own keys and values.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub metadata: BTreeMap<String, serde_json::Value>,
    /// What the work must achieve.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub goal: Option<String>,
    /// The dollars that the whole session may spend.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub budget: Option<Money>,
    /// Is it exempt from cleanup?
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub pinned: bool,
    /// Completed steps in all lanes, including a fork's shared prefix.
    pub steps: u64,
    /// Recorded messages, counted in the same way.
    pub messages: u64,
    /// What this session itself spent. A fork starts at zero.
    pub spent: Spent,
    /// Errors recorded.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub errors: u64,
    /// The last error.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_error: Option<LastError>,
    /// How often it was resumed.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub resumes: u64,
    /// Open questions.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub open_gates: u64,
    /// Queued messages that no runner has delivered yet.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub unheard: u64,
    /// The lease whose runner was last asked to stop.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stop_asked: Option<Epoch>,
    /// Did a person ask the run to stop, without a status or message since?
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub stopping: bool,
    /// Do prunes hide events that a fork shares?
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub hides: bool,
    /// The runner's last settings, and who chose them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub settings: Option<Settings>,
    /// The event that began a rewind of files, if that rewind is running or was interrupted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rewinding: Option<Seq>,
    /// The part of its steps, cost and errors from before it was imported.
    #[serde(default, skip_serializing_if = "Elsewhere::is_nothing")]
    pub elsewhere: Elsewhere,
    /// What it had spent before its first run here, if prices of that are unknown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub imported: Option<ImportedSpent>,
}

/// The flow that a session runs, without its spec.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FlowRef {
    /// Its name.
    pub name: String,
    /// Its pattern.
    pub pattern: String,
    /// SHA-256 of its spec's raw bytes.
    pub hash: SpecHash,
}

/// The last error of a session.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LastError {
    /// The error's text.
    pub message: String,
    /// When it happened.
    pub at: Time,
}

/// One lane's part of the session's state.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct LaneState {
    /// Recorded messages.
    pub messages: u64,
    /// Completed steps.
    pub steps: u64,
    /// What it spent.
    pub spent: Spent,
    /// The newest queued message that was delivered to this lane.
    #[serde(default, skip_serializing_if = "is_before_all")]
    pub heard: Seq,
}

/// The whole fold: a head with its lanes.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct State {
    /// The head.
    pub head: Head,
    /// Each lane's part.
    pub lanes: BTreeMap<Lane, LaneState>,
}

impl State {
    /// Folds a session's events from the first one. `None` if the first one does not begin a
    /// session.
    pub fn fold<'a>(events: impl IntoIterator<Item = &'a Recorded>) -> Option<Self> {
        let mut events = events.into_iter();
        let head = Head::begin(events.next()?)?;
        let mut state = Self { head, lanes: BTreeMap::new() };
        events.for_each(|event| state.apply(event));
        Some(state)
    }

    /// Applies the next event.
    pub fn apply(&mut self, event: &Recorded) {
        self.head.apply(event);
        if let Event::Created(_) = event.event {
            self.lanes.values_mut().for_each(|lane| lane.spent = Spent::default());
        }
        if let Some(lane) = event.event.lane().filter(|_| LaneState::takes(&event.event)) {
            self.lanes.entry(lane.clone()).or_default().apply(&event.event);
        }
    }
}

impl LaneState {
    /// Does this event change its lane's state?
    pub(crate) fn takes(event: &Event) -> bool {
        matches!(event, Event::Message(_) | Event::Step(_) | Event::Compacted(_))
    }

    /// Applies an event of this lane.
    pub(crate) fn apply(&mut self, event: &Event) {
        match event {
            Event::Message(message) => {
                self.messages += 1;
                self.heard = self.heard.max(message.said.unwrap_or_default());
            }
            Event::Step(_) => self.steps += 1,
            _ => {}
        }
        spend(&mut self.spent, event);
    }
}

impl Head {
    /// Is it a fork that has never run?
    #[must_use]
    pub fn never_ran(&self) -> bool {
        matches!(self.origin, Origin::Fork { .. })
            && self.resumes == 0
            && self.status == Status::Interrupted
            && self.stop_reason.is_none()
    }

    /// The head after a session's first event; `None` if that is not `created`.
    #[must_use]
    pub fn begin(event: &Recorded) -> Option<Self> {
        let Event::Created(created) = &event.event else {
            return None;
        };
        let phase = created.phases.map(PhaseSet::initial);
        let mut head = Self {
            id: created.id.clone(),
            seq: event.seq,
            created_at: event.at,
            updated_at: event.at,
            task: String::new(),
            agent: String::new(),
            model: String::new(),
            provider: String::new(),
            workspace: String::new(),
            driver: created.driver,
            origin: Origin::Root,
            flow: None,
            source: None,
            scope: None,
            status: first_status(created),
            stop_reason: None,
            error: None,
            phases: created.phases,
            phase,
            discuss_returns: 0,
            ready: false,
            label: None,
            tags: BTreeSet::new(),
            metadata: BTreeMap::new(),
            goal: None,
            budget: None,
            pinned: false,
            steps: 0,
            messages: 0,
            spent: Spent::default(),
            errors: 0,
            last_error: None,
            resumes: 0,
            open_gates: 0,
            unheard: 0,
            stop_asked: None,
            stopping: false,
            hides: false,
            settings: None,
            rewinding: None,
            elsewhere: Elsewhere::default(),
            imported: None,
        };
        head.describe(created);
        Some(head)
    }

    /// Applies the next event. Pure and total: every recorded event can be folded.
    pub fn apply(&mut self, event: &Recorded) {
        self.seq = event.seq;
        self.updated_at = self.updated_at.max(event.at);
        spend(&mut self.spent, &event.event);
        match &event.event {
            Event::Created(created) => self.branch(created, event.at),
            Event::Message(message) => {
                self.messages += 1;
                self.answered_by(message);
                if message.said.is_some() {
                    self.unheard = self.unheard.saturating_sub(1);
                }
            }
            Event::Said(_) => {
                self.unheard += 1;
                self.stopping = false;
            }
            Event::StopAsked(stop) => {
                self.stop_asked = Some(stop.epoch);
                self.stopping = true;
            }
            Event::Scrubbed(scrubbed) => self.hides |= !scrubbed.hidden.is_empty(),
            Event::Settings(settings) => self.set(settings),
            Event::Step(_) => self.steps += 1,
            Event::Status(change) => {
                if change.status == Status::Running && self.status != Status::Running {
                    self.resumes += 1;
                }
                self.status = change.status;
                self.stop_reason = change.reason.map(|reason| self.why_stopped(reason));
                self.stopping = false;
                self.error = change.error.as_deref().map(preview);
            }
            Event::Phase(change) => self.enter(change.to),
            Event::Gate(_) => self.open_gates += 1,
            Event::GateAnswered(_) => self.open_gates = self.open_gates.saturating_sub(1),
            Event::Error(failure) => {
                self.errors += 1;
                self.last_error =
                    Some(LastError { message: preview(&failure.message), at: event.at });
            }
            Event::Edited(edited) => {
                self.edit(edited);
                if let Some(elsewhere) = &edited.elsewhere {
                    self.did_elsewhere(elsewhere, event.at);
                }
            }
            Event::Rewinding(Rewinding::Begun { .. }) => self.rewinding = Some(event.seq),
            Event::Rewinding(Rewinding::Dropped { .. }) => self.rewinding = None,
            Event::Rewound(Rewound { scope, restored, .. })
            | Event::Undone(Undone::Rewind { scope, restored, .. }) => {
                self.rewinding = None;
                if scope.moves_view() {
                    self.restore(restored);
                }
            }
            _ => {}
        }
    }

    /// A flow's agents have lanes of their own; none of them uses the main lane.
    fn answered_by(&mut self, message: &Message) {
        if let Some(model) = &message.model
            && (message.lane == Lane::main() || self.flow.is_some())
        {
            self.model = preview(model);
        }
    }

    fn describe(&mut self, created: &Created) {
        self.task = preview(&created.task);
        self.agent.clone_from(&created.agent);
        self.model.clone_from(&created.model);
        self.provider.clone_from(&created.provider);
        self.workspace.clone_from(&created.workspace);
        self.origin = created.origin.clone();
        self.source.clone_from(&created.source);
        self.scope.clone_from(&created.scope);
        self.flow = created.flow.as_ref().map(|flow| FlowRef {
            name: flow.name.clone(),
            pattern: flow.pattern.clone(),
            hash: flow.hash,
        });
    }

    /// A fork's own events begin. Its work continues from the shared prefix, but as a new session
    /// that has spent nothing and has no name.
    fn branch(&mut self, created: &Created, at: Time) {
        self.id = created.id.clone();
        self.created_at = at;
        self.updated_at = at;
        self.driver = created.driver;
        if created.phases != self.phases {
            self.phases = created.phases;
            self.phase = created.phases.map(PhaseSet::initial);
        }
        self.status = first_status(created);
        self.stop_reason = None;
        self.error = None;
        self.label = None;
        self.pinned = false;
        self.spent = Spent::default();
        self.errors = 0;
        self.last_error = None;
        self.resumes = 0;
        // The parent keeps its queued messages and its user's settings.
        self.unheard = 0;
        self.stop_asked = None;
        self.stopping = false;
        self.settings = None;
        // Only the parent's files were being rewound.
        self.rewinding = None;
        self.elsewhere = Elsewhere::default();
        self.imported = None;
        self.describe(created);
    }

    fn enter(&mut self, phase: Phase) {
        let from = self.phase.replace(phase);
        match (from, phase) {
            (Some(Phase::Plan), Phase::Discuss) => self.discuss_returns += 1,
            (_, Phase::Idle) => self.discuss_returns = 0,
            _ => {}
        }
        self.follow_phase();
    }

    fn restore(&mut self, restored: &Restored) {
        self.phase = restored.phase;
        self.discuss_returns = restored.discuss_returns;
        self.goal.clone_from(&restored.goal);
        self.open_gates = u64::from(restored.open_gates);
        self.follow_phase();
    }

    /// Updates what depends on the phase: whether the work can be resumed, and an external agent's
    /// status.
    fn follow_phase(&mut self) {
        if let (Some(set), Some(phase)) = (self.phases, self.phase) {
            self.ready = set.resumable(phase);
            if self.driver == Driver::External {
                self.status = set.status(phase);
            }
        }
    }

    /// Replaces the earlier report: its numbers are subtracted from the sums first.
    fn did_elsewhere(&mut self, elsewhere: &Elsewhere, at: Time) {
        let before = std::mem::take(&mut self.elsewhere);
        let replace = |sum: u64, old: u64, new: u64| sum.saturating_sub(old).saturating_add(new);
        self.steps = replace(self.steps, before.steps, elsewhere.steps);
        self.errors = replace(self.errors, before.errors, elsewhere.errors);
        self.spent.cost = self.spent.cost.minus(before.cost).plus(elsewhere.cost);
        self.spent.usage = self.spent.usage.minus(before.usage);
        self.spent.usage += elsewhere.usage;
        let (old, new) = (before.is_unpriced(), elsewhere.is_unpriced());
        self.spent.unpriced = match elsewhere.cost.is_zero() {
            true => replace(self.spent.unpriced, old.into(), new.into()),
            // The reported sum covers calls whose own price is unknown.
            false => 0,
        };
        if let Some(message) = &elsewhere.last_error {
            self.last_error = Some(LastError { message: preview(message), at });
        }
        let last_error = elsewhere.last_error.as_deref().map(preview);
        self.elsewhere = Elsewhere { last_error, ..elsewhere.clone() };
    }

    fn set(&mut self, settings: &Settings) {
        self.note_imported();
        let before = self.settings.take().filter(|_| !settings.revokes).unwrap_or_default();
        if let Some(agent) = &settings.agent {
            self.agent = preview(agent);
        }
        self.settings = Some(Settings {
            agent: settings.agent.as_deref().map(preview).or(before.agent),
            model: settings.model.as_deref().map(preview).or(before.model),
            mode: settings.mode.or(before.mode),
            // Whether these count depends on who gave them, and only the events hold that.
            budget: None,
            flow: None,
            revokes: false,
            // The fold must not depend on the server's login, which the writer does not know.
            who: Who::from(preview(&settings.who.name)),
        });
    }

    fn edit(&mut self, edited: &Edited) {
        edited.label.apply(&mut self.label);
        edited.goal.apply(&mut self.goal);
        edited.budget.apply(&mut self.budget);
        self.tags.extend(edited.tag.iter().cloned());
        self.tags.retain(|tag| !edited.untag.contains(tag));
        for (key, value) in &edited.metadata {
            if value.is_null() {
                self.metadata.remove(key);
            } else {
                self.metadata.insert(key.clone(), value.clone());
            }
        }
        self.pinned = edited.pinned.unwrap_or(self.pinned);
        self.ready = edited.ready.unwrap_or(self.ready);
    }
}

/// A new session's status: running, unless an external program stores it here without phases.
fn first_status(created: &Created) -> Status {
    match (created.driver, created.phases) {
        (Driver::External, None) => Status::Idle,
        _ => Status::Running,
    }
}

/// Counts the model call that produced an event, if there was one.
fn spend(spent: &mut Spent, event: &Event) {
    let (usage, cost) = match event {
        Event::Message(message) => (message.usage, message.cost),
        Event::Compacted(compacted) => (compacted.usage, compacted.cost),
        _ => return,
    };
    if usage.is_some() || cost.is_some() {
        spent.count(usage.unwrap_or_default(), cost);
    }
}

/// The start of a text, at most [`PREVIEW_BYTES`], cut between characters.
fn preview(text: &str) -> String {
    text[..text.floor_char_boundary(PREVIEW_BYTES)].to_owned()
}

fn is_before_all(seq: &Seq) -> bool {
    *seq == Seq::ZERO
}

fn no_returns(n: &u32) -> bool {
    *n == 0
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{
        Change, Failure, Message, PhaseChanged, Said, StatusChanged, Step, StopAsked, Usage,
    };

    fn log(events: Vec<Event>) -> Vec<Recorded> {
        let created = Created::new("a-1".parse().unwrap(), "the task");
        std::iter::once(created.into())
            .chain(events)
            .zip(1..)
            .map(|(event, n)| Recorded {
                seq: Seq::new(n),
                at: Time::from_micros(n as i64),
                id: None,
                event,
            })
            .collect()
    }

    fn head(events: Vec<Event>) -> Head {
        State::fold(&log(events)).unwrap().head
    }

    #[test]
    fn a_log_that_does_not_begin_with_created_has_no_head() {
        assert!(State::fold(&log(vec![Message::user("x").into()])[1..]).is_none());
        assert!(State::fold(&[]).is_none());
    }

    #[test]
    fn cost_and_tokens_add_up_and_unknown_prices_are_counted() {
        let usage = Usage { input: 10, output: 5, ..Usage::default() };
        let known = Message::assistant("a").spending(usage, Some("0.1".parse().unwrap()));
        let unknown = Message::assistant("b").spending(usage, None);
        let spent = head(vec![known.clone().into(), known.into(), unknown.into()]).spent;
        assert_eq!(spent.cost.to_string(), "0.2");
        assert_eq!((spent.calls, spent.unpriced, spent.usage.total()), (3, 1, 45));
    }

    #[test]
    fn each_lane_counts_for_itself() {
        let usage = Usage { input: 1, ..Usage::default() };
        let lane: Lane = "critic".parse().unwrap();
        let message = Message::assistant("x").in_lane(lane.clone()).spending(usage, None);
        let step = Step { lane: lane.clone(), n: 1 };
        let state = State::fold(&log(vec![Message::user("y").into(), message.into(), step.into()]))
            .unwrap();
        assert_eq!(state.lanes[&lane].spent.calls, 1);
        assert_eq!(state.lanes[&lane].steps, 1);
        assert_eq!(state.lanes[&Lane::main()].messages, 1);
        assert_eq!(state.head.steps, 1);
    }

    #[test]
    fn a_huge_task_leaves_the_head_small() {
        let created = Created::new("a-1".parse().unwrap(), "é".repeat(1 << 20));
        let first = Recorded { seq: Seq::FIRST, at: Time::EPOCH, id: None, event: created.into() };
        let head = Head::begin(&first).unwrap();
        assert!(head.task.len() <= PREVIEW_BYTES && head.task.starts_with('é'));
    }

    #[test]
    fn a_status_after_a_stop_counts_as_a_resume() {
        let to = |status| -> Event { StatusChanged { status, reason: None, error: None }.into() };
        let head = head(vec![to(Status::Partial), to(Status::Running), to(Status::Running)]);
        assert_eq!((head.resumes, head.status), (1, Status::Running));
        assert_eq!(head.without_runner().status, Status::Interrupted);
    }

    #[test]
    fn a_crash_after_a_request_to_stop_counts_as_a_stop() {
        let stop =
            || Event::from(StopAsked { epoch: Epoch::FIRST, who: "ann".into(), reason: None });
        let to = |status, reason| Event::from(StatusChanged { status, reason, error: None });
        let runs = || to(Status::Running, None);
        let died = || to(Status::Interrupted, Some(StopReason::Crashed));
        let said =
            || Said { text: "go on".into(), lane: Lane::main(), who: "ann".into(), now: false };
        let reason = |events| head(events).without_runner().stop_reason.unwrap();
        assert_eq!(reason(vec![stop()]), StopReason::UserInterrupt);
        // The same if the crash is recorded.
        assert_eq!(reason(vec![stop(), died()]), StopReason::UserInterrupt);
        // A later run or message clears the request.
        assert_eq!(reason(vec![stop(), died(), runs()]), StopReason::Crashed);
        assert_eq!(reason(vec![stop(), died(), runs(), died()]), StopReason::Crashed);
        assert_eq!(reason(vec![stop(), said().into()]), StopReason::Crashed);
        // A run that ended by itself records its own reason.
        let spent = to(Status::Partial, Some(StopReason::BudgetExceeded));
        assert_eq!(reason(vec![stop(), spent]), StopReason::BudgetExceeded);
    }

    #[test]
    fn edits_merge() {
        let edit = |edited: Edited| -> Event { edited.into() };
        let head = head(vec![
            edit(Edited {
                label: Change::Set("one".into()),
                tag: ["a".into(), "b".into()].into(),
                metadata: [("k".into(), 1.into()), ("gone".into(), 2.into())].into(),
                ..Edited::default()
            }),
            edit(Edited {
                untag: ["b".into()].into(),
                metadata: [("gone".into(), serde_json::Value::Null), ("l".into(), 3.into())].into(),
                pinned: Some(true),
                ..Edited::default()
            }),
        ]);
        assert_eq!(head.label.as_deref(), Some("one"));
        assert_eq!(head.tags, BTreeSet::from(["a".to_owned()]));
        assert_eq!(serde_json::to_string(&head.metadata).unwrap(), r#"{"k":1,"l":3}"#);
        assert!(head.pinned);
    }

    #[test]
    fn the_status_of_an_external_session_follows_its_phase() {
        let mut created = Created::new("a-1".parse().unwrap(), "t");
        created.driver = Driver::External;
        created.phases = Some(PhaseSet::Lifecycle);
        let mut events = log(vec![
            PhaseChanged { from: Phase::Initializing, to: Phase::Approval }.into(),
            Failure { message: "no".into() }.into(),
            PhaseChanged { from: Phase::Approval, to: Phase::Completed }.into(),
        ]);
        events[0].event = created.into();
        let at = |n: usize| State::fold(&events[..n]).unwrap().head;
        assert_eq!((at(1).status, at(1).ready), (Status::Running, false));
        assert_eq!((at(2).status, at(2).ready), (Status::Paused, true));
        assert_eq!((at(3).errors, at(3).last_error.unwrap().message), (1, "no".to_owned()));
        assert_eq!((at(4).status, at(4).ready), (Status::Success, false));
        assert_eq!(at(1).without_runner().status, Status::Running);
    }
}
