//! The MCP servers of a run: from what the user named to tools that can be called.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use stepwell::Remedy;
use stepwell::error::Listing;
use stepwell::log::Redactor;
use stepwell_agent::agent::Agent;
use stepwell_agent::mcp::{
    Address, DEFAULT_START, KeptServers, Program, Reach, Server, ServerName, Servers, Starting,
};
use stepwell_agent::provider::name::KeySource;
use stepwell_agent::provider::remote::Key;
use stepwell_agent::selection::{MOST_TOOLS, Selection, select};
use stepwell_agent::tool::{self, ToolEnv};
use stepwell_workspace::config::{McpConfig, McpReach, WORKSPACE};

use crate::error::{Error, Result};
use crate::model::key;
use crate::notice::Notice;
use crate::request::Interrupt;
use crate::runtime::Runtime;

/// The shortest value that is taken for a secret by where it stands alone: shorter ones are words
/// that texts are full of.
const SHORTEST_SECRET: usize = 8;

/// The servers that an agent can use.
#[derive(Debug, Default)]
pub(crate) struct Wanted {
    servers: Vec<Server>,
    /// Those that a front end keeps running.
    kept: Option<Arc<KeptServers>>,
    /// Those that cannot even be tried, and why.
    absent: BTreeMap<String, String>,
    /// What must not be written anywhere.
    pub(crate) secrets: Vec<String>,
}

impl Wanted {
    /// What the user's configuration says of them.
    pub(crate) fn find(agent: &Agent, root: &Path, runtime: &Runtime) -> Self {
        let mut wanted = Self::default();
        for (name, config) in &runtime.workspace().config.mcp {
            if !agent.wants(name.as_str()) {
                continue;
            }
            match wanted.server(name, config, root, runtime) {
                Ok(server) => wanted.servers.push(server),
                Err(why) => {
                    wanted.absent.insert(name.to_string(), why);
                }
            }
        }
        wanted
    }

    /// The same with servers that a front end brings. What they are given is a secret, whatever it
    /// is called; one that is named like a server of the configuration takes its place.
    pub(crate) fn with(mut self, brought: &[Server]) -> Self {
        for server in brought {
            self.make_room(server);
            self.servers.push(server.clone());
        }
        self
    }

    /// The same with servers that a front end keeps running over several runs.
    pub(crate) fn keeping(mut self, kept: Option<Arc<KeptServers>>) -> Self {
        for server in kept.iter().flat_map(|kept| kept.servers()) {
            self.make_room(server);
        }
        Self { kept, ..self }
    }

    fn make_room(&mut self, brought: &Server) {
        let given = match &brought.reach {
            Reach::Program(program) => &program.variables,
            Reach::Address(address) => &address.headers,
        };
        let long = given.values().filter(|value| value.len() >= SHORTEST_SECRET);
        self.secrets.extend(long.cloned());
        self.servers.retain(|other| other.name != brought.name);
    }

    fn server(
        &mut self,
        name: &ServerName,
        config: &McpConfig,
        root: &Path,
        runtime: &Runtime,
    ) -> Result<Server, String> {
        let placed = |text: &str| text.replace(WORKSPACE, &root.to_string_lossy());
        let reach = match &config.reach {
            McpReach::Program { command, args, env, env_from, cwd } => {
                self.hide(env);
                let mut variables: BTreeMap<_, _> =
                    env.iter().map(|(name, value)| (name.clone(), placed(value))).collect();
                for name in env_from {
                    let value =
                        runtime.workspace().host.variable(name).ok_or_else(|| unset(name))?;
                    self.secrets.push(value.clone());
                    variables.insert(name.clone(), value);
                }
                // Not in the workspace: a program such as npx takes code from where it starts.
                let folder = cwd.as_deref().map(|cwd| placed(cwd).into());
                let folder = folder.or_else(|| runtime.workspace().host.home.clone());
                Reach::Program(Program {
                    program: placed(command),
                    arguments: args.iter().map(|argument| placed(argument)).collect(),
                    variables,
                    folder: folder.unwrap_or_else(|| "/".into()),
                })
            }
            McpReach::Address { url, headers, key: source } => {
                self.hide(headers);
                let key = key(source, &format!("MCP server {name}"), runtime);
                let key = key.map_err(|failure| failure.to_string())?;
                if let (KeySource::Variable(name), None) = (source, &key) {
                    return Err(unset(name));
                }
                self.secrets.extend(key.clone());
                let (url, headers) = (url.clone(), headers.clone());
                Reach::Address(Address { url, headers, key: key.as_deref().map(Key::new) })
            }
        };
        let start = config.start_timeout.unwrap_or(DEFAULT_START);
        Ok(Server { name: name.clone(), reach, start, timeout: config.timeout })
    }

    /// Remembers those values whose names or shapes say that they are secret.
    fn hide(&mut self, values: &BTreeMap<String, String>) {
        let rules = Redactor::new([]);
        let is_secret = |(name, value): &(&String, &String)| {
            let line = format!("{name}=\"{value}\"");
            rules.redact(&line) != line.as_str()
        };
        self.secrets.extend(values.iter().filter(is_secret).map(|(_, value)| value.clone()));
    }

    /// Starts and reaches them, and gives the agent its tools. Whoever interrupts it meanwhile does
    /// not wait for servers that are slow.
    pub(crate) async fn connect(
        &self,
        lists: &Lists<'_>,
        place: &ToolEnv,
        interrupt: &Interrupt,
        runtime: &Runtime,
    ) -> Result<Connected> {
        let mut asked = interrupt.receiver();
        let mut servers = tokio::select! {
            servers = self.start(place, runtime) => servers,
            _ = asked.wait_for(|asked| *asked) => return Err(Error::Interrupted),
        };
        servers.absent.extend(self.absent.clone());
        let mut all = tool::builtin();
        all.append(&mut servers.tools);
        let names: Vec<_> = all.iter().map(|tool| tool.spec().name.clone()).collect();
        let selection = match select(lists.agent, all, &servers.absent) {
            Ok(selection) => selection,
            Err(error) => {
                servers.close().await;
                let remedy = remedy(&error, names, lists);
                return Err(Error::config(format!("{}: {error}", lists.at)).helped_by(remedy));
            }
        };
        let connected = Connected { servers: Arc::new(servers), selection };
        connected.tell(runtime);
        Ok(connected)
    }

    /// Starts and reaches them, to ask what they offer. Those that cannot even be tried are absent.
    pub(crate) async fn asked(&self, place: &ToolEnv, runtime: &Runtime) -> Servers {
        let mut servers = self.start(place, runtime).await;
        servers.absent.extend(self.absent.clone());
        servers
    }

    /// Starts and reaches them; those that are kept only if they do not run yet.
    async fn open(&self, place: &ToolEnv, awaited: &Starting) -> Servers {
        let own = Servers::connect(&self.servers, place, awaited);
        let Some(kept) = &self.kept else { return own.await };
        let (mut all, kept) = tokio::join!(own, kept.connect(place, awaited));
        all.tools.extend(kept.tools);
        all.absent.extend(kept.absent);
        all.notices.extend(kept.notices);
        all
    }

    /// Starts and reaches them. Those who wait are told for what.
    async fn start(&self, place: &ToolEnv, runtime: &Runtime) -> Servers {
        let awaited = Starting::default();
        let starting = self.open(place, &awaited);
        tokio::pin!(starting);
        tokio::select! {
            servers = &mut starting => return servers,
            () = tokio::time::sleep(SLOW) => {}
        }
        let names = awaited.names();
        if !names.is_empty() {
            runtime.tell(Notice::ServersSlow { names });
        }
        starting.await
    }
}

/// How long servers may take to start without a word about it.
const SLOW: Duration = Duration::from_secs(1);

/// A run's tools, and the servers behind them.
pub(crate) struct Connected {
    pub(crate) servers: Arc<Servers>,
    pub(crate) selection: Selection,
}

impl Connected {
    /// Says what is not as the user might expect.
    fn tell(&self, runtime: &Runtime) {
        for (name, why) in &self.servers.absent {
            runtime.tell(Notice::ServerAbsent { name: name.clone(), why: why.clone() });
        }
        for notice in &self.servers.notices {
            runtime.tell(Notice::Server(notice.clone()));
        }
        let count = self.selection.left_out;
        if count > 0 {
            runtime.tell(Notice::ToolsLeftOut { count, most: MOST_TOOLS });
        }
    }

    /// Ends the servers; once is enough.
    pub(crate) async fn close(&self) {
        self.servers.close().await;
    }
}

/// Which tools an agent is to have, and where that and the servers are written.
pub(crate) struct Lists<'a> {
    pub(crate) agent: &'a Agent,
    /// Where they are listed, such as `agents.build.tools`.
    pub(crate) at: String,
    /// Servers that a spec describes, and not the user's configuration.
    pub(crate) in_spec: Vec<&'a str>,
}

impl<'a> Lists<'a> {
    /// What an agent of the configuration is to have.
    pub(crate) fn of(name: &str, agent: &'a Agent) -> Self {
        Self { agent, at: format!("agents.{name}.tools"), in_spec: Vec::new() }
    }
}

/// What to do about a tool that an agent is to have and cannot.
fn remedy(error: &stepwell_agent::Error, names: Vec<String>, lists: &Lists<'_>) -> Remedy {
    let entry = match error {
        stepwell_agent::Error::ServerAbsent { server, .. }
            if lists.in_spec.contains(&server.as_str()) =>
        {
            let place = format!("tools.mcp in the spec, where {server} is described");
            return Remedy::Correct(place);
        }
        stepwell_agent::Error::ServerAbsent { server, .. } => {
            let place = format!("mcp.{server} in your configuration, or the agent's tools");
            return Remedy::Correct(place);
        }
        stepwell_agent::Error::NoTool { entry, .. } => entry,
        _ => "",
    };
    let server = entry.split_once("__").map(|(server, _)| format!("{server}__"));
    let like = |name: &String| match &server {
        Some(server) => name.starts_with(server),
        None => !name.contains("__"),
    };
    let known: Vec<String> = names.into_iter().filter(like).collect();
    if known.is_empty() { Remedy::List(Listing::Servers) } else { Remedy::Choose(known) }
}

fn unset(variable: &str) -> String {
    format!("{variable} is not set")
}

/// The variables that hold servers' keys.
pub(crate) fn key_variables(runtime: &Runtime) -> impl Iterator<Item = String> {
    runtime.workspace().config.mcp.values().filter_map(|server| match &server.reach {
        McpReach::Address { key: KeySource::Variable(name), .. } => Some(name.clone()),
        _ => None,
    })
}
