//! The MCP servers of a run: from what the user named to tools that can be called.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use stepwell_agent::agent::Agent;
use stepwell_agent::mcp::{Address, DEFAULT_START, Program, Reach, Server, ServerName, Servers};
use stepwell_agent::provider::name::KeySource;
use stepwell_agent::provider::remote::Key;
use stepwell_agent::redact::Redactor;
use stepwell_agent::selection::{MOST_TOOLS, Selection, select};
use stepwell_agent::tool::{self, Place};
use stepwell_workspace::config::{McpConfig, McpReach, WORKSPACE};
use tokio::runtime::Runtime;
use tokio::sync::watch;

use super::model::key;
use super::signals;
use crate::app::App;
use crate::failure::{Exit, Failure, Result};
use crate::output::note;
use crate::text::{count, visible};

/// The servers that an agent can use.
#[derive(Debug, Default)]
pub(super) struct Wanted {
    servers: Vec<Server>,
    /// Those that cannot even be tried, and why.
    absent: BTreeMap<String, String>,
    /// What must not be written anywhere.
    pub(super) secrets: Vec<String>,
    /// Is a person told when they take long to start?
    live: bool,
}

impl Wanted {
    /// What the user's configuration says of them.
    pub(super) fn find(agent: &Agent, root: &Path, app: &App) -> Self {
        let terminal = app.terminal;
        let mut wanted = Self { live: terminal.output && terminal.can_ask, ..Self::default() };
        for (name, config) in &app.config.mcp {
            if !agent.wants(name.as_str()) {
                continue;
            }
            match wanted.server(name, config, root, app) {
                Ok(server) => wanted.servers.push(server),
                Err(why) => {
                    wanted.absent.insert(name.to_string(), why);
                }
            }
        }
        wanted
    }

    fn server(
        &mut self,
        name: &ServerName,
        config: &McpConfig,
        root: &Path,
        app: &App,
    ) -> Result<Server, String> {
        let placed = |text: &str| text.replace(WORKSPACE, &root.to_string_lossy());
        let reach = match &config.reach {
            McpReach::Program { command, args, env, env_from, cwd } => {
                self.hide(env);
                let mut variables: BTreeMap<_, _> =
                    env.iter().map(|(name, value)| (name.clone(), placed(value))).collect();
                for name in env_from {
                    let value = app.host.variable(name).ok_or_else(|| unset(name))?;
                    self.secrets.push(value.clone());
                    variables.insert(name.clone(), value);
                }
                // Not in the workspace: a program such as npx takes code from where it starts.
                let folder = cwd.as_deref().map(|cwd| placed(cwd).into());
                let folder = folder.or_else(|| app.host.home.clone());
                Reach::Program(Program {
                    program: placed(command),
                    arguments: args.iter().map(|argument| placed(argument)).collect(),
                    variables,
                    folder: folder.unwrap_or_else(|| "/".into()),
                })
            }
            McpReach::Address { url, headers, key: source } => {
                self.hide(headers);
                let key = key(source, &format!("MCP server {name}"), app);
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

    /// Starts and reaches them, and gives the agent its tools.
    pub(super) fn connect(&self, lists: &Lists<'_>, place: &Place) -> Result<Connected> {
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(2)
            .enable_all()
            .build()
            .map_err(|error| {
                Failure::new(Exit::Failed, format_args!("no threads to run on: {error}"))
            })?;
        let mut servers = runtime.block_on(self.start(place));
        servers.absent.extend(self.absent.clone());
        let mut all = tool::builtin();
        all.append(&mut servers.tools);
        let names: Vec<_> = all.iter().map(|tool| tool.spec().name.clone()).collect();
        let selection = select(lists.agent, all, &servers.absent).map_err(|error| {
            let failure = Failure::new(Exit::Absent, format_args!("{}: {error}", lists.at));
            failure.hint(hint(&error, &names, lists))
        })?;
        let interrupt = signals::watch(&runtime);
        let connected = Connected { runtime, interrupt, servers, selection };
        connected.tell();
        Ok(connected)
    }
}

/// How long servers may take to start without a word about it.
const SLOW: Duration = Duration::from_secs(1);

impl Wanted {
    /// Starts and reaches them. Those who wait are told for what.
    async fn start(&self, place: &Place) -> Servers {
        let starting = Servers::connect(&self.servers, place);
        tokio::pin!(starting);
        tokio::select! {
            servers = &mut starting => return servers,
            () = tokio::time::sleep(SLOW), if self.live => {}
        }
        let names: Vec<&str> = self.servers.iter().map(|server| server.name.as_str()).collect();
        let what = if names.len() == 1 { "MCP server" } else { "MCP servers" };
        note(visible(&format!("Waiting for {what} {} to start", names.join(", "))));
        starting.await
    }
}

/// A run's tools, and what they live on.
pub(super) struct Connected {
    pub(super) runtime: Runtime,
    /// Becomes true when the user wants the run to stop.
    pub(super) interrupt: watch::Receiver<bool>,
    servers: Servers,
    pub(super) selection: Selection,
}

impl Connected {
    /// Says what is not as the user might expect.
    fn tell(&self) {
        for (name, why) in &self.servers.absent {
            note(visible(&format!("MCP server {name}: {why}; going on without it")));
        }
        for notice in &self.servers.notices {
            note(visible(notice));
        }
        if self.selection.left_out > 0 {
            note(format_args!(
                "{} left out: a model is given {MOST_TOOLS} at most; name those that matter in \
                 the agent's tools",
                count(self.selection.left_out, "tool")
            ));
        }
    }
}

impl Connected {
    /// Ends the servers; once is enough.
    pub(super) fn close(&self) {
        self.runtime.block_on(self.servers.close());
    }
}

impl Drop for Connected {
    /// However a run ends, its servers do.
    fn drop(&mut self) {
        self.close();
    }
}

/// Which tools an agent is to have, and where that and the servers are written.
pub(super) struct Lists<'a> {
    pub(super) agent: &'a Agent,
    /// Where they are listed, such as `agents.build.tools`.
    pub(super) at: String,
    /// Servers that a spec describes, and not the user's configuration.
    pub(super) in_spec: Vec<&'a str>,
}

impl<'a> Lists<'a> {
    /// What an agent of the configuration is to have.
    pub(super) fn of(name: &str, agent: &'a Agent) -> Self {
        Self { agent, at: format!("agents.{name}.tools"), in_spec: Vec::new() }
    }
}

/// What to do about a tool that an agent is to have and cannot.
fn hint(error: &stepwell_agent::Error, names: &[String], lists: &Lists<'_>) -> String {
    /// As many as a person reads.
    const SHOWN: usize = 20;
    let entry = match error {
        stepwell_agent::Error::ServerAbsent { server, .. }
            if lists.in_spec.contains(&server.as_str()) =>
        {
            return format!("mend tools.mcp in the spec, where {server} is described");
        }
        stepwell_agent::Error::ServerAbsent { server, .. } => {
            return format!("mend mcp.{server} in your configuration, or the agent's tools");
        }
        stepwell_agent::Error::NoTool { entry, .. } => entry,
        _ => "",
    };
    let server = entry.split_once("__").map(|(server, _)| format!("{server}__"));
    let like = |name: &&String| match &server {
        Some(server) => name.starts_with(server),
        None => !name.contains("__"),
    };
    let known: Vec<_> = names.iter().filter(like).map(String::as_str).collect();
    match known.len() {
        0 => "stepwell config lists your MCP servers".to_owned(),
        n if n > SHOWN => format!("known are {}, …", known[..SHOWN].join(", ")),
        _ => format!("known are {}", known.join(", ")),
    }
}

fn unset(variable: &str) -> String {
    format!("{variable} is not set")
}

/// The variables that hold servers' keys.
pub(super) fn key_variables(app: &App) -> impl Iterator<Item = String> {
    app.config.mcp.values().filter_map(|server| match &server.reach {
        McpReach::Address { key: KeySource::Variable(name), .. } => Some(name.clone()),
        _ => None,
    })
}
