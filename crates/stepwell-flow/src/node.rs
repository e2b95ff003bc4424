//! The mechanism: a node whose result is recorded never runs again.
//!
//! A pattern is an async function that walks the spec and calls [`Flow::node`] for every node.
//! Replaying it over the recorded results brings it exactly to where it stopped. There is no
//! other way to resume.

use std::cell::RefCell;

use serde_json::{Value, json};
use stepwell::model::NodeKey;

use crate::ask::Ask;
use crate::flow::{Flow, Upcoming};
use crate::gate::Question;
use crate::halt::Halt;

/// The work of a node.
pub(crate) enum Work<'a> {
    /// A prompt for an agent.
    Ask(Ask<'a>),
    /// A question for a person.
    Gate(Question<'a>),
}

impl Flow<'_> {
    /// The result of a node: the recorded one, or else the work runs now and is recorded.
    pub(crate) async fn node(&self, key: &NodeKey, work: Work<'_>) -> Result<Value, Halt> {
        if let Some(output) = self.state().memo.result(key) {
            return Ok(output.clone());
        }
        if let Some(upcoming) = &self.dry_run {
            return self.note_upcoming(key, &work, upcoming);
        }
        let done = match work {
            Work::Gate(question) => self.gate(key, &question),
            Work::Ask(ask) => self.run_agent(key, &ask).await,
        };
        if let Err(halt) = &done
            && halt.stops_flow()
        {
            self.halted.set(true);
        }
        done
    }

    /// Notes a node instead of running it. A question that is already answered has the answer as
    /// its result.
    fn note_upcoming(
        &self,
        key: &NodeKey,
        work: &Work<'_>,
        upcoming: &RefCell<Vec<Upcoming>>,
    ) -> Result<Value, Halt> {
        let node = match work {
            Work::Gate(question) => {
                let asked = self.state().memo.gate(&key.to_string()).cloned();
                if let Some(answer) = asked.and_then(|asked| asked.answer) {
                    return Ok(json!({ "response": answer.answer.text(), "who": answer.who }));
                }
                let asks = question.gate.prompt.render(question.scope).ok();
                Upcoming { key: key.to_string(), agent: None, asks }
            }
            Work::Ask(ask) => {
                let (agent, asks) = (Some(ask.agent.to_owned()), (ask.prompt)().ok());
                Upcoming { key: key.to_string(), agent, asks }
            }
        };
        let redact = |text: String| self.agents.redactor().redact(&text).into_owned();
        upcoming.borrow_mut().push(Upcoming { asks: node.asks.map(redact), ..node });
        Err(Halt::NotStarted)
    }

    /// Runs an agent as soon as fewer than `max_parallel` others run.
    async fn run_agent(&self, key: &NodeKey, ask: &Ask<'_>) -> Result<Value, Halt> {
        let permit = self.permits.acquire().await;
        // Something else may have failed in the meantime.
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
