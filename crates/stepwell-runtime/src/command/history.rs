//! Points of a session: naming them, going back to them, branching from them, and shortening what
//! lies behind.

use std::collections::BTreeMap;

use serde_json::Value;
use stepwell::error::Action;
use stepwell::log::Redactor;
use stepwell::model::{Checkpoint, CheckpointReason, Compacted};
use stepwell::{Seq, SessionId, SessionInfo, Stepwell};
use stepwell_agent::run::Shrunk;
use stepwell_files::plan::Others;
use stepwell_files::rewind::{self, Foreign, Preview};
use stepwell_files::rewind_history::{self, Asked, Direction};
use stepwell_wire::{
    CheckpointInfo, CheckpointMade, Compaction, CompactionUndone, Forked, WorkSince,
};

use super::asked::{MoveCommand, RewindTo, Shortening};
use super::reply::{CompactionReply, MoveOutcome, MoveReply, Reply};
use crate::error::{Error, Result};
use crate::files::{Recorders, finish_rewind, root, site};
use crate::fork::ForkRequest;
use crate::inspect;
use crate::request::Interrupt;
use crate::resume::refuse_external;
use crate::runtime::Runtime;

pub(super) fn checkpoints(well: &Stepwell, id: &SessionId) -> Result<Vec<CheckpointInfo>> {
    Ok(well.checkpoints(id)?.into_iter().map(CheckpointInfo::from).collect())
}

/// Finishes a rewind that was cut off. Tells whether there was one.
pub(super) fn finish(runtime: &Runtime, well: &Stepwell, id: &SessionId) -> Result<bool> {
    finish_rewind(&mut well.lock(id)?, Foreign::Left, runtime)
}

impl Runtime {
    pub(super) fn checkpoint(
        &self,
        well: &Stepwell,
        id: &SessionId,
        name: String,
        metadata: BTreeMap<String, Value>,
    ) -> Result<CheckpointMade> {
        // What is recorded while files are half moved would be set aside.
        if well.info(id)?.head.rewinding.is_some() {
            // The name of the request's event is the checkpoint's.
            let unnamed = self.clone().naming_event(None).acting_well(well);
            finish_rewind(&mut unnamed.lock(id)?, Foreign::Refused, self)?;
        }
        let reason = CheckpointReason::Manual;
        let seq = well.checkpoint(id, Checkpoint { name: name.clone(), reason, metadata })?;
        Ok(CheckpointMade { id: id.clone(), checkpoint: name, seq })
    }

    pub(crate) fn move_session(
        &self,
        well: &Stepwell,
        id: &SessionId,
        command: &MoveCommand,
    ) -> Result<MoveReply> {
        let way = if command.to == RewindTo::Undo { Direction::Forth } else { Direction::Back };
        if command.dry_run {
            let info = well.info(id)?;
            if info.head.rewinding.is_some() {
                return self.cut_off(well, info, way);
            }
            let asked = rewind_asked(well, id, command)?;
            let outcome = MoveOutcome::Previewed(self.preview_rewind(id, &asked)?);
            return Ok(MoveReply { id: id.clone(), asked, way, info, outcome });
        }
        let mut session = well.lock(id)?;
        finish_rewind(&mut session, Foreign::Refused, self)?;
        let asked = rewind_asked(well, id, command)?;
        let info = session.info()?;
        let outcome = MoveOutcome::Tried(self.rewind_held(&mut session, &asked)?);
        Ok(MoveReply { id: id.clone(), asked, way, info, outcome })
    }

    /// What is left to do of a rewind that was cut off: another one comes only after it.
    fn cut_off(&self, well: &Stepwell, info: SessionInfo, way: Direction) -> Result<MoveReply> {
        if info.held.is_some() {
            info.refuse_half_rewound()?;
        }
        let id = info.head.id.clone();
        let (root, redactor) = (root(&info.head, self.workspace())?, Redactor::new([]));
        let whose = Recorders::of(well, &id)?;
        let site = site(&root, &redactor, &whose, self.workspace());
        let half = rewind::cut_off(&**well.store(), &id, &site)?;
        let asked = match &half {
            Some(half) => half.asked,
            None => Asked {
                to: info.head.seq,
                scope: stepwell::model::Scope::Both,
                undoes: None,
                others: Others::Respected,
            },
        };
        Ok(MoveReply { id, asked, way, info, outcome: MoveOutcome::CutOff(half) })
    }

    pub(super) fn fork_at(
        &self,
        well: &Stepwell,
        parent: &SessionId,
        at: Option<&str>,
        label: Option<String>,
    ) -> Result<Forked> {
        let at = at.map(|text| well.point(parent, text)).transpose()?;
        let forked = self.fork(&ForkRequest { session: parent.clone(), at, label })?;
        Ok(Forked { id: forked.session, parent: parent.clone(), at: forked.at })
    }

    /// Shortens a conversation; one that runs is asked to do it itself.
    pub(crate) fn shorten(
        &self,
        id: &SessionId,
        how: Shortening,
        interrupt: &Interrupt,
    ) -> Result<CompactionReply> {
        let well = self.writing()?;
        let head = well.info(id)?.head;
        refuse_external(&head)?;
        let keeps = self.workspace().config.settings.compaction_keep.get().into();
        let id = id.clone();
        if how == Shortening::Summary && self.ask_to_compact(&id)? {
            let answer = Compaction { id, compacted: None, truncated: false, asked: true };
            return Ok(CompactionReply { answer, head, keeps });
        }
        let mut runtime = self.clone();
        if how == Shortening::Truncation {
            let mut workspace = self.workspace().clone();
            workspace.config.settings.truncation = true;
            runtime = self.in_workspace(workspace);
        }
        let session = self.acting_well(&well).hold_whole(&id)?;
        let compacted = match runtime.compact_held(&session, interrupt)? {
            Shrunk::Done(compacted) => Some(*compacted),
            Shrunk::AsShortAsItGets => None,
            Shrunk::Interrupted => return Err(Error::Interrupted),
        };
        let truncated = compacted.as_ref().is_some_and(Compacted::is_truncation);
        let answer = Compaction { id, compacted, truncated, asked: false };
        Ok(CompactionReply { answer, head, keeps })
    }

    pub(super) fn undo_compaction(&self, well: &Stepwell, id: &SessionId) -> Result<Reply> {
        refuse_external(&well.info(id)?.head)?;
        let session = well.hold_whole(id)?;
        // As the context is counted: more may have been said since the compaction.
        let tokens_before = inspect::tokens(self, well, id)?;
        let Some(undone) = session.undo_last_compaction()? else {
            return Ok(Reply::NoCompaction(id.clone()));
        };
        let tokens_after = inspect::tokens(self, well, id)?;
        let id = id.clone();
        Ok(Reply::CompactionUndone(CompactionUndone { id, undone, tokens_before, tokens_after }))
    }
}

/// The move that is meant.
///
/// # Errors
/// If there is no such point, or nothing to take back.
fn rewind_asked(well: &Stepwell, session: &SessionId, command: &MoveCommand) -> Result<Asked> {
    let others = if command.force { Others::Overwritten } else { Others::Respected };
    let back = match &command.to {
        RewindTo::Point(point) => {
            let to = well.point(session, point)?;
            return Ok(Asked { to, scope: command.scope, undoes: None, others });
        }
        RewindTo::LastWords => {
            let to = well.last_words(session)?;
            return Ok(Asked { to, scope: command.scope, undoes: None, others });
        }
        RewindTo::Undo => Direction::Back,
        RewindTo::Redo => Direction::Forth,
    };
    let facts = well.store().keyed_events(session, &rewind_history::MOVES)?;
    let head = well.info(session)?.head.seq;
    let none = || {
        let what = match back {
            Direction::Back => "rewind to undo",
            Direction::Forth => "undone rewind to redo",
        };
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
