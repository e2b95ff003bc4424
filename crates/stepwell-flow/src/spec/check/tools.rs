//! Tools that agents are given by name: Stepwell's own, the spec's, and those of MCP servers.

use std::collections::BTreeSet;

use super::MOST_PROBLEMS;
use super::sites::Site;
use super::warnings::JIT_TOOLS;
use crate::names::{listed, nearest};
use crate::spec::Spec;
use crate::spec::place::{Path, Problem};

/// What stands between a server's name and its tool's.
const BETWEEN: &str = "__";

/// Checks every list of tools. Whether a server that is not the spec's is configured is not
/// known here: see [`servers`].
pub(super) fn check(spec: &Spec, all: &[Site<'_>], problems: &mut Vec<Problem>) {
    let lists = lists(spec, all);
    if lists.iter().all(|(_, list)| list.is_empty()) {
        return;
    }
    let own: BTreeSet<String> =
        stepwell_agent::tool::builtin().iter().map(|tool| tool.spec().name.clone()).collect();
    for (path, list) in lists {
        for (n, name) in list.iter().enumerate() {
            if problems.len() >= MOST_PROBLEMS {
                return;
            }
            let is_own =
                own.contains(name) || JIT_TOOLS.contains(&name.as_str()) && is_guard(spec, list);
            if !is_own && !of_spec(spec, name) && server_of(name).is_none() {
                problems.push(nowhere(spec, &own, path.at(n), name));
            }
        }
    }
}

/// Servers that are named before a tool and are not the spec's, each with what is wrong if
/// the configuration has none of that name either.
pub(in crate::spec) fn servers(spec: &Spec) -> Vec<(String, Problem)> {
    let mut found = Vec::new();
    for (path, list) in lists(spec, &super::sites::all(&spec.pattern)) {
        for (n, name) in list.iter().enumerate().filter(|(_, name)| !of_spec(spec, name)) {
            let Some(server) = server_of(name) else { continue };
            let known = || spec.tools.mcp.iter().map(|server| server.id.as_str());
            if known().any(|known| known == server) {
                continue;
            }
            let hint = match nearest(server, known()) {
                Some(near) => format!("did you mean `{}`?", name.replacen(server, near, 1)),
                None => "a server is named under `tools.mcp`, or in the configuration".to_owned(),
            };
            let what = format!("there is no server `{server}` that could have the tool `{name}`");
            found.push((server.to_owned(), Problem::new(path.at(n), what).hinting(Some(hint))));
        }
    }
    found
}

/// The lists of tools, and where they are.
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
    let allowed = guard(spec)
        .map(|list| (Path::root().at("security").at("guardrails").at("allow_tools"), list));
    agents.chain(sites).chain(allowed).collect()
}

/// The tools that the guardrails allow.
fn guard(spec: &Spec) -> Option<&[String]> {
    spec.security.guardrails.as_ref()?.allow_tools.as_deref()
}

fn is_guard(spec: &Spec, list: &[String]) -> bool {
    guard(spec).is_some_and(|guard| std::ptr::eq(guard, list))
}

/// Is it a tool of the spec's, if only one that agents go without?
fn of_spec(spec: &Spec, name: &str) -> bool {
    spec.tools.is_foreign(name) || spec.tools.mcp.iter().any(|it| it.id.as_str() == name)
}

/// The server whose tool it is: `mcp__SERVER__TOOL`, or without the first part.
fn server_of(name: &str) -> Option<&str> {
    let bare = name.strip_prefix("mcp__").unwrap_or(name);
    bare.split_once(BETWEEN).map(|(server, _)| server).filter(|server| !server.is_empty())
}

fn nowhere(spec: &Spec, own: &BTreeSet<String>, path: Path, name: &str) -> Problem {
    let of_spec = spec.tools.mcp.iter().map(|server| server.id.as_str());
    let known: Vec<&str> = own.iter().map(String::as_str).chain(of_spec).collect();
    let hint = nearest(name, known.iter().copied()).map(|near| format!("did you mean `{near}`?"));
    let what = format!("there is no tool `{name}`; there is {}", listed(known));
    Problem::new(path, what).hinting(hint)
}
