//! Writing a session out, in any of the formats.

use std::fmt;
use std::io::Write;
use std::str::FromStr;

use stepwell::{Damage, SessionId, Stepwell};

use crate::archive::{self, Form};
use crate::document::Document;
use crate::{Error, Result, html, markdown};

/// How a session is written out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Format {
    /// An archive as one JSON object.
    Json,
    /// An archive as lines of JSON.
    Jsonl,
    /// The conversation, for any Markdown viewer.
    Markdown,
    /// The conversation, as one page that needs nothing else.
    Html,
}

impl Format {
    /// Every format.
    pub const ALL: [Self; 4] = [Self::Json, Self::Jsonl, Self::Markdown, Self::Html];

    /// The word for it.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Json => "json",
            Self::Jsonl => "jsonl",
            Self::Markdown => "markdown",
            Self::Html => "html",
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
#[error("{0:?} is not a format; use json, jsonl, markdown or html")]
pub struct UnknownFormat(pub String);

impl FromStr for Format {
    type Err = UnknownFormat;

    /// `md` is taken as `markdown`.
    fn from_str(text: &str) -> Result<Self, UnknownFormat> {
        let word = if text == "md" { "markdown" } else { text };
        Self::ALL
            .into_iter()
            .find(|format| format.as_str() == word)
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

/// Writes a session out: an archive with the sessions of its subagents, or the
/// conversation alone. Of a damaged session, what can be read.
pub fn export(
    well: &Stepwell,
    id: &SessionId,
    format: Format,
    to: &mut dyn Write,
) -> Result<Exported> {
    match format {
        Format::Json => archive::export(well, id, Form::Object, to),
        Format::Jsonl => archive::export(well, id, Form::Lines, to),
        Format::Markdown => page(well, id, to, markdown::render),
        Format::Html => page(well, id, to, html::render),
    }
}

fn page(
    well: &Stepwell,
    id: &SessionId,
    to: &mut dyn Write,
    render: fn(&Document) -> String,
) -> Result<Exported> {
    let standing = well.standing(id)?;
    let span = stepwell::Span { to: standing.head.seq, ..stepwell::Span::ALL };
    let slice = well.store().events(id, span)?;
    let events = slice.events.len() as u64;
    let damaged = slice.damage.iter().map(|damage| (id.clone(), damage.clone())).collect();
    let document = Document::of(&standing, slice);
    to.write_all(render(&document).as_bytes()).map_err(Error::Write)?;
    Ok(Exported { sessions: 1, events, damaged })
}
