//! The MCP server as a whole process: the delay of its answers, and the cost of a search beside the
//! library's own call.
//!
//! `cargo build --release -p stepwell-cli && cargo bench -p stepwell-bench --bench mcp`.
#![allow(clippy::unwrap_used, reason = "a benchmark that cannot do its work should stop")]

use std::io::{BufRead as _, BufReader, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use serde_json::{Value, json};
use stepwell::model::Driver;
use stepwell::sqlite::SqliteStore;
use stepwell::store::query::{Filter, Rank, Search, SystemPrompts};
use stepwell::store::{Append, Create, Write};
use stepwell::{Created, Message, NewEvent, SessionId, Stepwell, Store};
use stepwell_bench::{Table, Times, timed};

const SESSIONS: usize = 2_000;
const MESSAGES_OF_ONE: usize = 100;
/// The tool's default number of hits.
const HITS: usize = 20;

/// The release build of the command, next to this benchmark.
fn stepwell() -> PathBuf {
    let here = std::env::current_exe().unwrap();
    let binary = here.ancestors().nth(2).unwrap().join("stepwell");
    assert!(binary.exists(), "build it first: cargo build --release -p stepwell-cli");
    binary
}

/// 200,000 messages. One in a hundred contains the search term.
fn fill(folder: &Path) {
    let store = SqliteStore::open(&folder.join(".stepwell")).unwrap();
    for number in 0..SESSIONS {
        let id: SessionId = format!("s{number:04}").parse().unwrap();
        let mut created = Created::new(id.clone(), format!("task {number}"));
        created.driver = Driver::External;
        let create = Create { created, event_id: None, at: None, claim: None };
        let words = (0..MESSAGES_OF_ONE).map(|n| {
            let rare = if n == number % MESSAGES_OF_ONE { "halcyon" } else { "ordinary" };
            Message::assistant(format!(
                "{rare} answer {n} of {number}, {}",
                "more words ".repeat(20)
            ))
        });
        let events: Vec<NewEvent> = words.map(NewEvent::from).collect();
        let append = Append { session: id, epoch: None, expected: None, events: events.into() };
        store.batch(vec![Write::Create(create), Write::Append(append)]).unwrap();
    }
}

/// A server, and a connection to it.
struct Served {
    child: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
    asked: u64,
}

impl Served {
    fn start(binary: &Path, folder: &Path) -> Self {
        let mut command = Command::new(binary);
        command.arg("mcp").env_clear().env("HOME", folder).current_dir(folder);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut child = command.spawn().unwrap();
        let (input, output) = (child.stdin.take().unwrap(), child.stdout.take().unwrap());
        let mut served = Self { child, input, output: BufReader::new(output), asked: 0 };
        let about = json!({"name": "bench", "version": "1"});
        let hello =
            json!({"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": about});
        let answer = served.ask("initialize", &hello);
        assert!(answer["result"]["serverInfo"].is_object(), "{answer}");
        let ready = json!({"jsonrpc": "2.0", "method": "notifications/initialized"});
        served.send(&ready);
        served
    }

    fn send(&mut self, message: &Value) {
        self.input.write_all(format!("{message}\n").as_bytes()).unwrap();
    }

    fn ask(&mut self, method: &str, params: &Value) -> Value {
        self.asked += 1;
        let id = self.asked;
        self.send(&json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}));
        loop {
            let mut line = String::new();
            assert!(self.output.read_line(&mut line).unwrap() > 0, "the server ended");
            let answer: Value = serde_json::from_str(&line).unwrap();
            if answer["id"] == id {
                return answer;
            }
        }
    }

    fn search(&mut self, rank: &str) {
        let arguments = json!({"query": "halcyon", "rank": rank});
        let params = json!({"name": "search_sessions", "arguments": arguments});
        let answer = self.ask("tools/call", &params);
        let hits = answer["result"]["structuredContent"]["hits"].as_array().unwrap();
        assert_eq!(hits.len(), HITS, "{answer}");
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn searches(table: &Table, binary: &Path, folder: &Path) {
    let well = Stepwell::open(folder.join(".stepwell")).unwrap();
    let mut served = Served::start(binary, folder);
    for (name, word, rank) in [
        ("search_sessions, newest of 2,000 hits in 200,000 messages", "newest", Rank::Newest),
        ("search_sessions, most relevant of them", "relevance", Rank::Relevance),
    ] {
        // The tool requests one more, to find out whether there is a next page.
        let search = Search {
            text: "halcyon".to_owned(),
            filter: Filter::default(),
            rank,
            limit: HITS + 1,
            system: SystemPrompts::Skipped,
        };
        let (ours, bare) = Times::of_both(
            21,
            10,
            || served.search(word),
            || assert_eq!(well.search(&search).unwrap().hits.len(), HITS + 1),
        );
        table.row(name, &ours, ("the library's call", &bare), "");
    }
}

fn starts(table: &Table, binary: &Path, folder: &Path) {
    let (mut ours, mut bare) = (Vec::new(), Vec::new());
    for _ in 0..40 {
        let mut served = None;
        ours.push(timed(|| served = Some(Served::start(binary, folder))));
        drop(served);
        let mut version = Command::new(binary);
        version.arg("--version").stdout(Stdio::null());
        bare.push(timed(|| assert!(version.status().unwrap().success())));
    }
    let (ours, bare) = (Times::from_samples(ours), Times::from_samples(bare));
    table.row("start of `stepwell mcp` to its first answer", &ours, ("--version", &bare), "");
}

fn main() {
    let binary = stepwell();
    let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    fill(folder.path());
    let table = Table::begin();
    searches(&table, &binary, folder.path());
    starts(&table, &binary, folder.path());
}
