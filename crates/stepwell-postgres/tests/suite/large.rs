//! A large store, and what is asked of it, each beside a bare statement over the same rows.
//!
//! `STEPWELL_LARGE=100000 cargo test --release -p stepwell-postgres large -- --nocapture` is the long
//! form, whose figures are in bench/README.md; without the variable there are 300 sessions, and only
//! what is answered is looked at.

use std::sync::Arc;
use std::time::{Duration, Instant};

use stepwell::log::Redactor;
use stepwell::model::Epoch;
use stepwell::sessions::Deps;
use stepwell::store::query::{Filter, Query, Search, TrashScope};
use stepwell::store::{
    Append, Create, LEASE_TTL, LeaseRequest, Maintain as _, Processes as _, SystemProcesses,
    Target, Write,
};
use stepwell::{Created, Message, NewEvent, SessionId, Stepwell, Store};
use stepwell_postgres::{Address, PostgresStore};

use crate::raw::{Raw, make_database, url};

/// How many events a session has beside its first.
const MESSAGES: u64 = 19;

/// Sessions of which the others are copies.
const MODELS: u64 = 100;

#[expect(clippy::disallowed_methods, reason = "the long form is asked for by a variable")]
fn sessions() -> u64 {
    std::env::var("STEPWELL_LARGE").ok().and_then(|n| n.parse().ok()).unwrap_or(300)
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
    let events: Vec<NewEvent> = texts.map(|text| Message::user(text).into()).collect();
    let append =
        Append { session, epoch: Some(Epoch::FIRST), expected: None, events: events.into() };
    let claim = Some(LeaseRequest { holder: SystemProcesses.this(), ttl: LEASE_TTL });
    let create = Create { created, event_id: None, at: None, claim };
    let written = store.batch(vec![Write::Create(create), Write::Append(append)]).unwrap();
    let lease = written.into_iter().find_map(|it| it.lease).unwrap();
    store.release(&lease).unwrap();
}

/// Copies the models until there are so many sessions, without asking the store.
fn multiply(raw: &Raw, all: u64) {
    let copies = all.div_ceil(MODELS) - 1;
    raw.run(&format!(
        "CREATE TEMP TABLE copies AS SELECT s.key AS model, n, s.id || '-' || n AS id \
         FROM stepwell.sessions s, generate_series(1, {copies}) n; \
         INSERT INTO stepwell.sessions (namespace, id, subagent, external, created, tags, task, \
         agent, workspace, rewinding) SELECT s.namespace, c.id, subagent, external, created + n, \
         tags, task, agent, workspace, rewinding FROM copies c JOIN stepwell.sessions s ON s.key = c.model; \
         CREATE TEMP TABLE placed AS SELECT c.model, c.n, s.key FROM copies c JOIN stepwell.sessions s \
         ON s.id = c.id; \
         INSERT INTO stepwell.heads SELECT namespace, p.key, version, seq, fence, updated + n, status, \
         cost, steps, bytes, trashed, damage_at, damage, unindexed, chain, sum, model_, lane, head, \
         change FROM placed p JOIN (SELECT session AS s, model AS model_, * FROM stepwell.heads) h \
         ON h.s = p.model; \
         INSERT INTO stepwell.indexed SELECT namespace, p.key, seq FROM placed p \
         JOIN stepwell.indexed i ON i.session = p.model; \
         INSERT INTO stepwell.events (namespace, session, seq, at, version, spilled, kind, chain, id, \
         mark, key, erased, body) SELECT namespace, p.key, seq, at + n, version, spilled, kind, chain, \
         id, mark, e.key, erased, body FROM placed p JOIN stepwell.events e ON e.session = p.model; \
         ANALYZE"
    ));
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
    let own = all.min(15_000) / 10;
    (0..own).for_each(|n| make(&store, &format!("own-{n}"), &mut words));
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
    assert_eq!(counts.total(), all.div_ceil(MODELS) * MODELS + own);
    let store = Arc::new(store);
    let well = Stepwell::with(Arc::clone(&store) as Arc<dyn Store>, Deps::default());
    let walk = || well.sessions(Query::default()).filter(Result::is_ok).count() as u64;
    let heads = "CREATE TEMP TABLE heads AS SELECT head FROM stepwell.heads";
    let seen = beside("gates, stats, du: all sessions", walk, &raw, heads);
    assert_eq!(seen, counts.total());
    let used = beside(
        "du",
        || store.disk_use().unwrap(),
        &raw,
        "SELECT sum(length(body)) FROM stepwell.events",
    );
    assert!(used.events > 0);
    let targets: Vec<Target> =
        (0..own).map(|n| format!("own-{n}").parse::<SessionId>().unwrap().into()).collect();
    let trashed = beside(
        &format!("cleanup of {own}"),
        || store.trash(&targets).unwrap(),
        &raw,
        "UPDATE stepwell.heads SET trashed = 1 WHERE trashed IS NOT NULL",
    );
    assert_eq!(trashed.taken.len() as u64, own);
    let purged =
        beside(&format!("trash empty of {own}"), || store.purge(&targets).unwrap(), &raw, count);
    assert_eq!(purged.taken.len() as u64, own);
    let anywhere = Filter { place: TrashScope::Anywhere, ..Filter::default() };
    assert_eq!(store.count(&anywhere).unwrap().total(), all.div_ceil(MODELS) * MODELS);
}
