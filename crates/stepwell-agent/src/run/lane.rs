//! Lanes: runs that share one session, each with its own conversation and its own past.
//!
//! A session's past is read once and split. A lane's run receives only that lane's events, so its
//! cost does not depend on the other lanes.

use std::collections::HashMap;
use std::sync::Arc;

use stepwell::model::{Part, Role, Spent};
use stepwell::trust::Weighed;
use stepwell::{Event, Lane, Recorded, Session};

use super::resume::{Ids, ResumeFrom};
use super::{FrontEnd, Provenance, Run, Setup, SharedBudget};

/// A session's past, by lane.
#[derive(Debug, Default)]
pub struct Past {
    lanes: HashMap<Lane, Vec<Recorded>>,
    /// Events that concern every lane: rules, questions, tasks.
    common: Vec<Recorded>,
    ids: Ids,
    provenance: Arc<Provenance>,
}

impl Past {
    /// An empty past.
    #[must_use]
    pub fn known(provenance: Provenance) -> Self {
        Self { provenance: Arc::new(provenance), ..Self::default() }
    }

    /// Adds an event that counts. Events that no conversation depends on are dropped.
    pub fn add(&mut self, event: Recorded) {
        if let Event::Message(message) = &event.event {
            for call in message.calls() {
                self.ids.claim(&call.id);
            }
        }
        match (event.event.lane(), &event.event) {
            (Some(lane), _) => match self.lanes.get_mut(lane) {
                Some(events) => events.push(event),
                None => {
                    self.lanes.insert(lane.clone(), vec![event]);
                }
            },
            (
                None,
                Event::Permission(_)
                | Event::Task(_)
                | Event::Gate(_)
                | Event::GateAnswered(_)
                | Event::Status(_)
                | Event::Phase(_)
                | Event::Undone(_),
            ) => self.common.push(event),
            _ => {}
        }
    }

    /// The events of a lane's conversation.
    #[must_use]
    pub fn said(&self, lane: &Lane) -> &[Recorded] {
        self.lanes.get(lane).map_or(&[], Vec::as_slice)
    }

    /// For later runs of the lane, replaces the recorded form of the last such request by the
    /// unredacted one.
    pub fn show_unredacted(&mut self, lane: &Lane, recorded: &str, said: &str) {
        let events = self.lanes.get_mut(lane).into_iter().flatten().rev();
        let mut asked = events.filter_map(|event| match &mut event.event {
            Event::Message(message) if message.role == Role::User => Some(message),
            _ => None,
        });
        if let Some(message) = asked.find(|message| message.text() == recorded) {
            message.parts = vec![Part::text(said)];
        }
    }

    /// Everything needed to resume a lane.
    #[must_use]
    pub fn lane<'a>(&self, lane: &Lane, shared_budget: &'a SharedBudget) -> InLane<'a> {
        let (said, common) = (self.said(lane), self.common.as_slice());
        let mut events = Vec::with_capacity(said.len() + common.len());
        events.extend(said.iter().chain(common).cloned());
        events.sort_by_key(|event| event.seq);
        let (lane, ids, provenance) = (lane.clone(), self.ids.clone(), self.provenance.clone());
        InLane { lane, events, ids, provenance, shared_budget }
    }
}

/// A lane to be resumed.
#[derive(Debug)]
pub struct InLane<'a> {
    lane: Lane,
    /// The events that its run depends on, in order.
    events: Vec<Recorded>,
    ids: Ids,
    provenance: Arc<Provenance>,
    /// The limits that all lanes share.
    shared_budget: &'a SharedBudget,
}

impl<'a> Run<'a> {
    /// Resumes a lane. The run does not record the session's status: the runner of the lanes does,
    /// and adds each lane's new events to the past.
    pub fn in_lane(
        session: &'a Session,
        setup: &'a Setup,
        front: FrontEnd,
        at: InLane<'a>,
    ) -> Self {
        let InLane { lane, events, ids, provenance, shared_budget } = at;
        let (goal, below, truncated) = (None, Spent::default(), false);
        // The reader of the session's past left out events that do not count.
        let (shared_budget, read_to, weighed) = (Some(shared_budget), None, Weighed::default());
        let from = ResumeFrom {
            lane,
            shared_budget,
            events,
            weighed,
            provenance,
            ids,
            goal,
            below,
            truncated,
            read_to,
        };
        Self::resume_from(session, setup, front, from)
    }
}
