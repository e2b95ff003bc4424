//! Making a session that is the user's own.

use stepwell::{Created, NewEvent, NewSession, Session, Stepwell};

use crate::error::Result;
use crate::runtime::Runtime;

impl Runtime {
    /// Makes a session that is the user's own. It is marked before it is there, so that a process
    /// that dies in between does not leave a session that its own user is refused. What somebody
    /// else made under the same name is not marked.
    pub(crate) fn create_own(
        &self,
        well: &Stepwell,
        created: Created,
        events: Vec<NewEvent>,
    ) -> Result<Session> {
        let id = created.id.clone();
        let is_known = self.is_own(&id) || well.store().exists(&id)?;
        if !is_known {
            self.own(&id);
        }
        let made = well.create(NewSession { created, events });
        if made.is_err() && !is_known {
            self.disown(&id);
        }
        Ok(made?)
    }
}
