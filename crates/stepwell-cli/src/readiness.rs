//! Readiness: what is looked after in a workspace before a run or a flow begins in it.

use stepwell::Head;
use stepwell_workspace::remove_finished_worktrees;

use crate::app::{App, Well};
use crate::crash_notice;
use crate::failure::Result;
use crate::files::{refuse_halves, settle_all};

/// May a run change files?
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Touch {
    /// Yes.
    Files,
    /// No: it is a dry run.
    Nothing,
}

/// Makes a workspace ready for a run that begins, or goes on with a session: what was cut off is
/// told of, what nobody needs is removed, and files are made whole. A run that changes no files is
/// refused if some have to be moved first.
pub(crate) fn make_ready(
    touch: Touch,
    well: &Well,
    taken_up: Option<&Head>,
    app: &App,
) -> Result<()> {
    crash_notice::tell(app, well, taken_up.map(|head| &head.id));
    remove_finished_worktrees(app, well, taken_up);
    match touch {
        Touch::Nothing => refuse_halves(well, app),
        Touch::Files => settle_all(well, app),
    }
}
