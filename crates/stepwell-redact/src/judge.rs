//! Decides whether a matched value is a secret, or only a reference to one.

use base64::Engine as _;
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};

use super::edge;
use super::rules::Value;

/// Is the matched value a secret, and not a reference to one?
pub(super) fn is_secret(value: &str, kind: Value, around: Around<'_>) -> bool {
    let after = around.after;
    match kind {
        Value::Placeholder | Value::Certain | Value::Encoded => true,
        Value::Named => !is_stand_in(value),
        Value::Login => is_login(value),
        Value::Short => {
            is_mixed(value) && !is_stand_in(value) && !is_made_up(value) && !names_itself(value)
        }
        Value::Quoted => {
            let letters = value.chars().all(char::is_alphabetic);
            // A form's label is one short word: "Password", "Passwort".
            let word = letters && value.chars().count() < 12;
            !is_stand_in(value) && (!word || around.is_plain_password(value))
        }
        // An unquoted value may be code: a call, a type, or a cloud resource's name.
        Value::Bare => {
            let value_like = is_mixed(value) || around.is_plain_password(value);
            let is_code = after.starts_with(['(', '[', '<']) || around.is_typed();
            value_like && !is_stand_in(value) && !is_code && !around.before.ends_with(":secret:")
        }
        Value::Weak => {
            let is_code = after.starts_with(['(', '[', '<', ':', '{']) || around.is_typed();
            let names = !is_code && !is_made_up(value);
            let chance = is_mixed(value) && !is_words(value);
            names && !is_stand_in(value) && (chance || around.is_plain_password(value))
        }
    }
}

/// The fewest characters that distinguish random text from words.
const CHANCE_CHARACTERS: usize = 8;

/// Does the text after a token's prefix look random?
pub(super) fn is_chance(value: &str) -> bool {
    let has = |is: fn(&u8) -> bool| value.as_bytes().iter().any(is);
    let is_mixed = is_mixed(value) || (has(u8::is_ascii_lowercase) && has(u8::is_ascii_uppercase));
    value.len() >= CHANCE_CHARACTERS && is_mixed && !is_words(value) && !is_made_up(value)
}

/// Is this `user:password` in base64?
fn is_login(value: &str) -> bool {
    decoded(value).is_some_and(|login| {
        let is_plain = login.chars().all(|c| !c.is_control());
        is_plain
            && login
                .split_once(':')
                .is_some_and(|(user, pass)| !(user.is_empty() || pass.is_empty()))
    })
}

/// Decodes base64, with line breaks and in either alphabet. A truncated text is decoded up to its
/// end.
pub(super) fn decoded(value: &str) -> Option<String> {
    let usual = value.bytes().filter(|byte| !byte.is_ascii_whitespace() && *byte != b'=');
    let mut usual: Vec<u8> = usual
        .map(|byte| match byte {
            b'-' => b'+',
            b'_' => b'/',
            byte => byte,
        })
        .collect();
    // A single leftover character encodes no byte.
    usual.truncate(usual.len() - usize::from(usual.len() % 4 == 1));
    let bytes = LENIENT.decode(usual).ok()?;
    // The last character may be truncated.
    match String::from_utf8(bytes) {
        Ok(text) => Some(text),
        Err(error) => {
            let whole = error.utf8_error().valid_up_to();
            let bytes = error.into_bytes();
            (whole + 4 > bytes.len()).then(|| String::from_utf8_lossy(&bytes[..whole]).into_owned())
        }
    }
}

const LENIENT: GeneralPurpose = GeneralPurpose::new(
    &base64::alphabet::STANDARD,
    GeneralPurposeConfig::new()
        .with_decode_allow_trailing_bits(true)
        .with_decode_padding_mode(DecodePaddingMode::RequireNone),
);

/// The text around a value.
#[derive(Clone, Copy)]
pub(super) struct Around<'a> {
    pub(super) before: &'a str,
    pub(super) after: &'a str,
}

impl Around<'_> {
    /// Is the value a type, as in `const API_KEY: ffi::u8x16 = …`?
    fn is_typed(self) -> bool {
        let is_behind = self.after.starts_with(" = ") || self.after.starts_with("::");
        is_behind && self.before.ends_with(": ")
    }

    /// Is the value only letters, and assigned in a form that only shells and environment files
    /// use: `DB_PASSWORD=correcthorse`, or `password=correcthorse` on its own line? Code has spaces
    /// around the sign, and `password: word` is a type, a label or prose.
    fn is_plain_password(self, value: &str) -> bool {
        let letters = value.len() >= 8 && value.bytes().all(|byte| byte.is_ascii_alphabetic());
        let Some(before) = self.before.trim_end_matches(['"', '\'']).strip_suffix('=') else {
            return false;
        };
        if !letters || is_made_up(value) || names_itself(value) {
            return false;
        }
        let start = edge::word_start(before);
        let (front, name) = before.split_at(start);
        let shouted = !name.is_empty() && !name.bytes().any(|byte| byte.is_ascii_lowercase());
        let ends = self.after.is_empty() || edge::begins_with_line_end(self.after);
        let front = front.trim_end_matches([' ', '\t']);
        let front = front.strip_suffix("export").unwrap_or(front).trim_end_matches([' ', '\t']);
        let alone = ends && (front.is_empty() || edge::ends_with_line_end(front));
        let code = self.after.starts_with(['(', '[', '<', ':', '{', '=']);
        !code && (shouted || alone)
    }
}

/// Does the value name itself, as identifiers do: `userPassword`?
fn names_itself(value: &str) -> bool {
    let lower = value.to_ascii_lowercase();
    ["password", "passwd", "secret", "token"].iter().any(|word| lower.contains(word))
}

fn is_mixed(value: &str) -> bool {
    let has = |is: fn(&u8) -> bool| value.as_bytes().iter().any(is);
    has(u8::is_ascii_digit) && has(u8::is_ascii_alphabetic)
}

/// Does it consist of words, as identifiers do? Random text changes between small letters, capitals
/// and digits every other character.
fn is_words(value: &str) -> bool {
    /// The shortest average length of words; in random text it is half of that.
    const WORD: usize = 3;
    let digits = value.bytes().filter(u8::is_ascii_digit).count();
    let (mut words, mut letters, mut before) = (0, 0, b'.');
    for byte in value.bytes() {
        let begins = byte.is_ascii_alphabetic()
            && (!before.is_ascii_alphabetic()
                || (before.is_ascii_lowercase() && byte.is_ascii_uppercase()));
        words += usize::from(begins);
        letters += usize::from(byte.is_ascii_alphabetic());
        before = byte;
    }
    letters >= WORD * words.max(1) && digits * 5 <= value.len() && reads_well(value)
}

/// Do its letters follow each other as in words? In our own documentation and code 96 of 100 letter
/// pairs are in this table, in random text every third.
fn reads_well(value: &str) -> bool {
    let is_pair = |pair: &&[u8]| match pair {
        [first, second] => {
            let begins_word = first.is_ascii_lowercase() && second.is_ascii_uppercase();
            first.is_ascii_alphabetic() && second.is_ascii_alphabetic() && !begins_word
        }
        _ => false,
    };
    let is_known = |pair: &&[u8]| {
        let first = usize::from(pair[0].to_ascii_lowercase() - b'a');
        FOLLOWERS[first].as_bytes().contains(&pair[1].to_ascii_lowercase())
    };
    let pairs = value.as_bytes().windows(2).filter(is_pair);
    pairs.clone().filter(is_known).count() * 4 >= pairs.count() * 3
}

/// The letters that follow each letter in words.
const FOLLOWERS: [&str; 26] = [
    "bcdgiklmnprstuy",
    "aelouy",
    "aehklort",
    "aeiorsy",
    "acdefglmnpqrstvwxy",
    "ailnort",
    "aeiors",
    "aeio",
    "acdefglmnoprstvz",
    "s",
    "eis",
    "adefilostu",
    "aeimopu",
    "acdefgiknostuw",
    "bcdfiklmnoprstuvw",
    "aehiloprtuw",
    "u",
    "acdegikmnorstuy",
    "acehikopstuw",
    "acdehiorstuy",
    "bceglmnprst",
    "aei",
    "aehinors",
    "t",
    "st",
    "e",
];

/// Is it a documentation placeholder?
fn is_made_up(value: &str) -> bool {
    let lower = value.to_ascii_lowercase();
    let words =
        ["your", "example", "placeholder", "changeme", "dummy", "sample", "xxxx", "1234567"];
    words.iter().any(|word| lower.contains(word))
}

/// Does it refer to a value elsewhere: a variable, a template, a file, or dots?
fn is_stand_in(value: &str) -> bool {
    let mut chars = value.chars();
    let (first, second) = (chars.next(), chars.next());
    let variable = first == Some('$')
        && second.is_some_and(|second| second.is_ascii_alphanumeric() || "{(_".contains(second));
    let of_windows = value.len() > 2 && first == Some('%') && value.ends_with('%');
    let file = ["/", "./", "../", "~/"].iter().any(|prefix| value.starts_with(prefix));
    let template = ["[redacted:", "${", "{{", "<%", "%(", "process.env", "os.environ", "getenv"];
    let mask = first.is_some_and(|first| value.chars().all(|other| other == first));
    // A variable or constant: DB_PASSWORD.
    let upper = |byte: u8| byte.is_ascii_uppercase() || byte.is_ascii_digit() || byte == b'_';
    let name = value.contains('_') && value.bytes().all(upper);
    variable
        || of_windows
        || name
        || file
        || mask
        || (value.starts_with('<') && value.ends_with('>'))
        || template.iter().any(|mark| value.contains(mark))
}
