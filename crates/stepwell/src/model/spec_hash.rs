//! The hash by which a flow's spec is identified.

use std::fmt;
use std::str::FromStr;

use sha2::{Digest as _, Sha256};

use super::digest::NotADigest;
use super::text::as_text;

/// SHA-256 of a spec's raw bytes, as other programs that run specs name them. As text: 64 hex
/// characters, as `sha256sum` prints them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SpecHash([u8; 32]);

impl SpecHash {
    /// The hash of a spec.
    #[must_use]
    pub fn of(spec: &[u8]) -> Self {
        Self(Sha256::digest(spec).into())
    }
}

impl fmt::Display for SpecHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl FromStr for SpecHash {
    type Err = NotADigest;

    fn from_str(text: &str) -> Result<Self, NotADigest> {
        let hash = blake3::Hash::from_hex(text).map_err(|_| NotADigest(text.to_owned()))?;
        Ok(Self(hash.into()))
    }
}

as_text!(SpecHash);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_spec_hash_is_what_sha256sum_prints() {
        let hex = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
        assert_eq!(SpecHash::of(b"abc").to_string(), hex);
        assert_eq!(hex.parse(), Ok(SpecHash::of(b"abc")));
    }
}
