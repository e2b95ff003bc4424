//! Where a long transcript branches: the lines that something names, for one as the line that it
//! follows, and which are not near that. Found by reading it once more, so that only their names are
//! kept in memory.

use std::collections::VecDeque;
use std::path::Path;

use super::tree::{MAX_NAMES, Names};
use crate::Result;
use crate::json::fields::Fields;
use crate::read::input::Input;

/// How far above a line is near. A [`Tree`](super::tree::Tree) knows more lines than that.
const NEAR: usize = 64;

/// What a line is called, and the lines that it names, by the keys of their names.
#[derive(Debug, Default)]
pub(crate) struct Named {
    pub(crate) own: Option<u64>,
    /// Those that it follows.
    pub(crate) parents: Vec<u64>,
    /// Others that must be known wherever they are.
    pub(crate) others: Vec<u64>,
}

/// The names that are followed from afar, as a tree keeps them.
#[derive(Debug, Default)]
pub(crate) struct Branches {
    pub(crate) names: Names,
    /// Were there more than can be kept?
    pub(crate) cut_short: bool,
}

impl Branches {
    /// Those of the transcript at a path, whose lines name lines so.
    pub(crate) fn of(
        input: &Input,
        path: &Path,
        named: &dyn Fn(&Fields<'_>) -> Named,
    ) -> Result<Self> {
        let mut branches = Self::default();
        let mut near: VecDeque<u64> = VecDeque::with_capacity(NEAR);
        let mut lines = input.glance(path)?;
        while let Some(line) = lines.next_line()? {
            let text = line.bytes.and_then(|bytes| std::str::from_utf8(bytes).ok());
            let Some(fields) = text.and_then(|text| Fields::parse(text).ok()) else { continue };
            let Named { own, parents, others } = named(&fields);
            for parent in parents.into_iter().filter(|parent| !near.contains(parent)) {
                branches.add(parent);
            }
            others.into_iter().for_each(|name| branches.add(name));
            if let Some(own) = own {
                if near.len() == NEAR {
                    near.pop_front();
                }
                near.push_back(own);
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
    use crate::journal::tree::{Step, Tree, key};

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
            let named = |line: &Fields<'_>| Named {
                own: line.text("uuid").map(|name| key(&name)),
                parents: line.text("parentUuid").map(|name| key(&name)).into_iter().collect(),
                others: Vec::new(),
            };
            let branches = Branches::of(&input, input.root(), &named).unwrap();
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
