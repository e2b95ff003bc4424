//! External agents with a lifecycle: they report their phases and turns in short updates.

mod told;

use std::collections::BTreeMap;

use serde_json::Value;

use crate::error::{Error, Result};
use crate::log::Head;
use crate::model::{
    Change, Checkpoint, Created, Driver, Edited, Event, Failure as Fault, Kind, Message, NewEvent,
    Phase, PhaseChanged, PhaseSet, Recorded, Role, SessionId, Status, StatusChanged, Time,
};
use crate::sessions::well::Stepwell;
use crate::store::{Order, SessionInfo, Span};

pub use told::{NoTurns, Speaker, read_turns};

/// An agent's session.
#[derive(Debug)]
pub struct Agent {
    /// Its current state.
    pub head: Head,
    /// Every move from phase to phase.
    pub history: Vec<Passage>,
    /// When it entered a final phase.
    pub finalized_at: Option<Time>,
    /// Its final summary.
    pub summary: Option<Value>,
}

/// One move from phase to phase.
#[derive(Debug)]
pub struct Passage {
    /// The phase that was left.
    pub from_phase: Phase,
    /// The phase that was entered.
    pub to_phase: Phase,
    /// When the phase was entered.
    pub timestamp: Time,
}

/// The metadata key of an agent's final summary.
const SUMMARY: &str = "summary";

/// Reads an agent's session.
pub fn read(well: &Stepwell, id: &SessionId) -> Result<Agent> {
    let SessionInfo { head, .. } = well.info(id)?;
    let history = history(well, id)?;
    let is_final = head.phase.is_some_and(|phase| PhaseSet::Lifecycle.is_final(phase));
    let finalized_at = history.last().map(|last| last.timestamp).filter(|_| is_final);
    let summary = head.metadata.get(SUMMARY).filter(|_| is_final).cloned();
    Ok(Agent { head, history, finalized_at, summary })
}

/// Every move of a session from phase to phase.
pub fn history(well: &Stepwell, id: &SessionId) -> Result<Vec<Passage>> {
    let facts = well.store().keyed_events(id, &[Kind::Phase])?;
    let passage = |fact: Recorded| match fact.event {
        Event::Phase(PhaseChanged { from, to }) => {
            Some(Passage { from_phase: from, to_phase: to, timestamp: fact.at })
        }
        _ => None,
    };
    Ok(facts.into_iter().filter_map(passage).collect())
}

/// A new agent's session.
#[derive(Debug)]
pub struct Begin {
    /// Its session's id; absent for a generated one.
    pub id: Option<SessionId>,
    /// Its name.
    pub agent: String,
    /// Its task.
    pub purpose: String,
    /// The folder that it works in.
    pub workspace: String,
    /// Its metadata.
    pub metadata: BTreeMap<String, Value>,
}

/// Creates an agent's session in one write.
pub fn create(well: &Stepwell, begin: Begin) -> Result<SessionId> {
    let id = begin.id.unwrap_or_else(|| well.new_id());
    let created = Created::new(id.clone(), begin.purpose)
        .with_agent(begin.agent)
        .in_workspace(begin.workspace)
        .with_phases(PhaseSet::Lifecycle)
        .driven_externally();
    let mut events = Vec::new();
    match begin.metadata.is_empty() {
        true => events.extend(well.signature()),
        false => events.push(Edited { metadata: begin.metadata, ..Edited::default() }.into()),
    }
    well.create_unheld(created, events)?;
    Ok(id)
}

/// An agent's report about itself. All of it is recorded, or nothing.
#[derive(Debug, Default)]
pub struct Update {
    /// Its new phase.
    pub phase: Option<Phase>,
    /// Metadata to merge.
    pub metadata: BTreeMap<String, Value>,
    /// The goal; an empty one clears it.
    pub goal: Option<String>,
    /// An error.
    pub error: Option<String>,
    /// Can it be resumed?
    pub ready: Option<bool>,
}

/// Records an agent's report.
pub fn update(well: &Stepwell, id: &SessionId, update: Update) -> Result<()> {
    let session = well.hold_briefly(id)?;
    let head = session.info()?.head;
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
    if let Some(goal) = update.goal {
        let goal = Some(goal.trim()).filter(|goal| !goal.is_empty());
        let goal = goal.map_or(Change::Clear, |goal| Change::Set(goal.to_owned()));
        events.push(Edited { goal, ..Edited::default() }.into());
    }
    if let (Some(from), Some(to)) = (head.phase, update.phase)
        && from != to
    {
        events.extend([PhaseChanged { from, to }.into(), Checkpoint::of_phase(to).into()]);
    }
    if let Some(message) = update.error {
        events.push(Fault { message }.into());
    }
    // After the phase change, which also sets this flag.
    if update.ready.is_some() {
        events.push(Edited { ready: update.ready, ..Edited::default() }.into());
    }
    if !events.is_empty() {
        session.append_all(well.signed(events))?;
    }
    Ok(())
}

/// Records that an agent resumed. Its status stays the same.
pub fn count_resume(well: &Stepwell, id: &SessionId) -> Result<()> {
    let session = well.hold_briefly(id)?;
    let head = session.info()?.head;
    refuse_own(&head)?;
    let status = |status| NewEvent::from(StatusChanged { status, reason: None, error: None });
    // A resume is a change to running. A session that reads as running was left without a status.
    let events = match head.status {
        Status::Running => vec![status(Status::Interrupted), status(Status::Running)],
        before => vec![status(Status::Running), status(before)],
    };
    session.append_all(well.signed(events))?;
    Ok(())
}

/// Records turns of an agent's conversation: all or none.
pub fn say(well: &Stepwell, id: &SessionId, turns: Vec<Message>) -> Result<()> {
    let session = well.hold_briefly(id)?;
    let head = session.info()?.head;
    refuse_own(&head)?;
    if let Some(phase) = head.phase.filter(|phase| PhaseSet::Lifecycle.is_final(*phase)) {
        return Err(is_final(id, phase));
    }
    session.append_all(well.signed(turns.into_iter().map(NewEvent::from).collect()))?;
    Ok(())
}

/// Records an agent's turns as one step: all or none.
pub fn step(well: &Stepwell, id: &SessionId, turns: Vec<Message>) -> Result<()> {
    let session = well.hold_briefly(id)?;
    let head = session.info()?.head;
    refuse_own(&head)?;
    if let Some(phase) = head.phase.filter(|phase| PhaseSet::Lifecycle.is_final(*phase)) {
        return Err(is_final(id, phase));
    }
    session.step(turns)?;
    Ok(())
}

/// The last turns of an agent's conversation, oldest first.
pub fn turns(well: &Stepwell, id: &SessionId, most: usize) -> Result<Vec<Turn>> {
    let mut turns = Vec::new();
    for event in well.log(id, Span { order: Order::Newest, ..Span::ALL }) {
        let event = event?;
        if turns.len() == most {
            break;
        }
        if let Event::Message(message) = &event.event {
            turns.push(Turn { at: event.at, role: message.role, text: told::shown(message) });
        }
    }
    turns.reverse();
    Ok(turns)
}

/// A turn of an agent's conversation.
#[derive(Debug)]
pub struct Turn {
    /// When it was recorded.
    pub at: Time,
    /// Who spoke.
    pub role: Role,
    /// Its text, with tool calls and results in words.
    pub text: String,
}

/// How an agent ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// It achieved its task.
    Completed,
    /// It failed.
    Failed,
    /// It was given up.
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

/// What [`finalize`] did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Finalized {
    /// It ended the session.
    Now,
    /// The session had ended in the same way; nothing was recorded.
    Before,
    /// The session had ended in another way; nothing was recorded.
    Otherwise(Phase),
}

/// What an agent reports at its end.
#[derive(Debug, Default)]
pub struct Said {
    /// Metadata to merge.
    pub metadata: BTreeMap<String, Value>,
    /// The error, if it failed.
    pub error: Option<String>,
}

/// Ends an agent's session. Ending it again in the same way changes nothing; in another way it is
/// refused.
pub fn finalize(
    well: &Stepwell,
    id: &SessionId,
    outcome: Outcome,
    said: Said,
) -> Result<Finalized> {
    let session = well.hold_briefly(id)?;
    let head = session.info()?.head;
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
    session.append_all(well.signed(events))?;
    Ok(Finalized::Now)
}

/// A summary, as an entry of the metadata.
#[must_use]
pub fn summary(text: Option<String>) -> BTreeMap<String, Value> {
    text.map(|text| (SUMMARY.to_owned(), Value::from(text))).into_iter().collect()
}

/// The error for changing an agent that has ended.
#[must_use]
pub fn is_final(id: &SessionId, phase: Phase) -> Error {
    Error::FinalPhase { session: id.clone(), phase }
}

/// Refuses a session that is not such an agent's.
///
/// # Errors
/// [`Error::NotAnAgent`].
pub fn refuse_own(head: &Head) -> Result<()> {
    if head.driver == Driver::External && head.phases == Some(PhaseSet::Lifecycle) {
        return Ok(());
    }
    Err(Error::NotAnAgent { session: head.id.clone() })
}

/// The lifecycle phase with this name.
///
/// # Errors
/// [`Error::UnknownPhase`].
pub fn phase(name: &str) -> Result<Phase> {
    let unknown = || Error::UnknownPhase { name: name.to_owned() };
    PhaseSet::Lifecycle.parse(name).ok_or_else(unknown)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn agent(well: &Stepwell) -> SessionId {
        let begin = Begin {
            id: None,
            agent: "builder".to_owned(),
            purpose: "build".to_owned(),
            workspace: String::new(),
            metadata: BTreeMap::new(),
        };
        create(well, begin).unwrap()
    }

    #[test]
    fn an_agents_history_lists_its_phases() {
        let well = Stepwell::in_memory();
        let id = agent(&well);
        let to = |phase| Update { phase: Some(phase), ..Update::default() };
        update(&well, &id, to(Phase::Planning)).unwrap();
        update(&well, &id, to(Phase::Planning)).unwrap();
        say(&well, &id, vec![Message::user("one")]).unwrap();
        step(&well, &id, vec![Message::assistant("two")]).unwrap();
        assert_eq!(well.info(&id).unwrap().head.steps, 1);
        let known = read(&well, &id).unwrap();
        assert_eq!((known.history.len(), known.head.ready), (1, true));
        let said: Vec<String> =
            turns(&well, &id, 1).unwrap().into_iter().map(|it| it.text).collect();
        assert_eq!(said, ["two"]);
        count_resume(&well, &id).unwrap();
        assert_eq!(well.info(&id).unwrap().head.resumes, 1);
    }

    #[test]
    fn an_update_is_recorded_wholly_or_not_at_all() {
        let well = Stepwell::in_memory();
        let id = agent(&well);
        let with = |goal: &str| {
            let (phase, goal) = (Some(Phase::Executing), Some(goal.to_owned()));
            update(&well, &id, Update { phase, goal, ..Update::default() })
        };
        let before = well.info(&id).unwrap().head;
        assert!(with(&"x".repeat(70_000)).is_err());
        assert_eq!(well.info(&id).unwrap().head, before);
        with(" ship ").unwrap();
        let head = well.info(&id).unwrap().head;
        assert_eq!((head.phase, head.goal.as_deref()), (Some(Phase::Executing), Some("ship")));
    }

    #[test]
    fn an_end_is_recorded_once_and_nothing_follows_it() {
        let well = Stepwell::in_memory();
        let id = agent(&well);
        let end = |outcome| finalize(&well, &id, outcome, Said::default()).unwrap();
        assert_eq!(end(Outcome::Completed), Finalized::Now);
        assert_eq!(end(Outcome::Completed), Finalized::Before);
        assert_eq!(end(Outcome::Failed), Finalized::Otherwise(Phase::Completed));
        let late = Update { error: Some("late".to_owned()), ..Update::default() };
        assert!(matches!(update(&well, &id, late), Err(Error::FinalPhase { .. })));
        let words = vec![Message::user("late")];
        assert!(matches!(step(&well, &id, words.clone()), Err(Error::FinalPhase { .. })));
        assert!(matches!(say(&well, &id, words), Err(Error::FinalPhase { .. })));
    }

    #[test]
    fn a_session_that_stepwell_runs_cannot_be_finalized() {
        let well = Stepwell::in_memory();
        let own = well.create(well.draft("work")).unwrap().id().clone();
        let refused = finalize(&well, &own, Outcome::Completed, Said::default());
        assert!(matches!(refused, Err(Error::NotAnAgent { .. })));
    }

    #[test]
    fn updates_through_a_front_end_name_the_person() {
        let well = Stepwell::in_memory();
        let who = Some(crate::model::Who::from("web: ann".to_owned()));
        let acting = well.acting(crate::sessions::well::Acting { who, event: None });
        let id = agent(&acting);
        // Each write names the person exactly once, in its last event.
        let named = || {
            let events = well.store().events(&id, Span::ALL).unwrap().events;
            let says = |it: &&Recorded| matches!(&it.event, Event::Edited(it) if it.who.is_some());
            events.iter().filter(says).count()
        };
        assert_eq!(named(), 1);
        step(&acting, &id, vec![Message::assistant("one")]).unwrap();
        assert_eq!(named(), 2);
        say(&acting, &id, vec![Message::user("two")]).unwrap();
        let planning = Update { phase: Some(Phase::Planning), ..Update::default() };
        update(&acting, &id, planning).unwrap();
        assert_eq!(named(), 4);
        let goal = Update { goal: Some("ship".to_owned()), ..Update::default() };
        update(&acting, &id, goal).unwrap();
        assert_eq!(named(), 5);
        let task =
            crate::model::Task { description: "more".to_owned(), ..crate::model::Task::default() };
        acting.change_tasks(&id, |tasks| Ok(vec![tasks.add(task)?])).unwrap();
        finalize(&acting, &id, Outcome::Completed, Said::default()).unwrap();
        assert_eq!(named(), 7);
    }
}
