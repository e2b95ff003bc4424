//! Answers to questions: made to fit, recorded once, from wherever they come.

use std::time::{Duration, Instant};

use stepwell::model::{Gate, GateAnswered, Kind};
use stepwell::sessions::Subscription;
use stepwell::store::Facts;
use stepwell::work::Gates;
use stepwell::{Event, Recorded, Seq, SessionId, Status, Stepwell};

use crate::error::{Error, Result};
use crate::flow::fitting_answer;
use crate::gate_answer::{Answered, Fitting, last_answer, record, tell_late};
use crate::request::{FlowOptions, Given};
use crate::runtime::Runtime;

/// How long the caller waits for a held session to take the answer up: a server may start first.
const TAKEN_UP_WITHIN: Duration = Duration::from_secs(10);

/// How long the caller waits for somebody else's run to accept the answer or to ask again.
const ACCEPTED_WITHIN: Duration = Duration::from_secs(2);

impl Runtime {
    /// Answers a question of a session that runs, or waits, anywhere. Nothing is started for it.
    ///
    /// # Errors
    /// If no such question waits, the answer does not fit it, or somebody was quicker.
    pub fn answer(
        &self,
        session: &SessionId,
        given: &Given,
        flow: &FlowOptions,
    ) -> Result<Answered> {
        self.answer_having_seen(session, given, flow, None)
    }

    /// The same by someone who saw the log up to a seq: what a rewind took back since is not
    /// answered.
    ///
    /// # Errors
    /// As above, and if the session was rewound since.
    pub fn answer_having_seen(
        &self,
        session: &SessionId,
        given: &Given,
        flow: &FlowOptions,
        seen: Option<Seq>,
    ) -> Result<Answered> {
        self.refuse_in_run("answering")?;
        let well = self.writing()?;
        let info = well.info(session)?;
        let fit = || match info.head.flow.is_some() {
            true => fitting_answer(self, &well, &info.head, given, flow)
                .map(|answer| (session.clone(), answer)),
            false => waiting(&well, session, given).and_then(|(session, gate)| {
                let fitting = Fitting { session: &session, gate: &gate, spec: None };
                let answer = fitting.answer(given.answer.clone(), well.now())?;
                let answer = GateAnswered::new(gate.id, answer, self.who());
                Ok((session, answer))
            }),
        };
        let (mut fitted, mut seen) = (fit(), seen);
        if fitted.is_err() && self.ask_again(&well, session, given)? {
            // It is the same question in another place.
            (fitted, seen) = (fit(), None);
        }
        let (session, answer) = fitted.map_err(|error| tell_late(&well, session, given, error))?;
        let answer = match seen {
            Some(seen) => answer.having_seen(seen),
            None => answer,
        };
        let gate = answer.id.clone();
        let seq = record(&self.acting_well(&well), None, &session, answer.into())?;
        self.tell_whose_answers(&well, &info);
        let resume = well.top_of(&session)?;
        let mut goes_on = is_taken_up(&well, &session, &resume)?;
        let others = goes_on && self.is_somebody_elses(&well, &info);
        let asked_again = others && is_asked_again(&well, &session, &gate, seq)?;
        goes_on &= !asked_again;
        let stopped = !goes_on && well.info(&resume)?.head.was_stopped();
        Ok(Answered { session, gate, seq, goes_on, asked_again, stopped, resume })
    }
}

/// The question of an agent's session that is meant: the named one, or the last one that waits,
/// there or in the sessions of its subagents.
fn waiting(well: &Stepwell, id: &SessionId, given: &Given) -> Result<(SessionId, Gate)> {
    let below = well.subagents(id)?.into_iter().map(|it| it.head);
    let heads: Vec<_> = std::iter::once(well.info(id)?.head).chain(below).collect();
    let mut open = Vec::new();
    for head in heads.iter().filter(|head| head.open_gates > 0) {
        let gates = match &given.gate {
            Some(name) => Gates::named(&**well.store(), &head.id, name)?,
            None => Gates::waiting(&**well.store(), &head.id)?,
        };
        open.extend(gates.open().map(|asked| (head.id.clone(), asked.gate.clone())));
    }
    let Some(name) = &given.gate else {
        let not_waiting = || Error::NotWaiting { session: id.clone(), elsewhere: false };
        return open.pop().ok_or_else(not_waiting);
    };
    if let Some(found) = open.pop() {
        return Ok(found);
    }
    // Names repeat from session to session: the one that was answered last is meant.
    let mut last = None;
    for head in &heads {
        last = last.max(last_answer(well, &head.id, name)?);
    }
    if let Some(last) = last {
        return Err(last.into_error(well)?);
    }
    let mut open = Vec::new();
    for head in heads.iter().filter(|head| head.open_gates > 0) {
        let gates = Gates::waiting(&**well.store(), &head.id)?;
        open.extend(gates.open().map(|asked| asked.gate.clone()));
    }
    Err(Error::NoGate { session: id.clone(), name: name.clone(), open })
}

/// Does the run of somebody else ask the question once more, because the answer does not count
/// there? It asks again, or goes on with the call or the flow.
fn is_asked_again(well: &Stepwell, id: &SessionId, gate: &str, answered: Seq) -> Result<bool> {
    let news = well.subscribe_to(id)?;
    let within = |event: &Recorded| match &event.event {
        Event::Gate(asked) if asked.id == gate => Some(true),
        Event::ToolStarted(started) if started.call_id == gate => Some(false),
        Event::ToolFinished(finished) if finished.call_id == gate => Some(false),
        Event::Status(changed) if changed.status == Status::Running => Some(false),
        _ => None,
    };
    let kinds = [Kind::Gate, Kind::ToolStarted, Kind::ToolFinished, Kind::Status];
    let facts = Facts { from: answered.next(), ..Facts::of(&kinds) };
    let look =
        || -> Result<Option<bool>> { Ok(well.store().keyed(id, facts)?.iter().find_map(within)) };
    Ok(until(&news, ACCEPTED_WITHIN, look)?.unwrap_or(false))
}

/// Looks who takes an answer up. One who runs the session looks for answers after it has said that
/// it pauses; so only one that has paused may go without having seen it. A subagent that nobody
/// holds is taken up by whoever runs the session at the top.
fn is_taken_up(well: &Stepwell, id: &SessionId, top: &SessionId) -> Result<bool> {
    let news = well.subscribe_to(id)?;
    news.add(top);
    let look = || -> Result<Option<bool>> {
        let info = well.info(id)?;
        Ok(match (info.held.is_some(), info.head.status) {
            (_, Status::Success) | (true, Status::Running) => Some(true),
            (false, _) if top == id => Some(false),
            (false, _) => {
                let top = well.info(top)?;
                // A flow looks for answers whenever one of its lanes has paused.
                let goes_on = top.head.flow.is_some() && top.head.status == Status::Running;
                match top.held.is_some() {
                    false => Some(false),
                    true => goes_on.then_some(true),
                }
            }
            (true, _) => None,
        })
    };
    Ok(until(&news, TAKEN_UP_WITHIN, look)?.unwrap_or(true))
}

/// Looks now and after each change, until a look has an answer or the time is over.
#[expect(clippy::disallowed_methods, reason = "a wait is bounded in real time")]
fn until<T>(
    news: &Subscription,
    within: Duration,
    look: impl Fn() -> Result<Option<T>>,
) -> Result<Option<T>> {
    let began = Instant::now();
    loop {
        let left = within.saturating_sub(began.elapsed());
        match look()? {
            None if !left.is_zero() => drop(news.next(left)?),
            found => return Ok(found),
        }
    }
}
