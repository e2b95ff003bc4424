//! The parts of guided work that an agent does.

use serde_json::Value;
use stepwell::model::NodeKey;
use stepwell::{Event, Lane};

use super::guide::Guide;
use crate::ask::{Ask, Read, Worker};
use crate::halt::Halt;
use crate::spec::Name;

/// How often an agent is asked again if its answer cannot be used.
const RETRIES: u32 = 2;

/// A request to an agent.
pub(super) struct AgentPart<'a> {
    pub(super) key: &'a NodeKey,
    pub(super) agent: &'a Name,
    pub(super) lane: Lane,
    pub(super) prompt: &'a dyn Fn() -> Result<String, String>,
    /// Parses the answer. The error tells the agent why it is unusable.
    pub(super) read: &'a Read<'a>,
}

impl Guide<'_, '_> {
    /// An agent's answer: the recorded one, or a new one.
    pub(super) async fn ask_agent(&self, part: &AgentPart<'_>) -> Result<Value, Halt> {
        let flow = self.flow;
        if let Some(output) = flow.state().memo.result(part.key) {
            return Ok(output.clone());
        }
        self.note_upcoming(part.key, Some(part.agent.as_str()), || (part.prompt)().ok())?;
        self.may_start()?;
        let permit = flow.permits.acquire().await;
        self.may_start()?;
        let setup = flow.agent_setup(part.key, part.agent.as_str(), None)?;
        let (starting, finishing) = (&Vec::<Event>::new, &|_: &Value| Vec::new());
        let (setup, shared_budget) = (&*setup, &flow.shared_budget);
        let worker = Worker { setup, shared_budget, starting, finishing, judges_denied: true };
        let done = flow.ask_worker(part.key, &part.ask(), &worker).await;
        drop(permit);
        self.halting(done)
    }
}

impl AgentPart<'_> {
    pub(super) fn ask(&self) -> Ask<'_> {
        Ask {
            lane: self.lane.clone(),
            agent: self.agent.as_str(),
            tools: None,
            prompt: self.prompt,
            read: self.read,
            retries: RETRIES,
        }
    }
}
