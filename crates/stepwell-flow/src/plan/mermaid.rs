//! A plan as a Mermaid picture.

use std::collections::BTreeMap;

use super::{Plan, short};

pub(super) fn draw(plan: &Plan) -> String {
    let mut text = "flowchart TD\n".to_owned();
    let ids: BTreeMap<&str, usize> =
        plan.nodes.iter().enumerate().map(|(n, node)| (&*node.key, n)).collect();
    let id = |key: &str| ids.get(key);
    for (n, node) in plan.nodes.iter().enumerate() {
        let repeats = node.repeats.as_ref().map(|how| format!("<br/>{}", plain(how)));
        let repeats = repeats.unwrap_or_default();
        let label = format!("{}<br/>{}{repeats}", plain(&node.key), plain(node.who()));
        text.push_str(&match node.agent {
            Some(_) => format!("  n{n}[\"{label}\"]\n"),
            None => format!("  n{n}{{{{\"{label}\"}}}}\n"),
        });
    }
    for edge in &plan.edges {
        let (Some(from), Some(to)) = (id(&edge.from), id(&edge.to)) else { continue };
        text.push_str(&match &edge.when {
            Some(when) => format!("  n{from} -->|\"{}\"| n{to}\n", plain(&short(when, 60))),
            None => format!("  n{from} --> n{to}\n"),
        });
    }
    text
}

/// A text as Mermaid takes it within quotes.
fn plain(text: &str) -> String {
    let mut plain = String::new();
    for c in text.chars() {
        match c {
            '"' => plain.push_str("#quot;"),
            '#' => plain.push_str("#35;"),
            '<' => plain.push_str("#lt;"),
            '>' => plain.push_str("#gt;"),
            '&' => plain.push_str("#amp;"),
            '`' => plain.push('\''),
            c if c.is_control() => plain.push(' '),
            c => plain.push(c),
        }
    }
    plain
}
