//! The questions that wait for a human.

use stepwell::gates::{Asker, Gates};
use stepwell::{Query, Seq, SessionId, Status, Stepwell};
use stepwell_wire::OpenGate;

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
        for asked in Gates::waiting(&**well.store(), &session_id)?.open() {
            let asker = Asker::of(&**well.store(), &session_id, &asked.gate)?;
            open.push(OpenGate::new(session_id.clone(), asked, asker));
        }
    }
    Ok(open)
}

/// The sessions in which something waits. What was abandoned waits for nobody.
///
/// # Errors
/// If the store cannot be read.
pub fn sessions_with_gates(well: &Stepwell) -> Result<Vec<SessionId>> {
    let mut ids = Vec::new();
    for info in well.sessions(Query::default()) {
        let head = info?.head;
        if head.open_gates > 0 && head.status != Status::Abandoned {
            ids.push(head.id);
        }
    }
    Ok(ids)
}

/// Where the first question was asked that waits in a session.
///
/// # Errors
/// If the session cannot be read.
pub fn first_open_gate(well: &Stepwell, id: &SessionId) -> Result<Option<Seq>> {
    let gates = Gates::waiting(&**well.store(), id)?;
    Ok(gates.open().next().map(|asked| asked.seq))
}
