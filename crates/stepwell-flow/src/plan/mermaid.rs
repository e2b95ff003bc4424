//! A plan as a Mermaid diagram.

use std::collections::BTreeMap;

use super::{Plan, short};

pub(super) fn render(plan: &Plan) -> String {
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
