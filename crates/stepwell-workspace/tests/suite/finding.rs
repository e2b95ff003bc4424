//! Which workspace and which session a name means.

use stepwell::Remedy;
use stepwell::error::{Action, Listing};
use stepwell::sqlite::Access;
use stepwell::store::STORE_FOLDER;
use stepwell_workspace::{
    Error, ErrorKind, Lies, Notice, Opening, Wanted, Workspace, known_stores, ownership,
};

use crate::machine::{Machine, session, text};

#[test]
fn a_store_is_made_at_the_root_and_found_from_below() {
    let machine = Machine::new();
    machine.folder("project/.git");
    let here = machine.at("project/src/deep").unwrap();
    assert!(here.open_if_present().unwrap().is_none());
    let id = session(&here, "a task");
    assert_eq!(here.place.store, machine.folder("project").join(STORE_FOLDER));
    assert_eq!(text(&machine.folder("project").join(".gitignore")), ".stepwell/\n");
    let (_, found) = machine.at("project").unwrap().open_session("@last", Access::Read).unwrap();
    assert_eq!(found, id);
    assert!(machine.notices().is_empty());
}

#[test]
fn a_session_is_resumed_from_any_folder_of_its_user() {
    let machine = Machine::new();
    machine.write("one/stepwell.toml", "[agent]\nmax_errors = 9\n");
    let id = session(&machine.at("one").unwrap(), "a task");
    let mut two = machine.at("two").unwrap();
    match two.open_session(id.as_str(), Access::Read) {
        Err(Error::NoMatch { lies: Lies::NoStoreHere, .. }) => {}
        other => panic!("{other:?}"),
    }
    session(&two, "another");
    let error = two.open_session(id.as_str(), Access::Read).unwrap_err();
    let store = machine.folder("one").join(STORE_FOLDER);
    assert_eq!(error.remedies(), [Remedy::UseStore(store)]);
    assert_eq!(error.kind(), ErrorKind::Absent);
    known_stores::go_to_session(&mut two, id.as_str()).unwrap();
    assert_eq!(two.place.root, machine.folder("one"));
    assert_eq!(two.config.settings.max_errors.get(), 9);
    let (name, root) = (id.to_string(), machine.folder("one"));
    assert_eq!(machine.notices(), [Notice::SessionElsewhere { name, root }]);
}

#[test]
fn a_store_that_was_named_is_not_left_for_another() {
    let machine = Machine::new();
    let id = session(&machine.at("one").unwrap(), "a task");
    let store = Some(machine.folder("two").join(STORE_FOLDER));
    let mut two = machine.find(Wanted { store, ..machine.wanted("two") }).unwrap();
    assert!(two.open_if_present().is_err());
    known_stores::go_to_session(&mut two, id.as_str()).unwrap();
    assert_eq!(two.place.root, machine.folder("two"));
}

#[test]
fn the_trash_is_named_where_a_session_lies_in_it() {
    let machine = Machine::new();
    let here = machine.at("one").unwrap();
    let id = session(&here, "a task");
    let well = here.open_existing(Access::Write).unwrap();
    // A whole id means its session wherever it lies; the beginning of one does not.
    let name = &id.as_str()[..id.as_str().len() - 1];
    let not_there = here.find_session_in(&well, stepwell::store::query::TrashScope::Trash, name);
    let of = |action| [Remedy::Session(action, id.clone())];
    assert_eq!(not_there.unwrap_err().remedies(), of(Action::Show));
    well.delete(&id).unwrap();
    let gone = here.find_session(&well, name).unwrap_err();
    assert_eq!(gone.remedies(), of(Action::Restore));
    let none = here.find_session(&well, "nothing").unwrap_err();
    assert_eq!(none.remedies(), [Remedy::List(Listing::Sessions)]);
}

#[test]
fn every_store_of_a_user_is_opened_and_a_broken_one_hides_no_other() {
    let machine = Machine::new();
    for project in ["one", "two", "three"] {
        session(&machine.at(project).unwrap(), "a task");
    }
    machine.write("two/.stepwell/stepwell.db", "no database, and longer than nothing");
    std::fs::remove_dir_all(machine.folder("three")).unwrap();
    let here = machine.at("four").unwrap();
    let found = known_stores::open_all(&here, Opening::Read);
    let names: Vec<_> = found.iter().map(|named| named.name.clone()).collect();
    assert_eq!(names, [machine.folder("one").join(STORE_FOLDER)]);
    assert!(matches!(&machine.notices()[..], [Notice::Warning { .. }]));
}

#[test]
fn a_session_is_the_users_own_only_after_they_said_so() {
    let machine = Machine::new();
    let here = machine.at("one").unwrap();
    let id = session(&here, "a task");
    assert!(!ownership::is_own(&here, &id));
    ownership::mark(&here, &id);
    assert!(ownership::is_own(&machine.at("one").unwrap(), &id));
    // Another user of the same machine has said nothing.
    let theirs = stepwell_workspace::Host { state: None, ..machine.host() };
    let notices = stepwell_workspace::Notices::to_nobody();
    let theirs = Workspace::locate(theirs, machine.wanted("one"), notices).unwrap();
    assert!(!ownership::is_own(&theirs, &id));
}

#[test]
fn a_folder_that_is_gone_and_an_address_that_is_none_are_told_apart() {
    let machine = Machine::new();
    let gone = machine.find(Wanted::default()).unwrap_err();
    assert_eq!(gone.kind(), ErrorKind::Absent);
    let store = Some("mysql://host/db".into());
    let error = machine.find(Wanted { store, ..machine.wanted("one") }).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Misspelt);
    assert!(matches!(&error.remedies()[..], [Remedy::Choose(_)]), "{error}");
    // A store that is named in full needs no folder.
    let store = Some(machine.folder("one").join(STORE_FOLDER));
    assert!(machine.find(Wanted { store, ..Wanted::default() }).is_ok());
}
