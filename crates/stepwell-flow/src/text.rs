//! Makes texts of models and people safe to show and store. Pure.

use serde_json::Value;

/// Does a text contain characters that reverse the text direction? Then the display would differ
/// from the content.
pub(crate) fn deceives(text: &str) -> bool {
    text.chars().any(|c| matches!(c, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}'))
}

/// The text without characters that move the cursor or reverse the direction, at most `most`
/// characters long.
pub(crate) fn plain(text: &str, most: usize) -> String {
    let shown = |c: &char| (!c.is_control() || *c == '\n') && !deceives(c.encode_utf8(&mut [0; 4]));
    let kept: String = text.trim().chars().filter(shown).take(most).collect();
    kept.trim().to_owned()
}

/// The exact text on one line: invisible characters, and those that affect the display, are
/// escaped.
pub(crate) fn spelled_out(text: &str) -> String {
    let hidden = |c: char| {
        c.is_control()
            || deceives(c.encode_utf8(&mut [0; 4]))
            || matches!(c, '\u{ad}' | '\u{61c}' | '\u{180e}' | '\u{200b}'..='\u{200f}'
                | '\u{2028}' | '\u{2029}' | '\u{2060}'..='\u{2064}' | '\u{feff}'
                | '\u{e0000}'..='\u{e007f}')
    };
    let mut shown = String::with_capacity(text.len());
    for c in text.chars() {
        match hidden(c) {
            true => shown.extend(c.escape_default()),
            false => shown.push(c),
        }
    }
    shown
}

/// The first line of a text, at most `most` characters long.
pub(crate) fn first_line(text: &str, most: usize) -> String {
    let line = text.trim().lines().next().unwrap_or_default();
    let line: String = line.chars().filter(|c| !c.is_control()).collect();
    match line.chars().nth(most) {
        Some(_) => format!("{}…", line.chars().take(most).collect::<String>().trim_end()),
        None => line,
    }
}

/// The last part of a text, from the start of a line.
pub(crate) fn last_part(text: &str, most: usize) -> &str {
    let text = text.trim_end();
    if text.len() <= most {
        return text;
    }
    let from = text.ceil_char_boundary(text.len() - most);
    let part = &text[from..];
    part.split_once('\n').map_or(part, |(_, rest)| rest)
}

/// Does a path leave the workspace, or lead into a protected folder?
pub(crate) fn leaves(file: &str) -> bool {
    let mut parts = file.split(['/', '\\']).filter(|part| *part != ".");
    let is_ours = |part: &str| [".git", stepwell::store::STORE_FOLDER].contains(&part);
    let first = parts.clone().next().unwrap_or_default();
    first.is_empty() || parts.any(|part| part == ".." || is_ours(&part.to_ascii_lowercase()))
}

/// The longest path that is shown to people and agents, in bytes.
const MAX_PATH_BYTES: usize = 1_000;

/// Can a text name a file of the workspace without misleading the reader?
pub(crate) fn is_file_name(text: &str) -> bool {
    let is_plain = !text.chars().any(char::is_control) && !deceives(text);
    is_plain && text.len() <= MAX_PATH_BYTES && !leaves(text)
}

/// A name or a number as text.
pub(crate) fn text_of(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text.trim().to_owned()),
        Value::Number(number) => Some(number.to_string()),
        _ => None,
    }
}

/// A list of names or numbers as texts; other values are left out.
pub(crate) fn list_of_texts(value: Option<&Value>) -> Vec<String> {
    let list = value.and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
    list.iter().filter_map(text_of).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_shown_hides_nothing() {
        assert_eq!(plain(" a\u{1b}[2K\u{202e}b\nc ", 9), "a[2Kb\nc");
        assert_eq!(plain("abcdef", 3), "abc");
        assert_eq!(
            spelled_out("a\u{1b}[2K\u{202e}\u{200b}b\nc"),
            "a\\u{1b}[2K\\u{202e}\\u{200b}b\\nc"
        );
        assert_eq!(first_line("one two\nthree", 3), "one…");
        assert_eq!(last_part("one\ntwo\nthree\n", 9), "three");
        assert_eq!(last_part("one", 9), "one");
    }
}
