//! The other sessions in a session's workspace.

use stepwell::model::Time;
use stepwell::store::query::{Filter, Query, TrashScope};
use stepwell::{SessionId, Store};

use crate::error::Result;

/// The readable sessions with changes since a time. Deleted ones count: their files may still be
/// here.
pub(crate) fn others(store: &dyn Store, id: &SessionId, since: Time) -> Result<Vec<SessionId>> {
    let workspace = Some(store.info(id)?.head.workspace);
    let place = TrashScope::Anywhere;
    let filter = Filter { workspace, since: Some(since), place, ..Filter::default() };
    let mut query = Query { filter, ..Query::default() };
    let mut others = Vec::new();
    loop {
        let page = store.list(&query)?;
        let found = page.sessions.into_iter().filter(|it| it.damage.is_none());
        others.extend(found.map(|it| it.head.id).filter(|other| other != id));
        let Some(next) = page.next else { return Ok(others) };
        query.after = Some(next);
    }
}
