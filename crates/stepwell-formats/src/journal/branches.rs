//! Where a long transcript branches: the lines that something follows, preserves or ends with
//! which is not near them. Found by reading it once more, so that only their names are kept in memory.

use std::collections::VecDeque;
use std::path::Path;

use super::preserved::Preserved;
use super::tree::{MAX_NAMES, Names, key};
use crate::Result;
use crate::json::fields::Fields;
use crate::read::input::Input;

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
            for parent in ["parentUuid", "logicalParentUuid", "leafUuid"] {
                let parent = fields.text(parent).map(|name| key(&name));
                if let Some(parent) = parent.filter(|parent| !near.contains(parent)) {
                    branches.add(parent);
                }
            }
            let preserved = Preserved::of(&fields);
            for name in preserved.iter().flat_map(Preserved::names) {
                branches.add(key(name));
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

#[cfg(test)]
mod tests {
    use std::fmt::Write;

    use proptest::prelude::*;
    use stepwell::Seq;

    use super::*;
    use crate::claude::tree::{Step, Tree};

    /// Which line each line follows: mostly the one before it, or one near, or any.
    fn parents() -> impl Strategy<Value = Vec<usize>> {
        let back = prop_oneof![
            40 => Just(1_usize),
            4 => 1..100_usize,
            1 => 1..4_000_usize,
        ];
        prop::collection::vec(back, 4_000).prop_map(|backs| {
            backs.iter().enumerate().map(|(n, back)| n.saturating_sub(*back)).collect()
        })
    }

    /// Where each line goes. Every seventh is no part of the conversation, and every third
    /// belongs to the turn before it.
    fn steps(tree: &mut Tree, parents: &[usize]) -> Vec<Step> {
        let mut steps = Vec::new();
        for (n, parent) in parents.iter().enumerate() {
            let (name, parent) = (format!("l{}", n + 1), format!("l{parent}"));
            if n % 7 == 6 {
                tree.alias(&name, Some(&parent));
                continue;
            }
            steps.push(tree.follow(Some(&parent)));
            if n % 3 != 2 {
                tree.turn();
            }
            tree.told([name.as_str()], Seq::new(n as u64 + 2));
        }
        steps
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(24))]

        #[test]
        fn with_the_names_of_branches_a_tree_knows_what_it_knows_with_all(parents in parents()) {
            let mut text = String::from("{\"uuid\":\"l0\"}\n{torn\n");
            for (n, parent) in parents.iter().enumerate() {
                let name = n + 1;
                let _ = writeln!(text, r#"{{"parentUuid":"l{parent}","uuid":"l{name}"}}"#);
            }
            let file = tempfile::NamedTempFile::new().unwrap();
            std::fs::write(file.path(), text).unwrap();
            let input = Input::at(file.path()).unwrap();
            let branches = Branches::of(&input, input.root()).unwrap();
            prop_assert!(!branches.cut_short && branches.names.len() < 400);
            let begun = || {
                let mut tree = Tree::default();
                tree.turn();
                tree.told(["l0"], Seq::FIRST);
                tree
            };
            let (mut all, mut thin) = (begun(), begun());
            thin.keep(branches.names);
            prop_assert_eq!(steps(&mut thin, &parents), steps(&mut all, &parents));
        }
    }
}
