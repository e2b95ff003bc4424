//! Captures the file changes of a command by scanning the workspace before and after it.
//!
//! The old content of each file must be available afterwards. Git keeps the content of files that
//! match an object; the store has recorded contents; all others are read before the command, the
//! smallest first, up to a limit.

use std::collections::{HashMap, HashSet};

use rustix::fs::FileType;
use stepwell::Session;
use stepwell::log::Redactor;
use stepwell::model::{Digest, FileChanged, FileState};

use crate::error::Result;
use crate::repository::{Git, Tracked};
use crate::safe_fs::Content;
use crate::safe_path::{Exact, Root, SafePath};
use crate::site::{secret, too_large};
use crate::tree::{Listing, Stamp, TooMany, Touched, Tree};

/// The limits of a capture.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Limits {
    /// The folders to scan, relative to the workspace; an empty one is the workspace itself.
    pub roots: Vec<String>,
    /// Larger files are not captured.
    pub max_file: u64,
    /// The most bytes that are held in memory, of files that git does not keep.
    pub max_held: u64,
    /// If there are more files than this, none is captured.
    pub max_files: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            roots: vec![String::new()],
            max_file: 10 << 20,
            max_held: 64 << 20,
            max_files: 200_000,
        }
    }
}

/// Scans a workspace around commands.
#[derive(Debug)]
pub struct Capture {
    root: Root,
    limits: Limits,
    git: Option<Git>,
    tree: Tree<Known>,
    /// How many bytes are held.
    held: u64,
    state: State,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    New,
    Looking,
    /// There are too many files. This is recorded once.
    TooMany,
    Told,
}

/// Where the content of a file is available.
#[derive(Clone, Debug)]
enum Known {
    /// In git.
    Git(String),
    /// In memory.
    Held(Vec<u8>),
    /// In the store.
    Recorded(FileState),
    /// Nowhere, for this reason.
    Nowhere(String),
}

/// How many files are compared at a time, which bounds the memory for their contents.
const BATCH: usize = 256;

/// With this many outdated entries in git's index it is cheaper to refresh the index than to read
/// the files.
const STALE: usize = 100;

impl Capture {
    /// Scans nothing yet.
    #[must_use]
    pub fn new(root: &Root, limits: Limits) -> Self {
        let tops = limits.roots.iter().filter(|top| is_inside(top)).map(|top| plain(top)).collect();
        let tree = Tree::new(root, tops);
        Self { root: root.clone(), limits, git: None, tree, held: 0, state: State::New }
    }

    /// Scans the files before a command, and makes sure that their contents stay available. `now`
    /// is in nanoseconds since 1970.
    pub fn before(&mut self, now: i64) {
        let mut tracked = None;
        if self.state == State::New {
            self.git = Git::around(&self.root.path);
            tracked = self.git.as_ref().and_then(Git::tracked);
            self.tree.add(tracked.as_ref().map(listing).unwrap_or_default());
            self.state = State::Looking;
        }
        if self.state != State::Looking {
            return;
        }
        match self.tree.refresh(now, self.limits.max_files) {
            Ok(touched) => {
                self.let_go(&touched);
                if self.tree.is_learnt() {
                    return;
                }
                let tracked = tracked.or_else(|| self.git.as_ref().and_then(Git::tracked));
                self.learn(&tracked.unwrap_or_default());
            }
            Err(TooMany) => self.state = State::TooMany,
        }
    }

    /// Scans the files after a command, and returns the changes, with all contents in the store.
    pub fn after(
        &mut self,
        now: i64,
        session: &Session,
        redactor: &Redactor,
    ) -> Result<Vec<FileChanged>> {
        match self.state {
            State::Looking => {}
            State::TooMany => return Ok(vec![self.too_many()]),
            State::New | State::Told => return Ok(Vec::new()),
        }
        let Ok(touched) = self.tree.refresh(now, self.limits.max_files) else {
            self.state = State::TooMany;
            return Ok(vec![self.too_many()]);
        };
        self.let_go(&touched);
        let mut changes = Vec::new();
        let mut rest = touched.into_iter().peekable();
        while rest.peek().is_some() {
            let batch: Vec<_> = rest.by_ref().take(BATCH).collect();
            changes.extend(self.compare(batch, session, redactor)?);
        }
        changes.sort_by(|a, b| a.path.cmp(&b.path));
        pair_renames(&mut changes);
        Ok(changes)
    }

    fn too_many(&mut self) -> FileChanged {
        self.state = State::Told;
        let limit = self.limits.max_files;
        let why =
            format!("there are more than {limit} files; what commands change is not captured");
        let unknown = FileState::NotCaptured { digest: None, why };
        let (path, before) = (".".to_owned(), unknown.clone());
        FileChanged { path, before, after: unknown, renamed_from: None }
    }

    fn let_go(&mut self, touched: &[Touched<Known>]) {
        for known in touched.iter().filter_map(|it| it.before.as_ref()?.1.as_ref()) {
            if let Known::Held(bytes) = known {
                self.held = self.held.saturating_sub(bytes.len() as u64);
            }
        }
    }

    /// Finds out for each new file where its content is available.
    fn learn(&mut self, tracked: &Tracked) {
        let mut unknown = self.ask_git(tracked);
        let stale = unknown.iter().filter(|(_, path)| tracked.has(path)).count();
        if let Some(git) = self.git.as_ref().filter(|_| stale > STALE) {
            git.refresh();
            let tracked = git.tracked();
            unknown = self.ask_git(&tracked.unwrap_or_default());
        }
        self.hold(unknown);
    }

    /// Finds out which contents git has. Returns the files that must be read, with their sizes.
    fn ask_git(&mut self, tracked: &Tracked) -> Vec<(u64, String)> {
        let (root, max_file) = (&self.root, self.limits.max_file);
        let mut unknown = Vec::new();
        self.tree.learn(|path, stamp| {
            if stamp.kind() == FileType::Symlink {
                return Some(link(root, path));
            }
            if let Some(object) = tracked.object(path, stamp) {
                return Some(Known::Git(object.to_owned()));
            }
            if stamp.size > max_file {
                return Some(Known::Nowhere(too_large(max_file)));
            }
            unknown.push((stamp.size, path.to_owned()));
            None
        });
        unknown
    }

    /// Reads files, the smallest first, up to the memory limit.
    fn hold(&mut self, mut files: Vec<(u64, String)>) {
        files.sort();
        let room = self.limits.max_held.saturating_sub(self.held);
        let mut sum = 0_u64;
        let fits = files.into_iter().take_while(|(size, _)| {
            sum = sum.saturating_add(*size);
            sum <= room
        });
        let fits: HashSet<String> = fits.map(|(_, path)| path).collect();
        let (root, limit, held) = (&self.root, self.limits.max_held, &mut self.held);
        self.tree.learn(|path, _| {
            if !fits.contains(path) {
                let why = format!("more than {limit} bytes of files are not in git");
                return Some(Known::Nowhere(why));
            }
            Some(match read(root, path) {
                Ok(bytes) => {
                    *held += bytes.len() as u64;
                    Known::Held(bytes)
                }
                Err(why) => Known::Nowhere(why),
            })
        });
    }

    /// The changes of files that may have changed.
    fn compare(
        &mut self,
        touched: Vec<Touched<Known>>,
        session: &Session,
        redactor: &Redactor,
    ) -> Result<Vec<FileChanged>> {
        let objects = touched.iter().filter_map(|it| match &it.before {
            Some((_, Some(Known::Git(object)))) => Some(object.as_str()),
            _ => None,
        });
        let objects: Vec<&str> = objects.collect();
        let contents = self.git.as_ref().map(|git| git.contents(&objects)).unwrap_or_default();
        let mut blobs = Blobs { redactor, bytes: HashMap::new() };
        let mut changes = Vec::new();
        for Touched { path, before: known, after: stamp } in touched {
            let before = known.as_ref().map_or(FileState::Absent, |(stamp, known)| {
                blobs.was(stamp, known.as_ref(), &contents)
            });
            let after = stamp.map_or(FileState::Absent, |stamp| {
                blobs.is(&self.root, &path, &stamp, self.limits.max_file)
            });
            let stamps = (known.as_ref().map(|(stamp, _)| *stamp), stamp);
            if before != after || may_differ(&after, stamps) {
                if stamp.is_some() {
                    self.tree.remember(&path, Known::Recorded(after.clone()));
                }
                changes.push(FileChanged { path, before, after, renamed_from: None });
            } else if let Some((_, Some(known))) = known {
                // Only touched: its content is available where it was before.
                if let Known::Held(bytes) = &known {
                    self.held += bytes.len() as u64;
                }
                self.tree.remember(&path, known);
            }
        }
        let named: HashSet<Digest> = changes
            .iter()
            .flat_map(|change| [&change.before, &change.after])
            .filter_map(blob)
            .collect();
        let bytes = blobs.bytes.iter().filter(|(digest, _)| named.contains(*digest));
        let bytes: Vec<(Digest, &[u8])> =
            bytes.map(|(digest, bytes)| (*digest, bytes.as_slice())).collect();
        session.keep_blobs(&bytes)?;
        Ok(changes)
    }
}

/// Contents to be stored.
struct Blobs<'a> {
    redactor: &'a Redactor,
    bytes: HashMap<Digest, Vec<u8>>,
}

impl Blobs<'_> {
    fn keep(&mut self, bytes: Vec<u8>, stamp: &Stamp) -> FileState {
        let digest = Digest::of(&bytes);
        if let Some(rule) = self.redactor.holds_secret(&bytes) {
            return FileState::NotCaptured { digest: Some(digest), why: secret(rule) };
        }
        self.bytes.insert(digest, bytes);
        FileState::File { blob: digest, mode: stamp.mode & 0o7777 }
    }

    /// The state of a file before the command.
    fn was(
        &mut self,
        stamp: &Stamp,
        known: Option<&Known>,
        contents: &HashMap<String, Vec<u8>>,
    ) -> FileState {
        let missing = |why: &str| FileState::NotCaptured { digest: None, why: why.to_owned() };
        match known {
            Some(Known::Recorded(state)) => state.clone(),
            Some(Known::Held(bytes)) => self.keep(bytes.clone(), stamp),
            Some(Known::Git(object)) => match contents.get(object) {
                // A git filter made the file from another content.
                Some(bytes) if bytes.len() as u64 != stamp.size => {
                    missing("git keeps it in another form")
                }
                Some(bytes) => self.keep(bytes.clone(), stamp),
                None => missing("git does not have it any more"),
            },
            Some(Known::Nowhere(why)) => missing(why),
            None => missing("it was not seen in time"),
        }
    }

    /// The state of a file now.
    fn is(&mut self, root: &Root, path: &str, stamp: &Stamp, limit: u64) -> FileState {
        if stamp.kind() == FileType::Symlink {
            return match link(root, path) {
                Known::Recorded(state) => state,
                Known::Nowhere(why) => FileState::NotCaptured { digest: None, why },
                Known::Git(_) | Known::Held(_) => FileState::Absent,
            };
        }
        if stamp.size > limit {
            return FileState::NotCaptured { digest: None, why: too_large(limit) };
        }
        match read(root, path) {
            Ok(bytes) => self.keep(bytes, stamp),
            Err(why) => FileState::NotCaptured { digest: None, why },
        }
    }
}

/// If neither state was captured: does the file system show a change?
fn may_differ(state: &FileState, stamps: (Option<Stamp>, Option<Stamp>)) -> bool {
    let unknown = matches!(state, FileState::NotCaptured { digest: None, .. });
    unknown && stamps.0 != stamps.1
}

fn link(root: &Root, path: &str) -> Known {
    match std::fs::read_link(root.path.join(path))
        .map(|target| target.into_os_string().into_string())
    {
        Ok(Ok(target)) => Known::Recorded(FileState::Symlink { target }),
        Ok(Err(_)) => Known::Nowhere("its target is not UTF-8".to_owned()),
        Err(error) => Known::Nowhere(error.to_string()),
    }
}

/// The bytes of a regular file; a link that replaced it is not followed.
fn read(root: &Root, path: &str) -> Result<Vec<u8>, String> {
    match SafePath::exact(root, path)? {
        Exact::Found(spot) => match spot.content()? {
            Content::File { bytes, .. } => Ok(bytes),
            _ => Err("it was changed meanwhile".to_owned()),
        },
        Exact::Blocked(_) => Err("it was changed meanwhile".to_owned()),
    }
}

/// Tracked files by folder.
fn listing(tracked: &Tracked) -> Listing {
    let mut listing = Listing::new();
    for path in tracked.paths() {
        let (folder, name) = path.rsplit_once('/').unwrap_or(("", path));
        listing.entry(folder.to_owned()).or_default().push(name.to_owned());
    }
    listing
}

fn blob(state: &FileState) -> Option<Digest> {
    match state {
        FileState::File { blob, .. } => Some(*blob),
        _ => None,
    }
}

/// Marks a new file with the content of a removed one as moved.
fn pair_renames(changes: &mut [FileChanged]) {
    let nothing = Digest::of(b"");
    let mut gone: HashMap<Digest, Vec<String>> = HashMap::new();
    for change in changes.iter().filter(|it| it.after == FileState::Absent) {
        // Empty files are all alike.
        if let Some(digest) = blob(&change.before).filter(|digest| *digest != nothing) {
            gone.entry(digest).or_default().push(change.path.clone());
        }
    }
    for change in changes.iter_mut().filter(|it| it.before == FileState::Absent) {
        let Some(from) = blob(&change.after).and_then(|digest| gone.get_mut(&digest)) else {
            continue;
        };
        let name = |path: &str| path.rsplit('/').next().map(ToOwned::to_owned);
        let alike = from.iter().position(|path| name(path) == name(&change.path));
        if !from.is_empty() {
            change.renamed_from = Some(from.remove(alike.unwrap_or(0)));
        }
    }
}

/// A configured folder as a clean relative path.
fn plain(top: &str) -> String {
    let names = top.split('/').filter(|name| !matches!(*name, "" | "."));
    names.collect::<Vec<_>>().join("/")
}

fn is_inside(top: &str) -> bool {
    !top.starts_with('/') && top.split('/').all(|name| name != "..")
}
