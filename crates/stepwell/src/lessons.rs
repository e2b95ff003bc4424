//! What earlier sessions of a project teach: what failed, what was skipped, what cost most.

use crate::{Family, Filter, Head, Money, Query, SessionId, Status, Stepwell, Task, TaskStatus};

/// How many sessions are looked at, the newest first.
const SESSIONS: usize = 30;

/// How many lessons of each kind are told.
const LESSONS: usize = 5;

impl Stepwell {
    /// The lessons of the sessions that ended in the same workspace as this one, a line each. What
    /// cannot be read is left out: lessons help a plan, and nothing depends on them.
    #[must_use]
    pub fn lessons(&self, id: &SessionId) -> String {
        let Ok(own) = self.store().info(id) else { return String::new() };
        let filter = Filter {
            status: vec![Status::Success, Status::Partial, Status::Failed, Status::Abandoned],
            workspace: Some(own.head.workspace.clone()).filter(|folder| !folder.is_empty()),
            family: Family::Roots,
            ..Filter::default()
        };
        let query = Query { filter, limit: SESSIONS, ..Query::default() };
        let Ok(page) = self.list(&query) else { return String::new() };
        let others = page.sessions.into_iter().map(|it| it.head).filter(|head| head.id != *id);
        let others: Vec<Past> = others
            .filter_map(|head| {
                let work = self.work(&head.id).ok()?;
                Some(Past { head, tasks: work.tasks.iter().cloned().collect() })
            })
            .collect();
        told(&others)
    }
}

/// The first line of a text, so long at most.
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

fn told(others: &[Past]) -> String {
    let mut lines = Vec::new();
    let mut tell = |kind: &str, is: &dyn Fn(TaskStatus) -> bool| {
        let tasks = others.iter().flat_map(|past| &past.tasks).filter(|task| is(task.status));
        for task in tasks.take(LESSONS) {
            lines.push(format!("- {kind}: {}", first_line(&task.description, 160)));
        }
    };
    tell("failed", &|status| matches!(status, TaskStatus::Failed | TaskStatus::Unrecoverable));
    tell("was skipped", &|status| status == TaskStatus::Skipped);
    let mut costs: Vec<&Past> =
        others.iter().filter(|past| past.head.spent.cost > Money::ZERO).collect();
    costs.sort_by_key(|past| std::cmp::Reverse(past.head.spent.cost));
    for past in costs.into_iter().take(LESSONS) {
        let (cost, task) = (past.head.spent.cost, first_line(&past.head.task, 120));
        lines.push(format!("- cost ${cost}, {} tasks: {task}", past.tasks.len()));
    }
    lines.join("\n")
}
