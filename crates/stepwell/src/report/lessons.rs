//! Lessons from earlier sessions of a project: what failed, what was skipped, what cost most.

use std::collections::BTreeSet;

use crate::log::Head;
use crate::model::{Money, SessionId, Status, Task, TaskStatus};
use crate::sessions::Stepwell;
use crate::store::query::{Family, Filter, LedgerRows, Query, TrashScope};

/// How many sessions are read, the newest first.
const SESSIONS: usize = 30;

/// The most lessons of each kind.
const LESSONS: usize = 5;

impl Stepwell {
    /// Lessons from ended sessions in this session's workspace, one per line. Sessions without a
    /// workspace, such as ledger rows, count as well. Unreadable sessions are left out: lessons
    /// help a plan, and nothing depends on them.
    #[must_use]
    pub fn lessons(&self, id: &SessionId) -> String {
        let Ok(own) = self.store().info(id) else { return String::new() };
        let mut workspaces = vec![Some(own.head.workspace).filter(|folder| !folder.is_empty())];
        if workspaces[0].is_some() {
            workspaces.push(Some(String::new()));
        }
        let heads = workspaces.into_iter().flat_map(|workspace| self.ended_in(workspace));
        let heads: Vec<Head> = heads.filter(|head| head.id != *id).collect();
        // A row counts only if its session is not here.
        let here: BTreeSet<String> = heads.iter().map(|head| head.id.to_string()).collect();
        let others: Vec<Past> = heads
            .into_iter()
            .filter(|head| !head.ledger_row_of().is_some_and(|of| here.contains(of)))
            .filter_map(|head| {
                let work = self.work(&head.id).ok()?;
                Some(Past { head, tasks: work.tasks.iter().cloned().collect() })
            })
            .collect();
        told(&others)
    }

    /// The sessions that ended in a workspace, or in any, the newest first, including those in the
    /// trash and ledger rows.
    fn ended_in(&self, workspace: Option<String>) -> Vec<Head> {
        let filter = Filter {
            status: vec![Status::Success, Status::Partial, Status::Failed, Status::Abandoned],
            workspace,
            family: Family::Roots,
            place: TrashScope::Anywhere,
            rows: LedgerRows::Included,
            ..Filter::default()
        };
        let query = Query { filter, limit: SESSIONS, ..Query::default() };
        let found = self.list(&query).map(|page| page.sessions).unwrap_or_default();
        found.into_iter().map(|it| it.head).collect()
    }
}

/// The first line of a text, shortened to `most` characters.
fn first_line(text: &str, most: usize) -> String {
    let line = text.trim().lines().next().unwrap_or_default();
    let line: String = line.chars().filter(|c| !c.is_control()).collect();
    match line.chars().nth(most) {
        Some(_) => format!("{}…", line.chars().take(most).collect::<String>().trim_end()),
        None => line,
    }
}

/// A session that ended, and its tasks.
struct Past {
    head: Head,
    tasks: Vec<Task>,
}

impl Past {
    /// Its tasks with a matching status: the descriptions, or a number for tasks without one. If it
    /// has no tasks and failed, the session's own task.
    fn lessons(&self, kind: &str, is: &dyn Fn(TaskStatus) -> bool) -> Vec<String> {
        let task = first_line(&self.head.task, 120);
        let all: Vec<&Task> = self.tasks.iter().filter(|task| is(task.status)).collect();
        let named = all.iter().filter(|task| !task.description.trim().is_empty());
        let mut told: Vec<String> = named.map(|task| first_line(&task.description, 160)).collect();
        let unnamed = all.len() - told.len();
        if unnamed > 0 {
            told.push(format!("{unnamed} of {} tasks: {task}", self.tasks.len()));
        }
        if self.tasks.is_empty() && self.head.status == Status::Failed && kind == "failed" {
            told.push(task);
        }
        told
    }
}

fn told(others: &[Past]) -> String {
    let mut lines = Vec::new();
    let failed = |status| matches!(status, TaskStatus::Failed | TaskStatus::Unrecoverable);
    let skipped = |status| status == TaskStatus::Skipped;
    let kinds: [(&str, &dyn Fn(TaskStatus) -> bool); 2] =
        [("failed", &failed), ("was skipped", &skipped)];
    for (kind, is) in kinds {
        let of_kind = others.iter().flat_map(|past| past.lessons(kind, is));
        lines.extend(of_kind.take(LESSONS).map(|what| format!("- {kind}: {what}")));
    }
    let mut costs: Vec<&Past> =
        others.iter().filter(|past| past.head.spent.cost > Money::ZERO).collect();
    costs.sort_by_key(|past| std::cmp::Reverse(past.head.spent.cost));
    for past in costs.into_iter().take(LESSONS) {
        let (cost, task) = (past.head.spent.cost, first_line(&past.head.task, 120));
        lines.push(format!("- cost ${cost}, {} tasks: {task}", past.tasks.len()));
    }
    lines.join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{Created, StatusChanged};

    #[test]
    fn failed_sessions_and_ledger_rows_give_lessons() {
        let well = Stepwell::in_memory();
        let ended = |id: &str, workspace: &str, status: Status, tasks: Vec<Task>| {
            let created = Created::new(id.parse().unwrap(), format!("the task of {id}"));
            let session =
                well.create(Created { workspace: workspace.to_owned(), ..created }).unwrap();
            for task in tasks {
                session.append(task).unwrap();
            }
            session.append(StatusChanged { status, reason: None, error: None }).unwrap();
        };
        let task = |id: &str, status, description: &str| Task {
            id: id.to_owned(),
            status,
            description: description.to_owned(),
            ..Task::default()
        };
        ended("whole", "/w", Status::Failed, vec![]);
        ended("done", "/w", Status::Success, vec![]);
        ended("other", "/x", Status::Failed, vec![]);
        let row = vec![task("1", TaskStatus::Failed, ""), task("2", TaskStatus::Done, "")];
        ended("row", "", Status::Success, row);
        let named =
            vec![task("1", TaskStatus::Failed, "the page"), task("2", TaskStatus::Skipped, "b")];
        ended("named", "/w", Status::Failed, named);
        let own = Created::new("own".parse().unwrap(), "mine");
        let own = well.create(Created { workspace: "/w".to_owned(), ..own }).unwrap();
        let mut lessons: Vec<String> = well.lessons(own.id()).lines().map(str::to_owned).collect();
        lessons.sort();
        let expected = [
            "- failed: 1 of 2 tasks: the task of row",
            "- failed: the page",
            "- failed: the task of whole",
            "- was skipped: b",
        ];
        assert_eq!(lessons, expected);
    }
}
