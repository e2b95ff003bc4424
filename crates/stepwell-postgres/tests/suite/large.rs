//! A large store, and what is asked of it, each beside a bare statement over the same rows.
//!
//! `STEPWELL_LARGE=100000 cargo test --release -p stepwell-postgres large -- --nocapture` is the long
//! form, whose figures are in bench/README.md; without the variable there are 300 sessions, and only
//! what is answered is looked at.

use std::fmt::Write as _;
use std::sync::Arc;
use std::time::{Duration, Instant};

use stepwell::backend::head_sum;
use stepwell::log::Redactor;
use stepwell::model::{Digest, Epoch, StatusChanged};
use stepwell::sessions::Deps;
use stepwell::store::query::{Filter, LedgerRows, Query, Search, TrashScope};
use stepwell::store::{
    Append, Create, LEASE_TTL, Lease, LeaseRequest, Maintain as _, Processes as _, SystemProcesses,
    Write,
};
use stepwell::upkeep::Policy;
use stepwell::{Created, Message, NewEvent, SessionId, Status, Stepwell, StopReason, Store};
use stepwell_postgres::{Address, PostgresStore};

use crate::raw::{Raw, make_database, url};
use crate::statements::{Recorder, is_control};

/// How many messages a session has, between its beginning and its end.
const MESSAGES: u64 = 18;

/// How many sessions there are in the short form.
const SHORT: u64 = 300;

/// Sessions of which the others are copies.
const MODELS: u64 = 100;

#[expect(clippy::disallowed_methods, reason = "the long form is asked for by a variable")]
fn sessions() -> u64 {
    std::env::var("STEPWELL_LARGE").ok().and_then(|n| n.parse().ok()).unwrap_or(SHORT)
}

/// Words as often as a language has them: the nth is about n times as rare as the first.
struct Words(u64);

impl Words {
    fn next(&mut self) -> String {
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let part = (self.0 >> 11) as f64 / (1_u64 << 53) as f64;
        format!("w{}", (30_000_f64.powf(part)) as u64)
    }

    fn text(&mut self, count: usize) -> String {
        let mut words: Vec<String> = (0..count).map(|_| self.next()).collect();
        words.push("common".to_owned());
        words.join(" ")
    }
}

/// One session with its messages, in one transaction.
fn make(store: &PostgresStore, name: &str, words: &mut Words) {
    let created = Created::new(name.parse().unwrap(), words.text(8));
    let session = created.id.clone();
    let text = |n| if n == 5 { format!("{name} onlyhere") } else { words.text(40) };
    let rare = name == "own-1";
    let texts = (0..MESSAGES).map(|n| if rare { n } else { n + 6 }).map(text);
    let ended =
        StatusChanged { status: Status::Success, reason: Some(StopReason::LlmDone), error: None };
    let events: Vec<NewEvent> = texts.map(|text| Message::user(text).into()).collect();
    let events: Vec<NewEvent> = events.into_iter().chain([ended.into()]).collect();
    let append =
        Append { session, epoch: Some(Epoch::FIRST), expected: None, events: events.into() };
    let claim = Some(LeaseRequest { holder: SystemProcesses.this(), ttl: LEASE_TTL });
    let create = Create { created, event_id: None, at: None, claim };
    let written = store.batch(vec![Write::Create(create), Write::Append(append)]).unwrap();
    let lease = written.into_iter().find_map(|it| it.lease).unwrap();
    store.release(&lease).unwrap();
}

/// Copies the models until there are so many sessions, without asking the store. Each copy's head
/// has its own id, as its session has; its events are the model's.
fn multiply(raw: &Raw, all: u64) {
    let copies = all.div_ceil(MODELS) - 1;
    raw.run("CREATE TEMP TABLE copies (model bigint, n bigint, id text, head bytea, sum bytea)");
    let models = raw.ask(
        "SELECT s.key, s.id, convert_from(h.head, 'UTF8'), encode(h.chain, 'hex') \
         FROM stepwell.sessions s JOIN stepwell.heads h ON h.session = s.key",
    );
    for model in models {
        let [key, id, head, chain] = &model[..] else { panic!("{model:?}") };
        let chain: Digest = chain.parse().unwrap();
        let own = format!("\"id\":\"{id}\"");
        assert!(head.contains(&own), "{head}");
        let line = |n: u64| {
            let head = head.replace(&own, &format!("\"id\":\"{id}-{n}\""));
            let sum = head_sum(head.as_bytes(), &chain);
            let (head, sum) = (hex(head.as_bytes()), hex(&sum));
            format!("({key}, {n}, '{id}-{n}', '\\x{head}', '\\x{sum}')")
        };
        let lines: Vec<String> = (1..=copies).map(line).collect();
        for some in lines.chunks(1_000) {
            raw.run(&format!("INSERT INTO copies VALUES {}", some.join(", ")));
        }
    }
    raw.run(
        "INSERT INTO stepwell.sessions (namespace, id, subagent, external, created, tags, task, \
         agent, workspace, rewinding) SELECT s.namespace, c.id, subagent, external, created + n, \
         tags, task, agent, workspace, rewinding FROM copies c JOIN stepwell.sessions s ON s.key = c.model; \
         CREATE TEMP TABLE placed AS SELECT c.*, s.key FROM copies c JOIN stepwell.sessions s \
         ON s.id = c.id; ANALYZE placed; \
         INSERT INTO stepwell.heads SELECT namespace, p.key, version, seq, fence, \
         updated - 86400000000 * 30 + n, status, cost, steps, bytes, trashed, damage_at, damage, \
         unindexed, chain, p.sum, model_, lane, p.head, change \
         FROM placed p JOIN (SELECT namespace, session AS s, version, seq, fence, updated, status, cost, \
         steps, bytes, trashed, damage_at, damage, unindexed, chain, model AS model_, lane, change \
         FROM stepwell.heads) h ON h.s = p.model; \
         INSERT INTO stepwell.indexed SELECT namespace, p.key, seq FROM placed p \
         JOIN stepwell.indexed i ON i.session = p.model; \
         INSERT INTO stepwell.events (namespace, session, seq, at, version, spilled, kind, chain, id, \
         mark, key, erased, body) SELECT namespace, p.key, seq, at, version, spilled, kind, chain, \
         e.id, mark, e.key, erased, body FROM placed p JOIN stepwell.events e ON e.session = p.model; \
         ANALYZE",
    );
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}

#[expect(clippy::disallowed_methods, reason = "the long form measures")]
fn timed<T>(work: impl FnOnce() -> T) -> (T, Duration) {
    let began = Instant::now();
    let answer = work();
    (answer, began.elapsed())
}

/// What was asked, and beside it a bare statement over the same rows.
#[expect(clippy::print_stdout, reason = "the long form is read")]
fn beside<T>(what: &str, ask: impl FnOnce() -> T, raw: &Raw, bare: &str) -> T {
    let (answer, ours) = timed(ask);
    let ((), theirs) = timed(|| raw.run(bare));
    let ratio = ours.as_secs_f64() / theirs.as_secs_f64();
    println!("| {what} | {ours:.1?} | {theirs:.1?} | {ratio:.1}x |");
    answer
}

#[test]
fn a_large_store_answers_what_a_small_one_does() {
    make_database("large");
    let address = Address::parse(&url("large")).unwrap();
    let store = PostgresStore::open(address).unwrap();
    let (all, mut words) = (sessions(), Words(1));
    (0..MODELS).for_each(|n| make(&store, &format!("model-{n}"), &mut words));
    let raw = Raw::to("large");
    multiply(&raw, all);
    make(&store, "own-1", &mut words);
    let all = all.div_ceil(MODELS) * MODELS + 1;
    // As many as an old store has that is cleaned up for the first time.
    let old = all * 15 / 100;
    let count = "SELECT count(*) FROM stepwell.heads";
    let texts = "SELECT count(*) FROM stepwell.events WHERE position('onlyhere' IN convert_from(body, 'UTF8')) > 0";
    let told = std::cell::Cell::new(0);
    let index = || store.catch_up(&|_| told.set(told.get() + 1)).unwrap();
    let words_bare = "CREATE TEMP TABLE bare AS SELECT to_tsvector('simple', convert_from(body, 'UTF8')) FROM stepwell.events";
    beside("first search: index", index, &raw, words_bare);
    assert!(told.get() >= 2, "it says how far it is");
    raw.run("ANALYZE; DROP TABLE bare");
    let newest = Query { limit: 50, ..Query::default() };
    let page = beside(
        "sessions, newest 50",
        || store.list(&newest).unwrap(),
        &raw,
        "SELECT head FROM stepwell.heads WHERE trashed IS NULL ORDER BY updated DESC LIMIT 50",
    );
    assert_eq!(page.sessions.len(), 50);
    let found =
        |text: &str| store.search(&Search::new(text), &Redactor::default()).unwrap().hits.len();
    let by_word = |word: &str| {
        format!(
            "SELECT session, seq FROM stepwell.docs WHERE words @@ '{word}' ORDER BY at DESC LIMIT 50"
        )
    };
    assert_eq!(beside("search, a rare word", || found("onlyhere"), &raw, &by_word("onlyhere")), 1);
    assert!(beside("search, a common word", || found("common"), &raw, &by_word("common")) > 0);
    assert_eq!(beside("search, no such word", || found("nowhere"), &raw, &by_word("nowhere")), 0);
    beside("the same, all texts read", || found("nowhere"), &raw, texts);
    let counts = beside("count (stats)", || store.count(&Filter::default()).unwrap(), &raw, count);
    assert_eq!(counts.total(), all);
    let store = Arc::new(store);
    let well = Stepwell::with(Arc::clone(&store) as Arc<dyn Store>, Deps::default());
    let everything = Filter { place: TrashScope::Anywhere, ..Filter::default() };
    let heads = "CREATE TEMP TABLE heads AS SELECT head FROM stepwell.heads";
    let walk = |filter: &Filter| {
        let query = Query { filter: filter.clone(), ..Query::default() };
        well.sessions(query).filter(Result::is_ok).count() as u64
    };
    let seen = beside("stats: all sessions", || walk(&Filter::default()), &raw, heads);
    assert_eq!(seen, all);
    let heads = "CREATE TEMP TABLE heads_2 AS SELECT head FROM stepwell.heads";
    let seen = beside("du: those in the trash, too", || walk(&everything), &raw, heads);
    assert_eq!(seen, all);
    let used = beside(
        "du",
        || store.disk_use().unwrap(),
        &raw,
        "SELECT sum(length(body)) FROM stepwell.events",
    );
    assert!(used.events > 0);
    let policy = Policy { keep_last: usize::try_from(all - old).ok(), ..Policy::default() };
    let rewritten = "UPDATE stepwell.heads SET trashed = 1 WHERE updated < 0";
    let clean = || well.clean_up(&well.plan_cleanup(&policy).unwrap()).unwrap();
    let trashed = beside(&format!("cleanup of {old}"), clean, &raw, rewritten);
    assert_eq!((trashed.taken.len() as u64, trashed.left.len()), (old, 0));
    let gone = format!(
        "BEGIN; DELETE FROM stepwell.events WHERE session IN (SELECT session FROM stepwell.heads \
         WHERE trashed IS NULL ORDER BY session LIMIT {old}); ROLLBACK"
    );
    let empty = || well.empty_trash(Duration::ZERO).unwrap();
    let purged = beside(&format!("trash empty of {old}"), empty, &raw, &gone);
    assert_eq!((purged.taken.len() as u64, purged.left.len()), (old, 0));
    assert_eq!(store.count(&everything).unwrap().total(), all - old);
    let rows = Filter { rows: LedgerRows::Included, ..everything };
    assert_eq!(store.count(&rows).unwrap().total(), all, "each left its row behind");
    plans(&store, &raw);
}

/// The newest sessions, a lease and an append use indexes only, and how often the update of a head
/// leaves its indexes alone.
#[expect(clippy::print_stdout, reason = "the long form is read")]
fn plans(store: &PostgresStore, raw: &Raw) {
    raw.run("ANALYZE stepwell.heads, stepwell.sessions, stepwell.leases");
    let recorder = Recorder::default();
    let id: SessionId = "own-1".parse().unwrap();
    let claim = LeaseRequest { holder: SystemProcesses.this(), ttl: LEASE_TTL };
    let lease = recorder.hear(|| {
        store.list(&Query { limit: 50, ..Query::default() }).unwrap();
        let lease = store.acquire(&id, &claim).unwrap();
        say(store, &lease, 1);
        lease
    });
    raw.run("SET plan_cache_mode = force_generic_plan");
    for (n, (sql, types)) in recorder.heard().iter().enumerate() {
        if is_control(sql) || !sql.contains("stepwell.") {
            continue;
        }
        let plan = explained(raw, n, (sql, types));
        if sessions() > SHORT {
            println!("{sql}\n{plan}\n");
            for table in ["heads", "sessions", "events"] {
                assert!(!plan.contains(&format!("Seq Scan on {table}")), "{sql}\n{plan}");
            }
        }
    }
    let updates =
        "SELECT n_tup_upd, n_tup_hot_upd FROM pg_stat_user_tables WHERE relname = 'heads'";
    raw.run("SELECT pg_stat_reset()");
    say(store, &lease, 500);
    raw.run("SELECT pg_stat_force_next_flush()");
    println!("updates of heads, and those that left the indexes alone: {:?}", raw.ask(updates));
    store.release(&lease).unwrap();
}

fn say(store: &PostgresStore, lease: &Lease, times: u32) {
    for _ in 0..times {
        let events = vec![Message::user("said").into()];
        let (session, epoch) = (lease.session.clone(), Some(lease.epoch));
        let append = Append { session, epoch, expected: None, events: events.into() };
        store.batch(vec![Write::Append(append)]).unwrap();
    }
}

/// The plan of a statement, whatever its values are.
fn explained(raw: &Raw, n: usize, (sql, types): (&str, &str)) -> String {
    let count = types.split(", ").filter(|it| !it.is_empty()).count();
    let nulls = vec!["NULL"; count].join(", ");
    let (types, values) = match count {
        0 => (String::new(), String::new()),
        _ => (format!("({types})"), format!("({nulls})")),
    };
    raw.run(&format!("PREPARE large{n}{types} AS {sql}"));
    let lines = raw.ask(&format!("EXPLAIN EXECUTE large{n}{values}"));
    lines.into_iter().map(|line| line.concat()).collect::<Vec<_>>().join("\n")
}
