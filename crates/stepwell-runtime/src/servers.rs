//! The MCP servers that agents can use: which they are, and what they offer.

use std::collections::BTreeMap;

use stepwell::SessionId;
use stepwell::log::Redactor;
use stepwell::model::Effect;
use stepwell::sqlite::Access;
use stepwell_agent::agent::Agent;
use stepwell_agent::mcp::{ServerName, Servers};
use stepwell_agent::provider::name::KeySource;
use stepwell_agent::selection::may_have;
use stepwell_flow::History;
use stepwell_flow::spec::Spec;
use stepwell_wire::{McpServer, McpState, McpTool, McpTransport};
use stepwell_workspace::Prior;
use stepwell_workspace::config::{McpConfig, McpReach};

use crate::error::{Error, Result};
use crate::flow::{configured, specs_in};
use crate::mcp::Wanted;
use crate::model;
use crate::next_run::find_agent;
use crate::prepare::{place, withheld};
use crate::runtime::Runtime;
use crate::trust::Trust;

/// Which MCP servers are meant.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ServerQuery {
    /// Only those that this session can use; absent, all that are named here.
    pub session: Option<SessionId>,
    /// Only those that this agent can use; absent, the session's agent.
    pub agent: Option<String>,
    /// Are those that are trusted started or reached, and asked for their tools? Others never are.
    pub asks: bool,
}

/// A server, and where it is named.
struct Named {
    name: ServerName,
    config: McpConfig,
    source: String,
    trusted: bool,
}

impl Runtime {
    /// The MCP servers that agents can use: those of the user's configuration, and those of flows'
    /// specs.
    ///
    /// # Errors
    /// If there is no such agent, or the session cannot be read.
    pub fn mcp_servers(&self, query: &ServerQuery) -> Result<Vec<McpServer>> {
        let mut agent = query.agent.as_ref().map(|name| find_agent(name, self)).transpose()?;
        let mut all = Vec::new();
        match &query.session {
            None => self.of_workspace(&mut all),
            Some(session) => {
                let well = self.workspace().open_existing(Access::Read)?;
                let head = well.info(session)?.head;
                if head.flow.is_some() {
                    let spec = History::judged(&well, session)?.stored;
                    if let Some(stored) = spec {
                        let spec = stored.read()?.spec;
                        let source = format!("the spec of {}", spec.name);
                        named_in(&spec, &source, self.trust(session), &mut all);
                    }
                } else if agent.is_none() {
                    let prior = Prior { head: &head, weighed: well.weigh(session)? };
                    // A session of another system may name an agent that is none here.
                    agent = prior.agent().and_then(|agent| find_agent(&agent.name, self).ok());
                }
            }
        }
        let source = self.workspace().host.user_config().map(|path| path.display().to_string());
        for (name, config) in &self.workspace().config.mcp {
            // A flow's own server takes the place of one that has its name.
            if query.session.is_some() && all.iter().any(|it| it.name == *name) {
                continue;
            }
            let (name, config) = (name.clone(), config.clone());
            let source = source.clone().unwrap_or_default();
            all.push(Named { name, config, source, trusted: true });
        }
        let agent = agent.unwrap_or_default();
        all.retain(|it| agent.wants(it.name.as_str()));
        all.sort_by(|a, b| (&a.name, &a.source).cmp(&(&b.name, &b.source)));
        let mut listed: Vec<McpServer> = all.iter().map(|it| self.listed(it)).collect();
        if query.asks {
            self.ask(&all, &agent, &mut listed)?;
        }
        Ok(listed)
    }

    /// Servers of the workspace's specs. They are nobody's until a flow is begun.
    fn of_workspace(&self, all: &mut Vec<Named>) {
        for file in specs_in(&self.workspace().place.root) {
            if let Ok((_, reading)) = Spec::load(&file.path, &file.shown) {
                named_in(&reading.spec, &file.shown, Trust::FOREIGN, all);
            }
        }
    }

    fn listed(&self, named: &Named) -> McpServer {
        let unset = |name: &&String| self.workspace().host.variable(name).is_none();
        let (transport, missing) = match &named.config.reach {
            McpReach::Program { env_from, .. } => {
                (McpTransport::Stdio, env_from.iter().find(unset))
            }
            McpReach::Address { key: KeySource::Variable(name), .. } => {
                (McpTransport::Http, Some(name).filter(unset))
            }
            McpReach::Address { .. } => (McpTransport::Http, None),
        };
        let problem = missing.map(|name| format!("{name} is not set"));
        McpServer {
            name: named.name.to_string(),
            transport,
            reach: Redactor::new([]).redact(&named.config.line()).into_owned(),
            source: named.source.clone(),
            trusted: named.trusted,
            state: if problem.is_some() { McpState::Absent } else { McpState::Unasked },
            problem,
            tools: Vec::new(),
        }
    }

    /// Starts and reaches those that are trusted, asks for their tools, and ends them.
    fn ask(&self, all: &[Named], agent: &Agent, listed: &mut [McpServer]) -> Result<()> {
        let mut config = self.workspace().config.clone();
        let trusted = all.iter().filter(|it| it.trusted);
        config.mcp = trusted.map(|it| (it.name.clone(), it.config.clone())).collect();
        let asking = self.in_workspace(self.workspace().with_config(config));
        let mut place = place(None, &asking)?;
        place.withheld = withheld(&model::provider_keys(&asking)?, &asking).collect();
        let wanted = Wanted::find(agent, &place.root, &asking);
        let tokio = tokio::runtime::Builder::new_current_thread().enable_all().build();
        let tokio = tokio.map_err(Error::Thread)?;
        let (tools, absent) = tokio.block_on(async {
            let servers = wanted.asked(&place, self).await;
            servers.close().await;
            (offered(&servers, agent), servers.absent)
        });
        for server in listed.iter_mut().filter(|it| it.trusted) {
            match absent.get(&server.name) {
                Some(why) => {
                    let why =
                        Redactor::new(wanted.secrets.iter().cloned()).redact(why).into_owned();
                    (server.state, server.problem) = (McpState::Absent, Some(why));
                }
                None => {
                    server.state = McpState::Ready;
                    server.tools = tools.get(&server.name).cloned().unwrap_or_default();
                }
            }
        }
        Ok(())
    }
}

/// The servers that a spec names.
fn named_in(spec: &Spec, source: &str, trust: Trust, all: &mut Vec<Named>) {
    for server in &spec.tools.mcp {
        let name = server.id.as_str().parse();
        if let (Ok(name), Some(config)) = (name, configured(server)) {
            all.push(Named { name, config, source: source.to_owned(), trusted: trust.is_own() });
        }
    }
}

/// What servers offer an agent, by their names.
fn offered(servers: &Servers, agent: &Agent) -> BTreeMap<String, Vec<McpTool>> {
    let mut all: BTreeMap<String, Vec<McpTool>> = BTreeMap::new();
    for tool in servers.tools.iter().filter(|tool| may_have(agent, &***tool)) {
        let spec = tool.spec();
        let Some((server, _)) = spec.name.split_once("__") else { continue };
        all.entry(server.to_owned()).or_default().push(McpTool {
            name: spec.name.clone(),
            description: spec.description.clone(),
            read_only: tool.effect() == Effect::Pure,
        });
    }
    all
}
