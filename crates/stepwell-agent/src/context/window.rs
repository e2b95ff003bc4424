//! The window: the messages for the model, with secrets, and the size of each.
//!
//! It is folded from events like the log's view, and differs from it only by what was redacted on
//! disk. Each message is counted once, when it comes, so that a step costs the same in a long
//! conversation.

use stepwell::log::{MessageOrigin, ViewMessage};
use stepwell::model::{Compacted, Part, Role};
use stepwell::{Event, Lane, Message, Recorded, Seq, View};

use super::tokens::Counter;
use crate::provider::is_aside;

/// Does this user message make a request? Results in the user's name do not, nor do calls (only a
/// model makes them) or their placeholders.
#[must_use]
pub fn is_request(message: &Message) -> bool {
    let asks = |part: &Part| match part {
        Part::Text(text) => !text.text.trim().is_empty() && !is_aside(&text.text),
        Part::Image(_) => true,
        _ => false,
    };
    let calls = message.calls().next().is_some();
    message.is_from_user() && !calls && message.parts.iter().any(asks)
}

/// The messages for the model.
#[derive(Clone, Debug)]
pub struct Window {
    lane: Lane,
    counter: Counter,
    /// The seqs of the standing instructions; the last ones apply.
    systems: Vec<Seq>,
    system: String,
    /// The session's goal, if one was set.
    goal: Option<String>,
    /// Instructions and goal, as they are sent.
    instructions: String,
    messages: Vec<Message>,
    /// One entry for each message.
    entries: Vec<Entry>,
    /// Tokens of the messages.
    tokens: u64,
    /// Tokens of the instructions.
    fixed: u64,
    /// The seq of the conversation's first request.
    first_request: Option<Seq>,
}

/// The facts about a message of the window, without its text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// The seq of the message; results have the seq of their calls' message.
    pub seq: Seq,
    /// The seq that compactions go by.
    pub place: Seq,
    /// Why the message is here.
    pub made: MessageOrigin,
    /// Who wrote it.
    pub role: Role,
    /// The number of calls in it.
    pub calls: usize,
    /// The message that brought each result; `None` if the view made the result up.
    pub answers: Vec<Option<Seq>>,
    /// Its tokens, as counted here.
    pub tokens: u64,
}

impl Entry {
    fn of(seq: Seq, message: &Message) -> Self {
        let is_aside =
            matches!(message.parts.as_slice(), [part] if part.as_text().is_some_and(is_aside));
        let is_ours = message.role == Role::User && (is_aside || !message.is_from_user());
        Self {
            seq,
            place: seq,
            made: if is_ours { MessageOrigin::Aside } else { MessageOrigin::Recorded },
            role: message.role,
            calls: message.calls().count(),
            answers: Vec::new(),
            tokens: 0,
        }
    }
}

impl Window {
    /// An empty window.
    #[must_use]
    pub fn new(lane: Lane, counter: Counter) -> Self {
        Self {
            lane,
            counter,
            systems: Vec::new(),
            system: String::new(),
            goal: None,
            instructions: String::new(),
            messages: Vec::new(),
            entries: Vec::new(),
            tokens: 0,
            fixed: 0,
            first_request: None,
        }
    }

    /// The window of a view. `first_request` is the lane's first user message that counts, shown or
    /// not. Results that the view made up for `pending` calls are left out: the run produces the
    /// real ones.
    #[must_use]
    pub fn of(
        mut self,
        view: View,
        first_request: Option<Seq>,
        pending: impl Fn(&str) -> bool,
    ) -> Self {
        for shown in view.messages {
            self.show(shown, &pending);
        }
        self.first_request = first_request;
        self
    }

    /// Adds the session's goal, which is sent with the instructions.
    #[must_use]
    pub fn with_goal(mut self, goal: Option<String>) -> Self {
        self.goal = goal.filter(|goal| !goal.trim().is_empty());
        self.instruct();
        self
    }

    /// Folds one event in, with the secrets that its record lacks.
    pub fn apply(&mut self, recorded: &Recorded) {
        match &recorded.event {
            Event::Message(message) if message.lane == self.lane => {
                self.hear(recorded.seq, message.clone());
            }
            Event::Compacted(compacted) if compacted.lane == self.lane => {
                self.compact(recorded.seq, compacted);
            }
            _ => {}
        }
    }

    /// Replaces the recorded form of the last message by the unredacted one.
    pub fn show_unredacted(&mut self, text: &str) {
        let (Some(last), Some(entry)) = (self.messages.last_mut(), self.entries.last_mut()) else {
            return;
        };
        if last.role == Role::User && entry.made == MessageOrigin::Recorded {
            last.parts = vec![Part::text(text)];
            self.tokens -= entry.tokens;
            entry.tokens = self.counter.message(last);
            self.tokens += entry.tokens;
        }
    }

    /// Replaces the recorded form of the standing instructions by the unredacted one.
    pub fn reveal_system(&mut self, text: &str) {
        text.clone_into(&mut self.system);
        self.instruct();
    }

    /// The current standing instructions.
    #[must_use]
    pub fn system(&self) -> &str {
        &self.system
    }

    /// The conversation.
    #[must_use]
    pub fn messages(&self) -> &[Message] {
        &self.messages
    }

    /// The facts about its messages, without their text.
    #[must_use]
    pub fn entries(&self) -> &[Entry] {
        &self.entries
    }

    /// The standing instructions and the goal, as they are sent.
    #[must_use]
    pub fn instructions(&self) -> &str {
        &self.instructions
    }

    /// The seqs of the standing instructions.
    #[must_use]
    pub fn systems(&self) -> &[Seq] {
        &self.systems
    }

    /// The session's goal.
    #[must_use]
    pub fn goal(&self) -> Option<&str> {
        self.goal.as_deref()
    }

    /// The seq of the first request, which says what the work is about.
    #[must_use]
    pub const fn first_request(&self) -> Option<Seq> {
        self.first_request
    }

    /// The text of the first request, if it is still in the window.
    #[must_use]
    pub fn task(&self) -> Option<String> {
        let first = self.first_request?;
        let place = self
            .entries
            .iter()
            .position(|it| it.seq == first && it.made == MessageOrigin::Recorded);
        Some(self.messages[place?].text()).filter(|text| !text.trim().is_empty())
    }

    /// Tokens of the messages, as counted here.
    #[must_use]
    pub const fn tokens(&self) -> u64 {
        self.tokens
    }

    /// Tokens of the instructions, as counted here.
    #[must_use]
    pub const fn fixed(&self) -> u64 {
        self.fixed
    }

    /// The counter of its tokens.
    #[must_use]
    pub const fn counter(&self) -> Counter {
        self.counter
    }

    fn show(&mut self, shown: ViewMessage, pending: &impl Fn(&str) -> bool) {
        let ViewMessage { seq, place, made, mut answers, mut message } = shown;
        if message.role == Role::System {
            return self.hear(seq, message);
        }
        if made == MessageOrigin::Results {
            let waits = |part: &Part, answer: &Option<Seq>| {
                let Part::ToolResult(result) = part else { return false };
                answer.is_none() && pending(&result.call_id)
            };
            let kept: Vec<bool> =
                message.parts.iter().zip(&answers).map(|(part, by)| !waits(part, by)).collect();
            let mut keep = kept.iter();
            message.parts.retain(|_| *keep.next().unwrap_or(&true));
            let mut keep = kept.iter();
            answers.retain(|_| *keep.next().unwrap_or(&true));
            if message.parts.is_empty() {
                return;
            }
        }
        let entry = Entry::of(seq, &message);
        let made = if made == MessageOrigin::Recorded { entry.made } else { made };
        self.push(Entry { place, made, answers, ..entry }, message);
    }

    fn hear(&mut self, seq: Seq, mut message: Message) {
        if message.role == Role::System {
            self.system = message.text();
            self.systems.push(seq);
            return self.instruct();
        }
        message.parts.retain(|part| match part {
            Part::Text(text) => !text.text.trim().is_empty(),
            Part::Thinking(text) => !text.text.is_empty() || text.opaque.is_some(),
            _ => true,
        });
        if message.parts.is_empty() {
            return;
        }
        if message.role == Role::Tool {
            return self.answer(seq, message);
        }
        let entry = Entry::of(seq, &message);
        if entry.role == Role::User && entry.made == MessageOrigin::Recorded {
            self.first_request.get_or_insert(seq);
        }
        self.push(entry, message);
    }

    /// All results of one answer go into one message, as every provider requires.
    fn answer(&mut self, seq: Seq, message: Message) {
        let came = vec![Some(seq); message.parts.len()];
        match (self.messages.last_mut(), self.entries.last_mut()) {
            (Some(last), Some(entry)) if entry.made == MessageOrigin::Results => {
                let more: u64 = message.parts.iter().map(|part| self.counter.part(part)).sum();
                entry.answers.extend(came);
                entry.tokens += more;
                self.tokens += more;
                last.parts.extend(message.parts);
            }
            (_, Some(call)) => {
                let (place, made, answers) = (call.place, MessageOrigin::Results, came);
                let entry = Entry { place, made, answers, ..Entry::of(call.seq, &message) };
                self.push(entry, message);
            }
            // A result without its call is dropped.
            (_, None) => {}
        }
    }

    fn push(&mut self, mut entry: Entry, message: Message) {
        entry.tokens = self.counter.message(&message);
        self.tokens += entry.tokens;
        self.entries.push(entry);
        self.messages.push(message);
    }

    /// Replaces the messages that a compaction covers by its summary, as the view does.
    fn compact(&mut self, seq: Seq, compacted: &Compacted) {
        let covered = |entry: &Entry| {
            let pinned =
                entry.made != MessageOrigin::Summary && compacted.pinned.contains(&entry.seq);
            (compacted.from..=compacted.to).contains(&entry.place) && !pinned
        };
        let in_range = |entry: &Entry| (compacted.from..=compacted.to).contains(&entry.place);
        let position = |is: &dyn Fn(&Entry) -> bool| self.entries.iter().position(is);
        let first = position(&covered).or_else(|| position(&in_range));
        let gone: Vec<bool> = self.entries.iter().map(covered).collect();
        let mut is_gone = gone.iter();
        self.messages.retain(|_| !is_gone.next().unwrap_or(&false));
        let mut is_gone = gone.iter();
        self.entries.retain(|_| !is_gone.next().unwrap_or(&false));
        self.tokens = self.entries.iter().map(|entry| entry.tokens).sum();
        let summary = compacted.summary.as_ref().filter(|summary| !summary.trim().is_empty());
        if let (Some(first), Some(summary)) = (first, summary) {
            let message = Message::user(summary.clone()).in_lane(self.lane.clone());
            let tokens = self.counter.message(&message);
            self.tokens += tokens;
            let (place, made) = (compacted.to, MessageOrigin::Summary);
            let entry = Entry { place, made, tokens, ..Entry::of(seq, &message) };
            self.entries.insert(first, entry);
            self.messages.insert(first, message);
        }
    }

    fn instruct(&mut self) {
        self.instructions = match &self.goal {
            Some(goal) if self.system.is_empty() => format!("The goal of this work: {goal}"),
            Some(goal) => format!("{}\n\nThe goal of this work: {goal}", self.system),
            None => self.system.clone(),
        };
        self.fixed = self.counter.text(&self.instructions);
    }
}
