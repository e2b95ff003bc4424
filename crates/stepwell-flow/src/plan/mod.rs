//! The plan of a flow: who is asked what, in which order, and how often. Nothing runs.

mod build;
mod diagram;
mod explain;
mod markdown;
mod text;

use std::collections::BTreeMap;

use serde::Serialize;
use serde_json::Value;

use crate::spec::Spec;
use crate::template::{Scope, render_known};

/// The nodes of a flow and the edges between them.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Plan {
    /// The flow's name.
    pub name: String,
    /// What it is for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// The name of its pattern.
    pub pattern: &'static str,
    /// The model that its agents use, if the spec names one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// How many agents may run at once.
    pub max_parallel: u32,
    /// How often agents are asked.
    pub asks: AskCount,
    /// Its variables.
    pub variables: Vec<Variable>,
    /// Its nodes, in the order of the spec.
    pub nodes: Vec<Node>,
    /// The edges between them.
    pub edges: Vec<Edge>,
    /// The files that it writes when it succeeds.
    pub artifacts: Vec<String>,
    /// Its budgets, in words.
    pub limits: Vec<String>,
}

/// How often agents are asked, not counting retries after unusable answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct AskCount {
    /// The minimum.
    pub least: u64,
    /// The maximum, if it is known.
    pub most: Option<u64>,
}

/// A variable.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Variable {
    /// Its name.
    pub name: String,
    /// Its type.
    #[serde(rename = "type")]
    pub kind: &'static str,
    /// Whether the user must set it.
    pub required: bool,
    /// Its value if the user does not set it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub default: Option<Value>,
    /// Its value, in a plan with [values filled in](Plan::filled).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub value: Option<Value>,
    /// What it is for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// The only values that it takes.
    #[serde(rename = "enum", skip_serializing_if = "Option::is_none")]
    pub one_of: Option<Vec<Value>>,
}

/// A node: a prompt for an agent, or a question for a person.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Node {
    /// Its key, as the session's log names it; `*` stands for a number.
    pub key: String,
    /// The agent that is asked; `None` for a question to a person.
    pub agent: Option<String>,
    /// The template of the prompt or the question.
    pub asks: String,
    /// How often it runs, if not exactly once.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub repeats: Option<String>,
}

/// An edge from one node to the next.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Edge {
    /// The key of the earlier node.
    pub from: String,
    /// The key of the later node.
    pub to: String,
    /// The condition; without one, the edge is always followed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub when: Option<String>,
}

impl Plan {
    /// The plan of a spec.
    #[must_use]
    pub fn of(spec: &Spec) -> Self {
        build::plan(spec)
    }

    /// Fills in the variables. Placeholders that depend on answers stay as they are.
    #[must_use]
    pub fn filled(mut self, variables: &BTreeMap<String, Value>) -> Self {
        let mut scope = Scope::new().with("name", &self.name);
        for (name, value) in variables {
            scope.set(name, value);
        }
        let asked = self.nodes.iter_mut().map(|node| &mut node.asks);
        for text in asked.chain(&mut self.artifacts) {
            *text = render_known(text, &scope);
        }
        for variable in &mut self.variables {
            variable.value = variables.get(&variable.name).cloned();
        }
        self
    }

    /// The plan as text with a table.
    #[must_use]
    pub fn text(&self) -> String {
        text::render(self)
    }

    /// The plan as a Markdown document with a Mermaid diagram.
    #[must_use]
    pub fn markdown(&self) -> String {
        markdown::render(self)
    }

    /// The plan as a Mermaid diagram.
    #[must_use]
    pub fn mermaid(&self) -> String {
        diagram::mermaid(self)
    }

    /// The plan as a Graphviz graph.
    #[must_use]
    pub fn dot(&self) -> String {
        diagram::dot(self)
    }

    /// What the flow does when it runs, in words.
    #[must_use]
    pub fn explain(&self, spec: &Spec) -> String {
        explain::explain(self, spec)
    }
}

impl Node {
    /// The agent, or `human`.
    fn who(&self) -> &str {
        self.agent.as_deref().unwrap_or("human")
    }
}

impl AskCount {
    /// The count in words.
    fn words(self) -> String {
        let times = |n: u64| if n == 1 { "once".to_owned() } else { format!("{n} times") };
        match self.most {
            Some(most) if most == self.least => times(most),
            Some(most) => format!("{} to {most} times", self.least),
            None => format!("at least {}", times(self.least)),
        }
    }
}

/// A text on one line, cut to `max` characters.
fn short(text: &str, max: usize) -> String {
    let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    let line: String = line.chars().filter(|c| !c.is_control()).collect();
    if line.chars().count() <= max {
        return line;
    }
    let kept: String = line.chars().take(max.saturating_sub(1)).collect();
    format!("{}…", kept.trim_end())
}

#[cfg(test)]
mod tests;
