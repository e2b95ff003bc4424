//! Questions that were answered in vain: by someone whose word does not count for whose session it is.
//! Whoever runs the session asks them again. Where nobody does they wait on, and their user's own
//! answer is taken.

use std::collections::HashMap;
use stepwell_workspace::ownership;

use stepwell::model::Driver;
use stepwell::work::{Asked, Gates};
use stepwell::{Error as StoreError, Seq, SessionId, SessionInfo, Status, Stepwell};
use stepwell_files::forwarded::asked_in;

use crate::error::Result;
use crate::request::Given;
use crate::runtime::Runtime;

/// Can a session wait with a question that has an answer? Its runner paused at it, was stopped there,
/// or died there; one that is alive asks again by itself.
pub(crate) fn may_wait_in_vain(info: &SessionInfo) -> bool {
    let stopped =
        matches!(info.head.status, Status::Paused | Status::Interrupted | Status::Running);
    stopped && info.head.driver == Driver::Own && info.held.is_none()
}

/// The questions of a session that nobody runs whose answers do not count for this user.
pub(crate) fn answered_in_vain(well: &Stepwell, id: &SessionId) -> Result<Vec<Asked>> {
    if !may_wait_in_vain(&well.info(id)?) {
        return Ok(Vec::new());
    }
    let ignored = well.weigh(id)?.ignored;
    if ignored.is_empty() {
        return Ok(Vec::new());
    }
    let mut asked = Gates::of(&**well.store(), id)?.asked;
    let last: HashMap<String, Seq> = asked.iter().map(|it| (it.gate.id.clone(), it.seq)).collect();
    asked.retain(|it| {
        let in_vain = it.answered_at.is_some_and(|at| ignored.contains(&at));
        in_vain && last.get(&it.gate.id) == Some(&it.seq)
    });
    Ok(asked)
}

impl Runtime {
    /// Asks again what was answered in vain in a session that this user began, so that their own
    /// answer is taken. Says whether something was.
    pub(crate) fn ask_again(&self, well: &Stepwell, id: &SessionId, given: &Given) -> Result<bool> {
        let head = well.info(id)?.head;
        let waits = head.open_gates > 0 && given.gate.is_none();
        if waits
            || self.workspace().host.environment.is_in_run()
            || !ownership::began_by_user(self.workspace(), well, &head)?
        {
            return Ok(false);
        }
        let mut again = false;
        let meant = |asked: &Asked| given.gate.as_ref().is_none_or(|name| *name == asked.gate.id);
        for asked in answered_in_vain(well, id)?.into_iter().filter(meant) {
            // A subagent's own question comes first: the others are asked for it.
            for place in asked_in(&**well.store(), id, &asked.gate.id)? {
                let in_vain = answered_in_vain(well, &place.session)?;
                if !in_vain.iter().any(|it| it.seq == place.asked.seq) {
                    continue;
                }
                match well.lock(&place.session) {
                    Ok(session) => drop(session.append(place.asked.gate)?),
                    // Whoever runs it asks.
                    Err(StoreError::Held { .. }) => {}
                    Err(error) => return Err(error.into()),
                }
                again = true;
            }
        }
        Ok(again)
    }
}
