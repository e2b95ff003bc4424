//! Lines from the middle of a private key: of one that is read in parts, nothing but its
//! look tells what it is. In a whole file such lines are something else, because a key there
//! has its beginning.

use std::borrow::Cow;

/// The rule's name.
pub(super) const NAME: &str = "key-lines";

/// What stands in their place.
const PLACEHOLDER: &str = "[redacted:key-lines]";

/// How long the lines of a key are: PEM's, OpenSSH's, PGP's.
const LENGTHS: std::ops::RangeInclusive<usize> = 64..=76;

/// The most that stands in front of a line that a search found: a file's name and a number.
const LONGEST_FRONT: usize = 120;

/// The text without such lines. Certificates look the same, and are public.
pub(super) fn redact(text: &str) -> Cow<'_, str> {
    // Nearly every text ends here.
    if text.len() < 2 * LENGTHS.start() || !lines(text).any(|line| material(line).is_some()) {
        return Cow::Borrowed(text);
    }
    let mut redacted = String::new();
    // What was copied ends at `copied`; the lines of a key begin at `start`, if one does.
    let (mut copied, mut at) = (0, 0);
    let mut block: Option<Block> = None;
    // Looked for once, not in every line: most texts hold none.
    let certificates = text.contains("CERTIFICATE");
    let mut public = false;
    for line in text.split_inclusive('\n') {
        let bare = line.trim_end_matches(['\n', '\r']);
        public |= certificates && bare.contains("BEGIN CERTIFICATE");
        let material = if public { None } else { material(bare) };
        public &= !(certificates && bare.contains("END CERTIFICATE"));
        match (&mut block, material) {
            (Some(block), Some(material)) => block.push(material),
            (None, Some(material)) => {
                let mut new = Block { start: at, ..Block::default() };
                new.push(material);
                block = Some(new);
            }
            (Some(open), None) => {
                if open.is_key() {
                    redacted.push_str(&text[copied..open.start]);
                    redacted.push_str(PLACEHOLDER);
                    // A key's last line is shorter.
                    copied =
                        if is_base64(bare.trim_end_matches('=')) { at + bare.len() } else { at };
                    if copied == at {
                        redacted.push('\n');
                    }
                }
                block = None;
            }
            (None, None) => {}
        }
        at += line.len();
    }
    if let Some(open) = block.filter(Block::is_key) {
        redacted.push_str(&text[copied..open.start]);
        redacted.push_str(PLACEHOLDER);
        copied = text.len();
    }
    if copied == 0 {
        return Cow::Borrowed(text);
    }
    redacted.push_str(&text[copied..]);
    Cow::Owned(redacted)
}

/// Lines that follow each other and may be a key's.
#[derive(Default)]
struct Block {
    start: usize,
    lines: usize,
    upper: bool,
    lower: bool,
    digit: bool,
}

impl Block {
    fn push(&mut self, material: &str) {
        self.lines += 1;
        for byte in material.bytes() {
            self.upper |= byte.is_ascii_uppercase();
            self.lower |= byte.is_ascii_lowercase();
            self.digit |= byte.is_ascii_digit();
        }
    }

    /// Digests in a column are of small letters and digits; one line alone may be anything.
    fn is_key(&self) -> bool {
        self.lines >= 2 && self.upper && self.lower && self.digit
    }
}

/// The lines of a text, without their ends.
fn lines(text: &str) -> impl Iterator<Item = &str> {
    let ends = memchr::memchr_iter(b'\n', text.as_bytes()).chain([text.len()]);
    let mut start = 0;
    ends.map(move |end| {
        let line = &text[start..end];
        start = end + 1;
        line.trim_end_matches('\r')
    })
}

/// What of a line may be a key's: all of it, or what stands behind a file's name and a number.
fn material(line: &str) -> Option<&str> {
    let tail = line.rsplit([':', '|', ' ', '\t', '→']).next().unwrap_or(line);
    let front = line.len() - tail.len();
    (LENGTHS.contains(&tail.len()) && front <= LONGEST_FRONT && is_base64(tail)).then_some(tail)
}

fn is_base64(text: &str) -> bool {
    let is = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'+' || byte == b'/';
    !text.is_empty() && text.bytes().all(is)
}
