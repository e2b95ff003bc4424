//! The questions that wait for a human.

use std::collections::HashSet;

use stepwell::model::Kind;
use stepwell::store::Excerpt;
use stepwell::store::query::Query;
use stepwell::work::{Asked, Asker, Gates};
use stepwell::{Event, Recorded, SessionId, SessionInfo, Status, Stepwell};
use stepwell_files::forwarded::waits_above;
use stepwell_wire::OpenGate;

use crate::ask_again::{answered_in_vain, may_wait_in_vain};
use crate::error::Result;

/// Every question that waits in a store, or in one session of it.
///
/// # Errors
/// If a session cannot be read.
pub fn open_gates(well: &Stepwell, of: Option<&SessionId>) -> Result<Vec<OpenGate>> {
    let sessions = match of {
        Some(id) => vec![id.clone()],
        None => sessions_with_gates(well)?,
    };
    let mut open = Vec::new();
    for session_id in sessions {
        for asked in waiting(well, &session_id)? {
            let asker = Asker::of(&**well.store(), &session_id, &asked)?;
            open.push(OpenGate::new(session_id.clone(), &asked, asker));
        }
    }
    Ok(open)
}

/// The questions of a session that wait for this user: those without an answer, else those whose
/// answers do not count.
fn waiting(well: &Stepwell, id: &SessionId) -> Result<Vec<Asked>> {
    let open: Vec<Asked> = Gates::waiting(&**well.store(), id)?.open().cloned().collect();
    if open.is_empty() { answered_in_vain(well, id) } else { Ok(open) }
}

/// The sessions in which something waits that no session above asks too: of a subagent that has
/// paused, the one that is resumed.
///
/// # Errors
/// If the store cannot be read.
pub fn sessions_with_gates(well: &Stepwell) -> Result<Vec<SessionId>> {
    let mut ids = Vec::new();
    for id in all_with_gates(well)? {
        if !waits_above(&**well.store(), &id)? {
            ids.push(id);
        }
    }
    Ok(ids)
}

/// Every session in which something waits. What was abandoned waits for nobody.
pub(super) fn all_with_gates(well: &Stepwell) -> Result<Vec<SessionId>> {
    let mut ids = Vec::new();
    let mut sessions = well.sessions(Query::default());
    loop {
        let some: Vec<SessionInfo> = sessions.by_ref().take(AT_ONCE).collect::<Result<_, _>>()?;
        if some.is_empty() {
            return Ok(ids);
        }
        let answered = answered_among(well, &some)?;
        for info in some {
            let id = &info.head.id;
            let waits = match info.head.open_gates {
                0 => answered.contains(id) && !answered_in_vain(well, id)?.is_empty(),
                _ => info.head.status != Status::Abandoned,
            };
            if waits {
                ids.push(info.head.id);
            }
        }
    }
}

/// How many sessions are looked at with one question to the store.
const AT_ONCE: usize = 500;

/// Those of some sessions that may wait with an answered question: few have any answer.
fn answered_among(well: &Stepwell, some: &[SessionInfo]) -> Result<HashSet<SessionId>> {
    let may_wait = some.iter().filter(|it| it.head.open_gates == 0 && may_wait_in_vain(it));
    let ids: Vec<SessionId> = may_wait.map(|it| it.head.id.clone()).collect();
    if ids.is_empty() {
        return Ok(HashSet::new());
    }
    let wanted = Excerpt { keyed: &[Kind::GateAnswered], last: &[] };
    let found = well.store().excerpts(&ids, &wanted)?;
    let is_answered = |events: &stepwell::Result<Vec<Recorded>>| match events {
        Ok(events) => events.iter().any(|it| matches!(it.event, Event::GateAnswered(_))),
        // Looking closer says what is wrong with it.
        Err(_) => true,
    };
    let answered = ids.into_iter().zip(found).filter(|(_, events)| is_answered(events));
    Ok(answered.map(|(id, _)| id).collect())
}
