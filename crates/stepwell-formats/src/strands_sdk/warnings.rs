//! Files that cannot be read, or hold no JSON: what is wrong with them is told, and the rest is read.

use std::path::Path;

use super::agent::no_json;
use crate::Error;
use crate::json::fields::Fields;
use crate::json::json_text::compact;
use crate::read::input::Input;
use crate::read::neutral::{Sink, Warning};

/// The JSON object in a file, if there is one; what is wrong with it is told.
pub(super) fn object(input: &Input, path: &Path, sink: &mut dyn Sink) -> Option<String> {
    let read = input.text(path).and_then(|text| match Fields::parse(&text) {
        Ok(_) => Ok(compact(&text)),
        Err(error) => Err(no_json(path, &error)),
    });
    read.map_err(|error| warn(sink, path, &error)).ok()
}

pub(super) fn warn(sink: &mut dyn Sink, path: &Path, error: &Error) {
    let what = match error {
        Error::Unreadable { error, .. } => error.to_string(),
        Error::Foreign { why, .. } => why.clone(),
        other => other.to_string(),
    };
    sink.warn(Warning { place: path.display().to_string(), what });
}
