//! A run as far as it was recorded, for the report of one that could not be saved: its store may be
//! gone by then, or another's.

use std::collections::BTreeMap;
use std::time::Duration;

use stepwell::log::{Head, LaneState, State};
use stepwell::model::{Role, Spent};
use stepwell::{Event, Lane, Recorded, Seq, SessionId, Status, StopReason};
use stepwell_agent::run::RunEvent;

use crate::report::{Failure, RunReport};

/// What is known of a run by what it recorded.
#[derive(Debug)]
pub(crate) struct RunFold {
    state: State,
    /// The sessions of its subagents, as far as they were seen.
    below: BTreeMap<SessionId, Head>,
    /// The model's last words.
    output: String,
    /// Tools that were used in this run, each once.
    tools_used: Vec<String>,
    /// Files that were changed in this run, each once.
    files_modified: Vec<String>,
}

impl RunFold {
    /// How the session stood when the run began.
    pub(crate) fn new(head: Head, lanes: BTreeMap<Lane, LaneState>, below: Vec<Head>) -> Self {
        Self {
            state: State { head, lanes },
            below: below.into_iter().map(|head| (head.id.clone(), head)).collect(),
            output: String::new(),
            tools_used: Vec::new(),
            files_modified: Vec::new(),
        }
    }

    /// Takes in what happened.
    pub(crate) fn see(&mut self, event: &RunEvent) {
        match event {
            RunEvent::Recorded(event) => self.apply(event),
            RunEvent::Child { session, event } => self.take_below(session, event),
            RunEvent::Within { event, .. } => {
                if let RunEvent::Child { session, event } = &**event {
                    self.take_below(session, event);
                }
            }
            _ => {}
        }
    }

    /// Takes in an event that was recorded.
    fn apply(&mut self, event: &Recorded) {
        if event.seq > self.state.head.seq {
            self.state.apply(event);
        }
        match &event.event {
            Event::Message(said) if said.role == Role::Assistant && said.lane == Lane::main() => {
                self.output = said.text();
            }
            Event::ToolStarted(started) => once(&mut self.tools_used, &started.tool),
            Event::File(file) if file.path != "." => once(&mut self.files_modified, &file.path),
            _ => {}
        }
    }

    fn take_below(&mut self, id: &SessionId, event: &RunEvent) {
        match event {
            RunEvent::Recorded(event) => {
                // Its own beginning was recorded by its parent: only what follows is seen.
                let begun = || Head {
                    id: id.clone(),
                    seq: Seq::ZERO,
                    spent: Spent::default(),
                    ..self.state.head.clone()
                };
                let head = self.below.entry(id.clone()).or_insert_with(begun);
                if event.seq > head.seq {
                    head.apply(event);
                }
            }
            RunEvent::Child { session, event } => self.take_below(session, event),
            _ => {}
        }
    }

    /// The report of a run that stopped because it could not be saved.
    pub(crate) fn report(
        &self,
        error: String,
        took: Duration,
        resumed_from: Option<Seq>,
    ) -> RunReport {
        let State { head, lanes } = &self.state;
        let mut spent = head.spent;
        self.below.values().for_each(|below| spent += below.spent);
        let lanes = lanes.iter().map(|(lane, state)| (lane.to_string(), state.spent));
        let below = self.below.values().map(|it| (format!("subagent:{}", it.id), it.spent));
        RunReport {
            session: head.id.clone(),
            status: Status::Interrupted,
            reason: Some(StopReason::Crashed),
            error: Some(Failure { message: error, fault: None, unwritten: None, node: None }),
            output: self.output.clone(),
            redacted_output: self.output.clone(),
            tools_used: self.tools_used.clone(),
            files_modified: self.files_modified.clone(),
            steps: head.steps,
            model: head.model.clone(),
            took,
            spent,
            estimate: None,
            by_source: lanes.chain(below).collect(),
            waiting: Vec::new(),
            budget_total: head.budget,
            resumed_from,
            was_done: false,
            saved: true,
            flow: None,
        }
    }
}

fn once(names: &mut Vec<String>, name: &str) {
    if !names.iter().any(|known| known == name) {
        names.push(name.to_owned());
    }
}
