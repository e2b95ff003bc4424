//! A call's arguments: JSON text in which only strings change, and everything else stays byte
//! for byte.

use std::borrow::Cow;

use serde::de::IgnoredAny;

use super::Redactor;

/// The arguments without secrets; absent, they hold none.
pub(super) fn redact(redactor: &Redactor, arguments: &str) -> Option<String> {
    let is_json = |text: &str| serde_json::from_str::<IgnoredAny>(text).is_ok();
    if !is_json(arguments) {
        return changed(redactor.redact(arguments));
    }
    let strings = strings(redactor, arguments);
    let inside = strings.as_deref().unwrap_or(arguments);
    // A secret may be one only by its place in the whole.
    match changed(redactor.redact(inside)) {
        Some(whole) if is_json(&whole) => Some(whole),
        _ => strings,
    }
}

fn changed(text: Cow<'_, str>) -> Option<String> {
    match text {
        Cow::Borrowed(_) => None,
        Cow::Owned(text) => Some(text),
    }
}

/// Redacts within each string of a JSON text.
fn strings(redactor: &Redactor, json: &str) -> Option<String> {
    let mut redacted = String::new();
    let (mut rest, mut any, mut key) = (json, false, None);
    while let Some(start) = rest.find('"') {
        let (before, from) = rest.split_at(start);
        let (literal, after) = from.split_at(literal_end(from));
        redacted.push_str(before);
        let text: String = serde_json::from_str(literal).unwrap_or_default();
        let named = key.take_if(|_| before.trim() == ":");
        match without_secrets(redactor, named.as_deref(), &text) {
            Some(text) => {
                redacted.push_str(&serde_json::Value::String(text).to_string());
                any = true;
            }
            None => redacted.push_str(literal),
        }
        key = after.trim_start().starts_with(':').then_some(text);
        rest = after;
    }
    redacted.push_str(rest);
    any.then_some(redacted)
}

/// A string without secrets. The key that it stands under may make all of it one: there it
/// is clear where the value ends, whatever characters it holds.
fn without_secrets(redactor: &Redactor, key: Option<&str>, text: &str) -> Option<String> {
    if let Some(text) = changed(redactor.redact(text)) {
        return Some(text);
    }
    let prefix = format!("{}=\"", key?);
    let ends = |character: char| character.is_whitespace() || "\"'`\\".contains(character);
    let assigned = changed(redactor.redact(&format!("{prefix}{}", text.replace(ends, "-"))))?;
    let value = assigned.strip_prefix(&prefix)?;
    // Otherwise it was a part of the text, and only because of what was replaced.
    let is_whole = value.starts_with("[redacted:") && value.find(']') == Some(value.len() - 1);
    is_whole.then(|| value.to_owned())
}

/// Where the string literal at the beginning of a valid JSON text ends.
fn literal_end(text: &str) -> usize {
    let mut escaped = false;
    for (at, byte) in text.bytes().enumerate().skip(1) {
        match byte {
            _ if escaped => escaped = false,
            b'\\' => escaped = true,
            b'"' => return at + 1,
            _ => {}
        }
    }
    text.len()
}
