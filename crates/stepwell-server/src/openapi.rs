//! The `OpenAPI` 3.1 document, made from the table of routes.

use std::sync::LazyLock;

use axum::http::Method;
use schemars::{Schema, SchemaGenerator};
use serde_json::{Map, Value, json};

use crate::reply::LINES;
use crate::route::{Gives, Route, Takes, answers, requests};

/// The document, as bytes.
pub(crate) fn document(routes: &[Route]) -> Vec<u8> {
    let (mut given, mut taken) = (answers(), requests());
    let mut paths = Map::new();
    for route in routes {
        let mut operation = Map::new();
        operation.insert("summary".to_owned(), json!(route.about));
        operation.insert("operationId".to_owned(), json!(operation_id(route)));
        let mut parameters = path_parameters(route.path);
        parameters.push(json!({
            "name": "store", "in": "query", "required": false, "schema": {"type": "string"},
            "description": "The store that is meant, by its key (GET /stores); the home store, if absent.",
        }));
        match route.takes {
            Takes::Query(describe) => {
                let schema = describe(&mut taken);
                parameters.extend(query_parameters(&schema, taken.definitions()));
            }
            Takes::Body(describe) => {
                let schema = describe(&mut taken);
                let content = json!({"application/json": {"schema": schema}});
                operation.insert(
                    "requestBody".to_owned(),
                    json!({"required": true, "content": content}),
                );
            }
        }
        operation.insert("parameters".to_owned(), Value::Array(parameters));
        let problem = json!({
            "description": "Why it was not done.",
            "content": {"application/problem+json": {"schema": {"$ref": "#/components/schemas/Problem"}}},
        });
        let (status, answer) = match route.gives {
            Gives::Json(status, describe) => {
                let schema = describe(&mut given);
                let content = json!({"application/json": {"schema": schema}});
                (
                    status.as_str().to_owned(),
                    json!({"description": route.about, "content": content}),
                )
            }
            Gives::List(describe) => {
                let schema = describe(&mut given);
                let content = json!({
                    "application/json": {"schema": schema},
                    (LINES): {"schema": {"type": "string", "description": "The items, a line of JSON each."}},
                });
                ("200".to_owned(), json!({"description": route.about, "content": content}))
            }
            Gives::File => {
                let content = json!({"application/octet-stream": {}, "text/markdown": {}});
                ("200".to_owned(), json!({"description": route.about, "content": content}))
            }
        };
        operation.insert("responses".to_owned(), json!({status: answer, "default": problem}));
        let path = paths.entry(format!("/api/v1{}", route.path)).or_insert_with(|| json!({}));
        if let Some(path) = path.as_object_mut() {
            path.insert(method(&route.method), Value::Object(operation));
        }
    }
    given.subschema_for::<stepwell_wire::Problem>();
    let streams = streams(&mut given);
    let mut schemas = taken.take_definitions(true);
    schemas.extend(given.take_definitions(true));
    let document = json!({
        "openapi": "3.1.0",
        "info": {"title": "Stepwell", "version": env!("CARGO_PKG_VERSION")},
        "security": [{"bearer": []}],
        "paths": paths,
        "x-streams": streams,
        "components": {
            "schemas": schemas,
            "securitySchemes": {"bearer": {"type": "http", "scheme": "bearer"}},
        },
    });
    serde_json::to_vec_pretty(&document).unwrap_or_default()
}

/// What streams send. They never end, so they are no answers of paths.
fn streams(given: &mut SchemaGenerator) -> Value {
    let recorded = given.subschema_for::<stepwell::Recorded>();
    let session = given.subschema_for::<stepwell_wire::Session>();
    let piece = given.subschema_for::<stepwell_wire::LivePiece>();
    let event = |about: &str, schema: Value| json!({"description": about, "schema": schema});
    let nothing = json!({"type": "object"});
    json!({
        "/api/v1/sessions/{id}/stream": {
            "summary": "A session's log as it grows, as server-sent events; `Last-Event-ID` goes on.",
            "events": {
                "recorded": event("An event of the log; its id is the seq.", recorded.to_value()),
                "info": event("How the session stands; the first has the last seq as its id.", session.to_value()),
                "delta": event("What the model says while it speaks, without an id and not redacted: only for the user who runs the server, on their own machine.", piece.to_value()),
                "gone": event("The session was erased; nothing follows.", nothing.clone()),
            },
        },
        "/api/v1/changes": {
            "summary": "Which sessions change, as server-sent events; `store=*` means all stores.",
            "events": {
                "changed": event("A session changed: its `id`, and the key of its `store`.", nothing.clone()),
                "reset": event("Anything may have changed in a `store`.", nothing),
            },
        },
    })
}

/// The document of this server.
pub(crate) fn own() -> &'static [u8] {
    static DOCUMENT: LazyLock<Vec<u8>> = LazyLock::new(|| document(crate::api::routes()));
    &DOCUMENT
}

fn method(method: &Method) -> String {
    method.as_str().to_lowercase()
}

/// A name for an operation: `get_sessions_id_events`.
fn operation_id(route: &Route) -> String {
    let path: String =
        route.path.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '_' }).collect();
    let parts: Vec<&str> = path.split('_').filter(|part| !part.is_empty()).collect();
    format!("{}_{}", method(&route.method), parts.join("_"))
}

fn path_parameters(path: &str) -> Vec<Value> {
    let names = path.split('/').filter_map(|part| part.strip_prefix('{')?.strip_suffix('}'));
    let parameter = |name: &str| json!({"name": name, "in": "path", "required": true, "schema": {"type": "string"}});
    names.map(parameter).collect()
}

/// The fields of a type as parameters.
fn query_parameters(schema: &Schema, known: &Map<String, Value>) -> Vec<Value> {
    let value = schema.as_value();
    let named = value.get("$ref").and_then(Value::as_str).and_then(|it| it.rsplit('/').next());
    let value = named.and_then(|name| known.get(name)).unwrap_or(value);
    let required: Vec<&str> = value["required"]
        .as_array()
        .map(|all| all.iter().filter_map(Value::as_str).collect())
        .unwrap_or_default();
    let fields = value["properties"].as_object().into_iter().flatten();
    let parameter = |(name, schema): (&String, &Value)| {
        json!({
            "name": name, "in": "query", "required": required.contains(&name.as_str()),
            "description": schema["description"], "schema": schema,
        })
    };
    fields.map(parameter).collect()
}
