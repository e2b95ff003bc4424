//! A conversation as these readers tell it: messages, what each of them leaves over, and steps.

use std::path::Path;

use serde_json::Value;
use stepwell::model::{Image, Part, Restored, Rewound, Role, Scope, Text, Time};
use stepwell::{Message, Seq};

use crate::Result;
use crate::read::input::MAX_FILE_BYTES;
use crate::read::neutral::{Item, Sink, Warning};
use crate::read::steps::Steps;

/// A message, and what of it has no word here.
#[derive(Debug)]
pub(super) struct Spoken {
    pub(super) message: Message,
    /// As JSON; several, if several things of the framework became one message.
    pub(super) rest: Vec<String>,
}

/// A conversation that is being told.
pub(super) struct Conversation<'a> {
    pub(super) sink: &'a mut dyn Sink,
    system: &'static str,
    steps: Steps,
    last_at: Option<Time>,
    last: Seq,
}

impl<'a> Conversation<'a> {
    /// Of a session that has begun.
    pub(super) fn new(sink: &'a mut dyn Sink, system: &'static str) -> Self {
        Self { sink, system, steps: Steps::default(), last_at: None, last: Seq::FIRST }
    }

    /// Somebody says something. The answer is the place of the last thing that belongs to it.
    pub(super) fn say(&mut self, at: Option<Time>, spoken: Spoken) -> Result<Seq> {
        let step = self.steps.said(&spoken.message);
        self.push(Item::new(at, spoken.message))?;
        for rest in spoken.rest {
            self.push(Item::beside(self.system, at, rest))?;
        }
        if let Some(step) = step {
            self.push(Item::new(at, step))?;
        }
        Ok(self.last)
    }

    /// Something of the framework's that says nothing, kept at its place.
    pub(super) fn keep(&mut self, at: Option<Time>, data: String) -> Result<Seq> {
        self.push(Item::alone(self.system, at, data))?;
        Ok(self.last)
    }

    /// The conversation goes on from an earlier place.
    pub(super) fn go_back(&mut self, at: Option<Time>, to: Seq) -> Result<()> {
        self.steps.went_back();
        self.push(Item::new(at, Rewound { to, scope: Scope::Chat, restored: Restored::default() }))
    }

    /// All is told; `state` is what else the framework keeps of the session.
    pub(super) fn end(mut self, state: Option<String>) -> Result<()> {
        if let Some(state) = state {
            self.push(Item::of_session(self.system, state))?;
        }
        let status = self.steps.status();
        self.push(Item::new(self.last_at, status))?;
        self.sink.end()
    }

    fn push(&mut self, item: Item) -> Result<()> {
        self.last_at = item.at.max(self.last_at);
        self.last = self.sink.push(item)?;
        Ok(())
    }
}

/// Something was not as it should be.
pub(super) fn warning(path: &Path, what: impl Into<String>) -> Warning {
    Warning { place: path.display().to_string(), what: what.into() }
}

/// Is a value of that many bytes too long to be read?
pub(super) fn is_too_long(bytes: i64) -> bool {
    u64::try_from(bytes).is_ok_and(|bytes| bytes > MAX_FILE_BYTES)
}

/// A moment of so many seconds, if it is one.
pub(super) fn seconds(seconds: f64) -> Option<Time> {
    // Beyond this a number of microseconds is not exact, and no clock was ever set.
    (seconds > 0.0 && seconds < 9.0e9).then(|| {
        #[expect(clippy::cast_possible_truncation, reason = "it was bounded")]
        Time::from_micros((seconds * 1e6).round() as i64)
    })
}

/// The first thing that a user said, of some messages.
pub(super) fn task_of<'a>(mut messages: impl Iterator<Item = &'a Message>) -> Option<String> {
    messages.find(|message| message.role == Role::User).map(Message::text)
}

pub(super) fn thinking(text: &str) -> Part {
    Part::Thinking(Text { text: text.to_owned(), opaque: None })
}

/// A picture: its bytes in base64 or its address, which may hold the bytes.
pub(super) fn picture(media_type: &str, data: &str) -> Part {
    let bytes = data.strip_prefix("data:").and_then(|rest| rest.split_once(";base64,"));
    let (media_type, data) = bytes.unwrap_or((media_type, data));
    Part::Image(Image { media_type: media_type.to_owned(), data: data.to_owned(), opaque: None })
}

/// A text in an object.
pub(super) fn text<'a>(object: &'a Value, name: &str) -> Option<&'a str> {
    object.get(name).and_then(Value::as_str)
}

/// A number of tokens in an object.
pub(super) fn tokens(object: &Value, name: &str) -> u64 {
    object.get(name).and_then(Value::as_u64).unwrap_or_default()
}

/// Has an object no other fields than these?
pub(super) fn has_only(object: &Value, names: &[&str]) -> bool {
    object.as_object().is_some_and(|it| it.keys().all(|name| names.contains(&name.as_str())))
}
