//! Redacts a call's arguments: only strings in the JSON text change; everything else stays byte for
//! byte.

use std::borrow::Cow;

use serde::de::IgnoredAny;

use super::plain::Plain;
use super::{Redactor, lines, scan};

/// The redacted arguments; `None` if they contain no secret.
pub(super) fn redact(redactor: &Redactor, arguments: &str) -> Option<String> {
    match is_clean(redactor, arguments) {
        true => None,
        false => by_parts(redactor, arguments),
    }
}

/// Can no rule match, neither in the whole text nor in any of its strings?
///
/// A long document has thousands of strings, and starting a search costs more than searching one
/// string. So there are only two searches. The first covers the document as written: no rule looks
/// at the text after a match, and a string begins a word, so a match in an unescaped string is also
/// a match in the document. The second covers everything else that [`by_parts`] would examine, each
/// part on its own line.
fn is_clean(redactor: &Redactor, json: &str) -> bool {
    if !is_plain(json) {
        return false;
    }
    // Without keywords there is no match, unless an escape hides one.
    if !scan::may_match(json, redactor.given()) && !json.contains('\\') {
        return true;
    }
    let is_unmatched = |text: &str| !redactor.scan(text).matched;
    is_unmatched(json) && others(json).is_some_and(|others| is_unmatched(&others))
}

/// Does a text contain neither key lines nor colours?
fn is_plain(text: &str) -> bool {
    !lines::are_in(text) && Plain::of(text).is_none()
}

/// The parts to examine besides the document as written, each on its own line; `None` if they
/// contain key lines or colours.
fn others(json: &str) -> Option<String> {
    let mut others = String::new();
    let (mut rest, mut key): (_, Option<Cow<'_, str>>) = (json, None);
    while let Some(start) = rest.find('"') {
        let (before, from) = rest.split_at(start);
        let (literal, after) = from.split_at(literal_end(from));
        let text = unescaped(literal);
        if !is_plain(&text) {
            return None;
        }
        if matches!(text, Cow::Owned(_)) {
            others.push_str(&text);
            others.push('\n');
        }
        if let Some(key) = key.take_if(|_| before.trim() == ":") {
            let begin = others.len();
            push_assigned(&mut others, &key, &text);
            if !is_plain(&others[begin..]) {
                return None;
            }
            others.push('\n');
        }
        key = after.trim_start().starts_with(':').then_some(text);
        rest = after;
    }
    Some(others)
}

/// The value of a string literal.
fn unescaped(literal: &str) -> Cow<'_, str> {
    let inside = literal.strip_prefix('"').and_then(|it| it.strip_suffix('"'));
    match inside {
        Some(inside) if !inside.contains('\\') => Cow::Borrowed(inside),
        _ => Cow::Owned(serde_json::from_str(literal).unwrap_or_default()),
    }
}

fn by_parts(redactor: &Redactor, arguments: &str) -> Option<String> {
    let is_json = |text: &str| serde_json::from_str::<IgnoredAny>(text).is_ok();
    if !is_json(arguments) {
        return changed(redactor.redact(arguments));
    }
    let strings = strings(redactor, arguments);
    let inside = strings.as_deref().unwrap_or(arguments);
    // Some secrets are only recognised by their place in the whole.
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

/// A redacted string. Its JSON key may make the whole value a secret: there the end of the value is
/// certain, whatever characters it contains.
fn without_secrets(redactor: &Redactor, key: Option<&str>, text: &str) -> Option<String> {
    if let Some(text) = changed(redactor.redact(text)) {
        return Some(text);
    }
    let key = key?;
    let mut assigned = String::new();
    push_assigned(&mut assigned, key, text);
    let assigned = changed(redactor.redact(&assigned))?;
    let value = assigned.strip_prefix(key)?.strip_prefix("=\"")?;
    // Otherwise only a part of the text was a secret, and only because of the replaced characters.
    let is_whole = value.starts_with("[redacted:") && value.find(']') == Some(value.len() - 1);
    is_whole.then(|| value.to_owned())
}

/// Writes a string as `KEY="VALUE`, with the characters replaced that would end the value. The
/// replacement occurs in no rule's keyword.
fn push_assigned(to: &mut String, key: &str, text: &str) {
    let ends = |it: char| it.is_whitespace() || matches!(it, '"' | '\'' | '`' | '\\');
    to.push_str(key);
    to.push_str("=\"");
    if is_one_word(text) {
        return to.push_str(text);
    }
    for (n, part) in text.split(ends).enumerate() {
        if n > 0 {
            to.push('\u{1}');
        }
        to.push_str(part);
    }
}

/// Does a quick scan of the bytes find no character that would end a value?
fn is_one_word(text: &str) -> bool {
    text.bytes().all(|it| it.is_ascii_graphic() && !matches!(it, b'"' | b'\'' | b'`' | b'\\'))
}

/// The end of the string literal at the beginning of a valid JSON text.
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

#[cfg(test)]
mod tests {
    use super::*;

    /// Texts with secrets, and similar texts without.
    fn texts() -> Vec<String> {
        let token = format!("ghp_{}", "a1B2c3".repeat(6));
        let line = format!("{}Zz09", "Ab1+".repeat(15));
        let mixed = "x7Gq2LpT9vWz4RkB";
        vec![
            String::new(),
            "fix the login, and say why".to_owned(),
            token.clone(),
            format!("say {token} twice"),
            format!("a{token}"),
            format!("pul-{}", "0a".repeat(20)),
            format!("xpul-{}", "0a".repeat(20)),
            mixed.to_owned(),
            format!("{mixed} {mixed}"),
            format!("DB_PASSWORD={mixed}"),
            format!("password: '{mixed}'"),
            format!("Bearer {mixed}"),
            format!("https://ann:{mixed}@example.com/"),
            format!("{line}\n{line}\n{line}"),
            format!("-----BEGIN PRIVATE KEY-----\n{line}\n-----END PRIVATE KEY-----"),
            "[redacted:github-token]".to_owned(),
            "our-own-key-1".to_owned(),
            "our-own\u{3000}key-1".to_owned(),
            "\u{3000}hunter2 \"quoted\" and \\ more\t".to_owned(),
        ]
    }

    #[test]
    fn the_short_way_finds_what_the_long_way_finds() {
        let redactor = Redactor::new(["our-own-key-1".to_owned()]);
        let keys = ["a", "id", "password", "deploy_token", "PASS", "authorization", "DB\nSECRET"];
        let (mut clean, mut taken) = (0, 0);
        let mut check = |json: &str| {
            let by_parts = by_parts(&redactor, json);
            assert_eq!(redact(&redactor, json), by_parts, "{json}");
            match is_clean(&redactor, json) {
                true => clean += 1,
                false => taken += usize::from(by_parts.is_some()),
            }
        };
        for text in texts() {
            let literal = serde_json::Value::from(text.as_str()).to_string();
            // Every character as a numeric escape, so that the document shows none of it.
            let units: String = text.encode_utf16().map(|it| format!("\\u{it:04x}")).collect();
            for written in [literal, format!("\"{units}\"")] {
                check(&written);
                check(&format!("[1, {written}, \"b\"]"));
                check(&format!("{{{written}: true}}"));
                check(&written[..written.len() - 1]);
                for key in keys {
                    let key = serde_json::Value::from(key);
                    check(&format!("{{{key}:{written}}}"));
                    check(&format!("{{\"n\":1, {key} : {written}, \"c\":[{{}}]}}"));
                    check(&format!("{{{key}:\"plain\",\"b\":{written}}}"));
                }
            }
            check(&text);
        }
        assert!(clean > 100 && taken > 300, "{clean} went the short way, {taken} hold secrets");
    }
}
