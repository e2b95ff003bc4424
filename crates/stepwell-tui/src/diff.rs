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
}
