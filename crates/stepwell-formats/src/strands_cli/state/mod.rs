//! How far a flow came: `pattern_state.json`, by pattern, as nodes that are done and
//! questions that wait, and back.
//!
//! A pattern is a module that reads its state into [`Progress`] and writes it from
//! [`Finished`] nodes. What a node answered is taken out of the file ([`mark`]) and put back
//! under the same key: reading a file without its answers finds the same places.

mod chain;
mod evaluator;
mod gate;
mod graph;
mod orchestrator;
mod parallel;
mod routing;
mod workflow;

use serde_json::{Map, Value, json};
use stepwell::model::{NodeKey, Usage};

use super::spec::Spec;
use crate::json::fields::{Fields, elements, quoted, text_of};
use crate::json::json_text::{Swap, value};
pub(super) use gate::{Pending, hitl_state};

/// A path into the file.
type Path = Vec<String>;

/// How far a flow came.
#[derive(Debug, Default)]
pub(super) struct Progress {
    /// The nodes that are done, in the order in which they were.
    pub(super) done: Vec<Done>,
    /// The questions that were asked last.
    pub(super) gates: Vec<Pending>,
    /// The node that a conversation that goes on belongs to, where one comes after the other.
    pub(super) next: Option<String>,
    /// What does not fit together.
    pub(super) doubts: Vec<String>,
}

/// A node that is done.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Done {
    /// Its key.
    pub(super) key: String,
    /// Who did it.
    pub(super) agent: Option<String>,
    /// What it came to.
    pub(super) output: Map<String, Value>,
    /// What a person was asked, if it is a person's answer.
    pub(super) asked: Option<String>,
    /// Where its answer stands in the file.
    places: Vec<Path>,
}

impl Done {
    /// Its answer as text.
    pub(super) fn response(&self) -> String {
        text(&self.output["response"])
    }
}

/// A node that is done, on its way out.
#[derive(Clone, Copy, Debug)]
pub(super) struct Finished<'a> {
    /// Its key.
    pub(super) key: &'a str,
    /// What it came to.
    pub(super) output: &'a Value,
    /// What it used, if it was done here.
    pub(super) usage: Option<Usage>,
    /// What a person was asked, if it is a person's answer.
    pub(super) asked: Option<&'a str>,
    /// Where it was done.
    pub(super) origin: Origin,
}

/// Where a node was done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Origin {
    /// In the system, whose own file says what it used.
    There,
    /// Here.
    Here,
}

impl Finished<'_> {
    fn response(&self) -> String {
        text(&self.output["response"])
    }

    fn tokens(&self) -> u64 {
        self.usage.map_or(0, |usage| usage.total())
    }

    /// Says in a record what it used, unless the record says so already.
    fn count(&self, record: &mut Value, field: &str) {
        if self.origin == Origin::Here || self.usage.is_some() {
            record[field] = self.tokens().into();
        }
    }
}

/// A value as the text that the system keeps.
fn text(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

/// A flow on its way out.
pub(super) struct Outcome<'a> {
    /// Its nodes that are done, in order.
    pub(super) nodes: &'a [Finished<'a>],
    /// The last node that began and is not done.
    pub(super) current: Option<&'a str>,
    /// What it is to do.
    pub(super) spec: &'a Spec,
}

impl<'a> Outcome<'a> {
    fn node(&self, key: &str) -> Option<&Finished<'a>> {
        self.nodes.iter().find(|node| node.key == key)
    }

    /// The nodes whose keys are `prefix`, a slash, and one number; by that number.
    fn numbered(&self, prefix: &str) -> Vec<(usize, &Finished<'a>)> {
        let number = |node: &&'_ Finished<'a>| {
            node.key.strip_prefix(prefix)?.strip_prefix('/')?.parse::<usize>().ok()
        };
        let mut found: Vec<_> =
            self.nodes.iter().filter_map(|node| Some((number(&node)?, node))).collect();
        found.sort_by_key(|(n, _)| *n);
        found
    }

    fn agent(&self, key: &str) -> Value {
        self.spec.agent(key).map_or(Value::Null, Value::from)
    }

    /// Steps as the system keeps them.
    fn steps(&self, prefix: &str) -> Vec<Value> {
        let steps = self.numbered(prefix).into_iter().map(|(n, node)| match node.asked {
            Some(prompt) => {
                json!({"index": n, "type": "hitl", "prompt": prompt, "response": node.response()})
            }
            None => {
                let (agent, response) = (self.agent(node.key), node.response());
                let mut record = json!({"index": n, "agent": agent, "response": response});
                node.count(&mut record, "tokens_estimated");
                record
            }
        });
        steps.collect()
    }
}

/// Reads how far a flow of that pattern came.
pub(super) fn read(pattern: &str, raw: &str, spec: &Spec) -> Progress {
    let mut progress = Progress::default();
    let Ok(state) = Fields::parse(raw) else { return progress };
    match pattern {
        "chain" => chain::read(&state, &mut progress),
        "workflow" => workflow::read(&state, &mut progress),
        "routing" => routing::read(&state, &mut progress),
        "parallel" => parallel::read(&state, spec, &mut progress),
        "evaluator_optimizer" => evaluator::read(&state, &mut progress),
        "orchestrator_workers" => orchestrator::read(&state, spec, &mut progress),
        "graph" => graph::read(&state, &mut progress),
        other => progress.doubts.push(format!("the pattern {other:?} is not known")),
    }
    gate::read(pattern, &state, &mut progress);
    progress.unambiguous();
    progress
}

/// Writes how far a flow of that pattern came, in the form of the file that it came with.
pub(super) fn write(pattern: &str, outcome: &Outcome<'_>, before: &Fields<'_>) -> Value {
    match pattern {
        "chain" => chain::write(outcome),
        "workflow" => workflow::write(outcome, before),
        "routing" => routing::write(outcome),
        "parallel" => parallel::write(outcome),
        "evaluator_optimizer" => evaluator::write(outcome),
        "orchestrator_workers" => orchestrator::write(outcome),
        "graph" => graph::write(outcome),
        _ => json!({}),
    }
}

/// What stands in the file where a node's answer was.
fn mark(key: &str) -> String {
    format!("{{\"stepwell\":{}}}", quoted(key))
}

impl Progress {
    /// The file without the nodes' answers.
    pub(super) fn hollow(&self, raw: &str) -> String {
        let mut swap = Swap::default();
        for done in &self.done {
            done.places.iter().for_each(|place| swap.put(place, mark(&done.key)));
        }
        swap.apply(raw)
    }

    /// The file with answers in it again. What has none stays without.
    pub(super) fn refill<'a>(
        &self,
        raw: &str,
        answer: impl Fn(&str) -> Option<&'a Value>,
    ) -> String {
        let mut swap = Swap::default();
        for done in &self.done {
            let Some(answer) = answer(&done.key) else { continue };
            for place in &done.places {
                swap.put(place, quoted(&text(answer)));
            }
        }
        swap.apply(raw)
    }

    /// Notes a node whose answer stands there. One without an answer is not done.
    fn add(&mut self, key: String, answer: Option<&str>, place: Path) -> Option<&mut Done> {
        let raw = answer.filter(|raw| *raw != "null")?;
        let response = match text_of(raw) {
            Some(text) => Value::String(text.into_owned()),
            None => value(raw)?,
        };
        let taken = raw.starts_with('"') && response.is_string() || raw == mark(&key);
        let places = if taken { vec![place] } else { Vec::new() };
        let output = Map::from_iter([("response".to_owned(), response)]);
        self.done.push(Done { key, agent: None, output, asked: None, places });
        self.done.last_mut()
    }

    /// Notes a node whose answer is made of other things in the file.
    fn make(&mut self, key: impl Into<String>, output: Value) {
        let Value::Object(output) = output else { return };
        let (agent, asked, places) = (None, None, Vec::new());
        self.done.push(Done { key: key.into(), agent, output, asked, places });
    }

    /// The same answer stands at another place as well.
    fn repeats(&mut self, key: &str, raw: Option<&str>, place: Path) -> bool {
        let Some(done) = self.done.iter_mut().rfind(|done| done.key == key) else { return false };
        let Some(raw) = raw.filter(|_| !done.places.is_empty()) else { return false };
        let same = raw == mark(key)
            || text_of(raw).is_some_and(|text| done.output["response"].as_str() == Some(&*text));
        if same {
            done.places.push(place);
        }
        same
    }

    /// Notes the steps of a list. The answer says how many there are.
    fn add_steps(&mut self, list: Option<&str>, base: &[&str], key: impl Fn(u64) -> String) -> u64 {
        let mut next = 0;
        let steps = elements(list.unwrap_or("[]")).unwrap_or_default();
        for (n, raw) in steps.into_iter().enumerate() {
            let Ok(step) = Fields::parse(raw) else { continue };
            let index = step.get::<u32>("index").map_or(n as u64, u64::from);
            let place = path(base, &[&n.to_string(), "response"]);
            let Some(done) = self.add(key(index), step.raw("response"), place) else { continue };
            done.agent = step.text("agent").map(String::from);
            if step.text("type").as_deref() == Some("hitl") {
                done.asked = Some(step.text("prompt").unwrap_or_default().into_owned());
                done.output.insert("who".to_owned(), super::SYSTEM.into());
            }
            next = next.max(index + 1);
        }
        next
    }

    /// Leaves out what could not be found again under its key.
    fn unambiguous(&mut self) {
        let mut seen = std::collections::HashSet::new();
        let (done, doubts) = (std::mem::take(&mut self.done), &mut self.doubts);
        for done in done {
            if !is_key(&done.key) {
                doubts.push(format!("{:?} names no node, and is kept only", shortened(&done.key)));
            } else if !seen.insert(done.key.clone()) {
                doubts.push(format!("{} is done twice; the first time counts", done.key));
            } else {
                self.done.push(done);
            }
        }
        self.gates.retain(|gate| is_key(&gate.key));
    }
}

/// A path into the file.
fn path(base: &[&str], rest: &[&str]) -> Path {
    base.iter().chain(rest).map(|&it| it.to_owned()).collect()
}

/// Is it the key of a node that a flow can have?
fn is_key(key: &str) -> bool {
    key.parse::<NodeKey>().is_ok()
}

fn shortened(text: &str) -> String {
    text.chars().take(80).collect()
}
