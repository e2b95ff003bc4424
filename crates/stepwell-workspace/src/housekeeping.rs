//! What is done by the way when a person changes something: the trash lets go of what
//! has been in it for long enough, and, if asked for, old sessions are cleaned up.

use std::collections::BTreeSet;
use std::fs;
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::time::{Duration, SystemTime};

use stepwell::{
    Driver, Error, Filter, Origin, Place, Policy, Protection, Query, Removal, Standing, Stepwell,
};

use crate::error::Result;
use crate::notice::Notice;
use crate::workspace::Workspace;

/// A day.
pub const DAY: Duration = Duration::from_secs(86_400);

/// How long the trash keeps a session.
#[must_use]
pub fn retention(workspace: &Workspace) -> Duration {
    DAY * workspace.config.settings.retention_days.get()
}

/// How old a session is when cleanup takes it.
#[must_use]
pub fn cleanup_age(workspace: &Workspace) -> Duration {
    DAY * workspace.config.settings.cleanup_after_days.get()
}

/// Empties the trash of what is due, and cleans up if that is wanted. Says so.
///
/// # Errors
/// If the store cannot be read or written.
pub fn tidy(workspace: &Workspace, well: &Stepwell) -> Result<()> {
    let removal = empty_trash(workspace, well, retention(workspace))?;
    if !removal.taken.is_empty() {
        let days = workspace.config.settings.retention_days.get();
        let sessions = removal.taken.len();
        workspace.notices.tell(Notice::TrashEmptied { sessions, days });
    }
    if workspace.config.settings.auto_cleanup && is_due(workspace) {
        let (older_than, silence) =
            (Some(cleanup_age(workspace)), workspace.config.settings.resume_timeout);
        let policy = Policy { older_than, silence, ..Policy::default() };
        let plan = well.plan_cleanup(&policy)?;
        for (id, _) in plan.protected.iter().filter(|(_, why)| *why == Protection::HalfRewound) {
            workspace.notices.tell(Notice::HalfRewoundKept { session: id.clone() });
        }
        let mut removal = well.clean_up(&plan)?;
        let hours = u64::from(workspace.config.settings.agent_cleanup_hours.get());
        let older_than = Some(Duration::from_secs(hours * 3600));
        let policy =
            Policy { older_than, driver: Some(Driver::External), silence, ..Policy::default() };
        let agents = well.clean_up(&well.plan_cleanup(&policy)?)?;
        removal.taken.extend(agents.taken);
        if !removal.taken.is_empty() {
            workspace.notices.tell(Notice::CleanedUp { sessions: removal.taken.len() });
        }
    }
    Ok(())
}

/// Erases what has been in the trash for at least so long; not a session that alone knows how its
/// files get whole again, which is named, nor those that it would go with.
pub fn empty_trash(
    workspace: &Workspace,
    well: &Stepwell,
    older_than: Duration,
) -> Result<Removal> {
    let filter = Filter { place: Place::Trash, rewinding: true, ..Filter::default() };
    let (mut stay, limit) = (BTreeSet::new(), workspace.now().minus(older_than));
    for standing in well.sessions(Query { filter, ..Query::default() }) {
        let standing = standing?;
        if !alone_knows_its_files(workspace, &standing) {
            continue;
        }
        if standing.trashed_at.is_some_and(|when| when <= limit) {
            let session = standing.head.id.clone();
            workspace.notices.tell(Notice::HalfRewoundKeptInTrash { session });
        }
        let mut above = Some(standing.head);
        while let Some(head) = above {
            stay.insert(head.id);
            above = match head.origin {
                // One that was erased by hand ends the chain.
                Origin::Subagent { parent } => match well.store().standing(&parent) {
                    Ok(standing) => Some(standing.head),
                    Err(Error::NoSession(_)) => None,
                    Err(error) => return Err(error.into()),
                },
                Origin::Root | Origin::Fork { .. } => None,
            };
        }
    }
    Ok(well.empty_trash_but(older_than, &stay)?)
}

/// Does a session alone know how its files get whole again? Where they are gone, or the log is
/// damaged, nobody can finish that.
fn alone_knows_its_files(workspace: &Workspace, standing: &Standing) -> bool {
    let head = &standing.head;
    let is_there = standing.damage.is_none() && workspace.session_folder(Some(head)).is_ok();
    is_there && head.rewinding.is_some()
}

/// Is a day over since the last time? Notes that this is the next one.
fn is_due(workspace: &Workspace) -> bool {
    let mark = workspace.place.store.join("cleaned-up");
    let last = fs::metadata(&mark).and_then(|meta| meta.modified()).ok();
    let since_epoch = |time: SystemTime| time.duration_since(SystemTime::UNIX_EPOCH).ok();
    let last = last.and_then(since_epoch).map(|at| stepwell::Time::EPOCH.plus(at));
    let due = last.is_none_or(|last| workspace.now().since(last) >= DAY);
    // A mark that cannot be made means that it is looked at again next time.
    let mut private = fs::OpenOptions::new();
    private.create(true).write(true).truncate(true).mode(0o600);
    due && private.open(&mark).and_then(|mut file| file.write_all(b"\n")).is_ok()
}
