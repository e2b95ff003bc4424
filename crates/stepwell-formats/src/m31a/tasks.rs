//! `TASKS.md` as M31A writes and reads it: nothing is escaped, so a row with a pipe in a cell
//! cannot be told apart, and is reported.

use stepwell::model::{Task, TaskStatus};
use stepwell::work::Tasks;

/// What M31A puts above its rows.
const HEAD: &str = "# Tasks\n\n| ID | Action | Description | Deps | Status | Files |\n\
                    |----|--------|-------------|------|--------|-------|\n";

/// The longest name of a task.
pub(super) const MAX_NAME: usize = 256;

/// The tasks in a table, and what is wrong with rows that hold none.
pub(super) fn read(text: &str) -> (Vec<Task>, Vec<String>) {
    let (mut tasks, mut faults): (Vec<Task>, Vec<String>) = (Vec::new(), Vec::new());
    for (line, n) in text.lines().zip(1..) {
        let line = line.trim();
        let is_rule = line.chars().all(|c| "|-: ".contains(c));
        if !line.starts_with('|') || is_rule || cells(line).first() == Some(&"ID") {
            continue;
        }
        match row(line) {
            Ok(task) if tasks.iter().any(|other| other.id == task.id) => {
                faults.push(format!("line {n} names task {:?} again, and was left out", task.id));
            }
            Ok(task) => tasks.push(task),
            Err(why) => faults.push(format!("line {n} is no task, and was left out: {why}")),
        }
    }
    (tasks, faults)
}

fn row(line: &str) -> Result<Task, String> {
    let cells = cells(line);
    let [id, action, description, deps, status, files] = cells[..] else {
        return Err(format!("it has {} cells, not 6", cells.len()));
    };
    let plain = |cell: &str| if cell == "-" { String::new() } else { cell.to_owned() };
    let items = |cell: &str| {
        let items = cell.split(", ").map(|item| item.trim().to_owned());
        items.filter(|item| !item.is_empty() && item != "-").collect()
    };
    let task = Task {
        id: plain(id),
        action: plain(action),
        description: plain(description),
        deps: items(deps),
        status: status.parse::<TaskStatus>()?,
        files: items(files),
    };
    match task.id.len() {
        0 => Err("the task has no name".to_owned()),
        n if n > MAX_NAME => Err(format!("its name has {n} bytes; at most {MAX_NAME} are taken")),
        _ => Ok(task),
    }
}

fn cells(line: &str) -> Vec<&str> {
    let inner = line.trim().trim_start_matches('|');
    inner.strip_suffix('|').unwrap_or(inner).split('|').map(str::trim).collect()
}

/// A table of tasks, if M31A would read it as it was meant: names are numbers there, and no
/// cell can hold a pipe or a line break.
pub(super) fn write(tasks: &Tasks) -> Option<String> {
    let text = table(tasks.iter().cloned());
    let (read, faults) = read(&text);
    let numbers = tasks.iter().all(|task| task.id.parse::<u32>().is_ok());
    (faults.is_empty() && numbers && read.iter().eq(tasks.iter())).then_some(text)
}

/// The nearest table that M31A reads: tasks are numbered, and what would break a row is
/// replaced.
pub(super) fn nearest(tasks: &Tasks) -> String {
    let number =
        |id: &String| tasks.iter().position(|task| task.id == *id).map(|at| (at + 1).to_string());
    let plain = |text: &String| {
        text.replace('|', "\u{a6}").split_whitespace().collect::<Vec<_>>().join(" ")
    };
    let one = |text: &String| plain(text).replace(", ", " ");
    table(tasks.iter().map(|task| Task {
        id: number(&task.id).unwrap_or_default(),
        action: plain(&task.action),
        description: plain(&task.description),
        deps: task.deps.iter().filter_map(number).collect(),
        status: task.status,
        files: task.files.iter().map(one).collect(),
    }))
}

fn table(tasks: impl Iterator<Item = Task>) -> String {
    let mut text = HEAD.to_owned();
    let cell = |text: &str| if text.is_empty() { "-".to_owned() } else { text.to_owned() };
    for Task { id, action, description, deps, status, files } in tasks {
        let cells = [
            cell(&id),
            cell(&action),
            cell(&description),
            cell(&deps.join(", ")),
            status.to_string(),
            cell(&files.join(", ")),
        ];
        text.push_str(&format!("| {} |\n", cells.join(" | ")));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_with_a_pipe_in_it_is_reported_and_not_guessed() {
        let text = format!(
            "{HEAD}| 1 | Create | x | - | done | a.ts, b.ts |\n\
             | 3 | Test | Warn of nuts|seeds | 1 | pending | - |\n| 1 | x | y | - | done | - |\n"
        );
        let (tasks, faults) = read(&text);
        assert_eq!(tasks.len(), 1);
        assert_eq!(tasks[0].files, ["a.ts", "b.ts"]);
        assert!(faults[0].contains("line 6") && faults[0].contains("7 cells"), "{faults:?}");
        assert!(faults[1].contains("again"), "{faults:?}");
    }

    #[test]
    fn what_it_could_not_read_back_is_not_written_as_it_is() {
        let mut tasks = Tasks::default();
        tasks.put(Task { id: "1".to_owned(), description: "plain".to_owned(), ..Task::default() });
        assert_eq!(read(&write(&tasks).unwrap()).0, tasks.iter().cloned().collect::<Vec<_>>());
        tasks.put(Task { id: "b".to_owned(), description: "a|b\nc".to_owned(), ..Task::default() });
        assert!(write(&tasks).is_none());
        let (read, faults) = read(&nearest(&tasks));
        assert!(faults.is_empty() && read.len() == 2 && read[1].id == "2", "{read:?}");
        assert_eq!(read[1].description, "a\u{a6}b c");
    }
}
