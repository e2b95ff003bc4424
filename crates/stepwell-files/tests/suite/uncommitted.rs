//! Worktrees that begin with uncommitted files, and write their changes back into them.

use std::fs;
use std::path::{Path, PathBuf};

use stepwell::model::{Fate, WorktreeOutcome};
use stepwell_files::git::SafeGit;
use stepwell_files::worktree::{Merge, Worktree};
use stepwell_wire::WorktreeState;
use tempfile::TempDir;

use crate::files::git;

struct Place {
    keep: TempDir,
}

impl Place {
    fn new() -> Self {
        let place = Self { keep: tempfile::tempdir().unwrap() };
        let root = place.root();
        fs::create_dir_all(root.join(".stepwell")).unwrap();
        git(&root, &["init", "-q", "-b", "main"]);
        git(&root, &["config", "user.name", "t"]);
        git(&root, &["config", "user.email", "t@t"]);
        place.write(".gitignore", ".stepwell/\n*.secret\n");
        place.write("a.txt", "1\n2\n3\n4\n5\n");
        git(&root, &["add", "-A"]);
        git(&root, &["commit", "-q", "-m", "begin"]);
        place
    }

    fn root(&self) -> PathBuf {
        self.keep.path().canonicalize().unwrap()
    }

    fn write(&self, path: &str, text: &str) {
        fs::write(self.root().join(path), text).unwrap();
    }

    fn read(&self, path: &str) -> String {
        fs::read_to_string(self.root().join(path)).unwrap()
    }

    fn worktree(&self, session: &str) -> Worktree {
        Worktree::of(&self.root(), &self.root().join(".stepwell"), &session.parse().unwrap())
    }

    /// Starts work in a worktree with the current files.
    fn begin(&self, session: &str, own: &[&str]) -> (Worktree, String) {
        let tree = self.worktree(session);
        let own: Vec<String> = own.iter().map(|&file| file.to_owned()).collect();
        let base = tree.snapshot(&own).unwrap();
        tree.make(&base).unwrap();
        (tree, base)
    }

    fn status(&self) -> Vec<String> {
        said(&self.root(), &["status", "--porcelain"]).lines().map(str::to_owned).collect()
    }
}

fn end(tree: &Worktree, base: &str) -> WorktreeOutcome {
    tree.wrap_up(base, "work", Merge::IntoFiles)
}

/// The output of git.
fn said(folder: &Path, args: &[&str]) -> String {
    SafeGit::new(folder).text(args).unwrap()
}

fn commits(root: &Path) -> usize {
    said(root, &["log", "--format=%s"]).lines().count()
}

#[test]
fn what_is_written_into_files_is_on_no_branch_and_in_no_index() {
    let place = Place::new();
    let (tree, base) = place.begin("one", &[]);
    assert_eq!(base, said(&place.root(), &["rev-parse", "HEAD"]));
    fs::write(tree.path.join("a.txt"), "1\n2\n3\n4\nfive\n").unwrap();
    fs::write(tree.path.join("new.txt"), [b'\xff', b'\n']).unwrap();
    let outcome = end(&tree, &base);
    assert_eq!((outcome.fate, outcome.count), (Fate::Written, 2), "{}", outcome.why);
    assert_eq!(place.read("a.txt"), "1\n2\n3\n4\nfive\n");
    assert_eq!(fs::read(place.root().join("new.txt")).unwrap(), [b'\xff', b'\n']);
    assert_eq!(place.status(), [" M a.txt", "?? new.txt"]);
    assert_eq!(commits(&place.root()), 1);
    // Again, as after a crash: nothing is left to write.
    assert_eq!(end(&tree, &base).fate, Fate::Written);
    assert_eq!(tree.state(Some(&base), Some(&outcome)).unwrap().state, WorktreeState::Merged);
    tree.remove(&outcome.tip).unwrap();
    assert!(!tree.path.exists() && !tree.has_branch());
    let left = fs::read_dir(place.root().join(".git")).unwrap().flatten();
    let left: Vec<_> = left.filter(|it| it.file_name().to_string_lossy().contains("one")).collect();
    assert!(left.is_empty(), "{left:?}");
}

#[test]
fn the_next_one_begins_with_what_was_written_and_without_what_is_the_users() {
    let place = Place::new();
    place.write("mine.txt", "mine\n");
    place.write("staged.txt", "staged\n");
    git(&place.root(), &["add", "staged.txt"]);
    let (first, base) = place.begin("one", &[]);
    fs::write(first.path.join("new.txt"), "new\n").unwrap();
    fs::write(first.path.join("a.txt"), "one\n2\n3\n4\n5\n").unwrap();
    assert_eq!(end(&first, &base).fate, Fate::Written);
    let (second, base) = place.begin("two", &["new.txt", "a.txt"]);
    assert_eq!(fs::read_to_string(second.path.join("new.txt")).unwrap(), "new\n");
    assert!(second.path.join("staged.txt").exists());
    assert!(!second.path.join("mine.txt").exists(), "nobody wrote it but the user");
    fs::remove_file(second.path.join("new.txt")).unwrap();
    fs::write(second.path.join("a.txt"), "one\n2\n3\n4\nfive\n").unwrap();
    assert_eq!(end(&second, &base).fate, Fate::Written);
    assert_eq!(place.read("a.txt"), "one\n2\n3\n4\nfive\n");
    assert_eq!(place.status(), [" M a.txt", "A  staged.txt", "?? mine.txt"]);
}

#[test]
fn those_that_work_at_once_are_merged_and_conflicts_touch_nothing() {
    let place = Place::new();
    let [(one, base), (two, other), (three, third)] =
        ["one", "two", "three"].map(|session| place.begin(session, &[]));
    fs::write(one.path.join("a.txt"), "one\n2\n3\n4\n5\n").unwrap();
    fs::write(one.path.join("new.txt"), "one\n").unwrap();
    fs::write(two.path.join("a.txt"), "1\n2\n3\n4\nfive\n").unwrap();
    fs::write(three.path.join("new.txt"), "three\n").unwrap();
    fs::write(three.path.join("more.txt"), "three\n").unwrap();
    assert_eq!(end(&one, &base).fate, Fate::Written);
    assert_eq!(end(&two, &other).fate, Fate::Written);
    assert_eq!(place.read("a.txt"), "one\n2\n3\n4\nfive\n");
    let outcome = end(&three, &third);
    assert_eq!(outcome.fate, Fate::Kept);
    assert!(outcome.why.contains("conflicts in new.txt"), "{}", outcome.why);
    assert_eq!(place.read("new.txt"), "one\n");
    assert_eq!(place.status(), [" M a.txt", "?? new.txt"]);
    assert_eq!(three.state(Some(&third), Some(&outcome)).unwrap().state, WorktreeState::Unmerged);
}

#[test]
fn no_file_of_the_users_is_written_over_ignored_or_not() {
    let place = Place::new();
    place.write("key.secret", "mine\n");
    place.write("notes.txt", "mine\n");
    let (tree, base) = place.begin("one", &[]);
    for name in ["key.secret", "notes.txt"] {
        fs::write(tree.path.join(name), "theirs\n").unwrap();
    }
    git(&tree.path, &["add", "-f", "key.secret"]);
    let outcome = end(&tree, &base);
    assert_eq!(outcome.fate, Fate::Kept);
    assert!(outcome.why.contains("key.secret, notes.txt"), "{}", outcome.why);
    assert_eq!(
        (place.read("key.secret"), place.read("notes.txt")),
        ("mine\n".into(), "mine\n".into())
    );
}

#[test]
fn a_folder_of_a_repository_is_a_workspace_too() {
    let place = Place::new();
    fs::create_dir(place.root().join("sub")).unwrap();
    place.write("sub/b.txt", "b\n");
    git(&place.root(), &["add", "-A"]);
    git(&place.root(), &["commit", "-q", "-m", "sub"]);
    let sub = place.root().join("sub");
    let tree = Worktree::of(&sub, &place.root().join(".stepwell"), &"one".parse().unwrap());
    place.write("sub/new.txt", "new\n");
    let base = tree.snapshot(&["new.txt".to_owned()]).unwrap();
    tree.make(&base).unwrap();
    let inside = tree.root().unwrap();
    assert_eq!(fs::read_to_string(inside.join("new.txt")).unwrap(), "new\n");
    fs::write(inside.join("b.txt"), "bb\n").unwrap();
    let outcome = end(&tree, &base);
    assert_eq!(outcome.fate, Fate::Written, "{}", outcome.why);
    assert_eq!(tree.would_change(&base, &outcome), ["b.txt"]);
    assert_eq!(place.read("sub/b.txt"), "bb\n");
    assert_eq!(place.status(), [" M sub/b.txt", "?? sub/new.txt"]);
}
