//! `STATE.md` and `TASKS.md` in the store's folder: how the work stands, kept current for
//! whoever reads files.
//!
//! They show one session: of those that run, the one that began last; if none runs, the one
//! that was changed last. Subagents' sessions are left out.

use std::path::{Path, PathBuf};

use stepwell::model::Driver;
use stepwell::sqlite::Access;
use stepwell::store::query::{Family, Filter, Query, Sort};
use stepwell::{Event, SessionInfo, Status, Stepwell};
use stepwell_formats::{state_markdown, tasks_markdown};

use crate::error::{Error, Result};
use crate::locked_file;
use crate::notice::{Notice, Notices};
use crate::workspace::Workspace;

/// Keeps the files current.
#[derive(Debug)]
pub struct Mirror {
    well: Stepwell,
    folder: PathBuf,
    notices: Notices,
}

impl Mirror {
    /// The mirror of a workspace's store, if its user wants one. A store that cannot be read is
    /// a notice.
    #[must_use]
    pub fn of(workspace: &Workspace) -> Option<Self> {
        let place = &workspace.place;
        let wanted = workspace.config.settings.mirror_markdown && place.has_store();
        let notices = workspace.notices.clone();
        match wanted.then(|| workspace.open(&place.store, Access::Read))? {
            Ok(well) => Some(Self { well, folder: place.store.clone(), notices }),
            Err(error) => {
                complain(&notices, &error);
                None
            }
        }
    }

    /// Brings the files up to date. That they could not be written stops nobody: what they
    /// show is in the store.
    pub fn refresh(&self) {
        if let Err(error) = self.write() {
            complain(&self.notices, &error);
        }
    }

    fn write(&self) -> Result<()> {
        let path = |name: &str| self.folder.join(name);
        fn fault(path: &Path) -> impl FnOnce(std::io::Error) -> Error {
            Error::file(path, "writing it")
        }
        let (state, tasks) = (path("STATE.md"), path("TASKS.md"));
        let lock = path("mirror.lock");
        let held = locked_file::lock(&lock).map_err(fault(&lock))?;
        // Read while the files are kept: whoever comes last has seen every change.
        let Some(info) = self.shown()? else {
            held.remove(&state).map_err(fault(&state))?;
            return held.remove(&tasks).map_err(fault(&tasks));
        };
        let work = self.well.work_with_last_step(&info.head.id)?;
        held.write(&state, &state_markdown(&info.head, &work)).map_err(fault(&state))?;
        held.write(&tasks, &tasks_markdown(&work.tasks)).map_err(fault(&tasks))
    }

    /// The session that the files show.
    fn shown(&self) -> Result<Option<SessionInfo>> {
        let first = |filter: Filter, sort: Sort| -> Result<Option<SessionInfo>> {
            let filter = Filter { family: Family::Roots, ..filter };
            let query = Query { filter, sort, limit: 1, ..Query::default() };
            // One that is damaged hides no other.
            let is_whole = |it: &stepwell::Result<SessionInfo>| {
                it.as_ref().map_or(true, |info| info.damage.is_none())
            };
            Ok(self.well.sessions(query).find(is_whole).transpose()?)
        };
        // An agent that Stepwell does not run is believed to run forever.
        let (status, driver) = (vec![Status::Running], Some(Driver::Own));
        match first(Filter { status, driver, ..Filter::default() }, Sort::Created)? {
            None => first(Filter::default(), Sort::Updated),
            found => Ok(found),
        }
    }
}

fn complain(notices: &Notices, error: &Error) {
    notices.tell(Notice::warning("STATE.md and TASKS.md are not current", &error));
}

/// Brings `STATE.md` and `TASKS.md` up to date, if this workspace's store may have changed.
pub fn refresh(workspace: &Workspace) {
    if workspace.has_written()
        && let Some(mirror) = Mirror::of(workspace)
    {
        mirror.refresh();
    }
}

impl Mirror {
    /// Brings the files up to date if something was recorded that they show.
    pub fn on_event(&self, event: &Event) {
        if shows(event) {
            self.refresh();
        }
    }
}

/// Do the files show what this event changes?
fn shows(event: &Event) -> bool {
    match event {
        Event::Task(_)
        | Event::Question(_)
        | Event::Phase(_)
        | Event::Rewound(_)
        | Event::Undone(_) => true,
        Event::Edited(edited) => !edited.goal.is_keep(),
        _ => false,
    }
}
