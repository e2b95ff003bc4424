//! Tasks and what they depend on: known, and without a circle.

use std::collections::BTreeSet;

use super::{MOST_PROBLEMS, unique, unknown};
use crate::spec::Dag;
use crate::spec::pattern::Workflow;
use crate::spec::place::{Path, Problem};

/// The longest circle that is told whole.
const SHOWN: usize = 12;

/// Checks a workflow's tasks.
pub(super) fn check(flow: &Workflow, config: &Path, problems: &mut Vec<Problem>) {
    let path = config.at("tasks");
    let before = problems.len();
    unique(flow.tasks.iter().map(|task| &task.id), &path, "task", problems);
    let ids: BTreeSet<_> = flow.tasks.iter().map(|task| &task.id).collect();
    for (n, task) in flow.tasks.iter().enumerate() {
        if problems.len() >= MOST_PROBLEMS {
            return;
        }
        let mut seen = BTreeSet::new();
        for (d, dep) in task.deps.iter().enumerate() {
            let at = || path.at(n).at("deps").at(d);
            if *dep == task.id {
                problems.push(Problem::new(at(), format!("task `{dep}` depends on itself")));
            } else if !ids.contains(dep) {
                problems.push(unknown(at(), "task", dep.as_str(), ids.iter().copied()));
            } else if !seen.insert(dep) {
                problems.push(Problem::new(at(), format!("`{dep}` is there already")));
            }
        }
    }
    if problems.len() > before {
        return;
    }
    if let Err(circle) = Dag::of(flow).layers() {
        let mut names: Vec<_> = circle.iter().map(|n| flow.tasks[*n].id.as_str()).collect();
        if names.len() > SHOWN {
            names.truncate(SHOWN);
            names.push("…");
        }
        let what = format!("the tasks wait for each other: {} → {}", names.join(" → "), names[0]);
        problems.push(Problem::new(path.at(circle[0]).at("deps"), what));
    }
}
