//! Why a flow stops before its end.

use stepwell::StopReason;
use stepwell::model::NodeKey;
use stepwell_agent::provider::Fault;

use crate::Error;
use crate::artifact::Unwritten;

/// Why a flow, or a part of it, stops before its end.
#[derive(Debug)]
pub(crate) enum Halt {
    /// A question to a person has no answer yet.
    Paused,
    /// It did not start because another part had failed.
    NotStarted,
    /// A budget is used up.
    Limit(StopReason),
    /// Guided work ends with unfinished work.
    Left(Left),
    /// A node or an artifact failed.
    Failed(NodeFailure),
    /// The user interrupted.
    Interrupted,
    /// An event could not be recorded.
    Broken(Error),
}

/// The unfinished work when guided work ends early.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Left {
    /// The node that records it. A resume finds it done, and continues.
    pub(crate) key: NodeKey,
    /// The unfinished work.
    pub(crate) what: String,
}

/// A failed node or artifact.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NodeFailure {
    /// The key of the node as it is recorded, or `artifact PATH`.
    pub node: String,
    /// What went wrong.
    pub what: String,
    /// The kind of fault if a call of the model failed; it says what to do.
    pub fault: Option<Fault>,
    /// The reason if an artifact could not be written; it says what to do.
    pub unwritten: Option<Unwritten>,
}

impl NodeFailure {
    /// A failure at a node, with no known remedy.
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
    /// Its severity: of parts that ran at once, the most severe halt decides the flow's status.
    const fn severity(&self) -> u8 {
        match self {
            Self::NotStarted => 0,
            Self::Paused => 1,
            Self::Limit(_) | Self::Left(_) => 2,
            Self::Failed(_) => 3,
            Self::Interrupted => 4,
            Self::Broken(_) => 5,
        }
    }

    /// Whether it keeps other nodes from starting. A pause does not.
    #[must_use]
    pub(crate) const fn stops_flow(&self) -> bool {
        !matches!(self, Self::Paused)
    }

    /// The more severe of two; of equals, the first.
    #[must_use]
    pub(crate) fn or(self, other: Self) -> Self {
        if other.severity() > self.severity() { other } else { self }
    }
}

/// Collects the results of parts that ran at once: all of them, or the most severe halt.
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
