//! What a rewind would do to files, and what stands in its way. Pure.

use serde::Serialize;
use stepwell::{Digest, FileChanged, FileState, Seq};

use super::history::History;

/// What stands at a path now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Now {
    /// No file: nothing, or a folder.
    Absent,
    /// A file.
    File {
        /// Digest of its bytes.
        digest: Digest,
        /// Its permission bits.
        mode: u32,
        /// Why its bytes cannot be kept, if they cannot: what is overwritten must be.
        unkept: Option<String>,
    },
    /// A symbolic link, and what it points at.
    Symlink(String),
    /// Something that cannot be moved, and why.
    Other(String),
}

impl Now {
    /// Is it what was recorded?
    #[must_use]
    pub fn is(&self, state: &FileState) -> bool {
        match (self, state) {
            (Self::Absent, FileState::Absent) => true,
            (Self::File { digest, mode, .. }, FileState::File { blob, mode: recorded }) => {
                digest == blob && mode == recorded
            }
            (Self::Symlink(target), FileState::Symlink { target: recorded }) => target == recorded,
            _ => false,
        }
    }

    /// How it is recorded, or why it cannot be.
    fn state(&self) -> Result<FileState, String> {
        match self {
            Self::Absent => Ok(FileState::Absent),
            Self::File { unkept: Some(why), .. } | Self::Other(why) => Err(why.clone()),
            Self::File { digest, mode, unkept: None } => {
                Ok(FileState::File { blob: *digest, mode: *mode })
            }
            Self::Symlink(target) => Ok(FileState::Symlink { target: target.clone() }),
        }
    }
}

/// What becomes of files that someone else changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Others {
    /// They are in the way.
    Respected,
    /// They are overwritten, after they were kept.
    Overwritten,
}

/// What a rewind would do.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Plan {
    /// What each file is, and what it is to become; in order of their paths.
    pub moves: Vec<FileChanged>,
    /// What is left as it is, and why.
    pub left: Vec<Remark>,
    /// What someone else changed.
    pub conflicts: Vec<Remark>,
}

/// A path and a word about it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Remark {
    /// The path.
    pub path: String,
    /// The word.
    pub why: String,
}

impl Plan {
    /// The way back from the end of a history to how files were at `to`, given what stands
    /// at each path now.
    pub fn of(
        history: &History,
        to: Seq,
        others: Others,
        mut now: impl FnMut(&str) -> Now,
    ) -> Self {
        let mut plan = Self::default();
        for (path, net) in history.net(to, Seq::MAX) {
            let (target, left) = (net.before, net.after);
            if let Some(why) = untouchable(&path, &target, &left) {
                plan.left.push(Remark { path, why });
                continue;
            }
            let here = now(&path);
            if here.is(&target) {
                continue;
            }
            let ours = here.is(&left);
            match here.state() {
                Ok(before) if ours || others == Others::Overwritten => {
                    let after = target;
                    plan.moves.push(FileChanged { path, before, after, renamed_from: None });
                }
                Ok(found) => {
                    let why = differs(&found, &left);
                    plan.conflicts.push(Remark { path, why });
                }
                // What cannot be kept is not overwritten, whoever asks.
                Err(why) => plan.left.push(Remark { path, why }),
            }
        }
        plan
    }
}

/// Why a path is left alone, whatever stands there.
fn untouchable(path: &str, target: &FileState, left: &FileState) -> Option<String> {
    let mut names = path.split('/');
    if names.clone().any(|name| name.eq_ignore_ascii_case(stepwell::STORE_FOLDER)) {
        return Some("it is among Stepwell's own files".to_owned());
    }
    if names.clone().any(|name| name.eq_ignore_ascii_case(".git")) {
        return Some("it is among git's own files".to_owned());
    }
    let odd = |name: &str| matches!(name, "" | "." | "..");
    if !matches!(
        (target, left),
        (FileState::NotCaptured { .. }, _) | (_, FileState::NotCaptured { .. })
    ) && names.any(odd)
    {
        return Some("it is no path within the workspace".to_owned());
    }
    let hidden = |text: &str| text.contains("[redacted:");
    let link = |state: &FileState| matches!(state, FileState::Symlink { target } if hidden(target));
    if hidden(path) || link(target) || link(left) {
        return Some("its name holds a secret, which was not recorded".to_owned());
    }
    match (target, left) {
        (FileState::NotCaptured { why, .. }, _) => {
            Some(format!("what stood there was not captured: {why}"))
        }
        // What could not be recorded could not be brought back either.
        (_, FileState::NotCaptured { why, .. }) => {
            Some(format!("what stands there was not captured: {why}"))
        }
        _ => None,
    }
}

fn differs(now: &FileState, left: &FileState) -> String {
    match (now, left) {
        (FileState::Absent, _) => "someone else removed it",
        (_, FileState::Absent) => "someone else made it",
        (FileState::File { blob: now, .. }, FileState::File { blob: left, .. }) if now == left => {
            "someone else changed its mode"
        }
        _ => "someone else changed it",
    }
    .to_owned()
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use super::super::history::tests::{file, history, text};
    use super::*;

    fn now(state: &FileState) -> Now {
        match state {
            FileState::File { blob, mode } => {
                Now::File { digest: *blob, mode: *mode, unkept: None }
            }
            FileState::Symlink { target } => Now::Symlink(target.clone()),
            _ => Now::Absent,
        }
    }

    fn plan(history: &History, to: u64, others: Others, disk: &[(&str, &str)]) -> Plan {
        let disk: HashMap<_, _> = disk.iter().copied().collect();
        let look = |path: &str| now(&text(disk.get(path).copied().unwrap_or_default()));
        Plan::of(history, Seq::new(to), others, look)
    }

    fn moves(plan: &Plan) -> Vec<(&str, &FileState, &FileState)> {
        plan.moves.iter().map(|it| (it.path.as_str(), &it.before, &it.after)).collect()
    }

    #[test]
    fn what_the_session_changed_goes_back_to_how_it_was() {
        let done = history(&[
            (3, "a", "1", "2"),
            (5, "a", "2", "3"),
            (6, "new", "", "n"),
            (7, "old", "o", ""),
        ]);
        let disk = [("a", "3"), ("new", "n")];
        let all = plan(&done, 0, Others::Respected, &disk);
        assert_eq!(
            moves(&all),
            [
                ("a", &file("3"), &file("1")),
                ("new", &file("n"), &text("")),
                ("old", &text(""), &file("o"))
            ]
        );
        assert!(all.left.is_empty() && all.conflicts.is_empty());
        assert_eq!(moves(&plan(&done, 3, Others::Respected, &disk))[0].2, &file("2"));
        assert_eq!(plan(&done, 7, Others::Respected, &disk), Plan::default());
    }

    #[test]
    fn what_someone_else_changed_is_a_conflict_unless_forced() {
        let done = history(&[(3, "a", "1", "2"), (4, "b", "", "2"), (5, "c", "1", "")]);
        let disk = [("a", "mine"), ("c", "mine")];
        let plan_ = plan(&done, 0, Others::Respected, &disk);
        assert!(plan_.moves.is_empty());
        let why: Vec<_> = plan_.conflicts.iter().map(|it| (&*it.path, &*it.why)).collect();
        // That b is gone already is just what is wanted.
        assert_eq!(why, [("a", "someone else changed it"), ("c", "someone else made it")]);
        let forced = plan(&done, 0, Others::Overwritten, &disk);
        assert_eq!(moves(&forced)[0], ("a", &file("mine"), &file("1")));
        assert!(forced.conflicts.is_empty());
    }

    #[test]
    fn what_cannot_be_kept_is_not_overwritten_even_if_forced() {
        let done = history(&[(3, "a", "1", "2")]);
        let secret = Now::File {
            digest: Digest::of(b"key"),
            mode: 0o600,
            unkept: Some("holds a secret (aws)".to_owned()),
        };
        let plan = Plan::of(&done, Seq::ZERO, Others::Overwritten, |_| secret.clone());
        assert!(plan.moves.is_empty());
        assert_eq!(plan.left[0].why, "holds a secret (aws)");
    }

    #[test]
    fn what_was_not_captured_and_what_is_not_ours_is_left_alone() {
        let missing = FileState::NotCaptured { digest: None, why: "too large".to_owned() };
        let change = |path: &str, before: &FileState, after: &FileState| {
            let (path, before, after) = (path.to_owned(), before.clone(), after.clone());
            let event = FileChanged { path, before, after, renamed_from: None }.into();
            let (seq, at) = (Seq::new(2), stepwell::Time::EPOCH);
            stepwell::Recorded { seq, at, id: None, event }
        };
        let absent = &FileState::Absent;
        let link = FileState::Symlink { target: "[redacted:x]".to_owned() };
        let done = History::of([
            change("big", &missing, &file("2")),
            change("made", absent, &missing),
            change(".git/config", &file("1"), &file("2")),
            change("sub/.STEPWELL/x", absent, &file("2")),
            change("../out", absent, &file("2")),
            change("/etc/x", absent, &file("2")),
            change("[redacted:y]", absent, &file("2")),
            change("link", absent, &link),
            change(".", absent, &missing),
        ]);
        let plan = Plan::of(&done, Seq::ZERO, Others::Overwritten, |_| Now::Absent);
        assert_eq!((plan.moves.len(), plan.left.len()), (0, 9), "{plan:?}");
    }

    #[test]
    fn a_mode_that_someone_else_changed_is_told_apart() {
        let done = history(&[(3, "a", "1", "2")]);
        let look = |_: &str| Now::File { digest: Digest::of(b"2"), mode: 0o600, unkept: None };
        let plan = Plan::of(&done, Seq::ZERO, Others::Respected, look);
        assert_eq!(plan.conflicts[0].why, "someone else changed its mode");
    }
}
