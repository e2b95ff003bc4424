//! Checks beyond the form of a spec: names refer to something, tasks have no cycle, and
//! templates use only names that have a value.

mod edges;
mod settings;
mod sites;
mod templates;
mod tools;
mod warnings;

use std::collections::BTreeSet;

use super::pattern::Pattern;
use super::problem::{Path, Problem};
use super::{Guided, Name, Spec};
use crate::names::{listed, nearest};

pub(super) use tools::servers;
pub(super) use warnings::warnings;

/// How many problems are reported. More are of little use, and each costs a search for similar
/// names.
const MAX_PROBLEMS: usize = 20;

/// The errors of a spec.
pub(super) fn errors(spec: &Spec) -> Vec<Problem> {
    let mut problems = Vec::new();
    let all = sites::all(&spec.pattern);
    settings::check(spec, &all, &mut problems);
    if spec.agents.is_empty() {
        problems.push(Problem::new(Path::root().at("agents"), "expected at least one agent"));
    }
    for site in &all {
        if problems.len() >= MAX_PROBLEMS {
            return problems;
        }
        check_agent(spec, site, &mut problems);
        check_gate(site, &mut problems);
    }
    tools::check(spec, &all, &mut problems);
    check_pattern(&spec.pattern, &mut problems);
    // Templates refer to steps and tasks, so those must be valid first.
    if problems.is_empty() {
        templates::check(spec, &all, &mut problems);
    }
    problems
}

fn check_agent(spec: &Spec, site: &sites::Site<'_>, problems: &mut Vec<Problem>) {
    let Some(agent) = site.agent else { return };
    if !spec.agents.contains_key(agent) {
        let path = site.path.at("agent");
        problems.push(unknown(path, "agent", agent.as_str(), spec.agents.keys()));
    }
}

/// A name that refers to nothing.
fn unknown<'a>(
    path: Path,
    what: &str,
    name: &str,
    known: impl Iterator<Item = &'a Name> + Clone,
) -> Problem {
    let hint = nearest(name, known.clone().map(Name::as_str));
    let hint = hint.map(|near| format!("did you mean `{near}`?"));
    let known = listed(known.map(Name::as_str));
    Problem::new(path, format!("unknown {what} `{name}`; expected one of: {known}")).with_hint(hint)
}

fn check_gate(site: &sites::Site<'_>, problems: &mut Vec<Problem>) {
    let Some(gate) = site.gate else { return };
    let pattern = gate.validation.as_ref().and_then(|validation| validation.pattern.as_ref());
    if let (Some(pattern), Some(default)) = (pattern, &gate.default)
        && !pattern.matches(default)
    {
        let what = format!("the default {default:?} does not match {:?}", pattern.as_str());
        problems.push(Problem::new(site.path.at("default"), what));
    }
}

/// Checks what each pattern requires.
fn check_pattern(pattern: &Pattern, problems: &mut Vec<Problem>) {
    let config = Path::root().at("pattern").at("config");
    let mut non_empty = |empty: bool, path: Path, what: &str| {
        if empty {
            problems.push(Problem::new(path, format!("expected at least one {what}")));
        }
    };
    match pattern {
        Pattern::Chain(chain) => non_empty(chain.steps.is_empty(), config.at("steps"), "step"),
        Pattern::Workflow(flow) => {
            non_empty(flow.tasks.is_empty(), config.at("tasks"), "task");
            edges::tasks(flow, &config, problems);
        }
        Pattern::Routing(routing) => {
            non_empty(routing.routes.is_empty(), config.at("routes"), "route");
        }
        Pattern::Parallel(parallel) => {
            let path = config.at("branches");
            non_empty(parallel.branches.is_empty(), path.clone(), "branch");
            for (n, branch) in parallel.branches.iter().enumerate() {
                non_empty(branch.steps.is_empty(), path.at(n).at("steps"), "step");
            }
            let ids = parallel.branches.iter().map(|branch| &branch.id);
            unique(ids, &path, "branch", problems);
        }
        Pattern::EvaluatorOptimizer(evaluator) => {
            let score = evaluator.accept.min_score;
            if !(0.0..=100.0).contains(&score) {
                let what = format!("invalid score {score}: expected 0 to 100");
                problems.push(Problem::new(config.at("accept").at("min_score"), what));
            }
        }
        Pattern::OrchestratorWorkers(_) => {}
        Pattern::Graph(graph) => {
            non_empty(graph.nodes.is_empty(), config.at("nodes"), "node");
            edges::graph(graph, &config, problems);
        }
        Pattern::Guided(guided) => check_guided(guided, &config, problems),
    }
}

fn check_guided(guided: &Guided, config: &Path, problems: &mut Vec<Problem>) {
    for (n, check) in guided.checks.iter().enumerate() {
        if check.trim().is_empty() {
            problems.push(Problem::new(config.at("checks").at(n), "expected a command line"));
        }
    }
    if let Some(run) = &guided.run
        && let Err(why) = crate::spec::guided::check_program(run)
    {
        problems.push(Problem::new(config.at("run"), why));
    }
}

/// Reports ids that occur twice.
fn unique<'a>(
    ids: impl Iterator<Item = &'a Name>,
    path: &Path,
    what: &str,
    problems: &mut Vec<Problem>,
) {
    let mut seen = BTreeSet::new();
    for (n, id) in ids.enumerate() {
        if !seen.insert(id) {
            let what = format!("duplicate {what} `{id}`");
            problems.push(Problem::new(path.at(n).at("id"), what));
        }
    }
}
