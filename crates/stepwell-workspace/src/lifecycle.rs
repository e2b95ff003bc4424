//! Agents that Stepwell does not run: they tell of their life in short updates, and
//! their sessions follow the lifecycle phases.

use std::collections::BTreeMap;
use std::time::Duration;

use serde_json::Value;
use stepwell::{
    Checkpoint, Created, Driver, Edited, Event, Failure as Fault, Head, Kind, Message, NewEvent,
    Order, Phase, PhaseChanged, PhaseSet, ResumeLimits, Role, Session, SessionId, Span, Standing,
    Status, StatusChanged, Stepwell, Time,
};

use crate::error::{Error, Result};
use crate::events::each_event;
use crate::workspace::Workspace;

/// An agent's session.
#[derive(Debug)]
pub struct Agent {
    /// How it stands.
    pub head: Head,
    /// Every move from phase to phase.
    pub history: Vec<Passage>,
    /// When it ended.
    pub finalized_at: Option<Time>,
    /// Its last word.
    pub summary: Option<Value>,
}

/// One move from phase to phase.
#[derive(Debug)]
pub struct Passage {
    /// The phase that was left.
    pub from_phase: Phase,
    /// The phase that was entered.
    pub to_phase: Phase,
    /// When.
    pub timestamp: Time,
}

/// The metadata key under which the last word of an agent is kept.
const SUMMARY: &str = "summary";

/// Reads an agent's session.
pub fn read(well: &Stepwell, id: &SessionId) -> Result<Agent> {
    let Standing { head, .. } = well.standing(id)?;
    let history = history(well, id)?;
    let is_final = head.phase.is_some_and(|phase| PhaseSet::Lifecycle.is_final(phase));
    let finalized_at = history.last().map(|last| last.timestamp).filter(|_| is_final);
    let summary = head.metadata.get(SUMMARY).filter(|_| is_final).cloned();
    Ok(Agent { head, history, finalized_at, summary })
}

/// Every move of a session from phase to phase.
pub fn history(well: &Stepwell, id: &SessionId) -> Result<Vec<Passage>> {
    let facts = well.store().facts(id, &[Kind::Phase])?;
    let passage = |fact: stepwell::Recorded| match fact.event {
        Event::Phase(PhaseChanged { from, to }) => {
            Some(Passage { from_phase: from, to_phase: to, timestamp: fact.at })
        }
        _ => None,
    };
    Ok(facts.into_iter().filter_map(passage).collect())
}

/// A new agent.
#[derive(Debug)]
pub struct Begin {
    /// Its session's id; none, if it gets a new one.
    pub id: Option<SessionId>,
    /// Its name.
    pub agent: String,
    /// What it is for.
    pub purpose: String,
    /// The folder that it works in.
    pub workspace: String,
    /// What it remembers.
    pub metadata: BTreeMap<String, Value>,
}

/// Makes an agent's session, in one write.
pub fn create(well: &Stepwell, begin: Begin) -> Result<SessionId> {
    let id = begin.id.unwrap_or_else(|| well.new_id());
    let created = Created::new(id.clone(), begin.purpose)
        .with_agent(begin.agent)
        .in_workspace(begin.workspace)
        .with_phases(PhaseSet::Lifecycle)
        .driven_externally();
    let mut events = Vec::new();
    if !begin.metadata.is_empty() {
        events.push(Edited { metadata: begin.metadata, ..Edited::default() }.into());
    }
    well.create_unheld(created, events)?;
    Ok(id)
}

/// What an agent tells of itself. All of it is recorded, or none.
#[derive(Debug, Default)]
pub struct Update {
    /// Where in its work it is.
    pub phase: Option<Phase>,
    /// What it remembers.
    pub metadata: BTreeMap<String, Value>,
    /// What went wrong.
    pub error: Option<String>,
    /// Is it ready to be resumed?
    pub ready: Option<bool>,
}

/// Records what an agent tells of itself.
pub fn update(well: &Stepwell, id: &SessionId, update: Update) -> Result<()> {
    let session = hold(well, id)?;
    let head = session.standing()?.head;
    refuse_own(&head)?;
    if let Some(phase) = head.phase.filter(|phase| PhaseSet::Lifecycle.is_final(*phase))
        && update.phase != Some(phase)
    {
        return Err(is_final(id, phase));
    }
    let mut events: Vec<NewEvent> = Vec::new();
    if !update.metadata.is_empty() {
        events.push(Edited { metadata: update.metadata, ..Edited::default() }.into());
    }
    if let (Some(from), Some(to)) = (head.phase, update.phase)
        && from != to
    {
        events.extend([PhaseChanged { from, to }.into(), Checkpoint::of_phase(to).into()]);
    }
    if let Some(message) = update.error {
        events.push(Fault { message }.into());
    }
    // After the phase, which has an opinion of its own.
    if update.ready.is_some() {
        events.push(Edited { ready: update.ready, ..Edited::default() }.into());
    }
    if !events.is_empty() {
        session.append_all(events)?;
    }
    Ok(())
}

/// Records that an agent was taken up again. How it stands otherwise stays as it is.
pub fn count_resume(well: &Stepwell, id: &SessionId) -> Result<()> {
    let session = hold(well, id)?;
    let head = session.standing()?.head;
    refuse_own(&head)?;
    let status = |status| NewEvent::from(StatusChanged { status, reason: None, error: None });
    // A session is resumed when it begins to run; one that seems to run was left by its agent.
    let events = match head.status {
        Status::Running => vec![status(Status::Interrupted), status(Status::Running)],
        before => vec![status(Status::Running), status(before)],
    };
    session.append_all(events)?;
    Ok(())
}

/// Records turns of an agent's conversation, all or none.
pub fn say(well: &Stepwell, id: &SessionId, turns: Vec<Message>) -> Result<()> {
    let session = hold(well, id)?;
    let head = session.standing()?.head;
    refuse_own(&head)?;
    if let Some(phase) = head.phase.filter(|phase| PhaseSet::Lifecycle.is_final(*phase)) {
        return Err(is_final(id, phase));
    }
    session.append_all(turns.into_iter().map(NewEvent::from).collect())?;
    Ok(())
}

/// The last turns of an agent's conversation, oldest first. Earlier ones stay recorded.
pub fn turns(well: &Stepwell, id: &SessionId, most: usize) -> Result<Vec<Turn>> {
    let mut turns = Vec::new();
    each_event(well, id, Span { order: Order::Newest, ..Span::ALL }, |event| -> Result<()> {
        if let Event::Message(message) = &event.event
            && turns.len() < most
        {
            turns.push(Turn { at: event.at, role: message.role, text: message.text() });
        }
        Ok(())
    })?;
    turns.reverse();
    Ok(turns)
}

/// A turn of an agent's conversation.
#[derive(Debug)]
pub struct Turn {
    /// When it was said.
    pub at: Time,
    /// By whom.
    pub role: Role,
    /// What was said.
    pub text: String,
}

/// How an agent ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// It did what it was for.
    Completed,
    /// It could not.
    Failed,
    /// Nobody goes on with it.
    Abandoned,
}

impl From<Outcome> for Phase {
    fn from(outcome: Outcome) -> Self {
        match outcome {
            Outcome::Completed => Self::Completed,
            Outcome::Failed => Self::Failed,
            Outcome::Abandoned => Self::Abandoned,
        }
    }
}

/// What a finalizing did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Finalized {
    /// It ended the session.
    Now,
    /// The session had ended so before; nothing was recorded.
    Before,
    /// The session had ended before, in another way; nothing was recorded.
    Otherwise(Phase),
}

/// What is said of an agent's end.
#[derive(Debug, Default)]
pub struct Said {
    /// What it leaves.
    pub metadata: BTreeMap<String, Value>,
    /// What went wrong.
    pub error: Option<String>,
}

/// Ends an agent's session, once: ending it again in the same way changes nothing, in
/// another way is refused.
pub fn finalize(
    well: &Stepwell,
    id: &SessionId,
    outcome: Outcome,
    said: Said,
) -> Result<Finalized> {
    let session = hold(well, id)?;
    let head = session.standing()?.head;
    refuse_own(&head)?;
    let to = Phase::from(outcome);
    let from = match head.phase {
        Some(from) if from == to => return Ok(Finalized::Before),
        Some(from) if PhaseSet::Lifecycle.is_final(from) => return Ok(Finalized::Otherwise(from)),
        from => from.unwrap_or(PhaseSet::Lifecycle.initial()),
    };
    let mut events: Vec<NewEvent> = Vec::new();
    if !said.metadata.is_empty() {
        events.push(Edited { metadata: said.metadata, ..Edited::default() }.into());
    }
    if let Some(message) = said.error {
        events.push(Fault { message }.into());
    }
    events.extend([PhaseChanged { from, to }.into(), Checkpoint::of_phase(to).into()]);
    session.append_all(events)?;
    Ok(Finalized::Now)
}

/// A summary as metadata.
#[must_use]
pub fn summary(text: Option<String>) -> BTreeMap<String, Value> {
    text.map(|text| (SUMMARY.to_owned(), Value::from(text))).into_iter().collect()
}

/// The error of whoever wants to change what has ended.
#[must_use]
pub fn is_final(id: &SessionId, phase: Phase) -> Error {
    Error::FinalPhase { session: id.clone(), phase }
}

fn refuse_own(head: &Head) -> Result<()> {
    if head.driver == Driver::External && head.phases == Some(PhaseSet::Lifecycle) {
        return Ok(());
    }
    Err(Error::RunByStepwell { session: head.id.clone() })
}

/// How long an update waits for another one to be done.
const PATIENCE: Duration = Duration::from_secs(5);

/// How long it waits for one that seems to run and does not let go: another short command is
/// done by then, and a run is not.
const PATIENCE_WITH_RUNS: Duration = Duration::from_secs(1);

/// How long it waits before it tries again.
const PAUSE: Duration = Duration::from_millis(5);

/// Takes the lease for a moment, after whoever has it just now.
pub fn hold(well: &Stepwell, id: &SessionId) -> Result<Session> {
    // Pauses are counted, because a clock may stand still.
    let (mut waited, mut unchanged, mut epoch) = (Duration::ZERO, Duration::ZERO, None);
    loop {
        let error = match well.hold(id) {
            Err(error @ stepwell::Error::Held { .. }) => error,
            other => return Ok(other?),
        };
        let Standing { head, held, .. } = well.store().standing(id)?;
        let now = held.map(|held| held.epoch);
        if now != epoch {
            (epoch, unchanged) = (now, Duration::ZERO);
        }
        let runs = head.driver == Driver::Own && head.status == Status::Running;
        if waited >= PATIENCE || (runs && unchanged >= PATIENCE_WITH_RUNS) {
            return Err(error.into());
        }
        // Returns early when the other one records something.
        well.store().wait_after(id, head.seq, PAUSE)?;
        waited += PAUSE;
        unchanged += PAUSE;
    }
}

impl Workspace {
    /// The limits within which an agent is resumed.
    #[must_use]
    pub fn resume_limits(&self) -> ResumeLimits {
        ResumeLimits {
            timeout: self.config.settings.resume_timeout,
            max_errors: u64::from(self.config.settings.max_errors.get()),
            ..ResumeLimits::default()
        }
    }
}

/// The lifecycle phase of that name.
///
/// # Errors
/// If there is no such phase.
pub fn phase(name: &str) -> Result<Phase> {
    let unknown = || Error::UnknownPhase { name: name.to_owned() };
    PhaseSet::Lifecycle.parse(name).ok_or_else(unknown)
}
