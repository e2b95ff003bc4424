//! An import with nothing new looks at the size and the times of a file, and not into it.

use std::fmt::Write as _;
use std::fs::{File, FileTimes};
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use stepwell::Stepwell;
use stepwell::clock::{Clock, SystemClock};
use stepwell::model::Time;
use stepwell::sessions::Deps;
use stepwell::sqlite::SqliteStore;
use stepwell_formats::{Became, ImportedSession, KnownFiles, Mode, Watcher, take_in};

#[cfg(target_os = "linux")]
use crate::seeds::{built, fixtures};

/// A clock that is an hour ahead: files that were written just now have rested.
#[derive(Debug)]
struct Later;

impl Clock for Later {
    fn now(&self) -> Time {
        SystemClock.now().plus(Duration::from_secs(3_600))
    }
}

fn later() -> Stepwell {
    let deps = Deps { clock: Arc::new(Later), ..Deps::default() };
    Stepwell::with(Arc::new(SqliteStore::in_memory().unwrap()), deps)
}

const AT: &str = "2026-08-20T09:00:00.000Z";

/// The name of a session.
fn uuid(n: usize) -> String {
    format!("{n:08x}-1d2c-4b3a-8f7e-0123456789ab")
}

fn codex(n: usize, lines: usize) -> String {
    let id = uuid(n);
    let mut text = format!(
        r#"{{"timestamp":"{AT}","type":"session_meta","payload":{{"id":"{id}","timestamp":"{AT}","cwd":"/shop","originator":"codex_cli_rs","cli_version":"0.63.0","model_provider":"openai"}}}}"#
    );
    for line in 0..lines {
        let (role, kind) = if line % 2 == 0 { ("user", "input") } else { ("assistant", "output") };
        let _ = write!(
            text,
            "\n{{\"timestamp\":\"{AT}\",\"type\":\"response_item\",\"payload\":{{\"type\":\"message\",\"role\":\"{role}\",\"content\":[{{\"type\":\"{kind}_text\",\"text\":\"go on {line}\"}}]}}}}"
        );
    }
    text + "\n"
}

fn claude(n: usize, lines: usize) -> String {
    let (session, mut parent) = (uuid(n), "null".to_owned());
    let mut text = String::new();
    for line in 0..lines {
        let own = uuid(1_000_000 * (n + 1) + line);
        let _ = writeln!(
            text,
            r#"{{"parentUuid":{parent},"isSidechain":false,"cwd":"/shop","sessionId":"{session}","version":"2.1.208","type":"user","message":{{"role":"user","content":"go on {line}"}},"uuid":"{own}","timestamp":"{AT}"}}"#
        );
        parent = format!("\"{own}\"");
    }
    text
}

fn codex_path(folder: &Path, n: usize) -> PathBuf {
    folder.join(format!("rollout-2026-08-20T09-00-00-{}.jsonl", uuid(n)))
}

fn claude_path(folder: &Path, n: usize) -> PathBuf {
    folder.join(format!("{}.jsonl", uuid(n)))
}

/// Imports what is in a folder, as the command does.
fn import(well: &Stepwell, folder: &Path) -> Vec<ImportedSession> {
    let known = KnownFiles::of(well).unwrap();
    let watcher: Watcher = Rc::new(|_| {});
    let searched = known.search(folder, None).unwrap();
    assert!(searched.faults.is_empty(), "{:?}", searched.faults);
    let mut all = Vec::new();
    for found in searched.found {
        let report = known.take_in(well, Mode::Write, &found, &watcher);
        assert!(report.fault.is_none(), "{:?}", report.fault);
        all.extend(report.sessions);
    }
    all
}

fn became(sessions: &[ImportedSession]) -> Vec<Became> {
    sessions.iter().map(|it| it.became).collect()
}

/// How many bytes this thread has read.
#[cfg(target_os = "linux")]
fn bytes_read() -> u64 {
    let counted = std::fs::read_to_string("/proc/thread-self/io").unwrap();
    let read = counted.lines().find_map(|line| line.strip_prefix("rchar: ")).unwrap();
    read.parse().unwrap()
}

#[cfg(target_os = "linux")]
#[test]
fn a_file_that_looks_as_it_did_is_not_opened_again() {
    let folder = tempfile::tempdir().unwrap();
    for n in 0..4 {
        std::fs::write(codex_path(folder.path(), n), codex(n, 200)).unwrap();
        std::fs::write(claude_path(folder.path(), n + 10), claude(n + 10, 200)).unwrap();
    }
    let well = later();
    let start = bytes_read();
    assert_eq!(became(&import(&well, folder.path())), [Became::Imported; 8]);
    let first = bytes_read() - start;
    let again = bytes_read();
    assert_eq!(became(&import(&well, folder.path())), [Became::Unchanged; 8]);
    let second = bytes_read() - again;
    // What is counted here is the count itself.
    assert!(second < 1_000 && first > 100_000, "{second} bytes after {first}");
}

#[test]
fn a_file_that_grew_is_read_and_the_others_are_not() {
    let folder = tempfile::tempdir().unwrap();
    for n in 0..3 {
        std::fs::write(codex_path(folder.path(), n), codex(n, 4)).unwrap();
    }
    let well = later();
    import(&well, folder.path());
    std::fs::write(codex_path(folder.path(), 1), codex(1, 6)).unwrap();
    let found = became(&import(&well, folder.path()));
    assert_eq!(found, [Became::Unchanged, Became::Updated, Became::Unchanged]);
    assert_eq!(became(&import(&well, folder.path())), [Became::Unchanged; 3]);
}

#[test]
fn a_file_that_had_not_rested_is_read_again_though_it_looks_the_same() {
    let folder = tempfile::tempdir().unwrap();
    let path = codex_path(folder.path(), 1);
    std::fs::write(&path, codex(1, 4)).unwrap();
    let before = path.metadata().unwrap().modified().unwrap();
    let well = Stepwell::in_memory();
    assert_eq!(became(&import(&well, folder.path())), [Became::Imported]);
    std::fs::write(&path, codex(1, 4).replace("go on 3", "come on")).unwrap();
    let file = File::options().write(true).open(&path).unwrap();
    file.set_times(FileTimes::new().set_modified(before)).unwrap();
    assert_eq!(became(&import(&well, folder.path())), [Became::Updated]);
}

#[test]
fn a_subagent_that_is_new_beside_a_known_transcript_is_read() {
    let folder = tempfile::tempdir().unwrap();
    let main = claude_path(folder.path(), 1);
    std::fs::write(&main, claude(1, 4)).unwrap();
    let well = later();
    let subagents = main.with_extension("").join("subagents");
    std::fs::create_dir_all(&subagents).unwrap();
    let agent = |name: &str, lines| {
        let text = claude(1, lines).replace(
            "\"isSidechain\":false",
            &format!("\"isSidechain\":true,\"agentId\":\"{name}\""),
        );
        std::fs::write(subagents.join(format!("agent-{name}.jsonl")), text).unwrap();
    };
    agent("a1", 2);
    assert_eq!(became(&import(&well, &main)), [Became::Imported; 2]);
    assert_eq!(became(&import(&well, &main)), [Became::Unchanged; 2]);
    agent("b2", 2);
    let found = [Became::Unchanged, Became::Unchanged, Became::Imported];
    assert_eq!(became(&import(&well, folder.path())), found);
    agent("a1", 3);
    let found = [Became::Unchanged, Became::Updated, Became::Unchanged];
    assert_eq!(became(&import(&well, folder.path())), found);
    // A subagent leads to the session that started it.
    let found = import(&well, &subagents.join("agent-b2.jsonl"));
    assert_eq!(became(&found), [Became::Unchanged; 3]);
}

#[test]
fn a_known_session_that_was_purged_comes_back() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(codex_path(folder.path(), 1), codex(1, 4)).unwrap();
    let well = later();
    let id = import(&well, folder.path()).remove(0).id;
    well.purge(&id).unwrap();
    assert_eq!(became(&import(&well, folder.path())), [Became::Imported]);
}

/// A database with long rows, and statements.
#[cfg(target_os = "linux")]
struct Database {
    system: &'static str,
    name: &'static str,
    lengthen: &'static str,
    /// Adds a row to one session.
    add: &'static str,
    /// Changes what one session says, in rows that are there.
    edit: &'static str,
}

#[cfg(target_os = "linux")]
const DATABASES: [Database; 4] = [
    Database {
        system: "goose",
        name: "sessions/sessions.db",
        lengthen: "UPDATE messages SET metadata_json = json_object('pad', hex(zeroblob(200000)))",
        add: "INSERT INTO messages (session_id, role, content_json, created_timestamp) VALUES \
              ('20260506_2', 'user', '[{\"type\": \"text\", \"text\": \"one more\"}]', 1778042000)",
        edit: "UPDATE messages SET content_json = '[{\"type\": \"text\", \"text\": \"two more\"}]' \
               WHERE id = (SELECT max(id) FROM messages)",
    },
    Database {
        system: "openai",
        name: "agents.db",
        lengthen: "UPDATE agent_messages SET message_data = \
                   json_set(message_data, '$.pad', hex(zeroblob(200000)))",
        add: "INSERT INTO agent_messages (session_id, message_data) VALUES \
              ('user-124', '{\"role\": \"user\", \"content\": \"one more\"}')",
        edit: "UPDATE agent_messages SET message_data = \
               '{\"role\": \"user\", \"content\": \"two more\"}' \
               WHERE id = (SELECT max(id) FROM agent_messages)",
    },
    Database {
        system: "adk",
        name: "sessions.db",
        lengthen: "INSERT INTO sessions SELECT app_name, user_id, 's0', state, 1, 1 FROM sessions; \
                   UPDATE events SET event_data = \
                   json_set(event_data, '$.pad', hex(zeroblob(200000)))",
        add: "INSERT INTO events SELECT 'more', app_name, user_id, 's0', '', timestamp, event_data \
              FROM events LIMIT 1",
        edit: "UPDATE events SET event_data = \
               json_set(event_data, '$.content.parts[0].text', 'two more') WHERE id = 'more'",
    },
    Database {
        system: "langgraph",
        name: "checkpoints.db",
        lengthen: "UPDATE checkpoints SET metadata = json_object('pad', hex(zeroblob(200000)))",
        add: "INSERT INTO checkpoints SELECT thread_id, checkpoint_ns, 'z', checkpoint_id, type, \
              checkpoint, '{\"step\": 99}' FROM checkpoints WHERE thread_id = 'two' \
              ORDER BY checkpoint_id DESC LIMIT 1",
        edit: "UPDATE checkpoints SET checkpoint = \
               unhex(replace(hex(checkpoint), hex('sunny'), hex('rainy'))) WHERE thread_id = 'two'",
    },
];

#[cfg(target_os = "linux")]
impl Database {
    fn in_folder(&self) -> (tempfile::TempDir, PathBuf) {
        let folder = built(&fixtures(self.system.parse().unwrap()).unwrap());
        let path = folder.path().join(self.name);
        (folder, path)
    }

    /// Takes it in. The answer is what became of its sessions, those that changed first, and how
    /// many bytes were read.
    fn take_in(&self, well: &Stepwell, path: &Path) -> (Vec<Became>, u64) {
        let start = bytes_read();
        let report = take_in(well, Mode::Write, self.system.parse().unwrap(), path);
        let read = bytes_read() - start;
        assert!(report.fault.is_none(), "{}: {:?}", self.system, report.fault);
        let mut found = became(&report.sessions);
        found.sort_by_key(|it| *it == Became::Unchanged);
        (found, read)
    }
}

#[cfg(target_os = "linux")]
fn change(path: &Path, sql: &str) {
    rusqlite::Connection::open(path).unwrap().execute_batch(sql).unwrap();
}

#[cfg(target_os = "linux")]
const ONE_UPDATED: [Became; 2] = [Became::Updated, Became::Unchanged];

#[cfg(target_os = "linux")]
#[test]
fn a_database_that_looks_as_it_did_is_not_read_again() {
    for database in DATABASES {
        let (system, well) = (database.system, later());
        let (_folder, path) = database.in_folder();
        change(&path, database.lengthen);
        let (found, first) = database.take_in(&well, &path);
        assert_eq!(found, [Became::Imported; 2], "{system}");
        let again = || {
            let (found, read) = database.take_in(&well, &path);
            assert_eq!(found, [Became::Unchanged; 2], "{system}");
            assert!(first > 500_000 && read < first / 10, "{system}: {read} bytes after {first}");
        };
        again();
        for sql in [database.add, database.edit] {
            change(&path, sql);
            assert_eq!(database.take_in(&well, &path).0, ONE_UPDATED, "{system}: {sql}");
            again();
        }
        // Rows that say the same lie elsewhere.
        change(&path, "VACUUM");
        assert_eq!(database.take_in(&well, &path).0, [Became::Unchanged; 2], "{system}");
        again();
    }
}

#[cfg(target_os = "linux")]
#[test]
fn what_is_only_in_the_log_of_a_database_is_read() {
    for database in DATABASES {
        let (system, well) = (database.system, later());
        let (_folder, path) = database.in_folder();
        let writer = rusqlite::Connection::open(&path).unwrap();
        writer.execute_batch("PRAGMA journal_mode = wal").unwrap();
        writer.execute_batch(database.lengthen).unwrap();
        assert_eq!(database.take_in(&well, &path).0, [Became::Imported; 2], "{system}");
        assert_eq!(database.take_in(&well, &path).0, [Became::Unchanged; 2], "{system}");
        for sql in [database.add, database.edit] {
            let before = path.metadata().unwrap().modified().unwrap();
            writer.execute_batch(sql).unwrap();
            assert_eq!(path.metadata().unwrap().modified().unwrap(), before, "{system}");
            assert_eq!(database.take_in(&well, &path).0, ONE_UPDATED, "{system}: {sql}");
        }
    }
}

#[cfg(target_os = "linux")]
#[test]
fn a_session_that_was_purged_comes_back_from_a_database_that_looks_as_it_did() {
    for database in DATABASES {
        let (system, well) = (database.system, later());
        let (_folder, path) = database.in_folder();
        database.take_in(&well, &path);
        let all = well.sessions(stepwell::store::query::Query::default());
        for id in all.map(|info| info.unwrap().head.id).collect::<Vec<_>>() {
            well.purge(&id).unwrap();
            let found = database.take_in(&well, &path).0;
            assert_eq!(found.first(), Some(&Became::Imported), "{system}: {id}");
        }
    }
}

#[cfg(target_os = "linux")]
#[test]
fn a_database_that_had_not_rested_is_read_again() {
    let [goose, ..] = DATABASES;
    let (_folder, path) = goose.in_folder();
    let well = Stepwell::in_memory();
    change(&path, goose.add);
    assert_eq!(goose.take_in(&well, &path).0, [Became::Imported; 2]);
    let before = path.metadata().unwrap().modified().unwrap();
    change(&path, goose.edit);
    let file = File::options().write(true).open(&path).unwrap();
    file.set_times(FileTimes::new().set_modified(before)).unwrap();
    assert_eq!(goose.take_in(&well, &path).0, ONE_UPDATED);
}
