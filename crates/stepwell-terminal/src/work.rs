//! How a session's work stands, in words: a line each, with its name.

use stepwell::Status;
use stepwell::model::Question;
use stepwell_wire::{CheckResult, GuidedInfo, TaskInfo, VerificationRound, WorkState};

use crate::gates::asks_for_leave;
use crate::text::{count, cut, one_line, visible};

/// How many tasks are listed.
const LISTED_TASKS: usize = 20;

/// How many columns of a text are shown.
const COLUMNS: usize = 120;

/// Something to say of the work.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WorkLine {
    /// What it is about.
    pub name: &'static str,
    /// What there is to say.
    pub text: String,
}

impl WorkLine {
    fn new(name: &'static str, text: impl Into<String>) -> Self {
        Self { name, text: text.into() }
    }
}

/// Which task of how many guided work is at, its tasks, and how its verification went. Of other
/// work, nothing.
#[must_use]
pub fn guided(state: &WorkState) -> Vec<WorkLine> {
    let Some(guided) = &state.guided else { return Vec::new() };
    let mut lines = Vec::new();
    if guided.drafts > 1 {
        lines.push(WorkLine::new("Plan", format!("draft {}", guided.drafts)));
    }
    lines.extend(at_work(guided, state.tasks.len()));
    lines.extend(state.tasks.iter().take(LISTED_TASKS).map(task));
    let more = state.tasks.len().saturating_sub(LISTED_TASKS);
    if more > 0 {
        let id = &state.id;
        lines.push(WorkLine::new("Task", format!("and {more} more: stepwell tasks {id}")));
    }
    lines.extend(guided.verification.as_ref().map(verification));
    let commit = guided.commit.as_deref();
    lines.extend(commit.map(|commit| WorkLine::new("Commit", visible(commit))));
    lines
}

fn at_work(guided: &GuidedInfo, all: usize) -> Option<WorkLine> {
    let tasks: Vec<String> = guided
        .at_work
        .iter()
        .map(|task| {
            let (id, number) = (visible(&task.id), task.number.to_string());
            let which = if id == number { String::new() } else { format!(" ({id})") };
            format!("task {number} of {all}{which}, attempt {}", task.attempt)
        })
        .collect();
    (!tasks.is_empty()).then(|| WorkLine::new("At work", tasks.join("; ")))
}

fn task(task: &TaskInfo) -> WorkLine {
    let waits = match task.waits_for.as_slice() {
        [] => String::new(),
        first => format!(" after {}", first.join(", ")),
    };
    let text = format!("{} {}{waits}: {}", task.id, task.status, task.description);
    WorkLine::new("Task", cut(&one_line(&text), COLUMNS))
}

fn verification(round: &VerificationRound) -> WorkLine {
    let mut parts: Vec<String> = round.checks.iter().map(|it| result("check", it)).collect();
    parts.extend(round.review.as_ref().map(|review| match review.issues {
        0 => "the review passes".to_owned(),
        n => format!("the review wants {}", count(n, "change")),
    }));
    parts.extend(round.program.as_ref().map(|it| result("program", it)));
    if !round.repairs.is_empty() {
        parts.push(format!("repairs: {}", visible(&round.repairs.join(", "))));
    }
    let which = format!("round {} of {}", round.round, round.most);
    match parts.is_empty() {
        true => WorkLine::new("Verify", which),
        false => WorkLine::new("Verify", format!("{which}: {}", parts.join("; "))),
    }
}

fn result(what: &str, result: &CheckResult) -> String {
    let outcome = match &*result.outcome {
        "done" => "passes",
        "denied" => "was not allowed to run",
        "timed_out" => "took too long",
        _ => "fails",
    };
    format!("{what} `{}` {outcome}", cut(&one_line(&result.command), COLUMNS))
}

/// What was asked while discussing, with what was answered.
#[must_use]
pub fn questions(questions: &[Question]) -> Vec<WorkLine> {
    let line = |question: &Question| {
        let none = if question.skipped { "(skipped)" } else { "(no answer yet)" };
        let answer = question.answer.as_deref().map_or_else(|| none.to_owned(), one_line);
        let (id, text) = (visible(&question.id), one_line(&question.text));
        WorkLine::new("Question", format!("{id}: {text} {answer}"))
    };
    questions.iter().map(line).collect()
}

/// What the work waits for, and what to type next.
#[must_use]
pub fn next(state: &WorkState) -> Vec<WorkLine> {
    let waits = state.waits_for.iter();
    let waits = waits.map(|gate| {
        WorkLine::new("Waits for", format!("[{}] {}", visible(&gate.id), ends(&gate.prompt)))
    });
    let next = next_command(state).map(|command| WorkLine::new("Next", command));
    waits.chain(next).collect()
}

fn next_command(state: &WorkState) -> Option<String> {
    let id = &state.id;
    let runs = state.status == Status::Running;
    if let Some(gate) = state.waits_for.first() {
        let leave = asks_for_leave(gate);
        if runs {
            let answer = if leave { "yes" } else { "\"your answer\"" };
            return Some(format!("stepwell gates answer {id}/{} {answer}", visible(&gate.id)));
        }
        let which = match state.waits_for.len() {
            1 => String::new(),
            _ => format!(" --gate {}", visible(&gate.id)),
        };
        return Some(match leave {
            true => format!("stepwell resume {id}{which} --approve, or --deny"),
            false => format!("stepwell resume {id}{which} --respond \"your answer\""),
        });
    }
    state.guided.as_ref()?;
    match state.status {
        Status::Running => Some(format!("stepwell resume {id} --attach")),
        Status::Success | Status::Abandoned | Status::Idle => None,
        _ => Some(format!("stepwell resume {id}")),
    }
}

/// A question's first line, which says what it is about, and its last, which says how to answer.
fn ends(prompt: &str) -> String {
    let mut lines = prompt.lines().map(str::trim).filter(|line| !line.is_empty());
    let first = cut(&one_line(lines.next().unwrap_or_default()), COLUMNS);
    match lines.next_back() {
        None => first,
        Some(last) => format!("{first} … {}", cut(&one_line(last), COLUMNS)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_question_is_told_by_what_it_is_about_and_how_it_is_answered() {
        assert_eq!(ends("Auth?"), "Auth?");
        let prompt = "A calculator.\n\n1. [create] x\ncheck: y\n\nIs this the plan? (approve)";
        assert_eq!(ends(prompt), "A calculator. … Is this the plan? (approve)");
    }

    #[test]
    fn a_skipped_question_is_no_open_one() {
        let asked = [Question::new("1", "Auth?").skip(), Question::new("2", "Port?")];
        let told: Vec<String> = questions(&asked).into_iter().map(|line| line.text).collect();
        assert_eq!(told, ["1: Auth? (skipped)", "2: Port? (no answer yet)"]);
    }
}
