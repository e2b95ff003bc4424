//! Rewinds of files, their conflicts, and undo.

use std::fs;
use std::os::unix::fs::symlink;
use std::process::Command;

use stepwell::log::Redactor;
use stepwell::model::{Scope, StatusChanged};
use stepwell::{Message, NewEvent, Status};
use stepwell_files::capture::{Capture, Limits};
use stepwell_files::plan::Others;
use stepwell_files::rewind::{Done, Foreign, Stage, finish_rewind, rewind};
use stepwell_files::rewind_history::{Asked, Direction};
use stepwell_files::safe_path::Root;
use stepwell_files::site::Site;

use crate::files::{Workspace, done, furnished, shape, write};

#[test]
fn what_someone_else_changed_is_refused_and_comes_back_after_force() {
    let mut workspace = Workspace::new(furnished);
    let begun = (workspace.head(), shape(&workspace.root));
    workspace.shell("echo mine > src/main.rs; echo mine > made; rm run.sh");
    write(&workspace.root, "src/main.rs", "theirs");
    write(&workspace.root, "run.sh", "theirs");
    let theirs = shape(&workspace.root);
    let Done::Refused(refused) = workspace.rewind(begun.0, Others::Respected) else { panic!() };
    let conflicts: Vec<_> = refused.plan.conflicts.iter().map(|it| it.path.as_str()).collect();
    assert_eq!(conflicts, ["run.sh", "src/main.rs"]);
    assert_eq!(shape(&workspace.root), theirs);
    let refused = workspace.head();
    done(workspace.rewind(begun.0, Others::Overwritten));
    assert_eq!(shape(&workspace.root), begun.1);
    done(workspace.undo());
    assert_eq!(shape(&workspace.root), theirs);
    assert!(workspace.head() > refused);
}

#[test]
fn a_failure_that_was_taken_back_is_no_longer_how_the_session_stands() {
    let mut workspace = Workspace::new(furnished);
    let begun = workspace.head();
    workspace.session.append(Message::user("go on")).unwrap();
    let error = Some("attempt/1/1: it broke".to_owned());
    let failed = StatusChanged { status: Status::Failed, reason: None, error };
    workspace.session.append(failed).unwrap();
    done(workspace.rewind(begun, Others::Respected));
    let head = workspace.session.info().unwrap().head;
    assert_eq!((head.status, head.error), (Status::Interrupted, None));
    // It comes back together with the failed move.
    done(workspace.undo());
    let head = workspace.session.info().unwrap().head;
    assert_eq!(head.status, Status::Failed);
    assert_eq!(head.error.as_deref(), Some("attempt/1/1: it broke"));
}

#[test]
fn a_rewind_that_cannot_be_carried_out_leaves_everything_as_it_was() {
    let mut workspace = Workspace::new(|root| {
        write(root, "a", "1");
        write(root, "z", "1");
    });
    let begun = workspace.head();
    workspace.shell("echo 2 > a; rm z; mkdir z; echo 2 > z/x");
    let before = shape(&workspace.root);
    let site = Site {
        root: &Root::new(workspace.root.clone()),
        redactor: &workspace.redactor,
        max_file: 10 << 20,
        whose: &stepwell_files::site::Own,
    };
    let (scope, others) = (Scope::Both, Others::Respected);
    let asked = Asked { to: begun, scope, undoes: None, others };
    // By the time z is written, its temporary file's name is taken.
    let digest = stepwell::model::Digest::of(b"z").to_string();
    let scratch = workspace.root.join(format!(".stepwell-new-{}", &digest[..16]));
    let mut spoil = |stage: Stage<'_>| {
        if stage == Stage::Moving("z") {
            fs::create_dir_all(scratch.join("x")).unwrap();
        }
    };
    let error = rewind(&mut workspace.session, &site, &asked, &mut spoil).unwrap_err();
    assert!(error.to_string().contains("are as they were: z"), "{error}");
    assert_eq!(shape(&workspace.root), before);
    let settled = finish_rewind(&mut workspace.session, &site, Foreign::Refused, &mut |_| {});
    assert_eq!(settled.unwrap(), None);
    // The log has the true state: once the path is free, the rewind works.
    fs::remove_dir_all(&scratch).unwrap();
    done(workspace.rewind(begun, Others::Respected));
    assert_eq!(fs::read(workspace.root.join("z")).unwrap(), b"1");
}

#[test]
fn what_stands_in_the_way_is_named_and_comes_back_after_force() {
    let mut workspace = Workspace::new(|root| {
        write(root, "a", "1");
        write(root, "d/b", "1");
        write(root, "d/c", "1");
    });
    let begun = (workspace.head(), shape(&workspace.root));
    workspace.shell("rm a; echo 2 > d/b; echo 2 > d/c");
    // A folder in place of a file, with files in it that git would ignore, and a link in place of a
    // folder.
    write(&workspace.root, "a/.gitignore", "*\n");
    write(&workspace.root, "a/deep/mine", "mine");
    fs::rename(workspace.root.join("d"), workspace.root.join("real")).unwrap();
    symlink("real", workspace.root.join("d")).unwrap();
    let theirs = shape(&workspace.root);
    let Done::Refused(refused) = workspace.rewind(begun.0, Others::Respected) else { panic!() };
    let why: Vec<_> = refused.plan.conflicts.iter().map(|it| (&*it.path, &*it.why)).collect();
    let link = "someone else put d in its way";
    assert_eq!(why, [("d/b", link), ("d/c", link), ("a", "someone else put a folder there")]);
    assert_eq!(shape(&workspace.root), theirs);
    done(workspace.rewind(begun.0, Others::Overwritten));
    let mut expected = begun.1;
    // Files outside of the way are not moved.
    for name in ["real/b", "real/c"] {
        expected.insert(name.to_owned(), theirs[name].clone());
    }
    assert_eq!(shape(&workspace.root), expected);
    done(workspace.undo());
    assert_eq!(shape(&workspace.root), theirs);
}

#[test]
fn what_cannot_be_kept_stops_a_rewind_unless_it_is_forced() {
    let mut workspace = Workspace::new(|root| {
        ["big", "key", "pipe"].iter().for_each(|name| write(root, name, "1"));
        write(root, "plain", "1");
    });
    let begun = workspace.head();
    workspace.shell("for f in big key pipe plain; do echo 2 > $f; done");
    write(&workspace.root, "big", vec![b'x'; (10 << 20) + 1]);
    write(&workspace.root, "key", "ghp_abcdefghijklmnopqrstuvwxyz0123456789\n");
    fs::remove_file(workspace.root.join("pipe")).unwrap();
    let made = Command::new("mkfifo").arg(workspace.root.join("pipe")).status().unwrap();
    assert!(made.success());
    let Done::Refused(refused) = workspace.rewind(begun, Others::Respected) else { panic!() };
    let paths: Vec<_> = refused.plan.conflicts.iter().map(|it| it.path.as_str()).collect();
    assert_eq!(paths, ["big", "key", "pipe"]);
    assert!(refused.plan.conflicts.iter().all(|it| it.why.contains("cannot be kept")));
    assert_eq!(fs::read(workspace.root.join("plain")).unwrap(), b"2\n");
    let plan = done(workspace.rewind(begun, Others::Overwritten));
    assert_eq!(plan.left.len(), 3, "{plan:?}");
    assert_eq!(fs::read(workspace.root.join("plain")).unwrap(), b"1");
    assert_eq!(fs::read(workspace.root.join("big")).unwrap().len(), (10 << 20) + 1);
}

#[test]
fn every_move_is_taken_back_with_what_it_overwrote() {
    let mut workspace = Workspace::new(|root| write(root, "f", "0"));
    let begun = workspace.head();
    workspace.shell("echo 1 > f");
    let read = |workspace: &Workspace| fs::read_to_string(workspace.root.join("f")).unwrap();
    done(workspace.rewind(begun, Others::Respected));
    write(&workspace.root, "f", "mine");
    assert!(matches!(workspace.undo(), Done::Refused(_)));
    done(workspace.take_back(Direction::Back, Others::Overwritten));
    assert_eq!(read(&workspace), "1\n");
    done(workspace.take_back(Direction::Forth, Others::Respected));
    assert_eq!(read(&workspace), "mine");
    // A redo overwrites again, and can be undone again.
    done(workspace.undo());
    assert_eq!(read(&workspace), "1\n");
    write(&workspace.root, "f", "mine again");
    done(workspace.take_back(Direction::Forth, Others::Overwritten));
    assert_eq!(read(&workspace), "mine");
    done(workspace.undo());
    assert_eq!(read(&workspace), "mine again");
}

#[test]
fn what_was_done_since_a_rewind_is_set_aside_only_if_forced() {
    let mut workspace = Workspace::new(|root| write(root, "f", "0"));
    let begun = workspace.head();
    workspace.shell("echo 1 > f");
    workspace.session.append(Message::assistant("one")).unwrap();
    done(workspace.rewind(begun, Others::Respected));
    workspace.session.append(Message::assistant("two")).unwrap();
    workspace.shell("echo 2 > f; echo 2 > new");
    let Done::Refused(refused) = workspace.undo() else { panic!() };
    let shift = &refused.shift;
    assert_eq!((shift.later.steps, shift.later.messages, shift.returns.steps), (1, 1, 1));
    assert_eq!(shift.later_files, ["f", "new"]);
    let with = shape(&workspace.root);
    done(workspace.take_back(Direction::Back, Others::Overwritten));
    assert_eq!(fs::read(workspace.root.join("f")).unwrap(), b"1\n");
    assert!(!workspace.root.join("new").exists());
    done(workspace.take_back(Direction::Forth, Others::Respected));
    assert_eq!(shape(&workspace.root), with);
    let view = workspace.session.view(&stepwell::Lane::main()).unwrap().messages;
    assert_eq!(view.len(), 2);
}

#[test]
fn rewinding_the_chat_leaves_files_and_files_the_chat() {
    let mut workspace = Workspace::new(furnished);
    let begun = workspace.head();
    workspace.shell("echo 2 > new");
    workspace.session.append(Message::assistant("hm")).unwrap();
    let (with, others) = (shape(&workspace.root), Others::Respected);
    workspace.move_to(&Asked { to: begun, scope: Scope::Chat, undoes: None, others });
    assert_eq!(shape(&workspace.root), with);
    let shown = |workspace: &Workspace| {
        workspace.session.view(&stepwell::Lane::main()).unwrap().messages.len()
    };
    assert_eq!(shown(&workspace), 1);
    done(workspace.undo());
    assert_eq!(shown(&workspace), 2);
    workspace.move_to(&Asked { to: begun, scope: Scope::Files, undoes: None, others });
    assert!(!workspace.root.join("new").exists());
    assert_eq!(shown(&workspace), 2);
    done(workspace.undo());
    assert_eq!(shape(&workspace.root), with);
}

#[test]
fn what_another_session_finished_while_a_command_ran_is_a_conflict_and_stays() {
    let mut one = Workspace::new(|root| fs::write(root.join("a"), "old").unwrap());
    let start = one.head();
    let other = one.session.well().create(one.session.well().draft("another task")).unwrap();
    one.command(|root| {
        fs::write(root.join("a"), "new").unwrap();
        // Meanwhile another session writes a file and records it.
        let mut capture = Capture::new(&Root::new(root.to_owned()), Limits::default());
        let now = other.now().as_micros() * 1000;
        capture.before(now);
        fs::write(root.join("theirs"), "finished").unwrap();
        let changes = capture.after(now + 1, &other, &Redactor::new([])).unwrap();
        other.append_all(changes.into_iter().map(NewEvent::from).collect()).unwrap();
    });
    let id = other.id().clone();
    other.finish(Status::Success, None).unwrap();
    // The conflict remains if the other session was deleted.
    let preview = [false, true].map(|deleted| {
        if deleted {
            one.session.well().delete(&id).unwrap();
        }
        match one.rewind(start, Others::Respected) {
            Done::Refused(preview) => preview,
            done => panic!("the other session's file is in the way: {done:?}"),
        }
    });
    let [_, preview] = preview;
    let conflicts: Vec<_> = preview.plan.conflicts.iter().map(|it| it.path.as_str()).collect();
    assert_eq!(conflicts, ["theirs"]);
    assert!(preview.plan.conflicts[0].why.contains(id.as_str()));
    assert_eq!(fs::read_to_string(one.root.join("theirs")).unwrap(), "finished");
    assert_eq!(fs::read_to_string(one.root.join("a")).unwrap(), "new");
    // By force it is overwritten, after it was kept.
    assert!(matches!(one.rewind(start, Others::Overwritten), Done::Rewound { .. }));
    assert!(!one.root.join("theirs").exists());
}
