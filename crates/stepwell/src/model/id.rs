//! Identifiers of sessions, lanes and events.

use std::borrow::Cow;
use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use super::digest::Digest;
use super::text::as_text;
use super::time::Time;

/// The id of a session: 1 to 128 of `[A-Za-z0-9._-]`, not starting with a dot. So it is safe as a
/// file name, in a URL and on a command line.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SessionId(String);

/// The longest session id, lane and session name, in bytes.
pub const MAX_NAME_BYTES: usize = 128;

/// The form of new session ids.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum IdFormat {
    /// `YYYYMMDD-HHMMSS-` and 6 hex digits, UTC.
    #[default]
    Timestamp,
    /// This many hex digits, from 4 to 64. Other numbers are clamped to that range.
    Hex(u8),
    /// A random (version 4) UUID.
    Uuid,
    /// `agent-YYYYMMDD-HHMMSS-` and 8 hex digits, UTC, as GAIA-OPS names its agents.
    Agent,
}

impl SessionId {
    /// A new id of the given format, from a moment and 32 random bytes.
    #[must_use]
    pub fn generate(format: IdFormat, now: Time, random: [u8; 32]) -> Self {
        let hex = |digits: usize| Digest::from_bytes(random).to_string()[..digits].to_owned();
        Self(match format {
            IdFormat::Timestamp => format!("{}-{}", now.compact(), hex(6)),
            IdFormat::Agent => format!("agent-{}-{}", now.compact(), hex(8)),
            IdFormat::Hex(digits) => hex(usize::from(digits.clamp(4, 64))),
            IdFormat::Uuid => {
                let mut bytes = [0; 16];
                bytes.copy_from_slice(&random[..16]);
                uuid::Builder::from_random_bytes(bytes).into_uuid().to_string()
            }
        })
    }

    /// The id as text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The text after the last hyphen. In ids that begin with the time, it tells the sessions of
    /// one day apart.
    #[must_use]
    pub fn ending(&self) -> &str {
        ending(&self.0)
    }
}

/// The text after an id's last hyphen.
pub(crate) fn ending(id: &str) -> &str {
    id.rsplit('-').next().unwrap_or(id)
}

/// A text that cannot name a session or a lane.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{text:?} is not a valid {what}: {why}")]
pub struct InvalidName {
    /// The kind of name.
    pub what: &'static str,
    /// The text, truncated to 80 characters.
    pub text: String,
    /// The rule that it breaks.
    pub why: &'static str,
}

impl InvalidName {
    pub(crate) fn new(what: &'static str, text: &str, why: &'static str) -> Self {
        Self { what, text: text.chars().take(80).collect(), why }
    }
}

impl FromStr for SessionId {
    type Err = InvalidName;

    fn from_str(text: &str) -> Result<Self, InvalidName> {
        let allowed = |b: u8| b.is_ascii_alphanumeric() || b"._-".contains(&b);
        let refuse = |why| Err(InvalidName::new("session id", text, why));
        if text.is_empty() {
            refuse("it is empty")
        } else if text.len() > MAX_NAME_BYTES {
            refuse("it is longer than 128 characters")
        } else if text.starts_with('.') {
            refuse("it starts with a dot")
        } else if !text.bytes().all(allowed) {
            refuse("only A-Z a-z 0-9 . _ - are allowed")
        } else {
            Ok(Self(text.to_owned()))
        }
    }
}

impl fmt::Display for SessionId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.0)
    }
}

as_text!(SessionId);

/// One agent's conversation inside a session. A plain run has one, `main`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Lane(Cow<'static, str>);

/// The lane of nearly every message, which needs no allocation.
const MAIN: &str = "main";

impl Lane {
    /// The lane of a run with a single conversation.
    #[must_use]
    pub fn main() -> Self {
        Self(Cow::Borrowed(MAIN))
    }

    /// The lane's name.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl Default for Lane {
    fn default() -> Self {
        Self::main()
    }
}

impl FromStr for Lane {
    type Err = InvalidName;

    fn from_str(text: &str) -> Result<Self, InvalidName> {
        let refuse = |why| Err(InvalidName::new("lane", text, why));
        if text.is_empty() {
            refuse("it is empty")
        } else if text.len() > MAX_NAME_BYTES {
            refuse("it is longer than 128 bytes")
        } else if text.chars().any(char::is_control) {
            refuse("it holds a control character")
        } else if text == MAIN {
            Ok(Self::main())
        } else {
            Ok(Self(Cow::Owned(text.to_owned())))
        }
    }
}

impl fmt::Display for Lane {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.0)
    }
}

as_text!(Lane);

/// An id that a client gives to an event before sending it, so that a retry cannot record it twice.
/// Unique within a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct EventId(uuid::Uuid);

impl EventId {
    /// An id from 16 bytes: random ones, or the start of a digest of the event's content, so that
    /// importing it twice is harmless.
    #[must_use]
    pub fn from_bytes(bytes: [u8; 16]) -> Self {
        Self(uuid::Uuid::from_bytes(bytes))
    }

    /// The id derived from the digest of `bytes`.
    #[must_use]
    pub fn derived(bytes: &[u8]) -> Self {
        let mut front = [0; 16];
        front.copy_from_slice(&Digest::of(bytes).as_bytes()[..16]);
        Self::from_bytes(front)
    }

    /// The same as a UUID of version 5, which names what a digest was taken of. Qwen Code resumes
    /// no session under a name of another form.
    #[must_use]
    pub fn named(bytes: &[u8]) -> Self {
        let id = uuid::Builder::from_bytes(*Self::derived(bytes).as_bytes());
        let id = id.with_version(uuid::Version::Sha1).with_variant(uuid::Variant::RFC4122);
        Self(id.into_uuid())
    }

    /// The id's bytes.
    #[must_use]
    pub fn as_bytes(&self) -> &[u8; 16] {
        self.0.as_bytes()
    }
}

impl fmt::Display for EventId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_format_makes_a_valid_id() {
        let now: Time = "2026-02-23T14:30:22Z".parse().unwrap();
        let random: [u8; 32] = std::array::from_fn(|i| i as u8 + 0xa1);
        let made = |format| SessionId::generate(format, now, random).to_string();
        assert_eq!(made(IdFormat::Timestamp), "20260223-143022-a1a2a3");
        assert_eq!(made(IdFormat::Hex(8)), "a1a2a3a4");
        assert_eq!(made(IdFormat::Hex(0)).len(), 4);
        assert_eq!(made(IdFormat::Hex(200)).len(), 64);
        assert_eq!(made(IdFormat::Uuid), "a1a2a3a4-a5a6-47a8-a9aa-abacadaeafb0");
        assert!(made(IdFormat::Uuid).parse::<SessionId>().is_ok());
    }

    #[test]
    fn a_named_id_is_a_uuid_of_a_form_that_every_agent_accepts() {
        for name in 0..100_u8 {
            let id = EventId::named(&[name]).to_string();
            assert_eq!(&id[14..15], "5", "{id}");
            assert!("89ab".contains(&id[19..20]), "{id}");
            assert_eq!(id, EventId::named(&[name]).to_string());
        }
    }

    #[test]
    fn unsafe_ids_are_refused_with_the_rule_they_break() {
        let long = "x".repeat(200);
        for (text, rule) in [
            ("../x", "dot"),
            ("", "empty"),
            (&*long, "longer"),
            ("a\0b", "only"),
            ("a/b", "only"),
            ("é", "only"),
            (".hidden", "dot"),
            ("a b", "only"),
        ] {
            let error = text.parse::<SessionId>().unwrap_err();
            assert!(error.to_string().contains(rule), "{error}");
            assert!(serde_json::from_value::<SessionId>(text.into()).is_err());
        }
        assert!("x".repeat(128).parse::<SessionId>().is_ok());
        assert!("agent-20260108-180530-abc12345".parse::<SessionId>().is_ok());
    }

    #[test]
    fn lanes_may_be_any_plain_text() {
        assert!("search/écrivain 2".parse::<Lane>().is_ok());
        assert!("a\nb".parse::<Lane>().is_err());
        assert!("".parse::<Lane>().is_err());
    }

    #[test]
    fn an_event_id_round_trips() {
        let id = EventId::derived(b"x");
        let text = serde_json::to_string(&id).unwrap();
        assert_eq!(serde_json::from_str::<EventId>(&text).unwrap(), id);
        assert_eq!(EventId::from_bytes(*id.as_bytes()), id);
    }
}
