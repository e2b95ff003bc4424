//! An answer to a question: made to fit it, and recorded once.

use std::time::Duration;

use stepwell::log::Timeline;
use stepwell::model::{Answer, Gate, GateAnswered, Kind, NodeKey, Permission, Time, Who};
use stepwell::store::{Facts, Lease};
use stepwell::trust::Counted;
use stepwell::work::{Asked, Gates};
use stepwell::{Error as StoreError, Event, NewEvent, Recorded, Seq, SessionId, Stepwell};
use stepwell_files::forwarded::{AskedIn, asked_in};
use stepwell_flow::revision::gate_of;
use stepwell_flow::spec::Spec;
use stepwell_flow::{NoAnswer, accept};

use crate::error::{Error, Result, SinceAnswer};
use crate::request::Given;

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
    /// Did whoever runs it ask once more, because the answer does not count there?
    pub asked_again: bool,
    /// Did a person stop the session at the top? It stays stopped: nobody resumes it because of an
    /// answer alone.
    pub stopped: bool,
    /// The session to resume then: of a subagent's question, the one at the top.
    pub resume: SessionId,
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
            return meant.ok_or_else(|| {
                let why = format!("{text:?} neither allows nor denies what is asked: {asked}");
                Error::BadAnswer { session, gate, why, is_late: false }
            });
        };
        let fits = accept(self.gate, gate_of(spec, &key), &answer.text(), now);
        let fits = fits.map_err(|why| {
            let is_late = matches!(why, NoAnswer::Late { .. });
            Error::BadAnswer { session, gate, why: why.to_string(), is_late }
        })?;
        Ok(Answer::Text(fits))
    }
}

/// The answer that a word about a tool means. A reason stands behind a colon, and only a denial has one:
/// leave with a condition is no leave.
fn verdict(text: &str) -> Option<Answer> {
    let (word, reason) = Answer::word_and_reason(text);
    match (Answer::read(&word), reason) {
        (allow @ Answer::Allow { .. }, None) => Some(allow),
        (Answer::Deny { never, .. }, reason) => Some(Answer::Deny { reason, never }),
        (Answer::Allow { .. }, Some(_)) | (Answer::Text(_), _) => None,
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

/// Records an answer, under the lease where this process has it. The first one counts: of a
/// subagent's question, which those above it ask too, the first to any of these.
pub(crate) fn record(
    well: &Stepwell,
    lease: Option<&Lease>,
    session: &SessionId,
    new: NewAnswer,
) -> Result<Seq> {
    let asked_in = asked_in(&**well.store(), session, &new.answer.id)?;
    if asked_in.len() < 2 || !is_still_seen(well, session, &new.answer)? {
        return record_in(well, lease, session, new);
    }
    for place in &asked_in {
        if let Some(first) = counted_answer(well, &place.session, &place.asked)? {
            let before = LastAnswer::of(&place.session, first.clone());
            copy_answer(well, &asked_in, &first)?;
            if let Some(before) = before {
                return Err(before.into_error(well)?);
            }
        }
    }
    let (mut seq, mut remembered) = (Seq::ZERO, new.remembered);
    for (nth, place) in asked_in.iter().enumerate() {
        let (id, seen) = (place.asked.gate.id.clone(), Some(place.asked.seq));
        let answer = GateAnswered { id, seen, ..new.answer.clone() };
        let is_here = place.session == *session;
        let remembered = remembered.take_if(|_| is_here);
        let lease = lease.filter(|lease| lease.session == place.session);
        match record_in(well, lease, &place.session, NewAnswer { answer, remembered }) {
            Ok(at) if nth == 0 || is_here => seq = at,
            Ok(_) => {}
            // The subagent's own is the one that counts. Its runner may have closed the others.
            Err(Error::AnsweredBefore { .. } | Error::AnswerRefused { .. }) if nth > 0 => {}
            Err(error) => return Err(error),
        }
    }
    Ok(seq)
}

/// Does an answer that names what its giver saw still mean this question?
fn is_still_seen(well: &Stepwell, session: &SessionId, answer: &GateAnswered) -> Result<bool> {
    let Some(seen) = answer.seen else { return Ok(true) };
    let asked = Gates::named(&**well.store(), session, &answer.id)?.asked.pop();
    Ok(asked.is_some_and(|asked| asked.seq <= seen) && timeline(well, session)?.contains(seen))
}

/// The answer that a question has, if it counts.
fn counted_answer(well: &Stepwell, session: &SessionId, asked: &Asked) -> Result<Option<Recorded>> {
    let Some(at) = asked.answered_at else { return Ok(None) };
    let facts = Facts { from: at, ..Facts::under(&[Kind::GateAnswered], &asked.gate.id) };
    let Some(mut given) = well.store().keyed(session, facts)?.into_iter().next() else {
        return Ok(None);
    };
    if well.weigh(session)?.ignored.contains(&at) {
        return Ok(None);
    }
    match (well.judge(session)?.answer(&given), &mut given.event) {
        (Some(Counted::As(counted)), Event::GateAnswered(it)) => it.answer = counted,
        _ => return Ok(None),
    }
    Ok(Some(given))
}

/// Closes a question wherever it still waits, as it was answered elsewhere: whoever answered it may
/// have been cut off in between.
fn copy_answer(well: &Stepwell, asked_in: &[AskedIn], first: &Recorded) -> Result<()> {
    let Event::GateAnswered(given) = &first.event else { return Ok(()) };
    for place in asked_in.iter().filter(|place| place.asked.answer.is_none()) {
        let id = place.asked.gate.id.clone();
        let (answer, who) = (given.answer.clone(), given.who.clone());
        match well.answer(&place.session, GateAnswered::new(id, answer, who)) {
            Ok(_) | Err(StoreError::Illegal { .. }) => {}
            Err(error) => return Err(error.into()),
        }
    }
    Ok(())
}

/// What counts of a session's log as it stands.
fn timeline(well: &Stepwell, id: &SessionId) -> Result<Timeline> {
    let end = well.info(id)?.head.seq;
    let moves = well.store().keyed_events(id, &[Kind::Rewound, Kind::Undone])?;
    Ok(Timeline::at(end, moves.iter()))
}

/// Records an answer in one session.
fn record_in(
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
            let (who, at, since) = (named(&answer.who), first.at, since_answer(well, &session)?);
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
    last_answer(well, id, name)?.map(|last| last.into_error(well)).transpose()
}

/// The last answer to a question. They are compared by when they were given.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct LastAnswer {
    pub(crate) at: Time,
    pub(crate) session: SessionId,
    gate: String,
    who: String,
}

impl LastAnswer {
    pub(crate) fn into_error(self, well: &Stepwell) -> Result<Error> {
        let Self { at, session, gate, who } = self;
        let since = since_answer(well, &session)?;
        Ok(Error::AnsweredBefore { session, gate, who, at, since })
    }

    fn of(session: &SessionId, recorded: Recorded) -> Option<Self> {
        let Event::GateAnswered(given) = recorded.event else { return None };
        let (at, session, who) = (recorded.at, session.clone(), named(&given.who));
        Some(Self { at, session, gate: given.id, who })
    }

    /// Was it given so lately that somebody may still be about to answer the same question?
    pub(crate) fn is_recent(&self, now: Time) -> bool {
        now.since(self.at) < LATELY
    }
}

/// How long somebody may look at a question that was answered meanwhile.
const LATELY: Duration = Duration::from_secs(10 * 60);

/// Who it was; where logins are known, the name that they gave themselves is not all.
fn named(who: &Who) -> String {
    match &who.login {
        Some(login) if login != who.user() => format!("{who} ({login})"),
        _ => who.to_string(),
    }
}

/// The last answer to a question of some name in a session.
pub(crate) fn last_answer(
    well: &Stepwell,
    id: &SessionId,
    name: &str,
) -> Result<Option<LastAnswer>> {
    let facts = Facts::under(&[Kind::GateAnswered], name);
    let mut answers = well.store().keyed(id, facts)?;
    if !answers.is_empty() {
        // What was taken back was not answered.
        let timeline = timeline(well, id)?;
        answers.retain(|answer| timeline.contains(answer.seq));
    }
    Ok(answers.pop().and_then(|last| LastAnswer::of(id, last)))
}

/// How many events of a log are looked at for its last answer.
const TAIL: u64 = 200;

/// The last answer to any question of a session, if it was given lately.
pub(crate) fn recent_answer(well: &Stepwell, id: &SessionId) -> Result<Option<LastAnswer>> {
    let end = well.info(id)?.head.seq;
    let from = Seq::new(end.get().saturating_sub(TAIL)).next();
    let facts = Facts { from, ..Facts::of(&[Kind::GateAnswered]) };
    let mut answers = well.store().keyed(id, facts)?;
    let timeline = timeline(well, id)?;
    answers.retain(|answer| timeline.contains(answer.seq));
    let last = answers.pop().and_then(|last| LastAnswer::of(id, last));
    Ok(last.filter(|last| last.is_recent(well.now())))
}

/// Whoever answers what does not wait any more is told who was first, and when: whatever else
/// became of the session since.
pub(crate) fn tell_late(well: &Stepwell, id: &SessionId, given: &Given, error: Error) -> Error {
    let is_late =
        matches!(error, Error::NotWaiting { .. } | Error::NoGate { .. } | Error::Finished { .. });
    if !is_late {
        return error;
    }
    let last = match &given.gate {
        Some(name) => last_answer(well, id, name),
        None => recent_answer(well, id),
    };
    match last.and_then(|last| last.map(|last| last.into_error(well)).transpose()) {
        Ok(Some(late)) => late,
        _ => error,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn leave_with_a_condition_is_no_leave() {
        assert_eq!(verdict("Yes."), Some(Answer::ALLOW_ONCE));
        assert_eq!(verdict("No: too risky"), Some(Answer::deny("too risky")));
        for text in ["yes: but not b", "always: only here", "yes but not b"] {
            assert_eq!(verdict(text), None, "{text}");
        }
    }
}
