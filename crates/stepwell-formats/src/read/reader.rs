//! What a format must do to be read, and what it is shown to be recognised.

use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use crate::Result;
use crate::json::fields::Fields;
use crate::read::input::{self, Input};
use crate::read::neutral::Sink;

/// Reads sessions of one system.
///
/// A reader never writes to what it reads, opens files through its [`Input`] alone, and
/// holds no more of a session in memory than it must. What it cannot read it leaves out with
/// a warning; it fails only when nothing more can be told.
pub trait Reader: Sync {
    /// Is this a session of the system, or a part of one? The answer is the file or the
    /// folder that is to be read for it, which for a part may lie above it. What something
    /// is named MAY help, but what is in it decides.
    fn recognise(&self, probe: &Probe) -> Option<PathBuf>;

    /// Tells what is there.
    fn read(&self, input: &Input, sink: &mut dyn Sink) -> Result<()>;

    /// The program of the system that keeps sessions here itself, if there is one.
    fn keeper(&self) -> Option<Keeper> {
        None
    }

    /// The places where the system keeps its sessions.
    fn places(&self, _homes: &Homes<'_>) -> Vec<PathBuf> {
        Vec::new()
    }
}

/// A program that keeps sessions here itself, and how it names them.
#[derive(Clone, Copy, Debug)]
pub struct Keeper {
    /// The system in the source of such a session.
    pub system: &'static str,
    /// The name of a subagent's transcript, by the name of the subagent.
    pub subagent: fn(&str) -> String,
}

/// Where a user's things are. The command line knows; a library does not look.
#[derive(Clone, Copy)]
pub struct Homes<'a> {
    /// The user's home.
    pub home: Option<&'a Path>,
    /// Where programs keep their data, `~/.local/share`.
    pub data: Option<&'a Path>,
    /// The folder that the user works in.
    pub workspace: Option<&'a Path>,
    /// A variable that names a folder.
    pub variable: &'a dyn Fn(&str) -> Option<PathBuf>,
}

impl std::fmt::Debug for Homes<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { home, data, workspace, .. } = self;
        f.debug_struct("Homes")
            .field("home", home)
            .field("data", data)
            .field("workspace", workspace)
            .finish_non_exhaustive()
    }
}

impl Homes<'_> {
    /// The folder that a variable names, or one below the user's home.
    #[must_use]
    pub fn named_or(&self, variable: &str, below_home: &str) -> Option<PathBuf> {
        (self.variable)(variable).or_else(|| Some(self.home?.join(below_home)))
    }
}

/// How much of a file is looked at to recognise it.
const HEAD_BYTES: u64 = 256 << 10;

/// What a file or a folder looks like from outside.
#[derive(Debug)]
pub struct Probe {
    /// Where it is.
    pub path: PathBuf,
    /// What it is.
    pub kind: Kind,
    /// The front of a file; of a `.zst`, of what it expands to.
    pub head: Vec<u8>,
    /// The same as text.
    text: String,
}

/// What something on disk is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A file.
    File,
    /// A folder.
    Folder,
}

impl Probe {
    /// Looks at a path. What is neither a file nor a folder looks like nothing.
    pub fn of(path: &Path) -> Result<Option<Self>> {
        let found = path.symlink_metadata().map_err(|error| input::unreadable(path, error))?;
        if found.is_dir() {
            return Ok(Some(Self::new(path, Kind::Folder, Vec::new())));
        }
        if !found.is_file() {
            return Ok(None);
        }
        let file = input::open(path)?;
        let head = head(file, found.len(), path).map_err(|error| input::unreadable(path, error))?;
        Ok(Some(Self::new(path, Kind::File, head)))
    }

    fn new(path: &Path, kind: Kind, head: Vec<u8>) -> Self {
        let text = String::from_utf8_lossy(input::without_mark(&head)).into_owned();
        Self { path: path.to_owned(), kind, head, text }
    }

    /// Is it a folder that holds this?
    #[must_use]
    pub fn holds(&self, name: &str) -> bool {
        self.kind == Kind::Folder && self.path.join(name).symlink_metadata().is_ok()
    }

    /// The name, as far as it is text.
    #[must_use]
    pub fn name(&self) -> &str {
        self.path.file_name().and_then(|name| name.to_str()).unwrap_or_default()
    }

    /// The front of a file as text. Bytes that are none stand as U+FFFD: one of them does not
    /// hide a session, and whoever reads it says what becomes of it.
    #[must_use]
    pub fn text(&self) -> &str {
        &self.text
    }

    /// The JSON objects on its first lines.
    pub fn objects(&self) -> impl Iterator<Item = Fields<'_>> {
        self.text().lines().take(64).filter_map(|line| Fields::parse(line).ok())
    }
}

fn head(file: File, size: u64, path: &Path) -> io::Result<Vec<u8>> {
    let mut head = Vec::new();
    match input::is_compressed(path) {
        false => file.take(HEAD_BYTES).read_to_end(&mut head)?,
        true => input::expanded(file, size)?.take(HEAD_BYTES).read_to_end(&mut head)?,
    };
    Ok(head)
}
