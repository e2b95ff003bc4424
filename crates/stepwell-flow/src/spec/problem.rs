//! Problems of a spec, and their positions in its file.

use std::fmt;

/// A position in a file. Both numbers count from 1, as in editors.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize)]
pub struct Position {
    /// The line.
    pub line: u64,
    /// The column, in characters.
    pub column: u64,
}

impl fmt::Display for Position {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.line, self.column)
    }
}

/// One part of a path to a value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Segment {
    /// A key of a mapping.
    Key(String),
    /// An index into a list, from 0.
    Index(usize),
}

impl From<&str> for Segment {
    fn from(key: &str) -> Self {
        Self::Key(key.to_owned())
    }
}

impl From<usize> for Segment {
    fn from(index: usize) -> Self {
        Self::Index(index)
    }
}

/// The path from a spec's root to a value, such as `agents.writer.tools[0]`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Path(Vec<Segment>);

impl Path {
    /// The path to the root.
    #[must_use]
    pub const fn root() -> Self {
        Self(Vec::new())
    }

    /// The path to a part of this value.
    #[must_use]
    pub fn at(&self, segment: impl Into<Segment>) -> Self {
        let mut path = self.clone();
        path.0.push(segment.into());
        path
    }

    /// The same path with one more segment in front.
    pub(super) fn below(mut self, segment: Segment) -> Self {
        self.0.insert(0, segment);
        self
    }

    /// Its segments, from the root.
    #[must_use]
    pub fn segments(&self) -> &[Segment] {
        &self.0
    }
}

impl fmt::Display for Path {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (n, segment) in self.0.iter().enumerate() {
            match segment {
                Segment::Index(index) => write!(f, "[{index}]")?,
                Segment::Key(key) if n == 0 => f.write_str(key)?,
                Segment::Key(key) => write!(f, ".{key}")?,
            }
        }
        Ok(())
    }
}

/// An error or a warning about a spec.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// Its position in the file, if it has one.
    pub position: Option<Position>,
    /// The value that it is about.
    pub path: Path,
    /// What is wrong, and what was expected.
    pub what: String,
    /// A suggestion, such as a similar name.
    pub hint: Option<String>,
}

impl Problem {
    /// A problem with a value, without a position or a hint.
    pub fn new(path: Path, what: impl Into<String>) -> Self {
        Self { position: None, path, what: what.into(), hint: None }
    }

    /// Adds a suggestion.
    #[must_use]
    pub fn with_hint(mut self, hint: Option<String>) -> Self {
        self.hint = hint;
        self
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(position) = self.position {
            write!(f, "{position}: ")?;
        }
        if !self.path.segments().is_empty() {
            write!(f, "{}: ", self.path)?;
        }
        f.write_str(&self.what)?;
        match &self.hint {
            Some(hint) => write!(f, "; {hint}"),
            None => Ok(()),
        }
    }
}

/// Why a spec cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum SpecError {
    /// Its file cannot be read.
    #[error("{file}: {why}")]
    Unreadable {
        /// The file, as the user named it.
        file: String,
        /// The reason.
        why: String,
    },
    /// It is not a valid spec.
    #[error("{}", lines(.file, .problems))]
    Invalid {
        /// The spec, as the user named it.
        file: String,
        /// The problems in the order of the file. There is at least one.
        problems: Vec<Problem>,
    },
}

fn lines(file: &str, problems: &[Problem]) -> String {
    let lines = problems.iter().map(|problem| format!("{file}:{problem}"));
    lines.collect::<Vec<_>>().join("\n")
}
