//! Finds the beginning of words in texts that contain escapes of other texts: `
//! ` in JSON, `%3D` in a URL, colour codes. The last letter of an escape does not belong to the
//! next word.

/// The longest run of letters and digits at the end of an escape: `25253D`, which was escaped twice
/// more.
const LONGEST_ESCAPE: usize = 6;

/// Does a word begin after this text?
pub(super) fn is_word_start(before: &str) -> bool {
    let run = before.bytes().rev().take(LONGEST_ESCAPE + 1).take_while(is_of_word).count();
    run <= LONGEST_ESCAPE && {
        let (front, run) = before.split_at(before.len() - run);
        escape(front, run) == run.len()
    }
}

/// Where the last word of this text begins.
pub(super) fn word_start(before: &str) -> usize {
    let run = before.bytes().rev().take_while(is_of_word).count();
    let (front, run) = before.split_at(before.len() - run);
    front.len() + escape(front, run)
}

/// Where a run at the end of the text begins, without an escape that overlaps it.
pub(super) fn run_start(text: &str, run: usize) -> usize {
    let front = &text[..run];
    let lead = front.bytes().rev().take(LONGEST_ESCAPE).take_while(is_of_word).count();
    let (front, word) = text.split_at(run - lead);
    run.max(front.len() + escape(front, word))
}

/// Does the text end with a line break, plain or escaped?
pub(super) fn ends_with_line_end(text: &str) -> bool {
    ["\n", "\r", "\\n", "\\r", "%0A", "%0a"].iter().any(|end| text.ends_with(end))
}

/// Does the text begin with a line break, plain or escaped?
pub(super) fn begins_with_line_end(text: &str) -> bool {
    ["\n", "\r", "\\n", "\\r", "%0A", "%0a", "%0D"].iter().any(|end| text.starts_with(end))
}

/// Does a URL parameter begin after this text?
pub(super) fn is_parameter_start(before: &str) -> bool {
    const ESCAPED: [&str; 5] = ["%3f", "%26", "\\u0026", "\\x26", "\\u003f"];
    before.ends_with(['?', '&', ';'])
        || ESCAPED.iter().any(|escaped| ends_with_ignoring_case(before, escaped))
}

fn ends_with_ignoring_case(text: &str, end: &str) -> bool {
    let start = text.len().checked_sub(end.len());
    start.is_some_and(|start| text.as_bytes()[start..].eq_ignore_ascii_case(end.as_bytes()))
}

/// How many bytes of a run of letters and digits belong to an escape in front of it.
fn escape(front: &str, run: &str) -> usize {
    let run = run.as_bytes();
    let all = |from: usize, to: usize, is: fn(&u8) -> bool| {
        run.get(from..to).is_some_and(|bytes| bytes.iter().all(is))
    };
    match (front.as_bytes().last(), run.first()) {
        (Some(b'\\'), Some(b'u')) if all(1, 5, u8::is_ascii_hexdigit) => 5,
        (Some(b'\\'), Some(b'x')) if all(1, 3, u8::is_ascii_hexdigit) => 3,
        (Some(b'\\'), Some(b'0')) if all(1, 3, u8::is_ascii_digit) => 3,
        (Some(b'\\'), Some(b'a' | b'b' | b'e' | b'f' | b'n' | b'r' | b't' | b'v' | b'0')) => 1,
        (Some(b'%'), Some(_)) => {
            // The percent sign may itself be escaped: `%253D`.
            let signs = run.chunks_exact(2).take_while(|pair| *pair == b"25").count();
            match all(2 * signs, 2 * signs + 2, u8::is_ascii_hexdigit) {
                true => 2 * signs + 2,
                false => 2 * signs,
            }
        }
        // A colour code: ESC [ 1 ; 31 m.
        (Some(b'[' | b';'), Some(_)) => {
            let digits = run.iter().take_while(|byte| byte.is_ascii_digit()).count();
            let moves = front.ends_with("\u{1b}[") && digits > 0;
            match run.get(digits) {
                Some(b'm') => digits + 1,
                Some(b'A'..=b'K') if moves => digits + 1,
                _ => 0,
            }
        }
        _ => 0,
    }
}

/// Can this byte be part of a word?
const fn is_of_word(byte: &u8) -> bool {
    byte.is_ascii_alphanumeric() || *byte == b'_'
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_word_begins_behind_escapes() {
        for before in [
            "",
            " ",
            "é",
            "\"",
            "a\\n",
            "a\\t",
            "\\\\n",
            "\\u0022",
            "%3D",
            "%22",
            "\\x1b",
            "\\033",
            "\u{1b}[0m",
            "\u{1b}[1;31m",
            "\\u001b[31m",
            "\u{1b}[m",
            "\u{1b}[2K",
            "a%0A\\r",
            "a%253D",
            "%25253d",
            "%25",
        ] {
            assert!(is_word_start(before), "{before:?}");
        }
        for before in ["a", "_", "7", "ta", "\\new", "%zz", "%3Da", "u0022", "[31", "x[2K", "\\u00"]
        {
            assert!(!is_word_start(before), "{before:?}");
        }
    }

    #[test]
    fn a_name_does_not_begin_with_the_escape_in_front_of_it() {
        for before in ["\\nDB_PASS", "%22DB_PASS", "x DB_PASS", "\u{1b}[1mDB_PASS"] {
            assert_eq!(&before[word_start(before)..], "DB_PASS", "{before:?}");
        }
    }
}
