//! Changes to a session's work, whether or not it runs. Without a runner, the caller holds the
//! lease for a moment. With one, an event asks the runner, which records the outcome.

use std::time::Duration;

use crate::error::{Error, Result};
use crate::model::{
    Checkpoint, CheckpointReason, Driver, Epoch, Event, Kind, Move, NewEvent, Phase, PhaseChanged,
    Question, Recorded, Seq, SessionId, Status, WorkAsked, WorkChange,
};
use crate::sessions::Stepwell;
use crate::store::{Facts, Lease, Order, SessionInfo, Span};
use crate::work::checkpoints::check_name;

/// How long to wait for the runner. It reads requests several times a second.
const PATIENCE: Duration = Duration::from_secs(if cfg!(test) { 2 } else { 10 });

/// How long to wait for another person's runner, which may ignore the request.
const PATIENCE_WITH_OTHERS: Duration = Duration::from_secs(2);

/// How long one read of the log waits for changes.
const PAUSE: Duration = Duration::from_millis(20);

impl Stepwell {
    /// Moves a session's work to a phase and makes a checkpoint, also while it runs. Does nothing
    /// if it is in that phase.
    ///
    /// # Errors
    /// If the session has no phases, or they do not allow the move.
    pub fn enter_phase(&self, id: &SessionId, phase: Phase) -> Result<()> {
        self.change_work(id, WorkChange::Phase(phase)).map(drop)
    }

    /// Changes a session's work, also while it runs. Returns what was recorded; `None` if there was
    /// nothing to change.
    ///
    /// # Errors
    /// [`Error::NotDoneYet`] if the runner does not act in time, and [`Error::SomebodyElses`] if it
    /// is another person's and may ignore the request.
    pub fn change_work(&self, id: &SessionId, change: WorkChange) -> Result<Option<Recorded>> {
        let who = self.who().clone();
        let asked = WorkAsked { epoch: Epoch::FIRST, who, change };
        // Redacted before it is compared with the redacted outcome.
        let Event::WorkAsked(mut asked) = Event::from(asked).redacted(self.redactor()) else {
            return Ok(None);
        };
        loop {
            let info = self.store().info(id)?;
            let Some(epoch) = runner(&info) else {
                match self.change_unheld(id, &asked.change) {
                    // A runner started in between.
                    Err(Error::Held { .. }) if runner(&self.store().info(id)?).is_some() => {
                        continue;
                    }
                    other => return other,
                }
            };
            info.refuse_half_rewound()?;
            refuse_in_flow(&info, &asked.change)?;
            if self.events_for(id, &asked.change)?.is_empty() {
                return Ok(None);
            }
            asked.epoch = epoch;
            let at = match self.append_freely(id, asked.clone().into()) {
                // The runner stopped in between.
                Err(Error::Illegal { .. }) => continue,
                other => other?,
            };
            if let Some(outcome) = self.wait_for_runner(id, &asked, at)? {
                return Ok(outcome);
            }
        }
    }

    /// Asks a session's runner to compact the conversation before the model's next call; in a flow,
    /// every agent's conversation. `None` without a runner: the caller then holds the lease and
    /// compacts it.
    ///
    /// # Errors
    /// If the request cannot be recorded.
    pub fn ask_to_compact(&self, id: &SessionId) -> Result<Option<Seq>> {
        loop {
            let info = self.store().info(id)?;
            let Some(epoch) = runner(&info) else { return Ok(None) };
            info.refuse_half_rewound()?;
            let (who, change) = (self.who().clone(), WorkChange::Compact);
            match self.append_freely(id, WorkAsked { epoch, who, change }.into()) {
                // The runner stopped in between.
                Err(Error::Illegal { .. }) => {}
                other => return other.map(Some),
            }
        }
    }

    /// Applies a change that someone requested, if their messages
    /// [count](crate::trust::Judge::obeys). The holder of the lease calls it.
    ///
    /// # Errors
    /// If the change is not possible. The person who requested it sees that in the log.
    pub fn carry_out(&self, lease: &Lease, asked: &WorkAsked) -> Result<()> {
        let WorkAsked { who, change, .. } = asked;
        if !self.judge(&lease.session)?.obeys(asked) {
            let (session, kind) = (lease.session.clone(), Kind::WorkAsked.as_str().to_owned());
            return Err(Error::Illegal {
                session,
                kind,
                why: format!("{who} may not change this session"),
            });
        }
        refuse_in_flow(&self.store().info(&lease.session)?, change)?;
        let events = self.events_for(&lease.session, change)?;
        match events.is_empty() {
            true => Ok(()),
            false => self.append_held(lease, events).map(drop),
        }
    }

    fn change_unheld(&self, id: &SessionId, change: &WorkChange) -> Result<Option<Recorded>> {
        let session = self.hold_whole(id)?;
        refuse_in_guided(&session.info()?, change)?;
        let mut events = self.events_for(id, change)?;
        let Some(first) = events.first_mut() else { return Ok(None) };
        first.id = self.event_name();
        let event = first.event.clone();
        let written = session.append_all(events)?;
        Ok(Some(Recorded { seq: written.first, at: self.now(), id: None, event }))
    }

    /// Waits for the outcome of a request. `None` if the runner stopped before it acted.
    fn wait_for_runner(
        &self,
        id: &SessionId,
        asked: &WorkAsked,
        at: Seq,
    ) -> Result<Option<Option<Recorded>>> {
        let whose = self.others_login(id, at)?;
        // Counts its pauses, because a test's clock may stand still.
        let mut waited = Duration::ZERO;
        loop {
            let info = self.store().info(id)?;
            let kinds = [Kind::Phase, Kind::Checkpoint, Kind::Question];
            let since = self.store().keyed(id, Facts { from: at.next(), ..Facts::of(&kinds) })?;
            if let Some(done) = since.into_iter().find(|it| is_done(&asked.change, &it.event)) {
                return Ok(Some(Some(done)));
            }
            if runner(&info) != Some(asked.epoch) {
                return Ok(None);
            }
            // Other events may have prevented the change, or made it.
            if self.events_for(id, &asked.change)?.is_empty() {
                return Ok(Some(None));
            }
            let Some(held) = info.held else { return Ok(None) };
            let (session, login) = (id.clone(), whose.clone());
            if let Some(login) = login.filter(|_| waited >= PATIENCE_WITH_OTHERS) {
                return Err(Error::SomebodyElses { session, login });
            }
            if waited >= PATIENCE {
                return Err(Error::NotDoneYet { session, holder: Box::new(held.holder) });
            }
            self.wait_after(id, info.head.seq, PAUSE)?;
            waited += PAUSE;
        }
    }

    /// The login of the session's runner, if the event's author has another one. The runner's user
    /// then decides whether the request counts.
    fn others_login(&self, id: &SessionId, at: Seq) -> Result<Option<String>> {
        let runs = self.store().info(id)?.held.and_then(|held| held.login);
        let span = Span { from: at, to: at, order: Order::Oldest, limit: 1 };
        let events = self.store().events(id, span)?.events;
        let asks = events.first().and_then(|it| it.event.who()?.login.clone());
        Ok(runs.filter(|login| asks.as_ref() != Some(login)))
    }

    /// The events that make a change, with the change itself first.
    fn events_for(&self, id: &SessionId, change: &WorkChange) -> Result<Vec<NewEvent>> {
        match change {
            WorkChange::Phase(to) => self.moves_to(id, *to),
            WorkChange::Checkpoint { name, metadata } => {
                check_name(name)?;
                let (name, metadata) = (name.clone(), metadata.clone());
                let reason = CheckpointReason::Manual;
                Ok(vec![Checkpoint { name, reason, metadata }.into()])
            }
            WorkChange::Ask { text } => {
                let asked = self.work(id)?.questions;
                let free = |n: &usize| !asked.iter().any(|it| it.id == n.to_string());
                let n = (asked.len() + 1..).find(free).unwrap_or_default();
                Ok(vec![Question::new(n.to_string(), text).into()])
            }
            WorkChange::Answer { question, text } => {
                let asked = self.work(id)?.questions;
                let Some(found) = asked.iter().find(|it| it.id == *question) else {
                    let (session, question) = (id.clone(), question.clone());
                    let asked = asked.into_iter().map(|it| it.id).collect();
                    return Err(Error::NoQuestion { session, question, asked });
                };
                Ok(vec![found.clone().with_answer(text).into()])
            }
            // Only a run can compact, before the model's next call.
            WorkChange::Compact => Ok(Vec::new()),
        }
    }

    fn moves_to(&self, id: &SessionId, to: Phase) -> Result<Vec<NewEvent>> {
        let head = self.store().info(id)?.head;
        let refuse = |why: String| {
            let kind = Kind::Phase.as_str().to_owned();
            Err(Error::Illegal { session: id.clone(), kind, why })
        };
        let Some((set, from)) = head.phases.zip(head.phase) else {
            return refuse("the session has no phases".to_owned());
        };
        if from == to && to != Phase::Plan {
            return Ok(Vec::new());
        }
        match set.judge(from, to, head.discuss_returns) {
            Move::Illegal(_) => refuse(format!("from {from} it cannot move to {to}")),
            Move::Legal | Move::Stay => {
                Ok(vec![PhaseChanged { from, to }.into(), Checkpoint::of_phase(to).into()])
            }
        }
    }
}

/// The epoch of a session's runner. A flow that waits for answers is paused, and its runner may
/// stay.
fn runner(info: &SessionInfo) -> Option<Epoch> {
    let head = &info.head;
    let waits = head.flow.is_some() && head.status == Status::Paused;
    let runs = head.driver == Driver::Own && (head.status == Status::Running || waits);
    info.held.as_ref().filter(|_| runs).map(|held| held.epoch)
}

/// A running flow moves its phases itself.
fn refuse_in_flow(info: &SessionInfo, change: &WorkChange) -> Result<()> {
    match (change, &info.head.flow) {
        (WorkChange::Phase(_), Some(flow)) => Err(Error::Illegal {
            session: info.head.id.clone(),
            kind: Kind::Phase.as_str().to_owned(),
            why: format!("{} moves its phases itself while it runs", flow.name),
        }),
        _ => Ok(()),
    }
}

/// Guided work derives its phase from its nodes, also when it is resumed.
fn refuse_in_guided(info: &SessionInfo, change: &WorkChange) -> Result<()> {
    match (change, &info.head.flow) {
        (WorkChange::Phase(_), Some(flow)) if flow.pattern == "guided" => Err(Error::Illegal {
            session: info.head.id.clone(),
            kind: Kind::Phase.as_str().to_owned(),
            why: "guided work moves its phases itself; rewind to go back to one".to_owned(),
        }),
        _ => Ok(()),
    }
}

/// Is an event the outcome of a change?
fn is_done(change: &WorkChange, event: &Event) -> bool {
    match (change, event) {
        (WorkChange::Phase(to), Event::Phase(change)) => change.to == *to,
        (WorkChange::Checkpoint { name, metadata }, Event::Checkpoint(made)) => {
            made.name == *name && made.metadata == *metadata
        }
        (WorkChange::Ask { text }, Event::Question(question)) => question.text == *text,
        (WorkChange::Answer { question, text }, Event::Question(answered)) => {
            answered.id == *question && answered.answer.as_ref() == Some(text)
        }
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::model::{Created, PhaseSet};
    use crate::sessions::Session;

    fn session(well: &Stepwell) -> Session {
        let created = Created::new("s-1".parse().unwrap(), "work");
        well.create(created.with_phases(PhaseSet::Workflow)).unwrap()
    }

    /// Acts as a runner until it has handled this many requests.
    fn serve(session: &Session, wishes: usize) {
        let (mut seen, mut done) = (Seq::ZERO, 0);
        while done < wishes {
            let facts = Facts { from: seen.next(), ..Facts::of(&[Kind::WorkAsked]) };
            for it in session.well().store().keyed(session.id(), facts).unwrap() {
                seen = it.seq;
                let Event::WorkAsked(asked) = it.event else { continue };
                session.well().carry_out(session.lease(), &asked).unwrap();
                done += 1;
            }
            let head = session.info().unwrap().head.seq;
            session.well().wait_after(session.id(), head, PAUSE).unwrap();
        }
    }

    #[test]
    fn a_runner_applies_changes_that_others_request() {
        let well = Stepwell::in_memory();
        let session = session(&well);
        let id = session.id().clone();
        std::thread::scope(|scope| {
            scope.spawn(|| serve(&session, 4));
            let metadata = BTreeMap::from([("by".to_owned(), "ann".into())]);
            let checkpoint =
                Checkpoint { name: "here".to_owned(), metadata, ..Checkpoint::default() };
            let seq = well.checkpoint(&id, checkpoint).unwrap();
            assert_eq!(well.checkpoints(&id).unwrap().last().unwrap().seq, seq);
            well.enter_phase(&id, Phase::Initialize).unwrap();
            assert_eq!(well.ask(&id, "why?").unwrap().id, "1");
            let answered = well.answer_question(&id, "1", "because").unwrap();
            assert_eq!(answered.answer.as_deref(), Some("because"));
        });
        let head = session.info().unwrap().head;
        assert_eq!((head.phase, head.status), (Some(Phase::Initialize), Status::Running));
        // Impossible changes are refused without a request, and changes without effect are not
        // requested.
        let before = head.seq;
        assert!(matches!(well.enter_phase(&id, Phase::Ship), Err(Error::Illegal { .. })));
        assert!(well.answer_question(&id, "7", "x").is_err());
        assert!(
            well.checkpoint(&id, Checkpoint { name: "7".into(), ..Default::default() }).is_err()
        );
        well.enter_phase(&id, Phase::Initialize).unwrap();
        assert_eq!(session.info().unwrap().head.seq, before);
    }

    #[test]
    fn a_waiting_flow_with_a_live_runner_applies_requests() {
        let well = Stepwell::in_memory();
        let mut created = Created::new("s-1".parse().unwrap(), "work");
        created.flow = Some(crate::model::Flow {
            name: "publish".to_owned(),
            pattern: "chain".to_owned(),
            spec: String::new(),
            hash: crate::model::SpecHash::of(b""),
            variables: BTreeMap::new(),
        });
        let session = well.create(created).unwrap();
        let paused =
            crate::model::StatusChanged { status: Status::Paused, reason: None, error: None };
        session.append(paused).unwrap();
        let id = session.id().clone();
        std::thread::scope(|scope| {
            scope.spawn(|| serve(&session, 1));
            well.checkpoint(&id, Checkpoint { name: "here".into(), ..Default::default() }).unwrap();
        });
        assert_eq!(well.store().keyed_events(&id, &[Kind::WorkAsked]).unwrap().len(), 1);
    }

    #[test]
    fn a_slow_runner_is_reported_and_the_request_stays_recorded() {
        let well = Stepwell::in_memory();
        let session = session(&well);
        let error = well.enter_phase(session.id(), Phase::Initialize).unwrap_err();
        assert!(matches!(error, Error::NotDoneYet { .. }), "{error}");
        assert_eq!(error.kind(), crate::error::ErrorKind::Busy);
        assert!(error.to_string().contains("is recorded"), "{error}");
        serve(&session, 1);
        assert_eq!(session.info().unwrap().head.phase, Some(Phase::Initialize));
    }

    #[test]
    fn if_the_runner_stops_first_the_caller_makes_the_change() {
        let well = Stepwell::in_memory();
        let session = session(&well);
        let id = session.id().clone();
        std::thread::scope(|scope| {
            let asking = scope.spawn(|| well.enter_phase(&id, Phase::Initialize));
            // The runner stops after the request, without acting on it.
            while well.store().keyed_events(&id, &[Kind::WorkAsked]).unwrap().is_empty() {
                let head = session.info().unwrap().head.seq;
                well.wait_after(&id, head, PAUSE).unwrap();
            }
            session.finish(Status::Success, None).unwrap();
            asking.join().unwrap().unwrap();
        });
        assert_eq!(well.info(&id).unwrap().head.phase, Some(Phase::Initialize));
    }

    #[test]
    fn a_request_to_another_lease_is_refused() {
        let well = Stepwell::in_memory();
        let session = session(&well);
        let change = WorkChange::Phase(Phase::Initialize);
        let asked = WorkAsked { epoch: Epoch::new(7), who: "ann".into(), change };
        let refused = well.append_freely(session.id(), asked.into());
        assert!(matches!(refused, Err(Error::Illegal { .. })), "{refused:?}");
    }
}
