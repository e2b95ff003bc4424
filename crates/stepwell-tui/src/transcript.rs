//! The conversation as it is shown: blocks, folded from what is on record and what streams.

use std::time::Duration;

use stepwell::model::{CheckpointReason, NodeState, Part, Role};
use stepwell::{Event, Lane, Message, Recorded, Seq};
use stepwell_agent::provider::is_aside;

use crate::clean::Clean;
use crate::told::{ToolOutcome, ToolRun};
use crate::{diff, markdown};

/// One thing in the conversation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Block {
    /// What the user said.
    User(Clean),
    /// What the model said: Markdown, or a piece of it.
    Answer(Clean),
    /// What the model thought.
    Thinking(Clean),
    /// A call of a tool.
    Tool(ToolBlock),
    /// A picture, by its kind.
    Picture(Clean),
    /// Something that Stepwell says.
    Note(Clean),
    /// Something that went wrong.
    Trouble(Clean),
    /// An answer of a command, as it is.
    Output(Clean),
}

/// A call of a tool.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ToolBlock {
    /// The call.
    pub run: ToolRun,
    /// How it stands.
    pub state: ToolState,
    /// What it wrote.
    pub output: Clean,
    /// What it changes in a file, as the call says.
    pub change: Clean,
}

/// How a call stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ToolState {
    /// The model asked for it.
    Called,
    /// It runs.
    Running(Duration),
    /// It is over.
    Over(ToolOutcome),
}

impl Block {
    /// Does it stay as it is?
    #[must_use]
    pub const fn is_final(&self) -> bool {
        !matches!(
            self,
            Self::Tool(ToolBlock { state: ToolState::Called | ToolState::Running(_), .. })
        )
    }
}

/// A text that streams.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Stream {
    text: String,
    /// Was some of it shown for good already?
    began: bool,
}

/// The conversation.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Transcript {
    blocks: Vec<Block>,
    /// How many blocks were handed out to be printed.
    printed: usize,
    answer: Stream,
    thinking: Stream,
    /// The first event that was folded.
    first: Option<Seq>,
    /// Whose conversation was folded last.
    lane: Lane,
    /// Are there earlier ones?
    pub earlier: bool,
    /// Whose it is.
    whose: Whose,
    /// How calls ended whose results were not folded yet.
    outcomes: Vec<(String, ToolOutcome)>,
    /// A flow's questions that wait: their names, and what they ask.
    asked: Vec<(String, Clean)>,
}

/// Whose conversation it is: it says what of a log is shown.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Whose {
    /// An agent's.
    #[default]
    Agent,
    /// A flow's: its nodes, questions and answers. What its agents say is watched apart.
    Flow,
}

impl Transcript {
    /// A conversation with what is on record.
    #[must_use]
    pub fn of(events: &[Recorded], earlier: bool, whose: Whose) -> Self {
        let mut transcript = Self { earlier, whose, ..Self::default() };
        events.iter().for_each(|event| transcript.record(event));
        transcript
    }

    /// An empty one.
    #[must_use]
    pub fn new(whose: Whose) -> Self {
        Self { whose, ..Self::default() }
    }

    /// Is it a flow's?
    #[must_use]
    pub fn is_of_flow(&self) -> bool {
        self.whose == Whose::Flow
    }

    /// Puts earlier events before those that are there.
    pub fn put_before(&mut self, events: &[Recorded], more: bool) {
        let mut before = Self::of(events, more, self.whose);
        before.end_open_calls(ToolOutcome::CutOff);
        self.printed += before.blocks.len();
        self.first = before.first.or(self.first);
        self.earlier = more;
        self.blocks.splice(0..0, before.blocks);
    }

    /// Every block.
    #[must_use]
    pub fn blocks(&self) -> &[Block] {
        &self.blocks
    }

    /// The first event that was folded.
    #[must_use]
    pub const fn first(&self) -> Option<Seq> {
        self.first
    }

    /// Blocks that may still change, or were not printed yet.
    #[must_use]
    pub fn live(&self) -> &[Block] {
        &self.blocks[self.printed..]
    }

    /// The piece of an answer that streams now.
    #[must_use]
    pub fn streaming(&self) -> Option<Block> {
        let answer = Clean::new(&self.answer.text);
        if !answer.is_empty() {
            return Some(Block::Answer(answer));
        }
        let thinking = Clean::new(&self.thinking.text);
        (!thinking.is_empty()).then_some(Block::Thinking(thinking))
    }

    /// Hands out the blocks that can be printed now: those that stay as they are, in order.
    pub fn take_printable(&mut self) -> Vec<Block> {
        let live = &self.blocks[self.printed..];
        let count = live.iter().take_while(|block| block.is_final()).count();
        let taken = live[..count].to_vec();
        self.printed += count;
        taken
    }

    /// How many blocks were handed out.
    #[must_use]
    pub const fn printed(&self) -> usize {
        self.printed
    }

    /// What is there was printed before, in another order perhaps.
    pub fn skip_printing(&mut self) {
        self.printed = self.blocks.len();
    }

    /// Was this trouble told at the end, before notes about it?
    pub(crate) fn tells_trouble(&self, why: &Clean) -> bool {
        let told = self.blocks.iter().rev().find(|block| !matches!(block, Block::Note(_)));
        matches!(told, Some(Block::Trouble(told)) if told == why)
    }

    /// Adds a block.
    pub fn push(&mut self, block: Block) {
        self.blocks.push(block);
    }

    /// The model's last answer.
    #[must_use]
    pub fn last_answer(&self) -> Option<String> {
        let mut pieces: Vec<&str> = Vec::new();
        for block in self.blocks.iter().rev() {
            match block {
                Block::Answer(text) => pieces.push(text.as_str()),
                _ if pieces.is_empty() => {}
                _ => break,
            }
        }
        pieces.reverse();
        (!pieces.is_empty()).then(|| pieces.concat())
    }

    /// Adds a piece of an answer.
    pub fn stream_answer(&mut self, piece: &str) {
        self.finish_thinking();
        self.answer.text.push_str(piece);
        let at = markdown::settled(&self.answer.text);
        if at > 0 {
            let rest = self.answer.text.split_off(at);
            let done = std::mem::replace(&mut self.answer.text, rest);
            self.answer.began = true;
            self.blocks.push(Block::Answer(Clean::new(&done)));
        }
    }

    /// Adds a piece of the model's thinking.
    pub fn stream_thinking(&mut self, piece: &str) {
        self.thinking.text.push_str(piece);
        self.thinking.began = true;
    }

    fn finish_thinking(&mut self) {
        let text = std::mem::take(&mut self.thinking.text);
        if !text.trim().is_empty() {
            self.blocks.push(Block::Thinking(Clean::new(&text)));
        }
    }

    fn finish_answer(&mut self) {
        let text = std::mem::take(&mut self.answer.text);
        if !text.trim().is_empty() {
            self.blocks.push(Block::Answer(Clean::new(&text)));
        }
    }

    /// What streamed is complete, and no record of it follows.
    pub fn finish_stream(&mut self) {
        self.finish_thinking();
        self.finish_answer();
        (self.answer, self.thinking) = Default::default();
    }

    /// What streamed is void, and comes anew. What was printed of it stays in the scrollback.
    pub fn void_stream(&mut self) {
        let was_printed = self.answer.began;
        (self.answer, self.thinking) = Default::default();
        if was_printed {
            self.note("the answer broke off; it comes anew");
        }
    }

    /// What streamed will not be recorded: it was cut off.
    pub fn drop_stream(&mut self) {
        let cut = self.answer.began || !self.answer.text.is_empty();
        self.finish_thinking();
        self.finish_answer();
        (self.answer, self.thinking) = Default::default();
        if cut {
            self.push(Block::Note(Clean::new("the answer was cut off")));
        }
    }

    /// Folds an event that is on record.
    pub fn record(&mut self, event: &Recorded) {
        self.first.get_or_insert(event.seq);
        if self.whose == Whose::Flow {
            return self.record_of_flow(&event.event);
        }
        match &event.event {
            Event::Message(message) => self.message(message),
            Event::ToolFinished(finished) => {
                let outcome = ToolOutcome::from(finished.outcome);
                self.outcomes.push((finished.call_id.clone(), outcome));
            }
            Event::Compacted(_) => {
                self.note("the conversation was made shorter; the log keeps all of it");
            }
            Event::Rewound(rewound) => self.note(&format!("went back to {}", rewound.to)),
            Event::Phase(phase) => self.note(&format!("phase: {}", phase.to)),
            Event::Checkpoint(checkpoint) if checkpoint.reason == CheckpointReason::Manual => {
                self.note(&format!("checkpoint: {}", checkpoint.name));
            }
            Event::Error(failure) => self.push(Block::Trouble(Clean::new(&failure.message))),
            _ => {}
        }
    }

    /// Folds an event of a flow.
    fn record_of_flow(&mut self, event: &Event) {
        match event {
            // A phase says for itself that it was entered.
            Event::Node(node)
                if node.state == NodeState::Started || node.key.starts_with("phase/") => {}
            Event::Node(node) => {
                let state = format!("{:?}", node.state).to_lowercase();
                let text = match &node.error {
                    Some(error) => format!("{} {state}: {error}", node.key),
                    None => format!("{} {state}", node.key),
                };
                self.note(&text);
            }
            // A question is shown while it waits; here it stands with its answer.
            Event::Gate(gate) => {
                self.asked.push((gate.id.clone(), Clean::new(&gate.prompt)));
            }
            Event::GateAnswered(answer) => {
                let at = self.asked.iter().position(|(gate, _)| *gate == answer.id);
                if let Some(at) = at {
                    let (_, prompt) = self.asked.remove(at);
                    self.push(Block::Note(prompt));
                }
                self.push(Block::User(Clean::new(&answer.answer.text())));
            }
            Event::Rewound(rewound) => self.note(&format!("went back to {}", rewound.to)),
            Event::Phase(phase) => self.note(&format!("phase: {}", phase.to)),
            _ => {}
        }
    }

    fn note(&mut self, text: &str) {
        self.push(Block::Note(Clean::line(text)));
    }

    fn message(&mut self, message: &Message) {
        if self.lane != message.lane {
            self.note(&format!("— {} —", message.lane));
            self.lane = message.lane.clone();
        }
        match message.role {
            Role::System => {}
            // Said in the user's place, and no words of theirs.
            Role::User if is_aside(&message.text()) => self.note("the agent was told to go on"),
            Role::User if !message.is_from_user() => {
                self.note(&format!("context: {}", message.text()));
            }
            Role::User => self.push(Block::User(Clean::new(&message.text()))),
            Role::Assistant => self.answered(message),
            Role::Tool => {
                for result in message.results() {
                    let known = self.outcomes.iter().rposition(|(call, _)| *call == result.call_id);
                    let known = known.map(|at| self.outcomes.swap_remove(at).1);
                    let seen =
                        if result.is_error { ToolOutcome::Failed } else { ToolOutcome::Done };
                    let outcome = known.unwrap_or(seen);
                    let pictures = result.images.iter();
                    let pictures: Vec<_> =
                        pictures.map(|image| Clean::line(&image.media_type)).collect();
                    self.tool_over(&result.call_id, outcome, &Clean::new(&result.text));
                    self.blocks.extend(pictures.into_iter().map(Block::Picture));
                }
            }
        }
    }

    fn answered(&mut self, message: &Message) {
        let streamed = (self.answer.began || !self.answer.text.is_empty(), self.thinking.began);
        self.finish_thinking();
        self.finish_answer();
        (self.answer, self.thinking) = Default::default();
        for part in &message.parts {
            match part {
                Part::Text(text) if !streamed.0 && !text.text.trim().is_empty() => {
                    self.push(Block::Answer(Clean::new(&text.text)));
                }
                Part::Thinking(text) if !streamed.1 && !text.text.trim().is_empty() => {
                    self.push(Block::Thinking(Clean::new(&text.text)));
                }
                Part::Image(image) => self.push(Block::Picture(Clean::line(&image.media_type))),
                Part::ToolCall(call) if self.tool(&call.id).is_none() => {
                    let run = ToolRun {
                        call: call.id.clone(),
                        tool: Clean::line(&call.name),
                        preview: Clean::line(&call.arguments),
                    };
                    self.push(Block::Tool(ToolBlock {
                        run,
                        state: ToolState::Called,
                        output: Clean::default(),
                        change: diff::of_call(&call.name, &call.arguments),
                    }));
                }
                _ => {}
            }
        }
    }

    /// The call of an id that is not over. Some providers use an id again in a later turn.
    fn tool(&mut self, call: &str) -> Option<&mut ToolBlock> {
        self.blocks.iter_mut().rev().find_map(|block| match block {
            Block::Tool(tool)
                if tool.run.call == call && !matches!(tool.state, ToolState::Over(_)) =>
            {
                Some(tool)
            }
            _ => None,
        })
    }

    /// A tool runs.
    pub fn tool_started(&mut self, run: ToolRun) {
        match self.tool(&run.call) {
            Some(tool) => {
                // Whoever watches from the middle does not know what was asked for before.
                let known = tool.run.preview.clone();
                tool.run = run;
                if tool.run.preview.is_empty() {
                    tool.run.preview = known;
                }
                tool.state = ToolState::Running(Duration::ZERO);
            }
            None => {
                let state = ToolState::Running(Duration::ZERO);
                let (output, change) = Default::default();
                self.push(Block::Tool(ToolBlock { run, state, output, change }));
            }
        }
    }

    /// A tool still runs.
    pub fn tool_output(&mut self, call: &str, ran: Duration, tail: Clean) {
        if let Some(tool) = self.tool(call) {
            tool.state = ToolState::Running(ran);
            tool.output = tail;
        }
    }

    /// A tool is done. What was said of it first holds: the recorded result knows less of how it
    /// ended.
    pub fn tool_over(&mut self, call: &str, outcome: ToolOutcome, output: &Clean) {
        if let Some(tool) = self.tool(call) {
            tool.state = ToolState::Over(outcome);
            tool.output = output.clone();
        }
    }

    /// Nothing runs any more: what became of calls without a result.
    pub fn end_open_calls(&mut self, outcome: ToolOutcome) {
        for block in &mut self.blocks {
            if let Block::Tool(tool) = block
                && !matches!(tool.state, ToolState::Over(_))
            {
                // What never began was not cut off.
                let outcome = match (&tool.state, outcome) {
                    (ToolState::Called, ToolOutcome::CutOff) => ToolOutcome::NotRun,
                    _ => outcome,
                };
                tool.state = ToolState::Over(outcome);
            }
        }
    }
}
