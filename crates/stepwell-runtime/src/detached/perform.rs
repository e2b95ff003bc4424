//! Doing what was asked, in the process that was started for it.

use serde::Serialize;
use serde_json::Value;
use stepwell::SessionId;
use stepwell::model::Who;
use stepwell_files::rewind::Done;

use super::{
    DetachedAnswer, DetachedOptions, DetachedRequest, DetachedResume, DetachedRewind, Grants, Work,
};
use crate::command::{MoveOutcome, Shortening, rewind_answer};
use crate::error::{Error, Result};
use crate::handle::RunHandle;
use crate::request::{FlowRequest, Interrupt, ResumeRequest, RunOptions, RunRequest};
use crate::resume::Resumed;
use crate::runtime::Runtime;

/// What came of a request so far.
#[derive(Debug)]
pub enum Performed {
    /// A run that goes on.
    Running(RunHandle),
    /// A session that runs already, and goes on there with the answer.
    Elsewhere(SessionId),
    /// All that there was to do.
    Done(Value),
}

impl Performed {
    /// What the one who asked is told.
    #[must_use]
    pub fn answer(&self) -> DetachedAnswer {
        match self {
            Self::Running(handle) => DetachedAnswer::Started { session: handle.id().clone() },
            Self::Elsewhere(session) => {
                DetachedAnswer::GoesOnElsewhere { session: session.clone() }
            }
            Self::Done(answer) => DetachedAnswer::Done(answer.clone()),
        }
    }
}

impl Runtime {
    /// Does what is asked, or begins it, for whoever asked.
    ///
    /// # Errors
    /// If it cannot be done.
    pub fn perform(&self, request: DetachedRequest, interrupt: &Interrupt) -> Result<Performed> {
        let DetachedRequest { who, grants, work } = request;
        let mut runtime = self.clone();
        if grants.is_other {
            runtime = runtime.for_others();
        }
        if let Some(name) = who {
            runtime = runtime.acting_as(Who::from(name));
        }
        runtime.perform_work(work, grants, interrupt)
    }

    fn perform_work(&self, work: Work, grants: Grants, interrupt: &Interrupt) -> Result<Performed> {
        let granted = |options: DetachedOptions| RunOptions {
            loosest_mode: grants.loosest_mode,
            ..options.into()
        };
        let handle = match work {
            Work::Run { task, session, phases, options } => {
                let (options, interrupt) = (granted(options), interrupt.clone());
                self.start(RunRequest { task, session, phases, options, interrupt })?
            }
            Work::Resume(DetachedResume { session, say, answer, options, flow }) => {
                let trust = self.trust(&session);
                let request = ResumeRequest {
                    say,
                    answer: answer.map(Into::into),
                    options: granted(options),
                    flow,
                    interrupt: interrupt.clone(),
                    ..ResumeRequest::new(session.clone(), trust)
                };
                match self.resume_or_answer(request)? {
                    Resumed::Here(handle) => *handle,
                    Resumed::Elsewhere => return Ok(Performed::Elsewhere(session)),
                }
            }
            Work::Flow { spec, variables, options, flow } => {
                let named = spec.display().to_string();
                let request = FlowRequest::read(spec, &named)?.with_variables(&variables)?;
                let (options, interrupt) = (granted(options), interrupt.clone());
                self.start_flow(FlowRequest { options, flow, interrupt, ..request })?
            }
            Work::Compact { session } => return self.compacted(&session, interrupt),
            Work::Rewind(request) => return self.rewound(request),
        };
        Ok(Performed::Running(handle))
    }

    fn compacted(&self, session: &SessionId, interrupt: &Interrupt) -> Result<Performed> {
        done(&self.shorten(session, Shortening::Summary, interrupt)?.answer)
    }

    fn rewound(&self, request: DetachedRewind) -> Result<Performed> {
        let DetachedRewind { session, command } = request;
        let moved = self.move_session(&self.acting_well(&self.writing()?), &session, &command)?;
        let answer = |preview, done| rewind_answer(&session, &moved.asked, preview, done);
        match &moved.outcome {
            MoveOutcome::Previewed(preview) => done(&answer(preview, None)),
            MoveOutcome::Tried(Done::Rewound { seq, checkpoint, preview }) => {
                done(&answer(preview, Some((*seq, checkpoint))))
            }
            MoveOutcome::Tried(Done::Refused(preview)) => {
                let paths: Vec<_> = preview.plan.conflicts.iter().map(|it| &*it.path).collect();
                let paths = paths.join(", ");
                let why =
                    format!("files that {session} changed, someone else changed since: {paths}");
                Err(Error::invalid(why))
            }
            MoveOutcome::CutOff(_) => {
                moved.info.refuse_half_rewound()?;
                Err(Error::invalid(format!("a rewind of {session} was cut off")))
            }
        }
    }
}

fn done(answer: &impl Serialize) -> Result<Performed> {
    let answer = serde_json::to_value(answer).map_err(|error| Error::Thread(error.into()))?;
    Ok(Performed::Done(answer))
}
