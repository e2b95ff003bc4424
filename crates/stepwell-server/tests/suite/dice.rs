//! Random requests generated from the `OpenAPI` document: the same ones in every run.

use reqwest::Method;
use serde_json::{Map, Value, json};

/// The random numbers.
pub(crate) struct Dice(pub(crate) u64);

/// A request.
#[derive(Debug)]
pub(crate) struct Guess {
    pub(crate) method: Method,
    pub(crate) target: String,
    pub(crate) body: Value,
}

impl Dice {
    fn roll(&mut self, sides: usize) -> usize {
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        usize::try_from(self.0 >> 33).unwrap() % sides
    }

    fn one_of<'a, T>(&mut self, all: &'a [T]) -> &'a T {
        &all[self.roll(all.len())]
    }

    fn word(&mut self, id: &str) -> String {
        let words = [
            "",
            "0",
            "-1",
            "18446744073709551615",
            "99999999999999999999",
            "null",
            "true",
            "%00",
            "%FF",
            "../x",
            "a,b",
            "running",
            "2026-01-01T00:00:00Z",
            "newest",
            "main",
            "<script>",
            "%F0%9F%98%80",
            "[]",
            "{}",
        ];
        match self.roll(words.len() + 1) {
            0 => id.to_owned(),
            n => words[n - 1].to_owned(),
        }
    }

    /// A request for one of the document's operations, with its parameters and fields, and now and
    /// then with unknown ones.
    pub(crate) fn request(&mut self, document: &Value, session: &str) -> Guess {
        let paths: Vec<(&String, &Value)> = document["paths"].as_object().unwrap().iter().collect();
        let (path, methods) = *self.one_of(&paths);
        let methods: Vec<(&String, &Value)> = methods.as_object().unwrap().iter().collect();
        let (method, operation) = *self.one_of(&methods);
        let id = if self.roll(4) > 0 { session.to_owned() } else { self.word("nobody") };
        let path = path.strip_prefix("/api/v1").unwrap().replace("{id}", &id);
        let path = path.replace("{gate}", &self.word("ask-1"));
        let query = self.query(document, operation, session);
        let schema = &operation["requestBody"]["content"]["application/json"]["schema"];
        let mut body = match schema.is_null() {
            true => json!({}),
            false => self.value(document, schema, 4),
        };
        if let Some(fields) = body.as_object_mut().filter(|_| self.roll(8) == 0) {
            fields.insert(self.word("text"), self.anything(2));
        }
        Guess {
            method: method.to_uppercase().parse().unwrap(),
            target: format!("{path}?{query}"),
            body,
        }
    }

    fn query(&mut self, document: &Value, operation: &Value, session: &str) -> String {
        let parameters = operation["parameters"].as_array().unwrap();
        let mut pairs = Vec::new();
        for parameter in parameters.iter().filter(|it| it["in"] == "query") {
            let is_wanted = parameter["required"] == true && self.roll(8) > 0;
            if !is_wanted && self.roll(4) > 0 {
                continue;
            }
            let value = match self.value(document, &parameter["schema"], 2) {
                Value::Bool(is) => is.to_string(),
                Value::Number(number) => number.to_string(),
                _ => self.word(session),
            };
            pairs.push(format!("{}={value}", parameter["name"].as_str().unwrap()));
        }
        if self.roll(8) == 0 {
            pairs.push(format!("unknown={}", self.word(session)));
        }
        pairs.join("&")
    }

    /// A value, mostly valid for a schema.
    fn value(&mut self, document: &Value, schema: &Value, depth: usize) -> Value {
        let schema = resolved(document, schema);
        if depth == 0 || self.roll(6) == 0 {
            return self.anything(2);
        }
        let several = ["enum", "anyOf", "oneOf"].map(|it| schema[it].as_array());
        match several {
            [Some(words), ..] => return self.one_of(words).clone(),
            [_, Some(forms), _] | [_, _, Some(forms)] => {
                let form = self.one_of(forms);
                return self.value(document, form, depth - 1);
            }
            _ => {}
        }
        let kind = match &schema["type"] {
            Value::Array(kinds) => self.one_of(kinds),
            kind => kind,
        };
        match kind.as_str() {
            Some("string") => json!(self.word("x")),
            Some("integer" | "number") => json!(self.roll(12)),
            Some("boolean") => json!(self.roll(2) == 0),
            Some("array") => json!([self.value(document, &schema["items"], depth - 1)]),
            Some("object") => self.object(document, schema, depth),
            _ => schema.get("const").cloned().unwrap_or_default(),
        }
    }

    fn object(&mut self, document: &Value, schema: &Value, depth: usize) -> Value {
        let required = schema["required"].as_array().cloned().unwrap_or_default();
        let mut object = Map::new();
        for (name, schema) in schema["properties"].as_object().into_iter().flatten() {
            let is_wanted = required.contains(&json!(name)) && self.roll(8) > 0;
            if is_wanted || self.roll(2) == 0 {
                object.insert(name.clone(), self.value(document, schema, depth - 1));
            }
        }
        Value::Object(object)
    }

    /// A random value.
    fn anything(&mut self, depth: usize) -> Value {
        match self.roll(if depth == 0 { 5 } else { 7 }) {
            0 => Value::Null,
            1 => json!(self.roll(2) == 0),
            2 => json!(self.roll(1000)),
            3 => json!(self.word("x")),
            4 => json!(-1.5),
            5 => json!([self.anything(depth - 1)]),
            _ => json!({"text": self.anything(depth - 1), "to": self.anything(depth - 1)}),
        }
    }
}

/// A schema, with its reference resolved.
fn resolved<'a>(document: &'a Value, schema: &'a Value) -> &'a Value {
    let name = schema["$ref"].as_str().and_then(|it| it.rsplit('/').next());
    name.map_or(schema, |name| &document["components"]["schemas"][name])
}
