//! A spec's settings: numbers in their ranges, variables that fit, tools that are there.

use std::collections::BTreeSet;

use super::sites::Site;
use super::templates;
use crate::artifact::Inside;
use crate::spec::extras::SecretSource;
use crate::spec::place::{Path, Problem};
use crate::spec::{Input, Spec};

/// Checks them.
pub(super) fn check(spec: &Spec, all: &[Site<'_>], problems: &mut Vec<Problem>) {
    names(spec, problems);
    ranges(spec, problems);
    variables(spec, all, problems);
    schemas(spec, problems);
    extras(spec, problems);
    artifacts(spec, problems);
}

fn names(spec: &Spec, problems: &mut Vec<Problem>) {
    let path = Path::root().at("name");
    let length = spec.name.trim().chars().count();
    if length == 0 || length > 100 || spec.name.chars().any(char::is_control) {
        problems.push(Problem::new(path, "expected a name of 1 to 100 characters in one line"));
    }
}

fn ranges(spec: &Spec, problems: &mut Vec<Problem>) {
    let mut within = |path: Path, value: Option<f64>, most: f64| {
        if let Some(value) = value.filter(|value| !(0.0..=most).contains(value)) {
            problems.push(Problem::new(path, format!("{value} is not between 0 and {most}")));
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
        problems.push(Problem::new(path, "`wait_min` is more than `wait_max`"));
    }
}

fn variables(spec: &Spec, all: &[Site<'_>], problems: &mut Vec<Problem>) {
    let inputs = Path::root().at("inputs");
    let taken = templates::of_pattern(&spec.pattern);
    let declared = [("required", &spec.inputs.required), ("optional", &spec.inputs.optional)];
    for (kind, variables) in declared {
        for (name, input) in variables {
            let path = inputs.at(kind).at(name.as_str());
            problems.extend(called(name, &taken, &path));
            problems.extend(consistent(input, &path));
        }
    }
    for name in spec.inputs.required.keys() {
        if spec.inputs.optional.contains_key(name) {
            let what = format!("`{name}` is required already");
            problems.push(Problem::new(inputs.at("optional").at(name.as_str()), what));
        }
    }
    for (name, value) in &spec.inputs.values {
        let path = inputs.at("values").at(name.as_str());
        problems.extend(called(name, &taken, &path));
        if let Some(expected) = spec.inputs.get(name).and_then(|input| input.refuses(value)) {
            problems.push(Problem::new(path, format!("this does not fit: expected {expected}")));
        }
    }
    for site in all {
        for name in &site.vars {
            problems.extend(called(name, &taken, &site.path.at("vars").at(*name)));
        }
    }
}

/// Why a variable cannot be called that.
fn called(name: &str, taken: &BTreeSet<&str>, path: &Path) -> Option<Problem> {
    let mut letters = name.chars();
    let first = letters.next().is_some_and(|c| c.is_ascii_alphabetic() || c == '_');
    if !first || !letters.all(|c| c.is_ascii_alphanumeric() || c == '_') || name.len() > 64 {
        let what = "a variable's name has letters, digits and underscores, at most 64, and \
                    begins with no digit: templates could not ask for it";
        return Some(Problem::new(path.clone(), what));
    }
    taken.contains(name).then(|| {
        let what = format!("a variable cannot be called `{name}`: the pattern uses this name");
        Problem::new(path.clone(), what)
    })
}

fn consistent(input: &Input, path: &Path) -> Option<Problem> {
    if let Some(known) = &input.one_of
        && known.iter().any(|value| !input.kind.takes(value))
    {
        let what = format!("expected values of type {}", input.kind.name());
        return Some(Problem::new(path.at("enum"), what));
    }
    let expected = input.default.as_ref().and_then(|default| input.refuses(default))?;
    Some(Problem::new(path.at("default"), format!("this does not fit: expected {expected}")))
}

fn schemas(spec: &Spec, problems: &mut Vec<Problem>) {
    for (name, agent) in &spec.agents {
        let Some(schema) = &agent.output_schema else { continue };
        if let Err(error) = jsonschema::validator_for(schema) {
            let path = Path::root().at("agents").at(name.as_str()).at("output_schema");
            problems.push(Problem::new(path, format!("this is no JSON Schema: {error}")));
        }
    }
}

fn extras(spec: &Spec, problems: &mut Vec<Problem>) {
    let path = Path::root().at("tools").at("mcp");
    let mut ids = BTreeSet::new();
    for (n, server) in spec.tools.mcp.iter().enumerate() {
        let at = path.at(n);
        if !ids.insert(&server.id) {
            let what = format!("there is a server `{}` already", server.id);
            problems.push(Problem::new(at.at("id"), what));
        }
        match (&server.command, &server.url) {
            (Some(_), None) | (None, Some(_)) => {}
            (Some(_), Some(_)) => {
                problems.push(Problem::new(at, "a server has `command` or `url`, not both"));
            }
            (None, None) => problems.push(Problem::new(at, "expected `command` or `url`")),
        }
    }
    for (n, secret) in spec.env.secrets.iter().enumerate() {
        let at = Path::root().at("env").at("secrets").at(n);
        if secret.source != SecretSource::Env {
            let what = "only `env` is supported: put the secret into the environment";
            problems.push(Problem::new(at.at("source"), what));
        }
        if secret.key.is_empty() || secret.key.contains(['=', '\0']) {
            problems.push(Problem::new(at.at("key"), "expected the name of a variable"));
        }
    }
}

fn artifacts(spec: &Spec, problems: &mut Vec<Problem>) {
    let mut seen: Vec<Inside> = Vec::new();
    for (n, artifact) in spec.outputs.artifacts.iter().enumerate() {
        let path = Path::root().at("outputs").at("artifacts").at(n).at("path");
        let file = artifact.path.source().trim();
        // One with holes is looked at once they are filled.
        if file.contains("{{") || file.contains("{%") {
            continue;
        }
        match Inside::parse(file) {
            Err(why) => {
                let what = format!("expected a path under the output folder: {why}");
                problems.push(Problem::new(path, what));
            }
            Ok(inside) => {
                if let Some(other) = seen.iter().find(|other| other.clashes(&inside)) {
                    let what = match *other == inside {
                        true => format!("{file:?} is written already"),
                        false => format!("{file:?} and {:?} cannot both be files", other.text()),
                    };
                    problems.push(Problem::new(path, what));
                }
                seen.push(inside);
            }
        }
    }
}
