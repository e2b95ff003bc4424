//! The tree of a transcript: which line follows which, and whether a branch was left.

use std::collections::{HashMap, HashSet, VecDeque};
use std::hash::{BuildHasherDefault, DefaultHasher, Hash, Hasher};

use stepwell::Seq;

/// Where the conversation ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Tip {
    /// Before its first line.
    Beginning,
    /// With this line.
    Line(u64),
}

/// How many of the last lines are known by name in any case.
const NEAR: usize = 1024;

/// How many names are kept at the most, so that memory does not grow with the transcript.
/// With all that belongs to them they take some 35 MB.
pub(crate) const MAX_NAMES: usize = 400_000;

/// Names of lines, as hashes.
pub(crate) type Names = HashSet<u64, AsItIs>;

/// Hashes what is as good as a hash.
pub(crate) type AsItIs = BuildHasherDefault<Spread>;

/// The lines that were told, by name. Names are kept as hashes, and those of a long
/// transcript only where something far below follows them: almost every line is followed by
/// the next one alone.
#[derive(Debug)]
pub(crate) struct Tree {
    nodes: HashMap<u64, Node, AsItIs>,
    /// The names of the last lines, oldest first.
    near: VecDeque<(u64, u32)>,
    /// The names that are kept for good; all, until there are too many.
    kept: Option<Names>,
    /// The turns that a line is known of, and the present one.
    turns: HashMap<u32, Turn, AsItIs>,
    current: Option<u32>,
    /// How many turns there were, and how many names.
    begun: u32,
    named: u32,
    /// The turn before which nothing can be gone back to.
    floor: u32,
    /// The place that was told last.
    last: Seq,
}

/// A line that is known by name.
#[derive(Clone, Copy, Debug)]
struct Node {
    turn: u32,
    /// Which name it was: one may be given twice.
    nth: u32,
    /// Where its message was told; of a line that is none, where it would have been.
    place: Seq,
}

/// A message of the model with the results of its calls, or a message of the user.
#[derive(Clone, Copy, Debug)]
struct Turn {
    /// Its last place.
    last: Seq,
    /// How many of its lines are known.
    lines: u32,
    /// The turn that it follows.
    parent: Option<u32>,
    /// How the conversation stands after it.
    ended: Ended,
}

/// The turn of the lines before the conversation. It is not reported.
const FRONT: u32 = 0;

/// How the conversation ends.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Ended {
    /// It has not begun.
    #[default]
    Empty,
    /// With the model's word.
    Answered,
    /// With a question, with calls that have no result, or with an answer that was cut off.
    Waiting,
}

/// How a line stands to what was told before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Step {
    /// It goes on from there.
    On,
    /// It goes on from an earlier place, and leaves what came since.
    BackTo(Seq),
}

impl Default for Tree {
    fn default() -> Self {
        let front = Turn { last: Seq::FIRST, lines: 0, parent: None, ended: Ended::Empty };
        Self {
            nodes: HashMap::default(),
            near: VecDeque::default(),
            kept: None,
            turns: HashMap::from_iter([(FRONT, front)]),
            current: None,
            begun: FRONT + 1,
            named: 0,
            floor: FRONT,
            last: Seq::FIRST,
        }
    }
}

impl Tree {
    /// Where a line goes that follows `parent`. Several results of one turn follow different
    /// lines of it, and none of them leaves the others.
    pub(crate) fn follow(&mut self, parent: Option<&str>) -> Step {
        if self.current.is_none() {
            return Step::On;
        }
        match parent {
            None => self.go_to(FRONT),
            // One that is not known was left out, or is in another file.
            Some(parent) => match self.nodes.get(&key(parent)).map(|node| node.turn) {
                Some(turn) => self.go_to(turn),
                None => Step::On,
            },
        }
    }

    /// Where the conversation goes on if it ends with a line that is known by its key, and how it
    /// stands there.
    pub(crate) fn end_with(&mut self, tip: Tip) -> (Step, Ended) {
        let turn = match tip {
            Tip::Beginning => Some(FRONT),
            Tip::Line(line) => self.nodes.get(&line).map(|node| node.turn),
        };
        let step = match (turn, self.current) {
            (Some(turn), Some(_)) => self.go_to(turn),
            _ => Step::On,
        };
        (step, self.ended())
    }

    /// How the conversation stands.
    pub(crate) fn ended(&self) -> Ended {
        let turn = self.current.and_then(|turn| self.turns.get(&turn));
        turn.map_or(Ended::Empty, |turn| turn.ended)
    }

    fn go_to(&mut self, turn: u32) -> Step {
        let is_sealed = turn != FRONT && turn < self.floor;
        if Some(turn) == self.current || is_sealed {
            return Step::On;
        }
        self.turn_to(turn);
        Step::BackTo(self.turns.get(&turn).map_or(Seq::FIRST, |turn| turn.last))
    }

    /// Is a line in the turn of another one, or in one that follows it? Lines are known by their
    /// keys; `None`, if the second one is not known.
    pub(crate) fn follows(&self, line: u64, other: u64) -> Option<bool> {
        let goal = self.nodes.get(&other)?.turn;
        let mut turn = self.nodes.get(&line).map(|node| node.turn);
        // A turn never follows a later one. Of one that was forgotten nothing is known to be left.
        while let Some(at) = turn.filter(|turn| *turn > goal) {
            match self.turns.get(&at) {
                Some(known) => turn = known.parent,
                None => return Some(true),
            }
        }
        Some(turn == Some(goal))
    }

    /// How the conversation stands after the present turn.
    pub(crate) fn stands(&mut self, ended: Ended) {
        if let Some(turn) = self.current.and_then(|turn| self.turns.get_mut(&turn)) {
            turn.ended = ended;
        }
    }

    /// A new turn begins.
    pub(crate) fn turn(&mut self) {
        let turn = self.begun;
        self.begun = self.begun.saturating_add(1);
        let parent = self.current;
        let before = parent.and_then(|turn| self.turns.get(&turn));
        let ended = before.map_or(Ended::Empty, |turn| turn.ended);
        self.turns.insert(turn, Turn { last: Seq::FIRST, lines: 0, parent, ended });
        self.turn_to(turn);
    }

    /// What comes before the present turn is gone for good: a line that follows any of it
    /// follows what is left of it.
    pub(crate) fn seal(&mut self) {
        self.floor = self.current.unwrap_or_default();
    }

    /// Where the message of a line was told. Of a line that is no part of the conversation, it
    /// is a place where no message is.
    pub(crate) fn place(&self, name: &str) -> Option<Seq> {
        self.nodes.get(&key(name)).map(|node| node.place)
    }

    /// A line of the present turn was told, or several that make one message; what is kept
    /// beside it is at `place`, right behind it.
    pub(crate) fn told<'a>(&mut self, names: impl IntoIterator<Item = &'a str>, place: Seq) {
        if self.current.is_none_or(|turn| turn == FRONT) {
            self.turn();
        }
        let Some(turn) = self.current else { return };
        for name in names {
            self.name(name, turn, place.prev());
        }
        self.last = place;
        if let Some(turn) = self.turns.get_mut(&turn) {
            turn.last = place;
        }
    }

    /// A line that is no part of the conversation stands for the one that it follows.
    pub(crate) fn alias(&mut self, name: &str, parent: Option<&str>) {
        let known = parent.and_then(|parent| self.nodes.get(&key(parent)));
        let turn = known.map(|node| node.turn).or(self.current).unwrap_or(FRONT);
        self.name(name, turn, self.last);
    }

    /// Are there more names than should be kept?
    pub(crate) fn is_full(&self) -> bool {
        self.kept.is_none() && self.nodes.len() >= MAX_NAMES
    }

    /// Keeps only these names from now on, and those of the last lines.
    pub(crate) fn keep(&mut self, kept: Names) {
        let near: Names = self.near.iter().map(|(key, _)| *key).collect();
        let known = std::mem::take(&mut self.nodes);
        for (key, node) in known {
            match kept.contains(&key) || near.contains(&key) {
                true => drop(self.nodes.insert(key, node)),
                false => self.let_go(node.turn),
            }
        }
        self.turns.shrink_to_fit();
        self.kept = Some(kept);
    }

    fn name(&mut self, name: &str, turn: u32, place: Seq) {
        let (key, nth) = (key(name), self.named);
        self.named = self.named.wrapping_add(1);
        if let Some(turn) = self.turns.get_mut(&turn) {
            turn.lines += 1;
        }
        if let Some(before) = self.nodes.insert(key, Node { turn, nth, place }) {
            self.let_go(before.turn);
        }
        self.near.push_back((key, nth));
        if self.near.len() > NEAR {
            self.forget_oldest();
        }
    }

    /// A line is no longer one of the last ones.
    fn forget_oldest(&mut self) {
        let (Some((key, nth)), Some(kept)) = (self.near.pop_front(), &self.kept) else { return };
        if !kept.contains(&key)
            && let Some(node) = self.nodes.get(&key).copied().filter(|node| node.nth == nth)
        {
            self.nodes.remove(&key);
            self.let_go(node.turn);
        }
    }

    /// One line less is known of a turn.
    fn let_go(&mut self, turn: u32) {
        if let Some(left) = self.turns.get_mut(&turn) {
            left.lines = left.lines.saturating_sub(1);
        }
        self.sweep(turn);
    }

    fn turn_to(&mut self, turn: u32) {
        if let Some(left) = self.current.replace(turn) {
            self.sweep(left);
        }
    }

    /// Forgets a turn that nothing leads back to.
    fn sweep(&mut self, turn: u32) {
        let empty = self.turns.get(&turn).is_some_and(|turn| turn.lines == 0);
        if empty && turn != FRONT && self.current != Some(turn) {
            self.turns.remove(&turn);
        }
    }
}

/// A hash of one number: it is spread over all bits, since a table looks at the first and at
/// the last of them.
#[derive(Debug, Default)]
pub(crate) struct Spread(u64);

impl Hasher for Spread {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        bytes.iter().for_each(|byte| self.write_u64(u64::from(*byte)));
    }

    fn write_u32(&mut self, number: u32) {
        self.write_u64(u64::from(number));
    }

    fn write_u64(&mut self, number: u64) {
        let mixed = (self.0 ^ number).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        self.0 = mixed ^ mixed >> 32;
    }
}

/// What is kept of a line's name.
pub(crate) fn key(name: &str) -> u64 {
    let mut hasher = DefaultHasher::new();
    name.hash(&mut hasher);
    hasher.finish()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A conversation of so many lines, each of a turn of its own.
    fn told(tree: &mut Tree, lines: std::ops::Range<u64>) {
        for n in lines {
            let parent = n.checked_sub(1).map(|n| n.to_string());
            assert_eq!(tree.follow(parent.as_deref()), Step::On, "{n}");
            tree.turn();
            tree.told([n.to_string().as_str()], Seq::new(n + 1));
        }
    }

    #[test]
    fn a_line_far_above_is_known_if_it_is_kept_and_a_line_near_in_any_case() {
        let mut tree = Tree::default();
        told(&mut tree, 0..10);
        tree.keep([key("5"), key("2000")].into_iter().collect());
        told(&mut tree, 10..5_000);
        assert!(tree.nodes.len() <= NEAR + 2 && tree.turns.len() <= NEAR + 4);
        assert_eq!(tree.follow(Some("4990")), Step::BackTo(Seq::new(4991)));
        assert_eq!(tree.follow(Some("2000")), Step::BackTo(Seq::new(2001)));
        tree.turn();
        tree.told(["branch"], Seq::new(5_001));
        assert_eq!(tree.follow(Some("5")), Step::BackTo(Seq::new(6)));
        // Nobody was expected to follow this one.
        assert_eq!(tree.follow(Some("7")), Step::On);
    }

    #[test]
    fn a_turn_that_was_gone_back_to_ends_where_it_was_told_last() {
        let mut tree = Tree::default();
        tree.keep([key("1")].into_iter().collect());
        told(&mut tree, 0..3);
        assert_eq!(tree.follow(Some("1")), Step::BackTo(Seq::new(2)));
        tree.told(["result"], Seq::new(9));
        told(&mut tree, 3..3);
        tree.turn();
        (10..3_000).for_each(|n| tree.told([n.to_string().as_str()], Seq::new(n)));
        assert_eq!(tree.follow(Some("1")), Step::BackTo(Seq::new(9)));
    }

    #[test]
    fn a_name_that_is_given_twice_is_known_as_long_as_the_second_one() {
        let mut tree = Tree::default();
        tree.keep(Names::default());
        tree.turn();
        tree.told(["twice"], Seq::new(1));
        (0..1_000).for_each(|n: u64| tree.told([n.to_string().as_str()], Seq::new(n)));
        tree.told(["twice"], Seq::new(2_000));
        tree.turn();
        (1_000..1_500).for_each(|n: u64| tree.told([n.to_string().as_str()], Seq::new(n)));
        assert_eq!(tree.follow(Some("twice")), Step::BackTo(Seq::new(2_000)));
    }
}
