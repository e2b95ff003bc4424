//! The questions of an attached session's subagents, which are asked in sessions of their own.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use stepwell::model::{Kind, Origin};
use stepwell::sessions::{GUARD, Notice, Subscription};
use stepwell::store::Facts;
use stepwell::work::Gates;
use stepwell::{Event, Recorded, Result, Seq, SessionId, Stepwell};
use stepwell_agent::run::{GateAnswer, OpenGate, RunEvent};

/// What is known of the sessions below an attached one.
pub(super) struct Below {
    top: SessionId,
    /// The subagents' sessions, and up to where their questions were told.
    known: BTreeMap<SessionId, Seq>,
    /// Sessions that are none of them.
    strangers: BTreeSet<SessionId>,
    /// Those to look at.
    changed: BTreeSet<SessionId>,
}

impl Below {
    pub(super) fn new(top: SessionId, well: &Stepwell) -> Result<Self> {
        let mut below = Self {
            top,
            known: BTreeMap::new(),
            strangers: BTreeSet::new(),
            changed: BTreeSet::new(),
        };
        below.look_at_all(well)?;
        Ok(below)
    }

    fn look_at_all(&mut self, well: &Stepwell) -> Result<()> {
        let all = well.subagents(&self.top)?.into_iter().map(|it| it.head.id);
        self.changed.extend(all);
        Ok(())
    }

    /// Waits for a change of the session or of others, and notes which others.
    pub(super) fn wait(&mut self, well: &Stepwell, changes: &Subscription) -> Result<()> {
        let mut next = changes.next(GUARD)?;
        while let Some(notice) = next {
            match notice {
                Notice::Reset => self.look_at_all(well)?,
                Notice::Changed(change) if change.session != self.top => {
                    self.changed.insert(change.session);
                }
                Notice::Changed(_) => {}
            }
            next = changes.next(Duration::ZERO)?;
        }
        Ok(())
    }

    /// Tells what those that changed ask, and what they were answered.
    pub(super) fn tell(&mut self, well: &Stepwell, tell: &dyn Fn(RunEvent)) -> Result<()> {
        for child in std::mem::take(&mut self.changed) {
            if !self.is_below(well, &child)? {
                self.strangers.insert(child);
                continue;
            }
            for event in self.news(well, &child)? {
                let (session, event) = (child.clone(), Box::new(event));
                tell(RunEvent::Child { session, event });
            }
        }
        Ok(())
    }

    /// Was a session started by the attached one, or by one that it started?
    fn is_below(&self, well: &Stepwell, session: &SessionId) -> Result<bool> {
        let mut at = session.clone();
        loop {
            if self.strangers.contains(&at) {
                return Ok(false);
            }
            if self.known.contains_key(&at) || at == self.top {
                return Ok(true);
            }
            match well.info(&at) {
                Ok(info) => match info.head.origin {
                    Origin::Subagent { parent } => at = parent,
                    _ => return Ok(false),
                },
                Err(stepwell::Error::NoSession(_)) => return Ok(false),
                Err(error) => return Err(error),
            }
        }
    }

    /// What a subagent's session asks and was answered since it was looked at. Of one that is
    /// looked at for the first time, only what waits is news.
    fn news(&mut self, well: &Stepwell, child: &SessionId) -> Result<Vec<RunEvent>> {
        let kinds = [Kind::Gate, Kind::GateAnswered];
        let seen = self.known.get(child).copied();
        let facts = Facts { from: seen.unwrap_or_default().next(), ..Facts::of(&kinds) };
        let events = match well.store().keyed(child, facts) {
            Ok(events) => events,
            Err(stepwell::Error::NoSession(_)) => return Ok(Vec::new()),
            Err(error) => return Err(error),
        };
        let last = events.last().map(|event| event.seq).or(seen).unwrap_or_default();
        self.known.insert(child.clone(), last);
        if events.is_empty() {
            return Ok(Vec::new());
        }
        let open = Gates::waiting(&**well.store(), child)?;
        let above = Gates::waiting(&**well.store(), &self.top)?;
        // A subagent that has paused is asked for by the session above it.
        let asked_above = above.open().any(|it| it.gate.asker.as_ref() == Some(child));
        let waits = |event: &Recorded, id: &str| {
            let is_open = open.open().any(|it| it.gate.id == id && it.at == event.at);
            is_open && !asked_above
        };
        let news = events.into_iter().filter_map(|event| match &event.event {
            Event::Gate(gate) if waits(&event, &gate.id) => {
                let (session, gate) = (child.clone(), gate.clone());
                let open = OpenGate::new(&**well.store(), session, gate, (event.seq, event.at));
                Some(RunEvent::Approval(Box::new(open)))
            }
            Event::GateAnswered(it) if seen.is_some() => Some(RunEvent::Answered(GateAnswer {
                session: child.clone(),
                gate: it.id.clone(),
                answer: it.answer.clone(),
                who: it.who.clone(),
                at: event.at,
            })),
            _ => None,
        });
        Ok(news.collect())
    }
}
