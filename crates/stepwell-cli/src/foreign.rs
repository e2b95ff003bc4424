//! Other agents of this machine: where they keep their sessions, and how far reading them is.

use std::io::Write;
use std::path::{Path, PathBuf};

use stepwell_formats::{Format, Homes, Losses};

use crate::app::App;
use crate::output::note;
use crate::text::{cut, visible};
use crate::world::World;

/// Where other agents' things are.
pub(crate) struct Homestead<'a> {
    world: &'a World,
    workspace: &'a Path,
    data: Option<PathBuf>,
}

impl<'a> Homestead<'a> {
    pub(crate) fn of(app: &'a App) -> Self {
        let world = &app.world;
        let named = world.key("XDG_DATA_HOME").map(PathBuf::from).filter(|it| it.is_absolute());
        let data = named.or_else(|| Some(world.home.as_ref()?.join(".local/share")));
        Self { world, workspace: &app.place.root, data }
    }

    /// Asks something that depends on where things are.
    pub(crate) fn ask<T>(&self, question: impl FnOnce(&Homes<'_>) -> T) -> T {
        let variable = |name: &str| self.world.key(name).map(PathBuf::from);
        question(&Homes {
            home: self.world.home.as_deref(),
            data: self.data.as_deref(),
            workspace: Some(self.workspace),
            variable: &variable,
        })
    }

    /// The places that are there, of one format or of all.
    pub(crate) fn places(&self, only: Option<Format>) -> Vec<(Format, PathBuf)> {
        let formats = Format::all().filter(|format| only.is_none_or(|only| only == *format));
        let places = formats.flat_map(|format| {
            self.ask(|homes| format.places(homes)).into_iter().map(move |place| (format, place))
        });
        places.filter(|(_, place)| place.exists()).collect()
    }
}

/// How far a long reading is, on a terminal.
pub(crate) struct Progress {
    shown: Option<usize>,
    done: usize,
    all: usize,
}

impl Progress {
    pub(crate) fn new(app: &App, all: usize) -> Self {
        let people = app.world.terminal.output && app.world.terminal.can_ask;
        let shown = people.then(|| app.world.terminal.width.unwrap_or(80));
        Self { shown: shown.filter(|_| all > 1), done: 0, all }
    }

    /// The next one is being read.
    pub(crate) fn at(&mut self, path: &Path) {
        self.done += 1;
        let Some(width) = self.shown else { return };
        let filled = (20 * self.done) / self.all.max(1);
        let bar = format!("{}{}", "#".repeat(filled), ".".repeat(20 - filled));
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        let line = format!("[{bar}] {}/{} {}", self.done, self.all, visible(&name));
        let mut errors = std::io::stderr();
        let _ = write!(errors, "\r\u{1b}[K{}", cut(&line, width.saturating_sub(1)));
        let _ = errors.flush();
    }

    /// Makes room for a line.
    pub(crate) fn clear(&self) {
        if self.shown.is_some() {
            let _ = write!(std::io::stderr(), "\r\u{1b}[K");
        }
    }

    pub(crate) fn end(&self) {
        self.clear();
    }
}

/// Says what a format cannot hold.
pub(crate) fn tell_losses(format: Format, losses: &Losses) {
    let list: Vec<String> = losses.iter().map(|(what, n)| format!("{what} ({n})")).collect();
    if !list.is_empty() {
        note(format_args!("warning: {format} cannot hold: {}", list.join(", ")));
    }
}
