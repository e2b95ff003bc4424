//! What the terminal is told of a run: its own small type, so that it depends on no runtime.

use std::time::Duration;

use stepwell::model::{Outcome, ToolCall};
use stepwell::{Recorded, SessionId, Status};
use stepwell_agent::permission::Rule;

use crate::blanks::counted;
use crate::clean::Clean;

/// Something that happened in a run.
#[derive(Clone, Debug)]
pub enum Told {
    /// The run began; its session is this one.
    Began(SessionId),
    /// An event is on record.
    Recorded(Box<Recorded>),
    /// The model was asked so long ago, and has said nothing yet.
    Waiting(Duration),
    /// A piece of an answer, as it comes.
    Text(String),
    /// A piece of the model's thinking, as it comes.
    Thinking(String),
    /// What streamed of this answer is void: it broke off, and is asked for anew.
    Void,
    /// A tool runs.
    ToolStarted(ToolRun),
    /// A tool still runs.
    ToolOutput {
        /// The call.
        call: String,
        /// For how long.
        ran: Duration,
        /// The last lines of what it wrote.
        tail: Clean,
    },
    /// A tool is done.
    ToolFinished {
        /// The call.
        call: String,
        /// How it ended.
        outcome: ToolOutcome,
        /// What the model is told.
        output: Clean,
    },
    /// A step is complete, and so much was spent until now.
    Step {
        /// What the session cost, as it is shown.
        cost: Clean,
        /// How much of the model's window is used, in percent.
        context: Option<u8>,
    },
    /// A person is asked.
    Asked(Box<Question>),
    /// A question was answered, here or elsewhere.
    Answered {
        /// The session that asked.
        session: SessionId,
        /// The question's name.
        gate: String,
        /// The answer in words.
        answer: Clean,
        /// Who gave it.
        who: Clean,
        /// When, as it is shown.
        at: Clean,
    },
    /// Something happened in a subagent, or in the conversation of a flow's node.
    Within {
        /// Its name.
        name: Clean,
        /// What happened.
        told: Box<Told>,
    },
    /// A flow's node is over: no more happens in it.
    NodeOver {
        /// Its name.
        name: Clean,
        /// How it ended.
        status: Status,
    },
    /// Something that a person should know.
    Notice(Clean),
    /// The run is over.
    Ended(Ended),
}

/// A call of a tool.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ToolRun {
    /// The call's id.
    pub call: String,
    /// The tool.
    pub tool: Clean,
    /// What it does, in one line.
    pub preview: Clean,
}

/// How a call ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ToolOutcome {
    /// Well.
    Done,
    /// With an error.
    Failed,
    /// The user did not allow it.
    Denied,
    /// It was stopped in the middle.
    CutOff,
    /// It never began: the run ended before.
    NotRun,
    /// It waits for an answer.
    Waits,
}

impl From<Outcome> for ToolOutcome {
    fn from(outcome: Outcome) -> Self {
        match outcome {
            Outcome::Done => Self::Done,
            Outcome::Failed | Outcome::TimedOut => Self::Failed,
            Outcome::Denied => Self::Denied,
            Outcome::Unknown => Self::CutOff,
        }
    }
}

/// A question that waits for an answer.
#[derive(Clone, Debug, PartialEq)]
pub struct Question {
    /// The session that asks.
    pub session: SessionId,
    /// The question's name.
    pub gate: String,
    /// What is asked.
    pub prompt: Clean,
    /// What kind of answer it wants.
    pub kind: QuestionKind,
    /// What would be done, line by line: a diff or a command.
    pub detail: Option<Clean>,
    /// The subagent that asks.
    pub asker: Option<Clean>,
    /// The answer if nobody gives one.
    pub default: Option<Clean>,
    /// The tool that may run; absent, the question asks for words.
    pub tool: Option<Clean>,
    /// What "always" would be about; absent, it is asked every time.
    pub always: Option<Always>,
}

/// What a yes for good would be about.
#[derive(Clone, Debug, PartialEq)]
pub struct Always {
    /// The call, where calls that are like it can be allowed alone.
    pub call: Option<ToolCall>,
}

impl Always {
    /// A pattern for calls that are like this one.
    #[must_use]
    pub fn like(&self) -> Option<Clean> {
        Rule::like(self.call.as_ref()?).map(|like| Clean::line(&like))
    }
}

/// The longest run of blanks in what is asked; a longer one is counted instead.
const BLANKS: usize = 8;
/// The same in a diff, whose lines are indented.
const INDENT: usize = 40;

impl Question {
    /// What is asked, so that no blanks push it off the screen.
    #[must_use]
    pub fn shown_prompt(&self) -> Clean {
        Clean::new(&counted(self.prompt.as_str(), BLANKS))
    }

    /// What would be done, in the same way.
    #[must_use]
    pub fn shown_detail(&self) -> Option<Clean> {
        Some(Clean::new(&counted(self.detail.as_ref()?.as_str(), INDENT)))
    }

    /// All that there is to know before it is answered.
    #[must_use]
    pub fn all(&self) -> Clean {
        let detail = self.shown_detail().map(|detail| format!("\n\n{detail}"));
        Clean::new(&format!("{}{}", self.shown_prompt(), detail.unwrap_or_default()))
    }
}

/// What kind of answer a question wants.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum QuestionKind {
    /// May a tool run?
    Approval,
    /// Words, for a flow.
    Words,
}

/// How a run ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ended {
    /// How the session stands.
    pub status: Status,
    /// What went wrong, or why it stopped; empty if there is nothing to say.
    pub why: Clean,
    /// What would help.
    pub hint: Option<Clean>,
}
