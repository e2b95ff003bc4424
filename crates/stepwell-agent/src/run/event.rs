//! The events that a run reports while it works: owned, so that they can cross threads, and plain
//! data, so that they can be sent anywhere.

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

/// Something that happened in a run. Anything that must be durable is on disk before its event. The
/// JSON contains no secret, with one exception: pieces of an answer are shown as they arrive.
#[derive(Clone, Debug, Serialize)]
#[serde(tag = "event", content = "data", rename_all = "snake_case")]
#[expect(clippy::large_enum_variant, reason = "nearly all of them are recorded events")]
pub enum RunEvent {
    /// An event was recorded, by the run or by a person who answered or sent a message.
    Recorded(Recorded),
    /// The model has not begun its answer since this long. Repeated while that is so.
    Waiting(Duration),
    /// A piece of an answer as it arrives. It is not recorded yet, and perhaps never will be.
    Delta(Delta),
    /// A tool is about to run.
    ToolStarted {
        /// The call's id.
        call: String,
        /// The tool.
        tool: String,
        /// A line that says what it does.
        preview: String,
    },
    /// A tool is still running. Repeated while that is so.
    ToolOutput {
        /// The call's id.
        call: String,
        /// The tool.
        tool: String,
        /// How long it has been running.
        ran: Duration,
        /// The last lines of its output.
        tail: String,
    },
    /// A tool's result was recorded.
    ToolFinished {
        /// The call's id.
        call: String,
        /// The tool.
        tool: String,
        /// Its outcome.
        outcome: Outcome,
        /// The result that the model receives.
        told: String,
    },
    /// A tool was stopped in the middle. The next run finds out what it changed.
    ToolCutOff {
        /// The call's id.
        call: String,
        /// The tool.
        tool: String,
    },
    /// A step is complete.
    Step {
        /// The number of complete steps.
        steps: u64,
        /// What the session has spent, with its subagents.
        spent: Spent,
    },
    /// The conversation was compacted.
    Compacted {
        /// The recorded compaction.
        compacted: Box<Compacted>,
        /// Why the conversation had to shrink.
        why: Why,
    },
    /// A person must answer. The question is recorded, so it can be answered from anywhere.
    Approval(Box<OpenGate>),
    /// A question was answered; the first answer counts.
    Answered(GateAnswer),
    /// A node of a flow changed its state.
    Node(NodeStatus),
    /// An event in the conversation of a flow's node.
    Within {
        /// The node's key.
        node: String,
        /// The conversation.
        lane: Lane,
        /// What happened.
        event: Box<RunEvent>,
    },
    /// An event in the session of a subagent.
    Child {
        /// The subagent's session.
        session: SessionId,
        /// What happened.
        event: Box<RunEvent>,
    },
    /// A notice for the user.
    Notice(Notice),
    /// The run is over. This is the last event.
    Ended {
        /// The session's status.
        status: Status,
        /// Why it stopped.
        reason: Option<StopReason>,
    },
}

impl RunEvent {
    /// The question in this event, also if a subagent or a node asks it.
    #[must_use]
    pub fn question(&self) -> Option<&OpenGate> {
        match self {
            Self::Approval(open) => Some(open),
            Self::Child { event, .. } | Self::Within { event, .. } => event.question(),
            _ => None,
        }
    }

    /// How this event settles a question: by an answer, or (`Some(None)`) because the run ended.
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

/// An open question.
#[derive(Clone, Debug, Serialize)]
pub struct OpenGate {
    /// The session that asks, which may be a subagent's.
    pub session: SessionId,
    /// The question as recorded, without secrets.
    pub gate: Gate,
    /// Its seq.
    pub seq: Seq,
    /// When it was asked.
    pub at: Time,
    /// If a subagent asks: its session's name, else the first line of its task.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub task: Option<String>,
    /// What only the process of the run knows. It is never sent anywhere.
    #[serde(skip)]
    pub here: Option<Here>,
}

impl OpenGate {
    /// A recorded question.
    pub fn new(store: &dyn Store, session: SessionId, gate: Gate, (seq, at): (Seq, Time)) -> Self {
        let asker = store.info(gate.asker.as_ref().unwrap_or(&session));
        let asker = asker.ok().map(|info| info.head);
        let asker = asker.filter(|head| matches!(head.origin, Origin::Subagent { .. }));
        let task = asker.map(|head| task_line(&head));
        Self { session, gate, seq, at, task, here: None }
    }
}

/// The most characters of a task in a question.
const TASK: usize = 80;

/// A session in one line: its name, else the first line of its task.
pub(super) fn task_line(head: &Head) -> String {
    let task = head.label.as_deref().unwrap_or(&head.task).trim();
    task.lines().next().unwrap_or_default().chars().take(TASK).collect()
}

/// The part of a question that only the process of the run knows.
#[derive(Clone, Debug)]
pub struct Here {
    /// The lease under which it was asked.
    pub lease: Lease,
    /// The call as the model wrote it; `None` if a flow asks.
    pub call: Option<ToolCall>,
    /// A line that says what it would do.
    pub preview: String,
    /// The lines that it would change.
    pub detail: Option<String>,
}

/// The answer to a question.
#[derive(Clone, Debug, Serialize)]
pub struct GateAnswer {
    /// The session that asked.
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
    /// Its agent; `None` if a person answers the node.
    pub agent: Option<String>,
    /// The person who answered, if one did.
    pub who: Option<String>,
    /// Started, done, failed or skipped.
    pub state: NodeState,
    /// The error of a failed node.
    pub error: Option<String>,
    /// What the flow has spent so far.
    pub spent: Spent,
}

/// The receiver of a run's events. Sending never waits. Cloning is cheap.
#[derive(Clone, Default)]
pub struct EventSink(Option<Arc<dyn Fn(RunEvent) + Send + Sync>>);

impl EventSink {
    /// Passes events to a function, on the thread on which they happen.
    pub fn to(tell: impl Fn(RunEvent) + Send + Sync + 'static) -> Self {
        Self(Some(Arc::new(tell)))
    }

    /// Drops all events.
    #[must_use]
    pub const fn nobody() -> Self {
        Self(None)
    }

    /// Sends an event.
    pub fn tell(&self, event: RunEvent) {
        if let Some(tell) = &self.0 {
            tell(event);
        }
    }

    /// Sends a notice.
    pub(super) fn notice(&self, notice: Notice) {
        self.tell(RunEvent::Notice(notice));
    }

    /// Sends the events of a subagent to the same receiver, under its session's id.
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
