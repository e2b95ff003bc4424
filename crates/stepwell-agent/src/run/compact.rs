//! Compactions: requested or due, with or without a summary, recorded as one event.

use stepwell::Event;
use stepwell::model::Compacted;
use stepwell::work::compactions::Extent;
use tokio::sync::watch as signal;

use super::compactor::{Compactor, Conversation, Due, Said, TOO_DEAR};
use super::{Cancel, Run, RunEvent};
use crate::context::plan::Why;
use crate::error::Result;
use crate::machine::{By, Shrink, Stop};
use crate::provider::CallError;

/// The outcome of a requested compaction.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Shrunk {
    /// The conversation is shorter.
    Done(Box<Compacted>),
    /// There is nothing to compact.
    AsShortAsItGets,
    /// The user interrupted it; nothing changed.
    Interrupted,
}

impl Run<'_> {
    /// Compacts the conversation, whether that is due or not.
    pub async fn shrink_now(mut self, mut interrupt: signal::Receiver<bool>) -> Result<Shrunk> {
        let (compactor, conversation) = self.compaction();
        let Some(due) = compactor.plan(conversation, Why::Asked)? else {
            return Ok(Shrunk::AsShortAsItGets);
        };
        let by = self.state.summariser(&self.rules, &self.since, due.shrink);
        let mut cut = Cancel { interrupt: &mut interrupt, deadline: None };
        match self.take_out(due, by, &mut cut).await? {
            Ok(compacted) => Ok(Shrunk::Done(Box::new(compacted))),
            Err(_) => Ok(Shrunk::Interrupted),
        }
    }

    /// The compactor, and the conversation that it works on.
    pub(super) fn compaction(&mut self) -> (&mut Compactor, Conversation<'_>) {
        let conversation = Conversation {
            session: self.session,
            setup: self.setup,
            lane: &self.lane,
            state: &self.state,
            window: &self.window,
            request: &self.request,
            shared_budget: self.shared_budget,
        };
        (&mut self.compactor, conversation)
    }

    /// How the conversation must shrink before the next call of the model, if it must.
    pub(super) fn shrink(&self) -> Option<Shrink> {
        self.compactor.due.as_ref().map(|due| due.shrink)
    }

    /// Was the conversation refused as too long, and can it shrink? Then the next move compacts it.
    pub(super) fn can_shrink(&mut self) -> Result<bool> {
        let max_output = self.max_output();
        let (compactor, conversation) = self.compaction();
        compactor.is_refused(conversation, max_output)
    }

    /// Compacts the conversation.
    pub(super) async fn compact(
        &mut self,
        by: By,
        mut cut: Cancel<'_>,
    ) -> Result<Option<(Stop, Option<CallError>)>> {
        let Some(due) = self.compactor.take_due() else { return Ok(None) };
        Ok(self.take_out(due, by, &mut cut).await?.err().map(|stop| (stop, None)))
    }

    /// Performs and records the due compaction, or stops without a change.
    async fn take_out(
        &mut self,
        due: Due,
        by: By,
        cut: &mut Cancel<'_>,
    ) -> Result<std::result::Result<Compacted, Stop>> {
        let (compactor, conversation) = self.compaction();
        let said = match (by, &due.request) {
            (By::Model, Ok(request)) => {
                match conversation.summarise(request, &due.plan, cut).await {
                    Ok(said) => said,
                    Err(stop) => return Ok(Err(stop)),
                }
            }
            (_, Err(fault)) => Said::nothing(*fault),
            (By::Nobody, Ok(_)) => Said::nothing(Some(TOO_DEAR)),
        };
        let why = due.why;
        let compacted = compactor.compacted(conversation, due, said)?;
        let mut events: Vec<Event> = vec![compacted.clone().into()];
        // Recorded together, so that readers see both or neither.
        if compactor.has_shrunk(&compacted) {
            events.push(Extent::Truncated.edited().into());
        }
        self.record(events)?;
        if let Some(usage) = compacted.usage {
            self.pay(usage, compacted.cost);
        }
        self.request.tokens = self.request.of(&self.window);
        let shrank = Box::new(compacted.clone());
        self.front.events.tell(RunEvent::Compacted { compacted: shrank, why });
        Ok(Ok(compacted))
    }
}
