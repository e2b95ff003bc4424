//! How far a command reaches, and which commands a run's own commands may not use.

use stepwell_runtime::Error;
use stepwell_workspace::Host;

use crate::failure::Result;

/// How far a command reaches. Each command has one, by what was typed: see the list in `commands`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Reach {
    /// It looks.
    Reads,
    /// It adds to what is kept. What was there before is still there.
    Writes,
    /// It takes away what is kept, or puts older files in the place of newer ones.
    Erases,
    /// It lets a run do more than before, or speaks in the user's name.
    Widens,
}

impl Reach {
    /// Widens if a condition holds.
    pub(crate) const fn widens_if(condition: bool, otherwise: Self) -> Self {
        if condition { Self::Widens } else { otherwise }
    }

    /// Reads, if a change is only shown.
    pub(crate) const fn unless_dry(self, is_dry: bool) -> Self {
        if is_dry { Self::Reads } else { self }
    }

    /// Fails if a command of this name may not start here. A run's own command may not erase and may not widen: an
    /// agent must not remove the record of what it did, or allow itself more.
    pub(crate) fn permit(self, command: &'static str, host: &Host) -> Result<()> {
        let is_peoples = match self {
            Self::Reads | Self::Writes => false,
            Self::Erases | Self::Widens => true,
        };
        match is_peoples && host.environment.is_in_run() {
            true => Err(Error::OnlyPeople { what: command }.into()),
            false => Ok(()),
        }
    }
}
