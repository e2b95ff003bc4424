//! Text that cannot drive the terminal. Drawing takes nothing else from outside.

use std::fmt;

/// Text without control characters, escape sequences or marks that reorder what is shown. Lines end
/// with `\n`; tabs are spaces.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Clean(String);

/// How wide a tab is.
const TAB: &str = "    ";

impl Clean {
    /// Cleans a text. Escape sequences go; other control characters are shown as pictures.
    #[must_use]
    pub fn new(text: &str) -> Self {
        let mut clean = String::with_capacity(text.len());
        let mut chars = text.chars().peekable();
        while let Some(c) = chars.next() {
            match c {
                '\n' => clean.push('\n'),
                '\t' => clean.push_str(TAB),
                // A progress bar overwrites its line; as text, the next version follows.
                '\r' => {
                    if chars.peek() != Some(&'\n') {
                        clean.push('\n');
                    }
                }
                '\u{1b}' => skip_escape(&mut chars),
                '\u{9b}' => skip_until_final(&mut chars),
                '\u{90}' | '\u{98}' | '\u{9d}'..='\u{9f}' => skip_string(&mut chars),
                c if is_reordering(c) => {}
                c => clean.push(visible(c)),
            }
        }
        Self(clean)
    }

    /// The same on one line.
    #[must_use]
    pub fn line(text: &str) -> Self {
        let clean = Self::new(text);
        Self(clean.0.split_whitespace().collect::<Vec<_>>().join(" "))
    }

    /// The text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Is there none?
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl fmt::Display for Clean {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.0)
    }
}

impl From<&str> for Clean {
    fn from(text: &str) -> Self {
        Self::new(text)
    }
}

impl From<String> for Clean {
    fn from(text: String) -> Self {
        Self::new(&text)
    }
}

type Chars<'a> = std::iter::Peekable<std::str::Chars<'a>>;

/// Skips what follows an escape character.
fn skip_escape(chars: &mut Chars<'_>) {
    match chars.peek() {
        Some('[') => {
            chars.next();
            skip_until_final(chars);
        }
        Some(']' | 'P' | 'X' | '^' | '_') => {
            chars.next();
            skip_string(chars);
        }
        Some(' '..='/') => {
            while chars.next_if(|c| (' '..='/').contains(c)).is_some() {}
            chars.next_if(|c| ('0'..='~').contains(c));
        }
        Some('0'..='~') => drop(chars.next()),
        _ => {}
    }
}

/// Skips a control sequence up to its final character. It never goes past the line.
fn skip_until_final(chars: &mut Chars<'_>) {
    while chars.next_if(|c| (' '..='?').contains(c)).is_some() {}
    chars.next_if(|c| ('@'..='~').contains(c));
}

/// Skips a string for the terminal up to its end. One that does not end goes no further than the
/// line.
fn skip_string(chars: &mut Chars<'_>) {
    while let Some(c) = chars.next_if(|c| *c != '\n') {
        match c {
            '\u{7}' | '\u{9c}' => return,
            '\u{1b}' => {
                chars.next_if_eq(&'\\');
                return;
            }
            _ => {}
        }
    }
}

/// Does it change the order in which text is shown, or hide in it?
fn is_reordering(c: char) -> bool {
    matches!(c,
        '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{200e}' | '\u{200f}' | '\u{61c}'
        | '\u{feff}' | '\u{2028}' | '\u{2029}' | '\u{e0000}'..='\u{e007f}')
}

/// A control character as its picture.
fn visible(c: char) -> char {
    match c {
        '\u{7f}' => '\u{2421}',
        c if c < ' ' => char::from_u32(0x2400 + c as u32).unwrap_or('\u{fffd}'),
        c if c.is_control() => '\u{fffd}',
        c => c,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sequences_that_drive_a_terminal_are_gone() {
        for (text, clean) in [
            ("\u{1b}[31mred\u{1b}[0m", "red"),
            ("\u{1b}]0;title\u{7}after", "after"),
            ("\u{1b}]52;c;aGk=\u{1b}\\after", "after"),
            ("\u{1b}]8;;http://evil\u{1b}\\link\u{1b}]8;;\u{1b}\\", "link"),
            ("\u{1b}Pq#0\u{1b}\\x", "x"),
            ("\u{9b}2Jx\u{9d}0;t\u{9c}y", "xy"),
            ("\u{1b}c\u{1b}(B\u{1b}7reset", "reset"),
            ("a\u{8}b\u{7}", "a\u{2408}b\u{2407}"),
            ("a\u{202e}cod.exe", "acod.exe"),
            ("10%\r20%\r\ndone", "10%\n20%\ndone"),
            ("\u{1b}]0;never ends\nnext", "\nnext"),
            ("\tx", "    x"),
            ("e\u{301}漢\u{1f469}\u{200d}\u{1f4bb}", "e\u{301}漢\u{1f469}\u{200d}\u{1f4bb}"),
        ] {
            assert_eq!(Clean::new(text).as_str(), clean, "{text:?}");
        }
    }

    proptest::proptest! {
        #[test]
        fn nothing_that_is_cleaned_holds_a_control_character(text in "(\\PC|[\u{0}-\u{9f}]){0,60}") {
            let clean = Clean::new(&text);
            proptest::prop_assert!(!clean.as_str().chars().any(|c| c.is_control() && c != '\n'));
            // What is clean stays as it is.
            proptest::prop_assert_eq!(Clean::new(clean.as_str()), clean);
        }
    }
}
