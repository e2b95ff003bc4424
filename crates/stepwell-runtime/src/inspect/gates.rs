//! The questions that wait for a human.

use stepwell::store::query::Query;
use stepwell::work::{Asked, Asker, Gates};
use stepwell::{SessionId, Status, Stepwell};
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
    for info in well.sessions(Query::default()) {
        let info = info?;
        let id = &info.head.id;
        let waits = match info.head.open_gates {
            0 => may_wait_in_vain(&info) && !answered_in_vain(well, id)?.is_empty(),
            _ => info.head.status != Status::Abandoned,
        };
        if waits {
            ids.push(info.head.id);
        }
    }
    Ok(ids)
}
