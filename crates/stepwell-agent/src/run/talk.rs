//! What people say to a run while it works: taken in before the next call of the model, in order,
//! each once.

use stepwell::{Event, Message};

use super::Run;
use crate::error::Result;

impl Run<'_> {
    /// Takes in what was said to this lane and not taken in yet. Says whether there was something.
    ///
    /// The message that takes a word in names its seq, and the store refuses a second one: killed
    /// at any moment, a run takes each word in once.
    pub(super) fn take_in(&mut self) -> Result<bool> {
        self.front.wishes.heed();
        let said = self.session.well().inbox(self.session.id(), &self.lane)?;
        let messages = said.into_iter().filter_map(|recorded| match recorded.event {
            Event::Said(said) => {
                let message = Message::user(said.text).in_lane(self.lane.clone());
                Some(message.taking_in(recorded.seq).into())
            }
            _ => None,
        });
        let messages: Vec<Event> = messages.collect();
        if messages.is_empty() {
            return Ok(false);
        }
        self.record(messages)?;
        Ok(true)
    }
}
