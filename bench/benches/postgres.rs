//! The team's store beside the bare driver: appends, tails, lists, and four million events.
//!
//! `cargo bench -p stepwell-bench --bench postgres -- append tail list`; `append 64` is that of 64
//! clients alone, and `million` takes some minutes. The server is started in a scratch folder and flushes its commits. The
//! figures that were seen are in bench/README.md.
#![allow(clippy::unwrap_used, reason = "a benchmark that cannot do its work should stop")]

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use stepwell::clock::{Clock as _, SystemClock};
use stepwell::model::Epoch;
use stepwell::store::query::Query;
use stepwell::store::{Append, Create, LEASE_TTL, Processes, Span, SystemProcesses, Write};
use stepwell::{Created, Message, NewEvent, SessionId, Store};
use stepwell_bench::{Table, Times};
use stepwell_cluster::{Disk, Server};
use stepwell_postgres::{Address, PostgresStore};
use tokio_postgres::NoTls;
use tokio_postgres::types::ToSql;

/// How long one turn of appends lasts.
const TURN: Duration = Duration::from_secs(2);

/// How many turns each side gets.
const TURNS: usize = 5;

fn store(server: &Server, namespace: &str, connections: usize) -> PostgresStore {
    let url = format!("{}?namespace={namespace}&connections={connections}", server.url());
    PostgresStore::open(Address::parse(&url).unwrap()).unwrap()
}

/// The default number of connections of a store.
const USUAL: usize = 16;

fn as_usual(server: &Server) -> PostgresStore {
    let url = format!("{}?namespace=default", server.url());
    PostgresStore::open(Address::parse(&url).unwrap()).unwrap()
}

fn session(store: &dyn Store, name: &str) -> SessionId {
    let id: SessionId = name.parse().unwrap();
    let claim =
        stepwell::store::LeaseRequest { holder: SystemProcesses.this(), ttl: LEASE_TTL * 1000 };
    let created = Created::new(id.clone(), "bench");
    let create = Create { created, event_id: None, at: None, claim: Some(claim) };
    store.write(Write::Create(create)).unwrap();
    id
}

fn append(store: &dyn Store, session: &SessionId, events: Vec<NewEvent>) {
    let (session, epoch) = (session.clone(), Some(Epoch::FIRST));
    store
        .write(Write::Append(Append { session, epoch, expected: None, events: events.into() }))
        .unwrap();
}

fn message(n: u64, bytes: usize) -> NewEvent {
    Message::assistant(format!("{n} {}", "word ".repeat(bytes / 5))).into()
}

/// Appends per second of this many threads, each with its own session.
fn ours(store: &dyn Store, sessions: &[SessionId]) -> f64 {
    let (done, stop) = (AtomicU64::new(0), AtomicBool::new(false));
    std::thread::scope(|scope| {
        for id in sessions {
            scope.spawn(|| {
                // The events exist in advance, as the bare driver's rows do.
                let ready = message(1, 2_000);
                while !stop.load(Ordering::Relaxed) {
                    append(store, id, vec![ready.clone()]);
                    done.fetch_add(1, Ordering::Relaxed);
                }
            });
        }
        stop_after_turn(&stop);
    });
    rate(&done)
}

#[expect(clippy::disallowed_methods, reason = "a turn lasts for so long")]
fn stop_after_turn(stop: &AtomicBool) {
    std::thread::sleep(TURN);
    stop.store(true, Ordering::Relaxed);
}

#[expect(clippy::cast_precision_loss, reason = "a count of a few thousand")]
fn rate(done: &AtomicU64) -> f64 {
    done.load(Ordering::Relaxed) as f64 / TURN.as_secs_f64()
}

/// The same rows with the driver alone: one prepared statement on each connection. It moves the
/// same columns that have an index, and to values that come in the same order: sessions are listed
/// by the time of their last change, so all of them write to the end of that index.
const BARE: &str = "WITH moved AS (UPDATE stepwell.heads SET version = version + 1, \
     change = pg_current_xact_id(), unindexed = true, bytes = bytes + 2000, seq = seq + 1, updated = $12, status = $3, \
     cost = cost, steps = steps, chain = $4, sum = $5, model = $6, lane = $7, head = $8 \
     WHERE namespace = 1 AND session = $1 AND seq = $2 AND fence = 1 RETURNING seq) \
     INSERT INTO stepwell.events (session, seq, namespace, at, version, spilled, kind, chain, mark, \
     body) SELECT $1, seq, 1, $12, 1, false, $9, $4, $10, $11 FROM moved RETURNING seq";

/// Connections of the bare driver.
struct Bare {
    runtime: tokio::runtime::Runtime,
    clients: Vec<Arc<Client>>,
}

impl Bare {
    fn new(server: &Server, store: &dyn Store, sessions: &[SessionId]) -> Self {
        let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
        let mut clients = Vec::new();
        for id in sessions {
            let seq = store.info(id).unwrap().head.seq.get();
            let sql = format!("SELECT max(key) FROM stepwell.sessions WHERE id = '{id}'");
            let key: i64 = server.sql(&sql).parse().unwrap();
            let (client, statement) = runtime.block_on(async {
                let (client, connection) =
                    tokio_postgres::connect(&server.url(), NoTls).await.unwrap();
                tokio::spawn(connection);
                let statement = client.prepare(BARE).await.unwrap();
                (client, statement)
            });
            clients.push(Arc::new(Client { client, statement, key, seq: AtomicU64::new(seq) }));
        }
        Self { runtime, clients }
    }

    /// Appends per second of this many threads, each of which waits for its answers as a store's
    /// callers do.
    fn by_threads(&self) -> f64 {
        let (done, stop) = (AtomicU64::new(0), AtomicBool::new(false));
        std::thread::scope(|scope| {
            for client in &self.clients {
                scope.spawn(|| self.runtime.handle().block_on(client.append(&done, &stop)));
            }
            stop_after_turn(&stop);
        });
        rate(&done)
    }

    /// The same from tasks of the runtime, which a store's callers never are.
    fn by_tasks(&self) -> f64 {
        let (done, stop) = (Arc::new(AtomicU64::new(0)), Arc::new(AtomicBool::new(false)));
        let spawn = |client: &Arc<Client>| {
            let (client, done, stop) = (Arc::clone(client), Arc::clone(&done), Arc::clone(&stop));
            self.runtime.spawn(async move { client.append(&done, &stop).await })
        };
        let tasks: Vec<_> = self.clients.iter().map(spawn).collect();
        stop_after_turn(&stop);
        self.runtime.block_on(async {
            for task in tasks {
                task.await.unwrap();
            }
        });
        rate(&done)
    }
}

/// A connection of the bare driver, with its session's key and seq.
struct Client {
    client: tokio_postgres::Client,
    statement: tokio_postgres::Statement,
    key: i64,
    seq: AtomicU64,
}

impl Client {
    async fn append(&self, done: &AtomicU64, stop: &AtomicBool) {
        // As many bytes in each column as in the store's rows.
        let (chain, sum, mark) = ([7_u8; 33], [7_u8; 8], [7_u8; 16]);
        let text = format!("1 {}", "word ".repeat(400));
        let parts = format!(r#"[{{"text":{{"text":"{text}"}}}}]"#);
        let body = format!(r#"{{"lane":"main","role":"assistant","parts":{parts}}}"#).into_bytes();
        let (head, lane) = ([b'h'; 317], &[b'l'; 99][..]);
        while !stop.load(Ordering::Relaxed) {
            let at = i64::try_from(self.seq.load(Ordering::Relaxed)).unwrap();
            let now = SystemClock.now().as_micros();
            let values: [&(dyn ToSql + Sync); 12] = [
                &self.key,
                &at,
                &"running",
                &&chain[..],
                &&sum[..],
                &&b""[..],
                &Some(lane),
                &&head[..],
                &&b"message"[..],
                &&mark[..],
                &body,
                &now,
            ];
            let rows = self.client.query(&self.statement, &values).await.unwrap();
            assert_eq!(rows.len(), 1);
            self.seq.fetch_add(1, Ordering::Relaxed);
            done.fetch_add(1, Ordering::Relaxed);
        }
    }
}

fn median(mut rates: Vec<f64>) -> f64 {
    rates.sort_by(f64::total_cmp);
    rates[rates.len() / 2]
}

fn appends(table: &Table) {
    let asked = |clients: &usize| std::env::args().any(|arg| arg == clients.to_string());
    let all = [1_usize, 16, 64];
    let any = all.iter().any(asked);
    for clients in all.into_iter().filter(|clients| !any || asked(clients)) {
        let server = Server::start(Disk::Synced);
        let store = store(&server, "default", clients);
        let make = |side: &str| -> Vec<SessionId> {
            (0..clients).map(|n| session(&store, &format!("{side}-{n}"))).collect()
        };
        let (mine, theirs) = (make("ours"), make("bare"));
        let bare = Bare::new(&server, &store, &theirs);
        // With the default number of connections; fewer clients see no difference.
        let usual = (clients > USUAL).then(|| as_usual(&server));
        let mut rates = [const { Vec::new() }; 4];
        for turn in 0..=TURNS {
            let turns = [
                ours(&store, &mine),
                bare.by_threads(),
                usual.as_ref().map_or(0.0, |usual| ours(usual, &mine)),
                bare.by_tasks(),
            ];
            if turn > 0 {
                rates.iter_mut().zip(turns).for_each(|(rates, rate)| rates.push(rate));
            }
        }
        let [ours, threads, queued, tasks] = rates.map(median);
        table.figure(
            &format!("appends of 2 KB, {clients} clients"),
            &format!("{ours:.0}/s, {:.2}x", ours / threads),
            &format!("the bare driver {threads:.0}/s; from its own tasks {tasks:.0}/s"),
            "≥ 0.85x",
        );
        if usual.is_some() {
            table.figure(
                &format!("the same over the usual {USUAL} connections"),
                &format!("{queued:.0}/s, {:.2}x", queued / threads),
                &format!("the bare driver over {clients} {threads:.0}/s"),
                "≥ 0.85x",
            );
        }
    }
}

fn tail(table: &Table) {
    let server = Server::start(Disk::Synced);
    let store = store(&server, "default", 4);
    let store: &dyn Store = &store;
    let id = session(store, "long");
    for n in 0..400 {
        append(store, &id, (0..250).map(|m| message(n * 250 + m, 1_000)).collect());
    }
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
    let client = runtime.block_on(async {
        let (client, connection) = tokio_postgres::connect(&server.url(), NoTls).await.unwrap();
        tokio::spawn(connection);
        client
    });
    let sql = "SELECT seq, at, kind, version, chain, id, spilled, erased, body \
         FROM stepwell.events WHERE namespace = 1 AND session = 1 ORDER BY seq DESC LIMIT 51";
    let statement = runtime.block_on(client.prepare(sql)).unwrap();
    let (ours, bare) = Times::of_both(
        6,
        50,
        || assert_eq!(store.events(&id, Span::last(50)).unwrap().events.len(), 50),
        || assert_eq!(runtime.block_on(client.query(&statement, &[])).unwrap().len(), 51),
    );
    table.row("last 50 of 100,000 events of 1 KB", &ours, ("their rows", &bare), "");
}

/// Does some work in several threads, each this many times.
fn fill(threads: usize, each: usize, work: impl Fn(usize, usize) + Sync) {
    std::thread::scope(|scope| {
        for thread in 0..threads {
            let work = &work;
            scope.spawn(move || (0..each).for_each(|n| work(thread, n)));
        }
    });
}

fn list(table: &Table) {
    let server = Server::start(Disk::Lazy);
    let store = store(&server, "default", 8);
    fill(8, 250, |thread, n| {
        let creates = (0..100).map(|m| {
            let id = format!("s-{thread}-{n}-{m}").parse().unwrap();
            let created = Created::new(id, "one of many");
            Write::Create(Create { created, event_id: None, at: None, claim: None })
        });
        store.batch(creates.collect()).unwrap();
    });
    let _ = server.sql("VACUUM ANALYZE");
    let query = Query { limit: 50, ..Query::default() };
    let times = Times::of(200, || assert_eq!(store.list(&query).unwrap().sessions.len(), 50));
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
    let client = runtime.block_on(async {
        let (client, connection) = tokio_postgres::connect(&server.url(), NoTls).await.unwrap();
        tokio::spawn(connection);
        client
    });
    let sql = "SELECT head FROM stepwell.heads WHERE namespace = 1 AND trashed IS NULL \
         ORDER BY updated DESC, session DESC LIMIT 50";
    let statement = runtime.block_on(client.prepare(sql)).unwrap();
    let bare = Times::of(200, || {
        assert_eq!(runtime.block_on(client.query(&statement, &[])).unwrap().len(), 50);
    });
    table.row("newest 50 of 200,000 sessions", &times, ("their heads", &bare), "");
}

/// Four million events: the cost of an append, a tail and a list.
#[expect(clippy::disallowed_methods, reason = "a benchmark measures real time")]
fn million(table: &Table) {
    let server = Server::start(Disk::Lazy);
    let store = store(&server, "default", 8);
    let store: &dyn Store = &store;
    let began = Instant::now();
    fill(8, 500, |thread, n| {
        let id = session(store, &format!("s-{thread}-{n}"));
        for chunk in 0..4 {
            append(store, &id, (0..250).map(|m| message(chunk * 250 + m, 200)).collect());
        }
    });
    let _ = server.sql("VACUUM ANALYZE");
    let events = server.sql("SELECT count(*) FROM stepwell.events");
    let size = server.sql("SELECT pg_size_pretty(sum(pg_total_relation_size(c.oid))) FROM pg_class c \
         JOIN pg_namespace n ON n.oid = c.relnamespace WHERE nspname = 'stepwell' AND relkind = 'r'");
    let took = format!("{events} events in {:.0} s, {size}", began.elapsed().as_secs_f64());
    table.figure("filled", &took, "", "≥ 4,000,000");
    let id: SessionId = "s-3-77".parse().unwrap();
    append(store, &id, vec![message(0, 200)]);
    let fresh = session(store, "fresh");
    let (at_many, at_few) = Times::of_both(
        6,
        100,
        || append(store, &id, vec![message(0, 200)]),
        || append(store, &fresh, vec![message(0, 200)]),
    );
    table.row("append among 4 million events", &at_many, ("to a new session", &at_few), "");
    let tail = Times::of(200, || drop(store.events(&id, Span::last(50)).unwrap()));
    let query = Query { limit: 50, ..Query::default() };
    let list = Times::of(200, || drop(store.list(&query).unwrap()));
    table.row("last 50 events of one of 4,000 sessions", &tail, ("newest 50 sessions", &list), "");
}

/// A part of the benchmark, by its name.
type Part = (&'static str, fn(&Table));

fn main() {
    let asked: Vec<String> = std::env::args().skip(1).filter(|arg| !arg.starts_with('-')).collect();
    let parts: [Part; 4] =
        [("append", appends), ("tail", tail), ("list", list), ("million", million)];
    let table = Table::begin();
    for (name, part) in parts {
        // The last one takes minutes, and runs only by name.
        let wanted =
            if asked.is_empty() { name != "million" } else { asked.contains(&name.to_owned()) };
        if wanted {
            part(&table);
        }
    }
}
