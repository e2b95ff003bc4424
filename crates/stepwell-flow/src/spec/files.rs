//! The files beside a spec, which it may refer to and none other.

use std::collections::BTreeMap;
use std::path::{Component, Path, PathBuf};

/// The largest file that a spec refers to.
const MAX_FILE_BYTES: u64 = 1 << 20;

/// Files that a spec refers to, by the names that it gives them.
pub trait Files {
    /// A file's text, or why it cannot be had.
    fn read(&self, name: &str) -> Result<String, String>;
}

/// The files that were stored with a session.
impl Files for BTreeMap<String, String> {
    fn read(&self, name: &str) -> Result<String, String> {
        self.get(name).cloned().ok_or_else(|| "it is not stored with the session".to_owned())
    }
}

/// The files of a folder and below, and none that a link leads to elsewhere.
#[derive(Clone, Debug)]
pub struct Folder(pub PathBuf);

impl Files for Folder {
    fn read(&self, name: &str) -> Result<String, String> {
        let plain = |part: Component<'_>| matches!(part, Component::Normal(_) | Component::CurDir);
        if name.is_empty() || !Path::new(name).components().all(plain) {
            return Err("expected a path beside the spec or below it, without `..`".to_owned());
        }
        let said = |error: std::io::Error| match error.kind() {
            std::io::ErrorKind::NotFound => "there is no such file beside the spec".to_owned(),
            _ => error.to_string(),
        };
        let folder = self.0.canonicalize().map_err(said)?;
        let file = folder.join(name).canonicalize().map_err(said)?;
        if !file.starts_with(&folder) {
            return Err("a link leads out of the spec's folder".to_owned());
        }
        let facts = file.metadata().map_err(said)?;
        if !facts.is_file() {
            return Err("this is not a file".to_owned());
        }
        if facts.len() > MAX_FILE_BYTES {
            return Err(format!("it has {} bytes, at most {MAX_FILE_BYTES} are read", facts.len()));
        }
        let bytes = std::fs::read(&file).map_err(said)?;
        String::from_utf8(bytes).map_err(|_| "it is not UTF-8 text".to_owned())
    }
}
