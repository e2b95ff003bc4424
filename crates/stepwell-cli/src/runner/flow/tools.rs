//! Which tools a spec means, by the names that it gives them.

use std::path::Path;

use stepwell_agent::agent::Agent;
use stepwell_agent::mcp::ServerName;
use stepwell_agent::provider::name::KeySource;
use stepwell_flow::spec::{McpServer, Spec, Step};

use super::super::mcp;
use crate::app::App;
use crate::config::{McpConfig, McpReach};
use crate::failure::{Exit, Failure, Result};

/// The tools that a list of a spec's means, as agents name them. What is none of Stepwell's is
/// passed over, as the spec's warnings say.
pub(super) fn named(spec: &Spec, list: &[String]) -> Vec<String> {
    let retrieval = spec.context_policy.as_ref().and_then(|policy| policy.retrieval.as_ref());
    let jit = retrieval.into_iter().flat_map(|retrieval| &retrieval.jit_tools);
    let servers = retrieval.into_iter().flat_map(|retrieval| &retrieval.mcp_servers);
    let foreign = |name: &str| {
        spec.tools.python.iter().any(|tool| tool.0 == name)
            || spec.tools.http_executors.iter().any(|tool| tool.id.as_str() == name)
            || name.contains('.')
    };
    let mut names: Vec<String> = Vec::new();
    for name in list.iter().chain(servers).map(String::as_str).filter(|name| !foreign(name)) {
        let is_server = spec.tools.mcp.iter().any(|server| server.id.as_str() == name);
        names.push(match (is_server, name.strip_prefix("mcp__")) {
            (true, _) => format!("{name}__*"),
            (false, Some(tool)) => tool.to_owned(),
            (false, None) => name.to_owned(),
        });
    }
    names.extend(jit.filter_map(|name| Some(looks_up(name)?.to_owned())));
    let guardrails = spec.security.guardrails.as_ref();
    if let Some(allowed) = guardrails.and_then(|guardrails| guardrails.allow_tools.as_ref()) {
        names.retain(|name| {
            let bare = name.trim_end_matches("__*");
            allowed.iter().any(|allowed| allowed == name || allowed == bare)
        });
    }
    names.sort();
    names.dedup();
    names
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
pub(super) fn servers(spec: &Spec, root: &Path, app: &App) -> Result<(mcp::Wanted, Agent)> {
    let mut lists: Vec<&[String]> = spec.agents.values().map(|it| it.tools.as_slice()).collect();
    lists.extend(overrides(spec));
    let mut tools: Vec<String> = lists.into_iter().flat_map(|list| named(spec, list)).collect();
    tools.retain(|name| name.contains("__"));
    let agent = Agent { tools: Some(tools), ..Agent::default() };
    let mut app = app.twin();
    for server in &spec.tools.mcp {
        let wrong =
            |why: &str| Failure::new(Exit::Absent, format_args!("tools.mcp.{}: {why}", server.id));
        let name: ServerName =
            server.id.as_str().parse().map_err(|_| wrong("its id cannot name a server"))?;
        let config = configured(server).ok_or_else(|| wrong("it has neither command nor url"))?;
        app.config.mcp.insert(name, config);
    }
    Ok((mcp::Wanted::find(&agent, root, &app), agent))
}

fn configured(server: &McpServer) -> Option<McpConfig> {
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
        Pattern::EvaluatorOptimizer(_) => Vec::new(),
    }
}

fn own(step: &Step) -> Option<&[String]> {
    step.agent()?.tool_overrides.as_deref()
}
