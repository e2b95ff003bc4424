//! A plan as text with a table.

use std::collections::BTreeMap;

use super::{Edge, Plan, Variable, short};

/// How many characters of a prompt are shown.
const MAX_PROMPT: usize = 60;

pub(super) fn render(plan: &Plan) -> String {
    let mut text = format!("{} ({})\n", short(&plan.name, 100), plan.pattern);
    if let Some(description) = &plan.description {
        text.push_str(&format!("{}\n", short(description, 100)));
    }
    text.push_str(&format!("agents are asked {}\n", plan.asks.words()));
    if let Some(model) = &plan.model {
        text.push_str(&format!("model: {model}\n"));
    }
    if !plan.variables.is_empty() {
        let all: Vec<_> = plan.variables.iter().map(variable).collect();
        text.push_str(&format!("variables: {}\n", all.join(", ")));
    }
    if !plan.limits.is_empty() {
        text.push_str(&format!("stops at: {}\n", plan.limits.join(", ")));
    }
    if !plan.artifacts.is_empty() {
        text.push_str(&format!("writes: {}\n", plan.artifacts.join(", ")));
    }
    text.push('\n');
    text.push_str(&table(plan));
    text
}

pub(super) fn variable(variable: &Variable) -> String {
    let known = variable.value.as_ref().or(variable.default.as_ref());
    let value = match (known, variable.required) {
        (Some(known), _) => format!(" = {known}"),
        (None, true) => " (must be set)".to_owned(),
        (None, false) => String::new(),
    };
    format!("{}{value}", variable.name)
}

fn table(plan: &Plan) -> String {
    let mut before: BTreeMap<&str, Vec<&Edge>> = BTreeMap::new();
    for edge in &plan.edges {
        before.entry(&edge.to).or_default().push(edge);
    }
    let head = ["NODE", "WHO", "AFTER", "ASKED"].map(str::to_owned);
    let rows = plan.nodes.iter().map(|node| {
        let after = before.get(&*node.key).into_iter().flatten();
        let after = after.map(|edge| match &edge.when {
            Some(when) => format!("{} [{}]", edge.from, short(when, 40)),
            None => edge.from.clone(),
        });
        let after = after.collect::<Vec<_>>().join(", ");
        let after = if after.is_empty() { "-".to_owned() } else { after };
        let repeats = node.repeats.as_ref().map(|how| format!("{how}: ")).unwrap_or_default();
        let asks =
            if node.asks.is_empty() { "-".to_owned() } else { short(&node.asks, MAX_PROMPT) };
        [node.key.clone(), node.who().to_owned(), after, format!("{repeats}{asks}")]
    });
    let rows: Vec<_> = std::iter::once(head).chain(rows).collect();
    let width =
        |column: usize| rows.iter().map(|row| row[column].chars().count()).max().unwrap_or(0);
    let widths = [width(0), width(1), width(2)];
    let mut text = String::new();
    for row in &rows {
        let mut line = String::new();
        for (cell, width) in row.iter().zip(widths) {
            line.push_str(&format!("{cell:<width$}  "));
        }
        line.push_str(&row[3]);
        text.push_str(line.trim_end());
        text.push('\n');
    }
    text
}
