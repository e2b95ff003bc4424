//! Changes of commands are captured, and can be undone and redone byte for byte.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, symlink};
use std::path::{Path, PathBuf};
use std::process::Command;

use proptest::prelude::*;
use stepwell::log::Redactor;
use stepwell::model::{FileChanged, FileState, Scope};
use stepwell::{Event, Message, NewEvent, Seq, Session, Stepwell};
use stepwell_files::capture::{Capture, Limits};
use stepwell_files::plan::{Others, Plan};
use stepwell_files::rewind::{Done, Foreign, finish_rewind, preview, rewind};
use stepwell_files::rewind_history::{Asked, Direction, MOVES, taking_back};
use stepwell_files::safe_path::Root;
use stepwell_files::site::Site;
use tempfile::TempDir;

/// The contents of a workspace: paths and their kinds.
pub(crate) type Shape = BTreeMap<String, Thing>;

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Thing {
    File(Vec<u8>, u32),
    Link(String),
}

/// The files and links in a folder, without git's and Stepwell's own.
pub(crate) fn shape(root: &Path) -> Shape {
    let mut shape = Shape::new();
    let mut waiting = vec![root.to_owned()];
    while let Some(folder) = waiting.pop() {
        for entry in fs::read_dir(&folder).unwrap().map(Result::unwrap) {
            let (path, name) = (entry.path(), entry.file_name());
            let kind = entry.file_type().unwrap();
            if name == ".git" || name == ".stepwell" {
                continue;
            }
            let short = path.strip_prefix(root).unwrap().to_str().unwrap().to_owned();
            if kind.is_dir() {
                waiting.push(path);
            } else if kind.is_symlink() {
                let target = fs::read_link(&path).unwrap();
                shape.insert(short, Thing::Link(target.to_str().unwrap().to_owned()));
            } else {
                let mode = entry.metadata().unwrap().mode() & 0o7777;
                shape.insert(short, Thing::File(fs::read(&path).unwrap(), mode));
            }
        }
    }
    shape
}

pub(crate) fn git(root: &Path, args: &[&str]) {
    let identity = ["-c", "user.name=t", "-c", "user.email=t@t"];
    let output = Command::new("git").current_dir(root).args(identity).args(args).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

/// A workspace with a session that changes it.
pub(crate) struct Workspace {
    pub(crate) _keep: TempDir,
    pub(crate) root: PathBuf,
    pub(crate) session: Session,
    pub(crate) capture: Capture,
    pub(crate) redactor: Redactor,
}

impl Workspace {
    pub(crate) fn new(prepare: impl FnOnce(&Path)) -> Self {
        Self::with(Limits::default(), prepare)
    }

    pub(crate) fn with(limits: Limits, prepare: impl FnOnce(&Path)) -> Self {
        let keep = tempfile::tempdir().unwrap();
        let root = keep.path().canonicalize().unwrap();
        prepare(&root);
        let well = Stepwell::open(root.join(".stepwell")).unwrap();
        let session = well.create(well.draft("the task")).unwrap();
        session.append(Message::user("go")).unwrap();
        let capture = Capture::new(&Root::new(root.clone()), limits);
        Self { _keep: keep, root, session, capture, redactor: Redactor::new([]) }
    }

    pub(crate) fn now(&self) -> i64 {
        self.session.now().as_micros() * 1000
    }

    /// Makes a change as a command would, and records it.
    pub(crate) fn command(&mut self, change: impl FnOnce(&Path)) -> Vec<FileChanged> {
        self.capture.before(self.now());
        change(&self.root);
        let changes = self.capture.after(self.now(), &self.session, &self.redactor).unwrap();
        let events: Vec<NewEvent> = changes.iter().cloned().map(NewEvent::from).collect();
        if !events.is_empty() {
            self.session.append_all(events).unwrap();
        }
        changes
    }

    pub(crate) fn shell(&mut self, line: &str) -> Vec<FileChanged> {
        self.command(|root| {
            let output = Command::new("sh").current_dir(root).args(["-c", line]).output().unwrap();
            assert!(output.status.success(), "{line}: {}", String::from_utf8_lossy(&output.stderr));
        })
    }

    pub(crate) fn head(&self) -> Seq {
        self.session.info().unwrap().head.seq
    }

    pub(crate) fn move_to(&mut self, asked: &Asked) -> Done {
        let site = Site {
            root: &Root::new(self.root.clone()),
            redactor: &self.redactor,
            max_file: 10 << 20,
            whose: &stepwell_files::site::Own,
        };
        assert_eq!(
            finish_rewind(&mut self.session, &site, Foreign::Refused, &mut |_| {}).unwrap(),
            None
        );
        rewind(&mut self.session, &site, asked, &mut |_| {}).unwrap()
    }

    pub(crate) fn rewind(&mut self, to: Seq, others: Others) -> Done {
        self.move_to(&Asked { to, scope: Scope::Both, undoes: None, others })
    }

    pub(crate) fn undo(&mut self) -> Done {
        self.take_back(Direction::Back, Others::Respected)
    }

    pub(crate) fn take_back(&mut self, way: Direction, others: Others) -> Done {
        let facts = self.session.keyed_events(&MOVES).unwrap();
        let asked = taking_back(&facts, self.head(), way, others).unwrap();
        self.move_to(&asked)
    }

    pub(crate) fn plan(&self, to: Seq) -> Plan {
        let site = Site {
            root: &Root::new(self.root.clone()),
            redactor: &self.redactor,
            max_file: 10 << 20,
            whose: &stepwell_files::site::Own,
        };
        let (scope, others) = (Scope::Files, Others::Respected);
        let (store, id) = (self.session.well().store(), self.session.id());
        preview(&**store, id, &Asked { to, scope, undoes: None, others }, &site).unwrap().plan
    }
}

pub(crate) fn done(done: Done) -> Plan {
    match done {
        Done::Rewound { preview, .. } => preview.plan,
        Done::Refused(preview) => panic!("refused: {preview:?}"),
    }
}

pub(crate) fn write(root: &Path, path: &str, bytes: impl AsRef<[u8]>) {
    let path = root.join(path);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, bytes).unwrap();
}

/// A work tree with tracked, changed, new and ignored files.
pub(crate) fn furnished(root: &Path) {
    git(root, &["init", "-q"]);
    write(root, ".gitignore", "target/\n*.log\n/.stepwell\n");
    write(root, "src/main.rs", "fn main() {}\n");
    write(root, "src/lib.rs", "pub fn lib() {}\n");
    write(root, "src/deep/er/mod.rs", "mod er;\n");
    write(root, "run.sh", "#!/bin/sh\n");
    write(root, "bin.dat", [0_u8, 159, 146, 150, 255]);
    symlink("src/main.rs", root.join("main")).unwrap();
    git(root, &["add", "-A"]);
    git(root, &["commit", "-qm", "x"]);
    write(root, "src/lib.rs", "pub fn changed() {}\n");
    write(root, "notes/new.txt", "not tracked\n");
    write(root, "target/out", "ignored");
    write(root, "build.log", "ignored");
}

#[test]
fn all_that_a_command_does_to_files_goes_back_and_forth() {
    for with_git in [true, false] {
        let mut workspace = Workspace::new(|root| {
            furnished(root);
            if !with_git {
                fs::remove_dir_all(root.join(".git")).unwrap();
            }
        });
        let begun = (workspace.head(), shape(&workspace.root));
        // Unchanged, ignored and merely touched files do not count as changed.
        assert_eq!(workspace.shell("true"), []);
        assert_eq!(workspace.shell("echo x >> target/out; echo y > other.log; touch run.sh"), []);
        let mut passed = vec![begun];
        for line in [
            "echo more >> src/main.rs; echo again >> src/lib.rs; echo x >> notes/new.txt",
            "chmod +x run.sh; printf '\\000\\001\\377' > bin.dat; ln -sf run.sh main",
            "git mv src/deep/er/mod.rs moved.rs 2>/dev/null || mv src/deep/er/mod.rs moved.rs; mv notes words",
            "rm -rf src; echo 'a file now' > src; mkdir -p a/b/c; echo deep > a/b/c/d",
            "rm src main; mkdir src main; echo one > src/one; echo two > main/two; ln -s nowhere src/dangling",
            "mv a b; cp -r b c; chmod 600 b/b/c/d; : > empty",
        ] {
            assert!(!workspace.shell(line).is_empty(), "{line}");
            passed.push((workspace.head(), shape(&workspace.root)));
        }
        let ignored = |shape: &Shape| {
            let keep = |path: &str| !path.ends_with(".log") && !path.starts_with("target/");
            shape
                .iter()
                .filter(|(path, _)| keep(path))
                .map(|(p, t)| (p.clone(), t.clone()))
                .collect::<Shape>()
        };
        let last = shape(&workspace.root);
        // To every point, from the newest to the oldest, crosswise, and back again.
        for (to, expected) in passed.iter().rev().chain([&passed[2], &passed[5], &passed[1]]) {
            let plan = done(workspace.rewind(*to, Others::Respected));
            assert_eq!(plan.left, []);
            assert_eq!(
                ignored(&shape(&workspace.root)),
                ignored(expected),
                "to {to}, git {with_git}"
            );
        }
        for _ in 0..passed.len() + 3 {
            done(workspace.undo());
        }
        assert_eq!(shape(&workspace.root), last, "git {with_git}");
        // Ignored files were never touched.
        assert_eq!(fs::read_to_string(workspace.root.join("target/out")).unwrap(), "ignoredx\n");
    }
}

#[test]
fn a_moved_file_is_recorded_as_moved() {
    let mut workspace = Workspace::new(furnished);
    let changes = workspace.shell("mv src/main.rs src/start.rs; rm main");
    let moved = changes.iter().find(|it| it.path == "src/start.rs").unwrap();
    assert_eq!(moved.renamed_from.as_deref(), Some("src/main.rs"));
    let gone = changes.iter().find(|it| it.path == "src/main.rs").unwrap();
    assert_eq!(gone.after, FileState::Absent);
    let link = changes.iter().find(|it| it.path == "main").unwrap();
    assert_eq!(link.before, FileState::Symlink { target: "src/main.rs".to_owned() });
}

#[test]
fn a_whole_folder_that_moves_is_captured_though_its_files_look_old() {
    let mut workspace = Workspace::new(furnished);
    workspace.shell("true");
    let changes = workspace.shell("mv src source");
    let paths: Vec<_> = changes.iter().map(|it| it.path.as_str()).collect();
    let expected = ["source/deep/er/mod.rs", "source/lib.rs", "source/main.rs"];
    assert_eq!(paths[..3], expected);
    assert!(changes[..3].iter().all(|it| it.renamed_from.is_some()), "{changes:?}");
}

#[test]
fn what_was_committed_checked_out_or_untracked_meanwhile_is_still_known() {
    let mut workspace = Workspace::new(furnished);
    let begun = (workspace.head(), shape(&workspace.root));
    workspace.shell("git add -A && git -c user.name=t -c user.email=t@t commit -qm y");
    workspace.shell("git rm -q --cached run.sh");
    let changes = workspace.shell("rm run.sh; git checkout -q HEAD~1 -- .");
    assert!(
        changes.iter().all(|it| !matches!(it.before, FileState::NotCaptured { .. })),
        "{changes:?}"
    );
    done(workspace.rewind(begun.0, Others::Respected));
    assert_eq!(shape(&workspace.root), begun.1);
}

#[test]
fn rules_that_change_make_no_old_file_a_new_one() {
    let mut workspace = Workspace::new(furnished);
    // Files count as old if they are older than the resolution of timestamps.
    workspace.shell("sleep 0.05");
    let paths =
        |changes: Vec<FileChanged>| changes.into_iter().map(|it| it.path).collect::<Vec<_>>();
    assert_eq!(paths(workspace.shell("echo > .gitignore")), [".gitignore"]);
    // From now on it counts, with its earlier content.
    let counts = workspace.shell("echo more >> build.log");
    assert!(matches!(counts[0].before, FileState::File { .. }), "{counts:?}");
    assert_eq!(paths(counts), ["build.log"]);
    // A file that becomes ignored is still watched if it was seen before.
    let ignored = workspace.shell("echo '*.sh' > .gitignore; echo x >> run.sh; echo y > new.sh");
    assert_eq!(paths(ignored), [".gitignore", "run.sh"]);
}

#[test]
fn a_tracked_file_counts_though_it_is_ignored() {
    let mut workspace = Workspace::new(|root| {
        furnished(root);
        git(root, &["add", "-f", "target/out"]);
    });
    let changes = workspace.shell("echo x > target/out; echo y > target/other");
    assert_eq!(changes.len(), 1);
    assert_eq!(changes[0].path, "target/out");
    assert!(matches!(changes[0].before, FileState::File { .. }), "{changes:?}");
}

#[test]
fn what_is_changed_at_once_after_it_was_written_does_not_escape() {
    let mut workspace = Workspace::new(|_| {});
    for n in 0..50 {
        // The same size, within the resolution of timestamps.
        let changes = workspace.command(|root| write(root, "f", format!("{n:04}")));
        assert_eq!(changes.len(), 1, "{n}");
        let changes = workspace.command(|root| write(root, "f", format!("{:04}", n + 5000)));
        assert_eq!(changes.len(), 1, "{n}");
    }
}

#[test]
fn what_is_too_large_or_holds_a_secret_is_recorded_as_not_captured_and_left_alone() {
    let limits = Limits { max_file: 1000, max_held: 500, ..Limits::default() };
    let key = "AWS_SECRET_ACCESS_KEY=wJalrXUtnFEMI/K7MDENG/bPxRfiCYzEXAMPLEKEY\nghp_abcdefghijklmnopqrstuvwxyz0123456789\n";
    let mut workspace = Workspace::with(limits, |root| {
        write(root, "big", vec![b'x'; 2000]);
        write(root, "small", "s");
        write(root, "second", vec![b'y'; 499]);
        write(root, "third", vec![b'z'; 700]);
        write(root, "key", key);
    });
    let begun = workspace.head();
    let changes =
        workspace.shell("echo x >> big; echo x >> small; echo x >> third; echo >> key; rm second");
    let why = |path: &str| {
        let change = changes.iter().find(|it| it.path == path).unwrap();
        match &change.before {
            FileState::NotCaptured { why, .. } => why.clone(),
            state => format!("{state:?}"),
        }
    };
    assert!(why("big").contains("larger than 1000"), "{}", why("big"));
    assert!(why("third").contains("more than 500 bytes"), "{}", why("third"));
    assert!(why("key").contains("holds a secret"), "{}", why("key"));
    assert!(why("small").starts_with("File"));
    let plan = workspace.plan(begun);
    let left: Vec<_> = plan.left.iter().map(|it| it.path.as_str()).collect();
    assert_eq!(left, ["big", "key", "second", "third"]);
    let before = shape(&workspace.root);
    done(workspace.rewind(begun, Others::Overwritten));
    let after = shape(&workspace.root);
    assert_eq!(after["small"], Thing::File(b"s".to_vec(), 0o644));
    for path in ["big", "key", "third"] {
        assert_eq!(after[path], before[path]);
    }
}

#[test]
fn too_many_files_are_said_once_and_not_looked_at() {
    let limits = Limits { max_files: 3, ..Limits::default() };
    let mut workspace = Workspace::with(limits, |root| {
        (0..5).for_each(|n| write(root, &format!("f{n}"), "x"));
    });
    let begun = workspace.head();
    let told = workspace.shell("echo y > f1");
    assert_eq!((told.len(), told[0].path.as_str()), (1, "."));
    assert_eq!(workspace.shell("echo z > f1"), []);
    let plan = workspace.plan(begun);
    assert!(plan.moves.is_empty() && plan.left[0].why.contains("more than 3 files"), "{plan:?}");
}

#[test]
fn only_the_folders_that_were_named_are_looked_at() {
    let roots = vec!["src".to_owned(), "./lib/".to_owned(), "../elsewhere".to_owned()];
    let mut workspace = Workspace::with(Limits { roots, ..Limits::default() }, |root| {
        write(root, "src/a", "x");
        write(root, "lib/b", "x");
        write(root, "doc/c", "x");
    });
    let changes = workspace.shell("for f in src/a lib/b doc/c top; do echo y > $f; done");
    let paths: Vec<_> = changes.iter().map(|it| it.path.as_str()).collect();
    assert_eq!(paths, ["lib/b", "src/a"]);
    // A folder that is created later counts from then on.
    assert_eq!(workspace.shell("rm -r lib").len(), 1);
    assert_eq!(workspace.shell("mkdir lib; echo z > lib/new").len(), 1);
}

#[test]
fn a_folder_that_became_a_link_is_remembered_with_what_was_in_it() {
    let mut workspace = Workspace::new(|root| {
        perform(root, &Deed::Folder(1));
        perform(root, &Deed::Link(5, 0));
    });
    let (to, expected) = (workspace.head(), shape(&workspace.root));
    workspace.command(|root| {
        perform(root, &Deed::Link(2, 1));
        perform(root, &Deed::Write(5, 0, false));
    });
    done(workspace.rewind(to, Others::Respected));
    assert_eq!(shape(&workspace.root), expected);
}

/// A change of a path in a small workspace.
#[derive(Clone, Debug)]
enum Deed {
    Write(usize, u8, bool),
    Remove(usize),
    Link(usize, usize),
    Move(usize, usize),
    Mode(usize, u32),
    Folder(usize),
}

const PATHS: [&str; 8] = ["a", "b", "d", "d/e", "d/f", "d/g/h", "x/y", "x"];

fn deed() -> impl Strategy<Value = Deed> {
    let path = || 0..PATHS.len();
    prop_oneof![
        4 => (path(), any::<u8>(), any::<bool>()).prop_map(|(p, n, b)| Deed::Write(p, n, b)),
        2 => path().prop_map(Deed::Remove),
        1 => (path(), path()).prop_map(|(p, t)| Deed::Link(p, t)),
        2 => (path(), path()).prop_map(|(p, t)| Deed::Move(p, t)),
        1 => (path(), prop::sample::select(vec![0o600, 0o644, 0o755])).prop_map(|(p, m)| Deed::Mode(p, m)),
        1 => path().prop_map(Deed::Folder),
    ]
}

/// Makes the change, as far as the file system allows it.
fn perform(root: &Path, deed: &Deed) {
    let at = |n: &usize| root.join(PATHS[*n]);
    let clear = |path: &Path| {
        if path.symlink_metadata().is_ok_and(|meta| meta.is_dir()) {
            let _ = fs::remove_dir_all(path);
        } else {
            let _ = fs::remove_file(path);
        }
    };
    let room = |path: &Path| fs::create_dir_all(path.parent().unwrap()).is_ok();
    match deed {
        Deed::Write(p, n, binary) => {
            let mut bytes = vec![*n; usize::from(*n) % 7];
            bytes.extend(binary.then_some(0xff));
            if room(&at(p)) {
                let _ = fs::write(at(p), bytes);
            }
        }
        Deed::Remove(p) => clear(&at(p)),
        Deed::Link(p, t) => {
            if room(&at(p)) {
                clear(&at(p));
                let _ = symlink(PATHS[*t], at(p));
            }
        }
        Deed::Move(p, t) => {
            if room(&at(t)) {
                let _ = fs::rename(at(p), at(t));
            }
        }
        Deed::Mode(p, mode) => {
            let plain = at(p).symlink_metadata().is_ok_and(|meta| meta.is_file());
            if plain {
                fs::set_permissions(at(p), fs::Permissions::from_mode(*mode)).unwrap();
            }
        }
        Deed::Folder(p) => {
            clear(&at(p));
            let _ = fs::create_dir_all(at(p));
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]

    #[test]
    fn whatever_commands_do_every_point_can_be_returned_to(
        begin in prop::collection::vec(deed(), 0..6),
        commands in prop::collection::vec(prop::collection::vec(deed(), 1..5), 1..5),
        targets in prop::collection::vec(any::<prop::sample::Index>(), 1..4),
        tracked in any::<bool>(),
    ) {
        let mut workspace = Workspace::new(|root| {
            begin.iter().for_each(|deed| perform(root, deed));
            if tracked {
                git(root, &["init", "-q"]);
                git(root, &["add", "-A"]);
            }
        });
        let mut passed = vec![(workspace.head(), shape(&workspace.root))];
        for command in &commands {
            workspace.command(|root| command.iter().for_each(|deed| perform(root, deed)));
            passed.push((workspace.head(), shape(&workspace.root)));
        }
        for target in &targets {
            let (to, expected) = target.get(&passed);
            let plan = done(workspace.rewind(*to, Others::Respected));
            prop_assert_eq!(&shape(&workspace.root), expected, "{:?}", plan);
        }
        for _ in &targets {
            done(workspace.undo());
        }
        prop_assert_eq!(&shape(&workspace.root), &passed.last().unwrap().1);
        let events = workspace.session.events(stepwell::store::Span::ALL).unwrap().events;
        let moves = events.iter().filter(|event| matches!(event.event, Event::Undone(_)));
        prop_assert_eq!(moves.count(), targets.len());
    }
}
