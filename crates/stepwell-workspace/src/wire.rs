//! What programs get to read of imports, worktrees, checks and handovers.

use std::path::Path;

use stepwell_formats::{Became, Format, ImportedSession};
use stepwell_wire::{CheckFinding, HandedOver, ImportResult, Imported, Worktree};

use crate::doctor::Finding;
use crate::handoff::Handed;
use crate::worktrees::SubagentWorktree;

impl From<&SubagentWorktree> for Worktree {
    fn from(site: &SubagentWorktree) -> Self {
        let (head, state) = (site.session.as_ref().map(|it| &it.head), site.state.as_ref());
        Self {
            id: site.id.clone(),
            branch: site.worktree.branch.clone(),
            path: site.worktree.path.display().to_string(),
            state: state.ok().map(|it| it.state),
            paths: state.map(|it| it.paths.clone()).unwrap_or_default(),
            commit: state.ok().and_then(|it| it.stray.clone()),
            error: state.err().cloned(),
            in_use: site.used_by.is_some(),
            used_by: site.used_by.as_ref().map(|it| it.id.clone()),
            status: head.map(|head| head.status),
            task: head.map(|head| head.task.clone()),
            parent: head.and_then(|head| head.origin.parent().cloned()),
        }
    }
}

/// What became of a session that was read from a path.
#[must_use]
pub fn imported(taken: &ImportedSession, path: &Path, format: Format) -> Imported {
    Imported {
        session: taken.id.clone(),
        imported: match taken.became {
            Became::Imported => ImportResult::Imported,
            Became::Updated => ImportResult::Updated,
            Became::Unchanged => ImportResult::Unchanged,
        },
        from: Some(path.display().to_string()),
        format: Some(format.as_str().to_owned()),
        instead_of: taken.instead_of.clone(),
        continues: taken.continues.clone(),
    }
}

impl From<&Finding> for CheckFinding {
    fn from(finding: &Finding) -> Self {
        Self {
            check: finding.check.as_str().to_owned(),
            problems: finding.problems.clone(),
            repair: finding.repair.map(ToOwned::to_owned),
            repaired: finding.repaired,
        }
    }
}

impl From<&Handed> for HandedOver {
    fn from(handed: &Handed) -> Self {
        Self {
            session: handed.session.clone(),
            agent: handed.format.as_str().to_owned(),
            file: handed.file.display().to_string(),
            folder: handed.folder.display().to_string(),
            command: handed.command.clone(),
        }
    }
}
