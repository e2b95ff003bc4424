//! What is read and does nothing, or not what one might think.

use std::collections::BTreeSet;

use stepwell_agent::redact::Redactor;

use super::sites;
use crate::names::listed;
use crate::spec::pattern::{Go, Graph, Pattern};
use crate::spec::place::{Path, Problem};
use crate::spec::{Name, Spec};

/// Providers of strands-cli that Stepwell does not know by itself.
const FOREIGN_PROVIDERS: [&str; 3] = ["bedrock", "azure_openai", "danskegpt"];

/// Tools of strands-cli for looking things up, which Stepwell's own do as well.
pub(super) const JIT_TOOLS: [&str; 4] = ["grep", "head", "search", "tail"];

/// What does not do what one might think.
pub(in crate::spec) fn warnings(spec: &Spec) -> Vec<Problem> {
    let mut told = Vec::new();
    idle(spec, &mut told);
    providers(spec, &mut told);
    unused(spec, &mut told);
    secrets(spec, &mut told);
    absent_tools(spec, &mut told);
    if let Pattern::Graph(graph) = &spec.pattern {
        unreached(graph, &mut told);
    }
    told
}

/// Values that look like secrets: a session keeps its spec as it is, byte for byte.
fn secrets(spec: &Spec, told: &mut Vec<Problem>) {
    // Compiling the rules takes longer than reading most specs.
    if spec.inputs.values.is_empty() {
        return;
    }
    let redactor = Redactor::new([]);
    for (name, value) in &spec.inputs.values {
        let text = value.to_string();
        if redactor.redact(&text) != text {
            let path = Path::root().at("inputs").at("values").at(name.as_str());
            let what = format!(
                "this looks like a secret, and a session keeps its spec as it is: leave it out, and \
                 give it with --var {name}=…"
            );
            told.push(Problem::new(path, what));
        }
    }
}

/// Keys that have no meaning here.
fn idle(spec: &Spec, told: &mut Vec<Problem>) {
    let root = Path::root;
    let mut say = |there: bool, path: Path, why: &str| {
        if there {
            told.push(Problem::new(path, format!("this has no effect: {why}")));
        }
    };
    let runtime = root().at("runtime");
    say(spec.runtime.region.is_some(), runtime.at("region"), "there is no provider with regions");
    say(spec.runtime.space_id.is_some(), runtime.at("space_id"), "no provider here has spaces");
    let tools = root().at("tools");
    let python = "Stepwell runs no Python; agents go without these tools";
    say(!spec.tools.python.is_empty(), tools.at("python"), python);
    let http = "Stepwell has no HTTP executors; agents go without these tools";
    say(!spec.tools.http_executors.is_empty(), tools.at("http_executors"), http);
    let mounts = "agents work in the workspace";
    say(!spec.env.mounts.is_empty(), root().at("env").at("mounts"), mounts);
    let telemetry = "Stepwell sends nothing to anyone; the session's log says what happened";
    say(spec.telemetry.is_some(), root().at("telemetry"), telemetry);
    say(!spec.skills.is_empty(), root().at("skills"), "Stepwell has no skills");
    if let Some(guards) = &spec.security.guardrails {
        let path = root().at("security").at("guardrails");
        let network = "Stepwell does not guard the network";
        say(guards.deny_network == Some(true), path.at("deny_network"), network);
        let redaction = "secrets are taken out always, other data never";
        say(guards.pii_redaction == Some(true), path.at("pii_redaction"), redaction);
    }
    if let Some(policy) = &spec.context_policy {
        let path = root().at("context_policy");
        say(policy.notes.is_some(), path.at("notes"), "agents have no notes; see `pin-message`");
        if let Some(compaction) = &policy.compaction {
            let path = path.at("compaction");
            let kept = "what is kept is counted in tokens: `compaction.keep_tokens`";
            say(compaction.summary_ratio.is_some(), path.at("summary_ratio"), kept);
            let recent = compaction.preserve_recent_messages.is_some();
            say(recent, path.at("preserve_recent_messages"), kept);
            let model = "the agent's own model writes summaries";
            say(compaction.summarization_model.is_some(), path.at("summarization_model"), model);
        }
    }
    for (n, artifact) in spec.outputs.artifacts.iter().enumerate() {
        let path = root().at("outputs").at("artifacts").at(n).at("from");
        let trace = "there is no trace; `stepwell export` writes everything that happened";
        say(artifact.is_trace(), path, trace);
    }
}

fn providers(spec: &Spec, told: &mut Vec<Problem>) {
    let foreign = |name: &Option<String>| {
        name.as_deref().filter(|name| FOREIGN_PROVIDERS.contains(name)).map(|name| {
            format!(
                "provider `{name}` is none of Stepwell's own: run with `--model`, or configure it"
            )
        })
    };
    if let Some(what) = foreign(&spec.runtime.provider) {
        told.push(Problem::new(Path::root().at("runtime").at("provider"), what));
    }
    for (name, agent) in &spec.agents {
        if let Some(what) = foreign(&agent.provider) {
            let path = Path::root().at("agents").at(name.as_str()).at("provider");
            told.push(Problem::new(path, what));
        }
    }
}

fn unused(spec: &Spec, told: &mut Vec<Problem>) {
    let used: BTreeSet<_> =
        sites::all(&spec.pattern).into_iter().filter_map(|site| site.agent).collect();
    for name in spec.agents.keys().filter(|name| !used.contains(name)) {
        let path = Path::root().at("agents").at(name.as_str());
        told.push(Problem::new(path, format!("no step asks the agent `{name}`")));
    }
}

/// Tools of strands-cli that an agent is to have.
fn absent_tools(spec: &Spec, told: &mut Vec<Problem>) {
    for (name, agent) in &spec.agents {
        let path = Path::root().at("agents").at(name.as_str()).at("tools");
        for (n, tool) in agent.tools.iter().enumerate().filter(|(_, it)| spec.tools.is_foreign(it))
        {
            let what = format!("`{tool}` is no tool of Stepwell's: `{name}` goes without it");
            told.push(Problem::new(path.at(n), what));
        }
    }
    let policy = spec.context_policy.as_ref().and_then(|policy| policy.retrieval.as_ref());
    for (n, tool) in policy.iter().flat_map(|it| &it.jit_tools).enumerate() {
        if !JIT_TOOLS.contains(&tool.as_str()) {
            let path = Path::root().at("context_policy").at("retrieval").at("jit_tools").at(n);
            let what = format!("`{tool}` is none of {}: agents go without it", listed(JIT_TOOLS));
            told.push(Problem::new(path, what));
        }
    }
}

/// Nodes that are never reached, and ways that are never gone.
fn unreached(graph: &Graph, told: &mut Vec<Problem>) {
    let config = Path::root().at("pattern").at("config");
    let mut closed = BTreeSet::new();
    for (n, edge) in graph.edges.iter().enumerate() {
        let path = config.at("edges").at(n);
        if closed.contains(&edge.from) {
            let what = format!(
                "this is never gone: an edge before it always leads on from `{}`",
                edge.from
            );
            told.push(Problem::new(path.clone(), what));
        }
        match &edge.go {
            Go::To(nodes) => {
                if nodes.len() > 1 {
                    let what = format!("only `{}` is gone to, the first of the list", nodes[0]);
                    told.push(Problem::new(path.at("to"), what));
                }
                if !nodes.is_empty() {
                    closed.insert(&edge.from);
                }
            }
            Go::Choose(choices) => {
                let always = choices.iter().position(|choice| choice.when.is_else());
                if let Some(last) = always {
                    closed.insert(&edge.from);
                    if last + 1 < choices.len() {
                        let what = "what comes after `else` is never gone";
                        told.push(Problem::new(path.at("choose").at(last + 1), what));
                    }
                }
            }
        }
    }
    let reached = reached(graph);
    for name in graph.nodes.keys().filter(|name| !reached.contains(name.as_str())) {
        let what = format!("no edge leads to the node `{name}`");
        told.push(Problem::new(config.at("nodes").at(name.as_str()), what));
    }
}

fn reached(graph: &Graph) -> BTreeSet<&str> {
    let mut found = BTreeSet::new();
    let mut left: Vec<&str> = graph.nodes.keys().next().map(Name::as_str).into_iter().collect();
    while let Some(node) = left.pop() {
        if !found.insert(node) {
            continue;
        }
        for edge in graph.edges.iter().filter(|edge| edge.from.as_str() == node) {
            match &edge.go {
                Go::To(nodes) => left.extend(nodes.first().map(Name::as_str)),
                Go::Choose(choices) => left.extend(choices.iter().map(|choice| choice.to.as_str())),
            }
        }
    }
    found
}
