//! The durable core: appending, listing, reading, searching, cleaning up.
//!
//! `cargo bench -p stepwell-bench`. bench/README.md has the results.
#![allow(clippy::unwrap_used, reason = "a benchmark that cannot do its work should stop")]

use std::fs::{File, OpenOptions};
use std::io::Write as _;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use stepwell::log::Redactor;
use stepwell::model::{Epoch, StatusChanged, Time};
use stepwell::sessions::{Deps, ResumeLimits};
use stepwell::sqlite::{Access, SqliteOptions, SqliteStore};
use stepwell::store::query::{Filter, Query, Rank, Search};
use stepwell::store::{Append, Create, Span, Write};
use stepwell::upkeep::Policy;
use stepwell::{Created, Lane, Message, NewEvent, SessionId, Status, Stepwell, Store, View};
use stepwell_bench::plot::{self, Series};
use stepwell_bench::{Table, Times, timed};

/// Text of a given length that is neither random nor all the same.
fn prose(bytes: usize, seed: usize) -> String {
    const WORDS: [&str; 16] = [
        "session",
        "the",
        "append",
        "of",
        "an",
        "event",
        "durable",
        "model",
        "calls",
        "tool",
        "result",
        "and",
        "file",
        "src/main.rs",
        "returns",
        "error",
    ];
    let mut text = String::with_capacity(bytes + 16);
    let mut state = seed.wrapping_mul(2_654_435_761).wrapping_add(12_345);
    while text.len() < bytes {
        state =
            state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        text.push_str(WORDS[(state >> 33) % WORDS.len()]);
        text.push_str(if state >> 60 == 0 { "\n" } else { " " });
    }
    text.truncate(bytes);
    text
}

fn folder() -> tempfile::TempDir {
    // In the build folder, which is on a real disk; a temporary folder may be in memory.
    tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap()
}

fn bare_append(file: &mut File, bytes: &[u8]) {
    file.write_all(bytes).unwrap();
    file.sync_data().unwrap();
}

fn bare_file(folder: &Path) -> File {
    OpenOptions::new().create(true).append(true).open(folder.join("bare.log")).unwrap()
}

/// SQLite with one table and no index, as durable as the store: a lower bound for appends on
/// SQLite.
fn bare_table(folder: &Path) -> rusqlite::Connection {
    let table = rusqlite::Connection::open(folder.join("bare.db")).unwrap();
    table.pragma_update(None, "page_size", 2048).unwrap();
    table.pragma_update(None, "journal_mode", "WAL").unwrap();
    table.pragma_update(None, "synchronous", "FULL").unwrap();
    table.execute_batch("CREATE TABLE event (body TEXT NOT NULL)").unwrap();
    table
}

fn bare_insert(table: &rusqlite::Connection, body: &str) {
    let mut insert = table.prepare_cached("INSERT INTO event VALUES (?1)").unwrap();
    assert_eq!(insert.execute([body]).unwrap(), 1);
}

fn append(store: &dyn Store, session: &SessionId, messages: Vec<Message>) {
    let events: Vec<NewEvent> = messages.into_iter().map(Into::into).collect();
    let append = Append {
        session: session.clone(),
        epoch: Some(Epoch::FIRST),
        expected: None,
        events: events.into(),
    };
    store.write(Write::Append(append)).unwrap();
}

fn appending(table: &Table) {
    let folder = folder();
    let well = Stepwell::open(folder.path()).unwrap();
    let body = prose(2_000, 1);
    let mut bare = bare_file(folder.path());
    let session = well.create(well.draft("bench")).unwrap();
    let (ours, reference) = Times::of_both(
        21,
        100,
        || assert!(session.append(Message::assistant(body.clone())).is_ok()),
        || bare_append(&mut bare, body.as_bytes()),
    );
    table.row("append a 2 KB event", &ours, ("write + fdatasync", &reference), "≤ 1.15x");
    let floor = bare_table(folder.path());
    let (least, reference) = Times::of_both(
        21,
        100,
        || bare_insert(&floor, &body),
        || bare_append(&mut bare, body.as_bytes()),
    );
    let what = "a row of 2 KB in SQLite, one table, no index";
    table.row(what, &least, ("write + fdatasync", &reference), "");

    let short = well.create(well.draft("short")).unwrap();
    (0..10).for_each(|_| assert!(short.append(Message::user(body.clone())).is_ok()));
    let long = well.create(well.draft("long")).unwrap();
    for n in 0..100 {
        let messages = (0..100).map(|m| Message::user(prose(2_000, n * 100 + m))).collect();
        append(&**well.store(), long.id(), messages);
    }
    let long = long;
    let (at_long, at_short) = Times::of_both(
        21,
        100,
        || assert!(long.append(Message::user(body.clone())).is_ok()),
        || assert!(short.append(Message::user(body.clone())).is_ok()),
    );
    table.row("append at 10,000 messages", &at_long, ("at 10 messages", &at_short), "≤ 1.1x");
}

fn threads(table: &Table) {
    const EACH: usize = 500;
    let folder = folder();
    let well = Stepwell::open(folder.path()).unwrap();
    let body = prose(2_000, 1);
    let run = |count: usize| {
        let sessions: Vec<_> = (0..count).map(|_| well.create(well.draft("t")).unwrap()).collect();
        timed(|| {
            std::thread::scope(|scope| {
                for session in sessions {
                    let body = &body;
                    scope.spawn(move || {
                        (0..EACH).for_each(|_| {
                            assert!(session.append(Message::user(body.clone())).is_ok());
                        });
                    });
                }
            });
        })
    };
    let (mut one, mut four) = (Vec::new(), Vec::new());
    for _ in 0..5 {
        one.push(run(1));
        four.push(run(4) / 4);
    }
    let (one, four) = (Times::from_samples(one), Times::from_samples(four));
    let gain = one.p50().as_secs_f64() / four.p50().as_secs_f64();
    table.figure(
        "4 threads on 4 sessions",
        &format!("{gain:.2}x the throughput of one"),
        "1 thread",
        "≥ 1.5x",
    );
}

/// A store of this many thousand sessions.
fn many_sessions(folder: &Path, thousands: usize) -> SqliteStore {
    let store = SqliteStore::open(folder).unwrap();
    for chunk in 0..thousands {
        let writes = (0..1_000).map(|n| {
            let id: SessionId = format!("s-{chunk:03}-{n:04}").parse().unwrap();
            let created = Created::new(id, prose(80, chunk * 1_000 + n)).with_agent("build");
            Write::Create(Create { created, event_id: None, at: None, claim: None })
        });
        store.batch(writes.collect()).unwrap();
    }
    store
}

fn listing(table: &Table) {
    list_of(100, "newest 50 of 100,000 sessions", table);
}

fn list_of(thousands: usize, what: &str, table: &Table) {
    let folder = folder();
    let store = many_sessions(folder.path(), thousands);
    let newest = Query { limit: 50, ..Query::default() };
    let raw = rusqlite::Connection::open(folder.path().join("stepwell.db")).unwrap();
    let (list, bare) = Times::of_both(
        11,
        50,
        || assert_eq!(store.list(&newest).unwrap().sessions.len(), 50),
        || {
            let sql = "SELECT head FROM sessions ORDER BY key DESC LIMIT 50";
            let mut statement = raw.prepare_cached(sql).unwrap();
            let heads: Vec<String> =
                statement.query_map([], |row| row.get(0)).unwrap().map(Result::unwrap).collect();
            assert_eq!(heads.len(), 50);
        },
    );
    table.row(what, &list, ("their rows, read only", &bare), "≤ 1 ms");

    let task = Some("no task says this".to_owned());
    let unknown = Query { filter: Filter { task, ..Filter::default() }, ..newest };
    let (scan, bare) = Times::of_both(
        5,
        2,
        || assert_eq!(store.list(&unknown).unwrap().sessions.len(), 0),
        || {
            let sql = "SELECT count(*) FROM sessions WHERE instr(head, 'no task says this') > 0";
            let found: i64 = raw.query_row(sql, [], |row| row.get(0)).unwrap();
            assert_eq!(found, 0);
        },
    );
    table.row("words that no task of them has", &scan, ("SQLite's instr", &bare), "");

    let id: SessionId = "s-050-0500".parse().unwrap();
    let well = Stepwell::with(Arc::new(store), Deps::default());
    let (decide, bare) = Times::of_both(
        11,
        100,
        || drop(well.resume_decision(&id, ResumeLimits::default()).unwrap()),
        || {
            let sql = "SELECT head FROM sessions WHERE id = 's-050-0500'";
            let head: String =
                raw.prepare_cached(sql).unwrap().query_row([], |r| r.get(0)).unwrap();
            assert!(!head.is_empty());
        },
    );
    table.row("resume decision", &decide, ("its row, read only", &bare), "≤ 0.1 ms");
}

fn reading(table: &Table) {
    let folder = folder();
    let id = {
        let well = Stepwell::open(folder.path()).unwrap();
        let session = well.create(well.draft("read")).unwrap();
        for n in 0..100 {
            let messages = (0..100).map(|m| Message::user(prose(1_000, n * 100 + m))).collect();
            append(&**well.store(), session.id(), messages);
        }
        session.id().clone()
    };
    let open = Times::of(40, || {
        let read = SqliteOptions { access: Access::Read, ..SqliteOptions::default() };
        let store = SqliteStore::open_with(folder.path(), read).unwrap();
        let store: &dyn Store = &store;
        store.info(&id).unwrap();
        let last = store.events(&id, Span::last(1_000)).unwrap();
        assert_eq!(last.events.len(), 1_000);
    });
    let raw = rusqlite::Connection::open(folder.path().join("stepwell.db")).unwrap();
    let bodies_in = |raw: &rusqlite::Connection, limit: i64| -> Vec<String> {
        let sql = "SELECT body FROM events ORDER BY pos DESC LIMIT ?1";
        let mut statement = raw.prepare_cached(sql).unwrap();
        statement.query_map([limit], |row| row.get(0)).unwrap().map(Result::unwrap).collect()
    };
    let bodies = |limit: i64| bodies_in(&raw, limit);
    let bare = Times::of(40, || assert_eq!(bodies(1_000).len(), 1_000));
    let what = "open + head + last 1,000 events";
    table.row(what, &open, ("their rows, already in memory", &bare), "≤ 3x");
    let bare = Times::of(40, || {
        let raw = rusqlite::Connection::open(folder.path().join("stepwell.db")).unwrap();
        let sql = "SELECT head FROM sessions WHERE id = ?1";
        let head: String = raw.query_row(sql, [id.as_str()], |row| row.get(0)).unwrap();
        assert!(!head.is_empty());
        assert_eq!(bodies_in(&raw, 1_000).len(), 1_000);
    });
    table.row(what, &open, ("a bare open, its row and their rows", &bare), "≤ 3x");

    let store = SqliteStore::open(folder.path()).unwrap();
    let store: &dyn Store = &store;
    let (view, bare) = Times::of_both(
        11,
        4,
        || {
            let events = store.events(&id, Span::ALL).unwrap().intact(&id).unwrap();
            assert_eq!(View::of(&Lane::main(), events).messages.len(), 10_000);
        },
        || {
            let parsed = bodies(10_000).into_iter().map(|body| {
                let message: Message = serde_json::from_str(&body).unwrap();
                message.parts.len()
            });
            assert_eq!(parsed.sum::<usize>(), 10_000);
        },
    );
    table.row(
        "full view of 10,000 messages of 1 KB",
        &view,
        ("rows + serde_json", &bare),
        "≤ 50 ms",
    );
}

/// A fork shares its parent's log, so its cost does not depend on the length.
fn forking(table: &Table) {
    let folder = folder();
    let well = Stepwell::open(folder.path()).unwrap();
    let session = |messages: usize| {
        let session = well.create(well.draft("fork")).unwrap();
        for n in 0..messages.div_ceil(100) {
            let some = (0..messages.min(100)).map(|m| Message::user(prose(1_000, n * 100 + m)));
            append(&**well.store(), session.id(), some.collect());
        }
        session.id().clone()
    };
    let (short, long) = (session(10), session(10_000));
    let fork = |id: &SessionId| drop(well.fork(id, None).unwrap());
    let (of_long, of_short) = Times::of_both(15, 8, || fork(&long), || fork(&short));
    table.row("fork of 10,000 messages", &of_long, ("of 10 messages", &of_short), "≤ 2x");
}

fn searching(table: &Table) {
    search_in(20, "200,000", table);
}

/// Searches this many sessions of 10,000 messages each.
fn search_in(sessions: usize, all: &str, table: &Table) {
    let folder = folder();
    let store = SqliteStore::open(folder.path()).unwrap();
    let store: &dyn Store = &store;
    let ids: Vec<SessionId> = (0..sessions).map(|n| format!("s-{n}").parse().unwrap()).collect();
    for (n, id) in ids.iter().enumerate() {
        let create = Write::Create(Create {
            created: Created::new(id.clone(), "search"),
            event_id: None,
            at: None,
            claim: Some(stepwell::store::LeaseRequest {
                holder: stepwell::store::Processes::this(&stepwell::store::SystemProcesses),
                ttl: Duration::from_secs(600),
            }),
        });
        store.write(create).unwrap();
        for chunk in 0..10 {
            let message = |m: usize| {
                let rare = if (n, chunk, m % 100) == (7, 3, 42) { "zebrafish" } else { "" };
                Message::user(format!("{} {rare}", prose(300, n * 10_000 + chunk * 1_000 + m)))
            };
            append(store, id, (0..1_000).map(message).collect());
        }
    }
    let indexing = timed(|| store.maintain().catch_up(&|_| {}).unwrap());
    table.figure(
        &format!("index {all} messages of 300 bytes"),
        &format!("{:.1} s", indexing.as_secs_f64()),
        "",
        "",
    );
    let raw = rusqlite::Connection::open(folder.path().join("stepwell.db")).unwrap();
    let bare = Times::of(50, || {
        let sql =
            "SELECT rowid FROM words WHERE words MATCH '\"session\"' ORDER BY rowid DESC LIMIT 20";
        let mut statement = raw.prepare_cached(sql).unwrap();
        assert_eq!(statement.query_map([], |_| Ok(())).unwrap().count(), 20);
    });
    let newest = Times::of(50, || {
        assert_eq!(
            store.search(&Search::new("session durable"), &Redactor::default()).unwrap().hits.len(),
            20
        );
    });
    let what = format!("search newest first in {all}");
    table.row(&what, &newest, ("bare FTS5 rowids", &bare), "≤ 3 ms");
    let ranked = Search { rank: Rank::Relevance, ..Search::new("zebrafish") };
    let rare = Times::of(50, || {
        assert_eq!(store.search(&ranked, &Redactor::default()).unwrap().hits.len(), 10);
    });
    table.row("search a rare word, ranked", &rare, ("bare FTS5 rowids", &bare), "≤ 5 ms");
    let common = Search { rank: Rank::Relevance, ..Search::new("session") };
    let common = Times::of(10, || {
        assert_eq!(store.search(&common, &Redactor::default()).unwrap().hits.len(), 20);
    });
    table.row("search a common word, ranked", &common, ("bare FTS5 rowids", &bare), "≤ 60 ms");
}

/// A million sessions, and a million messages. Filling them takes minutes.
fn million(table: &Table) {
    list_of(1_000, "newest 50 of 1,000,000 sessions", table);
    search_in(100, "1,000,000", table);
}

/// Plots the cost of an append, a view and a list against the length of the history.
fn plotting(table: &Table) {
    const LENGTHS: [usize; 5] = [10, 100, 1_000, 10_000, 100_000];
    let folder = folder();
    let well = Stepwell::open(folder.path()).unwrap();
    let body = prose(1_000, 1);
    let (mut append_cost, mut view_cost, mut list_cost) = (Vec::new(), Vec::new(), Vec::new());
    let session = well.create(well.draft("plot")).unwrap();
    let mut messages = 0;
    for length in LENGTHS {
        while messages < length {
            let some = (length - messages).min(1_000);
            let batch = (0..some).map(|m| Message::user(prose(1_000, messages + m))).collect();
            append(&**well.store(), session.id(), batch);
            messages += some;
        }
        let times = Times::of(50, || assert!(session.append(Message::user(body.clone())).is_ok()));
        append_cost.push((length, times.p50()));
        let times = Times::of(10, || {
            let id = session.id();
            let events = well.store().events(id, Span::ALL).unwrap().intact(id).unwrap();
            assert!(View::of(&Lane::main(), events).messages.len() >= length);
        });
        view_cost.push((length, times.p50()));
    }
    for length in LENGTHS {
        let folder = self::folder();
        let store = match length / 1_000 {
            0 => {
                let store = SqliteStore::open(folder.path()).unwrap();
                let well = Stepwell::with(Arc::new(store), Deps::default());
                (0..length).for_each(|_| drop(well.create(well.draft("plot")).unwrap()));
                Arc::clone(well.store())
            }
            thousands => Arc::new(many_sessions(folder.path(), thousands)) as Arc<dyn Store>,
        };
        let newest = Query { limit: 50, ..Query::default() };
        let times = Times::of(50, || assert!(!store.list(&newest).unwrap().sessions.is_empty()));
        list_cost.push((length, times.p50()));
    }
    let series = [
        Series { name: "read all of it", points: view_cost },
        Series { name: "list the newest 50", points: list_cost },
        Series { name: "append", points: append_cost },
    ];
    let title = "What a session costs as its history grows";
    let across = "messages in the session; sessions in the store";
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/images/cost.svg");
    std::fs::write(&path, plot::svg(title, across, &series)).unwrap();
    for it in &series {
        let (first, last) = (it.points[0].1, it.points[LENGTHS.len() - 1].1);
        let (first, last) = (Times::from_samples([first]), Times::from_samples([last]));
        table.row(&format!("{} at 100,000", it.name), &last, ("at 10", &first), "");
    }
}

/// A store with 1,000 old sessions.
fn with_old_sessions(folder: &Path) -> SqliteStore {
    let store = SqliteStore::open(folder).unwrap();
    let old = Some(Time::EPOCH);
    let writes = (0..1_000).map(|n| {
        let id: SessionId = format!("s-{n:04}").parse().unwrap();
        let created = Created::new(id, "old");
        Write::Create(Create { created, event_id: None, at: old, claim: None })
    });
    store.batch(writes.collect()).unwrap();
    store
}

/// The time of one statement in a store of its own.
fn bare_update(sql: &str) -> Duration {
    let folder = folder();
    drop(with_old_sessions(folder.path()));
    let raw = rusqlite::Connection::open(folder.path().join("stepwell.db")).unwrap();
    raw.pragma_update(None, "synchronous", "FULL").unwrap();
    timed(|| assert_eq!(raw.execute(sql, []).unwrap(), 1_000))
}

fn cleaning(table: &Table) {
    let (mut samples, mut touched, mut moved) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..5 {
        let folder = folder();
        let well = Stepwell::with(Arc::new(with_old_sessions(folder.path())), Deps::default());
        let policy =
            Policy { older_than: Some(Duration::from_secs(7 * 86_400)), ..Policy::default() };
        samples.push(timed(|| {
            let plan = well.plan_cleanup(&policy).unwrap();
            assert_eq!(well.clean_up(&plan).unwrap().taken.len(), 1_000);
        }));
        touched.push(bare_update("UPDATE sessions SET bytes = bytes + 1"));
        // The same change, with the same indexes.
        moved.push(bare_update("UPDATE sessions SET trashed = 1, change = change + 1000"));
    }
    let samples = Times::from_samples(samples);
    let what = "plan + cleanup of 1,000 sessions";
    let touched = Times::from_samples(touched);
    table.row(what, &samples, ("one bare UPDATE of a column without an index", &touched), "");
    let moved = Times::from_samples(moved);
    table.row(what, &samples, ("one bare UPDATE that moves them", &moved), "≤ 4x");
}

fn size(table: &Table) {
    for bytes in [500, 1_000, 2_000, 8_000] {
        let folder = folder();
        let count = 4_000_000 / bytes;
        let store = SqliteStore::open(folder.path()).unwrap();
        let well = Stepwell::with(Arc::new(store), Deps::default());
        let sessions: Vec<_> = (0..4).map(|_| well.create(well.draft("size")).unwrap()).collect();
        for n in 0..count / 10 {
            let messages = (0..10).map(|m| Message::user(prose(bytes, n * 10 + m))).collect();
            append(&**well.store(), sessions[n % 4].id(), messages);
        }
        let last = well.create(well.draft("end")).unwrap();
        last.append(StatusChanged { status: Status::Success, reason: None, error: None }).unwrap();
        drop((sessions, last));
        let path = folder.path().join("stepwell.db");
        drop(well);
        let stored = std::fs::metadata(&path).unwrap().len();
        #[expect(clippy::cast_precision_loss, reason = "a quotient of megabytes")]
        let factor = stored as f64 / (count * bytes) as f64;
        table.figure(
            &format!("bytes on disk, messages of {bytes} bytes"),
            &format!("{factor:.2}x the payload"),
            "the texts alone",
            "≤ 2.2x",
        );
    }
}

fn main() {
    // `cargo test --benches` also runs this, as a check that it works; it measures nothing.
    if !std::env::args().any(|arg| arg == "--bench") {
        return;
    }
    // `cargo bench -p stepwell-bench -- append size` runs only those parts; the ones in `LONG` run
    // only by name.
    type Part = fn(&Table);
    const LONG: [&str; 2] = ["million", "plot"];
    let parts: [(&str, Part); 10] = [
        ("append", appending),
        ("threads", threads),
        ("list", listing),
        ("read", reading),
        ("fork", forking),
        ("search", searching),
        ("cleanup", cleaning),
        ("size", size),
        ("million", million),
        ("plot", plotting),
    ];
    let wanted: Vec<String> =
        std::env::args().skip(1).filter(|arg| !arg.starts_with('-')).collect();
    let table = Table::begin();
    for (name, part) in parts {
        let is_default = wanted.is_empty() && !LONG.contains(&name);
        if is_default || wanted.iter().any(|arg| arg == name) {
            part(&table);
        }
    }
}
