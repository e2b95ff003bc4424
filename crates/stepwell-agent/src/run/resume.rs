//! Resumes a session: folds the events of its lane into a run.

use std::collections::{BTreeMap, HashSet};
use std::sync::Arc;

use parking_lot::Mutex;

use stepwell::log::Timeline;
use stepwell::model::{Role, Spent};
use stepwell::store::Span;
use stepwell::trust::Weighed;
use stepwell::work::compactions::Extent;
use stepwell::{Event, Lane, Message, Recorded, Seq, Session, Status, StopReason, View};

use super::approval::SECRET_GONE;
use super::others::{Request, SCRUBBED};
use super::{
    Answers, Calls, Compactor, Ended, FileWatch, FrontEnd, Inbox, Others, Provenance, RequestSize,
    Run, Setup, SharedBudget, record, subagents,
};
use crate::context::Seen;
use crate::context::window::{Window, is_request};
use crate::error::Result;
use crate::machine::{Baseline, State};
use crate::provider::ToolSpec;
use stepwell::log::Redactor;

/// The ids of all calls of a session, in every lane: an approval of one call must never count for
/// another.
#[derive(Clone, Debug, Default)]
pub struct Ids(Arc<Mutex<HashSet<String>>>);

impl Ids {
    /// Reserves an id. Returns false if it is taken.
    pub(super) fn claim(&self, id: &str) -> bool {
        let mut ids = self.0.lock();
        ids.insert(id.to_owned())
    }
}

/// The parts that a resume starts from.
pub(super) struct ResumeFrom<'a> {
    pub(super) lane: Lane,
    pub(super) shared_budget: Option<&'a SharedBudget>,
    pub(super) events: Vec<Recorded>,
    /// Which recorded approvals count.
    pub(super) weighed: Weighed,
    pub(super) provenance: Arc<Provenance>,
    pub(super) ids: Ids,
    pub(super) goal: Option<String>,
    pub(super) below: Spent,
    pub(super) truncated: bool,
    /// The last event that was read; `None` if the runner of the lanes reads answers.
    pub(super) read_to: Option<Seq>,
}

impl<'a> Run<'a> {
    /// Resumes a session.
    pub fn new(session: &'a Session, setup: &'a Setup, front: FrontEnd) -> Result<Self> {
        let slice = session.events(Span::ALL)?;
        let replaced = slice.replaced.iter().map(|it| it.seq).collect();
        let events = slice.intact(session.id())?;
        let below = subagents::below(session)?;
        let head = session.info()?.head;
        let truncated = Extent::of(&head) == Extent::Truncated;
        let (ids, goal, read_to) = (Ids::default(), head.goal, events.last().map(|it| it.seq));
        let weighed = session.well().judge(session.id())?.weigh(&events);
        let (lane, shared_budget) = (Lane::main(), None);
        let provenance = Arc::new(Provenance {
            runs: weighed.runs.clone(),
            replaced,
            read_to: read_to.unwrap_or_default(),
        });
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
        Ok(Self::resume_from(session, setup, front, from))
    }

    pub(super) fn resume_from(
        session: &'a Session,
        setup: &'a Setup,
        front: FrontEnd,
        from: ResumeFrom<'a>,
    ) -> Self {
        let ResumeFrom {
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
        } = from;
        let mut state = State::new(lane.clone());
        let last = events.last().map(|event| event.seq).unwrap_or_default();
        let timeline = Timeline::at(last, events.iter());
        for event in events.iter().filter_map(|event| weighed.counted(event)) {
            // A rewind does not take back what was spent.
            if timeline.contains(event.seq) {
                state.apply(&event);
            } else {
                state.keep(&event);
            }
        }
        state.below = below;
        let since = Baseline { spent: state.total(), steps: state.steps };
        let files = FileWatch::new(session, setup, &events);
        let (mut unkept, mut first_request) = (BTreeMap::new(), None);
        let (mut requests, mut told_before) = (Vec::new(), None);
        for event in events.iter().filter(|event| timeline.contains(event.seq)) {
            let Event::Message(message) = &event.event else { continue };
            // Hidden calls keep their ids, too.
            for call in message.calls() {
                ids.claim(&call.id);
                if provenance.replaced.contains(&event.seq) {
                    unkept.insert(call.id.clone(), SCRUBBED);
                } else if Redactor::is_redacted(&call.arguments) {
                    unkept.insert(call.id.clone(), SECRET_GONE);
                }
            }
            if message.lane == lane && is_request(message) {
                first_request.get_or_insert(event.seq);
                // A flow's agents work on its spec, not on requests; starting the flow counts as
                // the user's consent.
                if shared_budget.is_none() {
                    let request = Request::of(event, message, &events);
                    match provenance.runs.is_since_own(event.seq) {
                        true => requests.push(request),
                        false => told_before = Some(request),
                    }
                }
            }
        }
        // The current request counts even if it was reported before.
        if requests.is_empty() {
            requests.extend(told_before);
        }
        let view = View::of(&lane, events);
        for call in view.messages.iter().flat_map(|shown| shown.message.calls()) {
            ids.claim(&call.id);
        }
        let (counter, calibration) = (setup.context.counter(), setup.context.calibration);
        let seen = Seen { calibration, length: setup.context.length };
        // The view makes up results for open calls; the run produces the real ones.
        let window = Window::new(lane.clone(), counter)
            .of(view, first_request, |id| state.is_pending(id))
            .with_goal(goal);
        let specs: Vec<ToolSpec> = setup.tools.iter().map(|tool| tool.spec().clone()).collect();
        let spec_tokens = counter.tools(&specs);
        let tokens = record::tokens(window.instructions(), window.messages(), &specs);
        let ended = Ended {
            status: Status::Running,
            reason: StopReason::LlmDone,
            error: None,
            output: window
                .messages()
                .last()
                .filter(|last| last.role == Role::Assistant)
                .map_or_else(String::new, Message::text),
            tools_used: Vec::new(),
            files_modified: Vec::new(),
            calibration,
        };
        Self {
            session,
            setup,
            front,
            lane,
            shared_budget,
            rules: setup.rules.clone(),
            given: None,
            state,
            since,
            window,
            calls: Calls { unkept, ids },
            request: RequestSize { specs, spec_tokens, tokens },
            answers: Answers::default(),
            compactor: Compactor::new(seen, truncated),
            files,
            ended,
            others: Others { provenance, requests, accepted: false },
            inbox: Inbox { read_to, ..Inbox::default() },
        }
    }
}
