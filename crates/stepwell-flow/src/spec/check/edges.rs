//! Checks that the dependencies of tasks and the edges of a graph lead to something, and that tasks
//! have no cycle.

use std::collections::BTreeSet;

use super::{MAX_PROBLEMS, unique, unknown};
use crate::spec::pattern::{EdgeTarget, Graph, Workflow};
use crate::spec::problem::{Path, Problem};
use crate::spec::{Dag, Name};

/// The longest cycle that is shown in full.
const MAX_SHOWN: usize = 12;

/// Checks a workflow's tasks.
pub(super) fn tasks(flow: &Workflow, config: &Path, problems: &mut Vec<Problem>) {
    let path = config.at("tasks");
    let before = problems.len();
    unique(flow.tasks.iter().map(|task| &task.id), &path, "task", problems);
    let ids: BTreeSet<_> = flow.tasks.iter().map(|task| &task.id).collect();
    for (n, task) in flow.tasks.iter().enumerate() {
        if problems.len() >= MAX_PROBLEMS {
            return;
        }
        let mut seen = BTreeSet::new();
        for (d, dep) in task.deps.iter().enumerate() {
            let at = || path.at(n).at("deps").at(d);
            if *dep == task.id {
                problems.push(Problem::new(at(), format!("task `{dep}` depends on itself")));
            } else if !ids.contains(dep) {
                problems.push(unknown(at(), "task", dep.as_str(), ids.iter().copied()));
            } else if !seen.insert(dep) {
                problems.push(Problem::new(at(), format!("duplicate dependency `{dep}`")));
            }
        }
    }
    if problems.len() > before {
        return;
    }
    if let Err(cycle) = Dag::of(flow).layers() {
        let mut names: Vec<_> = cycle.iter().map(|n| flow.tasks[*n].id.as_str()).collect();
        if names.len() > MAX_SHOWN {
            names.truncate(MAX_SHOWN);
            names.push("…");
        }
        let what = format!("tasks depend on each other: {} → {}", names.join(" → "), names[0]);
        problems.push(Problem::new(path.at(cycle[0]).at("deps"), what));
    }
}

/// Checks a graph's edges.
pub(super) fn graph(graph: &Graph, config: &Path, problems: &mut Vec<Problem>) {
    let path = config.at("edges");
    for (n, edge) in graph.edges.iter().enumerate() {
        if problems.len() >= MAX_PROBLEMS {
            return;
        }
        let path = path.at(n);
        let mut check_node = |name: &Name, at: Path| {
            if !graph.nodes.contains_key(name) {
                problems.push(unknown(at, "node", name.as_str(), graph.nodes.keys()));
            }
        };
        check_node(&edge.from, path.at("from"));
        match &edge.target {
            EdgeTarget::To(nodes) => {
                for (t, node) in nodes.iter().enumerate() {
                    check_node(node, path.at("to").at(t));
                }
            }
            EdgeTarget::Choose(choices) => {
                for (c, choice) in choices.iter().enumerate() {
                    check_node(&choice.to, path.at("choose").at(c).at("to"));
                }
                if choices.is_empty() {
                    let what = "expected at least one choice";
                    problems.push(Problem::new(path.at("choose"), what));
                }
            }
        }
    }
}
