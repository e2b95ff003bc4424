//! Who recorded an event: by the run that it belongs to, and by the server's login.

use crate::error::Result;
use crate::log::codec::Login;
use crate::model::{Seq, SessionId, Settings, Who};
use crate::sessions::session::Session;
use crate::sessions::well::Stepwell;
use crate::trust::Runs;

impl Stepwell {
    /// Who recorded an event, if it was not this user. A server knows each event's author,
    /// independently of the log; it knows none for copied and replaced events. Without a server,
    /// the event's author is the user who started the run.
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
    /// Records that this user's run begins, if the log shows another user's.
    pub fn sign_run(&self) -> Result<()> {
        let seq = self.info()?.head.seq;
        let well = self.well();
        if well.weigh(self.id())?.runs.others(seq).is_some() {
            self.append(Settings { who: well.who().clone(), ..Settings::default() })?;
        }
        Ok(())
    }
}
