//! A plan as a Graphviz graph.

use super::{Plan, short};

pub(super) fn render(plan: &Plan) -> String {
    let mut text =
        format!("digraph {} {{\n  rankdir=TB;\n  node [shape=box];\n", quoted(&plan.name));
    for node in &plan.nodes {
        let repeats = node.repeats.as_ref().map(|how| format!("\n{how}")).unwrap_or_default();
        let label = format!("{}\n{}{repeats}", node.key, node.who());
        let shape = if node.agent.is_none() { ", shape=hexagon" } else { "" };
        text.push_str(&format!("  {} [label={}{shape}];\n", quoted(&node.key), quoted(&label)));
    }
    for edge in &plan.edges {
        let when = edge
            .when
            .as_ref()
            .map(|when| format!(" [label={}, style=dashed]", quoted(&short(when, 60))));
        let (from, to) = (quoted(&edge.from), quoted(&edge.to));
        text.push_str(&format!("  {from} -> {to}{};\n", when.unwrap_or_default()));
    }
    text.push_str("}\n");
    text
}

/// A quoted string of Graphviz.
fn quoted(text: &str) -> String {
    let text = text.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n");
    let text: String = text.chars().filter(|c| !c.is_control()).collect();
    format!("\"{text}\"")
}
