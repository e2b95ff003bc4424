//! The specs that a workspace has.

use std::path::{Path, PathBuf};

/// Folders in which specs are looked for, below the workspace.
const FOLDERS: [&str; 3] = ["", "flows", ".stepwell/flows"];

/// How large a spec may be.
const MAX_SPEC: u64 = 1 << 20;

/// A file that may be a spec.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct SpecFile {
    /// Its path in the workspace.
    pub shown: String,
    /// Where it is.
    pub path: PathBuf,
}

/// The specs of a workspace, by their paths. What is in the files is not looked at.
#[must_use]
pub fn specs_in(root: &Path) -> Vec<SpecFile> {
    let mut found = Vec::new();
    for folder in FOLDERS {
        let Ok(entries) = std::fs::read_dir(root.join(folder)) else { continue };
        for entry in entries.flatten() {
            let path = entry.path();
            let is_spec = path.extension().is_some_and(|it| it == "yaml" || it == "yml");
            // No links: they may lead anywhere.
            let is_file = entry.metadata().is_ok_and(|it| it.is_file() && it.len() <= MAX_SPEC);
            if is_spec && is_file {
                let shown = Path::new(folder).join(entry.file_name()).display().to_string();
                found.push(SpecFile { shown, path });
            }
        }
    }
    found.sort();
    found
}
