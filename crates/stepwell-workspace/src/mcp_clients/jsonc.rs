//! JSON with comments and trailing commas, as editors' settings are written: found and added to as
//! text, so that nothing else changes.

use serde_json::Value;

/// An object's entry: where its key begins and its value ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Entry {
    begin: usize,
    value: usize,
    end: usize,
}

/// Where things are in an object.
#[derive(Clone, Debug)]
struct Object {
    /// Just behind its brace.
    begin: usize,
    entries: Vec<(String, Entry)>,
}

impl Object {
    fn get(&self, name: &str) -> Option<Entry> {
        // Of two entries with the same name, the last one counts.
        self.entries.iter().rfind(|(key, _)| key == name).map(|(_, entry)| *entry)
    }
}

/// The value of an entry in a section; none, if it is not there.
pub(super) fn entry(text: &str, section: &str, name: &str) -> Result<Option<Value>, String> {
    let Some(found) = find(text, section, name)? else { return Ok(None) };
    let plain = without_comments(&text[found.value..found.end]);
    serde_json::from_str(&plain).map(Some).map_err(|error| error.to_string())
}

/// Where an entry is added, and as which text.
pub(super) fn insertion(
    text: &str,
    section: &str,
    name: &str,
    value: &Value,
) -> Result<(usize, String), String> {
    let one = format!("{}: {value}", Value::from(name));
    if text.trim().is_empty() {
        let piece = format!("{{\n  {}: {{\n    {one}\n  }}\n}}\n", Value::from(section));
        return Ok((text.len(), piece));
    }
    let top = object(text, skip(text, 0))?;
    match top.get(section) {
        Some(found) => {
            let inner = object(text, found.value)?;
            let comma = if inner.entries.is_empty() { "" } else { "," };
            Ok((inner.begin, format!("\n    {one}{comma}")))
        }
        None => {
            let comma = if top.entries.is_empty() { "" } else { "," };
            let section = Value::from(section);
            Ok((top.begin, format!("\n  {section}: {{\n    {one}\n  }}{comma}")))
        }
    }
}

/// Where an entry stands, with the comma that separates it.
pub(super) fn place(text: &str, section: &str, name: &str) -> Result<(usize, usize), String> {
    let found = find(text, section, name)?.ok_or("it is not there")?;
    let behind = skip(text, found.end);
    let front = text[..found.begin].trim_end();
    if text[behind..].starts_with(',') {
        return Ok((front.len(), behind + 1));
    }
    // The last one: the comma in front goes, if it is right there.
    let begin = front.strip_suffix(',').map_or(front.len(), str::len);
    Ok((begin, found.end))
}

fn find(text: &str, section: &str, name: &str) -> Result<Option<Entry>, String> {
    if text.trim().is_empty() {
        return Ok(None);
    }
    let top = object(text, skip(text, 0))?;
    let Some(found) = top.get(section) else { return Ok(None) };
    Ok(object(text, found.value)?.get(name))
}

/// Reads where an object's entries are.
fn object(text: &str, at: usize) -> Result<Object, String> {
    let wrong = |at: usize, what: &str| {
        let line = text[..at.min(text.len())].matches('\n').count() + 1;
        format!("line {line}: {what}")
    };
    if !text[at..].starts_with('{') {
        return Err(wrong(at, "an object is expected"));
    }
    let (begin, mut at, mut entries) = (at + 1, skip(text, at + 1), Vec::new());
    while !text[at..].starts_with('}') {
        let key_end = string_end(text, at).ok_or_else(|| wrong(at, "a key is expected"))?;
        let key: String =
            serde_json::from_str(&text[at..key_end]).map_err(|_| wrong(at, "a key is expected"))?;
        let colon = skip(text, key_end);
        if !text[colon..].starts_with(':') {
            return Err(wrong(colon, "a colon is expected"));
        }
        let value = skip(text, colon + 1);
        let end = value_end(text, value).ok_or_else(|| wrong(value, "a value is expected"))?;
        entries.push((key, Entry { begin: at, value, end }));
        at = skip(text, end);
        if text[at..].starts_with(',') {
            at = skip(text, at + 1);
        } else if !text[at..].starts_with('}') {
            return Err(wrong(at, "a comma or the object's end is expected"));
        }
    }
    Ok(Object { begin, entries })
}

/// Behind spaces and comments.
fn skip(text: &str, mut at: usize) -> usize {
    loop {
        let rest = &text[at..];
        let trimmed = rest.trim_start_matches(|it: char| it.is_whitespace() || it == '\u{feff}');
        at += rest.len() - trimmed.len();
        let length = if trimmed.starts_with("//") {
            trimmed.find('\n').unwrap_or(trimmed.len())
        } else if trimmed.starts_with("/*") {
            trimmed.find("*/").map_or(trimmed.len(), |end| end + 2)
        } else {
            return at;
        };
        at += length;
    }
}

fn string_end(text: &str, at: usize) -> Option<usize> {
    let bytes = text.as_bytes();
    if bytes.get(at) != Some(&b'"') {
        return None;
    }
    let mut at = at + 1;
    loop {
        match bytes.get(at)? {
            b'\\' => at += 2,
            b'"' => return Some(at + 1),
            _ => at += 1,
        }
    }
}

/// Behind a value. What stands in it is not looked at but for what it nests.
fn value_end(text: &str, at: usize) -> Option<usize> {
    let bytes = text.as_bytes();
    let (mut at, mut depth) = (at, 0usize);
    loop {
        match bytes.get(at)? {
            b'"' => at = string_end(text, at)?,
            b'{' | b'[' => {
                depth += 1;
                at += 1;
            }
            b'}' | b']' => {
                depth = depth.checked_sub(1)?;
                at += 1;
            }
            b',' | b':' if depth == 0 => return None,
            b',' | b':' => at += 1,
            _ => {
                let word =
                    text[at..].find(|it: char| !it.is_ascii_alphanumeric() && !"+-._".contains(it));
                match word {
                    Some(0) | None => return None,
                    Some(length) => at += length,
                }
            }
        }
        if depth == 0 {
            return Some(at);
        }
        at = skip(text, at);
    }
}

/// The same JSON without comments and trailing commas.
fn without_comments(text: &str) -> String {
    let (mut plain, mut at) = (String::new(), 0);
    loop {
        at = skip(text, at);
        let Some(byte) = text.as_bytes().get(at) else { return plain };
        let end = match byte {
            b'"' => string_end(text, at).unwrap_or(text.len()),
            _ => at + text[at..].chars().next().map_or(1, char::len_utf8),
        };
        let is_trailing = *byte == b',' && text[skip(text, at + 1)..].starts_with(['}', ']']);
        if !is_trailing {
            plain.push_str(&text[at..end]);
        }
        at = end;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    const THEIRS: &str = "// my settings\n{\n  \"theme\": \"dark\", // not \"light\", {\n  /* \"servers\": {} */\n  \
         \"servers\": {\n    // the first\n    \"one\": {\"command\": \"a \\\" } b\", \"args\": [1, -2.5e3, null,],},\n  },\n}\n";

    fn added(text: &str, section: &str) -> String {
        let (at, piece) = insertion(text, section, "stepwell", &json!({"command": "s"})).unwrap();
        format!("{}{piece}{}", &text[..at], &text[at..])
    }

    #[test]
    fn an_entry_is_added_and_taken_out_and_nothing_else_changes() {
        for (text, section) in [
            (THEIRS, "servers"),
            (THEIRS, "others"),
            ("{}", "servers"),
            ("{\"servers\":{}}", "servers"),
            ("{\"servers\":{\"one\":1}}", "servers"),
            ("{\"a\":1}", "servers"),
        ] {
            let with = added(text, section);
            let found = entry(&with, section, "stepwell").unwrap();
            assert_eq!(found, Some(json!({"command": "s"})), "{with}");
            let (begin, end) = place(&with, section, "stepwell").unwrap();
            let without = format!("{}{}", &with[..begin], &with[end..]);
            assert_eq!(entry(&without, section, "stepwell").unwrap(), None, "{without}");
            assert!(object(&without, skip(&without, 0)).is_ok(), "{without}");
            for kept in text.lines().filter(|line| line.len() > 3) {
                let words = kept.trim_matches(|it| "{} ".contains(it));
                assert!(without.contains(words), "{without}");
            }
        }
        let one = entry(THEIRS, "servers", "one").unwrap().unwrap();
        assert_eq!(one, json!({"command": "a \" } b", "args": [1, -2500.0, null]}));
    }

    #[test]
    fn what_is_no_object_is_refused_where_it_is_wrong() {
        for wrong in [
            "[]",
            "{",
            "{\"a\" 1}",
            "{\"a\":}",
            "{\"a\":1 \"b\":2}",
            "{a:1}",
            "x",
            "{\"servers\": 5}",
        ] {
            let refused = insertion(wrong, "servers", "stepwell", &json!({}));
            assert!(refused.is_err(), "{wrong}");
        }
    }
}
