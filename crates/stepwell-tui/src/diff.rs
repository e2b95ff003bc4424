//! Unified diffs as styled lines.

use ratatui::style::Style;
use ratatui::text::Line;

use crate::clean::Clean;
use crate::theme::Theme;
use crate::wrap::wrap;

/// How a line of a diff looks.
#[must_use]
pub(crate) fn style(line: &str, theme: Theme) -> Style {
    match line.as_bytes() {
        [b'+', b'+', b'+', ..] | [b'-', b'-', b'-', ..] => theme.strong(),
        [b'+', ..] => theme.good(),
        [b'-', ..] => theme.bad(),
        [b'@', b'@', ..] => theme.place(),
        _ if line.starts_with("diff ") || line.starts_with("index ") => theme.faint(),
        _ => Style::new(),
    }
}

/// Is it a diff? Only then are lines that begin with a plus or a minus coloured.
#[must_use]
pub(crate) fn is_diff(text: &Clean) -> bool {
    let text = text.as_str();
    let mut lines = text.lines().take(6);
    text.starts_with("diff --git ")
        || lines.any(|line| line.starts_with("@@ ") && line[3..].contains("@@"))
}

/// What a call changes in a file, as far as the call itself says: what it writes, or what it puts in
/// place of what. Empty, if it changes none.
#[must_use]
pub(crate) fn of_call(tool: &str, arguments: &str) -> Clean {
    let arguments = match tool {
        "write_file" | "edit_file" => serde_json::from_str(arguments).unwrap_or_default(),
        _ => serde_json::Value::Null,
    };
    let named = |name: &str| arguments.get(name).and_then(serde_json::Value::as_str);
    let (before, after) = match (named("content"), named("old_text"), named("new_text")) {
        (Some(content), ..) => ("", content),
        (None, Some(before), Some(after)) => (before, after),
        _ => return Clean::default(),
    };
    let mut text = format!("@@ {} @@\n", named("path").unwrap_or_default().replace('\n', " "));
    let mark = |mark: char, lines: &str| -> String {
        lines.lines().map(|line| format!("{mark}{line}\n")).collect()
    };
    text.push_str(&mark('-', before));
    text.push_str(&mark('+', after));
    Clean::new(&text)
}

/// A diff as lines of at most so many columns.
#[must_use]
pub(crate) fn lines(text: &Clean, columns: usize, theme: Theme) -> Vec<Line<'static>> {
    let styled = |line: &str| wrap(&Line::styled(line.to_owned(), style(line, theme)), columns, "");
    text.as_str().lines().flat_map(styled).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_diff_is_taken_for_one() {
        assert!(is_diff(&Clean::new("--- a\n+++ b\n@@ -1 +1 @@\n-x\n+y\n")));
        assert!(!is_diff(&Clean::new("- a list\n- of things\n")));
    }

    #[test]
    fn a_call_says_what_it_changes() {
        let edit = r#"{"path":"a.rs","old_text":"one","new_text":"two\nthree"}"#;
        let change = of_call("edit_file", edit);
        assert_eq!(change.as_str(), "@@ a.rs @@\n-one\n+two\n+three\n");
        assert!(is_diff(&change));
        let write = of_call("write_file", r#"{"path":"a.rs","content":"x"}"#);
        assert_eq!(write.as_str(), "@@ a.rs @@\n+x\n");
        assert!(of_call("edit_file", "{").is_empty());
        assert!(of_call("run_command", r#"{"content":"x"}"#).is_empty());
    }
}
