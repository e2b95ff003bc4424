//! JSON Schemas: the settings for all of them, and the schemas of types with hand-written JSON. The
//! other types derive theirs.

use std::borrow::Cow;

use schemars::generate::SchemaSettings;
use schemars::transform::RecursiveTransform;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};

use crate::model::event::body_schemas;
use crate::model::talk::AnswerForm;
use crate::model::{
    Answer, Change, Digest, Event, EventId, Kind, Lane, Money, NodeId, NodeKey, Recorded,
    SessionId, SpecHash, Time, Who,
};

/// The settings of every schema. They drop the width of Rust's numbers (`uint64`): JSON Schema has
/// no such format, and clients warn about it.
#[must_use]
pub fn settings() -> SchemaSettings {
    SchemaSettings::draft2020_12().with_transform(RecursiveTransform(without_number_format))
}

fn without_number_format(schema: &mut Schema) {
    let widths = ["uint", "int", "double", "float"];
    let is_width = |format: &str| widths.iter().any(|width| format.starts_with(width));
    if schema.get("format").and_then(serde_json::Value::as_str).is_some_and(is_width) {
        schema.remove("format");
    }
}

/// Implements `JsonSchema` for types that are text in JSON.
macro_rules! texts {
    ($($type:ident: $schema:tt,)*) => {
        $(impl JsonSchema for $type {
            fn schema_name() -> Cow<'static, str> {
                stringify!($type).into()
            }

            fn json_schema(_: &mut SchemaGenerator) -> Schema {
                json_schema!($schema)
            }
        })*
    };
}

texts! {
    SessionId: {
        "type": "string",
        "pattern": "^[A-Za-z0-9_-][A-Za-z0-9._-]{0,127}$",
        "description": "The id of a session.",
    },
    EventId: {
        "type": "string",
        "format": "uuid",
        "description": "An event's id, given by the client.",
    },
    Lane: {
        "type": "string",
        "description": "One agent's conversation inside a session; `main` outside of flows.",
    },
    NodeId: { "type": "string", "description": "The id of a flow's part." },
    NodeKey: { "type": "string", "description": "The key of a flow's node, such as `step/0`." },
    Time: {
        "type": "string",
        "format": "date-time",
        "description": "A moment in UTC, to the microsecond.",
    },
    Digest: {
        "type": "string",
        "pattern": "^[0-9a-f]{64}$",
        "description": "A BLAKE3 digest as 64 hex characters.",
    },
    SpecHash: {
        "type": "string",
        "pattern": "^[0-9a-f]{64}$",
        "description": "SHA-256 of a spec's bytes as 64 hex characters.",
    },
    Money: {
        "type": "string",
        "pattern": "^-?[0-9]+(\\.[0-9]+)?$",
        "description": "An exact amount of US dollars, as decimal text.",
    },
    Who: { "type": "string", "description": "Who did something, such as `ann@laptop`." },
}

impl JsonSchema for Answer {
    fn schema_name() -> Cow<'static, str> {
        "Answer".into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        AnswerForm::json_schema(generator)
    }
}

impl<T: JsonSchema> JsonSchema for Change<T> {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        format!("ChangeOf{}", T::schema_name()).into()
    }

    /// An absent field keeps, `null` clears, a value sets.
    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        Option::<T>::json_schema(generator)
    }
}

impl JsonSchema for Recorded {
    fn schema_name() -> Cow<'static, str> {
        "Event".into()
    }

    /// Describes the body of each known kind. Newer kinds and versions may have any body.
    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let bodies = body_schemas(generator).into_iter().map(|(kind, body)| {
            serde_json::json!({
                "if": {
                    "properties": {
                        "kind": { "const": kind.as_str() },
                        "version": { "maximum": Event::newest_version(kind.as_str()) },
                    },
                },
                "then": { "properties": { "body": body } },
            })
        });
        let bodies: Vec<serde_json::Value> = bodies.collect();
        let kinds: Vec<&str> = Kind::ALL.iter().map(|kind| kind.as_str()).collect();
        json_schema!({
            "type": "object",
            "description": "An event of a session's log.",
            "required": ["seq", "at", "kind", "version", "body"],
            "properties": {
                "seq": {
                    "type": "integer",
                    "minimum": 1,
                    "description": "The event's number in the log.",
                },
                "at": {
                    "type": "string",
                    "format": "date-time",
                    "description": "When it happened.",
                },
                "id": {
                    "type": "string",
                    "format": "uuid",
                    "description": "The event's id, given by the client.",
                },
                "kind": {
                    "type": "string",
                    "examples": kinds,
                    "description": "The kind of event. Newer versions may have more.",
                },
                "version": {
                    "type": "integer",
                    "description": "The version of the body's form.",
                },
                "body": { "description": "The event's content." },
            },
            "allOf": bodies,
        })
    }
}
