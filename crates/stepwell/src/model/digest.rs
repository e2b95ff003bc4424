//! SHA-256 digests: of bodies, blobs and specs, and the chain over a session's log.

use std::fmt;
use std::str::FromStr;

use sha2::{Digest as _, Sha256};

use super::text::as_text;

/// A SHA-256 digest, written as 64 hex characters, so that `sha256sum` can check it.
#[derive(Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Digest([u8; 32]);

impl Digest {
    /// What the first event of a session is chained to.
    pub const GENESIS: Self = Self([0; 32]);

    /// The digest of `bytes`.
    #[must_use]
    pub fn of(bytes: &[u8]) -> Self {
        Self(Sha256::digest(bytes).into())
    }

    /// The digest of all that can be read, and how many bytes that were.
    pub fn of_reader(mut from: impl std::io::Read) -> std::io::Result<(Self, u64)> {
        let mut hash = Sha256::new();
        let mut buffer = vec![0; 64 << 10];
        let mut size = 0;
        loop {
            match from.read(&mut buffer) {
                Ok(0) => return Ok((Self(hash.finalize().into()), size)),
                Ok(len) => {
                    hash.update(&buffer[..len]);
                    size += len as u64;
                }
                Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
    }

    /// A digest read from a row.
    #[must_use]
    pub fn from_bytes(bytes: [u8; 32]) -> Self {
        Self(bytes)
    }

    /// The digest's bytes.
    #[must_use]
    pub fn as_bytes(&self) -> &[u8; 32] {
        &self.0
    }

    /// The digest of several fields, each preceded by its length, so that no two
    /// different lists of fields hash alike.
    #[must_use]
    pub(crate) fn of_fields(fields: &[&[u8]]) -> Self {
        // Those of a link of the chain fit here, and are hashed at once.
        let mut flat = [0; 256];
        let size: usize = fields.iter().map(|field| 8 + field.len()).sum();
        if let Some(flat) = flat.get_mut(..size) {
            let mut at = 0;
            for field in fields {
                flat[at..at + 8].copy_from_slice(&(field.len() as u64).to_le_bytes());
                flat[at + 8..at + 8 + field.len()].copy_from_slice(field);
                at += 8 + field.len();
            }
            return Self::of(flat);
        }
        let mut hash = Sha256::new();
        for field in fields {
            hash.update((field.len() as u64).to_le_bytes());
            hash.update(field);
        }
        Self(hash.finalize().into())
    }
}

impl fmt::Display for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Debug for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// The text is not 64 hex characters.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is not a SHA-256 digest (64 hex characters)")]
pub struct NotADigest(pub String);

impl FromStr for Digest {
    type Err = NotADigest;

    fn from_str(text: &str) -> Result<Self, NotADigest> {
        let mut bytes = [0; 32];
        let plain = text.len() == 64 && text.bytes().all(|b| b.is_ascii_hexdigit());
        if !plain {
            return Err(NotADigest(text.to_owned()));
        }
        for (byte, pair) in bytes.iter_mut().zip(text.as_bytes().chunks_exact(2)) {
            let digit = |b: u8| char::from(b).to_digit(16).unwrap_or(0) as u8;
            *byte = digit(pair[0]) << 4 | digit(pair[1]);
        }
        Ok(Self(bytes))
    }
}

as_text!(Digest);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_digest_is_what_sha256sum_prints() {
        let hex = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
        assert_eq!(Digest::of(b"abc").to_string(), hex);
        assert_eq!(hex.parse::<Digest>().unwrap(), Digest::of(b"abc"));
        assert_eq!(Digest::of_reader(&b"abc"[..]).unwrap(), (Digest::of(b"abc"), 3));
        assert!("ba78".parse::<Digest>().is_err());
        assert!("é".repeat(32).parse::<Digest>().is_err());
    }

    #[test]
    fn moving_a_byte_between_fields_changes_the_digest() {
        assert_ne!(Digest::of_fields(&[b"ab", b"c"]), Digest::of_fields(&[b"a", b"bc"]));
    }
}
