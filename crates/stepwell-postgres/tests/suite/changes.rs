//! The change feed, where a server's transactions overlap, and where a database is another one.

use std::process::{Command, Stdio};

use stepwell::model::Edited;
use stepwell::store::changes::{ChangeCursor, SessionChange, Wait};
use stepwell::store::query::{Filter, Query};
use stepwell::store::{Append, Create, Maintain as _, Order, Write};
use stepwell::{Created, SessionId, Store};
use stepwell_postgres::{Address, PostgresStore};

use crate::raw::{Raw, make_database, url};
use crate::servers::{fresh, server};

fn create(store: &dyn Store, name: &str) {
    let created = Created::new(name.parse().unwrap(), "t");
    let create = Create { created, event_id: None, at: None, claim: None };
    store.write(Write::Create(create)).unwrap();
}

fn edit(store: &dyn Store, name: &str) {
    let (session, events) = (name.parse().unwrap(), vec![Edited::default().into()]);
    store
        .write(Write::Append(Append {
            session,
            epoch: None,
            expected: None,
            events: events.into(),
        }))
        .unwrap();
}

fn now(store: &dyn Store) -> ChangeCursor {
    store.changes(None, Wait::NONE).unwrap().cursor
}

fn since(store: &dyn Store, cursor: &mut ChangeCursor) -> Vec<String> {
    let found = store.changes(Some(cursor), Wait::NONE).unwrap();
    assert!(!found.gap);
    *cursor = found.cursor;
    let name = |change: SessionChange| change.session.to_string();
    found.changes.into_iter().map(name).collect()
}

#[test]
fn a_transaction_that_goes_on_holds_nobody_up_and_is_told_of_when_it_ends() {
    let address = fresh(&server().url());
    let store = PostgresStore::open(address.clone()).unwrap();
    ["a", "b"].into_iter().for_each(|name| create(&store, name));
    let mut cursor = now(&store);
    let slow = Raw::to("postgres");
    slow.run(&format!(
        "BEGIN; UPDATE stepwell.heads h SET change = pg_current_xact_id() FROM stepwell.sessions s \
         JOIN stepwell.namespaces n ON n.id = s.namespace \
         WHERE s.key = h.session AND s.id = 'a' AND n.name = '{}'",
        address.namespace()
    ));
    // Its transaction has a greater number, and is kept first.
    edit(&store, "b");
    assert_eq!(since(&store, &mut cursor), ["b"]);
    assert!(since(&store, &mut cursor).is_empty());
    slow.run("COMMIT");
    assert_eq!(since(&store, &mut cursor), ["a"]);
    assert!(since(&store, &mut cursor).is_empty());
}

#[test]
fn a_team_follows_its_own_changes_and_learns_nothing_of_others() {
    let owner = fresh(&server().url());
    let others = PostgresStore::open(owner.clone()).unwrap();
    let (_, address) = crate::tenants::member(&format!("{}-follows", owner.namespace()));
    let ours = PostgresStore::open(address).unwrap();
    create(&ours, "a");
    let mut cursor = now(&ours);
    create(&others, "b");
    assert!(since(&ours, &mut cursor).is_empty());
    edit(&ours, "a");
    assert_eq!(since(&ours, &mut cursor), ["a"]);
    ours.purge(&["a".parse::<SessionId>().unwrap().into()]).unwrap();
    assert_eq!(since(&ours, &mut cursor), ["a"]);
}

#[test]
fn a_cursor_means_nothing_in_a_database_that_was_restored_from_a_dump() {
    let database = "restored_from_a_dump";
    make_database("dumped");
    make_database(database);
    let store = PostgresStore::open(Address::parse(&url("dumped")).unwrap()).unwrap();
    create(&store, "a");
    let cursor = now(&store);
    edit(&store, "a");
    drop(store);
    let mut dump =
        Command::new("pg_dump").arg(url("dumped")).stdout(Stdio::piped()).spawn().unwrap();
    let output = dump.stdout.take().unwrap();
    let restored = Command::new("psql")
        .args(["-X", "-q", "-v", "ON_ERROR_STOP=1", "-d", &url(database)])
        .stdin(output)
        .stdout(Stdio::null())
        .status();
    assert!(restored.unwrap().success() && dump.wait().unwrap().success());
    let store = PostgresStore::open(Address::parse(&url(database)).unwrap()).unwrap();
    let found = store.changes(Some(&cursor), Wait::NONE).unwrap();
    assert!(found.gap, "{found:?}");
    let mut cursor = found.cursor;
    edit(&store, "a");
    assert_eq!(since(&store, &mut cursor), ["a"]);
    let query = Query { filter: Filter::default(), order: Order::Oldest, ..Query::default() };
    assert_eq!(store.list(&query).unwrap().sessions.len(), 1);
}

#[test]
fn who_was_away_while_very_many_sessions_were_purged_lists_anew() {
    let address = fresh(&server().url());
    let store = PostgresStore::open(address.clone()).unwrap();
    ["a", "b"].into_iter().for_each(|name| create(&store, name));
    let long_ago = now(&store);
    Raw::to("postgres").run(&format!(
        "INSERT INTO stepwell.removed (namespace, id) SELECT n.id, 'gone-' || g \
         FROM stepwell.namespaces n, generate_series(1, 10010) g WHERE n.name = '{}'",
        address.namespace()
    ));
    let gone = |name: &str| store.purge(&[name.parse::<SessionId>().unwrap().into()]).unwrap();
    gone("a");
    let mut cursor = store.changes(Some(&long_ago), Wait::NONE).unwrap().cursor;
    assert!(store.changes(Some(&long_ago), Wait::NONE).unwrap().gap);
    gone("b");
    assert_eq!(since(&store, &mut cursor), ["b"]);
}
