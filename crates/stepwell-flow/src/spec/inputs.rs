//! What a flow's user sets: variables, their types and their defaults.

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
    /// Those that must be set.
    pub required: IndexMap<String, Input>,
    /// Those that may be set.
    pub optional: IndexMap<String, Input>,
    /// What they are set to here. `--var` goes before it.
    pub values: IndexMap<String, Value>,
}

/// A variable: its type, or that and more.
#[derive(Clone, Debug, PartialEq, JsonSchema)]
#[schemars(with = "WrittenInput")]
pub struct Input {
    /// What it can be.
    pub kind: InputType,
    /// What it is for.
    pub description: Option<String>,
    /// What it is if nobody sets it.
    pub default: Option<Value>,
    /// What it must be one of.
    pub one_of: Option<Vec<Value>>,
}

/// What a variable can be.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[expect(missing_docs, reason = "they are what they are in JSON")]
pub enum InputType {
    String,
    Number,
    Integer,
    Boolean,
    Array,
    Object,
}

/// A variable's type, or a mapping that says more of it.
#[derive(JsonSchema)]
#[schemars(rename = "Input", untagged)]
#[expect(dead_code, reason = "its fields are what the schema is made of")]
enum WrittenInput {
    Type(InputType),
    Full(FullInput),
}

/// A variable.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct FullInput {
    /// What it can be.
    r#type: InputType,
    /// What it is for.
    #[serde(default)]
    description: Option<String>,
    /// What it is if nobody sets it.
    #[serde(default)]
    default: Option<Value>,
    /// What it must be one of.
    #[serde(default, rename = "enum")]
    one_of: Option<Vec<Value>>,
}

impl<'de> Deserialize<'de> for Input {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let bare =
            |kind| FullInput { r#type: kind, description: None, default: None, one_of: None };
        let written = super::either::text_or(deserializer, "a type's name or a mapping", bare)?;
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

    /// Is a value one of these?
    #[must_use]
    pub fn takes(self, value: &Value) -> bool {
        match self {
            Self::String => value.is_string(),
            Self::Number => value.is_number(),
            Self::Integer => value.is_i64() || value.is_u64(),
            Self::Boolean => value.is_boolean(),
            Self::Array => value.is_array(),
            Self::Object => value.is_object(),
        }
    }

    /// What a user typed, as one of these.
    fn read(self, typed: &str) -> Option<Value> {
        match self {
            Self::String => Some(Value::from(typed)),
            _ => serde_json::from_str(typed).ok().filter(|value| self.takes(value)),
        }
    }
}

/// Why a flow's variables cannot be what a user set them to.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BadVariable {
    /// No such variable.
    #[error("the flow has no variable `{name}`; it has {known}{}", meant(.near.as_deref()))]
    Unknown {
        /// What was set.
        name: String,
        /// What there is.
        known: String,
        /// What was perhaps meant.
        near: Option<String>,
    },
    /// It must be set.
    #[error("the variable `{name}` ({kind}{}) must be set", about(.description.as_deref()))]
    Missing {
        /// Which.
        name: String,
        /// What it can be.
        kind: &'static str,
        /// What it is for.
        description: Option<String>,
    },
    /// It cannot be that.
    #[error("the variable `{name}` cannot be {value}: expected {expected}")]
    Unfit {
        /// Which.
        name: String,
        /// What it was set to.
        value: String,
        /// What it can be.
        expected: String,
    },
}

fn meant(near: Option<&str>) -> String {
    near.map(|near| format!("; did you mean `{near}`?")).unwrap_or_default()
}

fn about(description: Option<&str>) -> String {
    description.map(|text| format!(", {text}")).unwrap_or_default()
}

impl Input {
    /// Why it cannot be a value; nothing if it can.
    #[must_use]
    pub fn refuses(&self, value: &Value) -> Option<String> {
        if !self.kind.takes(value) {
            return Some(self.expected());
        }
        let among = self.one_of.as_ref().is_none_or(|known| known.contains(value));
        (!among).then(|| self.expected())
    }

    fn expected(&self) -> String {
        match &self.one_of {
            Some(known) => {
                let known: Vec<_> = known.iter().map(shown).collect();
                format!("one of {}", listed(known.iter().map(String::as_str)))
            }
            None => match self.kind {
                InputType::String => "a text".to_owned(),
                InputType::Number => "a number".to_owned(),
                InputType::Integer => "a whole number".to_owned(),
                InputType::Boolean => "true or false".to_owned(),
                InputType::Array => "a JSON list".to_owned(),
                InputType::Object => "a JSON object".to_owned(),
            },
        }
    }
}

/// A value as a user would type it.
fn shown(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

impl Inputs {
    /// One of the variables that a user can set.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&Input> {
        self.required.get(name).or_else(|| self.optional.get(name))
    }

    /// The names that templates can count on or ask for.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        let declared = self.required.keys().chain(self.optional.keys());
        let only_set = self.values.keys().filter(|name| self.get(name).is_none());
        declared.chain(only_set).map(String::as_str)
    }

    /// What the variables are, given what the user set.
    ///
    /// An optional variable without a default that nobody sets is absent, so that a template
    /// can ask for it with `default(...)`.
    pub fn resolve(
        &self,
        set: &BTreeMap<String, String>,
    ) -> Result<BTreeMap<String, Value>, BadVariable> {
        let mut variables: BTreeMap<_, _> =
            self.values.iter().map(|(name, value)| (name.clone(), value.clone())).collect();
        for (name, typed) in set {
            variables.insert(name.clone(), self.typed(name, typed)?);
        }
        for (name, input) in self.required.iter().chain(&self.optional) {
            if !variables.contains_key(name) {
                if let Some(default) = &input.default {
                    variables.insert(name.clone(), default.clone());
                } else if self.required.contains_key(name) {
                    let (kind, description) = (input.kind.name(), input.description.clone());
                    return Err(BadVariable::Missing { name: name.clone(), kind, description });
                }
            }
        }
        Ok(variables)
    }

    /// The value of one variable, from what was typed for it.
    pub fn typed(&self, name: &str, typed: &str) -> Result<Value, BadVariable> {
        let Some(input) = self.get(name) else {
            if self.values.contains_key(name) {
                return Ok(Value::from(typed));
            }
            let near = nearest(name, self.names()).map(str::to_owned);
            let known = listed(self.names());
            return Err(BadVariable::Unknown { name: name.to_owned(), known, near });
        };
        let read = input.kind.read(typed);
        read.filter(|value| input.refuses(value).is_none()).ok_or_else(|| BadVariable::Unfit {
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
    fn what_is_typed_becomes_what_it_is_declared_as() {
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
    fn a_wrong_variable_is_refused_by_name_with_what_was_expected() {
        let refused = |pairs: &[_]| inputs().resolve(&set(pairs)).unwrap_err().to_string();
        assert_eq!(refused(&[]), "the variable `topic` (string) must be set");
        assert_eq!(
            refused(&[("topic", "x"), ("tone", "loud")]),
            r#"the variable `tone` cannot be "loud": expected one of `dry`, `warm`"#
        );
        assert_eq!(
            refused(&[("topic", "x"), ("depth", "deep")]),
            r#"the variable `depth` cannot be "deep": expected a whole number"#
        );
        assert_eq!(
            refused(&[("topc", "x")]),
            "the flow has no variable `topc`; it has `topic`, `depth`, `tone`, `tags`, `house`; \
             did you mean `topic`?"
        );
    }
}
