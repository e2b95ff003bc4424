//! Tools of MCP servers: programs that a run starts, or addresses that it calls over HTTP.
//!
//! They are tools like all others. A server's own texts are shortened before use, and a failing
//! server costs the run only that server's tools.

mod connection;
mod content;
mod http;
mod kept;
mod offer;
mod process;
mod starting;
mod tool;

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::join_all;

use self::connection::Connection;
pub use self::kept::KeptServers;
pub use self::starting::Starting;
use self::tool::Remote;
use crate::provider::remote::Key;
use crate::tool::{Tool, ToolEnv};
pub use stepwell_catalog::server::ServerName;

/// How long a server may take to start, by default. Some are downloaded first.
pub const DEFAULT_START: Duration = Duration::from_secs(30);

/// The largest message that is accepted from a server.
const LARGEST_MESSAGE: usize = 8 << 20;

/// How many tools of one server are considered.
const MOST_LISTED: usize = 5_000;

/// How many characters of a server's message are shown.
const WORDS: usize = 300;

/// A configured server.
#[derive(Clone, Debug)]
pub struct Server {
    /// The prefix of its tools' names.
    pub name: ServerName,
    /// How to connect to it.
    pub reach: Reach,
    /// How long it may take to start.
    pub start: Duration,
    /// How long one call may take; `None` for the limit of commands.
    pub timeout: Option<Duration>,
}

/// How to connect to a server.
#[derive(Clone, Debug)]
pub enum Reach {
    /// Start a program.
    Program(Program),
    /// Connect over HTTP.
    Address(Address),
}

/// A server that is a local program.
#[derive(Clone)]
pub struct Program {
    /// A path, or a name that is looked up in `PATH`.
    pub program: String,
    /// The arguments.
    pub arguments: Vec<String>,
    /// Environment variables in addition to this process's.
    pub variables: BTreeMap<String, String>,
    /// Its working directory.
    pub folder: PathBuf,
}

impl std::fmt::Debug for Program {
    /// Leaves out everything that may be secret.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Program").field("program", &self.program).finish_non_exhaustive()
    }
}

/// A server over HTTP.
#[derive(Clone)]
pub struct Address {
    /// Its URL.
    pub url: String,
    /// Headers of every request.
    pub headers: BTreeMap<String, String>,
    /// The key, sent as a bearer token.
    pub key: Option<Key>,
}

impl std::fmt::Debug for Address {
    /// Leaves out everything that may be secret.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Address").finish_non_exhaustive()
    }
}

/// The servers of a run.
#[derive(Debug, Default)]
pub struct Servers {
    connections: Vec<Arc<Connection>>,
    /// The tools of the servers that connected.
    pub tools: Vec<Arc<dyn Tool>>,
    /// The servers that did not connect, and why.
    pub absent: BTreeMap<String, String>,
    /// Warnings for the user: dropped tools, and why.
    pub notices: Vec<String>,
}

impl Servers {
    /// Connects to all servers at once and lists their tools. `starting` names the servers that are
    /// not ready yet.
    pub async fn connect(servers: &[Server], place: &ToolEnv, starting: &Starting) -> Self {
        let connecting = servers.iter().map(|server| async move {
            let _awaited = starting.begin(server.name.as_str());
            Connection::open(server, place).await
        });
        let mut all = Self::default();
        for (server, opened) in servers.iter().zip(join_all(connecting).await) {
            match opened {
                Ok((connection, listed)) => all.add(server, Arc::new(connection), listed),
                Err(why) => {
                    all.absent.insert(server.name.to_string(), why);
                }
            }
        }
        all
    }

    fn add(&mut self, server: &Server, connection: Arc<Connection>, listed: connection::Listed) {
        let mut known = BTreeSet::new();
        for offered in listed.tools {
            if known.insert(offered.spec.name.clone()) {
                let (connection, timeout) = (Arc::clone(&connection), server.timeout);
                self.tools.push(Arc::new(Remote { offered, connection, timeout }));
            } else {
                self.notices.push(format!(
                    "MCP server {}: it lists {} twice; the first one is used",
                    server.name, offered.own
                ));
            }
        }
        for why in listed.left_out {
            self.notices.push(format!("MCP server {}: left out: {why}", server.name));
        }
        self.connections.push(connection);
    }

    /// Are all connections still open?
    pub(super) fn is_alive(&self) -> bool {
        self.connections.iter().all(|connection| connection.is_alive())
    }

    /// Ends the servers, waiting briefly for each.
    pub async fn close(&self) {
        join_all(self.connections.iter().map(|connection| connection.close())).await;
    }
}

/// The text on one line, shortened.
fn one_line(text: &str) -> String {
    let words: Vec<&str> = text.split_whitespace().collect();
    let line = words.join(" ");
    match line.char_indices().nth(WORDS) {
        Some((end, _)) => format!("{} …", &line[..end]),
        None => line,
    }
}
