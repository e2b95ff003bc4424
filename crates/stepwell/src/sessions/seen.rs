//! Whether a log is still the one that this machine's user saw.
//!
//! Someone who can write to a store can truncate a log, replace it, or change derived data. The
//! chain of a replaced log is valid. So the user's notes keep the last seq they saw, with the
//! chain's value there. Only appending can keep that value.

use crate::error::{Error, Result};
use crate::model::SessionId;
use crate::sessions::well::Stepwell;
use crate::store::{Damage, Derived};

/// What this machine knows of a log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Recognised {
    /// Its user saw it before, and it has only grown.
    Known,
    /// Its user has never seen it.
    FirstSeen,
}

impl Stepwell {
    /// Verifies a whole log and its derived data, and compares it with the notes.
    ///
    /// # Errors
    /// [`Error::Damaged`] if the log is inconsistent in itself. [`Error::Altered`] if it is not the
    /// log that the user saw, or its derived data does not follow from it.
    pub fn recognise(&self, id: &SessionId) -> Result<Recognised> {
        let verdict = self.store().maintain().verify(id)?;
        if let Some(damage) = verdict.damage {
            return Err(damage.into_error(id));
        }
        let seen = self.notes().seen(id);
        let is_whole = verdict.derived == Derived::Right;
        match seen {
            None if is_whole => Ok(Recognised::FirstSeen),
            None => {
                let seq = self.store().info(id)?.head.seq;
                let what = "its derived data does not follow from its log".to_owned();
                Err(Damage { seq, what }.into_error(id))
            }
            Some(seen) => {
                let is_same = self.store().maintain().place(id, Some(seen.seq))? == Some(seen);
                if is_whole && is_same {
                    Ok(Recognised::Known)
                } else {
                    Err(Error::Altered(id.clone()))
                }
            }
        }
    }

    /// Notes that the user has seen a log up to its end.
    pub fn note_seen(&self, id: &SessionId) -> Result<()> {
        let end = self.store().maintain().place(id, None)?;
        if end != self.notes().seen(id) {
            self.notes().see(id, end);
        }
        Ok(())
    }

    /// Removes the note on a purged log: a new session may get the same id.
    pub(crate) fn forget_seen(&self, id: &SessionId) {
        self.notes().see(id, None);
    }
}
