//! Checks of a spec's settings: number ranges, variables, schemas, servers, secrets, artifacts.

use std::collections::BTreeSet;

use super::sites::Site;
use super::templates;
use crate::artifact::ArtifactPath;
use crate::spec::extras::SecretSource;
use crate::spec::problem::{Path, Problem};
use crate::spec::{Input, Spec};

/// Checks all settings.
pub(super) fn check(spec: &Spec, all: &[Site<'_>], problems: &mut Vec<Problem>) {
    name(spec, problems);
    ranges(spec, problems);
    variables(spec, all, problems);
    schemas(spec, problems);
    extras(spec, problems);
    artifacts(spec, problems);
}

fn name(spec: &Spec, problems: &mut Vec<Problem>) {
    let path = Path::root().at("name");
    let length = spec.name.trim().chars().count();
    if length == 0 || length > 100 || spec.name.chars().any(char::is_control) {
        problems.push(Problem::new(path, "expected a name of 1 to 100 characters on one line"));
    }
}

fn ranges(spec: &Spec, problems: &mut Vec<Problem>) {
    let mut within = |path: Path, value: Option<f64>, max: f64| {
        if let Some(value) = value.filter(|value| !(0.0..=max).contains(value)) {
            problems.push(Problem::new(path, format!("{value} is not between 0 and {max}")));
        }
    };
    let runtime = Path::root().at("runtime");
    within(runtime.at("temperature"), spec.runtime.temperature, 2.0);
    within(runtime.at("top_p"), spec.runtime.top_p, 1.0);
    let budgets = runtime.at("budgets");
    within(budgets.at("warn_threshold"), spec.runtime.budgets.warn_threshold, 1.0);
    for (name, agent) in &spec.agents {
        let path = Path::root().at("agents").at(name.as_str()).at("inference");
        within(path.at("temperature"), agent.inference.temperature, 2.0);
        within(path.at("top_p"), agent.inference.top_p, 1.0);
    }
    let policy = &spec.runtime.failure_policy;
    if policy.wait_min.unwrap_or(1) > policy.wait_max.unwrap_or(60) {
        let path = runtime.at("failure_policy");
        problems.push(Problem::new(path, "`wait_min` is greater than `wait_max`"));
    }
}

fn variables(spec: &Spec, all: &[Site<'_>], problems: &mut Vec<Problem>) {
    let inputs = Path::root().at("inputs");
    let reserved = templates::pattern_names(&spec.pattern);
    let declared = [("required", &spec.inputs.required), ("optional", &spec.inputs.optional)];
    for (kind, variables) in declared {
        for (name, input) in variables {
            let path = inputs.at(kind).at(name.as_str());
            problems.extend(check_variable_name(name, &reserved, &path));
            problems.extend(check_input(input, &path));
        }
    }
    for name in spec.inputs.required.keys() {
        if spec.inputs.optional.contains_key(name) {
            let what = format!("`{name}` is also declared as required");
            problems.push(Problem::new(inputs.at("optional").at(name.as_str()), what));
        }
    }
    for (name, value) in &spec.inputs.values {
        let path = inputs.at("values").at(name.as_str());
        problems.extend(check_variable_name(name, &reserved, &path));
        if let Some(expected) = spec.inputs.get(name).and_then(|input| input.mismatch(value)) {
            problems.push(Problem::new(path, format!("invalid value: expected {expected}")));
        }
    }
    for site in all {
        for name in &site.vars {
            problems.extend(check_variable_name(name, &reserved, &site.path.at("vars").at(*name)));
        }
    }
}

/// Checks that templates can use a variable's name.
fn check_variable_name(name: &str, reserved: &BTreeSet<&str>, path: &Path) -> Option<Problem> {
    let mut letters = name.chars();
    let first = letters.next().is_some_and(|c| c.is_ascii_alphabetic() || c == '_');
    if !first || !letters.all(|c| c.is_ascii_alphanumeric() || c == '_') || name.len() > 64 {
        let what = "invalid variable name: expected at most 64 letters, digits and underscores, \
                    not starting with a digit, so that templates can use it";
        return Some(Problem::new(path.clone(), what));
    }
    reserved.contains(name).then(|| {
        let what = format!("the name `{name}` is reserved: the pattern uses it");
        Problem::new(path.clone(), what)
    })
}

fn check_input(input: &Input, path: &Path) -> Option<Problem> {
    if let Some(allowed) = &input.one_of
        && allowed.iter().any(|value| !input.kind.accepts(value))
    {
        let what = format!("expected values of type {}", input.kind.name());
        return Some(Problem::new(path.at("enum"), what));
    }
    let expected = input.default.as_ref().and_then(|default| input.mismatch(default))?;
    Some(Problem::new(path.at("default"), format!("invalid value: expected {expected}")))
}

fn schemas(spec: &Spec, problems: &mut Vec<Problem>) {
    for (name, agent) in &spec.agents {
        let Some(schema) = &agent.output_schema else { continue };
        if let Err(error) = jsonschema::validator_for(schema) {
            let path = Path::root().at("agents").at(name.as_str()).at("output_schema");
            problems.push(Problem::new(path, format!("invalid JSON Schema: {error}")));
        }
    }
}

fn extras(spec: &Spec, problems: &mut Vec<Problem>) {
    let path = Path::root().at("tools").at("mcp");
    let mut ids = BTreeSet::new();
    for (n, server) in spec.tools.mcp.iter().enumerate() {
        let at = path.at(n);
        if !ids.insert(&server.id) {
            let what = format!("duplicate server `{}`", server.id);
            problems.push(Problem::new(at.at("id"), what));
        }
        match (&server.command, &server.url) {
            (Some(_), None) | (None, Some(_)) => {}
            (Some(_), Some(_)) => {
                problems.push(Problem::new(at, "a server has either `command` or `url`, not both"));
            }
            (None, None) => problems.push(Problem::new(at, "missing key `command` or `url`")),
        }
    }
    for (n, secret) in spec.env.secrets.iter().enumerate() {
        let at = Path::root().at("env").at("secrets").at(n);
        if secret.source != SecretSource::Env {
            let what = "only `env` is supported: put the secret into an environment variable";
            problems.push(Problem::new(at.at("source"), what));
        }
        if secret.key.is_empty() || secret.key.contains(['=', '\0']) {
            problems
                .push(Problem::new(at.at("key"), "expected the name of an environment variable"));
        }
    }
}

fn artifacts(spec: &Spec, problems: &mut Vec<Problem>) {
    let mut seen: Vec<ArtifactPath> = Vec::new();
    for (n, artifact) in spec.outputs.artifacts.iter().enumerate() {
        let path = Path::root().at("outputs").at("artifacts").at(n).at("path");
        let file = artifact.path.source().trim();
        // A path with placeholders is checked once it is rendered.
        if file.contains("{{") || file.contains("{%") {
            continue;
        }
        match ArtifactPath::parse(file) {
            Err(why) => {
                let what = format!("expected a path inside the output folder: {why}");
                problems.push(Problem::new(path, what));
            }
            Ok(parsed) => {
                if let Some(other) = seen.iter().find(|other| other.clashes(&parsed)) {
                    let what = match *other == parsed {
                        true => format!("another artifact already has the path {file:?}"),
                        false => format!("{file:?} and {:?} cannot both be files", other.text()),
                    };
                    problems.push(Problem::new(path, what));
                }
                seen.push(parsed);
            }
        }
    }
}
