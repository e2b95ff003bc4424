//! The `OpenAPI` 3.1 document, generated from the table of routes.

use std::sync::LazyLock;

use axum::http::Method;
use schemars::{Schema, SchemaGenerator};
use serde_json::{Map, Value, json};

use crate::reply::LINES;
use crate::route::{Gives, Route, Takes, answers, described, requests};

/// The document, as bytes.
pub(crate) fn document(routes: &[Route]) -> Vec<u8> {
    let (mut given, mut taken) = (answers(), requests());
    let mut paths = Map::new();
    let mut add = |path: &str, method: String, operation: Value| {
        let path = paths.entry(format!("/api/v1{path}")).or_insert_with(|| json!({}));
        if let Some(path) = path.as_object_mut() {
            path.insert(method, operation);
        }
    };
    for route in routes {
        let operation = operation(route, &mut given, &mut taken);
        add(route.path, method(&route.method), Value::Object(operation));
    }
    for (path, method, operation) in doors().into_iter().chain(streams(&mut given)) {
        add(path, method.to_owned(), operation);
    }
    given.subschema_for::<stepwell_wire::Problem>();
    let mut schemas = taken.take_definitions(true);
    schemas.extend(given.take_definitions(true));
    let document = json!({
        "openapi": "3.1.0",
        "info": {"title": "Stepwell", "version": env!("CARGO_PKG_VERSION")},
        "security": [{"bearer": []}, {"cookie": [], "key": []}],
        "paths": paths,
        "components": {
            "schemas": schemas,
            "securitySchemes": security_schemes(),
        },
    });
    serde_json::to_vec_pretty(&document).unwrap_or_default()
}

/// How a caller authenticates: a program by a token, a page by a cookie and its key.
fn security_schemes() -> Value {
    json!({
        "bearer": {"type": "http", "scheme": "bearer"},
        "cookie": {
            "type": "apiKey", "in": "cookie", "name": "stepwell_PORT",
            "description": "Set by POST /login. It only counts together with its key.",
        },
        "key": {
            "type": "apiKey", "in": "header", "name": "X-Stepwell-Key",
            "description": "Returned by POST /login, for the page's own storage.",
        },
    })
}

/// The parameters and answers of a route.
fn operation(
    route: &Route,
    given: &mut SchemaGenerator,
    taken: &mut SchemaGenerator,
) -> Map<String, Value> {
    let mut operation = Map::new();
    operation.insert("summary".to_owned(), json!(route.about));
    let id = operation_id(&method(&route.method), route.path);
    operation.insert("operationId".to_owned(), json!(id));
    let mut parameters = path_parameters(route.path);
    parameters.push(store_parameter());
    match route.takes {
        Takes::Query(describe) => {
            let schema = described(describe, taken);
            parameters.extend(query_parameters(&schema, taken.definitions()));
        }
        Takes::Body(describe) => {
            let content = json!({"application/json": {"schema": described(describe, taken)}});
            operation
                .insert("requestBody".to_owned(), json!({"required": true, "content": content}));
        }
    }
    operation.insert("parameters".to_owned(), Value::Array(parameters));
    let (status, content) = match route.gives {
        Gives::Json(status, describe) => (
            status.as_str().to_owned(),
            json!({"application/json": {"schema": described(describe, given)}}),
        ),
        Gives::List(describe) => {
            let content = json!({
                "application/json": {"schema": described(describe, given)},
                (LINES): {"schema": {"type": "string", "description": "The items, a line of JSON each."}},
            });
            ("200".to_owned(), content)
        }
        Gives::File => {
            ("200".to_owned(), json!({"application/octet-stream": {}, "text/markdown": {}}))
        }
    };
    let answer = json!({"description": route.about, "content": content});
    operation.insert("responses".to_owned(), json!({status: answer, "default": problem()}));
    operation
}

fn problem() -> Value {
    json!({
        "description": "Why the request failed.",
        "content": {"application/problem+json": {"schema": {"$ref": "#/components/schemas/Problem"}}},
    })
}

fn store_parameter() -> Value {
    json!({
        "name": "store", "in": "query", "required": false, "schema": {"type": "string"},
        "description": "The store, by its key (GET /stores); the home store, if absent.",
    })
}

/// An operation outside of the table: path, method, and description.
type Other = (&'static str, &'static str, Value);

/// Login and logout, and operations without a token.
fn doors() -> Vec<Other> {
    let door = |path: &'static str, method: &'static str, about: &str, body: Value| {
        let mut operation = json!({
            "summary": about,
            "operationId": operation_id(method, path),
            "parameters": [],
            "responses": {"204": {"description": about}, "default": problem()},
        });
        if !body.is_null() {
            let content = json!({"application/json": {"schema": body}});
            operation["requestBody"] = json!({"required": true, "content": content});
        }
        (path, method, operation)
    };
    let code = json!({
        "type": "object", "required": ["code"],
        "properties": {"code": {"type": "string", "description": "The part after # of a one-time link, or a token."}},
    });
    let about = "Logs a browser in with a link or a token: returns a cookie, and the key that \
        each request with the cookie needs.";
    let mut login = door("/login", "post", about, code);
    login.2["security"] = json!([]);
    let key = json!({
        "type": "object", "required": ["key"],
        "properties": {"key": {"type": "string", "description": "The value for X-Stepwell-Key."}},
    });
    let content = json!({"application/json": {"schema": key}});
    login.2["responses"] =
        json!({"200": {"description": about, "content": content}, "default": problem()});
    let mut health = door("/healthz", "get", "Is the server up?", Value::Null);
    health.2["security"] = json!([]);
    let own = "This document.";
    let mut document = door("/openapi.json", "get", own, Value::Null);
    let content = json!({"application/json": {"schema": {"type": "object"}}});
    document.2["responses"] =
        json!({"200": {"description": own, "content": content}, "default": problem()});
    let about = "Ends the login with a cookie and its key.";
    let logout = door("/logout", "post", about, json!({"type": "object"}));
    vec![login, logout, health, document]
}

/// The streams. `OpenAPI` 3.1 cannot describe their events: there each stream is an endless text,
/// and `x-events` describes the data of each event.
fn streams(given: &mut SchemaGenerator) -> Vec<Other> {
    let recorded = given.subschema_for::<stepwell::Recorded>();
    let session = given.subschema_for::<stepwell_wire::Session>();
    let piece = given.subschema_for::<stepwell_wire::LivePiece>();
    let event = |about: &str, schema: Value| json!({"description": about, "schema": schema});
    let nothing = json!({"type": "object"});
    let changed = |fields: &[&str]| {
        let text = |name: &&str| ((*name).to_owned(), json!({"type": "string"}));
        let properties: Map<String, Value> = fields.iter().map(text).collect();
        json!({"type": "object", "properties": properties, "required": fields})
    };
    let one = json!({
        "recorded": event("An event of the log; its id is the seq.", recorded.to_value()),
        "info": event("The session's state; the first one has the last seq as its id.", session.to_value()),
        "delta": event("A piece of the model's answer, without an id and not redacted: only for \
            the user who runs the server, on their own machine.", piece.to_value()),
        "gone": event("The session was erased; no more events of it follow.", nothing.clone()),
    });
    let mut all = json!({
        "changed": event("A session changed.", changed(&["id", "store"])),
        "reset": event("Anything may have changed in a store.", changed(&["store"])),
        "lost": event("A followed session cannot be followed now: reconnect later.", nothing.clone()),
    });
    // Several sessions share the stream, so each event names its session.
    for (name, of_one) in one.as_object().into_iter().flatten() {
        all[name] = of_one.clone();
    }
    for name in ["recorded", "info", "delta", "gone", "lost"] {
        let mut named = changed(&["store", "session"]);
        named["properties"]["data"] = all[name]["schema"].take();
        named["required"] = json!(["store", "session", "data"]);
        all[name]["schema"] = named;
    }
    let seq = |name: &str, place: &str, about: &str| {
        json!({
            "name": name, "in": place, "required": false, "description": about,
            "schema": {"type": "integer", "minimum": 0},
        })
    };
    let last = seq(
        "Last-Event-ID",
        "header",
        "The last seq that the client has; the stream continues after it.",
    );
    let from = seq(
        "from",
        "query",
        "The first event, without a Last-Event-ID; the next new one, if absent.",
    );
    let about = "A session's log as it grows, as server-sent events.";
    let mut every = store_parameter();
    every["description"] = json!("The store; `*` for all; the home store, if absent.");
    let follow = json!({
        "name": "follow", "in": "query", "required": false,
        "description": "A session whose log is included, from an event on: STORE/ID/FROM. May be \
            repeated.",
        "schema": {"type": "array", "items": {"type": "string"}},
    });
    let changes = "Changes of sessions, and the logs of followed ones, as server-sent events.";
    vec![
        stream("/sessions/{id}/stream", about, vec![store_parameter(), last, from], &one),
        stream("/changes", changes, vec![every, follow], &all),
    ]
}

fn stream(path: &'static str, about: &str, own: Vec<Value>, events: &Value) -> Other {
    let mut parameters = path_parameters(path);
    parameters.extend(own);
    let text = json!({"type": "string", "description": "Server-sent events; the stream does not end by itself."});
    let content = json!({"text/event-stream": {"schema": text, "x-events": events}});
    let operation = json!({
        "summary": about,
        "operationId": operation_id("get", path),
        "parameters": parameters,
        "responses": {"200": {"description": about, "content": content}, "default": problem()},
    });
    (path, "get", operation)
}

/// The document of this server.
pub(crate) fn own() -> &'static [u8] {
    static DOCUMENT: LazyLock<Vec<u8>> = LazyLock::new(|| document(crate::api::routes()));
    &DOCUMENT
}

fn method(method: &Method) -> String {
    method.as_str().to_lowercase()
}

/// The name of an operation: `get_sessions_id_events`.
fn operation_id(method: &str, path: &str) -> String {
    let path: String =
        path.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '_' }).collect();
    let parts: Vec<&str> = path.split('_').filter(|part| !part.is_empty()).collect();
    format!("{method}_{}", parts.join("_"))
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
