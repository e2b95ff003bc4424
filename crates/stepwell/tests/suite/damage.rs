//! Bad input: truncated, flipped, empty and foreign files, read-only folders, and changed rows.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;

use stepwell::log::Redactor;
use stepwell::model::Digest;
use stepwell::sqlite::{Access, SqliteOptions, SqliteStore};
use stepwell::store::query::{Query, Search};
use stepwell::store::{Maintain as _, Selection, Span};
use stepwell::{
    Created, Error, ErrorKind, Message, Recorded, Seq, SessionId, Status, Stepwell, Store,
};

const SESSIONS: usize = 6;

/// A closed store with a few sessions, and their events.
struct Sound {
    folder: tempfile::TempDir,
    bytes: Vec<u8>,
    events: Vec<(SessionId, Vec<Recorded>)>,
}

fn id(n: usize) -> SessionId {
    format!("session-{n}").parse().unwrap()
}

fn sound() -> Sound {
    let folder = tempfile::tempdir().unwrap();
    let mut events = Vec::new();
    {
        let well = Stepwell::open(folder.path()).unwrap();
        for n in 0..SESSIONS {
            let session = well.create(Created::new(id(n), format!("task {n}"))).unwrap();
            for m in 0..20 {
                session
                    .append(Message::user(format!("message {m} of {n}: {}", "x".repeat(200))))
                    .unwrap();
            }
            session.append(Message::user("y".repeat(70_000))).unwrap();
            let all = session.events(Span::ALL).unwrap().intact(session.id()).unwrap();
            events.push((session.id().clone(), all));
            session.finish(Status::Success, None).unwrap();
        }
        for (id, all) in &mut events {
            *all = well.store().events(id, Span::ALL).unwrap().intact(id).unwrap();
        }
    }
    let bytes = fs::read(folder.path().join("stepwell.db")).unwrap();
    Sound { folder, bytes, events }
}

/// A folder with these bytes as its store.
fn with_bytes(bytes: &[u8]) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("stepwell.db"), bytes).unwrap();
    folder
}

fn read_only(folder: &Path) -> stepwell::Result<SqliteStore> {
    SqliteStore::open_with(folder, SqliteOptions { access: Access::Read, ..Default::default() })
}

/// A seeded generator, good enough to pick positions.
struct Random(u64);

impl Random {
    fn below(&mut self, limit: usize) -> usize {
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        usize::try_from(self.0 >> 33).unwrap() % limit
    }
}

/// Reads everything from a damaged store. Each answer is right or a typed error, and a session that
/// reads as complete is complete. Returns how many sessions could not be read completely.
fn question(bytes: &[u8], sound: &Sound, what: &str) -> usize {
    let folder = with_bytes(bytes);
    let store = match read_only(folder.path()) {
        Ok(store) => store,
        Err(error) => {
            assert!(
                matches!(error.kind(), ErrorKind::Damaged | ErrorKind::Incompatible),
                "{what}: {error:?}"
            );
            return SESSIONS;
        }
    };
    let mut broken = 0;
    let mut unreadable = Vec::new();
    for (id, events) in &sound.events {
        match store.select(id, Selection::Span(Span::ALL)) {
            Ok(slice) => {
                let whole = slice.damage.is_none();
                // A head with a damaged count may hide the end, but then it is marked as damaged.
                let good = slice.events.iter().zip(events).take_while(|(a, b)| a == b).count();
                assert_eq!(good, slice.events.len(), "{what}: {id} reads differently");
                let head_says = store.info(id).map(|s| s.damage.is_some());
                if whole && slice.events.len() != events.len() {
                    assert!(head_says.unwrap_or(true), "{what}: {id} lost its end silently");
                }
                if !whole || slice.events.len() != events.len() {
                    broken += 1;
                }
            }
            Err(error) => {
                let gone = matches!(error, Error::NoSession(_));
                assert!(gone || error.kind() == ErrorKind::Damaged, "{what}: {error:?}");
                unreadable.push(id.clone());
                broken += 1;
            }
        }
    }
    match store.list(&Query::default()) {
        Ok(page) => {
            let listed: Vec<_> = page.sessions.iter().map(|s| &s.head.id).collect();
            let missing = sound.events.iter().any(|(id, _)| !listed.contains(&id));
            if missing {
                let found = store.integrity();
                assert!(
                    found.as_ref().map_or(true, |found| !found.is_empty()),
                    "{what}: a session is missing from the list, and nothing says why"
                );
            }
        }
        Err(error) => assert_eq!(error.kind(), ErrorKind::Damaged, "{what}: {error:?}"),
    }
    broken
}

#[test]
fn a_truncated_store_is_damaged_and_never_lies() {
    let sound = sound();
    assert_eq!(question(&sound.bytes, &sound, "untouched"), 0);
    let mut random = Random(7);
    let length = sound.bytes.len();
    let mut cuts =
        vec![1, 15, 16, 99, 100, 4095, 4096, 4097, length / 2, length - 4096, length - 1];
    cuts.extend((0..30).map(|_| random.below(length)));
    for cut in cuts {
        question(&sound.bytes[..cut], &sound, &format!("cut to {cut} bytes"));
    }
}

#[test]
fn a_flipped_bit_is_found_and_leaves_other_sessions_readable() {
    let sound = sound();
    let mut random = Random(11);
    let mut hit = 0;
    for _ in 0..250 {
        let (byte, bit) = (random.below(sound.bytes.len()), random.below(8));
        let mut bytes = sound.bytes.clone();
        bytes[byte] ^= 1 << bit;
        hit += usize::from(question(&bytes, &sound, &format!("bit {bit} of byte {byte}")) > 0);
    }
    // Most of the file is events: if few flips were noticed, the test would show nothing.
    assert!(hit > 20, "only {hit} flips were noticed");
}

#[test]
fn a_flipped_bit_in_one_body_damages_that_session_from_there_on() {
    let sound = sound();
    let needle = b"message 7 of 2";
    let at = sound.bytes.windows(needle.len()).position(|window| window == needle).unwrap();
    let mut bytes = sound.bytes.clone();
    bytes[at] ^= 1;
    let folder = with_bytes(&bytes);
    let store: Arc<dyn Store> = Arc::new(SqliteStore::open(folder.path()).unwrap());
    let verdict = store.maintain().verify(&id(2)).unwrap();
    // `created` is seq 1, and message 0 is seq 2.
    assert_eq!(verdict.damage.as_ref().unwrap().seq, Seq::new(9));
    assert_eq!(verdict.intact, 8);
    let slice = store.events(&id(2), Span::ALL).unwrap();
    assert_eq!(slice.events, sound.events[2].1[..8]);
    // Only this session is listed as damaged.
    for info in store.list(&Query::default()).unwrap().sessions {
        assert_eq!(info.damage.is_some(), info.head.id == id(2), "{}", info.head.id);
    }
    assert_eq!(store.count(&Default::default()).unwrap().damaged, 1);
    // It accepts no more events; the others do.
    let well = Stepwell::with(store, Default::default());
    let error = well.resume(&id(2)).unwrap_err();
    assert!(error.to_string().contains("session-2 is damaged at seq 9"), "{error}");
    well.resume(&id(3)).unwrap().append(Message::user("on")).unwrap();
    // A fork can start before the damage.
    let fork = well.fork(&id(2), Some(Seq::new(8))).unwrap();
    assert!(well.store().maintain().verify(fork.id()).unwrap().is_sound());
    assert!(well.fork(&id(2), Some(Seq::new(9))).is_err());
    // A repair does not invent what is lost.
    let verdict = well.store().maintain().repair(&id(2)).unwrap();
    assert_eq!(verdict.damage.unwrap().seq, Seq::new(9));
    assert!(well.info(&id(2)).unwrap().damage.is_some());
}

#[test]
fn a_missing_event_is_damage() {
    let sound = sound();
    let key = raw(&sound, "SELECT key FROM sessions WHERE id = 'session-1'");
    for (gone, seq) in [(5, 5), (23, 23)] {
        let copy = with_bytes(&sound.bytes);
        let conn = rusqlite::Connection::open(copy.path().join("stepwell.db")).unwrap();
        conn.execute("DELETE FROM events WHERE pos = ?1", [key << 32 | gone]).unwrap();
        conn.close().unwrap();
        let store = SqliteStore::open(copy.path()).unwrap();
        let store: &dyn Store = &store;
        let damage = store.maintain().verify(&id(1)).unwrap().damage.unwrap();
        assert_eq!((damage.seq, &*damage.what), (Seq::new(seq), "it is missing"));
        let newest = store.events(&id(1), Span::last(100)).unwrap();
        assert_eq!(newest.damage.unwrap().seq, Seq::new(seq));
    }
}

fn raw(sound: &Sound, sql: &str) -> i64 {
    let conn = rusqlite::Connection::open(sound.folder.path().join("stepwell.db")).unwrap();
    conn.query_row(sql, [], |row| row.get(0)).unwrap()
}

#[test]
fn a_forged_cycle_of_subagents_is_deleted_once() {
    let sound = sound();
    let conn = rusqlite::Connection::open(sound.folder.path().join("stepwell.db")).unwrap();
    let sql = "UPDATE sessions SET subagent = 1, parent = CASE id WHEN 'session-1' THEN 'session-2' \
         WHEN 'session-2' THEN 'session-1' ELSE 'session-3' END \
         WHERE id IN ('session-1', 'session-2', 'session-3')";
    assert_eq!(conn.execute(sql, []).unwrap(), 3);
    conn.close().unwrap();
    let store = SqliteStore::open(sound.folder.path()).unwrap();
    let taken = store.trash(&[id(1).into(), id(3).into()]).unwrap().taken;
    assert_eq!(taken, [id(1), id(2), id(3)]);
}

#[test]
fn a_changed_head_is_listed_as_damaged_and_a_repair_rebuilds_it() {
    let sound = sound();
    let conn = rusqlite::Connection::open(sound.folder.path().join("stepwell.db")).unwrap();
    let sql = "UPDATE sessions SET head = replace(head, 'task 4', 'tusk 4') WHERE id = 'session-4'";
    assert_eq!(conn.execute(sql, []).unwrap(), 1);
    conn.execute("UPDATE sessions SET head = 'nonsense' WHERE id = 'session-5'", []).unwrap();
    conn.execute("DELETE FROM lanes", []).unwrap();
    conn.close().unwrap();
    let store = SqliteStore::open(sound.folder.path()).unwrap();
    let store: &dyn Store = &store;
    let damaged: Vec<_> = store
        .list(&Query::default())
        .unwrap()
        .sessions
        .into_iter()
        .filter(|info| info.damage.is_some())
        .map(|info| info.head.id.to_string())
        .collect();
    assert_eq!(damaged, ["session-5", "session-4"]);
    for n in [4, 5] {
        // The events are complete.
        let slice = store.events(&id(n), Span::ALL).unwrap();
        assert_eq!(slice.intact(&id(n)).unwrap(), sound.events[n].1);
        assert!(!store.maintain().verify(&id(n)).unwrap().is_sound());
        assert!(store.maintain().repair(&id(n)).unwrap().is_sound());
        assert!(store.maintain().verify(&id(n)).unwrap().is_sound());
        assert_eq!(store.info(&id(n)).unwrap().head.task, format!("task {n}"));
    }
    assert!(store.list(&Query::default()).unwrap().sessions.iter().all(|s| s.damage.is_none()));
}

#[test]
fn a_lost_search_index_is_rebuilt_from_the_events() {
    let sound = sound();
    let find = |store: &dyn Store| {
        store.search(&Search::new("\"message 3 of 4\""), &Redactor::default()).unwrap().hits
    };
    let before = {
        let store = SqliteStore::open(sound.folder.path()).unwrap();
        let hits = find(&store);
        assert_eq!((hits.len(), &hits[0].session), (1, &id(4)));
        hits
    };
    let conn = rusqlite::Connection::open(sound.folder.path().join("stepwell.db")).unwrap();
    conn.execute("INSERT INTO words (words) VALUES ('delete-all')", []).unwrap();
    conn.execute("DELETE FROM docs", []).unwrap();
    conn.close().unwrap();
    let store = SqliteStore::open(sound.folder.path()).unwrap();
    assert!(find(&store).is_empty());
    store.repair(&id(4)).unwrap();
    assert_eq!(find(&store), before);
    store.rebuild_search().unwrap();
    assert_eq!(find(&store), before);
    assert!(store.integrity().unwrap().is_empty());
}

#[test]
fn files_that_are_not_stores_are_refused_with_their_path() {
    let other = {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("other.db");
        let conn = rusqlite::Connection::open(&path).unwrap();
        conn.execute_batch("CREATE TABLE t (x); INSERT INTO t VALUES (1)").unwrap();
        conn.close().unwrap();
        fs::read(path).unwrap()
    };
    let garbage = vec![0x5a; 10_000];
    let text = b"{\"not\": \"a database\"}".to_vec();
    for (what, bytes, expected) in [
        ("empty", vec![], "the file is empty"),
        ("garbage", garbage, "it is not a database"),
        ("text", text, "it is not a database"),
        ("another program's", other, "it is a database of another program"),
    ] {
        let folder = with_bytes(&bytes);
        for error in
            [SqliteStore::open(folder.path()), read_only(folder.path())].map(Result::unwrap_err)
        {
            assert!(error.to_string().contains(expected), "{what}: {error}");
            assert!(error.to_string().contains("stepwell.db"), "{what}: {error}");
        }
        assert_eq!(
            fs::read(folder.path().join("stepwell.db")).unwrap(),
            bytes,
            "{what} was changed"
        );
    }
    let folder = tempfile::tempdir().unwrap();
    fs::create_dir(folder.path().join("stepwell.db")).unwrap();
    let error = SqliteStore::open(folder.path()).unwrap_err();
    assert!(error.to_string().contains("it is not a file"), "{error}");
}

#[test]
fn a_newer_format_is_refused_and_left_alone() {
    let sound = sound();
    let path = sound.folder.path().join("stepwell.db");
    let conn = rusqlite::Connection::open(&path).unwrap();
    conn.pragma_update(None, "user_version", 99).unwrap();
    conn.close().unwrap();
    let before = fs::read(&path).unwrap();
    let opened = [SqliteStore::open(sound.folder.path()), read_only(sound.folder.path())];
    for error in opened.map(Result::unwrap_err) {
        assert!(error.to_string().contains("has format 99; this version reads up to 1"), "{error}");
        assert_eq!(error.kind(), ErrorKind::Incompatible);
    }
    assert_eq!(fs::read(&path).unwrap(), before);
}

#[test]
fn reading_creates_and_changes_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let error = read_only(&folder.path().join("none")).unwrap_err();
    assert!(matches!(error, Error::NoStore(_)), "{error}");
    assert!(fs::read_dir(folder.path()).unwrap().next().is_none());

    let sound = sound();
    let before = fs::read(sound.folder.path().join("stepwell.db")).unwrap();
    let store = read_only(sound.folder.path()).unwrap();
    assert_eq!(store.list(&Query::default()).unwrap().sessions.len(), SESSIONS);
    let found = store.search(&Search::new("message"), &Redactor::default()).unwrap();
    assert!(found.hits.is_empty() && found.unseen > 0, "an index that was never built: {found:?}");
    let error = store.keep_blobs(&[(Digest::of(b"x"), b"x")]).unwrap_err();
    assert!(matches!(error, Error::ReadOnly { .. }), "{error}");
    drop(store);
    assert_eq!(fs::read(sound.folder.path().join("stepwell.db")).unwrap(), before);
}

#[test]
fn a_new_store_is_private() {
    let folder = tempfile::tempdir().unwrap();
    let place = folder.path().join("deep").join(".stepwell");
    let well = Stepwell::open(&place).unwrap();
    let _session = well.create(well.draft("t")).unwrap();
    let mode = |path: PathBuf| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(place.clone()), 0o700);
    for name in ["stepwell.db", "stepwell.db-wal", "stepwell.db-shm", ".gitignore"] {
        assert_eq!(mode(place.join(name)), 0o600, "{name}");
    }
    let names = fs::read_dir(&place).unwrap().count();
    assert_eq!(names, 4, "a draft was left behind");
}

#[test]
fn a_draft_that_a_dead_process_left_is_swept_after_an_hour() {
    let folder = tempfile::tempdir().unwrap();
    let (old, fresh, other) = ("stepwell.db.new-1-0-wal", "stepwell.db.new-2-0", "notes.new-1");
    let hours_ago = std::time::UNIX_EPOCH + std::time::Duration::from_secs(1_000_000_000);
    for name in [old, fresh, other] {
        let file = fs::File::create(folder.path().join(name)).unwrap();
        if name != fresh {
            file.set_modified(hours_ago).unwrap();
        }
    }
    let _store = SqliteStore::open(folder.path()).unwrap();
    let there = |name: &str| folder.path().join(name).exists();
    assert_eq!((there(old), there(fresh), there(other)), (false, true, true));
}

#[test]
fn threads_that_make_the_same_store_at_once_share_it() {
    let folder = tempfile::tempdir().unwrap();
    let ids: Vec<SessionId> = std::thread::scope(|scope| {
        let make = || {
            let well = Stepwell::open(folder.path()).unwrap();
            let session = well.create(well.draft("t")).unwrap();
            session.id().clone()
        };
        let threads: Vec<_> = (0..8).map(|_| scope.spawn(make)).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    });
    let well = Stepwell::open(folder.path()).unwrap();
    let listed = well.list(&Query::default()).unwrap().sessions;
    assert_eq!(listed.len(), ids.len());
}

/// Permissions do not apply to root, so the test runs itself again as another user.
const AS_NOBODY: &str = "STEPWELL_TEST_READ_ONLY_FOLDER";

#[test]
#[expect(clippy::disallowed_methods, reason = "the test talks to itself across processes")]
fn a_folder_that_cannot_be_written_is_refused_for_writing_and_readable() {
    if let Some(folder) = std::env::var_os(AS_NOBODY) {
        return look_at_read_only_folder(Path::new(&folder));
    }
    let sound = sound();
    let folder = sound.folder.path();
    fs::set_permissions(folder.join("stepwell.db"), fs::Permissions::from_mode(0o444)).unwrap();
    fs::set_permissions(folder, fs::Permissions::from_mode(0o555)).unwrap();
    if rustix::process::geteuid().is_root() {
        let this = std::env::current_exe().unwrap();
        // The other user may not be able to read the test binary's folder: copy it.
        let copy = tempfile::tempdir().unwrap();
        fs::set_permissions(copy.path(), fs::Permissions::from_mode(0o755)).unwrap();
        let binary = copy.path().join("suite");
        fs::copy(this, &binary).unwrap();
        let name = "damage::a_folder_that_cannot_be_written_is_refused_for_writing_and_readable";
        let mut again = Command::new(binary);
        again.args([name, "--exact"]).env(AS_NOBODY, folder).current_dir("/");
        let output = again.uid(65_534).gid(65_534).output().unwrap();
        let text = String::from_utf8_lossy(&output.stdout);
        assert!(output.status.success() && text.contains("1 passed"), "{text}");
    } else {
        look_at_read_only_folder(folder);
    }
    fs::set_permissions(folder, fs::Permissions::from_mode(0o755)).unwrap();
}

fn look_at_read_only_folder(folder: &Path) {
    let error = SqliteStore::open(folder).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Denied, "{error}");
    assert!(error.to_string().contains("stepwell.db: permission denied"), "{error}");
    let store = read_only(folder).unwrap();
    assert_eq!(store.list(&Query::default()).unwrap().sessions.len(), SESSIONS);
    let error = SqliteStore::open(&folder.join("below")).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Denied, "{error}");
}
