//! The tree of a transcript: which line follows which, and whether a branch was left.

use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash, Hasher};

use stepwell::Seq;

/// The lines that were told, by name. Names are kept as hashes: a transcript of gigabytes
/// has millions of lines.
#[derive(Debug, Default)]
pub(super) struct Tree {
    nodes: HashMap<u64, u32>,
    /// The last place of each turn.
    turns: Vec<Seq>,
    current: u32,
}

/// How a line stands to what was told before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Step {
    /// It goes on from there.
    On,
    /// It goes on from an earlier place, and leaves what came since.
    BackTo(Seq),
}

impl Tree {
    /// Where a line goes that follows `parent`. A turn is a message of the model with the
    /// results of its calls, or a message of the user. Several results of one turn follow
    /// different lines of it, and none of them leaves the others.
    pub(super) fn follow(&mut self, parent: Option<&str>) -> Step {
        if self.turns.is_empty() {
            return Step::On;
        }
        let Some(parent) = parent else { return Step::BackTo(Seq::FIRST) };
        match self.nodes.get(&key(parent)) {
            // A line that was left out, or is in another file.
            None => Step::On,
            Some(turn) if *turn == self.current => Step::On,
            Some(turn) => {
                self.current = *turn;
                Step::BackTo(self.turns.get(*turn as usize).copied().unwrap_or(Seq::FIRST))
            }
        }
    }

    /// A new turn begins.
    pub(super) fn turn(&mut self) {
        self.current = u32::try_from(self.turns.len()).unwrap_or(u32::MAX);
        self.turns.push(Seq::FIRST);
    }

    /// A line of the present turn was told, or several that make one message.
    pub(super) fn told<'a>(&mut self, names: impl IntoIterator<Item = &'a str>, place: Seq) {
        if self.turns.is_empty() {
            self.turn();
        }
        for name in names {
            self.nodes.insert(key(name), self.current);
        }
        if let Some(last) = self.turns.get_mut(self.current as usize) {
            *last = place;
        }
    }

    /// A line that is no part of the conversation stands for the one that it follows.
    pub(super) fn alias(&mut self, name: &str, parent: Option<&str>) {
        let turn = parent.and_then(|parent| self.nodes.get(&key(parent)).copied());
        if !self.turns.is_empty() {
            self.nodes.insert(key(name), turn.unwrap_or(self.current));
        }
    }
}

fn key(name: &str) -> u64 {
    let mut hasher = DefaultHasher::new();
    name.hash(&mut hasher);
    hasher.finish()
}
