//! A rewind killed at any point: afterwards it is done completely or not at all, files included.

use std::path::{Path, PathBuf};
use std::process::Command;

use stepwell::log::Redactor;
use stepwell::model::{FileState, Kind};
use stepwell::{Created, Event, Lane, Message, NewEvent, Stepwell};
use stepwell_files::capture::{Capture, Limits};
use stepwell_files::safe_path::Root;

use super::files::{Shape, shape};

const REWINDER: &str = env!("CARGO_BIN_EXE_stepwell-test-rewinder");

/// A workspace whose session `run` made all kinds of changes after its third event.
struct Scene {
    _keep: tempfile::TempDir,
    root: PathBuf,
    before: Shape,
    after: Shape,
}

const BEGUN: &str = "3";

fn shell(root: &Path, line: &str) {
    let output = Command::new("sh").current_dir(root).args(["-c", line]).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

impl Scene {
    fn new() -> Self {
        let keep = tempfile::tempdir().unwrap();
        let root = keep.path().canonicalize().unwrap();
        shell(
            &root,
            "echo text > text; printf '\\000\\377' > binary; echo '#!/bin/sh' > run; mkdir -p d/e; \
             echo deep > d/e/f; echo g > d/g; ln -s text link; echo gone > gone; echo folder > x",
        );
        let before = shape(&root);
        let well = Stepwell::open(root.join(".stepwell")).unwrap();
        let created = Created::new("run".parse().unwrap(), "the task");
        let session = well.create(created).unwrap();
        session.append(Message::user("go")).unwrap();
        session.append(Message::assistant("first")).unwrap();
        let mut capture = Capture::new(&Root::new(root.clone()), Limits::default());
        let now = || session.now().as_micros() * 1000;
        capture.before(now());
        shell(
            &root,
            "echo more >> text; printf '\\001' > binary; chmod 755 run; rm -r d; echo file > d; \
             ln -sf run link; rm gone x; mkdir x; echo 1 > x/one; echo 2 > x/two; mv text moved",
        );
        let changes = capture.after(now(), &session, &Redactor::new([])).unwrap();
        assert!(changes.len() > 8);
        let events: Vec<NewEvent> = changes.into_iter().map(NewEvent::from).collect();
        session.append_all(events).unwrap();
        session.append(Message::assistant("second")).unwrap();
        let after = shape(&root);
        Self { _keep: keep, root, before, after }
    }

    fn command(&self, to: &str, n: usize) -> Command {
        let mut command = Command::new(REWINDER);
        command.arg(&self.root).arg(to).arg(n.to_string());
        command
    }

    /// Rewinds, and returns whether the process survived.
    fn rewind(&self, to: &str, n: usize) -> bool {
        let output = self.command(to, n).output().unwrap();
        let code = output.status.code();
        assert!(code.is_none() || code == Some(0), "{}", String::from_utf8_lossy(&output.stderr));
        code.is_some()
    }

    /// How many answers the model would receive, and whether a rewind is unfinished.
    fn chat(&self) -> (usize, bool) {
        let well = Stepwell::open(self.root.join(".stepwell")).unwrap();
        let session = well.lock(&"run".parse().unwrap()).unwrap();
        let moves = session.keyed_events(&[Kind::Rewinding, Kind::Rewound, Kind::Undone]).unwrap();
        let open = matches!(moves.last().map(|it| &it.event), Some(Event::Rewinding(_)));
        assert!(well.store().maintain().verify(session.id()).unwrap().is_sound());
        // Each file that is about to be moved can be moved back.
        for fact in session.keyed_events(&[Kind::File]).unwrap() {
            let Event::File(file) = fact.event else { continue };
            for state in [file.before, file.after] {
                if let FileState::File { blob, .. } = state {
                    session.blob(&blob).unwrap();
                }
            }
        }
        (session.view(&Lane::main()).unwrap().messages.len() - 1, open)
    }

    fn is_back(&self) {
        assert_eq!(self.chat(), (1, false));
        assert_eq!(shape(&self.root), self.before);
    }

    fn is_as_it_was(&self) {
        assert_eq!(self.chat(), (2, false));
        assert_eq!(shape(&self.root), self.after);
    }
}

#[test]
fn a_rewind_that_is_killed_at_any_stage_is_finished_by_the_next_one() {
    let mut killed = 0;
    for n in 1.. {
        let scene = Scene::new();
        if scene.rewind(BEGUN, n) {
            scene.is_back();
            break;
        }
        killed += 1;
        assert_eq!(scene.chat(), (2, true), "stage {n}");
        // The process that finishes it may be killed as well, and again.
        for m in 1..4 {
            if scene.rewind(BEGUN, m * 2) {
                break;
            }
        }
        if scene.chat().1 {
            assert!(scene.rewind(BEGUN, 0));
        }
        scene.is_back();
        // The undo, killed at the same stage, ends as if nothing had been rewound.
        if !scene.rewind("0", n) {
            assert!(scene.rewind("0", 0));
        }
        scene.is_as_it_was();
    }
    assert!(killed > 20, "{killed}");
}

#[test]
fn a_rewind_that_is_killed_at_any_time_is_done_or_not() {
    let (mut done, mut cut_off, mut nothing) = (0, 0, 0);
    for n in 0..16 {
        let scene = Scene::new();
        let line = "\"$0\" \"$1\" \"$2\" 0 & sleep $3; kill -9 $!; wait";
        let after = format!("{:.4}", f64::from(n) * 0.0025);
        let mut kill = Command::new("sh");
        kill.args(["-c", line, REWINDER]).arg(&scene.root).args([BEGUN, &after]);
        kill.output().unwrap();
        match scene.chat() {
            (1, false) => done += 1,
            (2, true) => {
                cut_off += 1;
                assert!(scene.rewind(BEGUN, 0));
            }
            (2, false) => {
                nothing += 1;
                scene.is_as_it_was();
                assert!(scene.rewind(BEGUN, 0));
            }
            other => panic!("{other:?}"),
        }
        scene.is_back();
        assert!(scene.rewind("0", 0));
        scene.is_as_it_was();
    }
    assert_eq!(done + cut_off + nothing, 16);
}

#[test]
fn what_someone_else_changes_before_a_cut_off_rewind_is_finished_is_left_to_them() {
    let scene = Scene::new();
    assert!(!scene.rewind(BEGUN, 1));
    std::fs::write(scene.root.join("moved"), "theirs").unwrap();
    let half = shape(&scene.root);
    // The test's program refuses conflicts; only the files matter here.
    assert!(!scene.command(BEGUN, 0).output().unwrap().status.success());
    assert_eq!(shape(&scene.root), half);
    assert!(!scene.command(BEGUN, 0).arg("left").output().unwrap().status.success());
    let mut expected = scene.before.clone();
    expected.insert("moved".to_owned(), shape(&scene.root)["moved"].clone());
    assert_eq!(shape(&scene.root), expected);
    assert_eq!(std::fs::read(scene.root.join("moved")).unwrap(), b"theirs");
    assert_eq!(scene.chat(), (1, false));
}
