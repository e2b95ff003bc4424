//! Points of a session: naming them, going back to them, branching from them, and shortening what
//! lies behind.

use std::collections::BTreeMap;

use serde_json::Value;
use stepwell::model::{Checkpoint, CheckpointReason, Compacted};
use stepwell::{SessionId, SessionInfo, Stepwell};
use stepwell_agent::redact::Redactor;
use stepwell_agent::run::Shrunk;
use stepwell_files::rewind::{self, Foreign};
use stepwell_files::rewind_history::Direction;
use stepwell_wire::{CheckpointInfo, CheckpointMade, Compaction, CompactionUndone, Forked};

use super::asked::MoveCommand;
use super::reply::{CompactionReply, MoveOutcome, MoveReply, Reply};
use crate::detached::{DetachedRewind, RewindTo, rewind_asked};
use crate::error::{Error, Result};
use crate::files::{Recorders, finish_rewind, root, site};
use crate::fork::ForkRequest;
use crate::inspect;
use crate::request::Interrupt;
use crate::resume::refuse_external;
use crate::runtime::Runtime;

/// How a conversation is shortened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shortening {
    /// A model writes a summary of the old messages, if there is one that can be asked.
    Summary,
    /// Old messages are left out.
    Truncation,
}

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
            finish_rewind(&mut well.lock(id)?, Foreign::Refused, self)?;
        }
        let reason = CheckpointReason::Manual;
        let seq = well.checkpoint(id, Checkpoint { name: name.clone(), reason, metadata })?;
        Ok(CheckpointMade { id: id.clone(), checkpoint: name, seq })
    }

    pub(super) fn move_session(
        &self,
        well: &Stepwell,
        id: &SessionId,
        command: MoveCommand,
    ) -> Result<MoveReply> {
        let MoveCommand { to, scope, force, dry_run } = command;
        let way = if to == RewindTo::Undo { Direction::Forth } else { Direction::Back };
        let request = DetachedRewind { session: id.clone(), to, scope, force, dry_run };
        if dry_run {
            let info = well.info(id)?;
            if info.head.rewinding.is_some() {
                return self.cut_off(well, info, way);
            }
            let asked = rewind_asked(well, &request)?;
            let outcome = MoveOutcome::Previewed(self.preview_rewind(id, &asked)?);
            return Ok(MoveReply { id: id.clone(), asked, way, info, outcome });
        }
        let mut session = well.lock(id)?;
        finish_rewind(&mut session, Foreign::Refused, self)?;
        let asked = rewind_asked(well, &request)?;
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
            None => stepwell_files::rewind_history::Asked {
                to: info.head.seq,
                scope: stepwell::model::Scope::Both,
                undoes: None,
                others: stepwell_files::plan::Others::Respected,
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
