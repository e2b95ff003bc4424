//! Of a damaged session, what can be read is written out, and where it ends is said.

use std::path::Path;

use stepwell::model::{Digest, FileChanged, FileState};
use stepwell::store::Damage;
use stepwell::{Seq, Stepwell};
use stepwell_formats::{Exported, Format, export};

use crate::support::{ARCHIVES, exported, id, imported, log, root, say, subagent, text};

fn change(folder: &Path, sql: &str) {
    let conn = rusqlite::Connection::open(folder.join("stepwell.db")).unwrap();
    assert_eq!(conn.execute(sql, []).unwrap(), 1);
}

/// a, whose fourth event of five is damaged, with a subagent b.
fn damaged(folder: &Path) -> Stepwell {
    let well = Stepwell::open(folder).unwrap();
    say(&mut root(&well, "a"), &["one", "two", "three", "four"]);
    say(&mut subagent(&well, "a", "b"), &["five"]);
    let damage = "UPDATE events SET body = replace(body, 'three', 'THREE') \
         WHERE pos = (SELECT key << 32 | 4 FROM sessions WHERE id = 'a')";
    change(folder, damage);
    well
}

#[test]
fn an_archive_of_a_damaged_session_ends_at_the_damage_and_says_so() {
    let folder = tempfile::tempdir().unwrap();
    let well = damaged(folder.path());
    for form in ARCHIVES {
        let mut archive = Vec::new();
        let Exported { sessions, events, damaged, .. } =
            export(&well, &id("a"), form, &mut archive).unwrap();
        assert_eq!((sessions, events), (2, 3 + 2));
        let [(session, Damage { seq, .. })] = &damaged[..] else { panic!("{damaged:?}") };
        assert_eq!((session, *seq), (&id("a"), Seq::new(4)));
        let there = Stepwell::in_memory();
        let done = imported(&there, archive).unwrap();
        assert_eq!((done.made, done.cut_short), (vec![id("a"), id("b")], vec![id("a")]));
        assert_eq!(log(&there, &id("a")).len(), 3);
    }
}

#[test]
fn pages_of_a_damaged_session_say_where_it_ends() {
    let folder = tempfile::tempdir().unwrap();
    let well = damaged(folder.path());
    for format in [Format::MARKDOWN, Format::HTML] {
        let page = text(&well, "a", format);
        assert!(page.contains("two") && !page.contains("three"), "{page}");
        let note = "The session is damaged at event 4";
        assert_eq!(page.matches(note).count(), 2, "{page}");
        assert!(page.rfind(note) > page.find("two"));
    }
}

#[test]
fn a_session_whose_head_is_damaged_is_written_from_its_events() {
    let folder = tempfile::tempdir().unwrap();
    let well = Stepwell::open(folder.path()).unwrap();
    say(&mut root(&well, "a"), &["one", "two"]);
    say(&mut crate::support::fork(&well, "a", 2, "b"), &["three"]);
    let events = log(&well, &id("b"));
    drop(well);
    change(folder.path(), "UPDATE sessions SET head = '{}' WHERE id = 'b'");
    let well = Stepwell::open(folder.path()).unwrap();
    let there = Stepwell::in_memory();
    imported(&there, exported(&well, "b", Format::JSON)).unwrap();
    assert_eq!(log(&there, &id("b")), events);
    let page = text(&well, "b", Format::MARKDOWN);
    assert!(page.starts_with("# task of b\n") && page.contains("three"), "{page}");
}

#[test]
fn a_session_whose_blob_is_lost_ends_before_the_event_that_names_it() {
    let folder = tempfile::tempdir().unwrap();
    let well = Stepwell::open(folder.path()).unwrap();
    let mut session = root(&well, "a");
    let blob: Digest = well.store().put_blob(b"bytes").unwrap();
    let after = FileState::File { blob, mode: 0o644 };
    let (path, before) = ("a.rs".to_owned(), FileState::Absent);
    session.append(FileChanged { path, before, after, renamed_from: None }).unwrap();
    say(&mut session, &["later"]);
    drop(session);
    change(folder.path(), "UPDATE blobs SET data = x'00'");
    let mut archive = Vec::new();
    let done = export(&well, &id("a"), Format::JSONL, &mut archive).unwrap();
    assert_eq!((done.events, done.damaged[0].1.seq), (1, Seq::new(2)));
    let there = Stepwell::in_memory();
    assert_eq!(imported(&there, archive).unwrap().cut_short, [id("a")]);
}
