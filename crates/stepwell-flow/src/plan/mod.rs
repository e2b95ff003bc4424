//! A flow as a plan: who is asked what, after whom, and how often. Nothing is run for it.

mod build;
mod dot;
mod explain;
mod markdown;
mod mermaid;
mod text;

use std::collections::BTreeMap;

use serde::Serialize;
use serde_json::Value;

use crate::spec::Spec;
use crate::template::{Scope, fill_known};

/// A flow as pieces of work and the ways between them.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Plan {
    /// The flow's name.
    pub name: String,
    /// What it is for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// Its pattern.
    pub pattern: &'static str,
    /// The model that its agents use, if the spec names one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// How many agents may work at once.
    pub max_parallel: u32,
    /// How often agents are asked.
    pub asks: Asks,
    /// Its variables.
    pub variables: Vec<Variable>,
    /// The pieces of work, in the order of the spec.
    pub nodes: Vec<Node>,
    /// The ways between them.
    pub edges: Vec<Edge>,
    /// The files that are written at its end.
    pub artifacts: Vec<String>,
    /// What stops it, in words.
    pub limits: Vec<String>,
}

/// How often agents are asked, answers that have to be asked for again not counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Asks {
    /// At least.
    pub least: u64,
    /// At most, if that is known.
    pub most: Option<u64>,
}

/// A variable.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Variable {
    /// Its name.
    pub name: String,
    /// What it can be.
    #[serde(rename = "type")]
    pub kind: &'static str,
    /// Must it be set?
    pub required: bool,
    /// What it is if nobody sets it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub default: Option<Value>,
    /// What it is set to, in a plan that is [filled in](Plan::filled).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub value: Option<Value>,
    /// What it is for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
}

/// A piece of work.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Node {
    /// Its key, as the session's log names it; `*` stands for a number.
    pub key: String,
    /// The agent that is asked; nobody, if a human is.
    pub agent: Option<String>,
    /// What is asked, as it is written.
    pub asks: String,
    /// How it differs from being done once.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub repeats: Option<String>,
}

/// A way from one piece of work to the next.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Edge {
    /// The key that it leads from.
    pub from: String,
    /// The key that it leads to.
    pub to: String,
    /// When it is taken; always, if that is absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub when: Option<String>,
}

impl Plan {
    /// What a spec plans.
    #[must_use]
    pub fn of(spec: &Spec) -> Self {
        build::plan(spec)
    }

    /// The same with its variables filled in. What depends on answers stays as it is written.
    #[must_use]
    pub fn filled(mut self, variables: &BTreeMap<String, Value>) -> Self {
        let mut scope = Scope::new().with("name", &self.name);
        for (name, value) in variables {
            scope.set(name, value);
        }
        let asked = self.nodes.iter_mut().map(|node| &mut node.asks);
        for text in asked.chain(&mut self.artifacts) {
            *text = fill_known(text, &scope);
        }
        for variable in &mut self.variables {
            variable.value = variables.get(&variable.name).cloned();
        }
        self
    }

    /// It as lines of text.
    #[must_use]
    pub fn text(&self) -> String {
        text::draw(self)
    }

    /// It as a Markdown document, with a picture.
    #[must_use]
    pub fn markdown(&self) -> String {
        markdown::draw(self)
    }

    /// It as a Mermaid picture.
    #[must_use]
    pub fn mermaid(&self) -> String {
        mermaid::draw(self)
    }

    /// It as a picture for Graphviz.
    #[must_use]
    pub fn dot(&self) -> String {
        dot::draw(self)
    }

    /// What happens when it is run, in words.
    #[must_use]
    pub fn explain(&self, spec: &Spec) -> String {
        explain::tell(self, spec)
    }
}

impl Node {
    /// Who is asked.
    fn who(&self) -> &str {
        self.agent.as_deref().unwrap_or("human")
    }
}

impl Asks {
    /// In words.
    fn words(self) -> String {
        let times = |n: u64| if n == 1 { "once".to_owned() } else { format!("{n} times") };
        match self.most {
            Some(most) if most == self.least => times(most),
            Some(most) => format!("{} to {most} times", self.least),
            None => format!("at least {}", times(self.least)),
        }
    }
}

/// A text on one line of so many characters at most.
fn short(text: &str, most: usize) -> String {
    let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    let line: String = line.chars().filter(|c| !c.is_control()).collect();
    if line.chars().count() <= most {
        return line;
    }
    let kept: String = line.chars().take(most.saturating_sub(1)).collect();
    format!("{}…", kept.trim_end())
}

#[cfg(test)]
mod tests;
