//! A session's file changes, in order.

use std::collections::{BTreeMap, HashMap};

use stepwell::model::{FileChanged, FileState, Time};
use stepwell::{Event, Recorded, Seq};

/// A session's file changes.
#[derive(Clone, Debug, Default)]
pub struct History {
    entries: Vec<Entry>,
}

/// One change.
#[derive(Clone, Debug, PartialEq)]
pub struct Entry {
    /// Its seq.
    pub seq: Seq,
    /// When it was recorded.
    pub at: Time,
    /// The recorded change.
    pub change: FileChanged,
}

/// One version of a file.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Version<'a> {
    /// The event since which the file has this state.
    pub seq: Seq,
    /// The state.
    pub state: &'a FileState,
    /// The change that made it so, or that found it so; in that case someone else made it.
    pub entry: &'a Entry,
}

impl Version<'_> {
    /// Did the session find the file in this state?
    #[must_use]
    pub fn is_found(&self) -> bool {
        self.seq != self.entry.seq
    }
}

/// The net change of a path in a range of history.
#[derive(Clone, Debug, PartialEq)]
pub struct Net {
    /// The state at the beginning of the range.
    pub before: FileState,
    /// The state at the end of the range.
    pub after: FileState,
    /// The path at the beginning of the range, if the file was moved.
    pub renamed_from: Option<String>,
}

impl History {
    /// The file events among a session's events, in order.
    pub fn of(events: impl IntoIterator<Item = Recorded>) -> Self {
        let entry = |event: Recorded| match event.event {
            Event::File(change) => Some(Entry { seq: event.seq, at: event.at, change }),
            _ => None,
        };
        Self { entries: events.into_iter().filter_map(entry).collect() }
    }

    /// Every change, oldest first.
    #[must_use]
    pub fn entries(&self) -> &[Entry] {
        &self.entries
    }

    /// Every version of every file, in order. A state that the session found, made by someone else,
    /// directly precedes the change that replaced it.
    #[must_use]
    pub fn versions(&self) -> Vec<Version<'_>> {
        let mut versions = Vec::new();
        let mut last: HashMap<&str, &FileState> = HashMap::new();
        for entry in &self.entries {
            let FileChanged { path, before, after, .. } = &entry.change;
            let there = matches!(before, FileState::File { .. } | FileState::Symlink { .. });
            if there && last.get(path.as_str()) != Some(&before) {
                versions.push(Version { seq: entry.seq.prev(), state: before, entry });
            }
            versions.push(Version { seq: entry.seq, state: after, entry });
            last.insert(path, after);
        }
        versions
    }

    /// The state of a path after an event; `None` if the session never changed the path.
    #[must_use]
    pub fn at(&self, path: &str, seq: Seq) -> Option<&FileState> {
        let versions = self.versions();
        let last = versions.iter().rfind(|it| it.entry.change.path == path && it.seq <= seq);
        let mut of_path = self.entries.iter().filter(|entry| entry.change.path == path);
        match last {
            Some(version) => Some(version.state),
            None => of_path.next().map(|entry| &entry.change.before),
        }
    }

    /// The net change of each path after `from`, up to and including `to`.
    ///
    /// The first change in the range gives the state before, not the last change before the range:
    /// what someone else did in between was there when the session came.
    #[must_use]
    pub fn net(&self, from: Seq, to: Seq) -> BTreeMap<String, Net> {
        let mut net: BTreeMap<String, Net> = BTreeMap::new();
        let mut origins: HashMap<String, String> = HashMap::new();
        let within = self.entries.iter().filter(|entry| entry.seq > from && entry.seq <= to);
        for FileChanged { path, before, after, renamed_from } in within.map(|entry| &entry.change) {
            let first = || Net { before: before.clone(), after: after.clone(), renamed_from: None };
            net.entry(path.clone()).or_insert_with(first).after = after.clone();
            match renamed_from {
                Some(old) => {
                    let origin = origins.remove(old).unwrap_or_else(|| old.clone());
                    origins.insert(path.clone(), origin);
                }
                None if *before == FileState::Absent => drop(origins.remove(path)),
                None => {}
            }
        }
        for (path, origin) in origins {
            let gone = net
                .get(&origin)
                .is_some_and(|it| it.before != FileState::Absent && it.after == FileState::Absent);
            if let Some(it) = net.get_mut(&path).filter(|_| gone)
                && it.before == FileState::Absent
                && it.after != FileState::Absent
            {
                it.renamed_from = Some(origin);
            }
        }
        // Two states that were not captured may differ.
        let unknown = |state: &FileState| matches!(state, FileState::NotCaptured { .. });
        net.retain(|_, it| it.before != it.after || unknown(&it.after));
        net
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use stepwell::model::Digest;

    use super::*;

    pub(crate) fn file(text: &str) -> FileState {
        FileState::File { blob: Digest::of(text.as_bytes()), mode: 0o644 }
    }

    pub(crate) fn text(text: &str) -> FileState {
        if text.is_empty() { FileState::Absent } else { file(text) }
    }

    /// Changes as `(seq, path, before, after)`, where an empty text is an absent file.
    pub(crate) fn history(changes: &[(u64, &str, &str, &str)]) -> History {
        History::of(changes.iter().map(|(seq, path, before, after)| {
            let change = FileChanged {
                path: (*path).to_owned(),
                before: text(before),
                after: text(after),
                renamed_from: None,
            };
            Recorded { seq: Seq::new(*seq), at: Time::EPOCH, id: None, event: change.into() }
        }))
    }

    fn renamed(mut history: History, seq: u64, from: &str) -> History {
        let entry = history.entries.iter_mut().find(|entry| entry.seq == Seq::new(seq));
        entry.unwrap().change.renamed_from = Some(from.to_owned());
        history
    }

    #[test]
    fn a_path_is_as_the_last_change_left_it() {
        let history = history(&[(3, "a", "1", "2"), (7, "a", "2", ""), (9, "b", "", "x")]);
        let at = |path, seq| history.at(path, Seq::new(seq)).cloned();
        assert_eq!(at("a", 2), Some(text("1")));
        assert_eq!(at("a", 3), Some(text("2")));
        assert_eq!(at("a", 6), Some(text("2")));
        assert_eq!(at("a", 7), Some(text("")));
        assert_eq!(at("b", 8), Some(text("")));
        assert_eq!(at("c", 8), None);
    }

    #[test]
    fn what_someone_else_left_is_a_version_of_its_own() {
        let history = history(&[(3, "a", "1", "2"), (7, "a", "mine", "3"), (9, "a", "3", "")]);
        let versions = history.versions();
        let told: Vec<_> = versions.iter().map(|it| (it.seq.get(), it.is_found())).collect();
        assert_eq!(told, [(2, true), (3, false), (6, true), (7, false), (9, false)]);
        for version in &versions {
            assert_eq!(history.at("a", version.seq), Some(version.state));
        }
        assert_eq!(history.at("a", Seq::new(6)), Some(&text("mine")));
        assert_eq!(history.at("a", Seq::new(5)), Some(&text("2")));
    }

    #[test]
    fn a_stretch_adds_up() {
        let history = history(&[
            (3, "a", "1", "2"),
            (5, "b", "", "x"),
            (7, "a", "someone else's", "3"),
            (8, "b", "x", ""),
        ]);
        let net = |from, to| history.net(Seq::new(from), Seq::new(to));
        let a =
            |before, after| Net { before: text(before), after: text(after), renamed_from: None };
        assert_eq!(net(0, 9), [("a".to_owned(), a("1", "3"))].into());
        assert_eq!(net(3, 9), [("a".to_owned(), a("someone else's", "3"))].into());
        assert_eq!(net(3, 5), [("b".to_owned(), a("", "x"))].into());
        assert!(net(8, 9).is_empty());
    }

    #[test]
    fn a_rename_is_followed_to_where_it_began() {
        let moved =
            history(&[(1, "b", "", "x"), (2, "a", "x", ""), (3, "c", "", "x"), (4, "b", "x", "")]);
        let moved = renamed(renamed(moved, 1, "a"), 3, "b");
        let net = moved.net(Seq::ZERO, Seq::new(4));
        assert_eq!(net["c"].renamed_from.as_deref(), Some("a"));
        assert_eq!(net.keys().collect::<Vec<_>>(), ["a", "c"]);
        // A new file at the old path was not moved.
        let back = history(&[(1, "b", "", "x"), (2, "a", "x", ""), (3, "a", "", "y")]);
        let net = renamed(back, 1, "a").net(Seq::ZERO, Seq::new(3));
        assert_eq!(net["b"].renamed_from, None);
    }
}
