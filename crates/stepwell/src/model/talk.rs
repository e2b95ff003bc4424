//! What people and programs add to a session beside its conversation: messages to its runner,
//! stops, requests, settings, and records of other programs.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use super::digest::Digest;
use super::id::Lane;
use super::money::Money;
use super::phase::Phase;
use super::position::Epoch;

/// Who did something: a user and a host, by their own program's account, and the login under which
/// a server knows them.
///
/// The login is not part of the recorded event, so no client can forge it. The server keeps it
/// beside the event and adds it when the event is read. Two values are equal if their names are.
#[derive(Clone, Debug, Default)]
pub struct Who {
    /// A user and a host, such as `ann@laptop`.
    pub name: String,
    /// The login at the server from which the event was read.
    pub login: Option<String>,
}

impl Who {
    /// A user on a host.
    #[must_use]
    pub fn new(user: &str, host: &str) -> Self {
        Self::from(format!("{user}@{host}"))
    }

    /// The name with the login, if a server knows it. Without either, "someone".
    #[must_use]
    pub fn in_full(&self) -> String {
        match (&self.login, self.name.as_str()) {
            (Some(login), "") => format!("role {login}"),
            (Some(login), name) => format!("{name} (role {login})"),
            (None, "") => "someone".to_owned(),
            (None, name) => name.to_owned(),
        }
    }

    /// The name without the host.
    #[must_use]
    pub fn user(&self) -> &str {
        self.name.rsplit_once('@').map_or(&self.name, |(user, _)| user)
    }
}

impl PartialEq for Who {
    fn eq(&self, other: &Self) -> bool {
        self.name == other.name
    }
}

impl Eq for Who {}

impl From<String> for Who {
    fn from(name: String) -> Self {
        Self { name, login: None }
    }
}

impl From<&str> for Who {
    fn from(name: &str) -> Self {
        Self::from(name.to_owned())
    }
}

impl fmt::Display for Who {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.name)
    }
}

impl Serialize for Who {
    fn serialize<S: serde::Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        self.name.serialize(to)
    }
}

impl<'de> Deserialize<'de> for Who {
    fn deserialize<D: serde::Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        String::deserialize(from).map(Self::from)
    }
}

/// How long an approval holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Grant {
    /// For the one call.
    Once,
    /// For every call like it.
    Always,
}

/// An answer to a gate.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Answer {
    /// The call may run.
    Allow {
        /// How long that holds.
        scope: Grant,
    },
    /// The call may not run.
    Deny {
        /// The reason, which the model reads.
        reason: Option<String>,
        /// Does that hold for every call like it?
        never: bool,
    },
    /// Free text: an answer to a flow, or an approval from before answers were typed.
    Text(String),
}

impl Answer {
    /// Allows the one call.
    pub const ALLOW_ONCE: Self = Self::Allow { scope: Grant::Once };

    /// Denies the one call, with a reason.
    pub fn deny(reason: impl Into<String>) -> Self {
        Self::Deny { reason: Some(reason.into()), never: false }
    }

    /// Parses what a person typed: `yes`, `always`, `no`, `never` or a synonym. A colon and a
    /// reason may follow the last two. Anything else is free text.
    #[must_use]
    pub fn read(text: &str) -> Self {
        let (word, reason) = match text.split_once(':') {
            Some((word, reason)) => (word, Some(reason.trim().to_owned())),
            None => (text, None),
        };
        let reason = reason.filter(|reason| !reason.is_empty());
        match (word.trim(), reason) {
            ("yes" | "y" | "approve" | "approved" | "allow" | "once", None) => Self::ALLOW_ONCE,
            ("always", None) => Self::Allow { scope: Grant::Always },
            ("no" | "n" | "deny" | "denied", reason) => Self::Deny { reason, never: false },
            ("never", reason) => Self::Deny { reason, never: true },
            _ => Self::Text(text.to_owned()),
        }
    }

    /// The word that a person typed, normalized (`No.` is `no`), and the reason after a colon.
    #[must_use]
    pub fn word_and_reason(text: &str) -> (String, Option<String>) {
        let (word, reason) = text.split_once(':').unwrap_or((text, ""));
        let word = word.trim().trim_end_matches(['.', '!']).to_lowercase();
        (word, Some(reason.trim().to_owned()).filter(|reason| !reason.is_empty()))
    }

    /// Does it allow the call? Free text does only if it is nothing but such a word.
    #[must_use]
    pub fn allows(&self) -> bool {
        match self {
            Self::Allow { .. } => true,
            Self::Deny { .. } => false,
            Self::Text(text) => matches!(Self::read(text), Self::Allow { .. }),
        }
    }

    /// The reason, if there is one.
    #[must_use]
    pub fn reason(&self) -> Option<&str> {
        match self {
            Self::Allow { .. } => None,
            Self::Deny { reason, .. } => reason.as_deref(),
            Self::Text(text) => text.split_once(':').map(|(_, reason)| reason.trim()),
        }
    }

    /// The answer as text.
    #[must_use]
    pub fn text(&self) -> Cow<'_, str> {
        match self {
            Self::Allow { scope: Grant::Once } => "yes".into(),
            Self::Allow { scope: Grant::Always } => "always".into(),
            Self::Deny { reason, never } => {
                let word = if *never { "never" } else { "no" };
                match reason {
                    Some(reason) => format!("{word}: {reason}").into(),
                    None => word.into(),
                }
            }
            Self::Text(text) => text.into(),
        }
    }
}

impl fmt::Display for Answer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text())
    }
}

impl From<String> for Answer {
    fn from(text: String) -> Self {
        Self::Text(text)
    }
}

impl From<&str> for Answer {
    fn from(text: &str) -> Self {
        Self::Text(text.to_owned())
    }
}

/// An answer as JSON. Free text is a string, as every answer was in version 1 of the body.
#[derive(Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(untagged)]
pub(crate) enum AnswerForm {
    Text(String),
    Typed(TypedAnswer),
}

#[derive(Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub(crate) enum TypedAnswer {
    Allow {
        scope: Grant,
    },
    Deny {
        #[serde(default, skip_serializing_if = "Option::is_none")]
        reason: Option<String>,
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        never: bool,
    },
}

impl Serialize for Answer {
    fn serialize<S: serde::Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        let form = match self.clone() {
            Self::Text(text) => AnswerForm::Text(text),
            Self::Allow { scope } => AnswerForm::Typed(TypedAnswer::Allow { scope }),
            Self::Deny { reason, never } => AnswerForm::Typed(TypedAnswer::Deny { reason, never }),
        };
        form.serialize(to)
    }
}

impl<'de> Deserialize<'de> for Answer {
    fn deserialize<D: serde::Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        Ok(match AnswerForm::deserialize(from)? {
            AnswerForm::Text(text) => Self::Text(text),
            AnswerForm::Typed(TypedAnswer::Allow { scope }) => Self::Allow { scope },
            AnswerForm::Typed(TypedAnswer::Deny { reason, never }) => Self::Deny { reason, never },
        })
    }
}

/// Which tool calls need approval. The strictest mode comes first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum Mode {
    /// Every call.
    ConfirmAll,
    /// Calls that change something.
    ConfirmSensitive,
    /// None.
    Yolo,
}

impl Mode {
    /// Every mode, the strictest first.
    pub const ALL: [Self; 3] = [Self::ConfirmAll, Self::ConfirmSensitive, Self::Yolo];

    /// The mode's name.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::ConfirmAll => "confirm-all",
            Self::ConfirmSensitive => "confirm-sensitive",
            Self::Yolo => "yolo",
        }
    }
}

impl fmt::Display for Mode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

impl FromStr for Mode {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        Self::ALL.into_iter().find(|mode| mode.as_str() == text).ok_or_else(|| {
            let words = Self::ALL.map(Self::as_str).join(", ");
            format!("unknown mode {text:?}; expected one of: {words}")
        })
    }
}

/// Settings that hold from here on. They are recorded under the lease, so no one else can change
/// them in a shared store. An absent field stays unchanged.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct Settings {
    /// The agent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub agent: Option<String>,
    /// The model, as the user names it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// Which calls need approval.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mode: Option<Mode>,
    /// The dollars that the whole session may spend.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub budget: Option<Money>,
    /// How a flow continues.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub flow: Option<FlowSettings>,
    /// Are all earlier permissions revoked? Modes, "always" and approvals no longer count;
    /// prohibitions stay.
    #[serde(skip_serializing_if = "is_false")]
    pub revokes: bool,
    /// Who chose them.
    pub who: Who,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde hands over a reference")]
const fn is_false(flag: &bool) -> bool {
    !*flag
}

/// How a flow continues.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct FlowSettings {
    /// The digest of its spec, with the text of every file that the spec includes.
    pub spec: Digest,
    /// The spec's file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub path: Option<String>,
    /// The folder for its artifacts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output: Option<String>,
}

/// A message to the session's runner, or to its next one. It needs no lease. It reaches the model
/// when a runner delivers it: as a user message with its seq.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Said {
    /// The text.
    pub text: String,
    /// The conversation it is for.
    #[serde(default)]
    pub lane: Lane,
    /// Who said it.
    pub who: Who,
    /// Should it end the current model call?
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub now: bool,
}

/// Someone asked the runner to stop. It needs no lease.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct StopAsked {
    /// The lease of the addressed runner. Later runners ignore it.
    pub epoch: Epoch,
    /// Who asked.
    pub who: Who,
    /// The reason, for readers of the log.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

/// Someone asked the runner to change the work. It needs no lease; the runner records the outcome.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct WorkAsked {
    /// The lease of the addressed runner. Later runners ignore it.
    pub epoch: Epoch,
    /// Who asked.
    pub who: Who,
    /// The requested change.
    pub change: WorkChange,
}

/// A change of a session's work.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum WorkChange {
    /// Enter a phase.
    Phase(Phase),
    /// Make a checkpoint here.
    Checkpoint {
        /// The name.
        name: String,
        /// The checkpoint's metadata.
        #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
        metadata: BTreeMap<String, serde_json::Value>,
    },
    /// Record a question about the work.
    Ask {
        /// The question.
        text: String,
    },
    /// Answer a question about the work.
    Answer {
        /// The question's id.
        question: String,
        /// The answer.
        text: String,
    },
    /// Compact the conversation before the next model call.
    Compact,
}

/// Another program's data under a key. It is returned byte for byte and never reaches a model.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Record {
    /// The program's system, such as `langgraph`.
    pub system: String,
    /// The kind of data, in that system's terms.
    pub topic: String,
    /// Its key there. A later record with the same key does not remove an earlier one.
    pub key: String,
    /// The data.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub data: String,
    /// The text by which search finds it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
    /// Blobs that belong to it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub blobs: Vec<Digest>,
}

/// The most bytes of a record's system, topic and key together, since they are indexed.
pub const MAX_RECORD_KEY_BYTES: usize = 1_000;

impl Record {
    /// The topic under which an import keeps a session's original files.
    pub const ORIGINAL: &str = "original";

    /// Does it hold a part of an imported session's original file?
    #[must_use]
    pub fn keeps_original(&self) -> bool {
        self.topic == Self::ORIGINAL
    }

    /// The key by which a store finds it: `system/topic/key`.
    #[must_use]
    pub fn path(&self) -> String {
        format!("{}/{}/{}", self.system, self.topic, self.key)
    }

    /// Refuses a record that its key could not find.
    pub(crate) fn check(&self) -> Result<(), String> {
        for (what, text) in [("system", &self.system), ("topic", &self.topic)] {
            if text.is_empty() || text.contains('/') {
                return Err(format!("a record's {what} is not empty and has no /"));
            }
        }
        if self.path().len() > MAX_RECORD_KEY_BYTES {
            let limit = MAX_RECORD_KEY_BYTES;
            return Err(format!("a record's system, topic and key have at most {limit} bytes"));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_is_recorded_by_name_alone() {
        let known = Who { login: Some("team_ann".to_owned()), ..Who::new("ann", "laptop") };
        assert_eq!(serde_json::to_string(&known).unwrap(), r#""ann@laptop""#);
        let read: Who = serde_json::from_str(r#""ann@laptop""#).unwrap();
        assert_eq!((read.login.clone(), read), (None, known));
    }

    #[test]
    fn choices_become_typed_answers_and_other_text_stays_text() {
        for (text, answer) in [
            ("yes", Answer::ALLOW_ONCE),
            ("always", Answer::Allow { scope: Grant::Always }),
            ("deny: too risky", Answer::deny("too risky")),
            ("never", Answer::Deny { reason: None, never: true }),
            ("yes: but carefully", Answer::Text("yes: but carefully".to_owned())),
            ("ship it", Answer::Text("ship it".to_owned())),
        ] {
            assert_eq!(Answer::read(text), answer);
            let json = serde_json::to_string(&answer).unwrap();
            assert_eq!(serde_json::from_str::<Answer>(&json).unwrap(), answer);
        }
        // The form of version 1.
        let old = |text: &str| Answer::from(text);
        assert!(old("approve").allows() && !old("yes: but not b").allows() && !old("no").allows());
        assert_eq!(old("deny: too risky").reason(), Some("too risky"));
        assert_eq!(serde_json::to_string(&old("approve")).unwrap(), r#""approve""#);
    }

    #[test]
    fn modes_are_ordered_by_how_much_they_ask() {
        assert!(Mode::ConfirmAll < Mode::ConfirmSensitive && Mode::ConfirmSensitive < Mode::Yolo);
        for mode in Mode::ALL {
            assert_eq!(mode.as_str().parse(), Ok(mode));
            assert_eq!(serde_json::to_string(&mode).unwrap(), format!("{:?}", mode.as_str()));
        }
    }
}
