//! goose's sessions, in all that it keeps them in.

use std::path::{Path, PathBuf};

use rusqlite::Connection;
use stepwell::{ErrorKind, SessionId, Stepwell};
use stepwell_formats::{Became, DryRun, Error, Format, Found, KnownFiles, Mode, Watcher, take_in};

use crate::mirror::{became, said, shown, taken};
use crate::seeds::{built, files, fixtures};

fn goose() -> Format {
    "goose".parse().unwrap()
}

/// What goose keeps, its database among it.
fn home() -> tempfile::TempDir {
    built(&fixtures(goose()).unwrap())
}

fn id(name: &str) -> SessionId {
    name.parse().unwrap()
}

#[test]
fn a_database_gives_each_of_its_sessions_once() {
    let well = Stepwell::in_memory();
    let home = home();
    let database = home.path().join("sessions");
    let first = taken(&well, &database);
    assert_eq!(became(&first, Became::Imported), 2, "{first:?}");
    let head = well.info(&id("20260506_1")).unwrap().head;
    assert_eq!(head.task, "Print price tags for the counter");
    assert_eq!((head.provider.as_str(), head.model.as_str()), ("openai", "gpt-5-mini"));
    assert_eq!(head.created_at.to_string(), "2026-05-06T04:20:00Z");
    assert_eq!(head.metadata["goose"]["accumulated_cost"], 0.0175);
    let again = taken(&well, &database);
    assert_eq!(became(&again, Became::Unchanged), 2, "{again:?}");
    let files = std::fs::read_dir(&database).unwrap().count();
    assert_eq!(files, 1, "reading left something behind");
}

#[test]
fn what_a_compaction_hid_from_the_agent_is_not_shown() {
    let well = Stepwell::in_memory();
    taken(&well, &home().path().join("sessions"));
    let said = said(&shown(&well, &id("20260506_1")));
    assert!(!said.iter().any(|it| it.contains("Print price tags")), "{said:#?}");
    assert!(said[0].contains("Looking for the printer."), "{said:#?}");
    assert!(said.last().unwrap().contains("interrupted, outcome unknown"), "{said:#?}");
}

#[test]
fn files_of_lines_and_exports_come_in_as_well() {
    let well = Stepwell::in_memory();
    let folder = fixtures(goose()).unwrap();
    taken(&well, &folder.join("legacy"));
    assert_eq!(said(&shown(&well, &id("20250311_064500"))), [r#"User: ["text when do we open?"]"#]);
    let export = taken(&well, &folder.join("export_20260506_1.json"));
    assert_eq!(export[0].id, id("20260506_1"));
    assert_eq!(shown(&well, &export[0].id).len(), 1);
}

#[test]
fn a_file_that_does_not_say_when_it_began_began_with_its_first_message() {
    let folder = tempfile::tempdir().unwrap();
    let lines = r#"{"working_dir":"/w","description":"d"}
{"role":"user","created":1741675500,"content":[{"type":"text","text":"when do we open?"}]}
"#;
    std::fs::write(folder.path().join("20250311_1.jsonl"), lines).unwrap();
    let well = Stepwell::in_memory();
    taken(&well, folder.path());
    let head = well.info(&id("20250311_1")).unwrap().head;
    let times = (head.created_at.to_string(), head.updated_at.to_string());
    assert_eq!(times, ("2025-03-11T06:45:00Z".to_owned(), "2025-03-11T06:45:00Z".to_owned()));
}

/// A database in the midst of a change that is not committed, of which a part is in its file
/// already: `cache_size` is too small to hold it.
fn half_changed(folder: &Path) -> (Connection, PathBuf) {
    let path = folder.join("sessions.db");
    let database = Connection::open(&path).unwrap();
    let sql = std::fs::read_to_string(fixtures(goose()).unwrap().join("sessions/sessions.sql"));
    database.execute_batch(&sql.unwrap()).unwrap();
    let pages = "CREATE TABLE page AS WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL \
                 SELECT i + 1 FROM n WHERE i < 400) SELECT i, hex(zeroblob(1500)) AS x FROM n";
    database.execute_batch(pages).unwrap();
    let change = "PRAGMA cache_size = 2; BEGIN EXCLUSIVE; UPDATE page SET x = hex(zeroblob(1499));\
                  UPDATE messages SET content_json = '[{\"type\":\"text\",\"text\":\"UNCOMMITTED\"}]';\
                  UPDATE page SET x = hex(zeroblob(1498));";
    database.execute_batch(change).unwrap();
    (database, path)
}

/// What lies there as it would if whoever wrote it had been killed now.
fn crashed(from: &Path, to: &Path) -> PathBuf {
    let copy = to.join("sessions.db");
    std::fs::copy(from, &copy).unwrap();
    std::fs::copy(from.with_extension("db-journal"), copy.with_extension("db-journal")).unwrap();
    let bytes = std::fs::read(&copy).unwrap();
    assert!(bytes.windows(11).any(|it| it == b"UNCOMMITTED"), "the change is not in the file yet");
    copy
}

#[test]
fn a_change_that_was_cut_off_is_not_read_and_not_rolled_back_for_goose() {
    let (first, second) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let (writer, path) = half_changed(first.path());
    let path = crashed(&path, second.path());
    drop(writer);
    let before = files(second.path());
    let well = Stepwell::in_memory();
    let taken = taken(&well, &path);
    assert_eq!(became(&taken, Became::Imported), 2, "{taken:?}");
    let said = said(&shown(&well, &id("20260506_1")));
    assert!(said[0].contains("Looking for the printer."), "{said:#?}");
    assert!(!format!("{said:?}").contains("UNCOMMITTED"), "{said:#?}");
    assert_eq!(files(second.path()), before, "something was changed, made or removed");
}

#[test]
fn a_journal_that_names_another_file_does_not_remove_it() {
    let (first, second) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let (writer, path) = half_changed(first.path());
    let path = crashed(&path, second.path());
    drop(writer);
    let precious = second.path().join("precious.txt");
    std::fs::write(&precious, "mine").unwrap();
    // As SQLite ends a journal of several databases: a page's number, the name, its length,
    // its sum, and a mark.
    let name = precious.to_str().unwrap().as_bytes();
    let sum = name.iter().map(|byte| u32::from(*byte)).sum::<u32>();
    let mut end = (1_u32 << 18).to_be_bytes().to_vec();
    end.extend(name);
    end.extend(u32::try_from(name.len()).unwrap().to_be_bytes());
    end.extend(sum.to_be_bytes());
    end.extend([0xd9, 0xd5, 0x05, 0xf9, 0x20, 0xa1, 0x63, 0xd7]);
    let journal = path.with_extension("db-journal");
    let mut bytes = std::fs::read(&journal).unwrap();
    bytes.extend(end);
    std::fs::write(&journal, bytes).unwrap();
    let report = take_in(&Stepwell::in_memory(), Mode::Write, goose(), &path);
    let fault = report.fault.unwrap().to_string();
    assert!(fault.contains("several databases"), "{fault}");
    assert_eq!(std::fs::read_to_string(&precious).unwrap(), "mine");
}

#[test]
fn what_somebody_is_changing_is_waited_for_and_not_called_damaged() {
    let folder = tempfile::tempdir().unwrap();
    let (writer, path) = half_changed(folder.path());
    let well = Stepwell::in_memory();
    let report = take_in(&well, Mode::Write, goose(), &path);
    let fault = report.fault.unwrap();
    assert!(matches!(fault, Error::Locked { .. }), "{fault}");
    assert_eq!(fault.kind(), ErrorKind::Busy);
    assert!(report.sessions.is_empty());
    // Done, it is read.
    writer.execute_batch("COMMIT").unwrap();
    assert_eq!(became(&taken(&well, &path), Became::Imported), 2);
    assert!(format!("{:?}", shown(&well, &id("20260506_1"))).contains("UNCOMMITTED"));
}

#[test]
fn a_rehearsal_says_what_the_imports_then_do() {
    let home = home();
    let export = fixtures(goose()).unwrap().join("export_20260506_1.json");
    let database = home.path().join("sessions/sessions.db");
    let watcher: Watcher = std::rc::Rc::new(|_| {});
    // The export holds less than the database; the one that comes second is laid beside the first.
    for paths in [[&export, &database, &export], [&database, &export, &database]] {
        let well = Stepwell::in_memory();
        for _ in 0..2 {
            let known = KnownFiles::of(&well).unwrap();
            let mut dry_run = DryRun::new(&well, &known);
            let at = |path: &PathBuf| Found { path: path.clone(), format: goose() };
            let looked = paths.map(|path| dry_run.look(&at(path), &watcher).sessions);
            let made = paths.map(|path| take_in(&well, Mode::Write, goose(), path).sessions);
            assert_eq!(looked, made);
        }
    }
}
