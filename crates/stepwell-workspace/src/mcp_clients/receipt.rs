//! What was put into a file, so that it can be taken out exactly.

use std::fs;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use stepwell::model::Digest;

use crate::atomic_file::replace_private_file;

/// What was put into a file. It holds nothing else of the file, which may hold secrets.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Receipt {
    /// What the file held before; none, if it was not there.
    before: Option<String>,
    /// What it held then.
    after: String,
    offset: usize,
    piece: String,
}

impl Receipt {
    /// Where the receipt for a file is kept.
    pub(super) fn file(state: &Path, settings: &Path) -> PathBuf {
        let name = digest(&settings.display().to_string()).replace(':', "-");
        state.join("mcp-installed").join(format!("{name}.json"))
    }

    pub(super) fn new(before: Option<&str>, after: &str, offset: usize, piece: &str) -> Self {
        let (before, after) = (before.map(digest), digest(after));
        Self { before, after, offset, piece: piece.to_owned() }
    }

    pub(super) fn read(path: &Path) -> Option<Self> {
        serde_json::from_slice(&fs::read(path).ok()?).ok()
    }

    /// Keeps it. Where that is not possible, the entry alone is taken out later.
    pub(super) fn write(&self, path: &Path) {
        let kept = path.parent().map_or(Ok(()), fs::create_dir_all).and_then(|()| {
            let text = serde_json::to_vec(self).map_err(std::io::Error::from)?;
            replace_private_file(path, &text)
        });
        if let Err(error) = kept {
            tracing::warn!(%error, "mcp_receipt_not_kept");
        }
    }

    /// Where the piece stands, the piece, and what the file held before; none, if the file is
    /// not as it was left.
    pub(super) fn undo(self, now: &str) -> Option<(usize, String, Option<String>)> {
        if digest(now) != self.after {
            return None;
        }
        let Some(known) = self.before else { return Some((self.offset, self.piece, None)) };
        let end = self.offset + self.piece.len();
        let before = format!("{}{}", now.get(..self.offset)?, now.get(end..)?);
        (digest(&before) == known).then_some((self.offset, self.piece, Some(before)))
    }
}

fn digest(text: &str) -> String {
    Digest::of(text.as_bytes()).to_string()
}
