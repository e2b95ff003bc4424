//! What an append carries. All of it follows from a number, and its first event
//! names that number, so whoever reads it back knows what must stand there.

use serde::{Deserialize, Serialize};
use stepwell::{
    Digest, Event, EventId, FileChanged, FileState, Message, NewEvent, Part, SPILL_BYTES,
};

use crate::Dice;

/// The content of one append.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Load {
    /// The number that its texts follow from. Each append has its own.
    pub token: u64,
    /// What its events are.
    pub shape: Shape,
    /// Who appends it.
    pub by: String,
    /// The lease's epoch under which it is appended.
    pub epoch: u64,
}

/// What events an append carries.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Shape {
    /// One message.
    One,
    /// So many messages.
    Many(u8),
    /// One message whose text is so long that it spills into a blob.
    Spill,
    /// A message and a file event that names the blob [`bytes_of`] the token.
    File,
}

impl Load {
    /// Its events, under ids that follow from it.
    #[must_use]
    pub fn events(&self) -> Vec<NewEvent> {
        let mut dice = Dice::new(self.token);
        let mut said = |part: u8, length: u64| {
            let length = usize::try_from(length).unwrap_or(usize::MAX);
            let text = format!("{}\n{}", self.header(part), filler(dice.roll(), length));
            Event::from(Message::user(text))
        };
        let events: Vec<Event> = match self.shape {
            Shape::One => vec![said(0, 20 + self.token % 2_000)],
            Shape::Many(n) => (0..n).map(|part| said(part, self.token % 500)).collect(),
            Shape::Spill => {
                vec![said(0, SPILL_BYTES as u64 + self.token % 30_000)]
            }
            Shape::File => vec![said(0, 50), self.file()],
        };
        (0_u64..)
            .zip(events)
            .map(|(part, event)| {
                let name = format!("{} {part}", word_of(self.token));
                NewEvent::from(event).with_id(EventId::derived(name.as_bytes()))
            })
            .collect()
    }

    /// The load whose first event this is.
    #[must_use]
    pub fn begun_by(event: &Event) -> Option<Self> {
        let Event::Message(message) = event else {
            return None;
        };
        let Some(Part::Text(said)) = message.parts.first() else {
            return None;
        };
        let header = said.text.lines().next()?;
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
            after: FileState::File { blob: Digest::blake3(&bytes), mode: 0o644 },
            renamed_from: None,
        }
        .into()
    }
}

/// The word by which a search finds what carries this token.
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
    let mut dice = Dice::new(seed);
    let mut text = String::with_capacity(length + 10);
    while text.len() < length {
        let bits = dice.roll();
        text.extend((0..10).map(|n| {
            let letter = (bits >> (6 * n)) % 64;
            char::from(LETTERS[usize::try_from(letter).unwrap_or(0)])
        }));
    }
    text.truncate(length);
    text
}
