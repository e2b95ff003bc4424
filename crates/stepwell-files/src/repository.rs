//! What git keeps: which files hold just what it has, and their contents.

use std::collections::HashMap;
use std::io::{BufRead, Read as _};
use std::path::{Path, PathBuf};

use crate::git::SafeGit;
use crate::index::{Entry, Names, parse};
use crate::tree::Stamp;

/// A git work tree that a workspace is, or is part of.
#[derive(Debug)]
pub(crate) struct Git {
    git: SafeGit,
    /// The workspace's path in the work tree, with a slash at its end; empty at the top.
    prefix: String,
    index: PathBuf,
    names: Names,
}

/// What git knew of the workspace's files when its index was written.
#[derive(Debug, Default)]
pub(crate) struct Tracked {
    entries: HashMap<String, Entry>,
    /// When that was, in nanoseconds since 1970.
    written: i64,
}

impl Git {
    /// The work tree around a folder, if there is one and git is installed.
    pub(crate) fn around(root: &Path) -> Option<Self> {
        let asked = ["rev-parse", "--show-prefix", "--git-path", "index", "--show-object-format"];
        let git = SafeGit::new(root);
        let text = git.text(&asked).ok()?;
        let mut lines = text.lines();
        let (prefix, index, names) = (lines.next()?, lines.next()?, lines.next()?);
        let names = match names {
            "sha1" => Names::Sha1,
            "sha256" => Names::Sha256,
            _ => return None,
        };
        let index = root.join(index);
        Some(Self { git, prefix: prefix.to_owned(), index, names })
    }

    /// What its index says now.
    pub(crate) fn tracked(&self) -> Option<Tracked> {
        let stat = rustix::fs::stat(&self.index).ok()?;
        let bytes = std::fs::read(&self.index).ok()?;
        let entries = parse(&bytes, self.names)?.into_iter().filter_map(|mut entry| {
            entry.path = entry.path.strip_prefix(&self.prefix)?.to_owned();
            Some((entry.path.clone(), entry))
        });
        Some(Tracked { entries: entries.collect(), written: Stamp::of(&stat).modified })
    }

    /// Has git look at its files again, so that its index tells how they are.
    pub(crate) fn refresh(&self) {
        // It fails if a file differs, which is no concern here.
        let _ = self.git.text(&["update-index", "-q", "--refresh"]);
    }

    /// The contents of objects; those that are not there are left out.
    pub(crate) fn contents(&self, objects: &[&str]) -> HashMap<String, Vec<u8>> {
        let mut found = HashMap::new();
        if objects.is_empty() {
            return found;
        }
        let asked: String = objects.iter().map(|object| format!("{object}\n")).collect();
        let _ = self.git.read(&["cat-file", "--batch"], &asked, |output| {
            while let Some((object, bytes)) = next(output) {
                found.insert(object, bytes);
            }
        });
        found
    }
}

/// The next object that `cat-file --batch` gives; those that are missing are passed over.
fn next(output: &mut impl BufRead) -> Option<(String, Vec<u8>)> {
    loop {
        let mut line = String::new();
        output.read_line(&mut line).ok().filter(|len| *len > 0)?;
        let words: Vec<&str> = line.split_whitespace().collect();
        let [object, _kind, size] = words[..] else { continue };
        let size: usize = size.parse().ok()?;
        let mut bytes = Vec::new();
        output.take(size as u64).read_to_end(&mut bytes).ok().filter(|len| *len == size)?;
        output.read_exact(&mut [0]).ok()?;
        return Some((object.to_owned(), bytes));
    }
}

impl Tracked {
    /// The object that a file holds, if git knows that it does: the file is just as it was
    /// when git looked, and that was well before the index was written.
    pub(crate) fn object(&self, path: &str, stamp: &Stamp) -> Option<&str> {
        let entry = self.entries.get(path)?;
        let same = is_then(entry.modified, stamp.modified)
            && is_then(entry.changed, stamp.changed)
            && entry.inode == low(stamp.inode)
            && entry.size == low(stamp.size);
        // What was written in the same instant as the index may have been written again.
        let settled = stamp.modified < self.written
            && (entry.modified.1 != 0 || stamp.modified / SECOND < self.written / SECOND);
        (same && settled).then_some(entry.object.as_str())
    }

    /// Is it tracked, whatever it holds now?
    pub(crate) fn has(&self, path: &str) -> bool {
        self.entries.contains_key(path)
    }

    /// Every tracked path.
    pub(crate) fn paths(&self) -> impl Iterator<Item = &str> {
        self.entries.keys().map(String::as_str)
    }
}

const SECOND: i64 = 1_000_000_000;

/// Is the moment in an index that one? Some gits do not note nanoseconds.
fn is_then((seconds, nanos): (u32, u32), stamp: i64) -> bool {
    let same_second = i64::from(seconds) == stamp.div_euclid(SECOND) & 0xffff_ffff;
    same_second && (nanos == 0 || i64::from(nanos) == stamp.rem_euclid(SECOND))
}

/// The part of a number that an index has room for.
fn low(number: u64) -> u32 {
    (number & 0xffff_ffff) as u32
}
