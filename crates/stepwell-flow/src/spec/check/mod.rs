//! What a spec must hold besides its form: that what it names is there, that it ends, and
//! that its templates ask for what they can have.

mod graph;
mod settings;
mod sites;
mod tasks;
mod templates;
mod tools;
mod warnings;

use std::collections::BTreeSet;

use super::pattern::Pattern;
use super::place::{Path, Problem};
use super::{Name, Spec};
use crate::names::{listed, nearest};

pub(super) use tools::servers;
pub(super) use warnings::warnings;

/// How many problems are looked for: whoever has these has enough to do, and each costs a
/// search for what was meant.
const MOST_PROBLEMS: usize = 20;

/// What is wrong with a spec.
pub(super) fn errors(spec: &Spec) -> Vec<Problem> {
    let mut problems = Vec::new();
    let all = sites::all(&spec.pattern);
    settings::check(spec, &all, &mut problems);
    if spec.agents.is_empty() {
        problems.push(Problem::new(Path::root().at("agents"), "expected at least one agent"));
    }
    for site in &all {
        if problems.len() >= MOST_PROBLEMS {
            return problems;
        }
        agent(spec, site, &mut problems);
        gate(site, &mut problems);
    }
    tools::check(spec, &all, &mut problems);
    shape(&spec.pattern, &mut problems);
    // Names are told only where what they name is known to be there.
    if problems.is_empty() {
        templates::check(spec, &all, &mut problems);
    }
    problems
}

fn agent(spec: &Spec, site: &sites::Site<'_>, problems: &mut Vec<Problem>) {
    let Some(agent) = site.agent else { return };
    if !spec.agents.contains_key(agent) {
        let path = site.path.at("agent");
        problems.push(unknown(path, "agent", agent.as_str(), spec.agents.keys()));
    }
}

/// A name that names nothing.
fn unknown<'a>(
    path: Path,
    what: &str,
    name: &str,
    known: impl Iterator<Item = &'a Name> + Clone,
) -> Problem {
    let hint = nearest(name, known.clone().map(Name::as_str));
    let hint = hint.map(|near| format!("did you mean `{near}`?"));
    let known = listed(known.map(Name::as_str));
    Problem::new(path, format!("there is no {what} `{name}`; there is {known}")).hinting(hint)
}

fn gate(site: &sites::Site<'_>, problems: &mut Vec<Problem>) {
    let Some(gate) = site.gate else { return };
    let pattern = gate.validation.as_ref().and_then(|validation| validation.pattern.as_ref());
    if let (Some(pattern), Some(default)) = (pattern, &gate.default)
        && !pattern.fits(default)
    {
        let what = format!("the default {default:?} does not fit {:?}", pattern.as_str());
        problems.push(Problem::new(site.path.at("default"), what));
    }
}

/// What each pattern must hold.
fn shape(pattern: &Pattern, problems: &mut Vec<Problem>) {
    let config = Path::root().at("pattern").at("config");
    let mut some = |empty: bool, path: Path, what: &str| {
        if empty {
            problems.push(Problem::new(path, format!("expected at least one {what}")));
        }
    };
    match pattern {
        Pattern::Chain(chain) => some(chain.steps.is_empty(), config.at("steps"), "step"),
        Pattern::Workflow(flow) => {
            some(flow.tasks.is_empty(), config.at("tasks"), "task");
            tasks::check(flow, &config, problems);
        }
        Pattern::Routing(routing) => {
            some(routing.routes.is_empty(), config.at("routes"), "route");
        }
        Pattern::Parallel(parallel) => {
            let path = config.at("branches");
            some(parallel.branches.is_empty(), path.clone(), "branch");
            for (n, branch) in parallel.branches.iter().enumerate() {
                some(branch.steps.is_empty(), path.at(n).at("steps"), "step");
            }
            let ids = parallel.branches.iter().map(|branch| &branch.id);
            unique(ids, &path, "branch", problems);
        }
        Pattern::EvaluatorOptimizer(loops) => {
            let score = loops.accept.min_score;
            if !(0.0..=100.0).contains(&score) {
                let what = format!("{score} is no score: expected 0 to 100");
                problems.push(Problem::new(config.at("accept").at("min_score"), what));
            }
        }
        Pattern::OrchestratorWorkers(_) => {}
        Pattern::Graph(graph) => {
            some(graph.nodes.is_empty(), config.at("nodes"), "node");
            graph::check(graph, &config, problems);
        }
    }
}

/// Names that must differ.
fn unique<'a>(
    ids: impl Iterator<Item = &'a Name>,
    path: &Path,
    what: &str,
    problems: &mut Vec<Problem>,
) {
    let mut seen = BTreeSet::new();
    for (n, id) in ids.enumerate() {
        if !seen.insert(id) {
            let what = format!("there is a {what} `{id}` already");
            problems.push(Problem::new(path.at(n).at("id"), what));
        }
    }
}
