//! Checks that the edges of a graph connect existing nodes.

use super::{MAX_PROBLEMS, unknown};
use crate::spec::Name;
use crate::spec::pattern::{EdgeTarget, Graph};
use crate::spec::problem::{Path, Problem};

/// Checks a graph's edges.
pub(super) fn check(graph: &Graph, config: &Path, problems: &mut Vec<Problem>) {
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
