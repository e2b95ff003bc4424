//! Digests: of bodies, blobs, files and specs, and the chain over a session's log.
//!
//! Each digest carries its algorithm. What Stepwell alone reads (bodies, chains, blobs) is
//! hashed with BLAKE3, which is fast on every processor. What other programs know by SHA-256
//! (specs, files, exports) stays so, and so does everything that was recorded with it.

use std::fmt;
use std::str::FromStr;

use sha2::{Digest as _, Sha256};

use super::text::as_text;

/// How a digest was taken.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Algorithm {
    /// SHA-256: `sha256sum` prints the same.
    #[default]
    Sha256,
    /// BLAKE3: `b3sum` prints the same, without the word in front.
    Blake3,
}

/// A digest with its algorithm. As text, SHA-256 is 64 hex characters, and BLAKE3 is
/// `blake3:` and 64 hex characters.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Digest {
    /// The algorithm's tag, then the digest.
    tagged: [u8; 33],
}

/// What stands before the hex characters of a BLAKE3 digest.
const BLAKE3: &str = "blake3:";

/// The algorithms' numbers among multihashes.
const SHA256_TAG: u8 = 0x12;
const BLAKE3_TAG: u8 = 0x1e;

impl Default for Digest {
    fn default() -> Self {
        Self::GENESIS
    }
}

impl Digest {
    /// What the first event of a session is chained to.
    pub const GENESIS: Self = {
        let mut tagged = [0; 33];
        tagged[0] = SHA256_TAG;
        Self { tagged }
    };

    fn new(algorithm: Algorithm, bytes: &[u8; 32]) -> Self {
        let mut tagged = [0; 33];
        tagged[0] = match algorithm {
            Algorithm::Sha256 => SHA256_TAG,
            Algorithm::Blake3 => BLAKE3_TAG,
        };
        tagged[1..].copy_from_slice(bytes);
        Self { tagged }
    }

    /// The SHA-256 digest of `bytes`, as other programs know it.
    #[must_use]
    pub fn of(bytes: &[u8]) -> Self {
        Self::from_bytes(Sha256::digest(bytes).into())
    }

    /// The BLAKE3 digest of `bytes`, for what is Stepwell's own.
    #[must_use]
    pub fn blake3(bytes: &[u8]) -> Self {
        Self::new(Algorithm::Blake3, blake3::hash(bytes).as_bytes())
    }

    /// The digest of `bytes` by an algorithm.
    #[must_use]
    pub fn by(algorithm: Algorithm, bytes: &[u8]) -> Self {
        match algorithm {
            Algorithm::Sha256 => Self::of(bytes),
            Algorithm::Blake3 => Self::blake3(bytes),
        }
    }

    /// Is this the digest of `bytes`, by its own algorithm?
    #[must_use]
    pub fn matches(&self, bytes: &[u8]) -> bool {
        *self == Self::by(self.algorithm(), bytes)
    }

    /// How it was taken.
    #[must_use]
    pub const fn algorithm(&self) -> Algorithm {
        if self.tagged[0] == BLAKE3_TAG { Algorithm::Blake3 } else { Algorithm::Sha256 }
    }

    /// The SHA-256 digest of all that can be read, and how many bytes that were.
    pub fn of_reader(mut from: impl std::io::Read) -> std::io::Result<(Self, u64)> {
        let mut hash = Sha256::new();
        let mut buffer = vec![0; 64 << 10];
        let mut size = 0;
        loop {
            match from.read(&mut buffer) {
                Ok(0) => return Ok((Self::from_bytes(hash.finalize().into()), size)),
                Ok(len) => {
                    hash.update(&buffer[..len]);
                    size += len as u64;
                }
                Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
    }

    /// The SHA-256 digest that has these bytes.
    #[must_use]
    pub fn from_bytes(bytes: [u8; 32]) -> Self {
        Self::new(Algorithm::Sha256, &bytes)
    }

    /// The digest's bytes, without its algorithm.
    #[must_use]
    pub fn as_bytes(&self) -> &[u8; 32] {
        self.tagged.last_chunk().expect("33 bytes end in 32")
    }

    /// The digest as a store's column: 33 bytes, of which the first is the algorithm's tag, or
    /// the 32 of a SHA-256 digest, which had no tag before there was another algorithm.
    #[must_use]
    pub fn as_column(&self) -> &[u8] {
        match self.algorithm() {
            Algorithm::Sha256 => &self.tagged[1..],
            Algorithm::Blake3 => &self.tagged,
        }
    }

    /// The digest in a column; `None` if the column holds none.
    #[must_use]
    pub fn from_column(column: &[u8]) -> Option<Self> {
        let (algorithm, bytes) = match column {
            [BLAKE3_TAG, bytes @ ..] if bytes.len() == 32 => (Algorithm::Blake3, bytes),
            bytes => (Algorithm::Sha256, bytes),
        };
        Some(Self::new(algorithm, bytes.try_into().ok()?))
    }

    /// The digest of several fields, each preceded by its length, so that no two
    /// different lists of fields hash alike.
    #[must_use]
    pub(crate) fn of_fields(algorithm: Algorithm, fields: &[&[u8]]) -> Self {
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
            return Self::by(algorithm, flat);
        }
        let bytes: [u8; 32] = match algorithm {
            Algorithm::Sha256 => {
                let mut hash = Sha256::new();
                for field in fields {
                    hash.update((field.len() as u64).to_le_bytes());
                    hash.update(field);
                }
                hash.finalize().into()
            }
            Algorithm::Blake3 => {
                let mut hash = blake3::Hasher::new();
                for field in fields {
                    hash.update(&(field.len() as u64).to_le_bytes()).update(field);
                }
                hash.finalize().into()
            }
        };
        Self::new(algorithm, &bytes)
    }
}

impl fmt::Display for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.algorithm() == Algorithm::Blake3 {
            f.write_str(BLAKE3)?;
        }
        self.as_bytes().iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Debug for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// The text is not a digest.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is not a digest (64 hex characters of SHA-256, or of BLAKE3 behind \"blake3:\")")]
pub struct NotADigest(pub String);

impl FromStr for Digest {
    type Err = NotADigest;

    fn from_str(text: &str) -> Result<Self, NotADigest> {
        let (algorithm, hex) = match text.strip_prefix(BLAKE3) {
            Some(hex) => (Algorithm::Blake3, hex),
            None => (Algorithm::Sha256, text),
        };
        let mut bytes = [0; 32];
        let plain = hex.len() == 64 && hex.bytes().all(|b| b.is_ascii_hexdigit());
        if !plain {
            return Err(NotADigest(text.to_owned()));
        }
        for (byte, pair) in bytes.iter_mut().zip(hex.as_bytes().chunks_exact(2)) {
            let digit = |b: u8| char::from(b).to_digit(16).unwrap_or(0) as u8;
            *byte = digit(pair[0]) << 4 | digit(pair[1]);
        }
        Ok(Self::new(algorithm, &bytes))
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
        for algorithm in [Algorithm::Sha256, Algorithm::Blake3] {
            let of = |fields: &[&[u8]]| Digest::of_fields(algorithm, fields);
            assert_ne!(of(&[b"ab", b"c"]), of(&[b"a", b"bc"]));
            // Long fields are hashed piece by piece, and not otherwise.
            let (long, short) = (vec![7; 300], [3; 4]);
            let mut flat = 300_u64.to_le_bytes().to_vec();
            flat.extend(&long);
            flat.extend(4_u64.to_le_bytes());
            flat.extend(short);
            assert_eq!(of(&[&long, &short]), Digest::by(algorithm, &flat));
        }
    }

    #[test]
    fn a_blake3_digest_is_what_b3sum_prints_behind_its_name() {
        let text = "blake3:6437b3ac38465133ffb63b75273a8db548c558465d79db03fd359c6cd5bd9d85";
        let digest = Digest::blake3(b"abc");
        assert_eq!(digest.to_string(), text);
        assert_eq!(text.parse(), Ok(digest));
        assert!(digest.matches(b"abc") && !digest.matches(b"abd"));
        assert!(Digest::of(b"abc").matches(b"abc"));
    }

    #[test]
    fn a_column_says_which_algorithm_its_digest_has() {
        for digest in [Digest::of(b"abc"), Digest::blake3(b"abc"), Digest::GENESIS] {
            assert_eq!(Digest::from_column(digest.as_column()), Some(digest));
        }
        assert_eq!(Digest::of(b"abc").as_column(), Digest::of(b"abc").as_bytes());
        assert_eq!(Digest::blake3(b"abc").as_column().len(), 33);
        // A SHA-256 digest may begin with the tag's byte.
        let first = Digest::from_bytes([0x1e; 32]);
        assert_eq!(Digest::from_column(first.as_column()), Some(first));
        assert_eq!(Digest::from_column(&[0; 31]), None);
        assert_eq!(Digest::from_column(&[0; 33]), None);
    }
}
