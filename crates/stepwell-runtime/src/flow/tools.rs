//! Which tools a spec means, by the names that it gives them.

use std::collections::BTreeSet;
use std::path::Path;

use stepwell::Remedy;
use stepwell_agent::agent::Agent;
use stepwell_agent::mcp::ServerName;
use stepwell_agent::provider::name::KeySource;
use stepwell_agent::tool;
use stepwell_flow::spec::{McpServer, Spec, Step};
use stepwell_workspace::config::{McpConfig, McpReach};

use crate::error::{Error, Result};
use crate::mcp;
use crate::notice::Notice;
use crate::runtime::Runtime;

/// The tools that a list of a spec's means, as agents name them, as far as the guardrails allow
/// them. What is none of Stepwell's is passed over, as the spec's warnings say.
pub(crate) fn named(spec: &Spec, list: &[String]) -> Vec<String> {
    let retrieval = spec.context_policy.as_ref().and_then(|policy| policy.retrieval.as_ref());
    let jit = retrieval.into_iter().flat_map(|retrieval| &retrieval.jit_tools);
    let servers = retrieval.into_iter().flat_map(|retrieval| &retrieval.mcp_servers);
    let ours = list.iter().chain(servers).filter(|name| !spec.tools.is_foreign(name));
    let mut names: Vec<String> = ours.map(|name| meant(spec, name)).collect();
    names.extend(jit.filter_map(|name| Some(looks_up(name)?.to_owned())));
    let mut names: Vec<String> = names.iter().flat_map(|name| left(spec, name)).collect();
    names.sort();
    names.dedup();
    names
}

/// What agents call what a spec calls so: a server stands for all of its tools.
fn meant(spec: &Spec, name: &str) -> String {
    let is_server = spec.tools.mcp.iter().any(|server| server.id.as_str() == name);
    match (is_server, name.strip_prefix("mcp__")) {
        (true, _) => format!("{name}__*"),
        (false, Some(tool)) => tool.to_owned(),
        (false, None) => name.to_owned(),
    }
}

/// What the guardrails leave of a name: all of it, those tools of a server that they name, or
/// nothing.
fn left(spec: &Spec, name: &str) -> Vec<String> {
    let Some(allowed) = allowed(spec) else { return vec![name.to_owned()] };
    let both = |allowed: &String| {
        let allowed = looks_up(allowed).map_or_else(|| meant(spec, allowed), str::to_owned);
        match (is_among(name, &allowed), is_among(&allowed, name)) {
            (true, _) => Some(name.to_owned()),
            (false, true) => Some(allowed),
            (false, false) => None,
        }
    };
    allowed.iter().filter_map(both).collect()
}

fn allowed(spec: &Spec) -> Option<&Vec<String>> {
    spec.security.guardrails.as_ref()?.allow_tools.as_ref()
}

/// Is what one name means among what another does?
fn is_among(name: &str, of: &str) -> bool {
    match of.strip_suffix('*').filter(|start| start.ends_with("__")) {
        Some(start) => name.starts_with(start),
        None => name == of,
    }
}

/// Refuses guardrails that allow a tool of a server that is none, and says which tools they take
/// away: nobody would look for either in an agent that does not do its work.
pub(crate) fn check_guardrails(spec: &Spec, runtime: &Runtime) -> Result<()> {
    let Some(allowed) = allowed(spec) else { return Ok(()) };
    let known: Vec<String> = tool::builtin().iter().map(|tool| tool.spec().name.clone()).collect();
    let configured = runtime.workspace().config.mcp.keys().map(ToString::to_string);
    let servers: Vec<String> =
        spec.tools.mcp.iter().map(|server| server.id.to_string()).chain(configured).collect();
    for name in allowed.iter().filter(|name| !spec.tools.is_foreign(name)) {
        let meant = looks_up(name).map_or_else(|| meant(spec, name), str::to_owned);
        // Which tools a server has is only known of one that some agent uses; a tool that is no
        // server's was looked for when the spec was read.
        let Some((server, _)) = meant.split_once("__") else { continue };
        if !servers.iter().any(|known| known == server) {
            let servers = servers.iter().map(|server| format!("{server}__*"));
            let known = known.iter().cloned().chain(servers).collect();
            let why = format!("security.guardrails.allow_tools: there is no tool {name:?}");
            return Err(Error::config(why).helped_by(Remedy::Choose(known)));
        }
    }
    let mut told = BTreeSet::new();
    let agents = spec.agents.iter().map(|(name, agent)| (format!("agents.{name}"), &*agent.tools));
    let steps = overrides(spec).into_iter().map(|list| ("a step".to_owned(), list));
    for (whose, list) in agents.chain(steps) {
        for name in list.iter().filter(|name| !spec.tools.is_foreign(name)) {
            if left(spec, &meant(spec, name)).is_empty() && told.insert((whose.clone(), name)) {
                let (whose, tool) = (whose.clone(), name.clone());
                runtime.tell(Notice::ToolTakenAway { whose, tool });
            }
        }
    }
    Ok(())
}

/// Stepwell's tool that does what one of strands-cli's for looking things up does.
fn looks_up(name: &str) -> Option<&'static str> {
    match name {
        "grep" | "search" => Some("search"),
        "head" | "tail" => Some("read_file"),
        _ => None,
    }
}

/// The servers that some agent of a flow can use, and an agent that can use them all.
pub(crate) fn servers(spec: &Spec, root: &Path, runtime: &Runtime) -> Result<(mcp::Wanted, Agent)> {
    let mut lists: Vec<&[String]> = spec.agents.values().map(|it| it.tools.as_slice()).collect();
    lists.extend(overrides(spec));
    let mut tools: Vec<String> = lists.into_iter().flat_map(|list| named(spec, list)).collect();
    tools.retain(|name| name.contains("__"));
    let agent = Agent { tools: Some(tools), ..Agent::default() };
    let mut config = runtime.workspace().config.clone();
    for server in &spec.tools.mcp {
        let wrong = |why| Error::config(format!("tools.mcp.{}: {why}", server.id));
        let name: ServerName =
            server.id.as_str().parse().map_err(|_| wrong("its id cannot name a server"))?;
        let described = configured(server);
        let described = described.ok_or_else(|| wrong("it has neither command nor url"))?;
        config.mcp.insert(name, described);
    }
    let with_servers = runtime.in_workspace(runtime.workspace().with_config(config));
    Ok((mcp::Wanted::find(&agent, root, &with_servers), agent))
}

/// A spec's server as a configuration would name it; none, if the spec does not say how it is
/// reached.
pub(crate) fn configured(server: &McpServer) -> Option<McpConfig> {
    let reach = match (&server.command, &server.url) {
        (Some(command), _) => McpReach::Program {
            command: command.clone(),
            args: server.args.clone(),
            env: server.env.clone(),
            env_from: Vec::new(),
            cwd: None,
        },
        (None, Some(url)) => McpReach::Address {
            url: url.clone(),
            headers: server.headers.clone(),
            key: KeySource::Nowhere,
        },
        (None, None) => return None,
    };
    Some(McpConfig { reach, start_timeout: None, timeout: None })
}

/// Tools that steps have in place of their agents'.
fn overrides(spec: &Spec) -> Vec<&[String]> {
    use stepwell_flow::spec::Pattern;
    match &spec.pattern {
        Pattern::Chain(chain) => chain.steps.iter().filter_map(own).collect(),
        Pattern::Workflow(workflow) => {
            workflow.tasks.iter().filter_map(|task| own(&task.step)).collect()
        }
        Pattern::Routing(routing) => {
            routing.routes.values().flat_map(|route| &route.then).filter_map(own).collect()
        }
        Pattern::Parallel(parallel) => {
            let steps = parallel.branches.iter().flat_map(|branch| &branch.steps);
            steps.chain(&parallel.reduce).filter_map(own).collect()
        }
        Pattern::OrchestratorWorkers(config) => {
            let steps = config.reduce.iter().chain(&config.writeup).filter_map(own);
            steps.chain(config.worker_template.tools.as_deref()).collect()
        }
        Pattern::Graph(graph) => graph.nodes.values().filter_map(own).collect(),
        Pattern::EvaluatorOptimizer(_) | Pattern::Guided(_) => Vec::new(),
    }
}

fn own(step: &Step) -> Option<&[String]> {
    step.agent()?.tool_overrides.as_deref()
}
