//! Where in a spec something stands, and what is wrong there.

use std::fmt;

/// A place in a file, as editors count: both from 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize)]
pub struct Place {
    /// The line.
    pub line: u64,
    /// The character in the line.
    pub column: u64,
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.line, self.column)
    }
}

/// One step on the way to a value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Segment {
    /// Of a mapping.
    Key(String),
    /// Of a list, from 0.
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

/// The way from a spec's root to a value, such as `agents.writer.tools[0]`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Path(Vec<Segment>);

impl Path {
    /// The way to the root.
    #[must_use]
    pub const fn root() -> Self {
        Self(Vec::new())
    }

    /// One step further.
    #[must_use]
    pub fn at(&self, segment: impl Into<Segment>) -> Self {
        let mut path = self.clone();
        path.0.push(segment.into());
        path
    }

    /// The same value, seen from one step further up.
    pub(super) fn below(mut self, segment: Segment) -> Self {
        self.0.insert(0, segment);
        self
    }

    /// Its steps, from the root.
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

/// What is wrong with a spec, or does not do what one might think.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// Where, if it is anywhere.
    pub place: Option<Place>,
    /// Of what.
    pub path: Path,
    /// What is wrong, and what was expected.
    pub what: String,
    /// What was perhaps meant.
    pub hint: Option<String>,
}

impl Problem {
    /// A problem with a value.
    pub fn new(path: Path, what: impl Into<String>) -> Self {
        Self { place: None, path, what: what.into(), hint: None }
    }

    /// The same problem, with what was perhaps meant.
    #[must_use]
    pub fn hinting(mut self, hint: Option<String>) -> Self {
        self.hint = hint;
        self
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(place) = self.place {
            write!(f, "{place}: ")?;
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
