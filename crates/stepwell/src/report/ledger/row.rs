//! The row that a session leaves when it is emptied from the trash.

use std::collections::{BTreeMap, BTreeSet};

use super::LedgerRow;
use crate::error::Result;
use crate::log::Head;
use crate::model::LEDGER_SCOPE;
use crate::model::{
    Created, Digest, Edited, Elsewhere, Event, MAX_NAME_BYTES, NewEvent, Origin, Project,
    SessionId, Source, Status, StatusChanged, Task, TaskStatus, Time,
};
use crate::sessions::Stepwell;
use crate::store::query::{Filter, Query, TrashScope};
use crate::store::{Append, Create, SessionInfo, Target, Write};

/// The start of a row's id, and of its source's id.
pub const LEDGER_ROW: &str = "ledger-";

/// The source system of rows whose session began here.
const OWN_SYSTEM: &str = "stepwell";

/// The id of a session's row.
pub(crate) fn row_id(of: &SessionId) -> Option<SessionId> {
    let named = format!("{LEDGER_ROW}{of}");
    match named.len() <= MAX_NAME_BYTES {
        true => named.parse().ok(),
        false => format!("{LEDGER_ROW}{}", Digest::of(of.as_str().as_bytes())).parse().ok(),
    }
}

impl Head {
    /// The session that this row is about; `None` if this is not a row.
    #[must_use]
    pub fn ledger_row_of(&self) -> Option<&str> {
        let source = self.source.as_ref().filter(|_| self.is_ledger_row())?;
        source.id.strip_prefix(LEDGER_ROW)
    }
}

/// Does a session leave a row? Its lessons count also if a limit stopped it.
fn leaves_a_row(info: &SessionInfo) -> bool {
    use Status::{Abandoned, Failed, Partial, Success};
    let head = &info.head;
    info.damage.is_none()
        && !head.is_ledger_row()
        && !matches!(head.origin, Origin::Subagent { .. })
        && matches!(head.status, Success | Partial | Failed | Abandoned)
}

impl Stepwell {
    /// Writes the rows of sessions that are about to be erased. `commits` holds how many commits
    /// each made, if known. A damaged session leaves no row.
    pub(crate) fn leave_rows(
        &self,
        going: &BTreeSet<SessionId>,
        commits: &BTreeMap<SessionId, usize>,
    ) -> Result<()> {
        let filter = Filter { place: TrashScope::Trash, ..Filter::default() };
        let query = Query { filter, ..Query::default() };
        let takes = |info: &SessionInfo| going.contains(&info.head.id) && leaves_a_row(info);
        for row in self.entered(query, takes)?.rows {
            let made = commits.get(&row.head.id).copied();
            let Some(id) = row_id(&row.head.id) else { continue };
            self.erase_row(&id)?;
            self.store().batch(self.writes_of(id, row, made))?;
        }
        Ok(())
    }

    /// Erases a session's row, if there is one.
    pub(crate) fn erase_row_of(&self, session: &SessionId) -> Result<()> {
        row_id(session).map_or(Ok(()), |id| self.erase_row(&id))
    }

    fn erase_row(&self, id: &SessionId) -> Result<()> {
        if self.store().exists(id)? && self.store().info(id)?.head.is_ledger_row() {
            self.store().maintain().purge(&[Target::from(id.clone())])?;
        }
        Ok(())
    }

    fn writes_of(&self, id: SessionId, row: LedgerRow, commits: Option<usize>) -> Vec<Write> {
        let LedgerRow { head, project_type, ended, plan, spent, .. } = row;
        let metadata = commits.map(|made| ("commits".to_owned(), made.into()));
        let elsewhere = Elsewhere {
            steps: head.steps,
            cost: spent.cost,
            usage: spent.usage,
            ..Elsewhere::default()
        };
        let edited = Edited {
            elsewhere: Some(elsewhere),
            metadata: metadata.into_iter().collect(),
            tag: head.tags.clone(),
            ..Edited::default()
        };
        let status = StatusChanged {
            status: head.status,
            reason: head.stop_reason,
            error: head.error.clone(),
        };
        let tasks = plan.into_iter().map(|task| copied(ended, lesson(task)));
        let end = [copied(ended, status), copied(head.updated_at, edited)];
        let events = self.redacted(tasks.chain(end).collect());
        let create = Create { at: Some(head.created_at), ..self.row_of(&id, &head, project_type) };
        let append = Append { session: id, epoch: None, expected: None, events: events.into() };
        vec![Write::Create(create), Write::Append(append)]
    }

    fn row_of(&self, id: &SessionId, head: &Head, project_type: String) -> Create {
        let system = head.system().cloned().unwrap_or_else(|| OWN_SYSTEM.to_owned());
        let project = Project { project_type, ..Project::default() };
        let created = Created {
            workspace: head.workspace.clone(),
            project: Some(project).filter(|it| !it.project_type.is_empty()),
            source: Some(Source {
                system,
                id: format!("{LEDGER_ROW}{}", head.id),
                started_at: None,
            }),
            scope: Some(LEDGER_SCOPE.to_owned()),
            ..Created::new(id.clone(), head.task.clone())
                .with_agent(head.agent.clone())
                .with_model(head.model_provider(), head.model.clone())
                .driven_externally()
        };
        self.beginning(created, None)
    }
}

/// An event of a row, with the time of the original.
fn copied(at: Time, event: impl Into<Event>) -> NewEvent {
    NewEvent { at: Some(at), copied: true, ..NewEvent::from(event.into()) }
}

/// What a row keeps of a task. Its description stays only if the task failed or was skipped.
fn lesson(task: Task) -> Task {
    use TaskStatus::{Failed, Skipped, Unrecoverable};
    let Task { id, status, description, .. } = task;
    let is_told = matches!(status, Failed | Skipped | Unrecoverable);
    let description = if is_told { description } else { String::new() };
    Task { id, status, description, ..Task::default() }
}
