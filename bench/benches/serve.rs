//! The server: the cost of a list over HTTP beside the library's own call and a bare server, and
//! the delay until followers see an event.
//!
//! `cargo bench -p stepwell-bench --bench serve`; a number behind `--` is for how many seconds 200
//! followers watch 50 sessions (10 unless told; 60 is the long form).
#![allow(clippy::unwrap_used, reason = "a benchmark that cannot do its work should stop")]
#![allow(clippy::disallowed_methods, reason = "a benchmark measures real time")]
#![allow(clippy::print_stdout, reason = "a benchmark's table is its answer")]

use std::collections::HashMap;
use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::mpsc;
use std::time::{Duration, Instant};

use stepwell::model::Edited;
use stepwell::sqlite::SqliteStore;
use stepwell::store::query::{Family, Filter, Query};
use stepwell::store::{Append, Create, Write};
use stepwell::{Created, SessionId, Stepwell, Store};
use stepwell_bench::{Table, Times, show};
use stepwell_runtime::inspect;
use stepwell_server::{
    NamedToken, Options, Reach, Role, Server, Shutdown, Token, Tokens, Workspaces,
};
use stepwell_wire::{List, SessionItem};
use stepwell_workspace::{Estimates, Host, Notices, Wanted, Workspace};

const SESSIONS: usize = 100_000;
const PAGE: usize = 50;
const RUNNING: usize = 50;
const FOLLOWERS: usize = 200;
/// A caller has at most 32 streams.
const STREAMS_OF_ONE: usize = 25;
/// How long each of the running sessions rests between two events.
const PAUSE: Duration = Duration::from_millis(500);

fn id(n: usize) -> SessionId {
    format!("s{n}").parse().unwrap()
}

fn workspace(folder: &Path) -> Workspace {
    let root = folder.join("work");
    std::fs::create_dir_all(&root).unwrap();
    let state = Some(folder.join("state"));
    let host = Host { folder: Some(root.clone()), state, ..Host::bare() };
    let wanted = Wanted { folder: Some(root), ..Wanted::default() };
    Workspace::locate(host, wanted, Notices::to_nobody()).unwrap()
}

/// A server, and what it serves.
struct Served {
    port: u16,
    tokens: Vec<Token>,
    store: PathBuf,
    well: Stepwell,
    home: Workspace,
    runtime: tokio::runtime::Runtime,
    shutdown: Shutdown,
}

impl Served {
    /// Serves a store of many sessions.
    fn new(folder: &Path) -> Self {
        let home = workspace(folder);
        let well = home.open_or_create().unwrap();
        let store = home.place.store.clone();
        let there = SqliteStore::open(&store).unwrap();
        for chunk in (0..SESSIONS).collect::<Vec<_>>().chunks(1_000) {
            let create = |n: &usize| {
                let created = Created::new(id(*n), "fix the login, and say why it was broken");
                Write::Create(Create { created, event_id: None, at: None, claim: None })
            };
            there.batch(chunk.iter().map(create).collect()).unwrap();
        }
        let tokens: Vec<Token> =
            (0..FOLLOWERS / STREAMS_OF_ONE).map(|_| Token::generate().unwrap()).collect();
        let named = |(n, token): (usize, &Token)| {
            let (name, token) = (format!("user{n}"), token.clone());
            NamedToken { name, role: Role::Operator, is_user: n == 0, token }
        };
        let named = Tokens::new(tokens.iter().enumerate().map(named).collect()).unwrap();
        let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
        let port = listener.local_addr().unwrap().port();
        let workspaces = Workspaces { home: workspace(folder), others: false, program: None };
        let reach = Reach::Local;
        let options = Options {
            tokens: named,
            read_only: false,
            may_yolo: false,
            reach,
            mcp: None,
            access: None,
        };
        let server = Server::new(vec![listener], workspaces, options).unwrap();
        let mut builder = tokio::runtime::Builder::new_multi_thread();
        let runtime = builder.worker_threads(2).enable_all().build().unwrap();
        let shutdown = Shutdown::default();
        let stops = shutdown.clone();
        runtime.spawn(async move { server.run(&stops).await });
        Self { port, tokens, store, well, home, runtime, shutdown }
    }

    fn stop(self) {
        self.shutdown.ask();
        self.runtime.shutdown_timeout(Duration::from_secs(1));
    }

    /// The server's work for a list, without HTTP.
    fn list(&self) -> Vec<u8> {
        let filter = Filter { family: Family::Roots, ..Filter::default() };
        let page = self.well.list(&Query { filter, limit: PAGE, ..Query::default() }).unwrap();
        let estimates = Estimates::new(&self.home);
        let items = inspect::items(&self.well, page.sessions, &estimates).unwrap();
        let next = page.next.map(|cursor| format!("{}.{}", cursor.value, cursor.key));
        serde_json::to_vec(&List::<SessionItem> { items, next }).unwrap()
    }

    /// A list over HTTP, beside its parts.
    fn lists(&self, table: &Table) {
        let token = self.tokens[0].reveal();
        let path = format!("/api/v1/sessions?limit={PAGE}");
        let mut served = Client::new(self.port, &path, &token);
        let bytes = served.get().to_vec();
        assert_eq!(bytes, self.list(), "the same bytes");
        let mut plain = Client::new(bare(&self.runtime, bytes), "/list", &token);
        let (served, beside) = Times::of_both(
            20,
            50,
            || assert!(!served.get().is_empty()),
            || {
                assert!(!self.list().is_empty());
                assert!(!plain.get().is_empty());
            },
        );
        let what = format!("GET /sessions, {PAGE} of {SESSIONS}");
        table.row(&what, &served, ("the library's call + bare axum", &beside), "≤ 1.5x");
    }

    /// Followers of sessions that grow.
    fn followers(&self, time: Duration) {
        let (to, told) = mpsc::channel();
        let client = reqwest::Client::new();
        for follower in 0..FOLLOWERS {
            let session = follower % RUNNING;
            let url =
                format!("http://localhost:{}/api/v1/sessions/{}/stream", self.port, id(session));
            let token = self.tokens[follower / STREAMS_OF_ONE].reveal();
            let request = client.get(url).header("authorization", format!("Bearer {token}"));
            self.runtime.spawn(follow(request, session, to.clone()));
        }
        for _ in 0..FOLLOWERS {
            told.recv_timeout(Duration::from_secs(60)).unwrap();
        }
        let written = append(&self.store, time);
        let each = FOLLOWERS / RUNNING;
        let mut times = Vec::with_capacity(written.len() * each);
        let mut seen: HashMap<(usize, u64), usize> = HashMap::new();
        while times.len() < written.len() * each
            && let Ok((session, seq, at)) = told.recv_timeout(Duration::from_secs(20))
        {
            if let Some(written) = written.get(&(session, seq)) {
                times.push(at.saturating_duration_since(*written));
                *seen.entry((session, seq)).or_default() += 1;
            }
        }
        let wrong = written.keys().filter(|it| seen.get(it) != Some(&each)).count();
        let (times, events, seconds) = (Times::from_samples(times), written.len(), time.as_secs());
        println!(
            "{FOLLOWERS} followers of {RUNNING} sessions for {seconds} s: {events} events told {each} times each, \
             {wrong} missed or repeated; append to client median {}, p99 {}, most {}",
            show(times.p50()),
            show(times.quantile(0.99)),
            show(times.quantile(1.0)),
        );
    }
}

/// A client that keeps its connection.
struct Client {
    stream: TcpStream,
    request: Vec<u8>,
    answer: Vec<u8>,
}

impl Client {
    fn new(port: u16, path: &str, token: &str) -> Self {
        let stream = TcpStream::connect(("127.0.0.1", port)).unwrap();
        stream.set_nodelay(true).unwrap();
        let request = format!(
            "GET {path} HTTP/1.1\r\nhost: localhost:{port}\r\nauthorization: Bearer {token}\r\n\r\n"
        );
        Self { stream, request: request.into_bytes(), answer: vec![0; 1 << 20] }
    }

    /// Sends a request, and returns the body.
    fn get(&mut self) -> &[u8] {
        self.stream.write_all(&self.request).unwrap();
        let mut length = 0;
        loop {
            let read = self.stream.read(&mut self.answer[length..]).unwrap();
            assert!(read > 0, "the server hung up");
            length += read;
            let answer = &self.answer[..length];
            let Some(head) = answer.windows(4).position(|it| it == b"\r\n\r\n") else { continue };
            let text = std::str::from_utf8(&answer[..head]).unwrap();
            assert!(text.starts_with("HTTP/1.1 200"), "{text}");
            let field = text.lines().find_map(|line| line.strip_prefix("content-length: "));
            let body: usize = field.unwrap().parse().unwrap();
            if length == head + 4 + body {
                return &self.answer[head + 4..length];
            }
        }
    }
}

/// Only axum, which answers with these bytes.
fn bare(runtime: &tokio::runtime::Runtime, bytes: Vec<u8>) -> u16 {
    let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
    listener.set_nonblocking(true).unwrap();
    let port = listener.local_addr().unwrap().port();
    let bytes = Arc::new(bytes);
    let answer = move || {
        let bytes = Arc::clone(&bytes);
        async move { Vec::clone(&bytes) }
    };
    let router = axum::Router::new().route("/list", axum::routing::get(answer));
    runtime.spawn(async move {
        let listener = tokio::net::TcpListener::from_std(listener).unwrap();
        axum::serve(listener, router).await.unwrap();
    });
    port
}

/// An event that a follower received: the session, its seq, and when.
type Told = (usize, u64, Instant);

/// Follows a session until the server ends. The first report is that it joined.
async fn follow(request: reqwest::RequestBuilder, session: usize, to: mpsc::Sender<Told>) {
    let mut response = request.send().await.unwrap();
    assert_eq!(response.status(), 200);
    let (mut rest, mut has_joined) = (String::new(), false);
    while let Ok(Some(bytes)) = response.chunk().await {
        rest.push_str(std::str::from_utf8(&bytes).unwrap());
        while let Some((frame, behind)) = rest.split_once("\n\n") {
            let seq = frame.strip_prefix("event: recorded\nid: ");
            let seq = seq.and_then(|it| it.split_once('\n')).map(|(seq, _)| seq.parse().unwrap());
            let joined = (!std::mem::replace(&mut has_joined, true)).then_some(0);
            if let Some(seq) = seq.or(joined)
                && to.send((session, seq, Instant::now())).is_err()
            {
                return;
            }
            rest = behind.to_owned();
        }
    }
}

/// Appends to the running sessions in turn, and returns when each append was done.
fn append(store: &Path, time: Duration) -> HashMap<(usize, u64), Instant> {
    // Its own connection, as another process has.
    let there = SqliteStore::open(store).unwrap();
    let there: &dyn Store = &there;
    let mut written = HashMap::new();
    let (began, step) = (Instant::now(), PAUSE / u32::try_from(RUNNING).unwrap());
    let mut due = began;
    let mut round = 0;
    while began.elapsed() < time {
        for session in 0..RUNNING {
            std::thread::sleep(due.saturating_duration_since(Instant::now()));
            due += step;
            let events = vec![Edited::default().into()];
            let append =
                Append { session: id(session), epoch: None, expected: None, events: events.into() };
            there.write(Write::Append(append)).unwrap();
            // The first event created the session.
            written.insert((session, round + 2), Instant::now());
        }
        round += 1;
    }
    written
}

fn main() {
    // Another part of the process may have chosen it already.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let asked = std::env::args().skip(1).find_map(|arg| arg.parse().ok());
    let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let served = Served::new(folder.path());
    served.lists(&Table::begin());
    served.followers(Duration::from_secs(asked.unwrap_or(10)));
    served.stop();
}
