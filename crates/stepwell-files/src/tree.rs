//! The metadata of the workspace's files: compared before and after a command, it shows which files
//! may have changed, without reading any.
//!
//! A folder with an unchanged stamp contains the same names, so it is listed only once; after that
//! each of its files costs one system call.

use std::collections::hash_map::Entry;
use std::collections::{BTreeMap, HashMap, HashSet};
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

use ignore::WalkState;
use parking_lot::Mutex;
use rustix::fs::{AtFlags, FileType, Mode, OFlags, Stat};

use crate::safe_path::Root;
use crate::walk::walker;

/// A file's metadata. If it is the same, the file is unchanged.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Stamp {
    /// When it was modified, in nanoseconds since 1970.
    pub(crate) modified: i64,
    /// When its inode was changed.
    pub(crate) changed: i64,
    pub(crate) inode: u64,
    pub(crate) size: u64,
    /// Its kind and permission bits.
    pub(crate) mode: u32,
}

/// Most file systems have timestamps in steps of up to 10 ms. A file that was changed shortly
/// before a scan may change again without a new timestamp.
const GRAIN: i64 = 20_000_000;

impl Stamp {
    pub(crate) fn of(stat: &Stat) -> Self {
        #[allow(clippy::unnecessary_cast, reason = "the types differ between platforms")]
        let nanos =
            |seconds: i64, nanos: i64| seconds.saturating_mul(1_000_000_000).saturating_add(nanos);
        #[allow(
            clippy::unnecessary_cast,
            clippy::useless_conversion,
            reason = "the types differ between platforms"
        )]
        Self {
            modified: nanos(stat.st_mtime as i64, stat.st_mtime_nsec as i64),
            changed: nanos(stat.st_ctime as i64, stat.st_ctime_nsec as i64),
            inode: stat.st_ino as u64,
            size: u64::try_from(stat.st_size).unwrap_or_default(),
            mode: stat.st_mode.into(),
        }
    }

    pub(crate) fn kind(&self) -> FileType {
        FileType::from_raw_mode(self.mode as _)
    }

    /// Could the file have changed after a scan at that time without a new timestamp?
    fn is_fresh(&self, looked: i64) -> bool {
        self.modified.max(self.changed) >= looked.saturating_sub(GRAIN)
    }
}

/// The files below some folders of a workspace. `K` is the knowledge about each.
#[derive(Debug)]
pub(crate) struct Tree<K> {
    root: PathBuf,
    /// The store's folder, which is skipped.
    store: Option<PathBuf>,
    tops: Vec<String>,
    /// By path, so that a folder precedes its contents.
    folders: BTreeMap<String, Folder<K>>,
    /// The time of the last scan.
    looked: i64,
}

#[derive(Debug)]
struct Folder<K> {
    /// `None` before its first scan.
    stamp: Option<Stamp>,
    /// Its names may have changed since without a new timestamp.
    fresh: bool,
    names: Names,
    files: Vec<Record<K>>,
}

/// Which names in a folder count.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Names {
    /// All that are not ignored.
    All,
    /// Only these: the folder is ignored, but git tracks some of its files.
    These,
}

#[derive(Debug)]
struct Record<K> {
    name: Box<str>,
    /// `None` before its first scan.
    stamp: Option<Stamp>,
    /// It may have changed since without a new timestamp.
    fresh: bool,
    /// The knowledge about it.
    known: Option<K>,
}

/// A file that may have changed.
#[derive(Debug)]
pub(crate) struct Touched<K> {
    pub(crate) path: String,
    /// Its earlier state and knowledge; `None` if it is new.
    pub(crate) before: Option<(Stamp, Option<K>)>,
    /// Its current state; `None` if it is gone.
    pub(crate) after: Option<Stamp>,
}

/// There are more files than the limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TooMany;

/// Names by folder.
pub(crate) type Listing = BTreeMap<String, Vec<String>>;

impl<K: Send + Sync> Tree<K> {
    /// An empty tree of these folders.
    pub(crate) fn new(root: &Root, tops: Vec<String>) -> Self {
        let (root, store) = (root.path.clone(), root.store.clone());
        Self { root, store, tops, folders: BTreeMap::new(), looked: 0 }
    }

    /// Adds files that count although they may be ignored.
    pub(crate) fn add(&mut self, listing: Listing) {
        for (path, names) in listing {
            let inside = self.tops.iter().any(|top| *top == path || is_below(&path, top));
            if inside {
                let unlisted = || Folder::new(Names::These);
                self.folders.entry(path).or_insert_with(unlisted).merge(names);
            }
        }
    }

    /// Scans every file at the time `looked`. Returns the differences from the last scan.
    pub(crate) fn refresh(
        &mut self,
        looked: i64,
        limit: usize,
    ) -> Result<Vec<Touched<K>>, TooMany> {
        let first = self.looked == 0;
        // A configured folder may be created later.
        let listed = |top: &String| self.folders.get(top).is_some_and(|it| it.names == Names::All);
        let unlisted: Vec<String> = self.tops.iter().filter(|top| !listed(top)).cloned().collect();
        self.find(Depth::All, &unlisted, limit)?;
        let (mut touched, due) = self.look(looked);
        if touched.iter().any(|it| !first && is_rules(&it.path)) {
            // A changed .gitignore changes which files count.
            self.find(Depth::All, &self.tops.clone(), limit)?;
            touched = merged(touched, self.look(looked).0);
            drop_uncovered(&mut touched, self.looked);
        } else if !first && !due.is_empty() {
            let new = self.find(Depth::One, &due, limit)?;
            self.find(Depth::All, &new, limit)?;
            touched = merged(touched, self.look_at_new(looked));
        }
        self.looked = looked;
        match self.folders.values().map(|folder| folder.files.len()).sum::<usize>() > limit {
            true => Err(TooMany),
            false => Ok(touched),
        }
    }

    /// Is there knowledge about each file?
    pub(crate) fn is_learnt(&self) -> bool {
        let files = self.folders.values().flat_map(|folder| &folder.files);
        files.into_iter().all(|file| file.known.is_some())
    }

    /// Computes the knowledge about each file that lacks it.
    pub(crate) fn learn(&mut self, mut learn: impl FnMut(&str, &Stamp) -> Option<K>) {
        for (path, folder) in &mut self.folders {
            for file in folder.files.iter_mut().filter(|file| file.known.is_none()) {
                if let Some(stamp) = &file.stamp {
                    file.known = learn(&join(path, &file.name), stamp);
                }
            }
        }
    }

    /// Stores knowledge about a file.
    pub(crate) fn remember(&mut self, path: &str, known: K) {
        let (folder, name) = path.rsplit_once('/').unwrap_or(("", path));
        let files = self.folders.get_mut(folder).map(|folder| &mut folder.files);
        if let Some(file) = files.and_then(|files| files.iter_mut().find(|it| &*it.name == name)) {
            file.known = Some(known);
        }
    }

    /// Adds the names in some folders. Returns the new folders.
    fn find(
        &mut self,
        depth: Depth,
        from: &[String],
        limit: usize,
    ) -> Result<Vec<String>, TooMany> {
        let mut new = Vec::new();
        for (path, names) in self.list(from, depth, limit)? {
            let folder = self.folders.entry(path.clone()).or_insert_with(|| {
                new.push(path);
                Folder::new(Names::All)
            });
            folder.names = Names::All;
            folder.merge(names);
        }
        Ok(new)
    }

    /// Lists folders as git sees them: the files and links in each that are not ignored. A folder
    /// with subfolders is listed even if it has no files.
    fn list(&self, from: &[String], depth: Depth, limit: usize) -> Result<Listing, TooMany> {
        let found: Mutex<(Listing, usize)> = Mutex::default();
        let mut tops = from.iter().map(|path| self.root.join(path));
        let Some(first) = tops.next() else { return Ok(Listing::new()) };
        let mut walker = walker(&first, self.store.as_deref());
        for top in tops {
            walker.add(top);
        }
        walker
            .max_depth((depth == Depth::One).then_some(1))
            .threads(std::thread::available_parallelism().map_or(1, usize::from).min(MAX_THREADS));
        walker.build_parallel().run(|| {
            Box::new(|entry| {
                // An unreadable folder counts as ignored.
                let Ok(entry) = entry else { return WalkState::Continue };
                let Some(path) = entry.path().strip_prefix(&self.root).ok().and_then(Path::to_str)
                else {
                    return WalkState::Continue;
                };
                let kind = entry.file_type();
                let mut found = found.lock();
                if kind.is_some_and(|kind| kind.is_dir()) {
                    found.0.entry(path.to_owned()).or_default();
                } else if kind.is_some_and(|kind| kind.is_file() || kind.is_symlink()) {
                    let (folder, name) = path.rsplit_once('/').unwrap_or(("", path));
                    match found.0.get_mut(folder) {
                        Some(names) => names.push(name.to_owned()),
                        None => drop(found.0.insert(folder.to_owned(), vec![name.to_owned()])),
                    }
                    found.1 += 1;
                }
                if found.1 > limit { WalkState::Quit } else { WalkState::Continue }
            })
        });
        let (listing, files) = found.into_inner();
        if files > limit { Err(TooMany) } else { Ok(listing) }
    }

    /// Scans every folder and file. Returns the differences, and the folders that must be listed
    /// again.
    fn look(&mut self, looked: i64) -> (Vec<Touched<K>>, Vec<String>) {
        let seen = look_at(&self.root, self.folders.iter_mut().collect(), looked);
        let (mut touched, mut due) = (Vec::new(), Vec::new());
        let mut gone: Vec<String> = Vec::new();
        for (path, seen) in seen {
            // The files below a folder that is now a link are elsewhere.
            let lost = gone.iter().any(|gone| is_below(&path, gone));
            match seen {
                Seen::There { touched: here, .. } if lost => {
                    // The new metadata belongs to other files; only the old state counts.
                    let seen: HashSet<String> = here.iter().map(|it| it.path.clone()).collect();
                    let mut rest = Vec::new();
                    self.forget(&path, &mut rest);
                    rest.retain(|it| !seen.contains(&it.path));
                    let was = here.into_iter().filter(|it| it.before.is_some());
                    touched.extend(was.map(|it| Touched { after: None, ..it }).chain(rest));
                }
                Seen::Gone if lost => self.forget(&path, &mut touched),
                Seen::Gone => {
                    self.forget(&path, &mut touched);
                    gone.push(path);
                }
                Seen::There { touched: here, names } => {
                    touched.extend(here);
                    if names == Listed::Again {
                        due.push(path);
                    }
                }
            }
        }
        (touched, due)
    }

    /// Scans the folders and files without an earlier scan.
    fn look_at_new(&mut self, looked: i64) -> Vec<Touched<K>> {
        let is_new = |folder: &Folder<K>| folder.files.iter().any(|file| file.stamp.is_none());
        let new = self.folders.iter_mut().filter(|(_, it)| it.stamp.is_none() || is_new(it));
        let seen = look_at(&self.root, new.collect(), looked);
        let touched = seen.into_iter().filter_map(|(_, seen)| match seen {
            Seen::There { touched, .. } => Some(touched),
            Seen::Gone => None,
        });
        touched.flatten().collect()
    }

    /// A folder is gone, with everything in it.
    fn forget(&mut self, path: &str, touched: &mut Vec<Touched<K>>) {
        let files = self.folders.remove(path).map(|folder| folder.files).unwrap_or_default();
        for file in files {
            if let Some(stamp) = file.stamp {
                let (path, before) = (join(path, &file.name), Some((stamp, file.known)));
                touched.push(Touched { path, before, after: None });
            }
        }
    }
}

impl<K> Folder<K> {
    fn new(names: Names) -> Self {
        Self { stamp: None, fresh: true, names, files: Vec::new() }
    }

    fn merge(&mut self, names: Vec<String>) {
        let here: HashSet<Box<str>> = self.files.iter().map(|it| it.name.clone()).collect();
        let new = names.into_iter().filter(|name| !here.contains(name.as_str()));
        let new =
            new.map(|name| Record { name: name.into(), stamp: None, fresh: true, known: None });
        self.files.extend(new.collect::<Vec<_>>());
    }

    /// Scans the folder and its files.
    fn look(&mut self, root: &OwnedFd, path: &str, looked: i64) -> Seen<K> {
        let here = if path.is_empty() { "." } else { path };
        let Ok(fd) = rustix::fs::openat(root, here, FOLDER, Mode::empty()) else {
            return Seen::Gone;
        };
        let Ok(stamp) = rustix::fs::fstat(&fd).map(|stat| Stamp::of(&stat)) else {
            return Seen::Gone;
        };
        let again = self.stamp.is_some_and(|before| before != stamp)
            || (self.stamp.is_some() && self.fresh);
        let names = if again && self.names == Names::All { Listed::Again } else { Listed::Already };
        (self.stamp, self.fresh) = (Some(stamp), stamp.is_fresh(looked));
        let mut touched = Vec::new();
        self.files.retain_mut(|file| {
            let after = file_stamp(&fd, &file.name);
            let same = after.is_some() && after == file.stamp && !file.fresh;
            if !same {
                let before = file.stamp.map(|stamp| (stamp, file.known.take()));
                if before.is_some() || after.is_some() {
                    touched.push(Touched { path: join(path, &file.name), before, after });
                }
                file.stamp = after;
                file.fresh = after.is_some_and(|stamp| stamp.is_fresh(looked));
            }
            after.is_some()
        });
        Seen::There { touched, names }
    }
}

/// The result of scanning a folder.
enum Seen<K> {
    There { touched: Vec<Touched<K>>, names: Listed },
    Gone,
}

/// Must a folder's names be listed again?
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Listed {
    Already,
    Again,
}

const FOLDER: OFlags =
    OFlags::RDONLY.union(OFlags::DIRECTORY).union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);

/// The stamp of a file or link; other kinds do not count.
fn file_stamp(folder: &OwnedFd, name: &str) -> Option<Stamp> {
    let stat = rustix::fs::statat(folder, name, AtFlags::SYMLINK_NOFOLLOW).ok()?;
    let stamp = Stamp::of(&stat);
    matches!(stamp.kind(), FileType::RegularFile | FileType::Symlink).then_some(stamp)
}

/// More threads do not help: the work is system calls.
const MAX_THREADS: usize = 4;

/// Scans folders, on several threads if they are many. The results are in order.
fn look_at<'a, K: Send>(
    root: &Path,
    mut folders: Vec<(&'a String, &'a mut Folder<K>)>,
    looked: i64,
) -> Vec<(String, Seen<K>)> {
    /// Below this number a thread does not pay.
    const SHARE: usize = 64;
    let Ok(root) = rustix::fs::open(root, FOLDER, Mode::empty()) else {
        return folders.into_iter().map(|(path, _)| (path.clone(), Seen::Gone)).collect();
    };
    let threads = std::thread::available_parallelism().map_or(1, usize::from).min(MAX_THREADS);
    let share = folders.len().div_ceil(threads).max(SHARE);
    let look = |share: &mut [(&'a String, &'a mut Folder<K>)]| -> Vec<_> {
        let seen =
            share.iter_mut().map(|(path, it)| ((*path).clone(), it.look(&root, path, looked)));
        seen.collect()
    };
    if folders.len() <= share {
        return look(&mut folders);
    }
    std::thread::scope(|scope| {
        let shares: Vec<_> =
            folders.chunks_mut(share).map(|share| scope.spawn(|| look(share))).collect();
        shares.into_iter().flat_map(|share| share.join().unwrap_or_default()).collect()
    })
}

/// The depth of a listing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Depth {
    /// The names in the folders themselves.
    One,
    /// Those in all folders below as well.
    All,
}

/// Combines two scans: the state before the first, and after the last.
fn merged<K>(first: Vec<Touched<K>>, second: Vec<Touched<K>>) -> Vec<Touched<K>> {
    let mut places: HashMap<String, usize> =
        first.iter().enumerate().map(|(place, it)| (it.path.clone(), place)).collect();
    let mut all = first;
    for later in second {
        match places.entry(later.path.clone()) {
            Entry::Occupied(place) => all[*place.get()].after = later.after,
            Entry::Vacant(place) => {
                place.insert(all.len());
                all.push(later);
            }
        }
    }
    all.retain(|it| it.before.is_some() || it.after.is_some());
    all
}

fn is_rules(path: &str) -> bool {
    path.rsplit('/').next() == Some(".gitignore")
}

/// Leaves out old files that merely are no longer ignored: their inodes are old, and do not belong
/// to moved files.
fn drop_uncovered<K>(touched: &mut Vec<Touched<K>>, since: i64) {
    let gone = touched.iter().filter(|it| it.after.is_none());
    let moved: HashSet<u64> =
        gone.filter_map(|it| it.before.as_ref().map(|(stamp, _)| stamp.inode)).collect();
    touched.retain(|it| match (&it.before, &it.after) {
        (None, Some(after)) => {
            after.changed >= since.saturating_sub(GRAIN) || moved.contains(&after.inode)
        }
        _ => true,
    });
}

fn is_below(path: &str, folder: &str) -> bool {
    folder.is_empty() || path.strip_prefix(folder).is_some_and(|rest| rest.starts_with('/'))
}

fn join(folder: &str, name: &str) -> String {
    if folder.is_empty() { name.to_owned() } else { format!("{folder}/{name}") }
}
