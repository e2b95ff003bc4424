//! What a run tells as it goes: owned, so that it can cross threads, and plain data, so that it can
//! be sent anywhere.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use serde::Serialize;
use stepwell::log::Head;
use stepwell::model::{
    Answer, Compacted, Gate, NodeState, Origin, Outcome, Spent, Time, ToolCall, Who,
};
use stepwell::store::Lease;
use stepwell::{Lane, Recorded, Seq, SessionId, Status, StopReason, Store};

use super::notice::Notice;
use crate::context::plan::Why;
use crate::provider::Delta;

/// Something that happened in a run. What must be durable before anyone sees it already is. Nothing
/// in its JSON holds a secret, except a piece of an answer: that is shown as it comes.
#[derive(Clone, Debug, Serialize)]
#[serde(tag = "event", content = "data", rename_all = "snake_case")]
pub enum RunEvent {
    /// An event was recorded: by the run, or by someone who answered or spoke to it.
    Recorded(Recorded),
    /// The model was asked so long ago, and nothing of its answer has come yet. Told again and
    /// again while that is so.
    Waiting(Duration),
    /// A piece of an answer, as it comes: not recorded yet, and perhaps never.
    Delta(Delta),
    /// A tool is about to run.
    ToolStarted {
        /// The call's id.
        call: String,
        /// The tool.
        tool: String,
        /// What it does, in one line.
        preview: String,
    },
    /// A tool still runs. Told again and again while it does.
    ToolOutput {
        /// The call's id.
        call: String,
        /// The tool.
        tool: String,
        /// For how long it has run.
        ran: Duration,
        /// The last lines of what it wrote.
        tail: String,
    },
    /// A tool's result was recorded.
    ToolFinished {
        /// The call's id.
        call: String,
        /// The tool.
        tool: String,
        /// How it ended.
        outcome: Outcome,
        /// What the model is told.
        told: String,
    },
    /// A tool was stopped in the middle. The next run finds what became of it.
    ToolCutOff {
        /// The call's id.
        call: String,
        /// The tool.
        tool: String,
    },
    /// A step is complete.
    Step {
        /// How many are.
        steps: u64,
        /// What the session has cost, with its subagents.
        spent: Spent,
    },
    /// The conversation was made shorter.
    Compacted {
        /// What went.
        compacted: Box<Compacted>,
        /// Why the conversation had to shrink.
        why: Why,
    },
    /// A person is asked. The question is on record: whoever can answers it.
    Approval(Box<OpenGate>),
    /// A question was answered; the first answer counts.
    Answered(GateAnswer),
    /// A flow's node changed its state.
    Node(NodeStatus),
    /// Something happened in the conversation of a flow's node.
    Within {
        /// The node's key.
        node: String,
        /// The conversation.
        lane: Lane,
        /// What happened.
        event: Box<RunEvent>,
    },
    /// Something happened in the session of a subagent.
    Child {
        /// The subagent's session.
        session: SessionId,
        /// What happened.
        event: Box<RunEvent>,
    },
    /// Something that a person should know.
    Notice(Notice),
    /// The run is over; nothing follows.
    Ended {
        /// How the session stands.
        status: Status,
        /// Why it stopped.
        reason: Option<StopReason>,
    },
}

impl RunEvent {
    /// The question that it asks, be it a subagent's or a node's.
    #[must_use]
    pub fn question(&self) -> Option<&OpenGate> {
        match self {
            Self::Approval(open) => Some(open),
            Self::Child { event, .. } | Self::Within { event, .. } => event.question(),
            _ => None,
        }
    }

    /// How it settles a question: with an answer, or because nobody asks any more.
    #[must_use]
    pub fn settles(&self, open: &OpenGate) -> Option<Option<&GateAnswer>> {
        match self {
            Self::Answered(answer)
                if answer.gate == open.gate.id && answer.session == open.session =>
            {
                Some(Some(answer))
            }
            Self::Ended { .. } => Some(None),
            Self::Child { event, .. } | Self::Within { event, .. } => event.settles(open),
            _ => None,
        }
    }
}

/// A question that waits for an answer.
#[derive(Clone, Debug, Serialize)]
pub struct OpenGate {
    /// The session that it was asked in: a subagent's, perhaps.
    pub session: SessionId,
    /// The question, as it was recorded: without secrets.
    pub gate: Gate,
    /// Where it was recorded.
    pub seq: Seq,
    /// When it was asked.
    pub at: Time,
    /// The task of the subagent that asks: the name of its session, else the first line of what it
    /// was told to do. Absent, no subagent asks.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub task: Option<String>,
    /// What the process that runs the session knows beyond that. It is sent nowhere.
    #[serde(skip)]
    pub here: Option<Here>,
}

impl OpenGate {
    /// A question on record.
    pub fn new(store: &dyn Store, session: SessionId, gate: Gate, (seq, at): (Seq, Time)) -> Self {
        let asker = store.info(gate.asker.as_ref().unwrap_or(&session));
        let asker = asker.ok().map(|info| info.head);
        let asker = asker.filter(|head| matches!(head.origin, Origin::Subagent { .. }));
        let task = asker.map(|head| task_line(&head));
        Self { session, gate, seq, at, task, here: None }
    }
}

/// The most characters of a task that a question names.
const TASK: usize = 80;

/// What a session is about, in a line: its name, else the first line of its task.
pub(super) fn task_line(head: &Head) -> String {
    let task = head.label.as_deref().unwrap_or(&head.task).trim();
    task.lines().next().unwrap_or_default().chars().take(TASK).collect()
}

/// What only the process that runs a session knows of a question.
#[derive(Clone, Debug)]
pub struct Here {
    /// The lease under which it was asked.
    pub lease: Lease,
    /// The call as the model wrote it; absent, the question is a flow's.
    pub call: Option<ToolCall>,
    /// What it would do, in one line.
    pub preview: String,
    /// What it would change, line by line.
    pub detail: Option<String>,
}

/// How a question was answered.
#[derive(Clone, Debug, Serialize)]
pub struct GateAnswer {
    /// The session that it was asked in.
    pub session: SessionId,
    /// The question's name.
    pub gate: String,
    /// The answer.
    pub answer: Answer,
    /// Who gave it.
    pub who: Who,
    /// When it was given.
    pub at: Time,
}

/// The state of a flow's node.
#[derive(Clone, Debug, Serialize)]
pub struct NodeStatus {
    /// The node's key.
    pub key: String,
    /// The agent that works on it; absent, a person answers it.
    pub agent: Option<String>,
    /// Who answered, if a person did.
    pub who: Option<String>,
    /// Started, done, failed or skipped.
    pub state: NodeState,
    /// What failed.
    pub error: Option<String>,
    /// What the flow has spent so far.
    pub spent: Spent,
}

/// Where a run's events go. Telling never waits. Cloning is cheap.
#[derive(Clone, Default)]
pub struct EventSink(Option<Arc<dyn Fn(RunEvent) + Send + Sync>>);

impl EventSink {
    /// Events that a function is told of, on whichever thread they happen.
    pub fn to(tell: impl Fn(RunEvent) + Send + Sync + 'static) -> Self {
        Self(Some(Arc::new(tell)))
    }

    /// Events that nobody sees.
    #[must_use]
    pub const fn nobody() -> Self {
        Self(None)
    }

    /// Tells of an event.
    pub fn tell(&self, event: RunEvent) {
        if let Some(tell) = &self.0 {
            tell(event);
        }
    }

    /// Tells of a notice.
    pub(super) fn notice(&self, notice: Notice) {
        self.tell(RunEvent::Notice(notice));
    }

    /// Where the events of a subagent go: to the same listeners, with its session's name.
    pub(super) fn child(&self, session: &SessionId) -> Self {
        let (above, session) = (self.clone(), session.clone());
        match &self.0 {
            None => Self(None),
            Some(_) => Self::to(move |event| {
                let (session, event) = (session.clone(), Box::new(event));
                above.tell(RunEvent::Child { session, event });
            }),
        }
    }
}

impl fmt::Debug for EventSink {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("EventSink")
    }
}
