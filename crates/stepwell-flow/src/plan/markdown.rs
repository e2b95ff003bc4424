//! A plan as a Markdown document.

use super::{Plan, short};

pub(super) fn render(plan: &Plan) -> String {
    let mut text = format!("# {}\n\n", cell(&plan.name, 100));
    if let Some(description) = &plan.description {
        text.push_str(&format!("{}\n\n", description.trim()));
    }
    text.push_str(&format!(
        "Pattern `{}`; agents are asked {}, up to {} at once.\n\n",
        plan.pattern,
        plan.asks.words(),
        plan.max_parallel
    ));
    text.push_str("| node | who | asked |\n|---|---|---|\n");
    for node in &plan.nodes {
        let repeats = node.repeats.as_ref().map(|how| format!("{how}: ")).unwrap_or_default();
        let asks = cell(&node.asks, 120);
        text.push_str(&format!("| `{}` | {} | {repeats}{asks} |\n", node.key, node.who()));
    }
    if !plan.variables.is_empty() {
        text.push_str("\n## Variables\n\n| name | type | value | for |\n|---|---|---|---|\n");
        for variable in &plan.variables {
            let value = match (&variable.default, variable.required) {
                (Some(default), _) => format!("`{}`", cell(&default.to_string(), 60)),
                (None, true) => "must be set".to_owned(),
                (None, false) => String::new(),
            };
            let about = cell(variable.description.as_deref().unwrap_or_default(), 120);
            text.push_str(&format!(
                "| `{}` | {} | {value} | {about} |\n",
                variable.name, variable.kind
            ));
        }
    }
    text.push_str(&format!("\n```mermaid\n{}```\n", plan.mermaid()));
    for (title, items) in [("Writes", &plan.artifacts), ("Stops at", &plan.limits)] {
        if !items.is_empty() {
            text.push_str(&format!("\n## {title}\n\n"));
            for item in items {
                text.push_str(&format!("- {}\n", cell(item, 120)));
            }
        }
    }
    text
}

/// A text escaped for a cell of a Markdown table.
fn cell(text: &str, max: usize) -> String {
    short(text, max).replace('|', "\\|").replace('`', "'").replace('<', "&lt;")
}
