//! Plans the file moves of a rewind, with conflicts. Pure.

use stepwell::Seq;
use stepwell::model::{Digest, FileChanged, FileState};
use stepwell_wire::LeftFile;

use crate::history::History;

/// The current state of a path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Now {
    /// No file.
    Absent,
    /// A folder. A file can replace it only if it is empty.
    Folder,
    /// No file, because this part of the path is not a folder.
    Blocked(String),
    /// A file.
    File {
        /// Digest of its bytes.
        digest: Digest,
        /// Its permission bits.
        mode: u32,
        /// Why its bytes cannot be kept, if they cannot: content must be kept before it is
        /// overwritten.
        unkept: Option<String>,
    },
    /// A symbolic link with its target.
    Symlink(String),
    /// Something that cannot be moved, for this reason.
    Other(String),
}

impl Now {
    /// Is this the recorded state?
    #[must_use]
    pub fn is(&self, state: &FileState) -> bool {
        match (self, state) {
            (Self::Absent | Self::Folder | Self::Blocked(_), FileState::Absent) => true,
            (Self::File { digest, mode, .. }, FileState::File { blob, mode: recorded }) => {
                digest == blob && mode == recorded
            }
            (Self::Symlink(target), FileState::Symlink { target: recorded }) => target == recorded,
            _ => false,
        }
    }

    /// The state for an event, or why it cannot be recorded.
    fn state(&self) -> Result<FileState, String> {
        match self {
            Self::Absent | Self::Folder | Self::Blocked(_) => Ok(FileState::Absent),
            Self::File { unkept: Some(why), .. } | Self::Other(why) => Err(why.clone()),
            Self::File { digest, mode, unkept: None } => {
                Ok(FileState::File { blob: *digest, mode: *mode })
            }
            Self::Symlink(target) => Ok(FileState::Symlink { target: target.clone() }),
        }
    }
}

/// Inspects the files of a workspace.
pub trait Look {
    /// The state of a path.
    fn now(&self, path: &str) -> Now;

    /// The paths of everything but folders below a folder, at any depth; the error says why they
    /// cannot be listed.
    fn within(&self, folder: &str) -> Result<Vec<String>, String>;
}

/// How a rewind treats other people's changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Others {
    /// They are conflicts.
    Respected,
    /// They are kept, then overwritten.
    Overwritten,
}

/// The effect of a rewind on files.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Plan {
    /// The change of each file, in order of their paths.
    pub moves: Vec<FileChanged>,
    /// Files that stay as they are, with reasons.
    pub left: Vec<LeftFile>,
    /// Files that someone else changed.
    pub conflicts: Vec<LeftFile>,
}

impl Plan {
    /// The moves from the current files to their state at `to`.
    pub fn of(history: &History, to: Seq, others: Others, look: &impl Look) -> Self {
        let mut plan = Self::default();
        let mut found: Vec<(FileChanged, Now)> = Vec::new();
        for (path, net) in history.net(to, Seq::MAX) {
            let (target, left) = (net.before, net.after);
            if let Some(why) = untouchable(&path, &target, &left) {
                plan.left.push(LeftFile { path, why });
                continue;
            }
            let here = look.now(&path);
            if here.is(&target) {
                // No file has to go, but the path is not as the session left it.
                if !here.is(&left) && matches!(here, Now::Folder | Now::Blocked(_)) {
                    let remark = LeftFile { path, why: differs(&here, &left) };
                    plan.remarks(others).push(remark);
                }
                continue;
            }
            let ours = here.is(&left);
            match here.state() {
                Ok(before) if ours || others == Others::Overwritten => {
                    let after = target;
                    let change = FileChanged { path, before, after, renamed_from: None };
                    found.push((change, here));
                }
                Ok(_) => plan.conflicts.push(LeftFile { path, why: differs(&here, &left) }),
                // Content that cannot be kept is never overwritten, even by force.
                Err(why) if ours || others == Others::Overwritten => {
                    plan.left.push(LeftFile { path, why });
                }
                Err(why) => {
                    let why = format!("someone else changed it, and it cannot be kept: {why}");
                    plan.conflicts.push(LeftFile { path, why });
                }
            }
        }
        plan.moves = found.iter().map(|(change, _)| change.clone()).collect();
        for (change, here) in found {
            plan.clear_the_way(&change, &here, others, look);
        }
        plan.moves.sort_by(|a, b| a.path.cmp(&b.path));
        plan
    }

    /// Handles a folder or file that blocks the path of a file.
    fn clear_the_way(
        &mut self,
        change: &FileChanged,
        here: &Now,
        others: Others,
        look: &impl Look,
    ) {
        let ways = in_the_way(change, here, &self.moves, look);
        let path = change.path.clone();
        let result = match (ways, others) {
            (Ok(ways), _) if ways.is_empty() => return,
            (Ok(ways), Others::Overwritten) => ways.iter().map(|way| away(way, look)).collect(),
            (Ok(_), Others::Respected) => Err(match here {
                Now::Blocked(by) => format!("someone else put {by} in its way"),
                _ => "someone else put a folder there".to_owned(),
            }),
            (Err(why), _) => Err(why),
        };
        let result: Result<Vec<FileChanged>, String> = result;
        match result {
            Ok(gone) => self.moves.extend(gone),
            Err(why) => {
                self.moves.retain(|it| it.path != path);
                self.remarks(others).push(LeftFile { path, why });
            }
        }
    }

    /// The list for files that stay: conflicts, unless the rewind is forced.
    fn remarks(&mut self, others: Others) -> &mut Vec<LeftFile> {
        match others {
            Others::Respected => &mut self.conflicts,
            Others::Overwritten => &mut self.left,
        }
    }
}

/// Paths that block a file's path, and that none of these moves removes.
pub(crate) fn in_the_way(
    change: &FileChanged,
    here: &Now,
    moves: &[FileChanged],
    look: &impl Look,
) -> Result<Vec<String>, String> {
    if change.after == FileState::Absent {
        return Ok(Vec::new());
    }
    let mut ways = match here {
        Now::Folder => look.within(&change.path)?,
        Now::Blocked(by) => vec![by.clone()],
        _ => return Ok(Vec::new()),
    };
    let goes =
        |way: &String| moves.iter().any(|it| it.path == *way && it.after == FileState::Absent);
    ways.retain(|way| !goes(way));
    Ok(ways)
}

/// The move that removes a file after its content was kept.
fn away(path: &str, look: &impl Look) -> Result<FileChanged, String> {
    let kept = match untouchable(path, &FileState::Absent, &FileState::Absent) {
        Some(why) => Err(why),
        None => look.now(path).state(),
    };
    let before = kept.map_err(|why| format!("{path} is in its way and cannot be kept: {why}"))?;
    Ok(FileChanged { path: path.to_owned(), before, after: FileState::Absent, renamed_from: None })
}

/// Why a path is never touched, whatever its state.
fn untouchable(path: &str, target: &FileState, left: &FileState) -> Option<String> {
    let mut names = path.split('/');
    if names.clone().any(|name| name.eq_ignore_ascii_case(stepwell::store::STORE_FOLDER)) {
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
        // A state that could not be recorded could not be restored either.
        (_, FileState::NotCaptured { why, .. }) => {
            Some(format!("what stands there was not captured: {why}"))
        }
        _ => None,
    }
}

fn differs(now: &Now, left: &FileState) -> String {
    match (now, left) {
        (Now::Folder, _) => "someone else put a folder there".to_owned(),
        (Now::Blocked(by), _) => format!("someone else put {by} in its way"),
        (Now::Absent, _) => "someone else removed it".to_owned(),
        (_, FileState::Absent) => "someone else made it".to_owned(),
        (Now::File { digest, .. }, FileState::File { blob, .. }) if digest == blob => {
            "someone else changed its mode".to_owned()
        }
        _ => "someone else changed it".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use super::*;
    use crate::history::tests::{file, history, text};

    fn now(state: &FileState) -> Now {
        match state {
            FileState::File { blob, mode } => {
                Now::File { digest: *blob, mode: *mode, unkept: None }
            }
            FileState::Symlink { target } => Now::Symlink(target.clone()),
            _ => Now::Absent,
        }
    }

    /// A disk with exactly these files.
    struct Disk(HashMap<String, Now>);

    impl Disk {
        fn of(files: &[(&str, &str)]) -> Self {
            Self(files.iter().map(|(path, it)| ((*path).to_owned(), now(&text(it)))).collect())
        }
    }

    impl Look for Disk {
        fn now(&self, path: &str) -> Now {
            if let Some(now) = self.0.get(path) {
                return now.clone();
            }
            let above = path.match_indices('/').map(|(end, _)| &path[..end]);
            if let Some(by) = above.into_iter().find(|above| self.0.contains_key(*above)) {
                return Now::Blocked(by.to_owned());
            }
            match self.within(path) {
                Ok(within) if !within.is_empty() => Now::Folder,
                _ => Now::Absent,
            }
        }

        fn within(&self, folder: &str) -> Result<Vec<String>, String> {
            let below = |path: &&String| path.starts_with(&format!("{folder}/"));
            let mut found: Vec<String> = self.0.keys().filter(below).cloned().collect();
            found.sort();
            Ok(found)
        }
    }

    fn plan(history: &History, to: u64, others: Others, disk: &[(&str, &str)]) -> Plan {
        Plan::of(history, Seq::new(to), others, &Disk::of(disk))
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
        // b is already gone, as it should be.
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
        let disk = Disk([("a".to_owned(), secret)].into());
        let plan = Plan::of(&done, Seq::ZERO, Others::Overwritten, &disk);
        assert!(plan.moves.is_empty() && plan.conflicts.is_empty());
        assert_eq!(plan.left[0].why, "holds a secret (aws)");
        // Without force nothing is done at all.
        let plan = Plan::of(&done, Seq::ZERO, Others::Respected, &disk);
        assert!(plan.left.is_empty());
        let why = "someone else changed it, and it cannot be kept: holds a secret (aws)";
        assert_eq!(plan.conflicts[0].why, why);
    }

    #[test]
    fn what_stands_where_nothing_is_wanted_is_named_and_stays() {
        let done = history(&[(3, "a", "", "1"), (4, "d/b", "", "1"), (5, "gone", "", "1")]);
        let disk = [("a/mine", "x"), ("d", "z")];
        let respected = plan(&done, 0, Others::Respected, &disk);
        let why: Vec<_> = respected.conflicts.iter().map(|it| (&*it.path, &*it.why)).collect();
        let expected =
            [("a", "someone else put a folder there"), ("d/b", "someone else put d in its way")];
        assert_eq!(why, expected);
        let forced = plan(&done, 0, Others::Overwritten, &disk);
        assert!(forced.moves.is_empty() && forced.conflicts.is_empty());
        assert_eq!(forced.left, respected.conflicts);
    }

    #[test]
    fn what_stands_in_the_way_is_a_conflict_and_goes_only_if_forced() {
        let done = history(&[(3, "a", "1", ""), (4, "d/b", "1", "")]);
        let disk = [("a/mine", "x"), ("a/deep/mine", "y"), ("d", "z")];
        let respected = plan(&done, 0, Others::Respected, &disk);
        assert!(respected.moves.is_empty());
        let why: Vec<_> = respected.conflicts.iter().map(|it| (&*it.path, &*it.why)).collect();
        let expected =
            [("a", "someone else put a folder there"), ("d/b", "someone else put d in its way")];
        assert_eq!(why, expected);
        let forced = plan(&done, 0, Others::Overwritten, &disk);
        let paths: Vec<_> = moves(&forced).into_iter().map(|(path, ..)| path).collect();
        assert_eq!(paths, ["a", "a/deep/mine", "a/mine", "d", "d/b"]);
        assert_eq!(moves(&forced)[1], ("a/deep/mine", &file("y"), &text("")));
        // Content in a folder that cannot be kept stays, with the folder.
        let repository = [("a/.git/config", "x"), ("a/mine", "x")];
        let forced = plan(&done, 0, Others::Overwritten, &repository);
        let why = "a/.git/config is in its way and cannot be kept: it is among git's own files";
        assert_eq!((&*forced.left[0].path, &*forced.left[0].why), ("a", why));
        assert_eq!(moves(&forced).len(), 1);
    }

    #[test]
    fn what_the_session_put_in_the_way_goes_with_it() {
        let done = history(&[
            (3, "a", "1", ""),
            (4, "a/b", "", "2"),
            (5, "d/e", "1", ""),
            (6, "d", "", "2"),
        ]);
        let back = plan(&done, 0, Others::Respected, &[("a/b", "2"), ("d", "2")]);
        assert!(back.conflicts.is_empty(), "{back:?}");
        assert_eq!(back.moves.len(), 4);
    }

    #[test]
    fn what_was_not_captured_and_what_is_not_ours_is_left_alone() {
        let missing = FileState::NotCaptured { digest: None, why: "too large".to_owned() };
        let change = |path: &str, before: &FileState, after: &FileState| {
            let (path, before, after) = (path.to_owned(), before.clone(), after.clone());
            let event = FileChanged { path, before, after, renamed_from: None }.into();
            let (seq, at) = (Seq::new(2), stepwell::model::Time::EPOCH);
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
        let plan = Plan::of(&done, Seq::ZERO, Others::Overwritten, &Disk::of(&[]));
        assert_eq!((plan.moves.len(), plan.left.len()), (0, 9), "{plan:?}");
    }

    #[test]
    fn a_mode_that_someone_else_changed_is_told_apart() {
        let done = history(&[(3, "a", "1", "2")]);
        let changed = Now::File { digest: Digest::of(b"2"), mode: 0o600, unkept: None };
        let disk = Disk([("a".to_owned(), changed)].into());
        let plan = Plan::of(&done, Seq::ZERO, Others::Respected, &disk);
        assert_eq!(plan.conflicts[0].why, "someone else changed its mode");
    }
}
