//! Sessions whose process died in the middle of their work: announced once, when work begins
//! again in their workspace.

use std::collections::HashSet;
use std::fmt::Write;

use stepwell::model::Driver;
use stepwell::store::query::{Family, Filter, Query};
use stepwell::{SessionId, SessionInfo, Status, Stepwell, StopReason};

use crate::error::{Error, Result};
use crate::locked_file;
use crate::workspace::Workspace;

/// The sessions that crashed and were not announced yet, newest first, but the one that is
/// about to be resumed. They count as announced from now on.
///
/// # Errors
/// If the store cannot be read, or what was announced cannot be written down.
pub fn unannounced(
    workspace: &Workspace,
    well: &Stepwell,
    resumed: Option<&SessionId>,
) -> Result<Vec<SessionInfo>> {
    let path = workspace.place.store.join("cut-off");
    let fault = || Error::file(&path, "noting who was cut off");
    let lock = locked_file::lock(&workspace.place.store.join("cut-off.lock")).map_err(fault())?;
    let text = locked_file::read(&path).map_err(fault())?.unwrap_or_default();
    let announced: HashSet<&str> = text.lines().collect();
    let filter = Filter {
        status: vec![Status::Interrupted],
        family: Family::Roots,
        driver: Some(Driver::Own),
        ..Filter::default()
    };
    // Only those that are cut off now are remembered, so that the file does not grow.
    let (mut crashes, mut now) = (Vec::new(), String::new());
    for info in well.sessions(Query { filter, ..Query::default() }) {
        let info = info?;
        if info.head.stop_reason != Some(StopReason::Crashed) {
            continue;
        }
        // One that was resumed since, and crashed again, is announced again.
        let mark = format!("{} {}", info.head.id, info.head.resumes);
        let _ = writeln!(now, "{mark}");
        if !announced.contains(mark.as_str()) && Some(&info.head.id) != resumed {
            crashes.push(info);
        }
    }
    if now != text {
        lock.write(&path, &now).map_err(fault())?;
    }
    Ok(crashes)
}
