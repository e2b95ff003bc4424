//! The prompts for agents in guided work. Pure.
//!
//! Nothing here is a template: goals and descriptions are inserted as plain text.

use stepwell::model::{MAX_TASKS, Question, Task, TaskStatus};
use stepwell::work::Tasks;

use super::schedule::{Finding, Verified};
use super::survey::Survey;
use super::work_plan::{FORM, WorkPlan, task_line};
use crate::text::last_part;

/// The beginning of every prompt.
#[derive(Clone, Debug, Default)]
pub(super) struct Background {
    pub(super) goal: String,
    pub(super) survey: Survey,
    /// The questions of the discussion, with answers.
    pub(super) questions: Vec<Question>,
    /// Lessons of earlier sessions of the project.
    pub(super) lessons: String,
}

/// Replaces an answer that the user did not give.
const NOT_ANSWERED: &str = "(not answered: the user skipped it; decide it yourself)";

/// How many other tasks of the plan an agent sees besides its own.
const SHOWN_TASKS: usize = 100;

/// How much of a check's output a reviewer sees.
const OUTPUT_BYTES: usize = 2_000;

/// The most bytes of a diff in a prompt.
pub(super) const DIFF_BYTES: usize = 24 << 10;

impl Background {
    fn text(&self) -> String {
        let mut text = format!("# Goal\n{}\n\n# Project\n{}\n", self.goal, self.survey.text());
        let said = self.said();
        if !said.is_empty() {
            text.push_str(&format!("\n# What the user said\n{}\n", said.join("\n")));
        }
        text
    }

    /// The discussion, a line each. It includes skipped questions: without them an agent might take
    /// a guess for an answer, or ask again.
    pub(super) fn said(&self) -> Vec<String> {
        let line = |question: &Question| {
            let answer = question.answer.as_deref();
            let none = question.skipped.then_some(NOT_ANSWERED);
            Some(format!("- {} {}", question.text, answer.or(none)?))
        };
        self.questions.iter().filter_map(line).collect()
    }

    /// Asks for the first question of a discussion. `why` says why there is another discussion.
    pub(super) fn discuss(&self, why: Option<&str>) -> String {
        let mut text = self.text();
        if let Some(why) = why {
            let why = if why.is_empty() { "they did not say why" } else { why };
            text.push_str(&format!("\nThe user rejected the plan: {why}\n"));
        }
        text.push_str(
            "\nLook at the project as far as you need to. Then ask the user the one question whose \
             answer would change the plan most, if there is one. Answer with JSON and nothing else: \
             {\"question\": \"…\", \"suggestions\": [\"likely answers\"]}, or {\"done\": true} if \
             enough is clear.",
        );
        text
    }

    /// Asks for a plan. `feedback` is the user's answer to the last one.
    pub(super) fn plan(&self, feedback: Option<&str>) -> String {
        if let Some(feedback) = feedback {
            return format!("The user wants the plan changed: {feedback}\n\n{FORM}");
        }
        let mut text = self.text();
        if !self.lessons.is_empty() {
            let lessons = &self.lessons;
            text.push_str(&format!("\n# Lessons of earlier work on this project\n{lessons}\n"));
        }
        text.push_str(&format!(
            "\nLook at the project as far as you need to, and plan how to reach the goal. Do not \
             change anything yet.\n{FORM}"
        ));
        text
    }

    /// Gives an agent its task.
    pub(super) fn task(&self, task: &Task, tasks: &Tasks) -> String {
        let mut text = self.text();
        text.push_str("\n# Plan\n");
        for other in tasks.iter().take(SHOWN_TASKS) {
            text.push_str(&format!("{} ({})\n", task_line(other), other.status));
        }
        text.push_str(&format!("\n# Your task: {}\n{}\n", task.id, task.description));
        if !task.files.is_empty() {
            text.push_str(&format!("Files: {}\n", task.files.join(", ")));
        }
        text.push_str(
            "\nDo this task and no other. When it is done, answer with JSON: {\"status\": \"done\", \
             \"summary\": \"what you did\"}; if it cannot be done, with {\"status\": \"failed\", \
             \"summary\": \"why\"}.",
        );
        text
    }

    /// Asks for a review.
    pub(super) fn review(&self, reviewed: &Reviewed<'_>) -> String {
        let mut text = self.text();
        text.push_str(&format!("\n# Plan\n{}\n\n# Tasks\n", reviewed.plan.outline()));
        for task in reviewed.tasks.iter().take(SHOWN_TASKS) {
            text.push_str(&format!("{} ({})\n", task_line(task), task.status));
        }
        text.push_str("\n# Checks\n");
        for (command, output) in reviewed.checks {
            text.push_str(&format!("`{command}`\n{}\n", last_part(output, OUTPUT_BYTES)));
        }
        text.push_str(&format!("\n# Changed files\n{}\n", reviewed.files.join("\n")));
        text.push_str(
            "\nRead what was changed. Is the goal reached, and is the work sound? You change \
             nothing. Answer with JSON and nothing else: {\"verdict\": \"pass\" or \"fail\", \
             \"summary\": \"…\", \"issues\": [{\"description\": \"what must be done\", \"files\": \
             []}]}. Fail it only for what must change before it is shipped.",
        );
        text
    }

    /// Asks for a commit message.
    pub(super) fn message(&self, plan: &WorkPlan, diff: &str) -> String {
        format!(
            "# Goal\n{}\n\n# Plan\n{}\n\n# Changes\n{}\n\nPropose the commit message: a first line \
             of at most 70 characters, and, if it helps, a short body that says why. Answer with \
             the message and nothing else.",
            self.goal,
            plan.summary,
            last_part(diff, DIFF_BYTES)
        )
    }
}

/// The subject of a review.
pub(super) struct Reviewed<'a> {
    pub(super) plan: &'a WorkPlan,
    pub(super) tasks: &'a Tasks,
    /// The check commands, each with its output.
    pub(super) checks: &'a [(String, String)],
    pub(super) files: &'a [String],
}

/// Gives an agent the answer, and asks for the next question.
pub(super) fn next_question(answer: Option<&str>) -> String {
    let answer = answer.unwrap_or(NOT_ANSWERED);
    format!(
        "The user's answer: {answer}\n\nThe next question, in the same form, or {{\"done\": true}}."
    )
}

/// Tells an agent to continue a failed task.
pub(super) fn repair(why: &str, hint: &str) -> String {
    let hint = match hint.trim() {
        "" => String::new(),
        hint => format!("The user says: {hint}\n"),
    };
    format!("The task is not done: {why}\n{hint}Go on with it, and answer in the same form.")
}

/// The final summary for the user.
pub(super) fn summary(tasks: &Tasks, verified: &Verified, commit: &str) -> String {
    let done = tasks.count(TaskStatus::Done);
    let of = stepwell::model::counted(tasks.len(), "task");
    let mut text = format!("{done} of {of} done");
    let skipped = tasks.count(TaskStatus::Skipped);
    if skipped > 0 {
        text.push_str(&format!(", {skipped} skipped"));
    }
    let given_up = tasks.count(TaskStatus::Unrecoverable);
    if given_up > 0 {
        text.push_str(&format!(", {given_up} given up"));
    }
    text.push_str(&match (verified.passed, verified.denied.is_empty()) {
        (0, true) => "; there were no checks".to_owned(),
        (0, false) => String::new(),
        (1, true) => "; the check passes".to_owned(),
        (n, true) => format!("; all {n} checks pass"),
        (1, false) => "; 1 check passes".to_owned(),
        (n, false) => format!("; {n} checks pass"),
    });
    if let Some(denied) = not_run(&verified.denied) {
        text.push_str(&format!("; {denied}"));
    }
    format!("{text}; {commit}.")
}

/// The commands that were not allowed to run, if any.
pub(super) fn not_run(denied: &[String]) -> Option<String> {
    let lines: Vec<String> = denied.iter().map(|line| format!("`{line}`")).collect();
    (!lines.is_empty())
        .then(|| format!("not checked, because it may not run: {}", lines.join(", ")))
}

/// The unfinished work after the last round.
pub(super) fn left(round: u32, findings: &[Finding], denied: &[String]) -> String {
    let lines: Vec<String> = findings.iter().map(Finding::line).chain(not_run(denied)).collect();
    let rounds = if round == 1 { "1 round".to_owned() } else { format!("{round} rounds") };
    format!("after {rounds} of verification this is left: {}", lines.join("; "))
}

/// The message for the user if repairs cannot be added because the plan is full.
pub(super) fn no_room(left: &str) -> String {
    format!(
        "{left}. The plan has {MAX_TASKS} tasks, so that no repair can be added: repair it \
         yourself, then resume to have it verified again"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_asked_is_told_with_its_answer_or_as_not_answered() {
        let question = |text: &str| Question::new(text, text);
        let background = Background {
            goal: "{{ goal }}".to_owned(),
            questions: vec![
                question("Auth?").with_answer("no"),
                question("Port?").skip(),
                question("Colour?"),
            ],
            ..Background::default()
        };
        let text = background.plan(None);
        assert!(text.contains("# Goal\n{{ goal }}\n"), "{text}");
        assert!(text.contains("- Auth? no\n- Port? (not answered: "), "{text}");
        assert!(!text.contains("Colour?"), "{text}");
    }

    #[test]
    fn the_end_says_how_much_was_done() {
        let task = |id: &str, status| Task { id: id.to_owned(), status, ..Task::default() };
        let tasks: Tasks =
            [task("1", TaskStatus::Done), task("2", TaskStatus::Skipped)].into_iter().collect();
        let verified = |passed, denied: &[&str]| {
            let denied = denied.iter().map(|&line| line.to_owned()).collect();
            Verified { passed, denied }
        };
        let text = summary(&tasks, &verified(2, &[]), "committed as 1234567");
        assert_eq!(text, "1 of 2 tasks done, 1 skipped; all 2 checks pass; committed as 1234567.");
        let one: Tasks = [task("1", TaskStatus::Done)].into_iter().collect();
        let text = summary(&one, &verified(0, &["make test"]), "nothing was committed");
        let not_run = "not checked, because it may not run: `make test`";
        assert_eq!(text, format!("1 of 1 task done; {not_run}; nothing was committed."));
    }
}
