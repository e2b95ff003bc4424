//! JSON as text: how it is laid out and escaped, and which fields an object has when only its
//! front is there. Numbers, order and repeated fields stay as they are.

use serde::de::IgnoredAny;

use crate::json::fields::text_of;

/// How JSON is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Style {
    pub(crate) layout: Layout,
    /// Which characters of texts are escaped.
    pub(crate) escapes: Escapes,
}

/// How JSON is laid out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Layout {
    /// Each value on a line, a level moved in by so many blanks.
    Lines(usize),
    /// All on one line, with blanks behind commas and colons, as Python does.
    Spaced,
    /// All on one line, without blanks.
    Tight,
}

/// The field in which it is kept how a file was laid out.
pub(crate) const LAYOUT: &str = "stepwell.layout";

impl Layout {
    /// How a text is laid out that holds an object.
    pub(crate) fn of(text: &str) -> Self {
        let text = text.trim();
        if let Some(line) = text.split('\n').nth(1) {
            return Self::Lines(line.len() - line.trim_start_matches(' ').len());
        }
        // Behind the name of the first field.
        let rest = text.trim_start_matches('{').trim_start();
        let value = rest[string_end(rest).min(rest.len())..].trim_start();
        if value.starts_with(": ") { Self::Spaced } else { Self::Tight }
    }

    /// What is kept of a file, with how it was laid out if that is not the usual way.
    pub(crate) fn keep_in(self, kept: String) -> String {
        let word = match self {
            Self::Lines(_) => return kept,
            Self::Spaced => "\"spaced\"",
            Self::Tight => "\"tight\"",
        };
        crate::json::fields::with_fields(&kept, &[(LAYOUT, word)])
    }

    /// How a file was laid out of which this was kept.
    pub(crate) fn kept_in(kept: &str) -> Option<Self> {
        match crate::json::fields::Fields::parse(kept).ok()?.text(LAYOUT)?.as_ref() {
            "spaced" => Some(Self::Spaced),
            "tight" => Some(Self::Tight),
            _ => None,
        }
    }
}

/// Which characters of texts are escaped, beside those that must be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Escapes {
    /// No others are escaped.
    Few,
    /// All that is not ASCII, as Python does.
    Ascii,
    /// What would be markup in HTML, as Go does.
    Html,
}

/// Deeper than this nothing is moved in: the blanks alone would fill the disk.
const MAX_INDENTED: usize = 64;

/// JSON in a style. What is not JSON stays as it is.
pub(crate) fn styled(json: &str, style: Style) -> String {
    let mut out = String::with_capacity(json.len() + json.len() / 4);
    let mut depth = 0_usize;
    let mut rest = json.trim();
    while let Some(c) = rest.chars().next() {
        let used = match c {
            '"' => {
                let token = &rest[..string_end(rest)];
                out.push_str(&escaped(token, style.escapes));
                token.len()
            }
            '{' | '[' => {
                let inner = rest[1..].trim_start();
                let close = if c == '{' { '}' } else { ']' };
                out.push(c);
                if inner.starts_with(close) {
                    out.push(close);
                    rest.len() - inner.len() + 1
                } else {
                    depth += 1;
                    line_break(&mut out, depth, style);
                    1
                }
            }
            '}' | ']' => {
                depth = depth.saturating_sub(1);
                if depth < MAX_INDENTED {
                    line_break(&mut out, depth, style);
                }
                out.push(c);
                1
            }
            ',' => {
                out.push(c);
                if style.layout == Layout::Spaced {
                    out.push(' ');
                }
                line_break(&mut out, depth, style);
                1
            }
            ':' => {
                out.push_str(if style.layout == Layout::Tight { ":" } else { ": " });
                1
            }
            c if c.is_ascii_whitespace() => 1,
            c => {
                out.push(c);
                c.len_utf8()
            }
        };
        rest = &rest[used..];
    }
    out
}

fn line_break(out: &mut String, depth: usize, style: Style) {
    if let Layout::Lines(indent) = style.layout
        && depth <= MAX_INDENTED
    {
        out.push('\n');
        out.extend(std::iter::repeat_n(' ', depth * indent));
    }
}

/// Where the string ends that a text begins with.
fn string_end(text: &str) -> usize {
    let mut behind_backslash = false;
    for (at, byte) in text.bytes().enumerate().skip(1) {
        match byte {
            b'"' if !behind_backslash => return at + 1,
            b'\\' => behind_backslash = !behind_backslash,
            _ => behind_backslash = false,
        }
    }
    text.len()
}

fn escaped(token: &str, escapes: Escapes) -> String {
    // A half of a pair stands for no character; it stays as it is.
    let Ok(text) = serde_json::from_str::<String>(token) else { return token.to_owned() };
    let plain = crate::json::fields::quoted(&text);
    let must = |c: char| match escapes {
        Escapes::Few => false,
        Escapes::Ascii => c > '~',
        Escapes::Html => matches!(c, '<' | '>' | '&' | '\u{2028}' | '\u{2029}'),
    };
    if !plain.chars().any(must) {
        return plain;
    }
    let mut out = String::with_capacity(plain.len() * 2);
    for c in plain.chars() {
        match must(c) {
            true => {
                let mut units = [0; 2];
                for unit in c.encode_utf16(&mut units) {
                    out.push_str(&format!("\\u{unit:04x}"));
                }
            }
            false => out.push(c),
        }
    }
    out
}

/// The object that the front of a torn one is: its fields that are there as a whole.
pub(crate) fn sound_front(text: &str) -> String {
    let mut object = String::from("{");
    let text = text.strip_prefix('\u{feff}').unwrap_or(text).trim_start();
    let mut rest = text.strip_prefix('{').unwrap_or_default().trim_start();
    while rest.starts_with('"') {
        let (name, after) = rest.split_at(string_end(rest));
        let Some(after) = after.trim_start().strip_prefix(':') else { break };
        let mut values = serde_json::Deserializer::from_str(after).into_iter::<IgnoredAny>();
        let Some(Ok(_)) = values.next() else { break };
        let (value, after) = after.split_at(values.byte_offset());
        let after = after.trim_start();
        // A number that nothing follows may have been longer.
        if !after.starts_with([',', '}']) {
            break;
        }
        if let Some(name) = text_of(name) {
            crate::json::fields::push_field(&mut object, &name, value.trim());
        }
        rest = after[1..].trim_start();
    }
    object.push('}');
    object
}

/// The names of an object's own fields, as far as its text goes.
pub(crate) fn keys(text: &str) -> Vec<String> {
    let mut keys = Vec::new();
    let text = text.strip_prefix('\u{feff}').unwrap_or(text).trim_start();
    let Some(mut rest) = text.strip_prefix('{') else { return keys };
    let (mut depth, mut is_key) = (1_usize, true);
    while let Some(c) = rest.chars().next() {
        let used = match c {
            '"' => {
                let end = string_end(rest);
                if depth == 1 && is_key {
                    keys.extend(text_of(&rest[..end]).map(std::borrow::Cow::into_owned));
                    is_key = false;
                }
                end
            }
            '{' | '[' => {
                depth += 1;
                1
            }
            '}' | ']' => {
                depth -= 1;
                if depth == 0 {
                    break;
                }
                1
            }
            ',' => {
                is_key = depth == 1;
                1
            }
            c => c.len_utf8(),
        };
        rest = &rest[used..];
    }
    keys
}

#[cfg(test)]
mod tests {
    use super::*;

    const PYTHON: Style = Style { layout: Layout::Lines(2), escapes: Escapes::Ascii };

    #[test]
    fn json_is_laid_out_as_python_does() {
        let json = r#"{"a":{},"b":[1.50,[]],"c":"ñ \ud83d\ude80 \"x\" \u007f","d":null}"#;
        let wanted = "{\n  \"a\": {},\n  \"b\": [\n    1.50,\n    []\n  ],\n  \
            \"c\": \"\\u00f1 \\ud83d\\ude80 \\\"x\\\" \\u007f\",\n  \"d\": null\n}";
        assert_eq!(styled(json, PYTHON), wanted);
        let line = styled(wanted, Style { layout: Layout::Tight, escapes: Escapes::Few });
        assert_eq!(line, "{\"a\":{},\"b\":[1.50,[]],\"c\":\"ñ 🚀 \\\"x\\\" \u{7f}\",\"d\":null}");
    }

    #[test]
    fn a_layout_is_known_from_a_text_and_kept() {
        let layouts = [Layout::Lines(2), Layout::Spaced, Layout::Tight];
        for layout in layouts {
            let style = Style { layout, escapes: Escapes::Few };
            let text = styled(r#"{"a": {"b": [1, 2]}, "c": "x, y: z"}"#, style);
            assert_eq!(Layout::of(&text), layout, "{text}");
            let kept = layout.keep_in("{\"a\":1}".to_owned());
            assert_eq!(Layout::kept_in(&kept).unwrap_or(Layout::Lines(2)), layout);
        }
        for text in ["", "{}", "{", "null", "{\"a\"", "{\n"] {
            Layout::of(text);
        }
    }

    #[test]
    fn markup_is_escaped_as_go_does() {
        let go = Style { layout: Layout::Tight, escapes: Escapes::Html };
        assert_eq!(styled("[\"a < b & c\", 1]", go), r#"["a \u003c b \u0026 c",1]"#);
        assert_eq!(styled(r#"["\ud800"]"#, go), r#"["\ud800"]"#);
    }

    #[test]
    fn ten_thousand_levels_do_not_fill_the_disk() {
        let deep = format!("{}1{}", "[".repeat(10_000), "]".repeat(10_000));
        let text = styled(&deep, PYTHON);
        assert!(text.len() < 40_000, "{}", text.len());
        let flat: String = text.split_whitespace().collect();
        assert_eq!(flat, deep);
    }

    #[test]
    fn of_a_torn_object_the_fields_that_are_whole_are_found() {
        let whole = r#"{"a": "}\"{", "b" : {"x":[1,{"y":2}]}, "c": 17}"#;
        assert_eq!(sound_front(whole), r#"{"a":"}\"{","b":{"x":[1,{"y":2}]},"c":17}"#);
        let fronts =
            [(45, r#"{"a":"}\"{","b":{"x":[1,{"y":2}]}}"#), (15, r#"{"a":"}\"{"}"#), (8, "{}")];
        for (length, found) in fronts {
            assert_eq!(sound_front(&whole[..length]), found, "{length}");
        }
        for none in ["", "null", "[1]", "{", "\0\0\0", "{\"a\""] {
            assert_eq!(sound_front(none), "{}");
        }
    }

    #[test]
    fn fields_are_known_from_the_front_of_an_object() {
        let text = r#"{"a":"}\"{","b" : {"x":[1,{"y":2}]},"c":[{"z":1}],"d":"cut of"#;
        assert_eq!(keys(text), ["a", "b", "c", "d"]);
        assert!(keys("[{\"a\":1}]").is_empty() && keys("").is_empty());
        assert_eq!(keys("{\"a\":1}} {\"b\":2}"), ["a"]);
    }
}
