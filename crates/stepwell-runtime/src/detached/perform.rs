//! Doing what was asked, in the process that was started for it.

use serde::Serialize;
use serde_json::Value;
use stepwell::error::Action;
use stepwell::log::Redactor;
use stepwell::model::{Compacted, Who};
use stepwell::{Seq, SessionId, Stepwell};
use stepwell_agent::run::Shrunk;
use stepwell_files::plan::Others;
use stepwell_files::rewind::{self, Done, Preview};
use stepwell_files::rewind_history::{self, Asked, Direction};
use stepwell_files::safe_path::Root;
use stepwell_wire::{Compaction, WorkSince};

use super::{
    DetachedAnswer, DetachedOptions, DetachedRequest, DetachedResume, DetachedRewind, Grants,
    RewindTo, Work,
};
use crate::error::{Error, Result};
use crate::files;
use crate::handle::RunHandle;
use crate::request::{FlowRequest, Interrupt, ResumeRequest, RunOptions, RunRequest};
use crate::resume::Resumed;
use crate::rewind::RewindRequest;
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
            Work::Rewind(request) => return self.rewound(&request),
        };
        Ok(Performed::Running(handle))
    }

    fn compacted(&self, session: &SessionId, interrupt: &Interrupt) -> Result<Performed> {
        let id = session.clone();
        if self.ask_to_compact(session)? {
            return done(&Compaction { id, compacted: None, truncated: false, asked: true });
        }
        let compacted = match self.compact(session, interrupt)? {
            Shrunk::Done(compacted) => Some(*compacted),
            Shrunk::AsShortAsItGets => None,
            Shrunk::Interrupted => return Err(Error::Interrupted),
        };
        let truncated = compacted.as_ref().is_some_and(Compacted::is_truncation);
        done(&Compaction { id, compacted, truncated, asked: false })
    }

    fn rewound(&self, request: &DetachedRewind) -> Result<Performed> {
        let session = &request.session;
        let well = self.writing()?;
        let asked = rewind_asked(&well, request)?;
        if request.dry_run {
            let preview = self.preview_rewind(session, &asked)?;
            return done(&rewind_answer(session, &asked, &preview, None));
        }
        let request = RewindRequest { session: session.clone(), asked };
        match self.rewind(&request)? {
            Done::Refused(preview) => {
                let paths: Vec<_> = preview.plan.conflicts.iter().map(|it| &*it.path).collect();
                let paths = paths.join(", ");
                let why =
                    format!("files that {session} changed, someone else changed since: {paths}");
                Err(Error::invalid(why))
            }
            Done::Rewound { seq, checkpoint, preview } => {
                done(&rewind_answer(session, &asked, &preview, Some((seq, &checkpoint))))
            }
        }
    }

    /// What a rewind would do.
    ///
    /// # Errors
    /// If the session cannot be read, or its folder is gone.
    pub fn preview_rewind(&self, session: &SessionId, asked: &Asked) -> Result<Preview> {
        let well = self.workspace().open_existing(stepwell::sqlite::Access::Read)?;
        let (head, redactor) = (well.info(session)?.head, Redactor::new([]));
        let root = match asked.scope.moves_files() {
            true => files::root(&head, self.workspace())?,
            false => Root::new(std::path::PathBuf::new()),
        };
        let whose = files::Recorders::of(&well, session)?;
        let site = files::site(&root, &redactor, &whose, self.workspace());
        Ok(rewind::preview(&**well.store(), session, asked, &site)?)
    }
}

fn done(answer: &impl Serialize) -> Result<Performed> {
    let answer = serde_json::to_value(answer).map_err(|error| Error::Thread(error.into()))?;
    Ok(Performed::Done(answer))
}

/// The move that is meant.
///
/// # Errors
/// If there is no such point, or nothing to take back.
pub fn rewind_asked(well: &Stepwell, request: &DetachedRewind) -> Result<Asked> {
    let others = if request.force { Others::Overwritten } else { Others::Respected };
    let back = match &request.to {
        RewindTo::Point(point) => {
            let to = well.point(&request.session, point)?;
            return Ok(Asked { to, scope: request.scope, undoes: None, others });
        }
        RewindTo::LastWords => {
            let to = well.last_words(&request.session)?;
            return Ok(Asked { to, scope: request.scope, undoes: None, others });
        }
        RewindTo::Undo => Direction::Back,
        RewindTo::Redo => Direction::Forth,
    };
    let facts = well.store().keyed_events(&request.session, &rewind_history::MOVES)?;
    let head = well.info(&request.session)?.head.seq;
    let none = || {
        let what = match back {
            Direction::Back => "rewind to undo",
            Direction::Forth => "undone rewind to redo",
        };
        let session = &request.session;
        Error::invalid(format!("{session} has no {what}")).helped(Action::ShowEvents, session)
    };
    rewind_history::taking_back(&facts, head, back, others).ok_or_else(none)
}

/// What programs get to read of a move.
#[must_use]
pub fn rewind_answer(
    id: &SessionId,
    asked: &Asked,
    preview: &Preview,
    done: Option<(Seq, &str)>,
) -> stepwell_wire::Rewind {
    let (shift, plan) = (&preview.shift, &preview.plan);
    let (work, files) = (shift.later, shift.later_files.clone());
    stepwell_wire::Rewind {
        id: id.clone(),
        to: asked.to,
        scope: asked.scope,
        undone: asked.undoes,
        done: done.is_some(),
        seq: done.map(|(seq, _)| seq),
        checkpoint: done.map(|(_, name)| name.to_owned()),
        leaves: shift.leaves,
        returns: shift.returns,
        since: asked.undoes.map(|_| WorkSince { work, files }),
        files: plan.moves.iter().map(Into::into).collect(),
        left: plan.left.clone(),
        conflicts: plan.conflicts.clone(),
    }
}
