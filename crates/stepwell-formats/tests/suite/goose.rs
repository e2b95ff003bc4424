//! goose's sessions, in all that it keeps them in.

use stepwell::{SessionId, Stepwell};
use stepwell_formats::{Became, Format};

use crate::mirror::{became, said, shown, taken};
use crate::seeds::{built, fixtures};

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
    let head = well.standing(&id("20260506_1")).unwrap().head;
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
    let head = well.standing(&id("20250311_1")).unwrap().head;
    let times = (head.created_at.to_string(), head.updated_at.to_string());
    assert_eq!(times, ("2025-03-11T06:45:00Z".to_owned(), "2025-03-11T06:45:00Z".to_owned()));
}
