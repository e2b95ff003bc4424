//! What git keeps: the files that equal an object, and their contents.

use std::collections::HashMap;
use std::io::{BufRead, Read as _};
use std::path::{Path, PathBuf};

use crate::git::SafeGit;
use crate::index::{Entry, Names, parse};
use crate::tree::Stamp;

/// A git work tree that contains the workspace.
#[derive(Debug)]
pub(crate) struct Git {
    git: SafeGit,
    /// The workspace's path in the work tree, with a trailing slash; empty at the top.
    prefix: String,
    index: PathBuf,
    names: Names,
}

/// The state of the workspace's files when git's index was written.
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

    /// The current index.
    pub(crate) fn tracked(&self) -> Option<Tracked> {
        let stat = rustix::fs::stat(&self.index).ok()?;
        let bytes = std::fs::read(&self.index).ok()?;
        let entries = parse(&bytes, self.names)?.into_iter().filter_map(|mut entry| {
            entry.path = entry.path.strip_prefix(&self.prefix)?.to_owned();
            Some((entry.path.clone(), entry))
        });
        Some(Tracked { entries: entries.collect(), written: Stamp::of(&stat).modified })
    }

    /// Makes git refresh its index.
    pub(crate) fn refresh(&self) {
        // This fails if a file differs, which does not matter here.
        let _ = self.git.text(&["update-index", "-q", "--refresh"]);
    }

    /// The contents of objects; missing objects are left out.
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

/// The next object in the output of `cat-file --batch`; missing ones are skipped.
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
    /// The object that equals a file, if git knows that: the file is unchanged since git's check,
    /// which was well before the index was written.
    pub(crate) fn object(&self, path: &str, stamp: &Stamp) -> Option<&str> {
        let entry = self.entries.get(path)?;
        let same = is_then(entry.modified, stamp.modified)
            && is_then(entry.changed, stamp.changed)
            && entry.inode == low(stamp.inode)
            && entry.size == low(stamp.size);
        // A file that was written in the same instant as the index may have changed again.
        let settled = stamp.modified < self.written
            && (entry.modified.1 != 0 || stamp.modified / SECOND < self.written / SECOND);
        (same && settled).then_some(entry.object.as_str())
    }

    /// Is it tracked, whatever its content is now?
    pub(crate) fn has(&self, path: &str) -> bool {
        self.entries.contains_key(path)
    }

    /// Every tracked path.
    pub(crate) fn paths(&self) -> impl Iterator<Item = &str> {
        self.entries.keys().map(String::as_str)
    }
}

const SECOND: i64 = 1_000_000_000;

/// Does a time in an index equal this one? Some versions of git do not store nanoseconds.
fn is_then((seconds, nanos): (u32, u32), stamp: i64) -> bool {
    let same_second = i64::from(seconds) == stamp.div_euclid(SECOND) & 0xffff_ffff;
    same_second && (nanos == 0 || i64::from(nanos) == stamp.rem_euclid(SECOND))
}

/// The low 32 bits, as an index stores them.
fn low(number: u64) -> u32 {
    (number & 0xffff_ffff) as u32
}
