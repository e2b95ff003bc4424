//! Readiness: what is looked after in a workspace before a run or a flow begins in it.

use stepwell::log::Head;
use stepwell::{SessionId, Stepwell};
use stepwell_workspace::{crashes, remove_finished_worktrees};

use crate::error::Result;
use crate::files::{refuse_halves, settle_all};
use crate::notice::{CutOffSession, Notice};
use crate::request::Touch;
use crate::runtime::Runtime;

/// Makes a workspace ready for a run that begins, or goes on with a session: what was cut off is
/// told of, what nobody needs is removed, and files are made whole. A run that changes no files is
/// refused if some have to be moved first.
pub(crate) fn make_ready(
    touch: Touch,
    well: &Stepwell,
    resumed: Option<&Head>,
    runtime: &Runtime,
) -> Result<()> {
    tell_crashes(well, resumed.map(|head| &head.id), runtime);
    remove_finished_worktrees(runtime.workspace(), well, resumed);
    match touch {
        Touch::Nothing => refuse_halves(well, runtime),
        Touch::Files => settle_all(well, runtime),
    }
}

/// Tells of the sessions that were cut off and that nobody was told of, but the one that is about to
/// be resumed. Not being able to is no reason not to begin.
fn tell_crashes(well: &Stepwell, resumed: Option<&SessionId>, runtime: &Runtime) {
    if !runtime.announces_crashes() {
        return;
    }
    match crashes::unannounced(runtime.workspace(), well, resumed) {
        Ok(cut_off) if cut_off.is_empty() => {}
        Ok(cut_off) => {
            let sessions = cut_off.into_iter().map(|info| CutOffSession {
                session: info.head.id,
                updated_at: info.head.updated_at,
                task: info.head.task,
            });
            runtime.tell(Notice::CutOff { sessions: sessions.collect() });
        }
        Err(error) => {
            runtime.tell(Notice::warning("interrupted sessions were not looked for", &error));
        }
    }
}
