//! The flow's spec, as far as it says who does what.

use std::collections::HashSet;

use serde_json::Value;

/// What a spec says. Of one that cannot be read, nothing.
#[derive(Clone, Debug, Default)]
pub(super) struct Spec {
    all: Value,
}

impl Spec {
    /// Reads a spec; the error says why it cannot be.
    pub(super) fn read(text: &str) -> (Self, Option<String>) {
        // An agent called `n` is no `false`.
        let options = serde_saphyr::options! { strict_booleans: true };
        match serde_saphyr::from_str_with_options::<Value>(text, options) {
            Ok(all) => (Self { all }, None),
            Err(error) => {
                let why = error.to_string();
                (Self::default(), Some(why.lines().next().unwrap_or_default().to_owned()))
            }
        }
    }

    /// A field of the spec itself.
    pub(super) fn field(&self, name: &str) -> &Value {
        &self.all[name]
    }

    /// What the pattern is configured with.
    pub(super) fn config(&self) -> &Value {
        &self.all["pattern"]["config"]
    }

    /// The pattern.
    pub(super) fn pattern(&self) -> Option<&str> {
        self.all["pattern"]["type"].as_str()
    }

    /// The agent that does a node.
    pub(super) fn agent(&self, key: &str) -> Option<&str> {
        let config = self.config();
        let parts: Vec<&str> = key.split('/').collect();
        let index = |n: &str| n.parse::<usize>().unwrap_or(usize::MAX);
        let named = |list: &'_ Value, id: &str| {
            let all = list.as_array().map(Vec::as_slice).unwrap_or_default();
            all.iter().position(|it| it["id"].as_str() == Some(id)).unwrap_or(usize::MAX)
        };
        let step = match parts.as_slice() {
            ["step", n] => &config["steps"][index(n)],
            ["route", id, n] => &config["routes"][*id]["then"][index(n)],
            ["branch", id, n] => {
                &config["branches"][named(&config["branches"], id)]["steps"][index(n)]
            }
            ["task", id] => &config["tasks"][named(&config["tasks"], id)],
            ["node", id, _] => &config["nodes"][*id],
            ["router", _] => &config["router"],
            ["plan", _] => &config["orchestrator"],
            ["worker", _, _] => &config["worker_template"],
            ["produce" | "revise", ..] => &config["producer"],
            ["evaluate", _] => &config["evaluator"],
            [name @ ("reduce" | "writeup")] => &config[*name],
            _ => return None,
        };
        step.as_str().or_else(|| step["agent"].as_str())
    }

    /// How many steps a branch has.
    pub(super) fn branch_steps(&self, id: &str) -> Option<usize> {
        let branches = self.config()["branches"].as_array()?;
        let branch = branches.iter().find(|branch| branch["id"].as_str() == Some(id))?;
        branch["steps"].as_array().map(Vec::len)
    }

    /// The tasks of a workflow, each with those that it depends on.
    pub(super) fn tasks(&self) -> Vec<(&str, Vec<String>)> {
        let tasks = self.config()["tasks"].as_array().map(Vec::as_slice).unwrap_or_default();
        let deps = |task: &'_ Value| -> Vec<String> {
            let deps = task["deps"].as_array().map(Vec::as_slice).unwrap_or_default();
            deps.iter().filter_map(|dep| dep.as_str().map(str::to_owned)).collect()
        };
        tasks.iter().filter_map(|task| Some((task["id"].as_str()?, deps(task)))).collect()
    }

    /// The tasks of a layer after the other: each depends on those before it alone.
    pub(super) fn layers(&self) -> Vec<Vec<&str>> {
        let mut waiting = self.tasks();
        let mut known: HashSet<&str> = HashSet::new();
        let mut layers: Vec<Vec<&str>> = Vec::new();
        while !waiting.is_empty() {
            let (ready, later): (Vec<_>, Vec<_>) = waiting
                .into_iter()
                .partition(|(_, deps)| deps.iter().all(|dep| known.contains(dep.as_str())));
            // What is left is a circle.
            if ready.is_empty() {
                break;
            }
            let layer: Vec<&str> = ready.into_iter().map(|(id, _)| id).collect();
            known.extend(&layer);
            layers.push(layer);
            waiting = later;
        }
        layers
    }
}
