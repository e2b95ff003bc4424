use super::*;

fn version(path: &Path) -> u32 {
    let conn = Connection::open(path).unwrap();
    conn.pragma_query_value(None, "user_version", |row| row.get(0)).unwrap()
}

fn has_table(path: &Path, name: &str) -> bool {
    let conn = Connection::open(path).unwrap();
    let sql = "SELECT count(*) FROM sqlite_schema WHERE name = ?1";
    conn.query_row(sql, [name], |row| row.get::<_, u32>(0)).unwrap() == 1
}

/// This version's migrations, followed by later ones.
fn with(later: &[Migration]) -> Vec<Migration> {
    [schema::MIGRATIONS, later].concat()
}

const GOOD: Migration = |conn| conn.execute_batch("CREATE TABLE two (x)");
const BAD: Migration = |conn| conn.execute_batch("CREATE TABLE three (x); NONSENSE");

#[test]
fn an_older_store_is_copied_and_then_upgraded() {
    let folder = tempfile::tempdir().unwrap();
    let path = make(folder.path()).unwrap();
    drop(open_writer(&path, &with(&[GOOD])).unwrap());
    assert_eq!((version(&path), has_table(&path, "two")), (VERSION + 1, true));
    let copy = folder.path().join(format!("stepwell.db.v{VERSION}.bak"));
    assert_eq!((version(&copy), has_table(&copy, "two")), (VERSION, false));
    assert_eq!(mode(&copy), Some(0o600));
    // This version does not know the migration and refuses the store.
    let refused = open_writer(&path, schema::MIGRATIONS).unwrap_err();
    let Error::Newer { found, known, .. } = refused else { panic!("{refused}") };
    assert_eq!((found, known), (VERSION + 1, VERSION));
}

#[test]
fn an_upgrade_that_fails_changes_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let path = make(folder.path()).unwrap();
    let error = open_writer(&path, &with(&[GOOD, BAD])).unwrap_err();
    assert!(error.to_string().contains("while upgrading the store"), "{error}");
    let tables = ["two", "three"].map(|name| has_table(&path, name));
    assert_eq!((version(&path), tables), (VERSION, [false, false]));
    assert!(folder.path().join(format!("stepwell.db.v{VERSION}.bak")).exists());
    drop(open_writer(&path, schema::MIGRATIONS).unwrap());
}

#[test]
fn a_new_store_has_exactly_the_known_objects() {
    let folder = tempfile::tempdir().unwrap();
    let conn = Connection::open(make(folder.path()).unwrap()).unwrap();
    let mut found = conn.prepare("SELECT name FROM sqlite_schema WHERE name NOT LIKE 'sqlite_%'");
    let found = found.as_mut().unwrap().query_map([], |row| row.get(0)).unwrap();
    let mut found: Vec<String> = found.map(Result::unwrap).collect();
    found.sort();
    let mut known: Vec<&str> = schema::OBJECTS.iter().map(|(_, name)| *name).collect();
    known.sort_unstable();
    assert_eq!(found, known);
}

#[test]
fn a_store_with_a_foreign_trigger_or_view_is_not_opened() {
    for (sql, named) in [
        ("CREATE TRIGGER evil AFTER INSERT ON events BEGIN DELETE FROM events; END", "evil"),
        ("CREATE VIEW sly AS SELECT * FROM events", "sly"),
        ("CREATE TABLE more (x)", "more"),
        ("CREATE INDEX slow ON events (body)", "slow"),
        ("CREATE VIRTUAL TABLE inner USING fts5 (x)", "inner"),
    ] {
        let folder = tempfile::tempdir().unwrap();
        let path = make(folder.path()).unwrap();
        Connection::open(&path).unwrap().execute_batch(sql).unwrap();
        for opened in [open_writer(&path, schema::MIGRATIONS), open_reader(&path)] {
            let refused = opened.map(drop).unwrap_err();
            let Error::ForeignObject { name, .. } = &refused else { panic!("{sql}: {refused}") };
            assert_eq!(name, named);
        }
    }
}

#[test]
fn a_foreign_key_in_a_table_of_a_shipped_store_removes_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let path = make(folder.path()).unwrap();
    let shipped = "DROP TABLE removed;
        CREATE TABLE removed (
            change INTEGER PRIMARY KEY REFERENCES leases (session) ON DELETE CASCADE,
            id TEXT NOT NULL
        ) STRICT;";
    Connection::open(&path).unwrap().execute_batch(shipped).unwrap();
    let conn = open_writer(&path, schema::MIGRATIONS).unwrap();
    conn.execute_batch(
        "INSERT INTO leases (session, epoch) VALUES (1, 1);
        INSERT INTO removed VALUES (1, 's-1');
        DELETE FROM leases;",
    )
    .unwrap();
    let left = conn.query_row("SELECT count(*) FROM removed", [], |row| row.get::<_, i64>(0));
    assert_eq!(left.unwrap(), 1);
}

#[test]
fn a_store_with_another_name_elsewhere_is_not_opened() {
    let elsewhere = tempfile::tempdir().unwrap();
    for name in [FILE_NAME, "stepwell.db-wal", "stepwell.db-shm"] {
        let folder = tempfile::tempdir().unwrap();
        let path = make(folder.path()).unwrap();
        // A second name in the store's folder is allowed.
        fs::hard_link(&path, folder.path().join("aside")).unwrap();
        drop(open_reader(&path).unwrap());
        let shared = folder.path().join(name);
        OpenOptions::new().append(true).create(true).open(&shared).unwrap();
        fs::hard_link(&shared, elsewhere.path().join(name)).unwrap();
        let refused = open_writer(&path, schema::MIGRATIONS).map(drop).unwrap_err();
        let Error::Shared { file, .. } = &refused else { panic!("{name}: {refused}") };
        assert_eq!(*file, shared);
        fs::remove_file(elsewhere.path().join(name)).unwrap();
        drop(open_reader(&path).unwrap());
    }
}

#[test]
fn a_store_behind_a_link_is_not_opened() {
    use std::os::unix::fs::symlink;
    let elsewhere = tempfile::tempdir().unwrap();
    let real = make(elsewhere.path()).unwrap();
    for name in ["", FILE_NAME, "stepwell.db-wal", "stepwell.db-shm"] {
        let top = tempfile::tempdir().unwrap();
        let folder = top.path().join(STORE_FOLDER);
        match name {
            "" => symlink(elsewhere.path(), &folder).unwrap(),
            _ => {
                fs::create_dir(&folder).unwrap();
                fs::copy(&real, folder.join(FILE_NAME)).unwrap();
                let _ = fs::remove_file(folder.join(name));
                symlink(&real, folder.join(name)).unwrap();
            }
        }
        let path = folder.join(FILE_NAME);
        let opened = [make(&folder).map(drop), open_reader(&path).map(drop)];
        for refused in opened.into_iter().chain([open_writer(&path, schema::MIGRATIONS).map(drop)])
        {
            let refused = refused.unwrap_err();
            let Error::Link { link, target } = &refused else { panic!("{name}: {refused}") };
            assert_eq!(link, folder.join(name).components().as_path());
            assert!(target.starts_with(elsewhere.path()));
        }
    }
}
