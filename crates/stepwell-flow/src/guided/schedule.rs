//! Schedules planned tasks: which are ready, which are blocked, and which repairs are added. Pure.

use std::collections::{BTreeMap, BTreeSet};

use stepwell::error::TaskRefused;
use stepwell::model::{MAX_TASKS, Task, TaskStatus};
use stepwell::work::{MAX_TASK_BYTES, Tasks};

use super::answers::Issue;
use crate::text::last_part;

/// Is this a final status?
#[must_use]
pub const fn is_over(status: TaskStatus) -> bool {
    matches!(status, TaskStatus::Done | TaskStatus::Skipped | TaskStatus::Unrecoverable)
}

/// The tasks that can be started now, in the order of the plan. `busy` tasks are already being
/// worked on.
#[must_use]
pub fn ready<'a>(tasks: &'a Tasks, busy: &BTreeSet<String>) -> Vec<&'a Task> {
    let can = |task: &&Task| {
        !is_over(task.status) && !busy.contains(&task.id) && tasks.waits_for(task).is_empty()
    };
    tasks.iter().filter(can).collect()
}

/// The unfinished tasks that depend on a task, directly or not.
#[must_use]
pub fn dependents(tasks: &Tasks, id: &str) -> Vec<Task> {
    let mut found: BTreeSet<&str> = BTreeSet::from([id]);
    // A plan has no cycles, but another system may have recorded one: each pass adds something or
    // ends.
    loop {
        let next = tasks.iter().find(|task| {
            !found.contains(task.id.as_str())
                && task.deps.iter().any(|dep| found.contains(dep.as_str()))
        });
        match next {
            Some(task) => found.insert(&task.id),
            None => break,
        };
    }
    let after = |task: &&Task| task.id != id && found.contains(task.id.as_str());
    tasks.iter().filter(after).filter(|task| !is_over(task.status)).cloned().collect()
}

/// Renames the tasks of a new plan so that no id is taken: the user's own tasks stay.
#[must_use]
pub(super) fn beside(planned: Vec<Task>, others: &Tasks) -> Vec<Task> {
    let mut taken: BTreeSet<String> = planned.iter().map(|task| task.id.clone()).collect();
    taken.extend(others.iter().map(|task| task.id.clone()));
    let mut renamed = BTreeMap::new();
    for task in planned.iter().filter(|task| others.get(&task.id).is_some()) {
        let free = (1_u32..).map(|n| n.to_string()).find(|name| !taken.contains(name));
        let free = free.unwrap_or_default();
        taken.insert(free.clone());
        renamed.insert(task.id.clone(), free);
    }
    let now = |id: String| renamed.get(&id).cloned().unwrap_or(id);
    let beside = planned.into_iter().map(|task| Task {
        id: now(task.id),
        deps: task.deps.into_iter().map(now).collect(),
        ..task
    });
    beside.collect()
}

/// Unfinished tasks, with their status.
#[must_use]
pub(super) fn undone(tasks: &Tasks) -> Vec<String> {
    let open = |task: &&Task| !matches!(task.status, TaskStatus::Done | TaskStatus::Skipped);
    tasks.iter().filter(open).map(|task| format!("task {} ({})", task.id, task.status)).collect()
}

/// The result of verification when nothing is left to repair.
pub(super) struct Verified {
    /// How many checks pass.
    pub(super) passed: usize,
    /// The commands that were not allowed to run.
    pub(super) denied: Vec<String>,
}

/// A finding of verification.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Finding {
    /// A failed check.
    Check {
        /// The command line.
        command: String,
        /// Its output, and how it ended.
        output: String,
    },
    /// A change that the reviewer requires.
    Issue(Issue),
    /// The program does not work as expected.
    Program {
        /// How it was started and checked.
        program: String,
        /// Its output, and what was observed.
        output: String,
    },
}

/// How much of a command's output goes into a task: the end, which has the error.
const OUTPUT_BYTES: usize = 1_200;

impl Finding {
    /// The finding on one line.
    #[must_use]
    pub fn line(&self) -> String {
        match self {
            Self::Check { command, output } => {
                let end = output.lines().last().unwrap_or_default();
                format!("check `{command}` {end}")
            }
            Self::Issue(issue) => {
                format!("review: {}", crate::text::first_line(&issue.description, 120))
            }
            Self::Program { program, output } => {
                let end = output.lines().last().unwrap_or_default();
                format!("program `{program}` {end}")
            }
        }
    }

    fn describe(&self) -> String {
        let text = match self {
            Self::Check { command, output } => {
                let output = last_part(output, OUTPUT_BYTES);
                format!("Make this check pass: `{command}`. It wrote:\n{output}")
            }
            Self::Issue(issue) => issue.description.clone(),
            Self::Program { program, output } => {
                let output = last_part(output, OUTPUT_BYTES);
                format!("Make the program run: `{program}`. What was seen:\n{output}")
            }
        };
        let text: String =
            text.chars().filter(|c| !c.is_control() || matches!(c, '\n' | '\t')).collect();
        text[..text.floor_char_boundary(MAX_TASK_BYTES)].to_owned()
    }
}

/// The repair tasks for the findings of a round, under unused ids. Findings beyond the size of the
/// plan are left out; the next round finds them again.
pub fn repairs(round: u32, findings: &[Finding], tasks: &Tasks) -> Result<Vec<Task>, TaskRefused> {
    let mut plan = tasks.clone();
    let mut added = Vec::new();
    let mut names = (1_u32..).map(|n| format!("fix-{round}-{n}"));
    for finding in findings.iter().take(room(tasks)) {
        let files = match finding {
            Finding::Issue(issue) => issue.files.clone(),
            _ => Vec::new(),
        };
        let task = plan.add(Task {
            id: names.find(|name| tasks.get(name).is_none()).unwrap_or_default(),
            action: "fix".to_owned(),
            description: finding.describe(),
            files,
            ..Task::default()
        })?;
        plan.put(task.clone());
        added.push(task);
    }
    Ok(added)
}

/// How many more tasks fit into a plan.
pub(super) fn room(tasks: &Tasks) -> usize {
    MAX_TASKS.saturating_sub(tasks.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plan(tasks: &[(&str, &[&str], TaskStatus)]) -> Tasks {
        let task = |(id, deps, status): &(&str, &[&str], TaskStatus)| Task {
            id: (*id).to_owned(),
            description: format!("do {id}"),
            deps: deps.iter().map(|&dep| dep.to_owned()).collect(),
            status: *status,
            ..Task::default()
        };
        tasks.iter().map(task).collect()
    }

    fn ids<'a>(tasks: impl IntoIterator<Item = &'a Task>) -> Vec<&'a str> {
        tasks.into_iter().map(|task| task.id.as_str()).collect()
    }

    use TaskStatus::{Done, Failed, Pending, Running, Skipped, Unrecoverable};

    #[test]
    fn a_task_can_begin_once_what_comes_first_is_done_or_skipped() {
        let tasks = plan(&[
            ("a", &[], Done),
            ("b", &[], Skipped),
            ("c", &["a", "b"], Pending),
            ("d", &["c"], Pending),
            ("e", &[], Running),
            ("f", &[], Failed),
            ("g", &["h"], Pending),
            ("h", &[], Unrecoverable),
        ]);
        assert_eq!(ids(ready(&tasks, &BTreeSet::new())), ["c", "e", "f"]);
        assert_eq!(ids(ready(&tasks, &BTreeSet::from(["c".to_owned()]))), ["e", "f"]);
        let undone = undone(&tasks);
        assert_eq!(undone.len(), 6);
        assert!(undone.contains(&"task h (unrecoverable)".to_owned()), "{undone:?}");
    }

    #[test]
    fn all_that_comes_after_a_task_is_found_whatever_the_plan_looks_like() {
        let tasks = plan(&[
            ("a", &[], Pending),
            ("b", &["a"], Pending),
            ("c", &["b"], Pending),
            ("d", &["a"], Done),
            ("x", &["y"], Pending),
            ("y", &["x", "a"], Pending),
        ]);
        assert_eq!(ids(&dependents(&tasks, "a")), ["b", "c", "x", "y"]);
        assert_eq!(ids(&dependents(&tasks, "c")), Vec::<&str>::new());
    }

    #[test]
    fn a_plan_leaves_the_tasks_of_others_alone() {
        let planned = plan(&[("1", &[], Pending), ("2", &["1"], Pending), ("4", &["2"], Pending)]);
        let others = plan(&[("1", &[], Done), ("3", &[], Pending)]);
        let beside = beside(planned.iter().cloned().collect(), &others);
        assert_eq!(ids(&beside), ["5", "2", "4"]);
        assert_eq!(beside[1].deps, ["5"]);
        assert_eq!(beside[2].deps, ["2"]);
    }

    #[test]
    fn findings_become_tasks_within_the_rules_of_tasks() {
        let output = format!("{}\n\u{1b}[31mfailed\n[exit code 1]", "line\n".repeat(2_000));
        let findings = [
            Finding::Check { command: "cargo test".to_owned(), output },
            Finding::Issue(Issue {
                description: "Say why".to_owned(),
                files: vec!["a".to_owned()],
            }),
        ];
        let added = repairs(2, &findings, &Tasks::default()).unwrap();
        assert_eq!(ids(&added), ["fix-2-1", "fix-2-2"]);
        assert!(added[0].description.starts_with("Make this check pass: `cargo test`"));
        assert!(added[0].description.ends_with("[exit code 1]"), "{}", added[0].description);
        assert!(added[0].description.len() <= MAX_TASK_BYTES);
        assert_eq!(findings[0].line(), "check `cargo test` [exit code 1]");
    }

    #[test]
    fn repairs_take_free_names_and_no_more_room_than_there_is() {
        let issue =
            |text: &str| Finding::Issue(Issue { description: text.to_owned(), files: Vec::new() });
        let findings = [issue("a"), issue("b")];
        let tasks = plan(&[("fix-1-1", &[], Done), ("fix-1-3", &[], Done)]);
        assert_eq!(ids(&repairs(1, &findings, &tasks).unwrap()), ["fix-1-2", "fix-1-4"]);
        let names: Vec<_> = (0..500).map(|n| n.to_string()).collect();
        let all: Vec<_> = names.iter().map(|id| (id.as_str(), &[][..], Done)).collect();
        assert_eq!(ids(&repairs(1, &findings, &plan(&all[1..])).unwrap()), ["fix-1-1"]);
        assert_eq!(repairs(1, &findings, &plan(&all)), Ok(Vec::new()));
    }
}
