//! Events: the unchangeable records of a session's log, and their form in a store.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};

use super::attribute::Edited;
use super::gates::{Gate, GateAnswered, Permission};
use super::id::{EventId, Lane};
use super::message::{Message, Part, Role};
use super::origin::Created;
use super::position::Seq;
use super::rewinds::{Checkpoint, Compacted, Rewinding, Rewound, Undone};
use super::talk::{Answer, Record, Said, Settings, StopAsked, Who, WorkAsked};
use super::time::Time;
use super::tools::{ToolFinished, ToolStarted};
use super::work::{
    About, Artifact, Failure, FileChanged, FileState, Foreign, Node, PhaseChanged, Question,
    Scrubbed, StatusChanged, Step, Task,
};
use crate::model::digest::Digest;

/// Lists each kind once: its variant, its body, its name in a store.
macro_rules! kinds {
    ($($(#[doc = $doc:literal])* $variant:ident($body:ty) = $name:literal,)*) => {
        /// What an event says. An event of an unknown kind is kept, and skipped wherever events are
        /// interpreted.
        #[derive(Clone, Debug, PartialEq)]
        pub enum Event {
            $($(#[doc = $doc])* $variant($body),)*
            /// A kind, or a version of a kind, from a newer Stepwell.
            Unknown(Unknown),
        }

        /// The kinds of events that this version of Stepwell knows.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum Kind {
            $($(#[doc = $doc])* $variant,)*
        }

        impl Kind {
            /// Every kind.
            pub const ALL: &'static [Self] = &[$(Self::$variant),*];

            /// The kind's name in a store.
            #[must_use]
            pub const fn as_str(self) -> &'static str {
                match self { $(Self::$variant => $name,)* }
            }

            /// The kind with this name.
            #[must_use]
            pub fn find(name: &str) -> Option<Self> {
                Self::ALL.iter().copied().find(|kind| kind.as_str() == name)
            }

            /// A kind's name as a static text; only that of an unknown kind is copied.
            pub(crate) fn own_name(name: &str) -> Cow<'static, str> {
                match name {
                    $($name => Cow::Borrowed($name),)*
                    unknown => Cow::Owned(unknown.to_owned()),
                }
            }
        }

        impl Event {
            /// The kind's name in a store.
            #[must_use]
            pub fn kind(&self) -> &str {
                match self {
                    $(Self::$variant(_) => $name,)*
                    Self::Unknown(unknown) => &unknown.kind,
                }
            }

            /// The kind's name, as [`kind`](Self::kind), without a borrow of the event.
            pub(crate) fn own_kind(&self) -> Cow<'static, str> {
                match self {
                    $(Self::$variant(_) => Cow::Borrowed($name),)*
                    Self::Unknown(unknown) => Cow::Owned(unknown.kind.clone()),
                }
            }

            /// The version of the body's form.
            #[must_use]
            pub fn version(&self) -> u32 {
                match self {
                    Self::Unknown(unknown) => unknown.version,
                    // An answer in free text keeps the form of version 1.
                    Self::GateAnswered(answered) => match answered.answer {
                        Answer::Text(_) => BODY_VERSION,
                        _ => TYPED_ANSWER,
                    },
                    _ => BODY_VERSION,
                }
            }

            /// The body as JSON bytes.
            pub(crate) fn encode(&self) -> Result<Vec<u8>, serde_json::Error> {
                let mut bytes = Vec::new();
                self.encode_into(&mut bytes)?;
                Ok(bytes)
            }

            /// Appends the body's JSON to `bytes`.
            pub(crate) fn encode_into(&self, bytes: &mut Vec<u8>) -> Result<(), serde_json::Error> {
                // One allocation, with room for the usual number of escapes.
                let weight = self.weight();
                bytes.reserve(weight + weight / 8);
                match self {
                    $(Self::$variant(body) => serde_json::to_writer(bytes, body)?,)*
                    Self::Unknown(unknown) => bytes.extend_from_slice(unknown.body.as_bytes()),
                }
                Ok(())
            }

            /// Parses a body.
            pub(crate) fn decode(
                kind: &str,
                version: u32,
                body: &[u8],
            ) -> Result<Self, serde_json::Error> {
                // Checks UTF-8 once for the whole body, not again at each string.
                let body = std::str::from_utf8(body).map_err(serde::de::Error::custom)?;
                match (kind, version) {
                    ("gate_answered", TYPED_ANSWER) => {
                        serde_json::from_str(body).map(Self::GateAnswered)
                    }
                    $(($name, BODY_VERSION) => serde_json::from_str(body).map(Self::$variant),)*
                    _ => Ok(Self::Unknown(Unknown {
                        kind: kind.to_owned(),
                        version,
                        body: body.to_owned(),
                    })),
                }
            }
        }

        /// The schema of each kind's body.
        #[cfg(feature = "schema")]
        pub(crate) fn body_schemas(
            generator: &mut schemars::SchemaGenerator,
        ) -> Vec<(Kind, schemars::Schema)> {
            vec![$((Kind::$variant, generator.subschema_for::<$body>())),*]
        }

        $(impl From<$body> for Event {
            fn from(body: $body) -> Self {
                Self::$variant(body)
            }
        })*
    };
}

/// The version of every body's form. A kind whose form changes so that an older reader would
/// misread it gets its own number.
const BODY_VERSION: u32 = 1;

/// The version of a gate's answer that is more than free text.
const TYPED_ANSWER: u32 = 2;

/// The key of a scrub event that hides others.
pub(crate) const HIDDEN: &str = "hidden";

kinds! {
    /// The session begins, or a fork's own events begin.
    Created(Box<Created>) = "created",
    /// A message of a lane's conversation.
    Message(Message) = "message",
    /// A tool is about to run.
    ToolStarted(ToolStarted) = "tool_started",
    /// A tool has run.
    ToolFinished(ToolFinished) = "tool_finished",
    /// A step is complete.
    Step(Step) = "step",
    /// The run's status changed.
    Status(StatusChanged) = "status",
    /// The work entered another phase.
    Phase(PhaseChanged) = "phase",
    /// A file of the workspace changed.
    File(FileChanged) = "file",
    /// A flow's node changed.
    Node(Node) = "node",
    /// A question to a person.
    Gate(Gate) = "gate",
    /// The answer to a gate.
    GateAnswered(GateAnswered) = "gate_answered",
    /// A point got a name.
    Checkpoint(Checkpoint) = "checkpoint",
    /// A summary replaced old messages of the view.
    Compacted(Compacted) = "compacted",
    /// A rewind is about to change files.
    Rewinding(Rewinding) = "rewinding",
    /// The session was rewound.
    Rewound(Rewound) = "rewound",
    /// A compaction or a rewind was undone.
    Undone(Undone) = "undone",
    /// A remembered answer: a rule.
    Permission(Permission) = "permission",
    /// Bodies were erased.
    Scrubbed(Scrubbed) = "scrubbed",
    /// The run produced a file.
    Artifact(Artifact) = "artifact",
    /// A planned task, or a change of one.
    Task(Task) = "task",
    /// A question about the work, asked in its discuss phase.
    Question(Question) = "question",
    /// Something went wrong.
    Error(Failure) = "error",
    /// The session's attributes changed.
    Edited(Edited) = "edited",
    /// The settings of the session's runs.
    Settings(Settings) = "settings",
    /// A message to the runner, from anyone.
    Said(Said) = "said",
    /// Someone asked the runner to stop.
    StopAsked(StopAsked) = "stop_asked",
    /// Someone asked the runner to change the work.
    WorkAsked(WorkAsked) = "work_asked",
    /// Another program's data under a key.
    Record(Record) = "record",
    /// Another system's data for which Stepwell has no field.
    Foreign(Foreign) = "foreign",
}

/// An event of a kind or version that this Stepwell does not know.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unknown {
    /// Its kind.
    pub kind: String,
    /// The version of its body's form.
    pub version: u32,
    /// The body's JSON text, as it is stored.
    pub body: String,
}

impl Event {
    /// The role, if it is a message.
    #[must_use]
    pub fn role(&self) -> Option<Role> {
        match self {
            Self::Message(message) => Some(message.role),
            _ => None,
        }
    }

    /// The key by which the store finds the event without reading the log: a task's id, a file's
    /// path. Events of a conversation have none, so they cost no index entry.
    #[must_use]
    pub fn key(&self) -> Option<Cow<'_, str>> {
        let key: &str = match self {
            Self::File(file) => &file.path,
            Self::Node(node) => &node.key,
            Self::Gate(gate) => &gate.id,
            Self::GateAnswered(answer) => &answer.id,
            Self::Checkpoint(checkpoint) => &checkpoint.name,
            Self::Permission(permission) => &permission.rule,
            Self::Artifact(artifact) => &artifact.path,
            Self::Task(task) => &task.id,
            Self::Question(question) => &question.id,
            Self::Compacted(compacted) => compacted.lane.as_str(),
            Self::Foreign(foreign) if foreign.about == About::Session => &foreign.system,
            Self::Edited(edited) if !edited.goal.is_keep() => "goal",
            Self::Edited(edited) if edited.moves_pins() => "pins",
            Self::Said(said) => said.lane.as_str(),
            Self::Record(record) => return Some(Cow::Owned(record.path())),
            Self::Phase(_)
            | Self::Settings(_)
            | Self::StopAsked(_)
            | Self::WorkAsked(_)
            | Self::Rewinding(_)
            | Self::Rewound(_)
            | Self::Undone(_) => "",
            Self::Scrubbed(scrubbed) if scrubbed.hidden.is_empty() => "",
            Self::Scrubbed(_) => HIDDEN,
            _ => return None,
        };
        Some(Cow::Borrowed(key))
    }

    /// The lane it belongs to, if it is part of a conversation.
    #[must_use]
    pub fn lane(&self) -> Option<&Lane> {
        match self {
            Self::Message(message) => Some(&message.lane),
            Self::ToolStarted(started) => Some(&started.lane),
            Self::ToolFinished(finished) => Some(&finished.lane),
            Self::Step(step) => Some(&step.lane),
            Self::Compacted(compacted) => Some(&compacted.lane),
            _ => None,
        }
    }

    /// May it be appended without the lease? A name, an answer, a message, a stop or a request must
    /// reach a running session.
    #[must_use]
    pub const fn needs_no_lease(&self) -> bool {
        matches!(
            self,
            Self::Edited(_)
                | Self::GateAnswered(_)
                | Self::Said(_)
                | Self::StopAsked(_)
                | Self::WorkAsked(_)
        )
    }

    /// Does it always need the lease, even in a session of an external agent? Only the runner
    /// decides what a run may do.
    #[must_use]
    pub const fn always_needs_lease(&self) -> bool {
        matches!(self, Self::Settings(_) | Self::Permission(_))
    }

    /// Who did it, if its kind records that.
    #[must_use]
    pub fn who(&self) -> Option<&Who> {
        match self {
            Self::GateAnswered(answered) => Some(&answered.who),
            Self::Permission(permission) => permission.who.as_ref(),
            Self::Settings(settings) => Some(&settings.who),
            Self::Said(said) => Some(&said.who),
            Self::StopAsked(stop) => Some(&stop.who),
            Self::WorkAsked(asked) => Some(&asked.who),
            Self::Edited(edited) => edited.who.as_deref(),
            _ => None,
        }
    }

    /// Sets the login under which the server knows the event's author.
    pub(crate) fn sign(&mut self, login: Option<&str>) {
        let who = match self {
            Self::GateAnswered(answered) => &mut answered.who,
            // Without a login, a permission that names no one stays unchanged.
            Self::Permission(permission) if permission.who.is_none() && login.is_none() => return,
            Self::Permission(permission) => permission.who.get_or_insert_default(),
            Self::Settings(settings) => &mut settings.who,
            Self::Said(said) => &mut said.who,
            Self::StopAsked(stop) => &mut stop.who,
            Self::WorkAsked(asked) => &mut asked.who,
            Self::Edited(Edited { who: Some(who), .. }) => who,
            _ => return,
        };
        who.login = login.map(ToOwned::to_owned);
    }

    /// The newest version of a kind's body that this program knows.
    pub(crate) fn newest_version(kind: &str) -> u32 {
        if kind == Kind::GateAnswered.as_str() { TYPED_ANSWER } else { BODY_VERSION }
    }

    /// Does it hold JSON of any shape from the user?
    pub(crate) const fn holds_json(&self) -> bool {
        matches!(
            self,
            Self::Created(_)
                | Self::Edited(_)
                | Self::Node(_)
                | Self::Checkpoint(_)
                | Self::WorkAsked(_)
        )
    }

    /// Drops the long texts of an encoded event. The head and the lanes are folded without them.
    pub(crate) fn shed(&mut self) {
        match self {
            Self::Message(message) => message.parts = Vec::new(),
            Self::Foreign(foreign) => foreign.data = String::new(),
            Self::Record(record) => {
                record.data = String::new();
                record.text = None;
            }
            _ => {}
        }
    }

    /// The event without its contents, as a prune leaves it: enough to fold the head and the lanes.
    /// `None` for kinds that are not pruned.
    pub(crate) fn emptied(&self) -> Option<Self> {
        match self {
            Self::Record(Record { system, topic, .. }) => {
                let (system, topic) = (system.clone(), topic.clone());
                Some(Self::Record(Record { system, topic, ..Record::default() }))
            }
            Self::Message(message) => {
                Some(Self::Message(Message { parts: Vec::new(), ..message.clone() }))
            }
            _ => None,
        }
    }

    /// Did a prune empty it?
    pub(crate) fn is_emptied(&self) -> bool {
        match self {
            Self::Record(record) => {
                let Record { key, data, text, blobs, .. } = record;
                key.is_empty() && data.is_empty() && text.is_none() && blobs.is_empty()
            }
            Self::Message(message) => message.parts.is_empty(),
            _ => false,
        }
    }

    /// About how many bytes its body takes.
    #[must_use]
    pub fn weight(&self) -> usize {
        let texts = match self {
            Self::Message(message) => message.parts.iter().map(Part::weight).sum(),
            Self::Foreign(foreign) => foreign.data.len() + foreign.data.len() / 8,
            Self::Compacted(compacted) => compacted.summary.as_ref().map_or(0, String::len),
            Self::Said(said) => said.text.len(),
            Self::Record(record) => {
                record.data.len()
                    + record.data.len() / 8
                    + record.text.as_ref().map_or(0, String::len)
            }
            Self::Unknown(unknown) => unknown.body.len(),
            _ => 0,
        };
        200 + texts
    }

    /// The blobs that it names.
    #[must_use]
    pub fn blobs(&self) -> Vec<Digest> {
        let blob = |state: &FileState| match state {
            FileState::File { blob, .. } => Some(*blob),
            _ => None,
        };
        match self {
            Self::File(file) => {
                [blob(&file.before), blob(&file.after)].into_iter().flatten().collect()
            }
            Self::Record(record) => record.blobs.clone(),
            _ => Vec::new(),
        }
    }
}

impl From<Created> for Event {
    fn from(created: Created) -> Self {
        Self::Created(Box::new(created))
    }
}

/// An event before it is recorded.
#[derive(Clone, Debug, PartialEq)]
pub struct NewEvent {
    /// The client's id. Appending an event with the same id again records nothing.
    pub id: Option<EventId>,
    /// When it happened, if not now: an imported event keeps its time.
    pub at: Option<Time>,
    /// The event's kind and body.
    pub event: Event,
    /// Blobs that it names, stored in the same transaction. Also texts of the event that must be
    /// blobs, however short, because something else names their digest.
    pub attachments: Vec<Attachment>,
    /// Is it a copy from another session? Then the server does not sign it with the copier's login.
    pub copied: bool,
}

/// The bytes of a blob that an event names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Attachment {
    /// Their digest, by which the event names them.
    pub digest: Digest,
    /// The bytes.
    pub bytes: Vec<u8>,
}

impl Attachment {
    /// Bytes under their BLAKE3 digest.
    pub fn new(bytes: impl Into<Vec<u8>>) -> Self {
        let bytes = bytes.into();
        Self { digest: Digest::of(&bytes), bytes }
    }
}

impl<E: Into<Event>> From<E> for NewEvent {
    fn from(event: E) -> Self {
        Self { id: None, at: None, event: event.into(), attachments: Vec::new(), copied: false }
    }
}

impl NewEvent {
    /// The same event with a client's id.
    #[must_use]
    pub fn with_id(mut self, id: EventId) -> Self {
        self.id = Some(id);
        self
    }

    /// The same event with more attachments.
    #[must_use]
    pub fn with(mut self, attachments: impl IntoIterator<Item = Attachment>) -> Self {
        self.attachments.extend(attachments);
        self
    }

    /// The same event with a time of its own.
    #[must_use]
    pub fn at(mut self, at: Time) -> Self {
        self.at = Some(at);
        self
    }
}

/// A recorded event.
#[derive(Clone, Debug, PartialEq)]
pub struct Recorded {
    /// Its number in the log.
    pub seq: Seq,
    /// When it happened.
    pub at: Time,
    /// The client's id.
    pub id: Option<EventId>,
    /// The event's kind and body.
    pub event: Event,
}

// One event as JSON, for `log`, export and followers:
// {"seq":3,"at":"…","kind":"message","version":1,"body":{…}}.
#[derive(Serialize, Deserialize)]
struct Line<'a> {
    seq: Seq,
    at: Time,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    id: Option<EventId>,
    kind: Cow<'a, str>,
    version: u32,
    body: Box<serde_json::value::RawValue>,
}

impl Serialize for Recorded {
    fn serialize<S: serde::Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        use serde::ser::Error;
        let body = self.event.encode().map_err(S::Error::custom)?;
        let body = String::from_utf8(body).map_err(S::Error::custom)?;
        Line {
            seq: self.seq,
            at: self.at,
            id: self.id,
            kind: self.event.kind().into(),
            version: self.event.version(),
            body: serde_json::value::RawValue::from_string(body).map_err(S::Error::custom)?,
        }
        .serialize(to)
    }
}

impl<'de> Deserialize<'de> for Recorded {
    fn deserialize<D: serde::Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        use serde::de::Error;
        let line = Line::deserialize(from)?;
        let event = Event::decode(&line.kind, line.version, line.body.get().as_bytes());
        Ok(Self {
            seq: line.seq,
            at: line.at,
            id: line.id,
            event: event.map_err(D::Error::custom)?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_unknown_kind_keeps_its_bytes() {
        let body = br#"{"z":1,"a":[1.0,  2]}"#;
        let event = Event::decode("telepathy", 7, body).unwrap();
        assert_eq!(event.kind(), "telepathy");
        assert_eq!(event.version(), 7);
        assert_eq!(event.encode().unwrap(), body);
    }

    #[test]
    fn a_known_kind_of_a_newer_version_is_unknown() {
        let event = Event::decode("message", 2, b"{}").unwrap();
        assert!(matches!(event, Event::Unknown(_)));
    }

    #[test]
    fn a_known_kind_with_a_broken_body_is_an_error() {
        assert!(Event::decode("message", 1, b"{\"role\":").is_err());
    }

    #[test]
    fn an_event_is_one_json_object() {
        let line = Recorded {
            seq: Seq::new(3),
            at: Time::EPOCH,
            id: None,
            event: Message::user("hi").into(),
        };
        let json = serde_json::to_string(&line).unwrap();
        assert_eq!(
            json,
            r#"{"seq":3,"at":"1970-01-01T00:00:00Z","kind":"message","version":1,"body":{"lane":"main","role":"user","parts":[{"text":{"text":"hi"}}]}}"#
        );
        assert_eq!(serde_json::from_str::<Recorded>(&json).unwrap(), line);
    }
}
