//! The variables of a flow: their types, defaults and values.

use std::collections::BTreeMap;

use indexmap::IndexMap;
use schemars::JsonSchema;
use serde::{Deserialize, Deserializer};
use serde_json::Value;

use crate::names::{listed, nearest};

/// A flow's variables.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Inputs {
    /// Variables that must be set.
    pub required: IndexMap<String, Input>,
    /// Variables that may be set.
    pub optional: IndexMap<String, Input>,
    /// Values set in the spec. `--var` overrides them.
    pub values: IndexMap<String, Value>,
}

/// A variable: its type, or a mapping with more.
#[derive(Clone, Debug, PartialEq, JsonSchema)]
#[schemars(with = "WrittenInput")]
pub struct Input {
    /// Its type.
    pub kind: InputType,
    /// What it is for.
    pub description: Option<String>,
    /// Its value if it is not set.
    pub default: Option<Value>,
    /// The only allowed values.
    pub one_of: Option<Vec<Value>>,
}

/// The type of a variable.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[expect(missing_docs, reason = "these are the types of JSON")]
pub enum InputType {
    String,
    Number,
    Integer,
    Boolean,
    Array,
    Object,
}

/// A variable's type, or a mapping with more.
#[derive(JsonSchema)]
#[schemars(rename = "Input", untagged)]
#[expect(dead_code, reason = "the schema is generated from its fields")]
enum WrittenInput {
    Type(InputType),
    Full(FullInput),
}

/// A variable.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct FullInput {
    /// Its type.
    r#type: InputType,
    /// What it is for.
    #[serde(default)]
    description: Option<String>,
    /// Its value if it is not set.
    #[serde(default)]
    default: Option<Value>,
    /// The only allowed values.
    #[serde(default, rename = "enum")]
    one_of: Option<Vec<Value>>,
}

impl<'de> Deserialize<'de> for Input {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let bare =
            |kind| FullInput { r#type: kind, description: None, default: None, one_of: None };
        let written =
            super::either::text_or(deserializer, "the name of a type or a mapping", bare)?;
        Ok(Self {
            kind: written.r#type,
            description: written.description,
            default: written.default,
            one_of: written.one_of,
        })
    }
}

impl InputType {
    /// Its name in a spec.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::String => "string",
            Self::Number => "number",
            Self::Integer => "integer",
            Self::Boolean => "boolean",
            Self::Array => "array",
            Self::Object => "object",
        }
    }

    /// Whether a value has this type.
    #[must_use]
    pub fn accepts(self, value: &Value) -> bool {
        match self {
            Self::String => value.is_string(),
            Self::Number => value.is_number(),
            Self::Integer => value.is_i64() || value.is_u64(),
            Self::Boolean => value.is_boolean(),
            Self::Array => value.is_array(),
            Self::Object => value.is_object(),
        }
    }

    /// Parses what a user typed as this type.
    fn read(self, typed: &str) -> Option<Value> {
        match self {
            Self::String => Some(Value::from(typed)),
            _ => serde_json::from_str(typed).ok().filter(|value| self.accepts(value)),
        }
    }
}

/// Why the variables that a user set are invalid.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BadVariable {
    /// The flow has no such variable.
    #[error("unknown variable `{name}`; {expected}{}", meant(.near.as_deref()))]
    Unknown {
        /// The name that was set.
        name: String,
        /// Which variables the flow has.
        expected: String,
        /// A similar name.
        near: Option<String>,
    },
    /// A required variable is not set.
    #[error("the variable `{name}` ({kind}{}) must be set{}", about(.description.as_deref()), and(.others))]
    Missing {
        /// The variable.
        name: String,
        /// Its type.
        kind: &'static str,
        /// What it is for.
        description: Option<String>,
        /// Others that are not set either.
        others: Vec<String>,
    },
    /// The value does not fit the variable.
    #[error("invalid value {value} for the variable `{name}`: expected {expected}")]
    Unfit {
        /// The variable.
        name: String,
        /// The value that was set.
        value: String,
        /// Which values are allowed.
        expected: String,
    },
}

fn meant(near: Option<&str>) -> String {
    near.map(|near| format!("; did you mean `{near}`?")).unwrap_or_default()
}

fn and(others: &[String]) -> String {
    match others.is_empty() {
        true => String::new(),
        false => format!(", and {}", listed(others.iter().map(String::as_str))),
    }
}

fn about(description: Option<&str>) -> String {
    description.map(|text| format!(", {text}")).unwrap_or_default()
}

impl Input {
    /// Which values are allowed, if this one is not.
    #[must_use]
    pub fn mismatch(&self, value: &Value) -> Option<String> {
        if !self.kind.accepts(value) {
            return Some(self.expected());
        }
        let allowed = self.one_of.as_ref().is_none_or(|allowed| allowed.contains(value));
        (!allowed).then(|| self.expected())
    }

    fn expected(&self) -> String {
        match &self.one_of {
            Some(allowed) => {
                let allowed: Vec<_> = allowed.iter().map(as_typed).collect();
                format!("one of: {}", listed(allowed.iter().map(String::as_str)))
            }
            None => match self.kind {
                InputType::String => "a string".to_owned(),
                InputType::Number => "a number".to_owned(),
                InputType::Integer => "an integer".to_owned(),
                InputType::Boolean => "true or false".to_owned(),
                InputType::Array => "a JSON array".to_owned(),
                InputType::Object => "a JSON object".to_owned(),
            },
        }
    }
}

/// A value as a user would type it.
fn as_typed(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

impl Inputs {
    /// A declared variable.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&Input> {
        self.required.get(name).or_else(|| self.optional.get(name))
    }

    /// The names of all variables: declared ones, and ones that only have a value.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        let declared = self.required.keys().chain(self.optional.keys());
        let only_set = self.values.keys().filter(|name| self.get(name).is_none());
        declared.chain(only_set).map(String::as_str)
    }

    /// The values of all variables, given what the user set.
    ///
    /// An optional variable without a value and a default is absent, so that a template can use
    /// `default(...)`.
    pub fn resolve(
        &self,
        set: &BTreeMap<String, String>,
    ) -> Result<BTreeMap<String, Value>, BadVariable> {
        let mut variables: BTreeMap<_, _> =
            self.values.iter().map(|(name, value)| (name.clone(), value.clone())).collect();
        for (name, typed) in set {
            variables.insert(name.clone(), self.typed(name, typed)?);
        }
        let mut missing = Vec::new();
        for (name, input) in self.required.iter().chain(&self.optional) {
            if !variables.contains_key(name) {
                if let Some(default) = &input.default {
                    variables.insert(name.clone(), default.clone());
                } else if self.required.contains_key(name) {
                    missing.push((name, input));
                }
            }
        }
        match missing.split_first() {
            None => Ok(variables),
            Some(((name, input), others)) => Err(BadVariable::Missing {
                name: (*name).clone(),
                kind: input.kind.name(),
                description: input.description.clone(),
                others: others.iter().map(|(name, _)| (*name).clone()).collect(),
            }),
        }
    }

    /// Parses what a user typed for a variable.
    pub fn typed(&self, name: &str, typed: &str) -> Result<Value, BadVariable> {
        let Some(input) = self.get(name) else {
            if self.values.contains_key(name) {
                return Ok(Value::from(typed));
            }
            let near = nearest(name, self.names()).map(str::to_owned);
            let expected = match self.names().next() {
                Some(_) => format!("expected one of: {}", listed(self.names())),
                None => "the flow has no variables".to_owned(),
            };
            return Err(BadVariable::Unknown { name: name.to_owned(), expected, near });
        };
        let read = input.kind.read(typed);
        read.filter(|value| input.mismatch(value).is_none()).ok_or_else(|| BadVariable::Unfit {
            name: name.to_owned(),
            value: format!("{typed:?}"),
            expected: input.expected(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn inputs() -> Inputs {
        serde_json::from_value(serde_json::json!({
            "required": {"topic": "string", "depth": {"type": "integer", "description": "how deep"}},
            "optional": {
                "tone": {"type": "string", "default": "dry", "enum": ["dry", "warm"]},
                "tags": "array",
            },
            "values": {"depth": 2, "house": "style"},
        }))
        .unwrap()
    }

    fn set(pairs: &[(&str, &str)]) -> BTreeMap<String, String> {
        pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
    }

    #[test]
    fn a_typed_value_gets_the_declared_type() {
        let variables =
            inputs().resolve(&set(&[("topic", "12"), ("depth", "3"), ("tags", "[1]")])).unwrap();
        let variables = serde_json::to_value(variables).unwrap();
        assert_eq!(
            variables,
            serde_json::json!({
                "topic": "12", "depth": 3, "tone": "dry", "tags": [1], "house": "style"
            })
        );
    }

    #[test]
    fn an_invalid_variable_is_refused_with_its_name_and_what_was_expected() {
        let refused = |pairs: &[_]| inputs().resolve(&set(pairs)).unwrap_err().to_string();
        assert_eq!(refused(&[]), "the variable `topic` (string) must be set");
        let input = || inputs().required.into_values().next().unwrap();
        let required = ["a", "b", "c"].map(|name| (name.to_owned(), input())).into();
        let several = Inputs { required, ..Inputs::default() };
        assert_eq!(
            several.resolve(&set(&[("b", "x")])).unwrap_err().to_string(),
            "the variable `a` (string) must be set, and `c`"
        );
        assert_eq!(
            refused(&[("topic", "x"), ("tone", "loud")]),
            r#"invalid value "loud" for the variable `tone`: expected one of: `dry`, `warm`"#
        );
        assert_eq!(
            refused(&[("topic", "x"), ("depth", "deep")]),
            r#"invalid value "deep" for the variable `depth`: expected an integer"#
        );
        assert_eq!(
            refused(&[("topc", "x")]),
            "unknown variable `topc`; expected one of: `topic`, `depth`, `tone`, `tags`, `house`; \
             did you mean `topic`?"
        );
        let none = Inputs::default().resolve(&set(&[("x", "1")])).unwrap_err().to_string();
        assert_eq!(none, "unknown variable `x`; the flow has no variables");
    }
}
