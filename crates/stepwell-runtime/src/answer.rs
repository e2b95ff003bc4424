//! Answers to questions: made to fit, recorded once, from wherever they come.

use std::time::Duration;

use stepwell::gates::Gates;
use stepwell::{
    Answer, Error as StoreError, Event, Facts, Gate, GateAnswered, Kind, Lease, NewEvent, NodeKey,
    Permission, Seq, SessionId, Status, Stepwell, Time, Who,
};
use stepwell_agent::permission::Rule;
use stepwell_agent::run::OpenGate;
use stepwell_flow::accept;
use stepwell_flow::revision::gate_of;
use stepwell_flow::spec::Spec;

use crate::error::{Error, Result, SinceAnswer};
use crate::flow::is_permission;
use crate::handle::Steering;
use crate::request::FlowOptions;
use crate::runtime::Runtime;

/// An answer, as a front end takes it from a person.
#[derive(Clone, Debug)]
pub struct Given {
    /// The question's name; absent, the only one that waits is meant, or an agent's last one.
    pub gate: Option<String>,
    /// The answer. Words that allow or deny do so where that is asked.
    pub answer: Answer,
}

/// An answer that was recorded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answered {
    /// The session that the question was asked in.
    pub session: SessionId,
    /// The question's name.
    pub gate: String,
    /// Where the answer is recorded.
    pub seq: Seq,
    /// Does somebody who holds the session go on with it? If not, it waits to be resumed.
    pub goes_on: bool,
}

/// How long one look waits at a session that is held but has not gone on yet, and how many are
/// taken: ten seconds, the time in which a server starts.
const LOOK: Duration = Duration::from_millis(50);
const LOOKS: usize = 200;

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
        let head = well.info(session)?.head;
        let (session, answer) = match head.flow.is_some() {
            true => {
                (session.clone(), crate::flow::fitting_answer(self, &well, &head, given, flow)?)
            }
            false => {
                let (session, gate) = waiting(&well, session, given)?;
                let fitting = Fitting { session: &session, gate: &gate, spec: None };
                let answer = fitting.answer(&given.answer, well.now())?;
                let answer = GateAnswered::new(gate.id, answer, self.who());
                (session, answer)
            }
        };
        let answer = match seen {
            Some(seen) => answer.having_seen(seen),
            None => answer,
        };
        let gate = answer.id.clone();
        let seq = record(&well, None, &session, (answer, None))?;
        let goes_on = is_taken_up(&well, &session, seq)?;
        Ok(Answered { session, gate, seq, goes_on })
    }
}

/// The question of an agent's session that is meant: the named one, or the last one that waits,
/// there or in the sessions of its subagents.
fn waiting(well: &Stepwell, id: &SessionId, given: &Given) -> Result<(SessionId, Gate)> {
    let below = well.subagents(id)?.into_iter().map(|it| it.head);
    let heads: Vec<_> = std::iter::once(well.info(id)?.head).chain(below).collect();
    let mut open = Vec::new();
    for head in heads.iter().filter(|head| head.open_gates > 0) {
        let gates = Gates::of(&**well.store(), &head.id)?;
        for asked in gates.open() {
            open.push((head.id.clone(), asked.gate.clone()));
        }
    }
    match &given.gate {
        None => open.pop().ok_or_else(|| Error::NotWaiting { session: id.clone() }),
        Some(name) => match open.iter().rposition(|(_, gate)| gate.id == *name) {
            Some(found) => Ok(open.swap_remove(found)),
            None => {
                // Names repeat from session to session: the one that was answered last is meant.
                let mut last = None;
                for head in &heads {
                    last = last.max(last_answer(well, &head.id, name)?);
                }
                if let Some(last) = last {
                    return Err(last.into_error(well, name)?);
                }
                let (session, name) = (id.clone(), name.clone());
                let open = open.into_iter().map(|(_, gate)| gate).collect();
                Err(Error::NoGate { session, name, open })
            }
        },
    }
}

/// That a question of this name was answered, and by whom, if it was the last thing that became
/// of it.
pub(crate) fn answered_before(
    well: &Stepwell,
    id: &SessionId,
    name: &str,
) -> Result<Option<Error>> {
    last_answer(well, id, name)?.map(|last| last.into_error(well, name)).transpose()
}

/// The last answer to a question of some name. They are compared by when they were given.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
struct LastAnswer {
    at: Time,
    session: SessionId,
    who: String,
}

impl LastAnswer {
    fn into_error(self, well: &Stepwell, gate: &str) -> Result<Error> {
        let Self { at, session, who } = self;
        let since = since_answer(well, &session)?;
        Ok(Error::AnsweredBefore { session, gate: gate.to_owned(), who, at, since })
    }
}

fn last_answer(well: &Stepwell, id: &SessionId, name: &str) -> Result<Option<LastAnswer>> {
    let facts = Facts::under(&[Kind::GateAnswered], name);
    let Some(last) = well.store().keyed(id, facts)?.pop() else { return Ok(None) };
    let Event::GateAnswered(given) = last.event else { return Ok(None) };
    let (at, session) = (last.at, id.clone());
    Ok(Some(LastAnswer { at, session, who: given.who.to_string() }))
}

/// A question that an answer is to fit.
pub(crate) struct Fitting<'a> {
    pub(crate) session: &'a SessionId,
    pub(crate) gate: &'a Gate,
    /// The spec, if a flow asked.
    pub(crate) spec: Option<&'a Spec>,
}

impl Fitting<'_> {
    /// The answer as it is recorded: words where a flow asks for words, and leave or none where an
    /// agent asks for that.
    pub(crate) fn answer(&self, answer: &Answer, now: Time) -> Result<Answer> {
        let (session, gate) = (self.session.clone(), self.gate.id.clone());
        let key = gate.parse::<NodeKey>().ok().filter(|_| !is_permission(self.gate));
        let (Some(spec), Some(key)) = (self.spec, key) else {
            let Answer::Text(text) = answer else { return Ok(answer.clone()) };
            let asked = self.gate.prompt.clone();
            let unclear = || Error::Unclear { session, gate, text: text.clone(), asked };
            return verdict(text).ok_or_else(unclear);
        };
        let fits = accept(self.gate, gate_of(spec, &key), &answer.text(), now);
        let fits = fits.map_err(|why| Error::BadAnswer { session, gate, why })?;
        Ok(Answer::Text(fits))
    }
}

/// What a word about a tool comes to; what is behind a colon is the reason.
fn verdict(text: &str) -> Option<Answer> {
    let (word, reason) = text.split_once(':').unwrap_or((text, ""));
    let word = word.trim().trim_end_matches(['.', '!']).to_lowercase();
    let reason = Some(reason.trim().to_owned()).filter(|reason| !reason.is_empty());
    match (Answer::read(&word), reason) {
        (allow @ Answer::Allow { .. }, _) => Some(allow),
        (Answer::Deny { never, .. }, reason) => Some(Answer::Deny { reason, never }),
        (Answer::Text(_), _) => None,
    }
}

/// Answers a question of a run that this process carries out.
pub(crate) fn answer_here(
    steering: &Steering,
    open: &OpenGate,
    (answer, rule): (Answer, Option<&Rule>),
    who: Who,
) -> Result<Answered> {
    if steering.in_run {
        return Err(Error::OnlyPeople { what: "answering" });
    }
    let spec = steering.spec.as_deref();
    let fitting = Fitting { session: &open.session, gate: &open.gate, spec };
    let answer = fitting.answer(&answer, steering.well.now())?;
    let redactor = steering.well.redactor().with_own_count();
    if rule.is_some_and(|rule| redactor.holds_secret(rule.to_string().as_bytes()).is_some()) {
        let (session, gate) = (open.session.clone(), open.gate.id.clone());
        return Err(Error::SecretRule { session, gate });
    }
    let remembered = rule.map(|rule| Permission {
        who: Some(who.clone()),
        ..Permission::new(rule.to_string(), answer.allows())
    });
    let answer = GateAnswered::new(open.gate.id.as_str(), answer, who).having_seen(open.seq);
    let lease = open.here.as_ref().map(|here| &here.lease);
    let seq = record(&steering.well, lease, &open.session, (answer, remembered))?;
    let (session, gate) = (open.session.clone(), open.gate.id.clone());
    Ok(Answered { session, gate, seq, goes_on: true })
}

/// Records an answer, under the lease where this process has it. The first one counts.
pub(crate) fn record(
    well: &Stepwell,
    lease: Option<&Lease>,
    session: &SessionId,
    (answer, remembered): (GateAnswered, Option<Permission>),
) -> Result<Seq> {
    let gate = answer.id.clone();
    let recorded = match lease {
        Some(lease) => {
            let mut events: Vec<NewEvent> = remembered.into_iter().map(Into::into).collect();
            events.push(answer.into());
            well.append_held(lease, events).map(|written| written.last)
        }
        None => well.answer(session, answer),
    };
    match recorded {
        Ok(seq) => Ok(seq),
        Err(StoreError::Illegal { why, .. }) => Err(beaten(well, session, gate, why)?),
        Err(error) => Err(error.into()),
    }
}

/// Why an answer was not taken: somebody else's is there, or it does not fit.
fn beaten(well: &Stepwell, session: &SessionId, gate: String, why: String) -> Result<Error> {
    let facts = Facts::under(&[Kind::GateAnswered], &gate);
    let last = well.store().keyed(session, facts)?.pop();
    let session = session.clone();
    Ok(match last {
        Some(first) if why.contains("was answered") => {
            let Event::GateAnswered(answer) = first.event else {
                return Ok(Error::AnswerRefused { session, gate, why });
            };
            let (who, at, since) =
                (answer.who.to_string(), first.at, since_answer(well, &session)?);
            Error::AnsweredBefore { session, gate, who, at, since }
        }
        _ => Error::AnswerRefused { session, gate, why },
    })
}

/// How a session stands, of which a question was answered.
fn since_answer(well: &Stepwell, id: &SessionId) -> Result<SinceAnswer> {
    let info = well.info(id)?;
    Ok(match info.held {
        Some(_) => SinceAnswer::Runs,
        None if info.head.status.has_ended() => SinceAnswer::Ended,
        None => SinceAnswer::Stopped,
    })
}

/// Looks who takes an answer up. One who runs the session looks for answers after it has said that
/// it pauses; so only one that has paused may go without having seen it.
fn is_taken_up(well: &Stepwell, id: &SessionId, mut seq: Seq) -> Result<bool> {
    for _ in 0..LOOKS {
        let info = well.info(id)?;
        match (info.held.is_some(), info.head.status) {
            (_, Status::Success) | (true, Status::Running) => return Ok(true),
            (false, _) => return Ok(false),
            (true, _) => {}
        }
        seq = well.store().wait_after(id, seq, LOOK)?;
    }
    Ok(true)
}
