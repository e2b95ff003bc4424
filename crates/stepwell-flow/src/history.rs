//! The history of a flow, folded from its session's events.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::time::Duration;

use stepwell::log::Timeline;
use stepwell::model::{
    Checkpoint, CheckpointReason, Digest, Flow as Described, SpecHash, Spent, Time,
};
use stepwell::store::Span;
use stepwell::trust::Weighed;
use stepwell::{Event, Recorded, Seq, Session, SessionId, Status, Stepwell};
use stepwell_agent::run::{Past, Provenance};

use crate::error::{Error, Result};
use crate::memo::Memo;
use crate::spec::{Reading, Spec};

/// The history of a flow, folded from its session's events.
#[derive(Debug, Default)]
pub struct History {
    /// The state of its nodes and gates.
    pub memo: Memo,
    /// The conversations of its lanes.
    pub past: Past,
    /// The last event that was read.
    pub seq: Seq,
    /// What it spent, including on work that was rewound.
    pub spent: Spent,
    /// The number of model calls that were answered.
    pub calls: u64,
    ran: Ran,
    /// The flow as recorded when the session was created.
    pub described: Option<Described>,
    /// The spec in effect now.
    pub stored: Option<Stored>,
    /// Whether it ran to completion.
    pub finished: bool,
    /// Files that it wrote, and the digests of their contents.
    pub artifacts: BTreeMap<String, Digest>,
}

/// A spec as a session stores it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stored {
    /// Its raw text.
    pub spec: String,
    /// SHA-256 of its raw bytes.
    pub hash: SpecHash,
    /// The texts of the files that it refers to, by name.
    pub files: BTreeMap<String, String>,
}

/// The name of the checkpoint that stores a spec and its files.
const SPEC: &str = "spec";

impl Stored {
    /// A spec, and the texts of the files that it refers to.
    #[must_use]
    pub fn new(spec: &str, files: BTreeMap<String, String>) -> Self {
        Self { spec: spec.to_owned(), hash: SpecHash::of(spec.as_bytes()), files }
    }

    /// The digest of the spec with its files.
    #[must_use]
    pub fn digest(&self) -> Digest {
        Digest::of(&serde_json::to_vec(&(&self.spec, &self.files)).unwrap_or_default())
    }

    /// The event that stores the spec in a session. A later one replaces it.
    #[must_use]
    pub fn checkpoint(&self) -> Checkpoint {
        let metadata = [
            ("spec".to_owned(), self.spec.clone().into()),
            ("files".to_owned(), serde_json::to_value(&self.files).unwrap_or_default()),
        ];
        let (name, reason) = (SPEC.to_owned(), CheckpointReason::Automatic);
        Checkpoint { name, reason, metadata: metadata.into() }
    }

    /// Parses and checks the spec.
    pub fn read(&self) -> Result<Reading> {
        Ok(Spec::parse(&self.spec, "the stored spec", &self.files)?)
    }

    /// The spec in effect after some events of a session, of which the first describes it.
    #[must_use]
    pub fn after<'a>(events: impl IntoIterator<Item = &'a Event>) -> Option<Self> {
        let stored = events.into_iter().filter_map(|event| match event {
            Event::Created(created) => {
                created.flow.as_ref().map(|flow| Self::new(&flow.spec, BTreeMap::new()))
            }
            Event::Checkpoint(checkpoint) => Self::of(checkpoint),
            _ => None,
        });
        stored.last()
    }

    fn of(checkpoint: &Checkpoint) -> Option<Self> {
        if checkpoint.name != SPEC || checkpoint.reason != CheckpointReason::Automatic {
            return None;
        }
        let spec = checkpoint.metadata.get("spec")?.as_str()?;
        let files = checkpoint.metadata.get("files").cloned().unwrap_or_default();
        Some(Self::new(spec, serde_json::from_value(files).unwrap_or_default()))
    }
}

impl History {
    /// Reads a session.
    pub fn read(session: &Session) -> Result<Self> {
        Self::judged(session.well(), session.id())
    }

    /// Reads a session that another process may be running. Permissions that do not count are left
    /// out.
    pub fn judged(well: &Stepwell, id: &SessionId) -> Result<Self> {
        let slice = well.store().events(id, Span::ALL)?;
        let replaced = slice.replaced.iter().map(|it| it.seq).collect();
        let events = slice.intact(id)?;
        let weighed = well.judge(id)?.weigh(&events);
        let read_to = events.last().map_or(Seq::ZERO, |last| last.seq);
        let past = Past::known(Provenance { runs: weighed.runs.clone(), replaced, read_to });
        Ok(Self::weighed(events, &weighed, past))
    }

    /// Reads a session and its current spec in parallel: for a large flow both take equally
    /// long. The spec is nearly always the one that the session was created with.
    pub fn read_with_spec(session: &Session) -> Result<(Self, Result<Reading>)> {
        let first = session.events(Span { limit: 1, ..Span::ALL })?.intact(session.id())?;
        let initial = first.first().and_then(|first| match &first.event {
            Event::Created(created) => created.flow.as_ref(),
            _ => None,
        });
        let initial = initial.map(|flow| Stored::new(&flow.spec, BTreeMap::new()));
        std::thread::scope(|scope| {
            let ahead = initial.as_ref().map(|initial| scope.spawn(|| initial.read()));
            let history = Self::read(session)?;
            let ahead = ahead.and_then(|reading| reading.join().ok());
            let reading = match (history.spec(session), ahead) {
                (Err(none), _) => Err(none),
                (Ok(stored), Some(reading)) if Some(stored) == initial.as_ref() => reading,
                (Ok(stored), _) => stored.read(),
            };
            Ok((history, reading))
        })
    }

    /// Folds a session's events.
    #[must_use]
    pub fn of(events: Vec<Recorded>) -> Self {
        Self::weighed(events, &Weighed::default(), Past::default())
    }

    /// Folds the events of a session that count.
    fn weighed(events: Vec<Recorded>, weighed: &Weighed, past: Past) -> Self {
        let mut history = Self { past, ..Self::default() };
        let Some(last) = events.last() else { return history };
        history.seq = last.seq;
        let timeline = Timeline::at(last.seq, events.iter());
        for event in events {
            let event = match weighed.counted(&event) {
                None => continue,
                Some(Cow::Owned(counted)) => counted,
                Some(Cow::Borrowed(_)) => event,
            };
            history.count(&event);
            // A rewind must not allow more than before.
            let forbids = matches!(&event.event, Event::Permission(it) if !it.allow);
            if timeline.contains(event.seq) {
                history.apply(event);
            } else if forbids {
                history.past.add(event);
            }
        }
        history
    }

    /// Reads the events recorded since the last read.
    pub fn catch_up(&mut self, session: &Session) -> Result<()> {
        let events = session.events(Span::after(self.seq))?.intact(session.id())?;
        // Rewinds and answers are judged by the events before them.
        let moves = |event: &Recorded| {
            matches!(event.event, Event::Rewound(_) | Event::Undone(_) | Event::GateAnswered(_))
        };
        if events.iter().any(moves) {
            *self = Self::read(session)?;
            return Ok(());
        }
        for event in events {
            self.seq = event.seq;
            self.count(&event);
            self.apply(event);
        }
        Ok(())
    }

    /// How long it ran. Time spent waiting or stopped does not count.
    #[must_use]
    pub const fn ran(&self) -> Duration {
        self.ran.total
    }

    /// Adds up the cost. Rewound work was paid for, too.
    fn count(&mut self, event: &Recorded) {
        self.ran.apply(event);
        let (usage, cost) = match &event.event {
            // A fork counts from zero.
            Event::Created(_) => {
                (self.spent, self.calls) = (Spent::default(), 0);
                return;
            }
            Event::Message(message) => (message.usage, message.cost),
            Event::Compacted(compacted) => (compacted.usage, compacted.cost),
            _ => return,
        };
        if let Some(usage) = usage {
            self.spent.count(usage, cost);
            self.calls += 1;
        }
    }

    fn apply(&mut self, event: Recorded) {
        match &event.event {
            Event::Created(created) => {
                self.finished = false;
                if let Some(flow) = &created.flow {
                    self.described = Some(flow.clone());
                    let stored = Stored::new(&flow.spec, BTreeMap::new());
                    self.stored.get_or_insert(stored);
                }
            }
            Event::Checkpoint(checkpoint) => {
                if let Some(stored) = Stored::of(checkpoint) {
                    self.stored = Some(stored);
                }
            }
            Event::Status(change) => self.finished = change.status == Status::Success,
            Event::Artifact(artifact) => {
                self.artifacts.insert(artifact.path.clone(), artifact.digest);
            }
            _ => {}
        }
        self.memo.apply(&event);
        self.past.add(event);
    }

    /// The spec in effect. Fails if the session does not belong to a flow.
    pub fn spec(&self, session: &Session) -> Result<&Stored> {
        self.stored.as_ref().ok_or_else(|| Error::NoFlow(session.id().clone()))
    }
}

/// How long a session ran.
#[derive(Debug, Default)]
struct Ran {
    total: Duration,
    since: Option<Time>,
    last: Option<Time>,
}

impl Ran {
    fn apply(&mut self, event: &Recorded) {
        let running = match &event.event {
            Event::Created(_) => true,
            Event::Status(change) => change.status == Status::Running,
            _ => {
                self.last = Some(event.at);
                return;
            }
        };
        // A killed process is noticed later: it ran until its last event.
        let until = match &event.event {
            Event::Status(change) if change.status == Status::Interrupted => self.last,
            _ => Some(event.at),
        };
        if let (Some(since), Some(until)) = (self.since.take(), until) {
            self.total += until.since(since);
        }
        self.since = running.then_some(event.at);
        self.last = Some(event.at);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use stepwell::model::{
        Node, NodeKey, NodeState, Restored, Rewound, Scope, StatusChanged, Usage,
    };
    use stepwell::{Created, Message};

    fn log(events: Vec<(i64, Event)>) -> Vec<Recorded> {
        let recorded = |(n, (at, event)): (usize, (i64, Event))| Recorded {
            seq: Seq::new(n as u64 + 1),
            at: Time::from_micros(at * 1_000_000),
            id: None,
            event,
        };
        events.into_iter().enumerate().map(recorded).collect()
    }

    fn status(status: Status) -> Event {
        StatusChanged { status, reason: None, error: None }.into()
    }

    fn created() -> Event {
        Created::new("s".parse().unwrap(), "t").into()
    }

    #[test]
    fn only_running_time_counts() {
        let history = History::of(log(vec![
            (0, created()),
            (5, Message::user("x").into()),
            // Killed; noticed an hour later.
            (3600, status(Status::Interrupted)),
            (3600, status(Status::Running)),
            (3610, status(Status::Paused)),
            (9000, status(Status::Running)),
            (9001, status(Status::Success)),
        ]));
        assert_eq!(history.ran(), Duration::from_secs(5 + 10 + 1));
    }

    #[test]
    fn a_rewind_removes_nodes_but_not_their_cost() {
        let usage = Usage { input: 7, ..Usage::default() };
        let done = Node {
            key: "step/0".to_owned(),
            state: NodeState::Done,
            output: Some(1.into()),
            usage: None,
            error: None,
        };
        let back = Rewound { to: Seq::new(1), scope: Scope::Chat, restored: Restored::default() };
        let history = History::of(log(vec![
            (0, created()),
            (1, Message::assistant("x").spending(usage, None).into()),
            (2, done.into()),
            (3, back.into()),
        ]));
        assert_eq!(history.memo.result(&NodeKey::Step(0)), None);
        assert_eq!((history.spent.usage.input, history.calls), (7, 1));
    }

    #[test]
    fn the_newest_spec_is_in_effect_with_its_files() {
        let files: BTreeMap<_, _> = [("p.md".to_owned(), "text".to_owned())].into();
        let stored = Stored::new("name: x", files);
        let history = History::of(log(vec![(0, created()), (1, stored.checkpoint().into())]));
        assert_eq!(history.stored, Some(stored));
    }
}
