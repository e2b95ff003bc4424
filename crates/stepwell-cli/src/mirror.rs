//! `STATE.md` and `TASKS.md` in the store's folder: how the work stands, kept current for
//! whoever reads files.
//!
//! They show one session: of those that run, the one that began last; if none runs, the one
//! that was changed last. Subagents' sessions are left out.

use std::path::{Path, PathBuf};

use stepwell::{Access, Driver, Event, Family, Filter, Query, Sort, Standing, Status};
use stepwell_agent::run::{Happening, Question, Reply, Watcher};
use stepwell_formats::{state_markdown, tasks_markdown};
use stepwell_workspace::locked_file;

use crate::app::{App, Go, Well, each_session};
use crate::failure::{Failure, Result};
use crate::output::note;

/// Keeps the files current.
pub(crate) struct Mirror {
    well: Well,
    folder: PathBuf,
}

impl Mirror {
    /// The mirror of this workspace's store, if the user wants one.
    pub(crate) fn of(app: &App) -> Option<Self> {
        let wanted = app.config.settings.mirror_markdown && app.place.has_store();
        let well = wanted.then(|| app.open(&app.place.store, Access::Read));
        match well? {
            Ok(well) => Some(Self { well, folder: app.place.store.clone() }),
            Err(error) => {
                complain(&error.into());
                None
            }
        }
    }

    /// Brings the files up to date. That they could not be written stops nobody: what they
    /// show is in the store.
    pub(crate) fn refresh(&self) {
        if let Err(failure) = self.write() {
            complain(&failure);
        }
    }

    fn write(&self) -> Result<()> {
        let path = |name: &str| self.folder.join(name);
        let fault = |path: &Path| {
            let path = path.to_owned();
            move |error| Failure::file(&path, "writing it", &error)
        };
        let (state, tasks) = (path("STATE.md"), path("TASKS.md"));
        let lock = path("mirror.lock");
        let held = locked_file::lock(&lock).map_err(fault(&lock))?;
        // Read while the files are kept: whoever comes last has seen every change.
        let Some(standing) = self.shown()? else {
            held.remove(&state).map_err(fault(&state))?;
            return held.remove(&tasks).map_err(fault(&tasks));
        };
        let work = self.well.work(&standing.head.id)?;
        held.write(&state, &state_markdown(&standing.head, &work)).map_err(fault(&state))?;
        held.write(&tasks, &tasks_markdown(&work.tasks)).map_err(fault(&tasks))
    }

    /// The session that the files show.
    fn shown(&self) -> Result<Option<Standing>> {
        let first = |filter: Filter, sort: Sort| -> Result<Option<Standing>> {
            let filter = Filter { family: Family::Roots, ..filter };
            let mut found = None;
            each_session(&self.well, Query { filter, sort, limit: 1, ..Query::default() }, |it| {
                // One that is damaged hides no other.
                found = Some(it).filter(|standing| standing.damage.is_none());
                Ok(if found.is_some() { Go::Stop } else { Go::On })
            })?;
            Ok(found)
        };
        // An agent that Stepwell does not run is believed to run forever.
        let (status, driver) = (vec![Status::Running], Some(Driver::Own));
        match first(Filter { status, driver, ..Filter::default() }, Sort::Created)? {
            None => first(Filter::default(), Sort::Updated),
            found => Ok(found),
        }
    }
}

fn complain(failure: &Failure) {
    note(format_args!("warning: STATE.md and TASKS.md are not current: {failure}"));
}

/// Brings the files up to date after a command that may have changed something.
pub(crate) fn after(app: &App) {
    if app.has_written()
        && let Some(mirror) = Mirror::of(app)
    {
        mirror.refresh();
    }
}

/// A watcher of a run beside whom the files are kept current.
pub(crate) struct Mirroring<W> {
    watcher: W,
    mirror: Option<Mirror>,
}

impl<W: Watcher> Mirroring<W> {
    pub(crate) fn new(watcher: W, mirror: Option<Mirror>) -> Self {
        mirror.iter().for_each(Mirror::refresh);
        Self { watcher, mirror }
    }

    /// The watcher alone.
    pub(crate) fn into_inner(self) -> W {
        self.watcher
    }
}

impl<W: Watcher> Watcher for Mirroring<W> {
    fn saw(&mut self, happening: Happening<'_>) {
        if let (Some(mirror), Happening::Recorded(recorded)) = (&self.mirror, &happening)
            && shows(&recorded.event)
        {
            mirror.refresh();
        }
        self.watcher.saw(happening);
    }

    fn ask(&mut self, question: &Question<'_>, is_over: &dyn Fn() -> bool) -> Reply {
        self.watcher.ask(question, is_over)
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
