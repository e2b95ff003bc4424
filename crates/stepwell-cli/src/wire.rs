//! Words for values that people and programs share.

use serde::Serialize;

/// The word for a value that JSON knows by one.
pub(crate) fn word(value: impl Serialize) -> String {
    let json = serde_json::to_value(value).ok();
    json.as_ref().and_then(|json| json.as_str()).unwrap_or_default().to_owned()
}
