//! What is recorded and what streams, told as an editor shows it. Pure but for the contents of
//! files, which whoever makes it knows how to find.

use std::collections::HashMap;
use std::path::PathBuf;

use stepwell::log::Redactor;
use stepwell::model::{FileChanged, FileState, Outcome, Part, Role, Spent, Task, TaskStatus};
use stepwell::{Event, Lane, Message, Recorded, Seq};
use stepwell_agent::provider::{Delta, GO_ON, NOT_DONE, SAY_SOMETHING};
use stepwell_runtime::RunEvent;

use super::notice::run_notice;
use super::{Call, CallChange, CallState, Chunk, Diff, PlanEntry, PlanState, TurnEvent, Usage};

/// Finds the bytes of a recorded file.
pub(crate) type Contents = Box<dyn Fn(&FileState) -> Option<Vec<u8>> + Send>;

/// Where what is told comes from.
pub(crate) struct Source {
    /// The workspace's root.
    pub(crate) root: PathBuf,
    /// The bytes of recorded files.
    pub(crate) contents: Contents,
    /// Takes secrets out of what is told, before anything of it is cut.
    pub(crate) redactor: Redactor,
}

/// Tells what happens in a session.
pub(crate) struct Narrator {
    source: Source,
    /// What the client said itself, and shows already.
    known: Vec<String>,
    /// The last event that was told before, and the last one that is told now.
    before: Seq,
    told: Seq,
    /// What names of messages begin with, so that none is used twice in a session.
    prefix: String,
    streams: HashMap<String, Stream>,
    messages: u64,
    calls: HashMap<String, Running>,
    /// Calls that run, the last one last.
    running: Vec<String>,
    tasks: Vec<Task>,
    usage: Usage,
}

/// A message on its way.
#[derive(Debug)]
struct Stream {
    message: String,
    text: String,
    thought: String,
}

impl Stream {
    fn thought_message(&self) -> String {
        format!("{}-thought", self.message)
    }
}

#[derive(Debug, Default)]
struct Running {
    diffs: Vec<Diff>,
    outcome: Option<Outcome>,
}

/// The largest file whose change is shown: an editor draws it line by line.
const LARGEST_DIFF: usize = 256 << 10;

/// The longest output of a tool that is sent; all of it is on record.
const LONGEST_OUTPUT: usize = 32 << 10;

/// What the model is told in the user's place, and nobody said.
pub(super) const NOT_SAID: [&str; 3] = [GO_ON, SAY_SOMETHING, NOT_DONE];

impl Narrator {
    /// Tells what comes behind an event.
    pub(crate) fn new(source: Source, before: Seq) -> Self {
        Self {
            source,
            known: Vec::new(),
            before,
            told: before,
            prefix: before.to_string(),
            streams: HashMap::new(),
            messages: 0,
            calls: HashMap::new(),
            running: Vec::new(),
            tasks: Vec::new(),
            usage: Usage::default(),
        }
    }

    /// The same, where so many tokens fit the model and the session cost so much.
    pub(crate) fn with_usage(mut self, usage: Usage) -> Self {
        self.usage = usage;
        self
    }

    /// The same, with a plan that was made before.
    pub(crate) fn with_tasks(mut self, tasks: Vec<Task>) -> Self {
        self.tasks = tasks;
        self
    }

    /// Notes what the client said itself: it is not told that again.
    pub(crate) fn knows(&mut self, text: &str) {
        self.known.push(self.source.redactor.redact(text).into_owned());
    }

    /// The last event that was told.
    pub(crate) const fn told(&self) -> Seq {
        self.told
    }

    /// What was told of answers that are on their way, for whoever is told everything anew.
    pub(crate) fn so_far(&self) -> Vec<TurnEvent> {
        let mut events = Vec::new();
        for stream in self.streams.values() {
            if !stream.thought.is_empty() {
                let (message, text) = (stream.thought_message(), stream.thought.clone());
                events.push(TurnEvent::Thought(Chunk { message, text }));
            }
            if !stream.text.is_empty() {
                let (message, text) = (stream.message.clone(), stream.text.clone());
                events.push(TurnEvent::Text(Chunk { message, text }));
            }
        }
        events
    }

    /// What an event of a run comes to.
    pub(crate) fn see(&mut self, event: RunEvent) -> Vec<TurnEvent> {
        self.see_in(Lane::main().as_str(), event)
    }

    fn see_in(&mut self, lane: &str, event: RunEvent) -> Vec<TurnEvent> {
        match event {
            RunEvent::Recorded(recorded) => self.recorded(&recorded),
            RunEvent::Delta(delta) => self.delta(lane, delta),
            RunEvent::ToolOutput { call, tail, .. } => {
                let change = CallChange { id: call, text: Some(tail), ..CallChange::default() };
                vec![TurnEvent::CallChanged(change)]
            }
            RunEvent::ToolCutOff { call, .. } => {
                self.running.retain(|running| *running != call);
                let change =
                    CallChange { id: call, state: CallState::Failed, ..CallChange::default() };
                vec![TurnEvent::CallChanged(change)]
            }
            RunEvent::Step { spent, .. } => self.spent(spent),
            RunEvent::Approval(open) => vec![TurnEvent::Ask(open)],
            RunEvent::Answered(answer) => vec![TurnEvent::Answered { gate: answer.gate }],
            RunEvent::Within { lane, event, .. } => self.see_in(lane.as_str(), *event),
            // Of a subagent, only what it asks: the rest is in a session of its own.
            RunEvent::Child { event, .. } => match *event {
                RunEvent::Approval(_) | RunEvent::Answered(_) | RunEvent::Child { .. } => {
                    self.see_in(lane, *event)
                }
                _ => Vec::new(),
            },
            RunEvent::Notice(notice) => vec![TurnEvent::Notice(run_notice(&notice))],
            RunEvent::Ended { reason, .. } => vec![TurnEvent::Ended { reason }],
            RunEvent::Waiting(_)
            | RunEvent::ToolStarted { .. }
            | RunEvent::ToolFinished { .. }
            | RunEvent::Compacted { .. }
            | RunEvent::Node(_) => Vec::new(),
        }
    }

    /// What a recorded event comes to.
    pub(crate) fn recorded(&mut self, recorded: &Recorded) -> Vec<TurnEvent> {
        if recorded.seq <= self.before {
            return Vec::new();
        }
        self.told = self.told.max(recorded.seq);
        let event = recorded.event.clone().redacted(&self.source.redactor);
        match &event {
            Event::Message(message) => self.message(recorded.seq, message),
            Event::ToolStarted(started) => {
                let id = started.call_id.clone();
                self.running.push(id.clone());
                vec![TurnEvent::CallChanged(CallChange { id, ..CallChange::default() })]
            }
            Event::ToolFinished(finished) => {
                let call = self.calls.entry(finished.call_id.clone()).or_default();
                call.outcome = Some(finished.outcome);
                Vec::new()
            }
            Event::File(changed) => {
                self.changed(changed);
                Vec::new()
            }
            Event::Task(task) => {
                match self.tasks.iter_mut().find(|it| it.id == task.id) {
                    Some(known) => *known = task.clone(),
                    None => self.tasks.push(task.clone()),
                }
                vec![TurnEvent::Plan(self.plan())]
            }
            Event::Compacted(compacted) => {
                let (seq, summary) = (recorded.seq, compacted.summary.clone());
                vec![TurnEvent::Compacted { seq, summary }]
            }
            Event::Edited(edited) => match &edited.label {
                stepwell::model::Change::Set(label) => vec![TurnEvent::Title(label.clone())],
                _ => Vec::new(),
            },
            _ => Vec::new(),
        }
    }

    /// Ends the calls that no run will end. A call that waits for a person stays open: `waits` knows
    /// which do.
    pub(crate) fn end_calls(&mut self, waits: impl Fn(&str) -> bool) -> Vec<TurnEvent> {
        let mut left: Vec<(String, Running)> = self.calls.drain().collect();
        left.retain(|(id, _)| !waits(id));
        left.sort_by(|one, other| one.0.cmp(&other.0));
        self.running.clear();
        let ended = left.into_iter().map(|(id, call)| {
            let (state, text) = match call.outcome {
                Some(Outcome::Done) => {
                    (CallState::Done, "It was done; its output was not recorded.")
                }
                Some(Outcome::Denied) => (CallState::Failed, "It was not allowed."),
                Some(_) => (CallState::Failed, "It failed; its output was not recorded."),
                None => (CallState::Failed, "It was cut off: whether it was done is not known."),
            };
            let text = Some(text.to_owned());
            TurnEvent::CallChanged(CallChange { id, state, text, diffs: call.diffs })
        });
        ended.collect()
    }

    /// The plan as it stands.
    pub(crate) fn plan(&self) -> Vec<PlanEntry> {
        let entry = |task: &Task| PlanEntry {
            text: task.description.clone(),
            state: match task.status {
                TaskStatus::Pending => PlanState::Pending,
                TaskStatus::Running => PlanState::Running,
                _ => PlanState::Done,
            },
        };
        self.tasks.iter().map(entry).collect()
    }

    /// How full the context is, and what the session cost.
    pub(crate) const fn usage(&self) -> Usage {
        self.usage
    }

    fn delta(&mut self, lane: &str, delta: Delta) -> Vec<TurnEvent> {
        if matches!(delta, Delta::Void) {
            // What was shown cannot be taken back: what comes now is another message.
            self.streams.remove(lane);
            return Vec::new();
        }
        let (messages, prefix) = (&mut self.messages, &self.prefix);
        let stream = self.streams.entry(lane.to_owned()).or_insert_with(|| {
            *messages += 1;
            let message = format!("live-{prefix}-{messages}");
            Stream { message, text: String::new(), thought: String::new() }
        });
        match delta {
            Delta::Text(text) => {
                stream.text.push_str(&text);
                let message = stream.message.clone();
                vec![TurnEvent::Text(Chunk { message, text })]
            }
            Delta::Thinking(text) => {
                stream.thought.push_str(&text);
                let message = stream.thought_message();
                vec![TurnEvent::Thought(Chunk { message, text })]
            }
            Delta::Call | Delta::Void => Vec::new(),
        }
    }

    fn message(&mut self, seq: Seq, message: &Message) -> Vec<TurnEvent> {
        match message.role {
            Role::System => Vec::new(),
            Role::User if !message.is_from_user() => Vec::new(),
            Role::User => self.user(seq, message),
            Role::Assistant => self.assistant(seq, message),
            Role::Tool => message.results().map(|result| self.result(result)).collect(),
        }
    }

    fn user(&mut self, seq: Seq, message: &Message) -> Vec<TurnEvent> {
        let text = message.text();
        if let Some(known) = self.known.iter().position(|known| *known == text) {
            self.known.remove(known);
            return Vec::new();
        }
        if text.is_empty() || NOT_SAID.contains(&text.as_str()) {
            return Vec::new();
        }
        vec![TurnEvent::User(Chunk { message: seq.to_string(), text })]
    }

    fn assistant(&mut self, seq: Seq, message: &Message) -> Vec<TurnEvent> {
        let streamed = self.streams.remove(message.lane.as_str());
        let (text, thought) =
            streamed.map_or((false, false), |it| (!it.text.is_empty(), !it.thought.is_empty()));
        if let Some(usage) = message.usage {
            self.usage.used = usage.total();
        }
        let mut events = Vec::new();
        for part in &message.parts {
            match part {
                Part::Text(it) if !text && !it.text.is_empty() => {
                    let (message, text) = (seq.to_string(), it.text.clone());
                    events.push(TurnEvent::Text(Chunk { message, text }));
                }
                Part::Thinking(it) if !thought && !it.text.is_empty() => {
                    let (message, text) = (format!("{seq}-thought"), it.text.clone());
                    events.push(TurnEvent::Thought(Chunk { message, text }));
                }
                Part::ToolCall(it) => {
                    self.calls.insert(it.id.clone(), Running::default());
                    let call = Call::of(&it.id, &it.name, &it.arguments, &self.source.root);
                    events.push(TurnEvent::Call(call));
                }
                _ => {}
            }
        }
        events
    }

    fn result(&mut self, result: &stepwell::model::ToolResult) -> TurnEvent {
        self.running.retain(|running| *running != result.call_id);
        let call = self.calls.remove(&result.call_id).unwrap_or_default();
        let is_done = !result.is_error && call.outcome.is_none_or(|it| it == Outcome::Done);
        TurnEvent::CallChanged(CallChange {
            id: result.call_id.clone(),
            state: if is_done { CallState::Done } else { CallState::Failed },
            text: Some(bounded(&result.text)),
            diffs: call.diffs,
        })
    }

    /// A change of a file is shown with the call that runs.
    fn changed(&mut self, changed: &FileChanged) {
        let Some(call) = self.running.last() else { return };
        let text = |state: &FileState| match state {
            FileState::Absent => Some(None),
            FileState::File { .. } => {
                let bytes = (self.source.contents)(state).filter(|it| it.len() <= LARGEST_DIFF)?;
                String::from_utf8(bytes).ok().map(Some)
            }
            FileState::Symlink { .. } | FileState::NotCaptured { .. } => None,
        };
        let (Some(before), Some(after)) = (text(&changed.before), text(&changed.after)) else {
            return;
        };
        let (path, after) = (self.source.root.join(&changed.path), after.unwrap_or_default());
        self.calls.entry(call.clone()).or_default().diffs.push(Diff { path, before, after });
    }

    fn spent(&mut self, spent: Spent) -> Vec<TurnEvent> {
        self.usage.cost = spent.known_cost();
        vec![TurnEvent::Usage(self.usage)]
    }
}

/// As much of a text as is sent.
fn bounded(text: &str) -> String {
    if text.len() <= LONGEST_OUTPUT {
        return text.to_owned();
    }
    let mut end = LONGEST_OUTPUT;
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    format!("{}\n… {} more bytes are on record", &text[..end], text.len() - end)
}
