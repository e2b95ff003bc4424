//! The questions that wait for a human.

use stepwell::gates::Gates;
use stepwell::{Access, Event, Kind, Query, Recorded, Seq, SessionId, Status, Stepwell};
use stepwell_wire::OpenGate;
use stepwell_workspace::Workspace;

use crate::error::{Error, Result};
use crate::gate_answer::answered_before;

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
        for asked in Gates::of(&**well.store(), &session_id)?.open() {
            let (session_id, gate) = (session_id.clone(), (&asked.gate).into());
            open.push(OpenGate { session_id, gate, asked_at: asked.at, store: None });
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

/// In how many of the sessions that changed last an answer is looked for.
const LATELY: usize = 100;

/// That a question of this name was answered lately in a store, by whom and when.
///
/// # Errors
/// If the store cannot be read.
pub fn answered_lately(well: &Stepwell, name: &str) -> Result<Option<Error>> {
    for info in well.sessions(Query::default()).take(LATELY) {
        if let Some(before) = answered_before(well, &info?.head.id, name)? {
            return Ok(Some(before));
        }
    }
    Ok(None)
}

/// The session in which a question of that name waits, of any store of the user's.
///
/// # Errors
/// If a session cannot be read.
pub fn gate_elsewhere(workspace: &Workspace, name: &str) -> Result<Option<SessionId>> {
    for store in workspace.everywhere(|it, path| it.open(path, Access::Read)) {
        for id in sessions_with_gates(&store.well)? {
            let gates = Gates::of(&**store.well.store(), &id)?;
            if gates.open().any(|asked| asked.gate.id == name) {
                return Ok(Some(id));
            }
        }
    }
    Ok(None)
}

/// Where the first question was asked that waits in a session.
///
/// # Errors
/// If the session cannot be read.
pub fn first_open_gate(well: &Stepwell, id: &SessionId) -> Result<Option<Seq>> {
    let facts = well.store().keyed_events(id, &[Kind::Gate])?;
    let gates = Gates::of(&**well.store(), id)?;
    let open: Vec<&str> = gates.open().map(|asked| asked.gate.id.as_str()).collect();
    let is_open = |fact: &&Recorded| matches!(&fact.event, Event::Gate(gate) if open.contains(&gate.id.as_str()));
    Ok(facts.iter().find(is_open).map(|fact| fact.seq))
}
