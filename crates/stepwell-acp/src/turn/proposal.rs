//! What a call would make of its file, for whoever is asked about it.

use std::io::Read as _;
use std::path::Path;

use serde_json::Value;
use stepwell_files::safe_path::{Last, Root, SafePath};

use super::{Call, Diff};

/// The largest file whose change is shown before it is made.
const LARGEST: u64 = 256 << 10;

/// What a call would make of its file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Proposal {
    /// The text before and after.
    Change(Diff),
    /// It replaces a file that is too large to show, or is no text.
    Replaces {
        /// How large that is.
        bytes: u64,
    },
}

/// What stands at a path.
enum Existing {
    Nothing,
    Text(String),
    /// Too much, or no text.
    Bytes(u64),
}

impl Call {
    /// What the call would make of its file, where that can be told. Only regular files of the
    /// workspace are read, and no more of one than is shown. It blocks.
    pub(crate) fn proposed(&self, root: &Path) -> Option<Proposal> {
        let named = |name: &str| self.input.get(name).and_then(Value::as_str);
        let (path, given) = (self.locations.first()?.path.clone(), named("path")?);
        let change = |before, after| Some(Proposal::Change(Diff { path, before, after }));
        match self.tool.as_str() {
            "write_file" => {
                let after = named("content")?.to_owned();
                match existing(root, given)? {
                    Existing::Nothing => change(None, after),
                    Existing::Text(before) => change(Some(before), after),
                    Existing::Bytes(bytes) => Some(Proposal::Replaces { bytes }),
                }
            }
            "edit_file" => {
                let (old, new) = (named("old_text")?, named("new_text")?);
                let Existing::Text(before) = existing(root, given)? else { return None };
                let after = match self.input.get("replace_all").and_then(Value::as_bool) {
                    Some(true) => before.replace(old, new),
                    _ => before.replacen(old, new, 1),
                };
                change(Some(before), after)
            }
            _ => None,
        }
    }
}

/// What stands at a path of the workspace; none, if the path leaves it, or no file can be there.
fn existing(root: &Path, path: &str) -> Option<Existing> {
    let spot = SafePath::find(&Root::new(root.to_owned()), path, Last::Follow).ok()?;
    if spot.kind().is_none() {
        return Some(Existing::Nothing);
    }
    let file = spot.open().ok()?;
    let bytes = file.metadata().ok()?.len();
    if bytes > LARGEST {
        return Some(Existing::Bytes(bytes));
    }
    let mut read = Vec::new();
    // It may grow meanwhile.
    file.take(LARGEST).read_to_end(&mut read).ok()?;
    Some(String::from_utf8(read).map_or(Existing::Bytes(bytes), Existing::Text))
}
