//! Changes of binary files, in the form that git applies in both directions. Pure.

use std::fmt::Write as _;
use std::io::Write as _;

use flate2::Compression;
use flate2::write::ZlibEncoder;
use sha1::{Digest as _, Sha1};

/// Git's name for these bytes.
pub(crate) fn name(bytes: &[u8]) -> String {
    let mut hash = Sha1::new();
    hash.update(format!("blob {}\0", bytes.len()));
    hash.update(bytes);
    hash.finalize().iter().fold(String::new(), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}

/// Git's name for an absent file.
pub(crate) const NOTHING: &str = "0000000000000000000000000000000000000000";

/// The new bytes, and the old ones for the reverse patch.
pub(crate) fn patch(was: &[u8], is: &[u8]) -> String {
    format!("GIT binary patch\n{}{}", literal(is), literal(was))
}

/// How many packed bytes go on a line, which begins with a letter for their number.
const LINE: usize = 52;

fn literal(bytes: &[u8]) -> String {
    let mut text = format!("literal {}\n", bytes.len());
    for line in packed(bytes).chunks(LINE) {
        let count = u8::try_from(line.len()).expect("a line is short");
        let letter = if count <= 26 { b'A' + count - 1 } else { b'a' + count - 27 };
        text.push(char::from(letter));
        line.chunks(4).for_each(|four| text.push_str(&five(four)));
        text.push('\n');
    }
    text.push('\n');
    text
}

fn packed(bytes: &[u8]) -> Vec<u8> {
    let mut packer = ZlibEncoder::new(Vec::new(), Compression::default());
    let packed = packer.write_all(bytes).and_then(|()| packer.finish());
    packed.expect("memory takes all that is written")
}

/// Encodes up to four bytes as five characters.
fn five(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 85] =
        b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz!#$%&()*+-;<=>?@^_`{|}~";
    let mut four = [0; 4];
    four[..bytes.len()].copy_from_slice(bytes);
    let mut left = u32::from_be_bytes(four);
    let mut text = [0; 5];
    for digit in text.iter_mut().rev() {
        *digit = DIGITS[(left % 85) as usize];
        left /= 85;
    }
    text.iter().map(|digit| char::from(*digit)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_have_the_names_that_git_gives_them() {
        // According to `git hash-object`.
        assert_eq!(name(b""), "e69de29bb2d1d6434b8b29ae775ad8c2e48c5391");
        assert_eq!(name(b"hello\n"), "ce013625030ba8dba906f756967f9e9ca394464a");
    }

    #[test]
    fn lines_say_how_long_they_are() {
        assert_eq!((five(&[0]), five(&[255; 4])), ("00000".to_owned(), "|NsC0".to_owned()));
        let noise: Vec<u8> =
            (0..200_u32).map(|n| (n.wrapping_mul(2_654_435_761) >> 13) as u8).collect();
        let text = literal(&noise);
        let mut lines = text.lines().skip(1).filter(|line| !line.is_empty());
        assert!(lines.all(|line| {
            let letter = line.as_bytes()[0];
            let count = if letter <= b'Z' { letter - b'A' + 1 } else { letter - b'a' + 27 };
            (line.len() - 1) == usize::from(count).div_ceil(4) * 5
        }));
    }
}
