//! A graph's edges: between nodes that are there.

use super::{MOST_PROBLEMS, unknown};
use crate::spec::Name;
use crate::spec::pattern::{Go, Graph};
use crate::spec::place::{Path, Problem};

/// Checks a graph's edges.
pub(super) fn check(graph: &Graph, config: &Path, problems: &mut Vec<Problem>) {
    let path = config.at("edges");
    for (n, edge) in graph.edges.iter().enumerate() {
        if problems.len() >= MOST_PROBLEMS {
            return;
        }
        let path = path.at(n);
        let mut known = |name: &Name, at: Path| {
            if !graph.nodes.contains_key(name) {
                problems.push(unknown(at, "node", name.as_str(), graph.nodes.keys()));
            }
        };
        known(&edge.from, path.at("from"));
        match &edge.go {
            Go::To(nodes) => {
                for (t, node) in nodes.iter().enumerate() {
                    known(node, path.at("to").at(t));
                }
            }
            Go::Choose(choices) => {
                for (c, choice) in choices.iter().enumerate() {
                    known(&choice.to, path.at("choose").at(c).at("to"));
                }
                if choices.is_empty() {
                    let what = "expected at least one choice";
                    problems.push(Problem::new(path.at("choose"), what));
                }
            }
        }
    }
}
