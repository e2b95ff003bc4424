//! The JSON Schema of specs, for editors.

use crate::spec::Spec;

/// The JSON Schema of specs, generated from the types that specs are parsed into.
#[must_use]
pub fn schema() -> serde_json::Value {
    let generator = stepwell::schema::settings().into_generator();
    generator.into_root_schema_for::<Spec>().to_value()
}

/// The text of the shipped file `docs/flow.schema.json`.
#[must_use]
pub fn schema_text() -> String {
    let mut text = serde_json::to_string_pretty(&schema()).expect("a schema is JSON");
    text.push('\n');
    text
}
