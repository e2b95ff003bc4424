//! Short holds of a session's lease, to record something about it: they wait for the present
//! holder, and can require that no rewind is unfinished.

use std::time::Duration;

use crate::error::{Error, Result};
use crate::model::{Driver, SessionId, Status};
use crate::sessions::session::Session;
use crate::sessions::well::Stepwell;
use crate::store::SessionInfo;

/// How long a short write waits for another one.
const PATIENCE: Duration = Duration::from_secs(5);

/// How long it waits if the session is running and its lease does not change hands. Another short
/// write would have finished by then; a run would not.
const PATIENCE_WITH_RUNS: Duration = Duration::from_secs(1);

/// The pause between attempts.
const PAUSE: Duration = Duration::from_millis(5);

impl Stepwell {
    /// Acquires a session's lease for a short write, waiting for its present holder.
    ///
    /// # Errors
    /// [`Error::Held`] if the holder does not release it in time.
    pub fn hold_briefly(&self, id: &SessionId) -> Result<Session> {
        // Counts its pauses, because a test's clock may stand still.
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
            // Returns early if the holder records something.
            self.wait_after(id, head.seq, PAUSE)?;
            waited += PAUSE;
            unchanged += PAUSE;
        }
    }

    /// A session's info, after a run that has ended released its lease, so that a caller who saw
    /// the end need not retry. A running or paused session is not waited for.
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

    /// Acquires a session's lease for a short write, if no rewind of its files is unfinished.
    ///
    /// # Errors
    /// [`Error::HalfRewound`] if a rewind was interrupted: finishing it would discard what is
    /// recorded now.
    pub fn hold_whole(&self, id: &SessionId) -> Result<Session> {
        let session = self.hold_briefly(id)?;
        // `held` is cleared, because the lease is ours now: an unfinished rewind has no runner.
        SessionInfo { held: None, ..session.info()? }.refuse_half_rewound()?;
        Ok(session)
    }
}

impl SessionInfo {
    /// Refuses a session whose files may be half moved.
    ///
    /// # Errors
    /// [`Error::BeingRewound`] during a rewind, [`Error::HalfRewound`] after an interrupted one.
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
