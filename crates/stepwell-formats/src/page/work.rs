//! How a session's work stands, as Markdown in the layout of M31A's `STATE.md` and `TASKS.md`.
//!
//! A cell holds any text: a pipe, a backslash, a `<` and, in lists, a comma stand behind a
//! backslash, a line break is `<br>`, and `-` is nothing. M31A itself escapes nothing, so a
//! row of its own with a pipe in it is reported, not guessed.

use stepwell::log::Head;
use stepwell::model::{Question, Task, TaskStatus, Time};
use stepwell::work::{Tasks, Work};
use stepwell::{Event, Lane, Recorded};

use crate::error::{Error, Result};

/// The columns of a table of tasks.
const COLUMNS: [&str; 6] = ["ID", "Action", "Description", "Deps", "Status", "Files"];

/// The state of a session's work: `STATE.md`.
#[must_use]
pub fn state_markdown(head: &Head, work: &Work) -> String {
    let said = said(head, work);
    let phase = said.phase.as_deref().unwrap_or("-");
    let mut text = format!(
        "# State\n\n**Phase:** {phase}\n**Progress:** {}\n**Last Action:** {}\n\
         **Timestamp:** {}\n**Session:** {}\n",
        said.progress,
        line(&said.last_action),
        said.at,
        head.id
    );
    if !said.goal.is_empty() {
        text.push_str(&format!("**Goal:** {}\n", line(&said.goal)));
    }
    if !work.questions.is_empty() {
        text.push_str("\n## Questions\n\n");
    }
    for Question { id, text: asked, answer, skipped } in &work.questions {
        let none = if *skipped { "- (skipped)" } else { "-" };
        let answer = answer.as_deref().map_or_else(|| none.to_owned(), line);
        text.push_str(&format!("- {}: {} **Answer:** {answer}\n", line(id), line(asked)));
    }
    text
}

/// What a state says of the work in a few words.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Said {
    /// The phase that it is in, if it has any.
    pub phase: Option<String>,
    /// How many tasks are done, of how many.
    pub progress: String,
    /// What the work is to achieve: the goal that was set, or else the task.
    pub goal: String,
    /// The last change of tasks, questions, phase or goal, or the last step, if that is later.
    pub last_action: String,
    /// When that was; before the first, when the session began.
    pub at: Time,
}

/// What a session's head and work say in a few words.
#[must_use]
pub fn said(head: &Head, work: &Work) -> Said {
    let (last_action, at) = match (&work.last, &work.last_step) {
        (last, Some(done)) if last.as_ref().is_none_or(|last| last.seq < done.seq) => {
            (action(done), done.at)
        }
        (Some(last), _) => (action(last), last.at),
        (None, _) if head.steps > 0 => (format!("step {} was done", head.steps), head.updated_at),
        (None, _) => (String::new(), head.created_at),
    };
    Said {
        phase: head.phase.map(|phase| phase.to_string()),
        progress: task_progress(&work.tasks),
        goal: head.goal.clone().unwrap_or_else(|| head.task.clone()),
        last_action,
        at,
    }
}

/// How many tasks are done, of how many, and how others stand.
#[must_use]
pub fn task_progress(tasks: &Tasks) -> String {
    let mut text = match tasks.len() {
        0 => return "no tasks".to_owned(),
        n => {
            let all = stepwell::model::counted(n, "task");
            format!("{} of {all} done", tasks.count(TaskStatus::Done))
        }
    };
    for status in TaskStatus::ALL {
        let shown = !matches!(status, TaskStatus::Done | TaskStatus::Pending);
        match tasks.count(status) {
            n if n > 0 && shown => text.push_str(&format!(", {n} {status}")),
            _ => {}
        }
    }
    text
}

fn action(last: &Recorded) -> String {
    match &last.event {
        Event::Task(task) => format!("task {} is {}", task.id, task.status),
        Event::Phase(change) => format!("phase {}", change.to),
        Event::Step(step) if step.lane == Lane::main() => format!("step {} was done", step.n),
        Event::Step(step) => format!("step {} of {} was done", step.n, step.lane),
        Event::Question(question) if question.answer.is_some() => {
            format!("question {} was answered", question.id)
        }
        Event::Question(question) if question.skipped => {
            format!("question {} was skipped", question.id)
        }
        Event::Question(question) => format!("question {} was asked", question.id),
        _ => "the goal was set".to_owned(),
    }
}

/// The tasks of a session: `TASKS.md`.
#[must_use]
pub fn tasks_markdown(tasks: &Tasks) -> String {
    let rows = tasks.iter().map(|task| {
        vec![
            cell(&task.id),
            cell(&task.action),
            cell(&task.description),
            list(&task.deps),
            task.status.to_string(),
            list(&task.files),
        ]
    });
    format!("# Tasks\n\n{}", table(&COLUMNS, rows))
}

/// A table of cells that are [escaped](cell) already.
pub fn table(columns: &[&str], rows: impl IntoIterator<Item = Vec<String>>) -> String {
    let mut text = format!("| {} |\n|{}\n", columns.join(" | "), "---|".repeat(columns.len()));
    for row in rows {
        text.push_str(&format!("| {} |\n", row.join(" | ")));
    }
    text
}

/// A text as a cell of a table.
#[must_use]
pub fn cell(text: &str) -> String {
    match escaped(text, &['\\', '|', '<']) {
        text if text.is_empty() => "-".to_owned(),
        text if text == "-" => "\\-".to_owned(),
        text => text,
    }
}

/// A text on one line of its own.
fn line(text: &str) -> String {
    escaped(text, &['\\', '<'])
}

fn list(texts: &[String]) -> String {
    let items: Vec<String> =
        texts.iter().map(|text| escaped(text, &['\\', '|', '<', ','])).collect();
    match items.join(", ") {
        text if text.is_empty() => "-".to_owned(),
        text if text == "-" => "\\-".to_owned(),
        text => text,
    }
}

fn escaped(text: &str, marks: &[char]) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.trim().replace("\r\n", "\n").chars() {
        match c {
            '\n' | '\r' => out.push_str("<br>"),
            '\t' => out.push(c),
            // A terminal's colours in a text, NUL, and their like.
            c if c.is_control() => out.push(char::REPLACEMENT_CHARACTER),
            c if marks.contains(&c) => out.extend(['\\', c]),
            c => out.push(c),
        }
    }
    out
}

/// Reads the tasks of a `TASKS.md`, Stepwell's or M31A's. What does not parse is reported
/// with its line.
pub fn read_tasks(text: &str) -> Result<Vec<Task>> {
    let mut lines = text.lines().zip(1..);
    let is_head = |line: &str| {
        let cells = cells(line);
        let same = |(one, other): (&String, &&str)| one.eq_ignore_ascii_case(other);
        cells.len() == COLUMNS.len() && cells.iter().zip(&COLUMNS).all(same)
    };
    if !lines.any(|(line, _)| is_head(line)) {
        let columns = COLUMNS.join(" | ");
        return Err(Error::NotTasks { line: 1, why: format!("no table | {columns} | is in it") });
    }
    let mut tasks: Vec<Task> = Vec::new();
    let mut lines = lines.skip_while(|(line, _)| is_rule(line)).peekable();
    while let Some((text, line)) = lines.next_if(|(line, _)| is_row(line)) {
        let refuse = |why: String| Error::NotTasks { line, why };
        let task = row(text).map_err(refuse)?;
        if tasks.iter().any(|other| other.id == task.id) {
            return Err(refuse(format!("task {:?} is there twice", task.id)));
        }
        tasks.push(task);
    }
    match astray(&lines.collect::<Vec<_>>()) {
        None => Ok(tasks),
        Some(line) => {
            let why = "it looks like a task's row, and stands outside of the table".to_owned();
            Err(Error::NotTasks { line, why })
        }
    }
}

/// The first line after the table that looks like a row of it. Another table is none, unless it
/// has as many columns.
fn astray(rest: &[(&str, usize)]) -> Option<usize> {
    let (mut at, is_wide) = (0, |line: &str| cells(line).len() == COLUMNS.len());
    while let Some((text, line)) = rest.get(at) {
        let begins_table = rest.get(at + 1).is_some_and(|(next, _)| is_rule(next));
        if is_wide(text) || (is_row(text) && !begins_table) {
            return Some(*line);
        }
        at += 1;
        if is_row(text) {
            at += rest[at..].iter().take_while(|(next, _)| is_row(next)).count();
        }
    }
    None
}

fn is_row(line: &str) -> bool {
    line.trim_start().starts_with('|')
}

fn is_rule(line: &str) -> bool {
    let line = line.trim();
    line.starts_with('|') && line.chars().all(|c| "|-: ".contains(c))
}

fn row(text: &str) -> Result<Task, String> {
    let cells = cells(text);
    let [id, action, description, deps, status, files] = &cells[..] else {
        let (n, all) = (cells.len(), COLUMNS.len());
        return Err(format!("it has {n} cells, not {all}; a pipe in a cell is written \\|"));
    };
    let task = Task {
        id: plain(id),
        action: plain(action),
        description: plain(description),
        deps: items(deps),
        status: plain(status).parse()?,
        files: items(files),
    };
    if task.id.is_empty() { Err("the task has no name".to_owned()) } else { Ok(task) }
}

/// The cells of a row, as they are written.
fn cells(row: &str) -> Vec<String> {
    let row = row.trim();
    let row = row.strip_prefix('|').unwrap_or(row);
    let mut cells = split(row, '|');
    // What follows the last pipe is no cell.
    if cells.last().is_some_and(String::is_empty) {
        cells.pop();
    }
    cells
}

fn items(cell: &str) -> Vec<String> {
    if cell == "-" {
        return Vec::new();
    }
    split(cell, ',').iter().map(|item| unescaped(item)).filter(|item| !item.is_empty()).collect()
}

/// Splits at a mark that no backslash stands before.
fn split(text: &str, mark: char) -> Vec<String> {
    let mut parts = vec![String::new()];
    let mut behind_backslash = false;
    for c in text.chars() {
        match parts.last_mut() {
            Some(part) if c != mark || behind_backslash => part.push(c),
            _ => parts.push(String::new()),
        }
        behind_backslash = c == '\\' && !behind_backslash;
    }
    parts.iter().map(|part| part.trim().to_owned()).collect()
}

fn plain(cell: &str) -> String {
    if cell == "-" { String::new() } else { unescaped(cell) }
}

fn unescaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(c) = rest.chars().next() {
        rest = &rest[c.len_utf8()..];
        match (c, rest.chars().next()) {
            ('\\', Some(next)) if "\\|<,-".contains(next) => {
                out.push(next);
                rest = &rest[1..];
            }
            ('<', _) if rest.starts_with("br>") => {
                out.push('\n');
                rest = &rest[3..];
            }
            _ => out.push(c),
        }
    }
    out
}
