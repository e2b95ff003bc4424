//! Text for people: what fits a line, and how amounts, sizes and times read.

use std::borrow::Cow;
use std::fmt::Write;
use std::sync::{LazyLock, OnceLock};

use jiff::tz::TimeZone;
use serde::Serialize;
use stepwell::log::Redactor;
use stepwell::model::{Estimate, Spent, Time};
use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

/// The text without what would move a terminal's cursor, change its colours or turn the
/// direction of writing: sessions hold what models and tools said, and those may be
/// hostile. Line breaks and tabs stay.
pub fn visible(text: &str) -> String {
    text.chars().map(|c| if is_unsafe(c) { '\u{fffd}' } else { c }).collect()
}

fn is_unsafe(c: char) -> bool {
    let turns =
        matches!(c, '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
    (c.is_control() && c != '\n' && c != '\t') || turns
}

/// The text on one line, each run of white space as one space.
pub fn one_line(text: &str) -> String {
    let words: Vec<&str> = text.split_whitespace().collect();
    visible(&words.join(" "))
}

/// How many columns a text takes on a terminal.
pub fn width(text: &str) -> usize {
    text.width()
}

/// What knows the secrets of this process: those of its environment and its configuration.
static KNOWN: OnceLock<Redactor> = OnceLock::new();

/// From here on the secrets that this redactor was given are taken out of all text for people, too.
pub fn hide_secrets_of(redactor: &Redactor) {
    let _ = KNOWN.set(redactor.with_own_count());
}

/// The text without what looks like a secret, and without those that the process knows: imported
/// sessions are stored as they came.
#[must_use]
pub fn without_secrets(text: &str) -> Cow<'_, str> {
    static RULES: LazyLock<Redactor> = LazyLock::new(Redactor::default);
    KNOWN.get().unwrap_or(&RULES).redact(text)
}

/// The front of a line that fits so many columns, with `…` if something is missing. Half a secret
/// is no longer recognized as one, so secrets are taken out before the line is cut.
pub fn cut(text: &str, columns: usize) -> String {
    let text = without_secrets(text);
    if width(&text) <= columns {
        return text.into_owned();
    }
    let (mut kept, mut taken) = (String::new(), 0);
    for c in text.chars() {
        taken += c.width().unwrap_or(0);
        if taken > columns.saturating_sub(1) {
            break;
        }
        kept.push(c);
    }
    if columns > 0 {
        kept.push('…');
    }
    kept
}

/// What was spent: `-` for nothing, `?` where a price is unknown.
pub fn cost(spent: &Spent) -> String {
    spent.price()
}

/// What was spent, and what may have been where nobody said it.
pub fn cost_or(estimate: Option<Estimate>, spent: &Spent) -> String {
    spent.price_or(estimate)
}

/// A number of bytes.
pub fn bytes(bytes: u64) -> String {
    let (mut amount, mut unit) = (bytes as f64, "B");
    for larger in ["KB", "MB", "GB", "TB"] {
        if amount < 1000.0 {
            break;
        }
        (amount, unit) = (amount / 1000.0, larger);
    }
    if unit == "B" { format!("{bytes} B") } else { format!("{amount:.1} {unit}") }
}

/// A number with its noun.
pub fn count(n: usize, one: &str) -> String {
    if n == 1 { format!("1 {one}") } else { format!("{} {one}s", grouped(n as u64)) }
}

/// A number in groups of three digits.
pub fn grouped(n: u64) -> String {
    let digits = n.to_string();
    let mut text = String::new();
    for (i, digit) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// How long ago a moment was, in its largest unit. Narrow, for lists.
pub fn ago(then: Time, now: Time) -> String {
    let seconds = now.since(then).as_secs();
    let (days, hours) = (seconds / 86_400, seconds / 3_600);
    // Months of 30 days and years of 365 are exact enough for something so long ago.
    match (days, hours, seconds / 60) {
        (365.., _, _) => format!("{}y ago", days / 365),
        (60.., _, _) => format!("{}mo ago", days / 30),
        (2.., _, _) => format!("{days}d ago"),
        (_, 2.., _) => format!("{hours}h ago"),
        (_, _, minutes @ 2..) => format!("{minutes}m ago"),
        _ => format!("{seconds}s ago"),
    }
}

/// How long something took, to the second.
pub fn took(time: std::time::Duration) -> String {
    match time.as_secs() {
        seconds @ 0..60 => format!("{seconds}s"),
        seconds @ 60..3600 => format!("{}m{:02}s", seconds / 60, seconds % 60),
        seconds => format!("{}h{:02}m", seconds / 3600, seconds % 3600 / 60),
    }
}

/// A moment in the user's own time zone, to the minute.
pub fn moment(time: Time) -> String {
    zoned(time).strftime("%Y-%m-%d %H:%M").to_string()
}

/// A moment in the user's own time zone, to the second.
pub fn second(time: Time) -> String {
    zoned(time).strftime("%Y-%m-%d %H:%M:%S").to_string()
}

/// The day of a moment in the user's own time zone.
pub fn day(time: Time) -> String {
    zoned(time).strftime("%Y-%m-%d").to_string()
}

fn zoned(time: Time) -> jiff::Zoned {
    let stamp = jiff::Timestamp::from_microsecond(time.as_micros()).unwrap_or_default();
    stamp.to_zoned(TimeZone::system())
}

/// The text with `prefix` before each of its lines.
pub fn indented(text: &str, prefix: &str) -> String {
    let mut indented = String::new();
    for (i, line) in visible(text).lines().enumerate() {
        let end = if i > 0 { "\n" } else { "" };
        let prefix = if line.is_empty() { "" } else { prefix };
        let _ = write!(indented, "{end}{prefix}{line}");
    }
    indented
}

/// The word for a value that JSON knows by one.
pub fn word(value: impl Serialize) -> String {
    let json = serde_json::to_value(value).ok();
    json.as_ref().and_then(|json| json.as_str()).unwrap_or_default().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cut_line_never_takes_more_columns_than_it_has() {
        assert_eq!(cut("refactor", 8), "refactor");
        assert_eq!(cut("refactors", 8), "refacto…");
        // Each of these characters takes two columns.
        assert_eq!(cut("数据库迁移", 10), "数据库迁移");
        assert_eq!(cut("数据库迁移", 9), "数据库迁…");
        assert_eq!(cut("数据库迁移", 8), "数据库…");
        assert_eq!(cut("abc", 0), "");
        for columns in 0..12 {
            assert!(width(&cut("a数b据c库d", columns)) <= columns);
        }
    }

    #[test]
    fn what_would_move_the_cursor_is_shown_as_a_replacement() {
        assert_eq!(visible("a\u{1b}[2Jb\u{202e}c\u{9b}d\r"), "a�[2Jb�c�d�");
        assert_eq!(visible("two\nlines\tand 数据"), "two\nlines\tand 数据");
        assert_eq!(one_line("  two\n\n lines\r\n"), "two lines");
    }

    #[test]
    fn the_past_is_told_in_its_largest_unit() {
        let now: Time = "2026-03-02T12:00:00Z".parse().unwrap();
        let said = |seconds| ago(now.minus(std::time::Duration::from_secs(seconds)), now);
        let told = [0, 119, 120, 7_199, 7_200, 172_799, 172_800, 5_183_999, 5_184_000];
        let told: Vec<_> = told.into_iter().map(said).collect();
        let expected = "0s 119s 2m 119m 2h 47h 2d 59d 2mo";
        assert_eq!(told.join("").replace(" ago", " ").trim_end(), expected);
        assert_eq!(said(365 * 86_400), "1y ago");
        assert_eq!(ago(now, now.minus(std::time::Duration::from_secs(9))), "0s ago");
    }

    #[test]
    fn amounts_read_as_people_write_them() {
        assert_eq!(bytes(999), "999 B");
        assert_eq!(bytes(1_500), "1.5 KB");
        assert_eq!(bytes(2_000_000_000), "2.0 GB");
        assert_eq!(grouped(1_234_567), "1,234,567");
        assert_eq!(grouped(999), "999");
        assert_eq!(count(1, "session"), "1 session");
        assert_eq!(count(2, "session"), "2 sessions");
    }

    #[test]
    fn no_cut_leaves_a_part_of_a_secret() {
        let token = format!("ghp_{}", "aB3dE5gH7jK9mN1p".repeat(3));
        let key = "MIIEvQIBADANBgkqhkiG9w0BAQEFAASC".repeat(8);
        let block = format!("-----BEGIN PRIVATE KEY----- {key} -----END PRIVATE KEY-----");
        // It has no form by which it could be known.
        let given = "the first of our own keys";
        hide_secrets_of(&Redactor::new([given.to_owned()]));
        let said = format!("deploy with {given}, {token} and {block} today");
        for columns in 0..=said.len() {
            let shown = cut(&said, columns);
            for secret in [&token["ghp_".len()..], &*key, given] {
                let leaks = |n: usize| shown.contains(&secret[n..n + 4]);
                assert!(!(0..secret.len() - 4).any(leaks), "{columns}: {shown}");
            }
        }
    }
}
