//! Finding sessions in folders: what is there is recognised by what is in it, and each
//! session is named once.

use std::collections::HashSet;
use std::fs::Metadata;
use std::path::{Path, PathBuf};

use super::unread::unread_system;
use crate::read::input::{list, unreadable};
use crate::read::reader::{Kind, Probe};
use crate::registry::Format;
use crate::{Error, Result};

/// A session that was found, or a group of them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Found {
    /// What is to be read.
    pub path: PathBuf,
    /// In which format.
    pub format: Format,
}

/// What is found by way of a file that is known by what the file system says of it.
pub(crate) type Known<'a> = dyn Fn(&Path, &Metadata) -> Option<Found> + 'a;

/// How deep folders are searched. No system nests its sessions half as deep.
const MAX_DEPTH: usize = 24;

/// The most files and folders that one search looks at.
const MAX_LOOKED_AT: usize = 2_000_000;

/// Folders that hold no sessions and many files.
const PASSED_OVER: [&str; 5] = [".git", "node_modules", "target", ".venv", "__pycache__"];

/// Finds the sessions at a path: in a file, or in a folder and those below it. `found` is
/// told of each one once; `fault` of what could not be looked at. Links are not followed,
/// but for the path itself.
pub fn find(
    path: &Path,
    only: Option<Format>,
    found: &mut dyn FnMut(Found) -> Result<()>,
    fault: &mut dyn FnMut(Error),
) -> Result<()> {
    find_knowing(path, only, &|_, _| None, found, fault)
}

/// The same, without opening files that are known.
pub(crate) fn find_knowing(
    path: &Path,
    only: Option<Format>,
    files: &Known<'_>,
    found: &mut dyn FnMut(Found) -> Result<()>,
    fault: &mut dyn FnMut(Error),
) -> Result<()> {
    let root = std::fs::canonicalize(path).map_err(|error| unreadable(path, error))?;
    Search {
        only,
        files,
        is_news: &mut |_, _| true,
        found,
        fault,
        known: HashSet::new(),
        looked_at: 0,
    }
    .visit(&root, 0)
}

/// What is at a path that somebody named.
#[derive(Debug, Default)]
pub struct Searched {
    /// The sessions.
    pub found: Vec<Found>,
    /// What could not be looked at.
    pub faults: Vec<Error>,
    /// The formats of what is there instead, if nothing of the wanted one is.
    pub others: Vec<Format>,
    /// The system that it is of, if that is known and not read.
    pub unread: Option<&'static str>,
}

impl Searched {
    /// Was nothing found that could be looked at?
    #[must_use]
    pub fn is_nothing(&self) -> bool {
        self.found.is_empty() && self.faults.is_empty()
    }
}

/// Looks for the sessions at a path that somebody named, and says what is there instead.
///
/// # Errors
/// If there is nothing at that path.
pub fn search(path: &Path, only: Option<Format>) -> std::io::Result<Searched> {
    search_knowing(path, only, &|_, _| None)
}

/// The same, without opening files that are known.
pub(crate) fn search_knowing(
    path: &Path,
    only: Option<Format>,
    files: &Known<'_>,
) -> std::io::Result<Searched> {
    path.symlink_metadata()?;
    let (mut found, mut faults) = (Vec::new(), Vec::new());
    let mut add = |it: Found| {
        found.push(it);
        Ok(())
    };
    let mut fault = |error| faults.push(error);
    if let Err(error) = find_knowing(path, only, files, &mut add, &mut fault) {
        faults.push(error);
    }
    let mut searched = Searched { found, faults, others: Vec::new(), unread: None };
    if searched.is_nothing() {
        searched.unread = unread_below(path);
    }
    if only.is_some() && searched.is_nothing() {
        let mut other = |it: Found| {
            if !searched.others.contains(&it.format) {
                searched.others.push(it.format);
            }
            Ok(())
        };
        // What cannot be read is not what is looked for here.
        let _ = find(path, None, &mut other, &mut |_| ());
    }
    Ok(searched)
}

/// The system that a file, or the first file of a folder that is known, is of.
fn unread_below(path: &Path) -> Option<&'static str> {
    let mut unread = None;
    let mut look = |path: &Path, _: &Metadata| {
        unread = unread.or_else(|| unread_system(path));
        false
    };
    // What cannot be looked at was told before.
    let _ = find_news(path, None, &mut look, &mut |_| Ok(()), &mut |_| ());
    unread
}

/// Finds the sessions at a path whose files are news, by what the file system says of them.
/// The others are not opened.
pub fn find_news(
    path: &Path,
    only: Option<Format>,
    is_news: &mut dyn FnMut(&Path, &Metadata) -> bool,
    found: &mut dyn FnMut(Found) -> Result<()>,
    fault: &mut dyn FnMut(Error),
) -> Result<()> {
    let root = std::fs::canonicalize(path).map_err(|error| unreadable(path, error))?;
    let files = &|_: &Path, _: &Metadata| None;
    Search { only, files, is_news, found, fault, known: HashSet::new(), looked_at: 0 }
        .visit(&root, 0)
}

struct Search<'a> {
    only: Option<Format>,
    files: &'a Known<'a>,
    is_news: &'a mut dyn FnMut(&Path, &Metadata) -> bool,
    found: &'a mut dyn FnMut(Found) -> Result<()>,
    fault: &'a mut dyn FnMut(Error),
    /// What was found already, by whichever part of it.
    known: HashSet<PathBuf>,
    looked_at: usize,
}

impl Search<'_> {
    fn visit(&mut self, path: &Path, depth: usize) -> Result<()> {
        self.looked_at += 1;
        if self.looked_at > MAX_LOOKED_AT {
            let why = format!("more than {MAX_LOOKED_AT} files; name a folder further down");
            return Err(Error::Foreign { path: path.to_owned(), why });
        }
        if let Ok(found) = path.symlink_metadata()
            && found.is_file()
        {
            if !(self.is_news)(path, &found) {
                return Ok(());
            }
            let known = (self.files)(path, &found);
            if let Some(found) = known.filter(|it| self.only.is_none_or(|only| only == it.format)) {
                let new = self.known.insert(found.path.clone());
                return if new { (self.found)(found) } else { Ok(()) };
            }
        }
        let probe = match Probe::of(path) {
            Ok(Some(probe)) => probe,
            Ok(None) => return Ok(()),
            Err(error) => {
                (self.fault)(error);
                return Ok(());
            }
        };
        let recognised = match self.only {
            None => Format::of(&probe),
            Some(format) => {
                format.reader().and_then(|reader| Some((format, reader.recognise(&probe)?)))
            }
        };
        if let Some((format, path)) = recognised {
            // What is read as a whole is not searched as well.
            let whole = path == probe.path;
            if self.known.insert(path.clone()) {
                (self.found)(Found { path, format })?;
            }
            if whole {
                return Ok(());
            }
        }
        if probe.kind == Kind::Folder { self.descend(path, depth) } else { Ok(()) }
    }

    fn descend(&mut self, folder: &Path, depth: usize) -> Result<()> {
        let name = folder.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        if depth > MAX_DEPTH || (depth > 0 && PASSED_OVER.contains(&name)) {
            return Ok(());
        }
        match list(folder) {
            Ok(paths) => paths.iter().try_for_each(|path| self.visit(path, depth + 1)),
            Err(error) => {
                (self.fault)(error);
                Ok(())
            }
        }
    }
}
