//! Warnings: parts of a spec without an effect, or with another one than expected.

use std::collections::BTreeSet;

use stepwell::log::Redactor;

use super::sites;
use crate::names::listed;
use crate::spec::pattern::{EdgeTarget, Graph, Pattern};
use crate::spec::problem::{Path, Problem};
use crate::spec::{Name, Spec};

/// Providers of strands-cli that Stepwell does not support without configuration.
const FOREIGN_PROVIDERS: [&str; 3] = ["bedrock", "azure_openai", "danskegpt"];

/// Tools of strands-cli for searching and reading. Stepwell's own tools replace them.
pub(super) const JIT_TOOLS: [&str; 4] = ["grep", "head", "search", "tail"];

/// The warnings about a spec.
pub(in crate::spec) fn warnings(spec: &Spec) -> Vec<Problem> {
    let mut warnings = Vec::new();
    ignored_keys(spec, &mut warnings);
    providers(spec, &mut warnings);
    unused(spec, &mut warnings);
    secrets(spec, &mut warnings);
    absent_tools(spec, &mut warnings);
    if let Pattern::Graph(graph) = &spec.pattern {
        unreached(graph, &mut warnings);
    }
    warnings
}

/// Values that look like secrets: a session stores its spec byte for byte.
fn secrets(spec: &Spec, warnings: &mut Vec<Problem>) {
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
                "this looks like a secret, and sessions store the spec unredacted: remove it, and \
                 use --var {name}=…"
            );
            warnings.push(Problem::new(path, what));
        }
    }
}

/// Keys that have no effect in Stepwell.
fn ignored_keys(spec: &Spec, warnings: &mut Vec<Problem>) {
    let root = Path::root;
    let mut warn = |present: bool, path: Path, why: &str| {
        if present {
            warnings.push(Problem::new(path, format!("this has no effect: {why}")));
        }
    };
    let runtime = root().at("runtime");
    warn(spec.runtime.region.is_some(), runtime.at("region"), "no provider has regions");
    warn(spec.runtime.space_id.is_some(), runtime.at("space_id"), "no provider has spaces");
    let tools = root().at("tools");
    let python = "Stepwell does not run Python; agents work without these tools";
    warn(!spec.tools.python.is_empty(), tools.at("python"), python);
    let http = "Stepwell has no HTTP executors; agents work without these tools";
    warn(!spec.tools.http_executors.is_empty(), tools.at("http_executors"), http);
    let mounts = "agents work in the workspace";
    warn(!spec.env.mounts.is_empty(), root().at("env").at("mounts"), mounts);
    let telemetry = "Stepwell sends no telemetry; the session's log records everything";
    warn(spec.telemetry.is_some(), root().at("telemetry"), telemetry);
    warn(!spec.skills.is_empty(), root().at("skills"), "Stepwell has no skills");
    if let Some(guards) = &spec.security.guardrails {
        let path = root().at("security").at("guardrails");
        let network = "Stepwell does not restrict the network";
        warn(guards.deny_network == Some(true), path.at("deny_network"), network);
        let redaction = "secrets are always removed, other data never";
        warn(guards.pii_redaction == Some(true), path.at("pii_redaction"), redaction);
    }
    if let Some(policy) = &spec.context_policy {
        let path = root().at("context_policy");
        warn(policy.notes.is_some(), path.at("notes"), "Stepwell has no notes; see `pin-message`");
        if let Some(compaction) = &policy.compaction {
            let path = path.at("compaction");
            let kept = "what to keep is set in tokens: `compaction.keep_tokens`";
            warn(compaction.summary_ratio.is_some(), path.at("summary_ratio"), kept);
            let recent = compaction.preserve_recent_messages.is_some();
            warn(recent, path.at("preserve_recent_messages"), kept);
            let model = "the agent's own model writes summaries";
            warn(compaction.summarization_model.is_some(), path.at("summarization_model"), model);
        }
    }
    for (n, artifact) in spec.outputs.artifacts.iter().enumerate() {
        let path = root().at("outputs").at("artifacts").at(n).at("from");
        let trace = "Stepwell has no trace; `stepwell export` writes everything that happened";
        warn(artifact.is_trace(), path, trace);
    }
}

fn providers(spec: &Spec, warnings: &mut Vec<Problem>) {
    let foreign = |name: &Option<String>| {
        name.as_deref().filter(|name| FOREIGN_PROVIDERS.contains(name)).map(|name| {
            format!("provider `{name}` is not built in: run with `--model`, or configure it")
        })
    };
    if let Some(what) = foreign(&spec.runtime.provider) {
        warnings.push(Problem::new(Path::root().at("runtime").at("provider"), what));
    }
    for (name, agent) in &spec.agents {
        if let Some(what) = foreign(&agent.provider) {
            let path = Path::root().at("agents").at(name.as_str()).at("provider");
            warnings.push(Problem::new(path, what));
        }
    }
}

fn unused(spec: &Spec, warnings: &mut Vec<Problem>) {
    let used: BTreeSet<_> =
        sites::all(&spec.pattern).into_iter().filter_map(|site| site.agent).collect();
    for name in spec.agents.keys().filter(|name| !used.contains(name)) {
        let path = Path::root().at("agents").at(name.as_str());
        warnings.push(Problem::new(path, format!("no step uses the agent `{name}`")));
    }
}

/// Tools of agents that only strands-cli has.
fn absent_tools(spec: &Spec, warnings: &mut Vec<Problem>) {
    for (name, agent) in &spec.agents {
        let path = Path::root().at("agents").at(name.as_str()).at("tools");
        for (n, tool) in agent.tools.iter().enumerate().filter(|(_, it)| spec.tools.is_foreign(it))
        {
            let what = format!("Stepwell has no tool `{tool}`: `{name}` works without it");
            warnings.push(Problem::new(path.at(n), what));
        }
    }
    let policy = spec.context_policy.as_ref().and_then(|policy| policy.retrieval.as_ref());
    for (n, tool) in policy.iter().flat_map(|it| &it.jit_tools).enumerate() {
        if !JIT_TOOLS.contains(&tool.as_str()) {
            let path = Path::root().at("context_policy").at("retrieval").at("jit_tools").at(n);
            let what = format!("`{tool}` has no effect; expected one of: {}", listed(JIT_TOOLS));
            warnings.push(Problem::new(path, what));
        }
    }
}

/// Nodes that are never reached, and edges that are never followed.
fn unreached(graph: &Graph, warnings: &mut Vec<Problem>) {
    let config = Path::root().at("pattern").at("config");
    let mut closed = BTreeSet::new();
    for (n, edge) in graph.edges.iter().enumerate() {
        let path = config.at("edges").at(n);
        if closed.contains(&edge.from) {
            let what = format!(
                "this edge is never followed: an earlier edge always leaves `{}`",
                edge.from
            );
            warnings.push(Problem::new(path.clone(), what));
        }
        match &edge.target {
            EdgeTarget::To(nodes) => {
                if nodes.len() > 1 {
                    let what = format!("only the first node of the list is used, `{}`", nodes[0]);
                    warnings.push(Problem::new(path.at("to"), what));
                }
                if !nodes.is_empty() {
                    closed.insert(&edge.from);
                }
            }
            EdgeTarget::Choose(choices) => {
                let always = choices.iter().position(|choice| choice.when.is_else());
                if let Some(last) = always {
                    closed.insert(&edge.from);
                    if last + 1 < choices.len() {
                        let what = "a choice after `else` is never used";
                        warnings.push(Problem::new(path.at("choose").at(last + 1), what));
                    }
                }
            }
        }
    }
    let reached = reached(graph);
    for name in graph.nodes.keys().filter(|name| !reached.contains(name.as_str())) {
        let what = format!("no edge leads to the node `{name}`");
        warnings.push(Problem::new(config.at("nodes").at(name.as_str()), what));
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
            match &edge.target {
                EdgeTarget::To(nodes) => left.extend(nodes.first().map(Name::as_str)),
                EdgeTarget::Choose(choices) => {
                    left.extend(choices.iter().map(|choice| choice.to.as_str()));
                }
            }
        }
    }
    found
}
