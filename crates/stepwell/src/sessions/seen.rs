//! Whether a log is still the one that this machine's user saw.
//!
//! Who can write to a store can cut a log, write another one over it, or change what is kept beside
//! it. The chain of a log that was written anew holds. So the user's notes keep how far they saw the
//! log, and the chain's value there: nothing but appends leads from that place to another end.

use crate::error::{Error, Result};
use crate::model::SessionId;
use crate::sessions::well::Stepwell;
use crate::store::{Damage, Derived};

/// What this machine knows of a log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Recognised {
    /// Its user saw it before, and it was only added to.
    Known,
    /// Its user never saw it.
    FirstSeen,
}

impl Stepwell {
    /// Checks a whole log, and what is kept beside it, against itself and against the notes.
    ///
    /// # Errors
    /// [`Error::Damaged`], if the log does not hold in itself. [`Error::Altered`], if it is not the
    /// one that the user saw, or what is kept beside it is not its fold.
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
                let what = "what is kept beside its log does not follow from it".to_owned();
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

    /// Notes that the user saw a log up to its end.
    pub fn note_seen(&self, id: &SessionId) -> Result<()> {
        let end = self.store().maintain().place(id, None)?;
        if end != self.notes().seen(id) {
            self.notes().see(id, end);
        }
        Ok(())
    }

    /// Forgets a log that is erased: another session may bear its name.
    pub(crate) fn forget_seen(&self, id: &SessionId) {
        self.notes().see(id, None);
    }
}
