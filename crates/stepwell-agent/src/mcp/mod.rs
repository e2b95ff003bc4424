//! Tools of MCP servers: programs that are started for a run, or addresses that are asked over
//! HTTP.
//!
//! They are tools like all others. What a server says of itself is bounded before it is
//! used, and a server that fails takes nothing with it but its own tools.

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

/// How long a server has to be ready, unless a user says otherwise. Some are downloaded first.
pub const DEFAULT_START: Duration = Duration::from_secs(30);

/// The largest message that is taken from a server.
const LARGEST_MESSAGE: usize = 8 << 20;

/// How many tools of one server are looked at.
const MOST_LISTED: usize = 5_000;

/// As much of a server's words as is shown.
const WORDS: usize = 300;

/// A server that a user named.
#[derive(Clone, Debug)]
pub struct Server {
    /// What its tools' names begin with.
    pub name: ServerName,
    /// How it is reached.
    pub reach: Reach,
    /// How long it has to be ready.
    pub start: Duration,
    /// How long one call may take; as long as a command, if absent.
    pub timeout: Option<Duration>,
}

/// How a server is reached.
#[derive(Clone, Debug)]
pub enum Reach {
    /// By starting it.
    Program(Program),
    /// Over HTTP.
    Address(Address),
}

/// A server that is started.
#[derive(Clone)]
pub struct Program {
    /// Its name, looked for as a shell would, or its path.
    pub program: String,
    /// Its arguments.
    pub arguments: Vec<String>,
    /// Variables that it is given besides ours.
    pub variables: BTreeMap<String, String>,
    /// Where it starts.
    pub folder: PathBuf,
}

impl std::fmt::Debug for Program {
    /// Without what may be secret.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Program").field("program", &self.program).finish_non_exhaustive()
    }
}

/// A server behind HTTP.
#[derive(Clone)]
pub struct Address {
    /// Where it answers.
    pub url: String,
    /// Headers of every request.
    pub headers: BTreeMap<String, String>,
    /// Its key, as a bearer token.
    pub key: Option<Key>,
}

impl std::fmt::Debug for Address {
    /// Without what may be secret.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Address").finish_non_exhaustive()
    }
}

/// The servers of a run.
#[derive(Debug, Default)]
pub struct Servers {
    connections: Vec<Arc<Connection>>,
    /// The tools of those that answered.
    pub tools: Vec<Arc<dyn Tool>>,
    /// Those that did not, and why.
    pub absent: BTreeMap<String, String>,
    /// What else a user should know: tools that were left out, and why.
    pub notices: Vec<String>,
}

impl Servers {
    /// Starts or reaches each of them, all at once, and asks for their tools. Which of them are
    /// awaited is in `starting`.
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

    /// Do all of them still answer?
    pub(super) fn is_alive(&self) -> bool {
        self.connections.iter().all(|connection| connection.is_alive())
    }

    /// Tells the servers to end, and waits a little until they have.
    pub async fn close(&self) {
        join_all(self.connections.iter().map(|connection| connection.close())).await;
    }
}

/// A text in one line, and not too long.
fn one_line(text: &str) -> String {
    let words: Vec<&str> = text.split_whitespace().collect();
    let line = words.join(" ");
    match line.char_indices().nth(WORDS) {
        Some((end, _)) => format!("{} …", &line[..end]),
        None => line,
    }
}
