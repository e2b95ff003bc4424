//! Detects that a file changed, without reading it.

use std::os::unix::fs::MetadataExt as _;
use std::path::Path;

/// Metadata that changes whenever a file is replaced or written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Stamp {
    file: (u64, u64),
    size: u64,
    changed: (i64, i64),
}

impl Stamp {
    /// The stamp of an existing file.
    pub(crate) fn of(path: &Path) -> Option<Self> {
        let found = path.metadata().ok()?;
        Some(Self {
            file: (found.dev(), found.ino()),
            size: found.len(),
            changed: (found.ctime(), found.ctime_nsec()),
        })
    }
}
