//! A repository's own settings never start a program, whatever Stepwell does with git there.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use stepwell::model::Fate;
use stepwell_files::git::SafeGit;
use stepwell_files::worktree::{Merge, Worktree, all};
use tempfile::TempDir;

use crate::files::git;

/// A repository with a program that leaves a trace whenever it is started.
struct Trap {
    _keep: TempDir,
    work: PathBuf,
    /// The program.
    bait: String,
    trace: PathBuf,
}

impl Trap {
    fn new() -> Self {
        let keep = tempfile::tempdir().unwrap();
        let top = keep.path().canonicalize().unwrap();
        let (work, trace, bait) = (top.join("work"), top.join("trace"), top.join("bait"));
        fs::create_dir_all(work.join(".stepwell")).unwrap();
        let script = format!("#!/bin/sh\necho \"$0 $*\" >> {}\ncat\n", trace.display());
        fs::write(&bait, script).unwrap();
        fs::set_permissions(&bait, fs::Permissions::from_mode(0o755)).unwrap();
        git(&work, &["init", "-q", "-b", "main"]);
        git(&work, &["config", "user.name", "t"]);
        git(&work, &["config", "user.email", "t@t"]);
        fs::write(work.join(".gitignore"), ".stepwell/\n").unwrap();
        fs::write(work.join("a.txt"), "a\n").unwrap();
        Self { _keep: keep, work, bait: bait.to_str().unwrap().to_owned(), trace }
    }

    fn commit(&self) {
        git(&self.work, &["add", "-A"]);
        git(&self.work, &["commit", "-q", "-m", "c"]);
    }

    fn set(&self, key: &str) {
        git(&self.work, &["config", key, &self.bait]);
    }

    fn worktree(&self) -> Worktree {
        Worktree::of(
            &self.work,
            &self.work.join(".stepwell"),
            &"20260101-000000-aaaaaa".parse().unwrap(),
        )
    }

    /// Every git operation of Stepwell. Their success does not matter here.
    fn work_through(&self) {
        let tree = self.worktree();
        let base = tree.base().unwrap_or_default();
        let _ = tree.misses_changes();
        let _ = tree.make(&base);
        let _ = fs::write(tree.path.join("new.txt"), "new\n");
        let _ = fs::write(tree.path.join("a.txt"), "changed\n");
        let _ = tree.state(Some(&base), None);
        // The workspace moves on, so that the merge is a real one.
        let _ = fs::write(self.work.join("b.txt"), "b\n");
        let _ = SafeGit::new(&self.work).text(&["add", "b.txt"]);
        let _ = SafeGit::new(&self.work).text(&["commit", "-q", "-m", "on"]);
        let _ = tree.snapshot(&["a.txt".to_owned(), "b.txt".to_owned()]);
        let _ = tree.wrap_up(&base, "work", Merge::IntoFiles);
        let outcome = tree.wrap_up(&base, "work", Merge::Yes);
        let _ = tree.since(&outcome);
        let _ = tree.state(Some(&base), Some(&outcome));
        let _ = tree.remove(&outcome.tip);
        let _ = tree.restore();
        let _ = tree.remove_by_force();
        let _ = all(&self.work, &self.work.join(".stepwell"));
        let asked: [&[&str]; 6] = [
            &["status", "--porcelain"],
            &["diff"],
            &["diff", "HEAD~1"],
            &["update-index", "-q", "--refresh"],
            &["rev-list", "--timestamp", "HEAD"],
            &["for-each-ref"],
        ];
        for args in asked {
            let _ = SafeGit::new(&self.work).text(args);
        }
    }

    fn stays_shut(&self, what: &str) {
        let trace = fs::read_to_string(&self.trace).unwrap_or_default();
        assert_eq!(trace, "", "{what}");
    }
}

/// Makes git check a file's content again.
fn touch(path: &Path) {
    let text = fs::read(path).unwrap();
    fs::write(path, text).unwrap();
}

/// Settings that name a program for every file, settings that do so for some files, and the
/// conditions for git to use them.
const ALWAYS: [&str; 15] = [
    "core.fsmonitor",
    "core.pager",
    "pager.status",
    "pager.diff",
    "core.editor",
    "sequence.editor",
    "core.sshCommand",
    "core.askPass",
    "core.alternateRefsCommand",
    "credential.helper",
    "diff.external",
    "gpg.program",
    "gpg.ssh.program",
    "gc.recentObjectsHook",
    "hook.bait.command",
];
const BY_FILE: [&[&str]; 4] = [
    &["diff.bait.command", "diff.bait.textconv", "merge.bait.driver"],
    &["filter.bait.clean", "filter.bait.smudge"],
    &["filter.bait.process"],
    &["filter.a=b.clean", "filter.a=b.smudge"],
];
const BESIDE: [(&str, &str); 6] = [
    ("filter.bait.required", "true"),
    ("merge.verifySignatures", "true"),
    ("commit.gpgSign", "true"),
    ("log.showSignature", "true"),
    ("gc.auto", "1"),
    ("hook.bait.event", "pre-commit"),
];

fn set_up(keys: &[&str]) -> Trap {
    let trap = Trap::new();
    fs::write(trap.work.join("b.txt"), "0\n").unwrap();
    trap.commit();
    for name in ["status", "diff", "worktree", "rev-parse", "commit"] {
        git(&trap.work, &["config", &format!("alias.{name}"), &format!("!{}", trap.bait)]);
    }
    BESIDE.iter().for_each(|(key, value)| git(&trap.work, &["config", key, value]));
    let name = if keys.iter().any(|key| key.contains("a=b")) { "a=b" } else { "bait" };
    let attributes = format!("*.txt filter={name} diff=bait merge=bait\n");
    fs::write(trap.work.join(".git/info/attributes"), attributes).unwrap();
    touch(&trap.work.join("a.txt"));
    keys.iter().for_each(|key| trap.set(key));
    trap
}

#[test]
fn no_setting_of_a_repository_starts_a_program() {
    for keys in [&ALWAYS[..]].into_iter().chain(BY_FILE) {
        let trap = set_up(keys);
        trap.work_through();
        trap.stays_shut(&keys.join(" "));
    }
}

#[test]
fn a_git_that_is_started_as_it_is_walks_into_the_trap() {
    for (key, args) in [
        ("core.fsmonitor", &["status"][..]),
        ("diff.external", &["diff", "--ext-diff", "HEAD"]),
        ("filter.bait.clean", &["add", "a.txt"]),
        ("gpg.program", &["commit", "-q", "--allow-empty", "-m", "x"]),
    ] {
        let trap = set_up(&[key]);
        git(&trap.work, &["config", "--unset", "filter.bait.required"]);
        fs::write(trap.work.join("a.txt"), "changed\n").unwrap();
        let mut command = std::process::Command::new("git");
        let _ = command.arg("-C").arg(&trap.work).args(args).output().unwrap();
        assert!(trap.trace.exists(), "{key}");
    }
}

#[test]
fn no_hook_of_a_repository_is_run() {
    let trap = Trap::new();
    trap.commit();
    let names = ["pre-commit", "post-commit", "post-checkout", "post-merge", "pre-merge-commit"];
    let more = ["post-index-change", "reference-transaction", "commit-msg", "prepare-commit-msg"];
    let elsewhere = trap.work.join("hooks");
    fs::create_dir(&elsewhere).unwrap();
    for name in names.into_iter().chain(more) {
        fs::copy(&trap.bait, trap.work.join(".git/hooks").join(name)).unwrap();
        fs::copy(&trap.bait, elsewhere.join(name)).unwrap();
    }
    trap.work_through();
    trap.stays_shut(".git/hooks");
    git(&trap.work, &["config", "core.hooksPath", "hooks"]);
    trap.work_through();
    trap.stays_shut("core.hooksPath");
}

#[test]
fn settings_from_elsewhere_start_no_program_either() {
    // An included file, included always or only where a subagent works.
    for key in ["include.path", "includeIf.onbranch:stepwell/**.path", "includeIf.gitdir:**.path"] {
        let trap = Trap::new();
        trap.commit();
        let more = format!("[filter \"bait\"]\nclean = {0}\nsmudge = {0}\n", trap.bait);
        fs::write(trap.work.join(".git/more"), more).unwrap();
        fs::write(trap.work.join(".git/info/attributes"), "* filter=bait\n").unwrap();
        git(&trap.work, &["config", key, "more"]);
        trap.work_through();
        trap.stays_shut(key);
    }
    // The settings of one worktree.
    let trap = Trap::new();
    trap.commit();
    git(&trap.work, &["config", "extensions.worktreeConfig", "true"]);
    fs::write(trap.work.join(".git/info/attributes"), "* filter=bait\n").unwrap();
    let tree = trap.worktree();
    tree.make(&tree.base().unwrap()).unwrap();
    for key in ["filter.bait.clean", "filter.bait.smudge", "core.fsmonitor"] {
        git(&tree.path, &["config", "--worktree", key, &trap.bait]);
        git(&trap.work, &["config", "--worktree", key, &trap.bait]);
    }
    touch(&tree.path.join("a.txt"));
    let _ = tree.state(None, None);
    let _ = tree.remove("HEAD");
    trap.work_through();
    trap.stays_shut("config.worktree");
}

#[test]
fn a_submodules_settings_start_no_program() {
    let trap = Trap::new();
    let other = trap.work.join("../other");
    fs::create_dir(&other).unwrap();
    git(&other, &["init", "-q", "-b", "main"]);
    fs::write(other.join("x.txt"), "x\n").unwrap();
    git(&other, &["add", "-A"]);
    git(&other, &["commit", "-q", "-m", "c"]);
    let add = ["-c", "protocol.file.allow=always", "submodule", "add", "-q", "../other", "sub"];
    git(&trap.work, &add);
    trap.commit();
    let sub = trap.work.join("sub");
    let module = trap.work.join(".git/modules/sub");
    fs::write(module.join("info/attributes"), "* filter=bait\n").unwrap();
    for key in ["filter.bait.clean", "filter.bait.process", "core.fsmonitor"] {
        git(&sub, &["config", key, &trap.bait]);
    }
    git(&trap.work, &["config", "submodule.sub.ignore", "none"]);
    git(&trap.work, &["config", "submodule.recurse", "true"]);
    git(&trap.work, &["config", "status.submoduleSummary", "true"]);
    git(&trap.work, &["config", "diff.submodule", "diff"]);
    touch(&sub.join("x.txt"));
    trap.work_through();
    trap.stays_shut("a submodule");
}

#[test]
fn missing_objects_are_not_fetched() {
    let trap = Trap::new();
    trap.commit();
    for (key, value) in [
        ("extensions.partialClone", "origin"),
        ("remote.origin.promisor", "true"),
        ("remote.origin.partialclonefilter", "blob:none"),
        ("protocol.ext.allow", "always"),
        ("protocol.allow", "always"),
    ] {
        git(&trap.work, &["config", key, value]);
    }
    git(&trap.work, &["config", "remote.origin.url", &format!("ext::{}", trap.bait)]);
    trap.set("remote.origin.uploadpack");
    let missing = "1234567890123456789012345678901234567890";
    let asked = SafeGit::new(&trap.work);
    assert!(!asked.holds(&["cat-file", "-e", missing]));
    let _ = asked.read(&["cat-file", "--batch"], &format!("{missing}\n"), |_| {});
    trap.stays_shut("a promisor remote");
}

#[test]
fn a_folder_that_only_looks_like_a_repository_is_none() {
    let trap = Trap::new();
    let bare = trap.work.join("bare");
    git(&trap.work, &["init", "-q", "--bare", "bare"]);
    git(&bare, &["config", "core.fsmonitor", &trap.bait]);
    git(&bare, &["config", "core.worktree", ".."]);
    git(&bare, &["config", "core.bare", "false"]);
    let _ = SafeGit::new(&bare).text(&["status"]);
    trap.stays_shut("a bare repository in a folder");
}

#[test]
fn a_repository_that_places_its_files_elsewhere_is_refused() {
    for elsewhere in ["../../out", "../.."] {
        let trap = Trap::new();
        trap.commit();
        let out = trap.work.join("../out");
        fs::create_dir(&out).unwrap();
        let tree = trap.worktree();
        let base = tree.base().unwrap();
        tree.make(&base).unwrap();
        fs::write(tree.path.join("h.txt"), "h\n").unwrap();
        git(&trap.work, &["config", "core.worktree", elsewhere]);
        assert!(tree.base().unwrap_err().contains("core.worktree"));
        let outcome = tree.wrap_up(&base, "work", Merge::Yes);
        assert_eq!(outcome.fate, Fate::Kept, "{outcome:?}");
        assert!(outcome.why.contains("core.worktree"), "{}", outcome.why);
        assert!(!out.join("h.txt").exists() && !trap.work.join("../h.txt").exists());
        // A setting that states the actual folder changes nothing.
        git(&trap.work, &["config", "core.worktree", ".."]);
        assert_eq!(tree.wrap_up(&base, "work", Merge::Yes).fate, Fate::Merged);
        assert!(trap.work.join("h.txt").exists());
    }
    // A submodule has such a setting.
    let trap = Trap::new();
    let other = trap.work.join("../other");
    fs::create_dir(&other).unwrap();
    git(&other, &["init", "-q", "-b", "main"]);
    git(&other, &["commit", "-q", "--allow-empty", "-m", "c"]);
    let add = ["-c", "protocol.file.allow=always", "submodule", "add", "-q", "../other", "sub"];
    git(&trap.work, &add);
    SafeGit::new(&trap.work.join("sub")).text(&["status"]).unwrap();
}

#[test]
fn where_a_filter_is_needed_the_work_is_refused_and_it_is_said_why() {
    let trap = Trap::new();
    fs::write(trap.work.join(".gitattributes"), "*.bin filter=lfs\n").unwrap();
    fs::write(trap.work.join("big.bin"), "content\n").unwrap();
    trap.commit();
    // The filter is undefined: git leaves the file unchanged, and so does Stepwell.
    let tree = trap.worktree();
    let base = tree.base().unwrap();
    tree.make(&base).unwrap();
    tree.remove(&base).unwrap();
    trap.set("filter.lfs.smudge");
    let why = tree.make(&base).unwrap_err();
    assert!(why.contains("big.bin needs the filter lfs"), "{why}");
    assert!(!tree.path.exists());
    // An earlier worktree is neither committed nor removed.
    git(&trap.work, &["config", "--unset", "filter.lfs.smudge"]);
    tree.make(&base).unwrap();
    fs::write(tree.path.join("more.bin"), "more\n").unwrap();
    trap.set("filter.lfs.clean");
    let outcome = tree.wrap_up(&base, "work", Merge::Yes);
    assert_eq!(outcome.fate, Fate::Kept);
    assert!(outcome.why.contains("needs the filter lfs"), "{}", outcome.why);
    assert!(tree.state(Some(&base), None).unwrap_err().contains("needs the filter lfs"));
    assert!(tree.remove(&base).unwrap_err().contains("needs the filter lfs"));
    trap.stays_shut("a filter that is needed");
}

#[test]
fn a_merge_that_needs_a_driver_is_refused_and_it_is_said_why() {
    let trap = Trap::new();
    fs::write(trap.work.join(".gitattributes"), "*.txt merge=bait\n").unwrap();
    trap.commit();
    trap.set("merge.bait.driver");
    let tree = trap.worktree();
    let base = tree.base().unwrap();
    tree.make(&base).unwrap();
    fs::write(tree.path.join("a.txt"), "theirs\n").unwrap();
    fs::write(trap.work.join("a.txt"), "ours\n").unwrap();
    trap.commit();
    let outcome = tree.wrap_up(&base, "work", Merge::Yes);
    assert_eq!(outcome.fate, Fate::Kept);
    assert!(outcome.why.contains("merge driver bait"), "{}", outcome.why);
    assert_eq!(fs::read_to_string(trap.work.join("a.txt")).unwrap(), "ours\n");
    trap.stays_shut("a merge driver");
}

#[test]
fn git_is_started_in_one_place_only() {
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let mut found = Vec::new();
    let mut waiting: Vec<PathBuf> =
        fs::read_dir(&crates).unwrap().map(|it| it.unwrap().path().join("src")).collect();
    while let Some(folder) = waiting.pop() {
        for entry in fs::read_dir(&folder).into_iter().flatten().map(Result::unwrap) {
            let path = entry.path();
            if path.is_dir() {
                waiting.push(path);
            } else if path.extension().is_some_and(|it| it == "rs") {
                let text = fs::read_to_string(&path).unwrap();
                let shipped = text.split("#[cfg(test)]\nmod tests").next().unwrap();
                if shipped.contains("Command::new(\"git\")") {
                    found.push(path.strip_prefix(&crates).unwrap().to_owned());
                }
            }
        }
    }
    assert_eq!(found, [PathBuf::from("stepwell-files/src/git/mod.rs")]);
}
