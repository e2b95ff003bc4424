//! Stepwell's own archive: sessions whole, to be read in again elsewhere.
//!
//! `docs/export.md` describes the form; these are the types behind it.

mod format;
mod log;
mod read;
mod restore;
mod scaffold;
mod track;
mod write;

use serde::{Deserialize, Serialize};
use stepwell::model::{Digest, Origin};
use stepwell::store::Damage;
use stepwell::{Recorded, Seq, SessionId};

pub(crate) use format::{JSON, JSONL};
pub(crate) use restore::import_as;
pub use restore::{Imported, import};
pub(crate) use track::compare;
pub(crate) use write::{Form, export};

/// The key that an archive begins with.
const MAGIC: &str = "stepwell_archive";

/// The version of the archive's form. A form that an older reader would misread gets
/// another.
pub const ARCHIVE_VERSION: u64 = 1;

/// How many events are read from a store at a time, to bound memory.
const PAGE: usize = 128;

/// One entry of an archive, as it is read.
#[derive(Debug)]
enum Entry {
    /// A session begins.
    Opening(Opening),
    /// Its next event, and how many bytes that takes in the archive.
    Event(Box<Recorded>, usize),
    /// Bytes that later events name.
    Blob(Blob),
    /// The session ends.
    Closing(Closing),
}

/// A session begins.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct Opening {
    id: SessionId,
    /// As its own `created` event has it, so that a reader knows which of the events
    /// to come are the session's own.
    origin: Origin,
}

impl Opening {
    /// The session's first own event; those before it came with the fork.
    fn own_from(&self) -> Seq {
        match &self.origin {
            Origin::Fork { at, .. } => at.next(),
            _ => Seq::FIRST,
        }
    }
}

/// Bytes that events name.
#[derive(Debug, Serialize, Deserialize)]
struct Blob {
    blob: Digest,
    base64: String,
}

/// A session ends.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
struct Closing {
    /// How many events it has. In one object its brackets say that it is whole.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    events: Option<u64>,
    /// How many of them say what a scrub put there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    scrubbed: Option<u64>,
    /// Why there are no more of them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    damage: Option<Break>,
}

/// Where a damaged session broke off.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct Break {
    seq: Seq,
    what: String,
}

impl From<Damage> for Break {
    fn from(Damage { seq, what }: Damage) -> Self {
        Self { seq, what }
    }
}
