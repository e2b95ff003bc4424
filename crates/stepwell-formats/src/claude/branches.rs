//! Where a long transcript branches: the lines that something follows which is not near
//! them. Found by reading it once more, so that only their names are kept in memory.

use std::collections::VecDeque;
use std::path::Path;

use super::tree::{MAX_NAMES, Names, key};
use crate::Result;
use crate::fields::Fields;
use crate::input::Input;

/// How far above a line is near. A [`Tree`](super::tree::Tree) knows more lines than that.
const NEAR: usize = 64;

/// The names that are followed from afar, as a tree keeps them.
#[derive(Debug, Default)]
pub(super) struct Branches {
    pub(super) names: Names,
    /// Were there more than can be kept?
    pub(super) cut_short: bool,
}

impl Branches {
    /// Those of the transcript at a path.
    pub(super) fn of(input: &Input, path: &Path) -> Result<Self> {
        let mut branches = Self::default();
        let mut near: VecDeque<u64> = VecDeque::with_capacity(NEAR);
        let mut lines = input.glance(path)?;
        while let Some(line) = lines.next_line()? {
            let text = line.bytes.and_then(|bytes| std::str::from_utf8(bytes).ok());
            let Some(fields) = text.and_then(|text| Fields::parse(text).ok()) else { continue };
            for parent in ["parentUuid", "logicalParentUuid"] {
                let parent = fields.text(parent).map(|name| key(&name));
                if let Some(parent) = parent.filter(|parent| !near.contains(parent)) {
                    branches.add(parent);
                }
            }
            if let Some(name) = fields.text("uuid") {
                if near.len() == NEAR {
                    near.pop_front();
                }
                near.push_back(key(&name));
            }
        }
        Ok(branches)
    }

    fn add(&mut self, name: u64) {
        match self.names.len() < MAX_NAMES {
            true => drop(self.names.insert(name)),
            false => self.cut_short |= !self.names.contains(&name),
        }
    }
}
