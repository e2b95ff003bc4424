//! A route: its path, its parameters and answers, and the required role. The router and the
//! `OpenAPI` document are generated from a table of routes.

use std::collections::{BTreeSet, HashMap};

use axum::http::{Method, StatusCode};
use schemars::generate::SchemaSettings;
use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::Serialize;
use serde::de::DeserializeOwned;
use stepwell::model::EventId;
use stepwell_wire::List;

use crate::problem::{Problem, Result};
use crate::reply::{Download, Reply};
use crate::security::Caller;
use crate::site::{Act, Look, Site};

/// A request for a handler.
#[derive(Debug)]
pub(crate) struct Call {
    pub(crate) caller: Caller,
    /// The parameters in the path, by name.
    pub(crate) parameters: HashMap<String, String>,
    /// The query string.
    pub(crate) query: String,
    pub(crate) body: Vec<u8>,
    /// The id of the event that the request becomes, if it has a key.
    pub(crate) event: Option<EventId>,
    pub(crate) wants: Wants,
}

/// The form in which a client wants a list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Wants {
    /// One document.
    Json,
    /// One item a line.
    Lines,
}

type Handler = Box<dyn Fn(&Site, &Call) -> Result<Reply> + Send + Sync>;
pub(crate) type Describe = fn(&mut SchemaGenerator) -> Schema;

/// The input of a route.
#[derive(Clone, Copy)]
pub(crate) enum Takes {
    /// Query parameters.
    Query(Describe),
    /// A JSON document.
    Body(Describe),
}

/// The output of a route.
#[derive(Clone, Copy)]
pub(crate) enum Gives {
    /// A JSON document.
    Json(StatusCode, Describe),
    /// A page of a list, as a document or in lines.
    List(Describe),
    /// A file.
    File,
}

/// A route.
pub(crate) struct Route {
    pub(crate) method: Method,
    pub(crate) path: &'static str,
    pub(crate) about: &'static str,
    pub(crate) takes: Takes,
    pub(crate) gives: Gives,
    handler: Handler,
}

/// The parameters of a route without its own.
#[derive(Debug, serde::Deserialize, schemars::JsonSchema)]
pub(crate) struct Nothing {}

/// The parameters of every route.
#[derive(Debug, Default, serde::Deserialize)]
struct Common {
    store: Option<String>,
}

impl Route {
    /// A route that changes nothing.
    pub(crate) fn get<Q, A>(
        path: &'static str,
        about: &'static str,
        handler: fn(&Look<'_>, Q) -> Result<A>,
    ) -> Self
    where
        Q: DeserializeOwned + JsonSchema + 'static,
        A: Serialize + JsonSchema + 'static,
    {
        let run = move |site: &Site, call: &Call| {
            let (look, query) = (look(site, call)?, read_query(&call.query)?);
            json(&look, &handler(&look, query)?)
        };
        Self {
            method: Method::GET,
            path,
            about,
            takes: Takes::Query(SchemaGenerator::subschema_for::<Q>),
            gives: Gives::Json(StatusCode::OK, SchemaGenerator::subschema_for::<A>),
            handler: Box::new(run),
        }
    }

    /// A route with a page of a list, as a document or in lines.
    pub(crate) fn list<Q, T>(
        path: &'static str,
        about: &'static str,
        handler: fn(&Look<'_>, Q) -> Result<List<T>>,
    ) -> Self
    where
        Q: DeserializeOwned + JsonSchema + 'static,
        T: Serialize + JsonSchema + 'static,
    {
        let run = move |site: &Site, call: &Call| {
            let (look, query) = (look(site, call)?, read_query(&call.query)?);
            let list = handler(&look, query)?;
            if call.wants == Wants::Json {
                return json(&look, &list);
            }
            let mut body = Vec::new();
            for item in &list.items {
                body.extend(redacted(&look, item)?.into_bytes());
                body.push(b'\n');
            }
            Ok(Reply::Lines { body, next: list.next })
        };
        Self {
            method: Method::GET,
            path,
            about,
            takes: Takes::Query(SchemaGenerator::subschema_for::<Q>),
            gives: Gives::List(SchemaGenerator::subschema_for::<List<T>>),
            handler: Box::new(run),
        }
    }

    /// A route with a file.
    pub(crate) fn file<Q>(
        path: &'static str,
        about: &'static str,
        handler: fn(&Look<'_>, Q) -> Result<Download>,
    ) -> Self
    where
        Q: DeserializeOwned + JsonSchema + 'static,
    {
        let run = move |site: &Site, call: &Call| {
            let (look, query) = (look(site, call)?, read_query(&call.query)?);
            let Download { name, media, bytes } = handler(&look, query)?;
            Ok(Reply::File { name, media, bytes })
        };
        Self {
            method: Method::GET,
            path,
            about,
            takes: Takes::Query(SchemaGenerator::subschema_for::<Q>),
            gives: Gives::File,
            handler: Box::new(run),
        }
    }

    /// A route that changes something.
    pub(crate) fn change<B, A>(
        method: Method,
        path: &'static str,
        about: &'static str,
        handler: fn(&Act<'_>, B) -> Result<A>,
    ) -> Self
    where
        B: DeserializeOwned + JsonSchema + 'static,
        A: Serialize + JsonSchema + 'static,
    {
        let known = fields::<B>();
        let run = move |site: &Site, call: &Call| {
            let act = look(site, call)?.act(call.event)?;
            let done = handler(&act, read_body(&call.body, &known)?)?;
            act.look.site.tidying.after_change(&act.look.store);
            json(&act.look, &done)
        };
        Self {
            method,
            path,
            about,
            takes: Takes::Body(SchemaGenerator::subschema_for::<B>),
            gives: Gives::Json(StatusCode::OK, SchemaGenerator::subschema_for::<A>),
            handler: Box::new(run),
        }
    }

    /// A route that starts something that continues after the answer.
    pub(crate) fn start<B, A>(
        path: &'static str,
        about: &'static str,
        handler: fn(&Act<'_>, B) -> Result<A>,
    ) -> Self
    where
        B: DeserializeOwned + JsonSchema + 'static,
        A: Serialize + JsonSchema + 'static,
    {
        let route = Self::change(Method::POST, path, about, handler);
        let gives = Gives::Json(StatusCode::ACCEPTED, SchemaGenerator::subschema_for::<A>);
        let done = route.handler;
        let accepted = move |site: &Site, call: &Call| match done(site, call)? {
            Reply::Json(_, body) => Ok(Reply::Json(StatusCode::ACCEPTED, body)),
            other => Ok(other),
        };
        Self { gives, handler: Box::new(accepted), ..route }
    }

    /// Carries a request out.
    pub(crate) fn run(&self, site: &Site, call: &Call) -> Result<Reply> {
        (self.handler)(site, call)
    }
}

/// Read access to the store of a request.
fn look<'a>(site: &'a Site, call: &'a Call) -> Result<Look<'a>> {
    let common: Common = read_query(&call.query)?;
    Look::new(site, &call.caller, common.store.as_deref(), &call.parameters)
}

/// A redacted answer: imported events and other programs' records are stored unredacted.
fn json(look: &Look<'_>, answer: &impl Serialize) -> Result<Reply> {
    Ok(Reply::Json(StatusCode::OK, redacted(look, answer)?.into_bytes()))
}

fn redacted(look: &Look<'_>, answer: &impl Serialize) -> Result<String> {
    let body = serde_json::to_string(answer).map_err(|error| Problem::failed(error.to_string()))?;
    Ok(look.well().redactor().redact_json(&body).unwrap_or(body))
}

/// Parses query parameters. Unknown ones are ignored, since every route has common ones.
fn read_query<Q: DeserializeOwned>(query: &str) -> Result<Q> {
    let uri = format!("/?{query}").parse::<axum::http::Uri>();
    let uri = uri.map_err(|error| Problem::invalid(error.to_string()).at("query"))?;
    let read = axum::extract::Query::<Q>::try_from_uri(&uri);
    match read {
        Ok(axum::extract::Query(query)) => Ok(query),
        Err(error) => Err(Problem::invalid(error.body_text()).at("query")),
    }
}

/// Parses a body. Unknown fields are rejected: one could be a misspelled limit.
fn read_body<B: DeserializeOwned>(body: &[u8], known: &BTreeSet<String>) -> Result<B> {
    let body = if body.is_empty() { b"{}" } else { body };
    let wrong =
        |error: serde_json::Error| Problem::invalid(format!("the body: {error}")).at("body");
    let value: serde_json::Value = serde_json::from_slice(body).map_err(wrong)?;
    let mut names = value.as_object().into_iter().flat_map(serde_json::Map::keys);
    if let Some(name) = names.find(|name| !known.contains(*name)) {
        let known: Vec<&str> = known.iter().map(String::as_str).collect();
        let title = match known.as_slice() {
            [] => "the body: it takes no fields".to_owned(),
            known => format!("the body: unknown field, expected one of: {}", known.join(", ")),
        };
        return Err(Problem::invalid(title).at(name.clone()));
    }
    serde_json::from_value(value).map_err(wrong)
}

/// The names of a body's fields.
fn fields<B: JsonSchema>() -> BTreeSet<String> {
    let schema = requests().into_root_schema_for::<B>();
    let fields = schema.get("properties").and_then(serde_json::Value::as_object);
    fields.into_iter().flat_map(|fields| fields.keys().cloned()).collect()
}

/// The generator for schemas of answers.
pub(crate) fn answers() -> SchemaGenerator {
    settings().for_serialize().into_generator()
}

/// The generator for schemas of requests. They are inlined, because an answer may have a type of
/// the same name.
pub(crate) fn requests() -> SchemaGenerator {
    settings().for_deserialize().with(|it| it.inline_subschemas = true).into_generator()
}

/// The schema of a type.
pub(crate) fn described(describe: Describe, generator: &mut SchemaGenerator) -> Schema {
    let mut schema = describe(generator);
    for transform in generator.transforms_mut() {
        transform.transform(&mut schema);
    }
    schema
}

fn settings() -> SchemaSettings {
    stepwell::schema::settings().with(|it| it.definitions_path = "/components/schemas".into())
}
