//! Messages that people send to a working run: they join the conversation before the next call of
//! the model, in order, each once.

use stepwell::model::Phase;
use stepwell::{Event, Lane, Message, Recorded};

use super::notice::Notice;
use super::{Run, RunEvent};
use crate::error::Result;
use crate::phases::PhaseState;

impl Run<'_> {
    /// Adds the queued messages of this lane to the conversation. Returns whether there were any.
    ///
    /// The added message names the seq of the queued one, and the store refuses a second message
    /// for it. So a run that is killed at any moment adds each message once.
    pub(super) fn take_in(&mut self) -> Result<bool> {
        self.front.wishes.heed();
        let (said, not_heard) = self.session.well().heard(self.session.id(), &self.lane)?;
        for word in not_heard {
            if self.inbox.ignored.insert(word.seq) {
                self.front.events.tell(RunEvent::Notice(Notice::Disregarded(word.into())));
            }
        }
        let deferred = self.inbox.deferred.take_if(|_| !said.is_empty());
        let messages = said.into_iter().filter_map(|recorded| match recorded.event {
            Event::Said(said) => {
                // The model receives the user's own message unredacted.
                let own =
                    deferred.as_ref().filter(|text| self.setup.redactor.redact(text) == said.text);
                let message =
                    Message::user(own.cloned().unwrap_or(said.text)).in_lane(self.lane.clone());
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

    /// Does this lane have an urgent queued message? If the log cannot be read, the call ends too,
    /// and the next read reports the error.
    pub(super) fn has_urgent_words(&self) -> bool {
        let heard = self.session.well().heard(self.session.id(), &self.lane);
        let urgent = |it: &Recorded| matches!(&it.event, Event::Said(said) if said.now);
        heard.map_or(true, |(said, _)| said.iter().any(urgent))
    }

    /// Checks whether another person moved the work to another phase, and informs the model.
    pub(super) fn hear_phase(&mut self) -> Result<bool> {
        let Some(to) = self.find_phase()? else { return Ok(false) };
        let lessons = self.lessons(to);
        let text = format!("[The user moved the work to phase {to}.]{lessons}");
        self.record(vec![Message::user(text).in_lane(self.lane.clone()).into()])?;
        Ok(true)
    }

    /// The current phase, if it changed without this run. Folds the change in.
    pub(super) fn find_phase(&mut self) -> Result<Option<Phase>> {
        if self.lane != Lane::main() {
            return Ok(None);
        }
        let Some(known) = self.state.phase else { return Ok(None) };
        let head = self.session.info()?.head;
        let Some(phase) = head.phase.filter(|phase| *phase != known.phase) else {
            return Ok(None);
        };
        self.state.phase = Some(PhaseState { phase, returns: head.discuss_returns, ..known });
        Ok(Some(phase))
    }

    /// Lessons of earlier work on the project, for the phases that they help.
    pub(super) fn lessons(&self, phase: Phase) -> String {
        if phase != Phase::Plan {
            return String::new();
        }
        match self.session.well().lessons(self.session.id()) {
            lessons if lessons.is_empty() => lessons,
            lessons => format!("\n\nLessons of earlier work on this project:\n{lessons}"),
        }
    }
}
