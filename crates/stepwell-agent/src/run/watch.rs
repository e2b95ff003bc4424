//! What a run tells as it goes, and asks.

use stepwell::{Message, Recorded, Spent, ToolCall};

use crate::provider::Delta;
use crate::tool::Done;

/// Sees what happens, and is asked for permission.
pub trait Watcher: Send {
    /// Something happened. What needs to be durable before anyone sees it already is.
    fn saw(&mut self, happening: Happening<'_>);

    /// May this call run?
    fn ask(&mut self, call: &ToolCall, preview: &str) -> Reply;
}

/// What happens in a run.
#[derive(Debug)]
pub enum Happening<'a> {
    /// A piece of an answer, as it comes: not recorded yet, and perhaps never.
    Delta(Delta),
    /// An answer was recorded.
    Answered(&'a Message),
    /// A tool is about to run; what it does, in one line.
    ToolStarted(&'a ToolCall, &'a str),
    /// A tool's result was recorded.
    ToolFinished(&'a ToolCall, &'a Done),
    /// That many steps are complete.
    Step(u64, &'a Spent),
    /// An event was recorded.
    Recorded(&'a Recorded),
}

/// What a person says to a call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reply {
    /// It may run.
    Yes,
    /// It may not, and why.
    No(String),
    /// It may run, and so may every later call of this tool in this session.
    Always,
    /// Neither it nor any later call of this tool in this session may.
    Never,
    /// Nobody can be asked now: the run waits.
    Later,
}
