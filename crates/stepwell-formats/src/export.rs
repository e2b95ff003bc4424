//! Writing a session out, in any of the formats.

use std::fmt;
use std::io::Write;
use std::str::FromStr;

use stepwell::{Damage, SessionId, Stepwell};

use crate::Result;
use crate::archive::{self, Form};

/// How a session is written out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Format {
    /// An archive as one JSON object.
    Json,
    /// An archive as lines of JSON.
    Jsonl,
}

impl Format {
    /// Every format.
    pub const ALL: [Self; 2] = [Self::Json, Self::Jsonl];

    /// The word for it.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Json => "json",
            Self::Jsonl => "jsonl",
        }
    }
}

impl fmt::Display for Format {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

/// The text names no format.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is not a format; use json or jsonl")]
pub struct UnknownFormat(pub String);

impl FromStr for Format {
    type Err = UnknownFormat;

    fn from_str(text: &str) -> Result<Self, UnknownFormat> {
        Self::ALL
            .into_iter()
            .find(|format| format.as_str() == text)
            .ok_or_else(|| UnknownFormat(text.to_owned()))
    }
}

/// What an export wrote.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Exported {
    /// Sessions, those of subagents included.
    pub sessions: usize,
    /// Events that were read for it.
    pub events: u64,
    /// The sessions that could not be read to their end, and where they break off.
    pub damaged: Vec<(SessionId, Damage)>,
}

/// Writes a session out, with the sessions of its subagents. Of a damaged session, what can
/// be read.
pub fn export(
    well: &Stepwell,
    id: &SessionId,
    format: Format,
    to: &mut dyn Write,
) -> Result<Exported> {
    match format {
        Format::Json => archive::export(well, id, Form::Object, to),
        Format::Jsonl => archive::export(well, id, Form::Lines, to),
    }
}
