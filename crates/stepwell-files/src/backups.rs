//! Decides which old contents of files are dropped. Pure.

use std::collections::{HashMap, HashSet};

use stepwell::Seq;
use stepwell::model::{Digest, FileChanged, FileState};

use crate::history::History;

/// The events whose contents are dropped, in their new form. An event for which `is_live` is true
/// is part of a view, or is needed to undo a rewind, and keeps its contents. Of the other events
/// each path keeps the `keep` newest contents, and always its first and its current one.
pub fn due(
    history: &History,
    keep: usize,
    mut is_live: impl FnMut(Seq) -> bool,
) -> Vec<(Seq, FileChanged)> {
    let mut kept: HashSet<Digest> = HashSet::new();
    let mut by_path: HashMap<&str, Vec<&FileChanged>> = HashMap::new();
    let mut dead = Vec::new();
    for entry in history.entries() {
        by_path.entry(&entry.change.path).or_default().push(&entry.change);
        if is_live(entry.seq) {
            kept.extend(blobs(&entry.change));
        } else {
            dead.push(entry);
        }
    }
    for changes in by_path.values() {
        let ends = [changes.first().map(|it| &it.before), changes.last().map(|it| &it.after)];
        kept.extend(ends.into_iter().flatten().filter_map(blob));
    }
    let live = kept.clone();
    let mut counted: HashMap<&str, HashSet<Digest>> = HashMap::new();
    for entry in dead.iter().rev() {
        let counted = counted.entry(&entry.change.path).or_default();
        for state in [&entry.change.after, &entry.change.before] {
            if let Some(digest) = blob(state).filter(|digest| !live.contains(digest))
                && counted.len() < keep
                && counted.insert(digest)
            {
                kept.insert(digest);
            }
        }
    }
    let lost = |state: &FileState| match blob(state) {
        Some(digest) if !kept.contains(&digest) => {
            let why = format!("let go: not among the last {keep} versions");
            FileState::NotCaptured { digest: Some(digest), why }
        }
        _ => state.clone(),
    };
    let replaced = dead.into_iter().map(|entry| {
        let (before, after) = (lost(&entry.change.before), lost(&entry.change.after));
        (entry, FileChanged { before, after, ..entry.change.clone() })
    });
    let changed = replaced.filter(|(entry, replaced)| entry.change != *replaced);
    changed.map(|(entry, replaced)| (entry.seq, replaced)).collect()
}

fn blob(state: &FileState) -> Option<Digest> {
    match state {
        FileState::File { blob, .. } => Some(*blob),
        _ => None,
    }
}

fn blobs(change: &FileChanged) -> impl Iterator<Item = Digest> {
    [blob(&change.before), blob(&change.after)].into_iter().flatten()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::history::tests::{file, history};

    fn seqs(due: &[(Seq, FileChanged)]) -> Vec<u64> {
        due.iter().map(|(seq, _)| seq.get()).collect()
    }

    #[test]
    fn what_a_view_holds_is_never_let_go_of() {
        let edits = history(&[
            (1, "a", "0", "1"),
            (2, "a", "1", "2"),
            (3, "a", "2", "3"),
            (4, "a", "3", "4"),
        ]);
        assert!(due(&edits, 0, |_| true).is_empty());
    }

    #[test]
    fn of_what_was_rewound_the_newest_versions_the_first_and_the_last_stay() {
        let edits = history(&[
            (1, "a", "0", "1"),
            (2, "a", "1", "2"),
            (3, "a", "2", "3"),
            (4, "a", "3", "4"),
            (5, "b", "", "1"),
        ]);
        let gone = due(&edits, 1, |_| false);
        // 4 is the current content, 3 is the newest before it, 0 was the first, 1 is b's.
        assert_eq!(seqs(&gone), [2, 3]);
        assert_eq!(gone[0].1.before, file("1"));
        let why = matches!(&gone[0].1.after, FileState::NotCaptured { digest: Some(it), why }
            if *it == Digest::of(b"2") && why.contains("last 1 versions"));
        assert!(why, "{gone:?}");
        assert!(due(&edits, 2, |_| false).is_empty());
        assert_eq!(seqs(&due(&edits, 0, |_| false)), [2, 3, 4]);
    }

    #[test]
    fn a_content_that_something_live_names_stays_wherever_it_is_named() {
        let edits = history(&[
            (1, "a", "0", "1"),
            (2, "a", "1", "2"),
            (3, "a", "2", "3"),
            (9, "z", "", "2"),
        ]);
        assert_eq!(seqs(&due(&edits, 0, |seq| seq == Seq::new(9))), [1, 2]);
    }
}
