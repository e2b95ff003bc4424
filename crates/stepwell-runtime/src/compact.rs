//! Making a session's conversation shorter, without running it.

use stepwell::error::Action;
use stepwell::{Session, SessionId};
use stepwell_agent::run::{FrontEnd, Run, Shrunk};
use stepwell_workspace::Prior;

use crate::context_usage::own_tools;
use crate::error::{Error, Result};
use crate::prepare::Prepared;
use crate::request::Interrupt;
use crate::resume::refuse_external;
use crate::runtime::Runtime;

impl Runtime {
    /// Makes a session's conversation shorter. Without a model that can be asked, old messages are
    /// left out. Events go nowhere: what changed is the answer.
    ///
    /// # Errors
    /// If somebody runs the session, or a rewind of it was cut off.
    pub fn compact(&self, id: &SessionId, interrupt: &Interrupt) -> Result<Shrunk> {
        let well = self.writing()?;
        refuse_external(&well.info(id)?.head)?;
        self.compact_held(&self.hold_whole(id)?, interrupt)
    }

    /// Takes the lease of a session for a moment, if its files are whole.
    ///
    /// # Errors
    /// If somebody has it, or a rewind of it was cut off.
    pub fn hold_whole(&self, id: &SessionId) -> Result<Session> {
        Ok(self.writing()?.hold_whole(id)?)
    }

    /// The same for a session that is held.
    ///
    /// # Errors
    /// If it cannot be saved, or is a flow: its runner compacts what its agents say.
    pub fn compact_held(&self, session: &Session, interrupt: &Interrupt) -> Result<Shrunk> {
        let head = session.info()?.head;
        if head.flow.is_some() {
            let why = format!(
                "{} is a flow: its agents' conversations are compacted while it runs",
                head.id
            );
            return Err(Error::invalid(why).helped(Action::Resume, &head.id));
        }
        let weighed = session.well().weigh(session.id())?;
        let prepared = Prepared::for_shrinking(&Prior { head: &head, weighed }, self)?;
        let setup = prepared.setup_with(own_tools(&prepared.agent), self);
        let tokio = tokio::runtime::Builder::new_current_thread().enable_all().build();
        let tokio = tokio.map_err(Error::Thread)?;
        let receiver = interrupt.receiver();
        Ok(tokio.block_on(async {
            Run::new(session, &setup, FrontEnd::nobody())?.shrink_now(receiver).await
        })?)
    }
}
