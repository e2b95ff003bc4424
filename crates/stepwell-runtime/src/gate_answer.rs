//! An answer to a question: made to fit it, and recorded once.

use stepwell::{
    Answer, Error as StoreError, Event, Facts, Gate, GateAnswered, Kind, Lease, NewEvent, NodeKey,
    Permission, Seq, SessionId, Stepwell, Time,
};
use stepwell_flow::accept;
use stepwell_flow::revision::gate_of;
use stepwell_flow::spec::Spec;

use crate::error::{Error, Result, SinceAnswer};

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

/// Does a gate ask whether a tool may run? Other questions are named after their nodes.
#[must_use]
pub fn is_permission(gate: &Gate) -> bool {
    gate.call.is_some() || gate.id.parse::<NodeKey>().is_err()
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
    pub(crate) fn answer(&self, answer: Answer, now: Time) -> Result<Answer> {
        let (session, gate) = (self.session.clone(), self.gate.id.clone());
        let key = gate.parse::<NodeKey>().ok().filter(|_| !is_permission(self.gate));
        let (Some(spec), Some(key)) = (self.spec, key) else {
            let Answer::Text(text) = answer else { return Ok(answer) };
            let asked = self.gate.prompt.clone();
            let meant = verdict(&text);
            return meant.ok_or(Error::Unclear { session, gate, text, asked });
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

/// An answer that is to be recorded.
pub(crate) struct NewAnswer {
    pub(crate) answer: GateAnswered,
    /// The same choice for later calls.
    pub(crate) remembered: Option<Permission>,
}

impl From<GateAnswered> for NewAnswer {
    fn from(answer: GateAnswered) -> Self {
        Self { answer, remembered: None }
    }
}

/// Records an answer, under the lease where this process has it. The first one counts.
pub(crate) fn record(
    well: &Stepwell,
    lease: Option<&Lease>,
    session: &SessionId,
    new: NewAnswer,
) -> Result<Seq> {
    let NewAnswer { answer, remembered } = new;
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
pub(crate) struct LastAnswer {
    at: Time,
    session: SessionId,
    who: String,
}

impl LastAnswer {
    pub(crate) fn into_error(self, well: &Stepwell, gate: &str) -> Result<Error> {
        let Self { at, session, who } = self;
        let since = since_answer(well, &session)?;
        Ok(Error::AnsweredBefore { session, gate: gate.to_owned(), who, at, since })
    }
}

pub(crate) fn last_answer(
    well: &Stepwell,
    id: &SessionId,
    name: &str,
) -> Result<Option<LastAnswer>> {
    let facts = Facts::under(&[Kind::GateAnswered], name);
    let Some(last) = well.store().keyed(id, facts)?.pop() else { return Ok(None) };
    let Event::GateAnswered(given) = last.event else { return Ok(None) };
    let (at, session) = (last.at, id.clone());
    Ok(Some(LastAnswer { at, session, who: given.who.to_string() }))
}
