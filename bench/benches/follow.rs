//! Followers: the cost of 200 idle ones, the delay until they see an append by another process, and
//! the delay until 50 see a change in a store of 100,000 sessions.
//!
//! `cargo bench -p stepwell-bench --bench follow`; a number after `--` sets the number of sessions.
#![allow(clippy::unwrap_used, reason = "a benchmark that cannot do its work should stop")]
#![allow(clippy::disallowed_methods, reason = "a benchmark measures real time")]
#![allow(clippy::print_stdout, reason = "a benchmark's table is its answer")]

use std::sync::{Arc, mpsc};
use std::time::{Duration, Instant};

use stepwell::model::Edited;
use stepwell::sessions::{Deps, Subscription};
use stepwell::sqlite::SqliteStore;
use stepwell::store::{Append, Create, Write};
use stepwell::{Created, SessionId, Stepwell, Store};
use stepwell_bench::Times;

const FOLLOWERS: usize = 200;
const IDLE: Duration = Duration::from_secs(10);
const APPENDS: usize = 200;
const LISTENERS: usize = 50;

fn id(n: usize) -> SessionId {
    format!("s{n}").parse().unwrap()
}

fn create(n: usize) -> Write {
    let created = Created::new(id(n), "follow me");
    Write::Create(Create { created, event_id: None, at: None, claim: None })
}

fn edit(n: usize) -> Write {
    let events = vec![Edited::default().into()];
    Write::Append(Append { session: id(n), epoch: None, expected: None, events: events.into() })
}

/// The processor time of this process.
fn used() -> Duration {
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap();
    let fields: Vec<&str> = stat.rsplit_once(')').unwrap().1.split_whitespace().collect();
    let ticks: u64 = fields[11].parse::<u64>().unwrap() + fields[12].parse::<u64>().unwrap();
    Duration::from_millis(ticks * 10)
}

/// Threads that wait for changes and report when they came.
fn listen(subscriptions: Vec<Subscription>, told: &mpsc::Sender<Instant>) {
    for subscription in subscriptions {
        let told = told.clone();
        std::thread::spawn(move || {
            while let Ok(news) = subscription.next(Duration::from_secs(60)) {
                if news.is_some() && told.send(Instant::now()).is_err() {
                    return;
                }
            }
        });
    }
}

fn main() {
    let asked = std::env::args().skip(1).find_map(|arg| arg.parse().ok());
    let sessions: usize = asked.unwrap_or(100_000);
    let folder = tempfile::tempdir().unwrap();
    let here = Arc::new(SqliteStore::open(folder.path()).unwrap());
    // Another handle has its own connection, as another process does.
    let there = SqliteStore::open(folder.path()).unwrap();
    let there: &dyn Store = &there;
    for chunk in (0..sessions).collect::<Vec<_>>().chunks(1_000) {
        there.batch(chunk.iter().copied().map(create).collect()).unwrap();
    }
    let well = Stepwell::with(here, Deps::default());

    let (tell, told) = mpsc::channel();
    listen((0..FOLLOWERS).map(|n| well.subscribe_to(&id(n)).unwrap()).collect(), &tell);
    // Until all of them wait.
    std::thread::sleep(Duration::from_secs(1));
    let before = used();
    std::thread::sleep(IDLE);
    let share = (used() - before).as_secs_f64() / IDLE.as_secs_f64();
    println!(
        "{FOLLOWERS} idle followers in a store of {sessions}: {:.2} % of a core",
        share * 100.0
    );

    let mut seen = Vec::new();
    for n in 0..APPENDS {
        there.write(edit(n % FOLLOWERS)).unwrap();
        let written = Instant::now();
        seen.push(told.recv_timeout(Duration::from_secs(10)).unwrap() - written);
    }
    report("an append of another process is seen after", &Times::from_samples(seen));

    let (tell, told) = mpsc::channel();
    listen((0..LISTENERS).map(|_| well.subscribe().unwrap()).collect(), &tell);
    let mut seen = Vec::new();
    for n in 0..APPENDS {
        // A session that no subscription names.
        there.write(edit(FOLLOWERS + n % (sessions - FOLLOWERS))).unwrap();
        let written = Instant::now();
        for _ in 0..LISTENERS {
            seen.push(told.recv_timeout(Duration::from_secs(10)).unwrap() - written);
        }
    }
    report("each of 50 listeners to all learns of a change after", &Times::from_samples(seen));
}

fn report(what: &str, times: &Times) {
    let (p50, p99, most) = (times.p50(), times.quantile(0.99), times.quantile(1.0));
    println!("{what}: median {p50:.1?}, p99 {p99:.1?}, most {most:.1?}");
}
