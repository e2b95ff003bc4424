//! Why a flow goes no further for now.

use stepwell::StopReason;
use stepwell_agent::provider::Fault;

use crate::Error;
use crate::artifact::Unwritten;

/// Why a flow, or a part of it, goes no further for now.
#[derive(Debug)]
pub(crate) enum Halt {
    /// A person is asked.
    Paused,
    /// It did not begin: another part had failed by then.
    NotStarted,
    /// A limit was reached.
    Limit(StopReason),
    /// Something failed.
    Failed(NodeFailure),
    /// The user wants it to stop.
    Interrupted,
    /// What was done could not be recorded.
    Broken(Error),
}

/// What failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NodeFailure {
    /// Where, as it is recorded.
    pub node: String,
    /// What went wrong.
    pub what: String,
    /// What to do about it, if it was a model's call that failed.
    pub fault: Option<Fault>,
    /// What to do about it, if it was a file that could not be written.
    pub unwritten: Option<Unwritten>,
}

impl NodeFailure {
    /// Something that failed at a node.
    pub(crate) const fn at(node: String, what: String) -> Self {
        Self { node, what, fault: None, unwritten: None }
    }
}

impl std::fmt::Display for NodeFailure {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.node.is_empty() {
            true => f.write_str(&self.what),
            false => write!(f, "{}: {}", self.node, self.what),
        }
    }
}

impl Halt {
    /// How much it weighs against others: of parts that ran at once, the weightiest tells how
    /// the whole stands.
    const fn weight(&self) -> u8 {
        match self {
            Self::NotStarted => 0,
            Self::Paused => 1,
            Self::Limit(_) => 2,
            Self::Failed(_) => 3,
            Self::Interrupted => 4,
            Self::Broken(_) => 5,
        }
    }

    /// Does it keep what has not begun from beginning?
    #[must_use]
    pub(crate) const fn is_for_all(&self) -> bool {
        !matches!(self, Self::Paused)
    }

    /// The weightier of two; of equals, the first.
    #[must_use]
    pub(crate) fn or(self, other: Self) -> Self {
        if other.weight() > self.weight() { other } else { self }
    }
}

/// The results of parts that ran at once: all of them, or the weightiest reason why not.
pub(crate) fn all<T>(results: impl IntoIterator<Item = Result<T, Halt>>) -> Result<Vec<T>, Halt> {
    let (mut done, mut halt) = (Vec::new(), None::<Halt>);
    for result in results {
        match result {
            Ok(value) => done.push(value),
            Err(why) => {
                halt = Some(match halt {
                    Some(first) => first.or(why),
                    None => why,
                });
            }
        }
    }
    halt.map_or(Ok(done), Err)
}

impl From<stepwell::Error> for Halt {
    fn from(error: stepwell::Error) -> Self {
        Self::Broken(error.into())
    }
}
