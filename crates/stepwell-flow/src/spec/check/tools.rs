//! Checks the names of agents' tools: built-in ones, those of the spec, and those of MCP servers.

use std::collections::BTreeSet;

use super::MAX_PROBLEMS;
use super::sites::Site;
use super::warnings::JIT_TOOLS;
use crate::names::{listed, nearest};
use crate::spec::Spec;
use crate::spec::problem::{Path, Problem};

/// Separates the name of a server from the name of its tool.
const SEPARATOR: &str = "__";

/// Checks every list of tools. Servers that the spec does not define may be configured, which
/// is not known here: see [`servers`].
pub(super) fn check(spec: &Spec, all: &[Site<'_>], problems: &mut Vec<Problem>) {
    let lists = lists(spec, all);
    if lists.iter().all(|(_, list)| list.is_empty()) {
        return;
    }
    let built_in: BTreeSet<String> =
        stepwell_agent::tool::builtin().iter().map(|tool| tool.spec().name.clone()).collect();
    for (path, list) in lists {
        for (n, name) in list.iter().enumerate() {
            if problems.len() >= MAX_PROBLEMS {
                return;
            }
            let is_built_in = built_in.contains(name)
                || JIT_TOOLS.contains(&name.as_str()) && is_allow_list(spec, list);
            if !is_built_in && !is_of_spec(spec, name) && server_of(name).is_none() {
                problems.push(unknown_tool(spec, &built_in, path.at(n), name));
            }
        }
    }
}

/// MCP servers that agents use and the spec does not define, each with the problem to report if
/// the configuration does not define it either.
pub(in crate::spec) fn servers(spec: &Spec) -> Vec<(String, Problem)> {
    let mut found = Vec::new();
    for (path, list) in lists(spec, &super::sites::all(&spec.pattern)) {
        for (n, name) in list.iter().enumerate().filter(|(_, name)| !is_of_spec(spec, name)) {
            let Some(server) = server_of(name) else { continue };
            let known = || spec.tools.mcp.iter().map(|server| server.id.as_str());
            if known().any(|known| known == server) {
                continue;
            }
            let hint = match nearest(server, known()) {
                Some(near) => format!("did you mean `{}`?", name.replacen(server, near, 1)),
                None => "define the server under `tools.mcp` or in the configuration".to_owned(),
            };
            let what = format!("unknown server `{server}` of the tool `{name}`");
            found.push((server.to_owned(), Problem::new(path.at(n), what).with_hint(Some(hint))));
        }
    }
    found
}

/// All lists of tools, and their paths.
fn lists<'a>(spec: &'a Spec, all: &[Site<'a>]) -> Vec<(Path, &'a [String])> {
    let agents =
        spec.agents.iter().filter(|(_, agent)| !agent.tools.is_empty()).map(|(name, agent)| {
            let path = Path::root().at("agents").at(name.as_str()).at("tools");
            (path, agent.tools.as_slice())
        });
    let sites = all.iter().filter_map(|site| {
        let (key, list) = site.tools?;
        Some((site.path.at(key), list))
    });
    let allowed = allow_list(spec)
        .map(|list| (Path::root().at("security").at("guardrails").at("allow_tools"), list));
    agents.chain(sites).chain(allowed).collect()
}

/// The tools that the guardrails allow.
fn allow_list(spec: &Spec) -> Option<&[String]> {
    spec.security.guardrails.as_ref()?.allow_tools.as_deref()
}

fn is_allow_list(spec: &Spec, list: &[String]) -> bool {
    allow_list(spec).is_some_and(|allowed| std::ptr::eq(allowed, list))
}

/// Whether the spec defines the tool, even if agents have to work without it.
fn is_of_spec(spec: &Spec, name: &str) -> bool {
    spec.tools.is_foreign(name) || spec.tools.mcp.iter().any(|it| it.id.as_str() == name)
}

/// The server of a tool named `mcp__SERVER__TOOL` or `SERVER__TOOL`.
fn server_of(name: &str) -> Option<&str> {
    let bare = name.strip_prefix("mcp__").unwrap_or(name);
    bare.split_once(SEPARATOR).map(|(server, _)| server).filter(|server| !server.is_empty())
}

fn unknown_tool(spec: &Spec, built_in: &BTreeSet<String>, path: Path, name: &str) -> Problem {
    let of_spec = spec.tools.mcp.iter().map(|server| server.id.as_str());
    let known: Vec<&str> = built_in.iter().map(String::as_str).chain(of_spec).collect();
    let hint = nearest(name, known.iter().copied()).map(|near| format!("did you mean `{near}`?"));
    let what = format!("unknown tool `{name}`; expected one of: {}", listed(known));
    Problem::new(path, what).with_hint(hint)
}
