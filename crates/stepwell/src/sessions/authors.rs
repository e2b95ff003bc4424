//! Who recorded an event: by the run that it belongs to, and by what a server noted.

use crate::error::Result;
use crate::log::codec::Login;
use crate::model::{Seq, SessionId, Settings, Who};
use crate::sessions::session::Session;
use crate::sessions::well::Stepwell;
use crate::trust::Runs;

impl Stepwell {
    /// Who recorded an event, if it was not this user. A server knows who wrote each event,
    /// whatever the log says; what was copied there, or replaced since, is nobody's. Without a
    /// server, whoever began the run recorded it.
    pub fn recorded_by_other(&self, id: &SessionId, runs: &Runs, seq: Seq) -> Result<Option<Who>> {
        if let Some(who) = runs.others(seq) {
            return Ok(Some(who.clone()));
        }
        match self.store().written_by(id, seq)? {
            Login::Noted(login) if login != self.store().login()? => {
                Ok(Some(Who { name: String::new(), login }))
            }
            _ => Ok(None),
        }
    }
}

impl Session {
    /// Says that what follows is this user's run, if the log says that it is somebody else's.
    pub fn sign_run(&self) -> Result<()> {
        let seq = self.info()?.head.seq;
        let well = self.well();
        if well.weigh(self.id())?.runs.others(seq).is_some() {
            self.append(Settings { who: well.who().clone(), ..Settings::default() })?;
        }
        Ok(())
    }
}
