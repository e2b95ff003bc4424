//! goose's sessions, in all that it keeps them in.

use stepwell::{SessionId, Stepwell};
use stepwell_formats::{Became, Format};

use crate::mirror::{became, said, shown, taken};
use crate::seeds::samples;

fn goose() -> Format {
    "goose".parse().unwrap()
}

fn id(name: &str) -> SessionId {
    name.parse().unwrap()
}

#[test]
fn a_database_gives_each_of_its_sessions_once() {
    let well = Stepwell::in_memory();
    let database = samples(goose()).unwrap().join("sessions");
    let first = taken(&well, &database);
    assert_eq!(became(&first, Became::Imported), 2, "{first:?}");
    let head = well.standing(&id("20260820_1")).unwrap().head;
    assert_eq!(head.task, "Rename module foo to bar");
    assert_eq!((head.provider.as_str(), head.model.as_str()), ("anthropic", "claude-sonnet-4-5"));
    assert_eq!(head.created_at.to_string(), "2026-08-20T11:00:00Z");
    assert_eq!(head.metadata["goose"]["accumulated_cost"], 0.0414);
    let again = taken(&well, &database);
    assert_eq!(became(&again, Became::Unchanged), 2, "{again:?}");
    let files = std::fs::read_dir(&database).unwrap().count();
    assert_eq!(files, 1, "reading left something behind");
}

#[test]
fn what_a_compaction_hid_from_the_agent_is_not_shown() {
    let well = Stepwell::in_memory();
    taken(&well, &samples(goose()).unwrap().join("sessions"));
    let said = said(&shown(&well, &id("20260820_1")));
    assert!(!said.iter().any(|it| it.contains("Rename module")), "{said:#?}");
    assert!(said[0].contains("Renaming."), "{said:#?}");
    assert!(said.last().unwrap().contains("interrupted, outcome unknown"), "{said:#?}");
}

#[test]
fn files_of_lines_and_exports_come_in_as_well() {
    let well = Stepwell::in_memory();
    let folder = samples(goose()).unwrap();
    taken(&well, &folder.join("legacy"));
    assert_eq!(said(&shown(&well, &id("20250610_101500"))), [r#"User: ["text hello"]"#]);
    let export = taken(&well, &folder.join("export_20260820_1.json"));
    assert_eq!(export[0].id, id("20260820_1"));
    assert_eq!(shown(&well, &export[0].id).len(), 1);
}
