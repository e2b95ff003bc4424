//! What a run tells as it goes, and asks.

use std::time::Duration;

use stepwell::{Compacted, Message, Outcome, Recorded, SessionId, Spent, ToolCall};

use crate::context::plan::Why;
use crate::provider::Delta;

/// Sees what happens, and is asked for permission.
pub trait Watcher: Send {
    /// Something happened. What needs to be durable before anyone sees it already is.
    fn saw(&mut self, happening: Happening<'_>);

    /// May this call run? Whoever waits for an answer looks now and then whether it is
    /// still wanted: `is_over` says when the run is to stop.
    fn ask(&mut self, question: &Question<'_>, is_over: &dyn Fn() -> bool) -> Reply;
}

/// A call that may not run unasked.
#[derive(Debug)]
pub struct Question<'a> {
    /// The call.
    pub call: &'a ToolCall,
    /// What it would do, in one line.
    pub preview: &'a str,
    /// What it would change, line by line, where that can be told.
    pub detail: Option<String>,
}

/// What happens in a run.
#[derive(Debug)]
pub enum Happening<'a> {
    /// The model was asked so long ago, and nothing of its answer has come yet. Told again and
    /// again while that is so.
    Waiting(Duration),
    /// A piece of an answer, as it comes: not recorded yet, and perhaps never.
    Delta(Delta),
    /// An answer was recorded.
    Answered(&'a Message),
    /// A tool is about to run; what it does, in one line, without secrets.
    ToolStarted(&'a ToolCall, &'a str),
    /// A tool has run for so long; the last lines of what it wrote, without secrets. Told again and
    /// again while it runs.
    Running(&'a ToolCall, Duration, &'a str),
    /// A tool's result was recorded: how it ended, and what the model is told, without secrets.
    ToolFinished(&'a ToolCall, Outcome, &'a str),
    /// A tool was stopped in the middle; what becomes of it is for the next run to find.
    CutOff(&'a ToolCall),
    /// Something that the user should know.
    Notice(&'a str),
    /// That many steps are complete; what that cost, with subagents.
    Step(u64, &'a Spent),
    /// The conversation shrank, and why.
    Compacted(&'a Compacted, Why),
    /// An event was recorded.
    Recorded(&'a Recorded),
    /// Something happened in the session of a subagent.
    Below(&'a SessionId, &'a Happening<'a>),
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
    /// It may run or not, and so may every later call of this tool whose command or path is like
    /// this, in this session: `cargo test*`.
    Like {
        /// What they are like; see [`crate::permission::Rule`].
        pattern: String,
        /// May they run?
        allow: bool,
    },
    /// Nobody can be asked now: the run waits.
    Later,
}
