//! What is done by the way when a person changes something: the trash lets go of what
//! has been in it for long enough, and, if asked for, old sessions are cleaned up.

use std::collections::BTreeSet;
use std::fs;
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::time::{Duration, SystemTime};

use stepwell::{Driver, Error, Filter, Origin, Place, Policy, Protection, Query, Removal};

use crate::app::{App, Go, Well, each_session};
use crate::failure::Result;
use crate::files::refuse_removal;
use crate::output::note;
use crate::text::count;

/// A day.
pub(crate) const DAY: Duration = Duration::from_secs(86_400);

/// How long the trash keeps a session.
pub(crate) fn retention(app: &App) -> Duration {
    DAY * app.config.settings.retention_days.get()
}

/// How old a session is when cleanup takes it.
pub(crate) fn cleanup_age(app: &App) -> Duration {
    DAY * app.config.settings.cleanup_after_days.get()
}

/// Empties the trash of what is due, and cleans up if that is wanted. Says so.
pub(crate) fn tidy(app: &App, well: &Well) -> Result<()> {
    let removal = empty_trash(app, well, retention(app))?;
    if !removal.taken.is_empty() {
        let days = app.config.settings.retention_days.get();
        let gone = count(removal.taken.len(), "session");
        note(format_args!("The trash let go of {gone} that had been in it for {days} days."));
    }
    if app.config.settings.auto_cleanup && is_due(app) {
        let (older_than, silence) = (Some(cleanup_age(app)), app.config.settings.resume_timeout);
        let policy = Policy { older_than, silence, ..Policy::default() };
        let plan = well.plan_cleanup(&policy)?;
        for (id, _) in plan.protected.iter().filter(|(_, why)| *why == Protection::HalfRewound) {
            note(format_args!(
                "{id} stays: a rewind of it was cut off; stepwell rewind {id} --finish finishes it"
            ));
        }
        let mut removal = well.clean_up(&plan)?;
        let hours = u64::from(app.config.settings.agent_cleanup_hours.get());
        let older_than = Some(Duration::from_secs(hours * 3600));
        let policy =
            Policy { older_than, driver: Some(Driver::External), silence, ..Policy::default() };
        let agents = well.clean_up(&well.plan_cleanup(&policy)?)?;
        removal.taken.extend(agents.taken);
        if !removal.taken.is_empty() {
            let gone = count(removal.taken.len(), "session");
            note(format_args!("Cleaned up {gone}; stepwell trash list shows them."));
        }
    }
    Ok(())
}

/// Erases what has been in the trash for at least so long; not a session that alone knows how its
/// files get whole again, which is named, nor those that it would go with.
pub(crate) fn empty_trash(app: &App, well: &Well, older_than: Duration) -> Result<Removal> {
    let filter = Filter { place: Place::Trash, rewinding: true, ..Filter::default() };
    let (mut stay, limit) = (BTreeSet::new(), app.now().minus(older_than));
    each_session(well, Query { filter, ..Query::default() }, |standing| {
        if refuse_removal(&standing, app).is_err() {
            let id = &standing.head.id;
            if standing.trashed_at.is_some_and(|when| when <= limit) {
                note(format_args!(
                    "{id} stays in the trash: a rewind of it was cut off\n\
                     hint: stepwell trash restore {id}, then stepwell rewind {id} --finish"
                ));
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
        Ok(Go::On)
    })?;
    Ok(well.empty_trash_but(older_than, &stay)?)
}

/// Is a day over since the last time? Notes that this is the next one.
fn is_due(app: &App) -> bool {
    let mark = app.place.store.join("cleaned-up");
    let last = fs::metadata(&mark).and_then(|meta| meta.modified()).ok();
    let since_epoch = |time: SystemTime| time.duration_since(SystemTime::UNIX_EPOCH).ok();
    let last = last.and_then(since_epoch).map(|at| stepwell::Time::EPOCH.plus(at));
    let due = last.is_none_or(|last| app.now().since(last) >= DAY);
    // A mark that cannot be made means that it is looked at again next time.
    let mut private = fs::OpenOptions::new();
    private.create(true).write(true).truncate(true).mode(0o600);
    due && private.open(&mark).and_then(|mut file| file.write_all(b"\n")).is_ok()
}
