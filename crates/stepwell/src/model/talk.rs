//! What people and programs tell a session beside its conversation: words for its runner,
//! stops, wishes, settings, and the records of other programs.

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

/// Who did something: a user and a host, as their own program says, and the login that a
/// server knows them by.
///
/// The login is not part of what is recorded, so that no client can forge it: a server notes
/// it beside the event, and it is filled in when the event is read there. Two are equal if
/// their names are.
#[derive(Clone, Debug, Default)]
pub struct Who {
    /// Such as `ann@laptop`.
    pub name: String,
    /// The login of the server that the event was read from.
    pub login: Option<String>,
}

impl Who {
    /// A user on a host.
    #[must_use]
    pub fn new(user: &str, host: &str) -> Self {
        Self::from(format!("{user}@{host}"))
    }

    /// In full: with the login, if a server knows it. Nobody's name is "someone".
    #[must_use]
    pub fn in_full(&self) -> String {
        match (&self.login, self.name.as_str()) {
            (Some(login), "") => format!("role {login}"),
            (Some(login), name) => format!("{name} (role {login})"),
            (None, "") => "someone".to_owned(),
            (None, name) => name.to_owned(),
        }
    }

    /// The user, whichever host they were on.
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

/// How long a permission holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Grant {
    /// For what was asked.
    Once,
    /// For everything like it.
    Always,
}

/// An answer to a gate.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Answer {
    /// It may be done.
    Allow {
        /// How long that holds.
        scope: Grant,
    },
    /// It may not.
    Deny {
        /// The reason, for the model.
        reason: Option<String>,
        /// Is that so for everything like it?
        never: bool,
    },
    /// Words: what a flow asked for, or how approvals were recorded before they were typed.
    Text(String),
}

impl Answer {
    /// It may be done this once.
    pub const ALLOW_ONCE: Self = Self::Allow { scope: Grant::Once };

    /// It may not be done, and why.
    pub fn deny(reason: impl Into<String>) -> Self {
        Self::Deny { reason: Some(reason.into()), never: false }
    }

    /// Reads what a person typed: `yes`, `always`, `no`, `never`, and other words for these,
    /// the last two with a reason behind a colon if they like. Anything else is just words.
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

    /// The word that a person typed, however it is written (`No.`), and the reason behind a colon.
    #[must_use]
    pub fn word_and_reason(text: &str) -> (String, Option<String>) {
        let (word, reason) = text.split_once(':').unwrap_or((text, ""));
        let word = word.trim().trim_end_matches(['.', '!']).to_lowercase();
        (word, Some(reason.trim().to_owned()).filter(|reason| !reason.is_empty()))
    }

    /// Does it allow what was asked? Words do only if they are nothing but such a word.
    #[must_use]
    pub fn allows(&self) -> bool {
        match self {
            Self::Allow { .. } => true,
            Self::Deny { .. } => false,
            Self::Text(text) => matches!(Self::read(text), Self::Allow { .. }),
        }
    }

    /// Why, if it says so.
    #[must_use]
    pub fn reason(&self) -> Option<&str> {
        match self {
            Self::Allow { .. } => None,
            Self::Deny { reason, .. } => reason.as_deref(),
            Self::Text(text) => text.split_once(':').map(|(_, reason)| reason.trim()),
        }
    }

    /// The answer in words.
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

/// An answer as JSON. Words are a string, as every answer was in version 1 of the body.
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

/// When a person is asked before a tool runs. The strictest comes first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum Mode {
    /// Before every call.
    ConfirmAll,
    /// Before a call that changes something.
    ConfirmSensitive,
    /// Never.
    Yolo,
}

impl Mode {
    /// Every mode, the strictest first.
    pub const ALL: [Self; 3] = [Self::ConfirmAll, Self::ConfirmSensitive, Self::Yolo];

    /// Its word.
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
            format!("{text:?} is no mode; expected one of: {words}")
        })
    }
}

/// What a run works with from here on. It is recorded under the lease: in a shared store
/// nobody else can change it. What is absent stays as it was.
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
    /// When a person is asked.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mode: Option<Mode>,
    /// What the whole session may cost.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub budget: Option<Money>,
    /// What a flow goes on with.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub flow: Option<FlowSettings>,
    /// Does nothing count any more that was allowed before? Modes, "always" and approvals go;
    /// what was forbidden stays so.
    #[serde(skip_serializing_if = "is_false")]
    pub revokes: bool,
    /// Who chose this.
    pub who: Who,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde hands over a reference")]
const fn is_false(flag: &bool) -> bool {
    !*flag
}

/// What a flow goes on with.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct FlowSettings {
    /// The digest of its spec, with the texts of the files that the spec refers to.
    pub spec: Digest,
    /// The spec's file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub path: Option<String>,
    /// The folder that its artifacts go to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output: Option<String>,
}

/// A message for the session's runner, or its next one. It needs no lease. It is shown to a
/// model only when a runner takes it in: by a user message that names its seq.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Said {
    /// What was said.
    pub text: String,
    /// To which conversation.
    #[serde(default)]
    pub lane: Lane,
    /// Who said it.
    pub who: Who,
    /// Is the current model call to end for it?
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub now: bool,
}

/// Somebody asked the runner to stop. It needs no lease.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct StopAsked {
    /// The lease of the runner that is meant: a later one ignores it.
    pub epoch: Epoch,
    /// Who asked.
    pub who: Who,
    /// Why, for whoever reads the session later.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

/// Somebody asked the runner to change how the work stands. It needs no lease; the runner records
/// what comes of it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct WorkAsked {
    /// The lease of the runner that is meant: a later one ignores it.
    pub epoch: Epoch,
    /// Who asked.
    pub who: Who,
    /// What is to change.
    pub change: WorkChange,
}

/// A change of how a session's work stands.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum WorkChange {
    /// The work enters a phase.
    Phase(Phase),
    /// The present point gets a name.
    Checkpoint {
        /// The name.
        name: String,
        /// What is remembered with it.
        #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
        metadata: BTreeMap<String, serde_json::Value>,
    },
    /// A question about the work is noted.
    Ask {
        /// The question.
        text: String,
    },
    /// A question about the work is answered.
    Answer {
        /// The question's number.
        question: String,
        /// The answer.
        text: String,
    },
    /// The conversation is made shorter before the model is asked next.
    Compact,
}

/// Another program's own data under a key. It is given back byte for byte, and never shown
/// to a model.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Record {
    /// The program's system, such as `langgraph`.
    pub system: String,
    /// What kind of data it is, in that system's words.
    pub topic: String,
    /// Its name there. A later record of the same name does not remove an earlier one.
    pub key: String,
    /// The data.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub data: String,
    /// What a search finds it by.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
    /// Blobs that belong to it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub blobs: Vec<Digest>,
}

/// The most bytes of a record's system, topic and key together: an index holds them.
pub const MAX_RECORD_KEY_BYTES: usize = 1_000;

impl Record {
    /// The topic under which an import keeps the files that a session came in.
    pub const ORIGINAL: &str = "original";

    /// Does it keep a part of a file that the session came in?
    #[must_use]
    pub fn keeps_original(&self) -> bool {
        self.topic == Self::ORIGINAL
    }

    /// The name under which a store finds it: `system/topic/key`.
    #[must_use]
    pub fn path(&self) -> String {
        format!("{}/{}/{}", self.system, self.topic, self.key)
    }

    /// Why it cannot be found under its name, if so.
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
    fn answers_are_read_once_and_words_stay_words() {
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
        // As version 1 recorded them.
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
