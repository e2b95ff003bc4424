//! A flow's variables: as they were typed, and as they are kept, without their secrets.

use std::collections::BTreeMap;

use serde_json::Value;
use stepwell::log::Redactor;
use stepwell::{Remedy, SessionId};
use stepwell_flow::spec::Spec;

use crate::error::{Error, Result};

/// Variables and what they are.
pub(crate) type Variables = BTreeMap<String, Value>;

/// Variables as they are kept.
pub(crate) fn kept(variables: &Variables, redactor: &Redactor) -> Variables {
    variables.iter().map(|(name, value)| (name.clone(), without(value, redactor))).collect()
}

fn without(value: &Value, redactor: &Redactor) -> Value {
    match value {
        Value::String(text) => Value::from(redactor.redact(text).into_owned()),
        Value::Array(items) => items.iter().map(|item| without(item, redactor)).collect(),
        Value::Object(entries) => {
            let entry = |(key, value): (&String, &Value)| (key.clone(), without(value, redactor));
            Value::Object(entries.iter().map(entry).collect())
        }
        other => other.clone(),
    }
}

fn is_redacted(value: &Value) -> bool {
    match value {
        Value::String(text) => Redactor::is_redacted(text),
        Value::Array(items) => items.iter().any(is_redacted),
        Value::Object(entries) => entries.values().any(is_redacted),
        _ => false,
    }
}

/// What secrets are found in that were not kept.
pub(crate) struct Revealing<'a> {
    pub(crate) session: &'a SessionId,
    pub(crate) spec: &'a Spec,
    /// What was typed again.
    pub(crate) typed: &'a BTreeMap<String, String>,
    pub(crate) redactor: &'a Redactor,
}

/// What a flow that is taken up goes on with: what is kept, and in place of what is not, what
/// its spec says or what was typed again.
pub(crate) fn revealed(kept: &Variables, from: &Revealing<'_>) -> Result<Variables> {
    let Revealing { session: id, spec, typed, redactor } = *from;
    let kept = &with_defaults(kept, spec);
    let mut variables = kept.clone();
    for (name, value) in variables.iter_mut().filter(|(_, value)| is_redacted(value)) {
        let input = spec.inputs.required.get(name).or_else(|| spec.inputs.optional.get(name));
        let default = input.and_then(|input| input.default.as_ref());
        let said = spec.inputs.values.get(name).or(default);
        match said.filter(|said| without(said, redactor) == *value) {
            Some(said) => *value = said.clone(),
            None if typed.contains_key(name) => {}
            None => {
                let why =
                    format!("{name} holds a secret, which is not kept with {id}; give it again");
                return Err(Error::config(why).helped_by(Remedy::GiveVariables(vec![name.clone()])));
            }
        }
    }
    for (name, text) in typed {
        let value = spec.inputs.typed(name, text).map_err(stepwell_flow::Error::from)?;
        // Another system may have kept nothing of what it was begun with.
        let is_unknown = spec.inputs.required.contains_key(name) && !kept.contains_key(name);
        if !is_unknown && kept.get(name) != Some(&without(&value, redactor)) {
            let why = format!(
                "variable {name}: {id} did not begin with that; with other variables it is another flow"
            );
            return Err(Error::usage(why).helped_by(Remedy::BeginFlow));
        }
        variables.insert(name.clone(), value);
    }
    Ok(variables)
}

/// What is kept, and what the spec says of variables that are not: other systems keep only what
/// was typed.
pub(super) fn with_defaults(kept: &Variables, spec: &Spec) -> Variables {
    let inputs = spec.inputs.required.iter().chain(&spec.inputs.optional);
    let defaults = inputs.filter_map(|(name, input)| Some((name, input.default.as_ref()?)));
    let mut variables = kept.clone();
    for (name, value) in spec.inputs.values.iter().chain(defaults) {
        variables.entry(name.clone()).or_insert_with(|| value.clone());
    }
    variables
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::ErrorKind;

    const SPEC: &str = "
version: 0
name: letter
runtime: {provider: ollama, model_id: fake}
inputs:
  required: {topic: string}
  optional: {format: {type: string, default: markdown}, tone: string}
  values: {length: 3}
agents: {writer: {prompt: Write.}}
pattern:
  type: chain
  config: {steps: [{agent: writer, input: 'On {{ topic }} as {{ format }}.'}]}
";

    fn go_on(kept: &[(&str, &str)], typed: &[(&str, &str)]) -> Result<Variables> {
        let spec = Spec::parse(SPEC, "spec", &BTreeMap::new()).unwrap().spec;
        let kept = kept.iter().map(|(name, value)| ((*name).to_owned(), (*value).into()));
        let typed = typed.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
        let (session, redactor) = ("a".parse().unwrap(), Redactor::default());
        let from = Revealing {
            session: &session,
            spec: &spec,
            typed: &typed.collect(),
            redactor: &redactor,
        };
        revealed(&kept.collect(), &from)
    }

    #[test]
    fn what_another_system_did_not_keep_is_what_the_spec_says() {
        let variables = go_on(&[("topic", "rain")], &[]).unwrap();
        let expected = serde_json::json!({"topic": "rain", "format": "markdown", "length": 3});
        assert_eq!(serde_json::json!(variables), expected);
        // What was kept stays.
        let variables = go_on(&[("format", "html")], &[("topic", "snow")]).unwrap();
        assert_eq!((&variables["format"], &variables["topic"]), (&"html".into(), &"snow".into()));
        for other in [("format", "md"), ("tone", "dry")] {
            let refused = go_on(&[("topic", "rain")], &[other]);
            assert!(
                matches!(refused, Err(Error::Refused { kind: ErrorKind::Usage, .. })),
                "{refused:?}"
            );
        }
        assert!(go_on(&[("topic", "rain")], &[("format", "markdown")]).is_ok());
    }
}
