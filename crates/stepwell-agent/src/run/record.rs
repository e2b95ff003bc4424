//! The events at the end of a step, and size estimates.

use stepwell::model::{Checkpoint, Part, Step};
use stepwell::{Event, Message};

use super::Run;
use crate::provider::ToolSpec;

impl Run<'_> {
    /// The events at the end of a step: now and then a checkpoint, too.
    pub(super) fn sealed(&self) -> Vec<Event> {
        let n = self.state.steps + 1;
        let mut events = vec![Step { lane: self.lane.clone(), n }.into()];
        let every = self.setup.keeping.every_steps;
        if every > 0 && n.is_multiple_of(every) {
            events.push(Checkpoint::automatic(format!("step-{n}")).into());
        }
        events
    }
}

/// The fewest characters of a token: an estimate must not be too low.
const CHARACTERS: u64 = 3;

/// Estimates the tokens of a request.
pub(super) fn tokens(system: &str, messages: &[Message], tools: &[ToolSpec]) -> u64 {
    let part = |part: &Part| match part {
        Part::Text(text) | Part::Thinking(text) => text.text.len(),
        Part::ToolCall(call) => call.name.len() + call.arguments.len() + 20,
        Part::ToolResult(result) => result.text.len() + 20,
        // Roughly what providers count for a picture.
        Part::Image(_) => 4_500,
    };
    let messages = messages.iter().flat_map(|message| &message.parts).map(part).sum::<usize>();
    let tools: usize = tools
        .iter()
        .map(|tool| tool.name.len() + tool.description.len() + tool.parameters.to_string().len())
        .sum();
    let characters = u64::try_from(system.len() + messages + tools).unwrap_or(u64::MAX);
    characters.div_ceil(CHARACTERS)
}
