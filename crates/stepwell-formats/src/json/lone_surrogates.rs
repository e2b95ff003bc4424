//! Halves of characters: `\ud83d` alone, as programs write it that cut a text in the middle
//! of an emoji. No text can hold one, and the rest of the text is worth having.

use std::borrow::Cow;

use memchr::memmem;

/// A JSON text with U+FFFD in the place of each half; `None` if it has none.
pub(crate) fn mended(json: &str) -> Option<String> {
    // Almost no text has any, and this is asked of every line.
    let none = memmem::find(json.as_bytes(), b"\\u").is_none();
    if none || !json.contains("\\ud") && !json.contains("\\uD") {
        return None;
    }
    let mut mended = Cow::Borrowed(json);
    let mut at = 0;
    while let Some(found) = json.get(at..).and_then(|rest| rest.find('\\')) {
        at += found;
        at += match (unit(json, at), unit(json, at + UNIT)) {
            (Some(0xd800..=0xdbff), Some(0xdc00..=0xdfff)) => 2 * UNIT,
            (Some(0xd800..=0xdfff), _) => {
                mended.to_mut().replace_range(at..at + UNIT, "\\ufffd");
                UNIT
            }
            // An escape that is no unit of UTF-16 has two letters.
            _ => 2,
        };
    }
    match mended {
        Cow::Borrowed(_) => None,
        Cow::Owned(text) => Some(text),
    }
}

/// How long an escaped unit of UTF-16 is.
const UNIT: usize = 6;

fn unit(json: &str, at: usize) -> Option<u16> {
    let digits = json.get(at..at + UNIT)?.strip_prefix("\\u")?;
    u16::from_str_radix(digits, 16).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn halves_are_replaced_and_nothing_else_is() {
        let whole = [r#""a""#, r#""\ud83d\ude00""#, r#""\\ud83d""#, r#""\n\u00e4\\""#, r#""\ud8"#];
        for text in whole {
            assert_eq!(mended(text), None, "{text}");
        }
        let halves = [
            (r#""\ud83d""#, r#""\ufffd""#),
            (r#""\uD83D x\ude00\ud83d\ude00""#, r#""\ufffd x\ufffd\ud83d\ude00""#),
            (r#""\ud83d\ud83d\ude00""#, r#""\ufffd\ud83d\ude00""#),
            (r#""\\\ude00ä""#, r#""\\\ufffdä""#),
        ];
        for (text, expected) in halves {
            assert_eq!(mended(text).as_deref(), Some(expected), "{text}");
        }
    }
}
