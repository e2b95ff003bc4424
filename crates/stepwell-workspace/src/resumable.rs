//! Which session is resumed if nobody names one.

use stepwell::log::Head;
use stepwell::model::Driver;
use stepwell::store::query::{Family, Filter, Query};
use stepwell::{SessionId, Status, Stepwell};

use crate::error::Result;
use crate::ownership;
use crate::workspace::Workspace;

/// How sessions stand that can be resumed.
const RESUMABLE: [Status; 4] =
    [Status::Interrupted, Status::Partial, Status::Paused, Status::Failed];

/// Whose session is resumed if nobody names one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Newest {
    /// One that the user, or an agent of their own, began in this workspace.
    Own,
    /// One that may be taken up without a word from its user: neither a fork that nobody ran yet,
    /// nor a session that a person stopped.
    OwnUnasked,
    /// Anyone's, in any workspace of the store.
    Anyones,
}

/// The newest session that can be resumed.
///
/// # Errors
/// If the store cannot be read.
pub fn newest(workspace: &Workspace, well: &Stepwell, newest: Newest) -> Result<Option<SessionId>> {
    let filter = Filter { status: RESUMABLE.to_vec(), ..Filter::default() };
    match newest {
        Newest::Anyones => newest_of(well, filter, |_| Ok(true)),
        Newest::Own => newest_of(well, workspace.place.narrow(filter), |head| {
            ownership::may_resume(workspace, well, head)
        }),
        Newest::OwnUnasked => newest_of(well, workspace.place.narrow(filter), |head| {
            let waits = head.never_ran() || head.was_stopped();
            Ok(!waits && ownership::may_resume(workspace, well, head)?)
        }),
    }
}

/// The newest session that runs.
///
/// # Errors
/// If the store cannot be read.
pub fn newest_running(well: &Stepwell) -> Result<Option<SessionId>> {
    let running = Filter { status: vec![Status::Running], ..Filter::default() };
    newest_of(well, running, |_| Ok(true))
}

fn newest_of(
    well: &Stepwell,
    filter: Filter,
    wanted: impl Fn(&Head) -> Result<bool>,
) -> Result<Option<SessionId>> {
    let filter = Filter { family: Family::Roots, driver: Some(Driver::Own), ..filter };
    for info in well.sessions(Query { filter, limit: 10, ..Query::default() }) {
        let head = info?.head;
        if wanted(&head)? {
            return Ok(Some(head.id));
        }
    }
    Ok(None)
}
