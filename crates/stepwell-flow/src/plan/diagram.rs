//! A plan as a drawing: for Graphviz, or as Mermaid.

use std::collections::BTreeMap;

use super::{Plan, short};

/// A plan as a Graphviz graph.
pub(super) fn dot(plan: &Plan) -> String {
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

/// A plan as a Mermaid diagram.
pub(super) fn mermaid(plan: &Plan) -> String {
    let mut text = "flowchart TD\n".to_owned();
    let ids: BTreeMap<&str, usize> =
        plan.nodes.iter().enumerate().map(|(n, node)| (&*node.key, n)).collect();
    let id = |key: &str| ids.get(key);
    for (n, node) in plan.nodes.iter().enumerate() {
        let repeats = node.repeats.as_ref().map(|how| format!("<br/>{}", escaped(how)));
        let repeats = repeats.unwrap_or_default();
        let label = format!("{}<br/>{}{repeats}", escaped(&node.key), escaped(node.who()));
        text.push_str(&match node.agent {
            Some(_) => format!("  n{n}[\"{label}\"]\n"),
            None => format!("  n{n}{{{{\"{label}\"}}}}\n"),
        });
    }
    for edge in &plan.edges {
        let (Some(from), Some(to)) = (id(&edge.from), id(&edge.to)) else { continue };
        text.push_str(&match &edge.when {
            Some(when) => format!("  n{from} -->|\"{}\"| n{to}\n", escaped(&short(when, 60))),
            None => format!("  n{from} --> n{to}\n"),
        });
    }
    text
}

/// A text escaped for a quoted Mermaid label.
fn escaped(text: &str) -> String {
    let mut escaped = String::new();
    for c in text.chars() {
        match c {
            '"' => escaped.push_str("#quot;"),
            '#' => escaped.push_str("#35;"),
            '<' => escaped.push_str("#lt;"),
            '>' => escaped.push_str("#gt;"),
            '&' => escaped.push_str("#amp;"),
            '`' => escaped.push('\''),
            c if c.is_control() => escaped.push(' '),
            c => escaped.push(c),
        }
    }
    escaped
}
