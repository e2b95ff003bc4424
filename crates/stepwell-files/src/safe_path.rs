//! Resolves paths that a model gave, without ever leaving the workspace.
//!
//! The path is walked one component at a time from the root's descriptor, and no system call
//! follows a symbolic link: a link is read, and its target is walked in the same way. Files are
//! then opened relative to the folder that was reached, so that swapping a folder for a link
//! between check and use has no effect.

use std::collections::VecDeque;
use std::ffi::{OsStr, OsString};
use std::os::fd::OwnedFd;
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::path::{Component, Path, PathBuf};

use rustix::fs::{AtFlags, FileType, Mode, OFlags, Stat};
use rustix::io::Errno;

/// The folder of Stepwell's own files, which no tool enters.
const OWN_FOLDER: &str = ".stepwell";

/// How many links a path may contain; the kernel's own limit, beyond which it reports a loop.
const MAX_LINKS: usize = 40;

/// The flags for opening a folder on the path.
const FOLDER: OFlags =
    OFlags::RDONLY.union(OFlags::DIRECTORY).union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);

/// A folder that no safe path leaves.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Root {
    /// The folder, with symbolic links resolved. Its `.stepwell` is never entered.
    pub path: PathBuf,
    /// The store's folder, with symbolic links resolved: it is never entered, whatever its name.
    pub store: Option<PathBuf>,
}

impl Root {
    /// A folder without a store of another name.
    #[must_use]
    pub fn new(path: PathBuf) -> Self {
        Self { path, store: None }
    }
}

/// How to treat a link at the end of a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Last {
    /// Follow it.
    Follow,
    /// The path means the link itself.
    Keep,
}

/// A resolved recorded path, none of whose folders may be a link.
#[derive(Debug)]
pub enum Exact {
    /// The path.
    Found(Box<SafePath>),
    /// This part of the path is not a folder.
    Blocked(String),
}

/// A resolved path. Its file may change; the folder that contains it is held open.
#[derive(Debug)]
pub struct SafePath {
    /// The deepest existing folder on the path.
    pub folder: OwnedFd,
    /// Folders on the path that do not exist yet.
    pub missing: Vec<OsString>,
    /// The name in the last folder; `.` for the workspace itself.
    pub name: OsString,
    /// The path relative to the workspace, without links; empty for the workspace itself.
    pub path: String,
    /// The file's metadata when the path was walked; `None` if there was no file.
    pub stat: Option<Stat>,
    /// A folder on the path contains a git repository, whatever its name.
    pub is_in_git_folder: bool,
}

impl SafePath {
    /// Resolves a path from the root. The error is for the model: it says what is wrong with the
    /// path.
    pub fn find(root: &Root, path: &str, last: Last) -> Result<Self, String> {
        if path.is_empty() {
            return Err("the path is empty".to_owned());
        }
        if path.contains('\0') {
            return Err(format!("{path:?} holds a NUL character"));
        }
        let mut walk = Walk::begin(root, path)?;
        walk.push_front(Path::new(path))?;
        walk.finish(last)
    }

    /// Resolves a recorded path through folders only: a link on the way means that the file is
    /// absent.
    pub fn exact(root: &Root, path: &str) -> Result<Exact, String> {
        if path.is_empty() || path.contains('\0') || path.split('/').any(is_odd) {
            return Err(format!("{path:?} is no path within the workspace"));
        }
        let mut walk = Walk::begin(root, path)?;
        walk.push_front(Path::new(path))?;
        walk.finish_exactly()
    }

    /// The kind of file at the path.
    pub fn kind(&self) -> Option<FileType> {
        self.stat.as_ref().map(|stat| FileType::from_raw_mode(stat.st_mode))
    }
}

/// A path that is being walked.
struct Walk<'a> {
    root: &'a Path,
    /// The original path, for messages.
    given: &'a str,
    /// Stepwell's own folders, by device and inode: a file system may accept other spellings of
    /// their names.
    own: Vec<(u64, u64)>,
    /// The folders from the root to the current one. The root has no name.
    folders: Vec<(OsString, OwnedFd)>,
    /// Names below the last folder that do not exist.
    missing: Vec<OsString>,
    ahead: VecDeque<OsString>,
    links: usize,
}

impl<'a> Walk<'a> {
    fn begin(root: &'a Root, given: &'a str) -> Result<Self, String> {
        let path = root.path.as_path();
        let fd = rustix::fs::open(path, FOLDER, Mode::empty())
            .map_err(|error| format!("the workspace cannot be opened: {error}"))?;
        let own = rustix::fs::statat(&fd, OWN_FOLDER, AtFlags::empty()).ok();
        let store = root.store.as_ref().and_then(|store| rustix::fs::stat(store).ok());
        Ok(Self {
            root: path,
            given,
            own: own.iter().chain(&store).map(identity).collect(),
            folders: vec![(OsString::new(), fd)],
            missing: Vec::new(),
            ahead: VecDeque::new(),
            links: 0,
        })
    }

    /// Walks the rest of the path.
    fn finish(mut self, last: Last) -> Result<SafePath, String> {
        while let Some(name) = self.ahead.pop_front() {
            if name == ".." {
                self.up()?;
                continue;
            }
            if name.eq_ignore_ascii_case(OWN_FOLDER) {
                return Err(self.own_folder());
            }
            if !self.missing.is_empty() {
                self.missing.push(name);
                continue;
            }
            let at_end = self.ahead.is_empty();
            let Some(stat) = self.stat(&name)? else {
                self.missing.push(name);
                continue;
            };
            match FileType::from_raw_mode(stat.st_mode) {
                _ if self.own.contains(&identity(&stat)) => return Err(self.own_folder()),
                FileType::Symlink if !(at_end && last == Last::Keep) => self.link(&name)?,
                _ if at_end => return self.found(name, Some(stat)),
                FileType::Directory => self.down(name)?,
                _ => return Err(format!("{} leads through {name:?}, a file", self.given)),
            }
        }
        match self.missing.pop() {
            Some(name) => self.found(name, None),
            None => self.folder(),
        }
    }

    /// Walks the rest of the path, without following links.
    fn finish_exactly(mut self) -> Result<Exact, String> {
        let mut gone = PathBuf::new();
        while let Some(name) = self.ahead.pop_front() {
            gone.push(&name);
            if name.eq_ignore_ascii_case(OWN_FOLDER) {
                return Err(self.own_folder());
            }
            if !self.missing.is_empty() {
                self.missing.push(name);
                continue;
            }
            let Some(stat) = self.stat(&name)? else {
                self.missing.push(name);
                continue;
            };
            match FileType::from_raw_mode(stat.st_mode) {
                _ if self.own.contains(&identity(&stat)) => return Err(self.own_folder()),
                _ if self.ahead.is_empty() => {
                    return self.found(name, Some(stat)).map(Box::new).map(Exact::Found);
                }
                FileType::Directory => self.down(name)?,
                _ => return Ok(Exact::Blocked(gone.to_string_lossy().into_owned())),
            }
        }
        match self.missing.pop() {
            Some(name) => self.found(name, None).map(Box::new).map(Exact::Found),
            None => Err(self.outside()),
        }
    }

    /// Goes up one folder.
    fn up(&mut self) -> Result<(), String> {
        if !self.missing.is_empty() {
            return Err(format!("{}: a folder on the way does not exist", self.given));
        }
        if self.folders.len() == 1 {
            return Err(self.outside());
        }
        self.folders.pop();
        Ok(())
    }

    fn down(&mut self, name: OsString) -> Result<(), String> {
        let fd = rustix::fs::openat(self.here(), &name, FOLDER, Mode::empty())
            .map_err(|error| self.failed(error))?;
        self.folders.push((name, fd));
        Ok(())
    }

    fn link(&mut self, name: &OsStr) -> Result<(), String> {
        self.links += 1;
        if self.links > MAX_LINKS {
            return Err(format!("{} leads over too many symbolic links", self.given));
        }
        let target = rustix::fs::readlinkat(self.here(), name, Vec::new())
            .map_err(|error| self.failed(error))?;
        self.push_front(&PathBuf::from(OsString::from_vec(target.into_bytes())))
    }

    /// Puts a link's target in front of the remaining path. An absolute one must lead through the
    /// root, and restarts there.
    fn push_front(&mut self, path: &Path) -> Result<(), String> {
        let rest = if path.is_absolute() {
            let is_root = |ancestor: &&Path| {
                *ancestor == self.root
                    || ancestor.canonicalize().is_ok_and(|real| real == self.root)
            };
            let start = path.ancestors().find(is_root).ok_or_else(|| self.outside())?;
            self.folders.truncate(1);
            path.strip_prefix(start).map_err(|_| self.outside())?
        } else {
            path
        };
        for component in rest.components().rev() {
            match component {
                Component::CurDir => {}
                other => self.ahead.push_front(other.as_os_str().to_owned()),
            }
        }
        Ok(())
    }

    fn stat(&self, name: &OsStr) -> Result<Option<Stat>, String> {
        match rustix::fs::statat(self.here(), name, AtFlags::SYMLINK_NOFOLLOW) {
            Ok(stat) => Ok(Some(stat)),
            Err(Errno::NOENT) => Ok(None),
            Err(error) => Err(self.failed(error)),
        }
    }

    fn here(&self) -> &OwnedFd {
        let (_, fd) = self.folders.last().expect("the root is never popped");
        fd
    }

    /// The path ended at a folder that is open already.
    fn folder(mut self) -> Result<SafePath, String> {
        let (name, fd) = self.folders.pop().expect("the root is never popped");
        let stat = rustix::fs::fstat(&fd).map_err(|error| self.failed(error))?;
        if self.folders.is_empty() {
            let (name, path) = (OsString::from("."), String::new());
            let (missing, stat, is_in_git_folder) = (Vec::new(), Some(stat), false);
            return Ok(SafePath { folder: fd, missing, name, path, stat, is_in_git_folder });
        }
        self.found(name, Some(stat))
    }

    fn found(mut self, name: OsString, stat: Option<Stat>) -> Result<SafePath, String> {
        let mut path = PathBuf::new();
        path.extend(self.folders.iter().map(|(name, _)| name).filter(|name| !name.is_empty()));
        path.extend(&self.missing);
        path.push(&name);
        let path = path.into_os_string().into_string();
        let path = path.map_err(|_| format!("{} leads to a name that is not UTF-8", self.given))?;
        let is_in_git_folder = self.is_in_git_folder(&name);
        let (_, folder) = self.folders.pop().expect("the root is never popped");
        Ok(SafePath { folder, missing: self.missing, name, path, stat, is_in_git_folder })
    }

    /// Is a folder on the path git's, or would the next name make it so?
    fn is_in_git_folder(&self, last: &OsStr) -> bool {
        let below = self.folders.iter().skip(1).map(|(name, _)| name);
        let next = below.chain(&self.missing).map(OsString::as_os_str).chain([last]);
        self.folders.iter().zip(next).any(|((_, folder), next)| is_git_folder(folder, next))
    }

    fn outside(&self) -> String {
        format!("{} is outside of the workspace; use a path inside of it", self.given)
    }

    fn own_folder(&self) -> String {
        format!("{} is in a folder that holds Stepwell's own files", self.given)
    }

    fn failed(&self, error: Errno) -> String {
        match error {
            Errno::LOOP | Errno::NOTDIR => format!("{} was changed meanwhile", self.given),
            Errno::NAMETOOLONG => format!("{} has a name that is too long", self.given),
            error => format!("{}: {error}", self.given),
        }
    }
}

/// Is this a name that scans leave out: Stepwell's own folder, or git's?
pub fn is_hidden(name: &OsStr) -> bool {
    name.eq_ignore_ascii_case(OWN_FOLDER) || name.as_bytes() == b".git"
}

fn is_odd(name: &str) -> bool {
    matches!(name, "" | "." | "..")
}

fn identity(stat: &Stat) -> (u64, u64) {
    #[allow(clippy::unnecessary_cast, reason = "the types differ between platforms")]
    (stat.st_dev as u64, stat.st_ino as u64)
}

/// Is an open folder git's, or would it be with one more entry?
fn is_git_folder(folder: &OwnedFd, next: &OsStr) -> bool {
    let has = |name: &str| {
        next == name || rustix::fs::statat(folder, name, AtFlags::SYMLINK_NOFOLLOW).is_ok()
    };
    // A repository's folder, or a worktree's part of one: git requires no more.
    has("HEAD") && (has("objects") && has("refs") || has("commondir"))
}
