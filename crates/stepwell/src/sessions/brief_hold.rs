//! Holding a session for a moment, to record something about it: after whoever has it just now, and
//! only if its files are whole.

use std::time::Duration;

use crate::error::{Error, Result};
use crate::model::{Driver, SessionId, Status};
use crate::sessions::session::Session;
use crate::sessions::well::Stepwell;
use crate::store::SessionInfo;

/// How long a short write waits for another one to be done.
const PATIENCE: Duration = Duration::from_secs(5);

/// How long it waits for one that seems to run and does not let go: another short write is done by
/// then, and a run is not.
const PATIENCE_WITH_RUNS: Duration = Duration::from_secs(1);

/// How long it waits before it tries again.
const PAUSE: Duration = Duration::from_millis(5);

impl Stepwell {
    /// Takes a session's lease for a moment, after whoever has it just now.
    ///
    /// # Errors
    /// [`Error::Held`], if they do not give it back in time.
    pub fn hold_briefly(&self, id: &SessionId) -> Result<Session> {
        // Pauses are counted, because a clock may stand still.
        let (mut waited, mut unchanged, mut epoch) = (Duration::ZERO, Duration::ZERO, None);
        loop {
            let error = match self.lock(id) {
                Err(error @ Error::Held { .. }) => error,
                other => return other,
            };
            let SessionInfo { head, held, .. } = self.store().info(id)?;
            let now = held.map(|held| held.epoch);
            if now != epoch {
                (epoch, unchanged) = (now, Duration::ZERO);
            }
            let runs = head.driver == Driver::Own && head.status == Status::Running;
            if waited >= PATIENCE || (runs && unchanged >= PATIENCE_WITH_RUNS) {
                return Err(error);
            }
            // Returns early when the other one records something.
            self.wait_after(id, head.seq, PAUSE)?;
            waited += PAUSE;
            unchanged += PAUSE;
        }
    }

    /// What is known about a session, once a run that has ended has let go of it: whoever saw it
    /// end need not try again. One that is at work, or waits for a person, is not waited for.
    pub fn settled_info(&self, id: &SessionId) -> Result<SessionInfo> {
        let mut waited = Duration::ZERO;
        loop {
            let info = self.info(id)?;
            let is_at_work = matches!(info.head.status, Status::Running | Status::Paused);
            if info.held.is_none() || is_at_work || waited >= PATIENCE {
                return Ok(info);
            }
            self.wait_after(id, info.head.seq, PAUSE)?;
            waited += PAUSE;
        }
    }

    /// Takes a session's lease for a moment, if its files are whole.
    ///
    /// # Errors
    /// [`Error::HalfRewound`], if a rewind of it was cut off: what is recorded now would be set
    /// aside when the rewind is finished.
    pub fn hold_whole(&self, id: &SessionId) -> Result<Session> {
        let session = self.hold_briefly(id)?;
        // Whoever was at it is done: the lease is ours.
        SessionInfo { held: None, ..session.info()? }.refuse_half_rewound()?;
        Ok(session)
    }
}

impl SessionInfo {
    /// Refuses what must not be done to a session whose files may be half moved.
    ///
    /// # Errors
    /// [`Error::BeingRewound`] while somebody moves them, [`Error::HalfRewound`] if that was cut
    /// off.
    pub fn refuse_half_rewound(&self) -> Result<()> {
        let session = self.head.id.clone();
        match (self.head.rewinding, &self.held) {
            (None, _) => Ok(()),
            (Some(_), Some(_)) => Err(Error::BeingRewound { session }),
            (Some(began), None) => {
                Err(Error::HalfRewound { session, began, trashed: self.trashed_at.is_some() })
            }
        }
    }
}
