//! A recorded path on disk: its current state, and how to replace it.

use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, FileType};
use stepwell::Seq;
use stepwell::log::Redactor;
use stepwell::model::{Digest, FileChanged, FileState};
use stepwell_wire::LeftFile;

use crate::history::Entry;
use crate::plan::{Look, Now};
use crate::safe_fs::Content;
use crate::safe_path::{Exact, Root, SafePath};
use crate::started::{is_named_to_git, is_started};

/// A workspace in which files are inspected and replaced.
#[derive(Clone, Copy, Debug)]
pub struct Site<'a> {
    /// The workspace.
    pub root: &'a Root,
    /// Recognises contents that must not be kept.
    pub redactor: &'a Redactor,
    /// Larger files are not kept.
    pub max_file: u64,
    /// Says who recorded an event.
    pub whose: &'a dyn Whose,
}

/// Says who recorded the events of a log.
pub trait Whose: std::fmt::Debug {
    /// The person who recorded an event; `None` for the user.
    fn whose(&self, seq: Seq) -> Option<String>;
}

/// The user recorded all events.
#[derive(Clone, Copy, Debug)]
pub struct Own;

impl Whose for Own {
    fn whose(&self, _seq: Seq) -> Option<String> {
        None
    }
}

/// If a folder blocks a file's path, it is moved aside only up to this number of files.
const MAX_WITHIN: usize = 10_000;

impl Look for Site<'_> {
    fn now(&self, path: &str) -> Now {
        let spot = match SafePath::exact(self.root, path) {
            Ok(Exact::Found(spot)) => spot,
            Ok(Exact::Blocked(by)) => return Now::Blocked(by),
            Err(why) => return Now::Other(why),
        };
        match spot.kind() {
            None => Now::Absent,
            Some(FileType::Directory) => Now::Folder,
            Some(FileType::Symlink) => match spot.content() {
                Ok(Content::Symlink(target)) => Now::Symlink(target),
                Ok(_) => Now::Other(spot.says("it was changed meanwhile")),
                Err(why) => Now::Other(why),
            },
            Some(FileType::RegularFile) => self.look_into(&spot),
            Some(_) => Now::Other("it is not a regular file".to_owned()),
        }
    }

    fn within(&self, folder: &str) -> Result<Vec<String>, String> {
        let fault = |error| format!("{folder}: {error}");
        let (mut found, mut waiting) = (Vec::new(), vec![PathBuf::from(folder)]);
        while let Some(below) = waiting.pop() {
            for entry in std::fs::read_dir(self.root.path.join(&below)).map_err(fault)? {
                let entry = entry.map_err(fault)?;
                let path = below.join(entry.file_name());
                if entry.file_type().map_err(fault)?.is_dir() {
                    waiting.push(path);
                    continue;
                }
                let path = path.into_os_string().into_string();
                found.push(path.map_err(|_| format!("{folder} holds a name that is not UTF-8"))?);
                if found.len() > MAX_WITHIN {
                    return Err(format!("{folder} holds more than {MAX_WITHIN} files"));
                }
            }
        }
        Ok(found)
    }
}

impl Site<'_> {
    /// The files that need a confirmation: content from another person's run would be written into
    /// the user's workspace, and some files are executed by other programs.
    pub(crate) fn asked_about(&self, moves: &[FileChanged], history: &[Entry]) -> Vec<LeftFile> {
        let of = |path: &str| {
            let of_path = history.iter().filter(|entry| entry.change.path == path);
            of_path.filter_map(|entry| self.whose.whose(entry.seq)).next_back()
        };
        let ask = |change: &FileChanged| {
            let path = &change.path;
            let written = change.after != FileState::Absent;
            let runs = written && (is_started(path) || is_named_to_git(&self.root.path.join(path)));
            let why = match (of(path), runs) {
                (None, false) => return None,
                (Some(who), false) => format!("{who} recorded what it holds"),
                (None, true) => "programs run it by themselves".to_owned(),
                (Some(who), true) => {
                    format!("programs run it by themselves, and {who} recorded what it holds")
                }
            };
            Some(LeftFile { path: path.clone(), why })
        };
        moves.iter().filter_map(ask).collect()
    }

    fn look_into(&self, spot: &SafePath) -> Now {
        let size = spot.stat.as_ref().and_then(|stat| u64::try_from(stat.st_size).ok());
        if size.is_some_and(|size| size > self.max_file) {
            let unkept = Some(too_large(self.max_file));
            return match spot.measure() {
                Ok((digest, _, mode)) => Now::File { digest, mode, unkept },
                Err(why) => Now::Other(why),
            };
        }
        match spot.content() {
            Ok(Content::File { bytes, mode }) => {
                let unkept = self.redactor.holds_secret(&bytes).map(secret);
                Now::File { digest: Digest::of(&bytes), mode, unkept }
            }
            Ok(_) => Now::Other(spot.says("it was changed meanwhile")),
            Err(why) => Now::Other(why),
        }
    }

    /// The bytes of the file, if they still have this digest.
    pub(crate) fn bytes(&self, path: &str, digest: &Digest) -> Result<Vec<u8>, String> {
        let found = match SafePath::exact(self.root, path)? {
            Exact::Found(spot) => spot.content()?,
            Exact::Blocked(_) => Content::Absent,
        };
        match found {
            Content::File { bytes, .. } if digest.matches(&bytes) => Ok(bytes),
            _ => Err(format!("{path}: it was changed meanwhile")),
        }
    }

    /// Writes a state to a path atomically; `blob` returns contents.
    pub(crate) fn put(
        &self,
        path: &str,
        state: &FileState,
        blob: impl FnOnce(&Digest) -> Result<Vec<u8>, String>,
    ) -> Result<(), String> {
        let spot = match SafePath::exact(self.root, path)? {
            Exact::Found(spot) => spot,
            Exact::Blocked(_) if *state == FileState::Absent => return Ok(()),
            Exact::Blocked(by) => return Err(format!("{path}: {by} is in the way")),
        };
        match state {
            FileState::Absent => match spot.kind() {
                None | Some(FileType::Directory) => Ok(()),
                Some(_) => spot.remove().and_then(|()| self.remove_emptied(path)),
            },
            FileState::File { blob: digest, mode } => spot.put_file(&blob(digest)?, *mode),
            FileState::Symlink { target } => spot.put_link(target),
            FileState::NotCaptured { why, .. } => Err(format!("{path}: not captured: {why}")),
        }
    }

    /// Removes the folders above a removed file that are now empty, as git does.
    fn remove_emptied(&self, path: &str) -> Result<(), String> {
        for folder in Path::new(path).ancestors().skip(1) {
            let Some(folder) = folder.to_str().filter(|folder| !folder.is_empty()) else { break };
            let Exact::Found(spot) = SafePath::exact(self.root, folder)? else { break };
            if spot.kind() != Some(FileType::Directory) {
                continue;
            }
            // A folder that cannot be removed does no harm.
            if rustix::fs::unlinkat(&spot.folder, &spot.name, AtFlags::REMOVEDIR).is_err() {
                break;
            }
        }
        Ok(())
    }
}

/// Why a file above the limit is not kept.
#[must_use]
pub fn too_large(limit: u64) -> String {
    format!("larger than {}", stepwell::model::counted(limit, "byte"))
}

/// Why a file with a secret is not kept.
#[must_use]
pub fn secret(rule: &'static str) -> String {
    format!("holds a secret ({rule})")
}
