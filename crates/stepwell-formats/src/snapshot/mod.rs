//! Sessions that their system keeps as one JSON object and rewrites as a whole.
//!
//! Such an object tells how things stand, and not how they came to be. What is told of it:
//! first the conversation, which only grows; then the rest, as attributes of which the last
//! ones count. What has no word here is kept beside, and given back as it was for as long as
//! it still says what the session says.

mod aside;
mod json;
mod live;
mod moment;
mod residue;

use std::collections::BTreeMap;
use std::path::Path;

use serde_json::Value;

use crate::json::fields::{Fields, elements, text_of};
use crate::read::input::Input;
use crate::read::neutral::{Sink, Warning};
use crate::{Error, Result};

pub(crate) use aside::{Aside, Holds};
pub(crate) use json::{Escapes, LAYOUT, Layout, Style, keys, sound_front, styled};
pub(crate) use live::{Live, Said};
pub(crate) use moment::{TimeForm, epoch, moment};
pub(crate) use residue::{completed, residue};

/// The most bytes of metadata that a session takes, with room for what is remembered of
/// its import.
const MAX_METADATA: usize = 40 << 10;

/// The deepest value that is taken into metadata. The reader of JSON stops at 128 levels, and
/// a value is read again inside of the event that holds it.
const MAX_DEPTH: usize = 64;

/// The metadata in which what a system has no word for is kept.
pub(crate) const ASIDE: &str = "stepwell";

/// The longest name of an agent, a model or a provider that is repeated in a session's head.
const MAX_NAME: usize = 256;

/// The object in a file, given as its text.
pub(crate) fn object<'a>(path: &Path, text: &'a str) -> Result<Fields<'a>> {
    let why = match text.trim() {
        "" => "it is empty".to_owned(),
        "null" => "it holds null, and no session".to_owned(),
        _ => match Fields::parse(text) {
            Ok(fields) => return Ok(fields),
            Err(error) => format!("it holds no session: {error}"),
        },
    };
    Err(Error::Foreign { path: path.to_owned(), why })
}

/// The text of a file, without the mark that some editors put before it.
pub(crate) fn text(input: &Input, path: &Path) -> Result<String> {
    let text = input.text(path)?;
    Ok(text.strip_prefix('\u{feff}').map(str::to_owned).unwrap_or(text))
}

/// Says that something was not as it should be.
pub(crate) fn warn(sink: &mut dyn Sink, path: &Path, what: impl Into<String>) {
    sink.warn(Warning { place: path.display().to_string(), what: what.into() });
}

/// A short text of an object, such as a name.
pub(crate) fn name(fields: &Fields<'_>, field: &str) -> String {
    let text = fields.text(field).unwrap_or_default();
    text[..text.floor_char_boundary(MAX_NAME)].to_owned()
}

/// A whole number, also where it is written as a float.
pub(crate) fn number(fields: &Fields<'_>, field: &str) -> Option<u64> {
    let float = || fields.get::<f64>(field).filter(|it| (0.0..9e15).contains(it));
    fields.get::<u64>(field).or_else(|| float().map(|it| it.round() as u64))
}

/// A list of texts; what is none is left out.
pub(crate) fn texts(raw: Option<&str>) -> Vec<String> {
    let all = raw.and_then(|raw| elements(raw).ok()).unwrap_or_default();
    all.into_iter().filter_map(|raw| Some(text_of(raw)?.into_owned())).collect()
}

/// The values in an object of any shape, as far as a session can take them in; or why it
/// cannot.
pub(crate) fn metadata(raw: &str) -> Result<BTreeMap<String, Value>, String> {
    let mut values: BTreeMap<String, Value> =
        serde_json::from_str(raw).map_err(|error| error.to_string())?;
    if values.values().any(|value| depth(value) > MAX_DEPTH) {
        return Err(format!("it has more than {MAX_DEPTH} levels"));
    }
    // Nothing would be taken for the wish to forget.
    values.retain(|_, value| !value.is_null());
    match serde_json::to_vec(&values).map_or(usize::MAX, |bytes| bytes.len()) {
        size if size > MAX_METADATA => {
            Err(format!("it has {size} bytes; at most {MAX_METADATA} are taken in"))
        }
        _ => Ok(values),
    }
}

fn depth(value: &Value) -> usize {
    match value {
        Value::Array(list) => 1 + list.iter().map(depth).max().unwrap_or(0),
        Value::Object(map) => 1 + map.values().map(depth).max().unwrap_or(0),
        _ => 0,
    }
}

/// Whose model that is, as far as its name tells.
pub(crate) fn provider_of(model: &str) -> &'static str {
    let known = [
        ("gpt-", "openai"),
        ("chatgpt-", "openai"),
        ("o1", "openai"),
        ("o3", "openai"),
        ("o4", "openai"),
        ("claude-", "anthropic"),
        ("gemini-", "gemini"),
    ];
    known.iter().find(|(front, _)| model.starts_with(front)).map_or("", |(_, whose)| whose)
}

/// Can a session bear this label or tag?
pub(crate) fn is_name(text: &str) -> bool {
    !text.trim().is_empty()
        && text.len() <= stepwell::model::MAX_NAME_BYTES
        && !text.starts_with('@')
        && !text.chars().any(char::is_control)
}

/// A JSON object that is being written, field by field.
#[derive(Debug)]
pub(crate) struct Object(String);

impl Object {
    pub(crate) fn new() -> Self {
        Self("{".to_owned())
    }

    /// Adds a field.
    pub(crate) fn put(&mut self, name: &str, raw: &str) {
        crate::json::fields::push_field(&mut self.0, name, raw);
    }

    /// Adds a field that is a text.
    pub(crate) fn put_text(&mut self, name: &str, text: &str) {
        self.put(name, &crate::json::fields::quoted(text));
    }

    /// Adds the fields of an object that are none of these.
    pub(crate) fn put_others(&mut self, fields: &Fields<'_>, known: &[&str]) {
        let mut done: Vec<&str> = Vec::new();
        for name in fields.names().filter(|name| !known.contains(name)) {
            if !done.contains(&name) {
                done.push(name);
                self.put(name, fields.raw(name).unwrap_or("null"));
            }
        }
    }

    /// The object's text.
    pub(crate) fn end(mut self) -> String {
        self.0.push('}');
        self.0
    }
}

/// A list of JSON values.
pub(crate) fn list(raws: impl IntoIterator<Item = String>) -> String {
    let all: Vec<String> = raws.into_iter().collect();
    format!("[{}]", all.join(","))
}

/// The metadata of a session's users, without ours: as it was kept for as long as it says the
/// same, and with what was put aside in it.
pub(crate) fn users_metadata(
    now: &BTreeMap<String, Value>,
    kept: Option<&str>,
    ours: &[&str],
    aside: Option<String>,
) -> String {
    let users = |mut values: BTreeMap<String, Value>| {
        values.retain(|key, _| !ours.contains(&key.as_str()) && key != ASIDE);
        values
    };
    let now = users(now.clone());
    let usual = serde_json::to_string(&now).unwrap_or_default();
    let own = still(kept, |raw| metadata(raw).is_ok_and(|it| users(it) == now), &usual);
    let Some(aside) = aside else { return own.to_owned() };
    let mut whole = Object::new();
    whole.put_others(&Fields::parse(own).unwrap_or_default(), &[ASIDE]);
    whole.put(ASIDE, &aside);
    whole.end()
}

/// What was kept, for as long as it says the same as what is known now.
pub(crate) fn still<'a>(
    kept: Option<&'a str>,
    says_the_same: impl FnOnce(&str) -> bool,
    now: &'a str,
) -> &'a str {
    kept.filter(|raw| says_the_same(raw)).unwrap_or(now)
}
