//! The content of an append. All of it is derived from a number, and the first event contains
//! that number, so that a reader can check every event.

use serde::{Deserialize, Serialize};
use stepwell::log::SPILL_BYTES;
use stepwell::model::{Digest, EventId, FileChanged, FileState, Part};
use stepwell::{Event, Message, NewEvent};

use crate::Rng;

/// The content of one append.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Load {
    /// The number that its texts are derived from. Unique for each append.
    pub token: u64,
    /// The kind of its events.
    pub shape: Shape,
    /// Who appends it.
    pub by: String,
    /// The lease's epoch under which it is appended.
    pub epoch: u64,
}

/// The kind of an append's events.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Shape {
    /// One message.
    One,
    /// This many messages.
    Many(u8),
    /// One message with a text so long that it is stored as a blob.
    Spill,
    /// A message, and a file event that refers to the blob [`bytes_of`] the token.
    File,
}

impl Load {
    /// Its events, with ids that are derived from the token.
    #[must_use]
    pub fn events(&self) -> Vec<NewEvent> {
        let mut rng = Rng::new(self.token);
        let mut message = |part: u8, length: u64| {
            let length = usize::try_from(length).unwrap_or(usize::MAX);
            let text = format!("{}\n{}", self.header(part), filler(rng.next_u64(), length));
            Event::from(Message::user(text))
        };
        let events: Vec<Event> = match self.shape {
            Shape::One => vec![message(0, 20 + self.token % 2_000)],
            Shape::Many(n) => (0..n).map(|part| message(part, self.token % 500)).collect(),
            Shape::Spill => {
                vec![message(0, SPILL_BYTES as u64 + self.token % 30_000)]
            }
            Shape::File => vec![message(0, 50), self.file()],
        };
        (0_u64..)
            .zip(events)
            .map(|(part, event)| {
                let name = format!("{} {part}", word_of(self.token));
                NewEvent::from(event).with_id(EventId::derived(name.as_bytes()))
            })
            .collect()
    }

    /// The load that this is the first event of.
    #[must_use]
    pub fn from_first_event(event: &Event) -> Option<Self> {
        let Event::Message(message) = event else {
            return None;
        };
        let Some(Part::Text(part)) = message.parts.first() else {
            return None;
        };
        let header = part.text.lines().next()?;
        let (part, load) = header.split_once(' ')?.1.split_once(' ')?;
        serde_json::from_str(load).ok().filter(|_| part == "0")
    }

    fn header(&self, part: u8) -> String {
        let load = serde_json::to_string(self).expect("a load is plain data");
        format!("{} {part} {load}", word_of(self.token))
    }

    fn file(&self) -> Event {
        let bytes = bytes_of(self.token);
        FileChanged {
            path: format!("src/{}.rs", word_of(self.token)),
            before: FileState::Absent,
            after: FileState::File { blob: Digest::of(&bytes), mode: 0o644 },
            renamed_from: None,
        }
        .into()
    }
}

/// The word by which a search finds the events of this token.
#[must_use]
pub fn word_of(token: u64) -> String {
    format!("tok{token:016x}")
}

/// The blob of this token: 1 to 61 KB that hardly compress.
#[must_use]
pub fn bytes_of(token: u64) -> Vec<u8> {
    let length = 1_000 + usize::try_from(token % 60_000).unwrap_or(0);
    filler(!token, length).into_bytes()
}

/// Text of this length that hardly compresses.
fn filler(seed: u64, length: usize) -> String {
    const LETTERS: &[u8; 64] = b"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789 .";
    let mut rng = Rng::new(seed);
    let mut text = String::with_capacity(length + 10);
    while text.len() < length {
        let bits = rng.next_u64();
        text.extend((0..10).map(|n| {
            let letter = (bits >> (6 * n)) % 64;
            char::from(LETTERS[usize::try_from(letter).unwrap_or(0)])
        }));
    }
    text.truncate(length);
    text
}
