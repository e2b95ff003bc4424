//! Bringing an answer to a flow that somebody else holds, and seeing that it is taken up.

use stepwell::{Error, Session, SessionId, Span, Status};
use stepwell_flow::History;

use super::{Reply, agents, change};
use crate::app::{App, Well};
use crate::failure::{Exit, Failure, Result};
use crate::output::note;

/// How long it is waited between two looks, and how many are taken: ten seconds, the time in
/// which a server starts.
const LOOK: rustix::event::Timespec = rustix::event::Timespec { tv_sec: 0, tv_nsec: 50_000_000 };
const LOOKS: usize = 200;

/// Who goes on with an answer.
pub(super) enum GoesOn {
    /// Whoever holds the flow, or will say why not.
    There,
    /// Nobody does: it is for whoever answered.
    Here(Session),
}

/// Records an answer. It needs no agents: nothing is started for it.
pub(super) fn reach((well, id): (&Well, &SessionId), reply: &Reply, app: &App) -> Result<GoesOn> {
    let head = well.standing(id)?.head;
    let history = History::of(well.store().events(id, Span::ALL)?.intact(id)?);
    super::refuse_finished(&history, id)?;
    let busy = |message: String| {
        Failure::new(Exit::Busy, message)
            .hint(format_args!("stepwell resume {id} --attach follows it"))
    };
    if history.memo.open().is_empty() {
        return Err(busy(format!("{id} runs elsewhere, and does not wait for an answer")));
    }
    let stored = history.stored.ok_or_else(|| stepwell_flow::Error::NoFlow(id.clone()))?;
    let stored = (&stored, stored.read()?.spec);
    let (spec, _) = change::settle(stored, &head, &history.memo, reply.use_current_spec)?;
    let redactor = agents::redactor(&spec, app)?;
    let Some(answer) = reply.to(&history.memo, &spec, (&head, &redactor), app)? else {
        return Ok(GoesOn::There);
    };
    let gate = answer.id.clone();
    match well.answer(id, answer) {
        Err(Error::Illegal { why, .. }) => {
            return Err(busy(format!("[{gate}] {why}, and {id} runs elsewhere")));
        }
        answered => drop(answered?),
    }
    taken_up((well, id), &gate)
}

/// Looks who takes an answer up. One who runs the flow looks for answers after it has said that
/// it pauses; so only one that has paused may go without having seen it.
fn taken_up((well, id): (&Well, &SessionId), gate: &str) -> Result<GoesOn> {
    for _ in 0..LOOKS {
        let held = match well.hold(id) {
            Ok(session) => Some(session),
            Err(Error::Held { .. }) => None,
            Err(error) => return Err(error.into()),
        };
        match (held, well.standing(id)?.head.status) {
            (_, Status::Success) | (None, Status::Running) => {
                note(format_args!("{id} runs elsewhere, and goes on there with the answer"));
                return Ok(GoesOn::There);
            }
            (Some(session), _) => return Ok(GoesOn::Here(session)),
            (None, _) => {}
        }
        let _ = rustix::event::poll(&mut [], Some(&LOOK));
    }
    note(format_args!(
        "[{gate}] is answered, and {id} is held elsewhere by one that has not gone on yet"
    ));
    note(format_args!("hint: stepwell resume {id} --attach follows it"));
    Ok(GoesOn::There)
}
