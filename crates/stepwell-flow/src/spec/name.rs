//! Names that a spec gives to its parts.

use std::borrow::{Borrow, Cow};
use std::fmt;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};

/// The name of an agent, step, task, branch, route or node: 1 to 63 of `A-Z a-z 0-9 . _ : -`.
/// It has no slash, so that the keys of nodes are unambiguous.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Name(String);

impl JsonSchema for Name {
    fn schema_name() -> Cow<'static, str> {
        "Name".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "string", "pattern": "^[A-Za-z0-9._:-]{1,63}$" })
    }
}

/// The longest name.
const MAX_NAME: usize = 63;

impl Name {
    /// The name as text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl TryFrom<String> for Name {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        let fits = |c: char| c.is_ascii_alphanumeric() || "._:-".contains(c);
        if !text.is_empty() && text.len() <= MAX_NAME && text.chars().all(fits) {
            return Ok(Self(text));
        }
        let shown: String = text.chars().take(MAX_NAME).collect();
        Err(format!(
            "invalid name {shown:?}: expected 1 to {MAX_NAME} letters, digits, dots, dashes, \
             underscores or colons"
        ))
    }
}

impl From<Name> for String {
    fn from(name: Name) -> Self {
        name.0
    }
}

impl Borrow<str> for Name {
    fn borrow(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}
