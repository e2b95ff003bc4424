//! Forks: sessions that share another one's past.

use stepwell::model::{Change, Driver, Edited, StatusChanged};
use stepwell::sessions::ForkAt;
use stepwell::work::compactions::{self, Extent};
use stepwell::{Event, NewEvent, Seq, SessionId, Status};
use stepwell_workspace::ownership;

use crate::error::Result;
use crate::files::finish_rewind_of;
use crate::runtime::Runtime;

/// Asks for a fork.
#[derive(Clone, Debug)]
pub struct ForkRequest {
    /// The session whose past is shared.
    pub session: SessionId,
    /// The last event that is shared; absent, all are.
    pub at: Option<Seq>,
    /// The fork's label.
    pub label: Option<String>,
}

/// A fork that was made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Forked {
    /// The new session.
    pub session: SessionId,
    /// The last event that it shares.
    pub at: Seq,
}

impl Runtime {
    /// Makes a session that shares another one's past. A rewind that was cut off is finished first.
    ///
    /// # Errors
    /// If there is no such event, or it cannot be saved.
    pub fn fork(&self, request: &ForkRequest) -> Result<Forked> {
        let (well, parent) = (self.writing()?, &request.session);
        if let Some(label) = &request.label {
            well.refuse_taken_label(label, None)?;
        }
        finish_rewind_of(&well, parent, self)?;
        let acting = self.acting_well(&well);
        let head = well.info(parent)?.head;
        let at = request.at.unwrap_or(head.seq);
        // Nobody ran it yet: it was cut off nowhere. How an agent of someone else's stands, its
        // phase says.
        let waits = StatusChanged { status: Status::Interrupted, reason: None, error: None };
        let mut begins: Vec<NewEvent> = match head.driver {
            Driver::Own => vec![waits.into()],
            Driver::External => Vec::new(),
        };
        // What the metadata says of the view was recorded beside what changed the view.
        let facts = well.store().keyed_events(parent, &compactions::KINDS)?;
        if facts.iter().any(|fact| matches!(fact.event, Event::Compacted(_))) {
            begins.push(Extent::at(&facts, at).edited().into());
        }
        if let Some(label) = &request.label {
            let label = Change::Set(label.clone());
            begins.push(Edited { label, ..Edited::default() }.into());
        } else {
            begins.extend(acting.signature());
        }
        let session = acting.fork(parent, ForkAt { at: Some(at), begins })?.id().clone();
        // What was allowed in the user's own session is allowed in its fork.
        if ownership::is_own(self.workspace(), parent) {
            ownership::mark(self.workspace(), &session);
        }
        Ok(Forked { session, at })
    }
}
