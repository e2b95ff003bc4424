//! The mechanism: a node whose result is recorded is never done again.
//!
//! A pattern is an async function that walks the spec and calls [`Flow::node`] for every piece
//! of work. Replaying it over what is recorded brings it exactly to where it stood; there is
//! no other way to resume.

use serde_json::Value;
use stepwell::NodeKey;

use crate::ask::Ask;
use crate::flow::Flow;
use crate::gate::Question;
use crate::halt::Halt;

/// A piece of a flow's work.
pub(crate) enum Work<'a> {
    /// An agent is asked.
    Ask(Ask<'a>),
    /// A person is asked.
    Gate(Question<'a>),
}

impl Flow<'_> {
    /// The result of a piece of work: the recorded one, or one that is made now and recorded.
    pub(crate) async fn node(&self, key: &NodeKey, work: Work<'_>) -> Result<Value, Halt> {
        if let Some(output) = self.state().memo.result(key) {
            return Ok(output.clone());
        }
        if let Some(noted) = &self.rehearsal {
            return self.note(key, &work, noted);
        }
        let done = match work {
            Work::Gate(question) => self.gate(key, &question),
            Work::Ask(ask) => self.run_agent(key, &ask).await,
        };
        if let Err(halt) = &done
            && halt.is_for_all()
        {
            self.halted.set(true);
        }
        done
    }

    /// Has an agent do a piece of work, when there is room for one more that works.
    async fn run_agent(&self, key: &NodeKey, ask: &Ask<'_>) -> Result<Value, Halt> {
        let permit = self.permits.acquire().await;
        // It was waited for while something else failed.
        if self.halted.get() {
            return Err(Halt::NotStarted);
        }
        if *self.interrupt.borrow() {
            return Err(Halt::Interrupted);
        }
        let done = self.ask(key, ask).await;
        drop(permit);
        done
    }
}
