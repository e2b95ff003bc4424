//! What is known of every format. `lib.rs` lists them, and says how another is added.

use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;

use stepwell::log::Head;

use crate::read::reader::{Homes, Probe, Reader};
use crate::write::writer::{Successor, Writer};

/// What there is to know of a format.
pub struct Entry {
    /// The word for it, which is also the system in a session's source.
    pub name: &'static str,
    /// Other words for it, such as the ending of its files.
    pub aliases: &'static [&'static str],
    /// Whose it is, for people.
    pub title: &'static str,
    /// Reads it.
    pub reader: Option<&'static dyn Reader>,
    /// Writes it.
    pub writer: Option<&'static dyn Writer>,
}

/// One of the formats.
#[derive(Clone, Copy)]
pub struct Format(pub(crate) &'static Entry);

impl Format {
    /// Every format.
    pub fn all() -> impl Iterator<Item = Self> {
        crate::FORMATS.iter().map(|entry| Self(entry))
    }

    /// The word for it.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        self.0.name
    }

    /// Whose it is, for people.
    #[must_use]
    pub fn title(self) -> &'static str {
        self.0.title
    }

    /// Reads it, if it can be read.
    #[must_use]
    pub fn reader(self) -> Option<&'static dyn Reader> {
        self.0.reader
    }

    /// Writes it, if it can be written.
    #[must_use]
    pub fn writer(self) -> Option<&'static dyn Writer> {
        self.0.writer
    }

    /// The agent that goes on with sessions of others in this format, if there is one.
    #[must_use]
    pub fn successor(self) -> Option<Successor> {
        self.0.writer?.successor()
    }

    /// The format in which the same agent takes up this session: Strands reads workflows in another
    /// one than conversations.
    #[must_use]
    pub fn for_session(self, head: &Head) -> Self {
        let Some(agent) = self.successor().map(|it| it.agent) else { return self };
        let fits = |it: &Successor| it.agent == agent && it.takes.is_for(head);
        Self::all().find(|it| it.successor().as_ref().is_some_and(fits)).unwrap_or(self)
    }

    /// The places where its system keeps sessions.
    #[must_use]
    pub fn places(self, homes: &Homes<'_>) -> Vec<PathBuf> {
        self.0.reader.map(|reader| reader.places(homes)).unwrap_or_default()
    }

    /// The format of something on disk, and what is to be read for it.
    #[must_use]
    pub fn of(probe: &Probe) -> Option<(Self, PathBuf)> {
        Self::all().find_map(|format| Some((format, format.0.reader?.recognise(probe)?)))
    }
}

impl PartialEq for Format {
    fn eq(&self, other: &Self) -> bool {
        self.0.name == other.0.name
    }
}

impl Eq for Format {}

impl fmt::Debug for Format {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0.name)
    }
}

impl fmt::Display for Format {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.0.name)
    }
}

/// The text names no format.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnknownFormat(pub String);

impl fmt::Display for UnknownFormat {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<_> = crate::FORMATS.iter().map(|entry| entry.name).collect();
        write!(f, "{:?} is not a format; expected one of: {}", self.0, names.join(", "))
    }
}

impl std::error::Error for UnknownFormat {}

impl FromStr for Format {
    type Err = UnknownFormat;

    fn from_str(text: &str) -> Result<Self, UnknownFormat> {
        let named = |entry: &&&Entry| entry.name == text || entry.aliases.contains(&text);
        crate::FORMATS
            .iter()
            .find(named)
            .map(|entry| Self(entry))
            .ok_or_else(|| UnknownFormat(text.to_owned()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_word_means_one_format() {
        let words: Vec<&str> = crate::FORMATS
            .iter()
            .flat_map(|entry| std::iter::once(entry.name).chain(entry.aliases.iter().copied()))
            .collect();
        for word in &words {
            assert_eq!(words.iter().filter(|other| other == &word).count(), 1, "{word}");
        }
        assert!(Format::all().all(|it| it.reader().is_some() || it.writer().is_some()));
    }
}
