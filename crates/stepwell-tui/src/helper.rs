//! Those who work for the session: subagents, and the conversations of a flow's nodes.

use stepwell::{Event, Recorded, SessionId, Status};

use crate::clean::Clean;
use crate::told::{Told, ToolOutcome};
use crate::transcript::{Block, Transcript, Whose};

/// A subagent, or the conversation of a flow's node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Helper {
    /// Its name.
    pub name: Clean,
    /// Who it is, and what it is to do.
    pub task: Clean,
    /// What it does now, in a line.
    pub does: Clean,
    /// How it ended; absent, it works.
    pub ended: Option<Status>,
    /// What it said and did.
    pub transcript: Transcript,
}

/// Some events of a session, the oldest first.
#[derive(Clone, Debug)]
pub(crate) struct EventPage {
    pub(crate) events: Vec<Recorded>,
    /// There are earlier ones.
    pub(crate) more: bool,
}

impl Helper {
    /// One that has not done anything yet.
    #[must_use]
    pub fn new(name: Clean) -> Self {
        let (task, does) = (Clean::default(), Clean::default());
        Self { name, task, does, ended: None, transcript: Transcript::default() }
    }

    /// A subagent that worked before, as the store knows it.
    pub(crate) fn of(session: &SessionId, task: &str, status: Status, page: &EventPage) -> Self {
        let transcript = Transcript::of(&page.events, page.more, Whose::Agent);
        let (task, name) = (Clean::line(task), Clean::line(session.as_str()));
        let mut helper = Self { task, transcript, ..Self::new(name) };
        helper.end(status);
        helper
    }

    /// Its name, how it ended, who it is and what it is to do, in a line.
    #[must_use]
    pub fn title(&self) -> Clean {
        let ended = self.ended.map(|status| format!(" · {status}")).unwrap_or_default();
        match self.task.is_empty() {
            true => Clean::line(&format!("{}{ended}", self.name)),
            false => Clean::line(&format!("{} {}{ended}", self.name, self.task)),
        }
    }

    /// Takes in what it said before.
    pub(crate) fn learn_from(&mut self, event: &Recorded) {
        self.apply(&Told::Recorded(Box::new(event.clone())));
    }

    /// Takes in who it is and what it is to do, from the first that says so.
    fn learn(&mut self, event: &Event) {
        let task = match event {
            Event::Created(created) => format!("{}: {}", created.agent, created.task),
            Event::Message(said) if said.is_from_user() && self.task.is_empty() => said.text(),
            _ => return,
        };
        self.task = Clean::line(&task);
    }

    /// It is over.
    pub(crate) fn end(&mut self, status: Status) {
        self.transcript.finish_stream();
        self.transcript.end_open_calls(ToolOutcome::CutOff);
        self.ended.get_or_insert(status);
    }

    /// Takes in what happened to it. Questions are asked elsewhere: here they are only noted.
    pub(crate) fn apply(&mut self, told: &Told) {
        // One that failed may be tried again.
        if !matches!(told, Told::Ended(_) | Told::Notice(_)) {
            self.ended = None;
        }
        if let Some(line) = line(told).filter(|line| !line.is_empty()) {
            self.does = line;
        }
        match told {
            Told::Recorded(event) => {
                self.learn(&event.event);
                self.transcript.record(event);
                if let Event::Status(changed) = &event.event
                    && changed.status != Status::Running
                {
                    self.end(changed.status);
                }
            }
            Told::Text(piece) => self.transcript.stream_answer(piece),
            Told::Thinking(piece) => self.transcript.stream_thinking(piece),
            Told::Void => self.transcript.void_stream(),
            Told::ToolStarted(run) => {
                self.transcript.finish_stream();
                self.transcript.tool_started(run.clone());
            }
            // What a node's agent says is not told again when it is recorded.
            Told::Step { .. } => self.transcript.finish_stream(),
            Told::ToolOutput { call, ran, tail } => {
                self.transcript.tool_output(call, *ran, tail.clone());
            }
            Told::ToolFinished { call, outcome, output } => {
                self.transcript.tool_over(call, *outcome, output);
            }
            Told::Asked(question) => {
                let asks = Clean::line(&format!("asks: {}", question.prompt));
                self.transcript.push(Block::Note(asks));
            }
            Told::Notice(text) => self.transcript.push(Block::Note(text.clone())),
            Told::Within { name, told } => {
                if let Some(does) = line(told) {
                    self.does = Clean::line(&format!("{name}: {does}"));
                }
            }
            Told::Ended(ended) => {
                self.transcript.drop_stream();
                self.transcript.end_open_calls(ToolOutcome::CutOff);
                self.ended = Some(ended.status);
            }
            Told::Answered { .. } => self.does = Clean::new("goes on"),
            Told::Began(_) | Told::Waiting(_) | Told::NodeOver { .. } => {}
        }
    }
}

/// What happened, in a line.
fn line(told: &Told) -> Option<Clean> {
    Some(match told {
        Told::Text(piece) | Told::Thinking(piece) => Clean::line(piece),
        Told::ToolStarted(run) => Clean::line(&format!("{} {}", run.tool, run.preview)),
        Told::ToolOutput { tail, .. } => {
            Clean::line(tail.as_str().trim_end().lines().next_back().unwrap_or_default())
        }
        Told::Asked(_) => Clean::new("asks you"),
        Told::Notice(text) => Clean::line(text.as_str()),
        _ => return None,
    })
}
