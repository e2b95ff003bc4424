//! A schema of version 1 becomes one of this version, with all that is in it.

use std::time::Duration;

use stepwell::{
    Access, Append, Create, Created, Driver, Error, Filter, Maintain as _, Message, NewEvent,
    Source, Span, Store, Write,
};
use stepwell_postgres::{Address, PostgresOptions, PostgresStore, SCHEMA_VERSION};

use crate::raw::{Raw, make_database, url};

/// Takes back what version 2 added, so that the schema is what version 1 made.
const DOWN: &str = "
DROP TABLE stepwell.policies;
DROP TRIGGER numbered ON stepwell.sessions;
DROP FUNCTION stepwell.number_session();
CREATE FUNCTION stepwell.bear() RETURNS bigint
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    stride CONSTANT bigint := 50000;
    born bigint := nextval('stepwell.births');
BEGIN
    IF born / stride >= (SELECT max(n) FROM stepwell.partitions) THEN
        PERFORM stepwell.grow(born / stride + 1);
    END IF;
    RETURN born;
END $$;
REVOKE EXECUTE ON FUNCTION stepwell.bear() FROM PUBLIC;
ALTER TABLE stepwell.sessions ALTER COLUMN key SET DEFAULT stepwell.bear();
DROP TRIGGER signed ON stepwell.leases;
DROP FUNCTION stepwell.sign_lease();
ALTER TABLE stepwell.leases DROP COLUMN login;
ALTER TABLE stepwell.events DROP COLUMN login, DROP COLUMN copied;
DROP INDEX stepwell.events_facts;
CREATE INDEX events_facts ON stepwell.events (session, kind, seq) WHERE key IS NOT NULL;
ALTER TABLE stepwell.sessions DROP COLUMN system, DROP COLUMN scope,
    DROP COLUMN login;
DROP TABLE stepwell.removed;
ALTER TABLE stepwell.heads DROP COLUMN change;
UPDATE stepwell.meta SET version = 1;
";

/// Columns and indexes, one per line.
const SHAPE: &str = "SELECT count(*) FROM (
    SELECT 1 FROM information_schema.columns WHERE table_schema = 'stepwell'
    UNION ALL SELECT 1 FROM pg_indexes WHERE schemaname = 'stepwell') shape";

fn append(store: &PostgresStore, name: &str, events: Vec<NewEvent>) {
    let append = Append { session: name.parse().unwrap(), epoch: None, expected: None, events };
    store.write(Write::Append(append)).unwrap();
}

fn fill(store: &PostgresStore) {
    for (name, system) in [("a", "langgraph"), ("b", "codex")] {
        let source = Source { system: system.to_owned(), id: name.to_owned(), started_at: None };
        let created = Created {
            driver: Driver::External,
            source: Some(source),
            ..Created::new(name.parse().unwrap(), format!("the task of {name}"))
        };
        let create = Create { created, event_id: None, at: None, claim: None };
        store.write(Write::Create(create)).unwrap();
        append(store, name, (0..300).map(|n| Message::user(format!("{n}")).into()).collect());
    }
}

/// Every event of every session, and what a verification says of it.
fn told(store: &PostgresStore) -> Vec<String> {
    ["a", "b"]
        .into_iter()
        .map(|name| {
            let id = name.parse().unwrap();
            let verdict = store.verify(&id).unwrap();
            assert!(verdict.is_sound(), "{verdict:?}");
            let events = store.events(&id, Span::ALL).unwrap().intact(&id).unwrap();
            serde_json::to_string(&events).unwrap()
        })
        .collect()
}

#[test]
fn a_schema_of_version_1_is_upgraded_and_everything_in_it_is_as_it_was() {
    make_database("old_schema");
    let address = Address::parse(&url("old_schema")).unwrap();
    let store = PostgresStore::open(address.clone()).unwrap();
    fill(&store);
    let before = told(&store);
    drop(store);
    let raw = Raw::to("old_schema");
    let shape = raw.count(SHAPE);
    raw.run(DOWN);
    assert!(raw.count(SHAPE) < shape);

    // Who may not change it is told so, and changes nothing.
    let options = PostgresOptions { access: Access::Read, ..PostgresOptions::default() };
    let error = PostgresStore::open_with(address.clone(), options).unwrap_err();
    assert!(matches!(error, Error::Unsupported { .. }), "{error}");
    assert!(raw.count(SHAPE) < shape);

    // Many may come at once.
    let stores: Vec<PostgresStore> = std::thread::scope(|scope| {
        let open = || PostgresStore::open(address.clone()).unwrap();
        let opening: Vec<_> = (0..3).map(|_| scope.spawn(open)).collect();
        opening.into_iter().map(|opened| opened.join().unwrap()).collect()
    });
    assert_eq!(raw.count(SHAPE), shape);
    assert_eq!(raw.count("SELECT version::bigint FROM stepwell.meta"), i64::from(SCHEMA_VERSION));
    let store = &stores[0];
    assert_eq!(told(store), before);
    let filter = Filter { system: Some("langgraph".to_owned()), ..Filter::default() };
    assert_eq!(store.count(&filter).unwrap().total(), 1, "the system is found in old heads");
    let cursor = store.changes(None, Duration::ZERO).unwrap().cursor;
    append(store, "b", vec![Message::user("after").into()]);
    let found = store.changes(Some(&cursor), Duration::ZERO).unwrap();
    assert_eq!((found.changes.len(), found.gap), (1, false));
    assert!(store.verify(&"b".parse().unwrap()).unwrap().is_sound());
    let created = Created::new("c".parse().unwrap(), "after the upgrade");
    let create = Create { created, event_id: None, at: None, claim: None };
    store.write(Write::Create(create)).unwrap();
    let keys = "SELECT count(DISTINCT key) FROM stepwell.sessions WHERE key > 0";
    assert_eq!(raw.count(keys), 3);
}
