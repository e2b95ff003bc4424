//! How far the reading of other agents' sessions is, on a terminal.

use std::cell::{Cell, RefCell};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::rc::Rc;

use stepwell_terminal::Terminal;
use stepwell_terminal::text::{cut, visible};

/// How far a long reading is, on a terminal.
pub(crate) struct Progress {
    /// The terminal's columns; none where nobody watches.
    columns: Option<usize>,
    /// Bytes that were read, and that there are.
    done: Cell<u64>,
    all: u64,
    /// Bytes of those that came before, and of this one.
    before: Cell<u64>,
    this: Cell<u64>,
    shown: Cell<u64>,
    /// What is being read.
    name: RefCell<String>,
}

/// Into how many parts the way is divided.
const PARTS: u64 = 200;

impl Progress {
    pub(crate) fn new(terminal: Terminal, paths: &[PathBuf]) -> Rc<Self> {
        let people = terminal.output && terminal.can_ask;
        let columns = people.then(|| terminal.width.unwrap_or(80));
        let all = if people { paths.iter().map(|path| size(path)).sum() } else { 0 };
        let (done, before, this) = (Cell::new(0), Cell::new(0), Cell::new(0));
        let (shown, name) = (Cell::new(u64::MAX), RefCell::default());
        Rc::new(Self { columns, done, all, before, this, shown, name })
    }

    /// The next one is being read.
    pub(crate) fn at(&self, path: &Path) {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        *self.name.borrow_mut() = visible(&name);
        self.before.set(self.before.get() + self.this.replace(size(path)));
        self.done.set(self.before.get());
        self.show();
    }

    /// So many bytes more were read.
    pub(crate) fn read(&self, bytes: usize) {
        // Some of it is read twice.
        let most = self.before.get() + self.this.get();
        self.done.set(self.done.get().saturating_add(bytes as u64).min(most));
        self.show();
    }

    fn show(&self) {
        let Some(columns) = self.columns else { return };
        let all = self.all.max(1);
        let part = self.done.get().min(all).saturating_mul(PARTS) / all;
        // Not more often than there is something to see.
        if self.shown.replace(part) == part {
            return;
        }
        let filled = usize::try_from(part * 20 / PARTS).unwrap_or(0);
        let bar = format!("{}{}", "#".repeat(filled), ".".repeat(20 - filled));
        let line = format!("[{bar}] {}% {}", part * 100 / PARTS, self.name.borrow());
        let mut errors = std::io::stderr();
        let _ = write!(errors, "\r\u{1b}[K{}", cut(&line, columns.saturating_sub(1)));
        let _ = errors.flush();
    }

    /// Makes room for a line.
    pub(crate) fn clear(&self) {
        if self.columns.is_some() {
            self.shown.set(u64::MAX);
            let _ = write!(std::io::stderr(), "\r\u{1b}[K");
        }
    }
}

fn size(path: &Path) -> u64 {
    path.metadata().map_or(0, |found| found.len())
}
