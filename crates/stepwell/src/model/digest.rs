//! Digests of bodies, blobs, files and specs, and the chain over a session's log.
//!
//! All are BLAKE3, which is fast on every processor. Formats that need another algorithm compute it
//! themselves.

use std::fmt;
use std::str::FromStr;

use super::text::as_text;

/// A BLAKE3 digest. As text: 64 hex characters, as `b3sum` prints them.
#[derive(Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Digest([u8; 32]);

impl Digest {
    /// The digest to which the first event of a session is chained.
    pub const GENESIS: Self = Self([0; 32]);

    /// The digest of `bytes`.
    #[must_use]
    pub fn of(bytes: &[u8]) -> Self {
        Self(blake3::hash(bytes).into())
    }

    /// Is this the digest of `bytes`?
    #[must_use]
    pub fn matches(&self, bytes: &[u8]) -> bool {
        *self == Self::of(bytes)
    }

    /// The digest and length of everything that a reader yields.
    pub fn of_reader(from: impl std::io::Read) -> std::io::Result<(Self, u64)> {
        let mut hasher = DigestHasher::default();
        let size = std::io::copy(&mut { from }, &mut hasher)?;
        Ok((hasher.digest(), size))
    }

    /// A digest from its bytes.
    #[must_use]
    pub const fn from_bytes(bytes: [u8; 32]) -> Self {
        Self(bytes)
    }

    /// A digest from a column; `None` unless it has 32 bytes.
    #[must_use]
    pub fn from_slice(bytes: &[u8]) -> Option<Self> {
        bytes.try_into().ok().map(Self)
    }

    /// Its bytes.
    #[must_use]
    pub const fn as_bytes(&self) -> &[u8; 32] {
        &self.0
    }

    /// The digest of several fields. Each is preceded by its length, so no two different lists have
    /// the same digest.
    #[must_use]
    pub(crate) fn of_fields(fields: &[&[u8]]) -> Self {
        // A link of the chain fits here and is hashed in one call.
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
        let mut hash = blake3::Hasher::new();
        for field in fields {
            hash.update(&(field.len() as u64).to_le_bytes()).update(field);
        }
        Self(hash.finalize().into())
    }
}

/// Computes the digest of bytes that arrive in pieces.
#[derive(Clone, Debug, Default)]
pub struct DigestHasher(blake3::Hasher);

impl DigestHasher {
    /// Adds bytes.
    pub fn update(&mut self, bytes: &[u8]) {
        self.0.update(bytes);
    }

    /// The digest of all bytes so far.
    #[must_use]
    pub fn digest(&self) -> Digest {
        Digest(self.0.finalize().into())
    }
}

impl std::io::Write for DigestHasher {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.update(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
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

/// The text is not a digest.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is not a digest (64 hex characters)")]
pub struct NotADigest(pub String);

impl FromStr for Digest {
    type Err = NotADigest;

    fn from_str(text: &str) -> Result<Self, NotADigest> {
        let hash = blake3::Hash::from_hex(text).map_err(|_| NotADigest(text.to_owned()))?;
        Ok(Self(hash.into()))
    }
}

as_text!(Digest);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_digest_is_what_b3sum_prints() {
        let text = "6437b3ac38465133ffb63b75273a8db548c558465d79db03fd359c6cd5bd9d85";
        let digest = Digest::of(b"abc");
        assert_eq!(digest.to_string(), text);
        assert_eq!(text.parse(), Ok(digest));
        assert_eq!(Digest::of_reader(&b"abc"[..]).unwrap(), (digest, 3));
        assert_eq!(Digest::from_slice(digest.as_bytes()), Some(digest));
        assert_eq!(Digest::from_slice(&[0; 31]), None);
        assert!(digest.matches(b"abc") && !digest.matches(b"abd"));
        assert!("ba78".parse::<Digest>().is_err());
        assert!("é".repeat(32).parse::<Digest>().is_err());
    }

    #[test]
    fn moving_a_byte_between_fields_changes_the_digest() {
        let of = Digest::of_fields;
        assert_ne!(of(&[b"ab", b"c"]), of(&[b"a", b"bc"]));
        // Long fields are hashed piece by piece, with the same result.
        let (long, short) = (vec![7; 300], [3; 4]);
        let mut flat = 300_u64.to_le_bytes().to_vec();
        flat.extend(&long);
        flat.extend(4_u64.to_le_bytes());
        flat.extend(short);
        assert_eq!(of(&[&long, &short]), Digest::of(&flat));
    }
}
