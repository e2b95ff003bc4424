//! Sessions that are imported again: grown, changed, and gone on with in two places.

use stepwell::{Event, Message, SessionId, Stepwell};
use stepwell_formats::{Became, Mode, take_in};

use crate::crash::{until_death, watchful};
use crate::mirror::{became, said, shown, taken, told};
use crate::mortal::Death;
use crate::support::log;
use crate::transcript::{ID, Transcript};

fn id() -> SessionId {
    ID.parse().unwrap()
}

/// How many times a text was recorded, in the view or not.
fn recorded(well: &Stepwell, text: &str) -> usize {
    let says = |event: &Event| matches!(event, Event::Message(it) if it.text().contains(text));
    log(well, &id()).iter().filter(|it| says(&it.event)).count()
}

#[test]
fn what_grows_is_appended_and_nothing_is_there_twice() {
    let (well, mut file) = (Stepwell::in_memory(), Transcript::new());
    file.user("u1", "", "one");
    for n in 0..20 {
        let (uuid, parent) =
            (format!("a{n}"), if n == 0 { "u1".to_owned() } else { format!("a{}", n - 1) });
        file.text(&uuid, &parent, &format!("m{n}"), &format!("answer {n}."));
        let taken = taken(&well, &file.write());
        let expected = if n == 0 { Became::Imported } else { Became::Updated };
        assert_eq!(taken[0].became, expected, "{n}");
        assert_eq!(became(&crate::mirror::taken(&well, &file.write()), Became::Unchanged), 1);
    }
    for n in 0..20 {
        assert_eq!(recorded(&well, &format!("answer {n}.")), 1);
    }
    let head = well.info(&id()).unwrap().head;
    assert_eq!((head.spent.calls, head.spent.usage.output), (20, 100));
    // Imported at once it is the same conversation.
    let other = Stepwell::in_memory();
    taken(&other, &file.write());
    assert_eq!(shown(&well, &id()), shown(&other, &id()));
    assert_eq!(other.info(&id()).unwrap().head.spent, head.spent);
}

#[test]
fn a_label_that_was_given_here_stays_between_what_comes_from_there() {
    let (well, mut file) = (Stepwell::in_memory(), Transcript::new());
    file.user("u1", "", "one").text("a1", "u1", "m1", "first");
    taken(&well, &file.write());
    let label = stepwell::model::Change::Set("mine".to_owned());
    well.edit(&id(), stepwell::model::Edited { label, ..stepwell::model::Edited::default() })
        .unwrap();
    file.user("u2", "a1", "two").text("a2", "u2", "m2", "(left)");
    taken(&well, &file.write());
    // A rewind that comes in names seqs, which the label has moved.
    file.text("a3", "u2", "m3", "second");
    taken(&well, &file.write());
    let said = said(&shown(&well, &id()));
    assert_eq!(said.len(), 4, "{said:#?}");
    assert!(said[3].contains("second") && !said.iter().any(|it| it.contains("(left)")));
    assert_eq!(well.info(&id()).unwrap().head.label.as_deref(), Some("mine"));
}

#[test]
fn an_answer_that_grew_is_counted_once_and_shown_once() {
    let (well, mut file) = (Stepwell::in_memory(), Transcript::new());
    file.user("u1", "", "one").text("a1", "u1", "m1", "I look.");
    taken(&well, &file.write());
    file.call("a2", "a1", "m1", "t1").result("r1", "a2", "t1", "found");
    for _ in 0..3 {
        taken(&well, &file.write());
    }
    let head = well.info(&id()).unwrap().head;
    assert_eq!((head.spent.calls, head.spent.usage.output), (1, 5));
    let said = said(&shown(&well, &id()));
    assert_eq!(said.len(), 3, "{said:#?}");
    assert_eq!(became(&taken(&well, &file.write()), Became::Unchanged), 1);
}

#[test]
fn a_session_that_comes_in_line_by_line_has_spent_what_it_spent() {
    let mut file = Transcript::new();
    file.user("u1", "", "one").text("a1", "u1", "m1", "I think.").text("a2", "a1", "m1", "I look.");
    file.call("a3", "a2", "m1", "t1")
        .call("a4", "a3", "m1", "t2")
        .result("r1", "a4", "t1", "found");
    file.result("r2", "r1", "t2", "and more")
        .text("b1", "r2", "m2", "So.")
        .text("b2", "b1", "m2", "Done.");
    file.user("u2", "b2", "two").text("c1", "u2", "m3", "Three.").text("c2", "c1", "m3", "Four.");
    let whole = Stepwell::in_memory();
    taken(&whole, &file.write());
    let (well, lines) = (Stepwell::in_memory(), file.lines.clone());
    for n in 1..=lines.len() {
        file.lines = lines[..n].to_vec();
        taken(&well, &file.write());
        assert_eq!(became(&taken(&well, &file.write()), Became::Unchanged), 1, "line {n}");
    }
    let (grown, fresh) = (well.info(&id()).unwrap().head, whole.info(&id()).unwrap().head);
    assert_eq!((fresh.spent.calls, fresh.spent.usage.output), (3, 15));
    assert_eq!(grown.spent, fresh.spent);
    let without_usage = |well: &Stepwell| said(&shown(well, &id()));
    assert_eq!(without_usage(&well), without_usage(&whole));
}

/// The same session in another file, which was changed at that time.
fn copied(lines: &[String], second: u64) -> (tempfile::TempDir, std::path::PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join(format!("{ID}.jsonl"));
    std::fs::write(&path, lines.join("\n") + "\n").unwrap();
    let time = std::time::UNIX_EPOCH + std::time::Duration::from_secs(second);
    std::fs::File::options().write(true).open(&path).unwrap().set_modified(time).unwrap();
    (folder, path)
}

#[test]
fn an_older_copy_changes_nothing_whenever_it_was_made_and_is_told_of() {
    for made in [1, 4_000_000_000] {
        let (well, mut file) = (Stepwell::in_memory(), Transcript::new());
        file.user("u1", "", "one").text("a1", "u1", "m1", "first").text("a2", "a1", "m1", "more");
        file.user("u2", "a2", "two").text("a3", "u2", "m2", "last");
        let path = file.write();
        taken(&well, &path);
        let seq = well.info(&id()).unwrap().head.seq;
        for cut in 1..file.lines.len() {
            let (_folder, copy) = copied(&file.lines[..cut], made);
            let report = take_in(&well, Mode::Write, "claude".parse().unwrap(), &copy);
            assert_eq!(report.sessions[0].became, Became::Unchanged, "{cut} lines");
            assert!(report.warnings[0].what.contains("left out"), "{:?}", report.warnings);
            assert_eq!(well.info(&id()).unwrap().head.seq, seq, "{cut} lines");
        }
        // The one that it came from grows as ever, and the copy may catch up.
        file.user("u3", "a3", "three");
        assert_eq!(taken(&well, &file.write())[0].became, Became::Updated);
        file.text("a4", "u3", "m3", "said");
        let (_folder, copy) = copied(&file.lines, made);
        assert_eq!(taken(&well, &copy)[0].became, Became::Updated);
    }
}

#[test]
fn of_two_files_that_differ_the_later_one_is_believed_and_there_is_an_end_to_it() {
    let (well, mut file) = (Stepwell::in_memory(), Transcript::new());
    file.user("u1", "", "one").text("a1", "u1", "m1", "first");
    let (_one, older) = copied(&file.lines, 1_000);
    file.lines.truncate(1);
    file.user("v1", "u1", "and").text("b1", "v1", "n1", "another first");
    let (_two, newer) = copied(&file.lines, 2_000);
    for path in [&older, &newer, &older, &newer, &older] {
        let report = take_in(&well, Mode::Write, "claude".parse().unwrap(), path);
        assert!(report.fault.is_none(), "{:?}", report.fault);
    }
    let said = said(&shown(&well, &id()));
    assert!(said.len() == 3 && said[2].contains("another first"), "{said:#?}");
    assert_eq!((recorded(&well, "first"), recorded(&well, "another first")), (2, 1));
    // When the later one is gone, the older is all there is.
    std::fs::remove_file(newer).unwrap();
    assert_eq!(taken(&well, &older)[0].became, Became::Updated);
    assert_eq!(well.info(&id()).unwrap().head.spent.calls, 2);
}

#[test]
fn a_history_that_was_rewritten_replaces_the_view_and_not_the_log() {
    let (well, mut file) = (Stepwell::in_memory(), Transcript::new());
    file.user("u1", "", "one").text("a1", "u1", "m1", "first").user("u2", "a1", "two");
    taken(&well, &file.write());
    file.lines.truncate(1);
    file.text("b1", "u1", "n1", "another first");
    assert_eq!(taken(&well, &file.write())[0].became, Became::Updated);
    assert_eq!(said(&shown(&well, &id())).len(), 2);
    assert_eq!((recorded(&well, "two"), recorded(&well, "another first")), (1, 1));
    assert_eq!(became(&taken(&well, &file.write()), Became::Unchanged), 1);
}

#[test]
fn a_session_that_went_on_here_and_there_becomes_two() {
    let (well, mut file) = (Stepwell::in_memory(), Transcript::new());
    file.user("u1", "", "one").text("a1", "u1", "m1", "first");
    taken(&well, &file.write());
    well.resume(&id()).unwrap().append(Message::user("said here")).unwrap();
    // It is the same there: nothing to do.
    assert_eq!(became(&taken(&well, &file.write()), Became::Unchanged), 1);
    file.user("u2", "a1", "said there");
    let second = taken(&well, &file.write());
    assert_eq!(second[0].became, Became::Imported);
    assert_eq!(second[0].id.as_str(), format!("{ID}-2"));
    assert_eq!(second[0].instead_of, Some(id()));
    assert_eq!((recorded(&well, "said here"), recorded(&well, "said there")), (1, 0));
    file.text("a2", "u2", "m2", "answered there");
    let third = taken(&well, &file.write());
    assert_eq!((third[0].became, &third[0].id), (Became::Updated, &second[0].id));
}

#[test]
fn a_look_changes_nothing_and_says_what_would_be() {
    let (well, mut file) = (Stepwell::in_memory(), Transcript::new());
    file.user("u1", "", "one").text("a1", "u1", "m1", "first");
    let format = "claude".parse().unwrap();
    let look = |well: &Stepwell, file: &Transcript| {
        let report = take_in(well, Mode::Look, format, &file.write());
        assert!(report.fault.is_none(), "{:?}", report.fault);
        report.sessions[0].became
    };
    assert_eq!(look(&well, &file), Became::Imported);
    assert!(!well.store().exists(&id()).unwrap());
    taken(&well, &file.write());
    assert_eq!(look(&well, &file), Became::Unchanged);
    let seq = well.info(&id()).unwrap().head.seq;
    file.user("u2", "a1", "two");
    assert_eq!(look(&well, &file), Became::Updated);
    assert_eq!(well.info(&id()).unwrap().head.seq, seq);
}

#[test]
fn a_session_in_the_trash_stays_there() {
    let (well, mut file) = (Stepwell::in_memory(), Transcript::new());
    file.user("u1", "", "one").text("a1", "u1", "m1", "first");
    taken(&well, &file.write());
    well.delete(&id()).unwrap();
    let format = "claude".parse().unwrap();
    let report = take_in(&well, Mode::Write, format, &file.write());
    assert_eq!(report.sessions[0].became, Became::Unchanged);
    file.user("u2", "a1", "two");
    let report = take_in(&well, Mode::Write, format, &file.write());
    assert!(report.fault.unwrap().to_string().contains("trash"));
}

#[test]
fn an_import_that_is_killed_at_any_write_is_completed_by_the_next() {
    let mut file = Transcript::new();
    file.user("u0", "", "begin");
    // More than is written at a time, so that it dies on either thread.
    for n in 0..3_000 {
        // Now and then a branch is left.
        let parent = if n % 50 == 49 { format!("u{}", n - 3) } else { format!("u{n}") };
        file.text(&format!("a{n}"), &parent, &format!("m{n}"), &format!("answer {n}"));
        file.user(&format!("u{}", n + 1), &format!("a{n}"), &format!("question {n}"));
    }
    let path = file.write();
    let whole = Stepwell::in_memory();
    taken(&whole, &path);
    for death in [Death::Before, Death::After] {
        let there = watchful();
        let mut deaths = 0;
        let format = "claude".parse().unwrap();
        let import = |well: &Stepwell| drop(take_in(well, Mode::Write, format, &path));
        while !until_death(&there, deaths, death, &import) {
            deaths += 1;
            assert!(deaths < 100, "it never ends");
        }
        assert!(deaths >= 2, "it died {deaths} times");
        assert_eq!(became(&taken(&there.well, &path), Became::Unchanged), 1);
        assert_eq!(told(&there.well, &id()), told(&whole, &id()));
    }
}
