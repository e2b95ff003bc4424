//! Parses the answers of agents and people in guided work. Pure.

use serde_json::{Map, Value};
use stepwell::model::Answer;

use crate::answer::{parse_json, text_output};
use crate::memo::is_approval;
use crate::text::{is_file_name, list_of_texts, plain};

/// The most characters of a question or a suggested answer.
const MAX_QUESTION: usize = 1_000;
const MAX_SUGGESTION: usize = 200;

/// The most suggested answers.
const MAX_SUGGESTIONS: usize = 6;

/// The most issues of a review that count; the next round finds the others.
const MAX_ISSUES: usize = 10;

/// The most files of an issue.
const MAX_FILES: usize = 20;

/// The most characters of an issue or of a report.
const MAX_REPORT: usize = 1_500;

/// A question about something unclear.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unclear {
    /// The question.
    pub question: String,
    /// Suggested answers.
    pub suggestions: Vec<String>,
}

impl Unclear {
    /// Parses an agent's question; `None` if everything is clear.
    pub fn parse(answer: &str) -> Result<Option<Self>, String> {
        let Some(Value::Object(fields)) = parse_json(answer) else {
            return Err("it is not a JSON object; answer {\"question\": \"…\", \"suggestions\": \
                        [\"…\"]} or {\"done\": true}"
                .to_owned());
        };
        let question = fields.get("question").and_then(Value::as_str).unwrap_or_default();
        let question = plain(question, MAX_QUESTION);
        if question.is_empty() {
            return Ok(None);
        }
        let suggestions = list_of_texts(fields.get("suggestions")).into_iter();
        let suggestions = suggestions.map(|text| plain(&text, MAX_SUGGESTION));
        let suggestions = suggestions.filter(|text| !text.is_empty()).take(MAX_SUGGESTIONS);
        Ok(Some(Self { question, suggestions: suggestions.collect() }))
    }

    /// As a node's output.
    #[must_use]
    pub fn output(unclear: Option<&Self>) -> Map<String, Value> {
        match unclear {
            Some(it) => Map::from_iter([
                ("response".to_owned(), it.question.clone().into()),
                ("suggestions".to_owned(), it.suggestions.clone().into()),
            ]),
            None => text_output(""),
        }
    }

    /// From a node's output.
    #[must_use]
    pub fn of_output(output: &Value) -> Option<Self> {
        let question = output.get("response")?.as_str()?.to_owned();
        let suggestions = list_of_texts(output.get("suggestions"));
        (!question.is_empty()).then_some(Self { question, suggestions })
    }

    /// The question as a person sees it.
    #[must_use]
    pub fn prompt(&self) -> String {
        let mut prompt = self.question.clone();
        for (n, suggestion) in self.suggestions.iter().enumerate() {
            prompt.push_str(&format!("\n  {}) {suggestion}", n + 1));
        }
        prompt.push_str("\n(a number, your own words, skip, or skip all)");
        prompt
    }

    /// Parses a person's answer.
    #[must_use]
    pub fn reply(&self, text: &str) -> QuestionReply {
        let text = text.trim();
        let chosen = text.parse::<usize>().ok().and_then(|n| n.checked_sub(1));
        match text.to_lowercase().as_str() {
            "" | "skip" => QuestionReply::Skip,
            "skip all" | "skip-all" | "skipall" => QuestionReply::SkipAll,
            _ => {
                let chosen = chosen.and_then(|n| self.suggestions.get(n));
                QuestionReply::Answer(chosen.cloned().unwrap_or_else(|| text.to_owned()))
            }
        }
    }
}

/// A person's answer to a question.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum QuestionReply {
    /// An answer.
    Answer(String),
    /// No answer, but the next question may come.
    Skip,
    /// No answer, and no further questions.
    SkipAll,
}

/// A person's answer to a plan.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PlanReply {
    /// The plan is approved.
    Approve,
    /// The plan must be changed in this way.
    Refine(String),
    /// The plan misses the goal: back to the discussion.
    Reject(String),
    /// The work ends here.
    Stop,
}

impl PlanReply {
    /// Parses a person's answer. Any other text says how to refine the plan.
    #[must_use]
    pub fn read(text: &str) -> Self {
        let text = text.trim();
        if is_approval(text) {
            return Self::Approve;
        }
        if let Some(why) = denied(text) {
            return Self::Reject(why);
        }
        let (word, rest) = word_and_rest(text);
        match word.as_str() {
            "reject" | "no" => Self::Reject(rest),
            "stop" if rest.is_empty() => Self::Stop,
            "refine" => Self::Refine(rest),
            _ => Self::Refine(text.to_owned()),
        }
    }
}

/// The decision about a task after a failed attempt.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FailureReply {
    /// Try again from the start.
    Retry,
    /// Its agent continues with this instruction.
    Repair(String),
    /// Skip it; the tasks after it are still done.
    Skip,
    /// Give it up, with the tasks after it.
    GiveUp,
}

impl FailureReply {
    /// Parses a person's answer. Any other text says how to repair the task; a denial gives it up.
    #[must_use]
    pub fn read(text: &str) -> Self {
        if denied(text).is_some() {
            return Self::GiveUp;
        }
        let (word, rest) = word_and_rest(text);
        match (word.as_str(), rest.to_lowercase().as_str()) {
            ("retry", "") => Self::Retry,
            ("skip", "") => Self::Skip,
            ("give", "up") | ("give-up" | "stop", "") => Self::GiveUp,
            ("repair", _) => Self::Repair(rest),
            _ => Self::Repair(text.trim().to_owned()),
        }
    }
}

/// A person's answer to a proposed commit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CommitReply {
    /// Commit with the proposed message.
    Commit,
    /// Commit with this message.
    Reworded(String),
    /// Do not commit, for this reason; empty if none was given.
    Leave(String),
}

impl CommitReply {
    /// Parses a person's answer. Only a single word of agreement commits, or `message:` with
    /// another message. Any other text is a reason not to commit.
    #[must_use]
    pub fn read(text: &str) -> Self {
        let text = text.trim();
        if let Some(why) = denied(text) {
            return Self::Leave(why);
        }
        if is_approval(text) || text.eq_ignore_ascii_case("commit") {
            return Self::Commit;
        }
        match text.split_once(':') {
            Some((word, message))
                if word.trim().eq_ignore_ascii_case("message") && !message.trim().is_empty() =>
            {
                Self::Reworded(message.trim().to_owned())
            }
            _ => Self::Leave(text.to_owned()),
        }
    }
}

/// The reason of a denial, if the text is one: a word that denies, alone or followed by a colon and
/// a reason, as every front end writes it. So "deny access by default" is not a denial.
fn denied(text: &str) -> Option<String> {
    let (word, reason) = Answer::word_and_reason(text);
    let denies = word == "reject" || matches!(Answer::read(&word), Answer::Deny { .. });
    denies.then(|| reason.unwrap_or_default())
}

/// The first word in lower case, and the text after it and a colon.
fn word_and_rest(text: &str) -> (String, String) {
    let text = text.trim();
    let end = text.find(|c: char| c == ':' || c.is_whitespace()).unwrap_or(text.len());
    let (word, rest) = text.split_at(end);
    let rest = rest.trim_start_matches(|c: char| c == ':' || c.is_whitespace());
    (word.to_lowercase(), rest.trim().to_owned())
}

/// An agent's report about its task.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TaskReport {
    /// Does the agent say that the task is done?
    pub done: bool,
    /// What it did, or why it could not.
    pub summary: String,
}

impl TaskReport {
    /// Parses an agent's last text. Without a status the task counts as done; the checks find out.
    #[must_use]
    pub fn parse(answer: &str) -> Self {
        let fields = parse_json(answer);
        let status = fields.as_ref().and_then(|fields| fields.get("status")?.as_str());
        let Some(status) = status else {
            return Self { done: true, summary: plain(answer, MAX_REPORT) };
        };
        let summary = fields.as_ref().and_then(|fields| fields.get("summary")?.as_str());
        let done = status.eq_ignore_ascii_case("done");
        Self { done, summary: plain(summary.unwrap_or(status), MAX_REPORT) }
    }

    /// As a node's output.
    #[must_use]
    pub fn output(&self) -> Map<String, Value> {
        let status = if self.done { "done" } else { "failed" };
        Map::from_iter([
            ("response".to_owned(), self.summary.clone().into()),
            ("status".to_owned(), status.into()),
        ])
    }

    /// From a node's output.
    #[must_use]
    pub fn of_output(output: &Value) -> Self {
        let text = |key: &str| output.get(key).and_then(Value::as_str).unwrap_or_default();
        Self { done: text("status") == "done", summary: text("response").to_owned() }
    }
}

/// A reviewer's findings.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Review {
    /// The issues; empty, if the review passes.
    pub issues: Vec<Issue>,
    /// The reviewer's summary.
    pub summary: String,
}

/// A change that a reviewer requires.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Issue {
    /// The required change.
    pub description: String,
    /// The files that it concerns.
    pub files: Vec<String>,
}

impl Review {
    /// Reads a reviewer's answer.
    pub fn parse(answer: &str) -> Result<Self, String> {
        let expected = "answer {\"verdict\": \"pass\" or \"fail\", \"summary\": \"…\", \"issues\": \
                        [{\"description\": \"…\", \"files\": []}]}";
        let Some(fields @ Value::Object(_)) = parse_json(answer) else {
            return Err(format!("it is not a JSON object; {expected}"));
        };
        let text = |key: &str| fields.get(key).and_then(Value::as_str).unwrap_or_default();
        let passes = match text("verdict").to_lowercase().as_str() {
            "pass" | "passed" | "ok" => true,
            "fail" | "failed" => false,
            _ => return Err(format!("it has no verdict; {expected}")),
        };
        let listed = fields.get("issues").and_then(Value::as_array);
        let listed = listed.map(Vec::as_slice).unwrap_or_default().iter();
        let issues: Vec<Issue> = listed.filter_map(read_issue).take(MAX_ISSUES).collect();
        let summary = plain(text("summary"), MAX_REPORT);
        match (passes, issues.is_empty()) {
            // Remarks in a review that passes are not issues.
            (true, _) => Ok(Self { issues: Vec::new(), summary }),
            (false, false) => Ok(Self { issues, summary }),
            (false, true) if !summary.is_empty() => {
                let issue = Issue { description: summary.clone(), files: Vec::new() };
                Ok(Self { issues: vec![issue], summary })
            }
            (false, true) => Err(format!("it fails without an issue; {expected}")),
        }
    }

    /// As a node's output.
    #[must_use]
    pub fn output(&self) -> Map<String, Value> {
        let issue = |issue: &Issue| serde_json::json!({ "description": issue.description, "files": issue.files });
        Map::from_iter([
            ("response".to_owned(), self.summary.clone().into()),
            ("issues".to_owned(), self.issues.iter().map(issue).collect()),
        ])
    }

    /// From a node's output.
    #[must_use]
    pub fn of_output(output: &Value) -> Self {
        let listed = output.get("issues").and_then(Value::as_array);
        let listed = listed.map(Vec::as_slice).unwrap_or_default().iter();
        let summary = output.get("response").and_then(Value::as_str).unwrap_or_default();
        Self { issues: listed.filter_map(read_issue).collect(), summary: summary.to_owned() }
    }
}

fn read_issue(issue: &Value) -> Option<Issue> {
    let description = issue.as_str().or_else(|| issue.get("description")?.as_str())?;
    let description = plain(description, MAX_REPORT);
    // Files are only a hint: an invalid one is dropped without rejecting the review.
    let files = list_of_texts(issue.get("files")).into_iter();
    let files = files.filter(|file| is_file_name(file)).take(MAX_FILES).collect();
    (!description.is_empty()).then_some(Issue { description, files })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_question_has_suggestions_and_takes_a_number_words_or_nothing() {
        let asked = json!({ "question": "With auth?\u{1b}", "suggestions": ["no", "yes, basic"] });
        let asked = Unclear::parse(&asked.to_string()).unwrap().unwrap();
        assert_eq!(asked.question, "With auth?");
        assert!(asked.prompt().contains("\n  2) yes, basic\n"), "{}", asked.prompt());
        assert_eq!(asked.reply("2"), QuestionReply::Answer("yes, basic".to_owned()));
        assert_eq!(asked.reply("3"), QuestionReply::Answer("3".to_owned()));
        assert_eq!(asked.reply(" by token "), QuestionReply::Answer("by token".to_owned()));
        assert_eq!(
            (asked.reply(""), asked.reply("Skip")),
            (QuestionReply::Skip, QuestionReply::Skip)
        );
        assert_eq!(asked.reply("skip all"), QuestionReply::SkipAll);
        let output = Value::Object(Unclear::output(Some(&asked)));
        assert_eq!(Unclear::of_output(&output), Some(asked));
        for clear in [r#"{"done": true}"#, r#"{"question": null}"#, "{}"] {
            assert_eq!(Unclear::parse(clear), Ok(None), "{clear}");
        }
        assert!(Unclear::parse("What do you mean?").is_err());
    }

    #[test]
    fn a_plan_is_approved_refined_rejected_or_the_end() {
        let refine = |text: &str| PlanReply::Refine(text.to_owned());
        for (typed, meant) in [
            ("approve", PlanReply::Approve),
            ("Yes.", PlanReply::Approve),
            ("refine: fewer tasks", refine("fewer tasks")),
            ("use sqlite", refine("use sqlite")),
            ("reject", PlanReply::Reject(String::new())),
            ("Reject: not that", PlanReply::Reject("not that".to_owned())),
            ("deny", PlanReply::Reject(String::new())),
            ("deny: not that", PlanReply::Reject("not that".to_owned())),
            ("no: not that", PlanReply::Reject("not that".to_owned())),
            ("never", PlanReply::Reject(String::new())),
            ("deny access by default", refine("deny access by default")),
            ("stop", PlanReply::Stop),
            ("Stop", PlanReply::Stop),
            ("stop using sqlite", refine("stop using sqlite")),
        ] {
            assert_eq!(PlanReply::read(typed), meant, "{typed}");
        }
    }

    #[test]
    fn a_failed_task_is_retried_repaired_skipped_or_given_up() {
        let repair = |hint: &str| FailureReply::Repair(hint.to_owned());
        for (typed, meant) in [
            ("retry", FailureReply::Retry),
            ("skip", FailureReply::Skip),
            ("give up", FailureReply::GiveUp),
            ("give-up", FailureReply::GiveUp),
            ("stop", FailureReply::GiveUp),
            ("deny", FailureReply::GiveUp),
            ("no: it is hopeless", FailureReply::GiveUp),
            ("no tests were run: run them", repair("no tests were run: run them")),
            ("stop using curl", repair("stop using curl")),
            ("repair", repair("")),
            ("repair: mind the port", repair("mind the port")),
            ("skip the tests in it", repair("skip the tests in it")),
        ] {
            assert_eq!(FailureReply::read(typed), meant, "{typed}");
        }
    }

    #[test]
    fn a_commit_is_made_reworded_or_left() {
        for agreed in ["yes", "Yes.", "commit", "Commit", "ok", "approve"] {
            assert_eq!(CommitReply::read(agreed), CommitReply::Commit, "{agreed}");
        }
        let leave = |why: &str| CommitReply::Leave(why.to_owned());
        for (typed, meant) in [
            ("", leave("")),
            ("no", leave("")),
            ("deny", leave("")),
            ("deny: not yet", leave("not yet")),
            ("Never: not yet", leave("not yet")),
            ("reject: not yet", leave("not yet")),
            ("message:", leave("message:")),
        ] {
            assert_eq!(CommitReply::read(typed), meant, "{typed}");
        }
        // A sentence commits nothing, whatever its first word is.
        for sentence in [
            "wait, the tests are missing",
            "yes but run the tests first",
            "commit it later",
            "api: healthz",
            "no, wait",
            "the message: it is too long",
            "stop",
            "skip",
        ] {
            assert_eq!(CommitReply::read(sentence), leave(sentence), "{sentence}");
        }
        for message in ["message: api: healthz", "Message:api: healthz\n"] {
            let reworded = CommitReply::Reworded("api: healthz".to_owned());
            assert_eq!(CommitReply::read(message), reworded, "{message}");
        }
    }

    #[test]
    fn a_report_without_a_status_counts_as_done() {
        let done = TaskReport::parse("I wrote it.");
        assert_eq!((done.done, &*done.summary), (true, "I wrote it."));
        let failed = TaskReport::parse(r#"{"status": "failed", "summary": "no compiler"}"#);
        assert_eq!((failed.done, &*failed.summary), (false, "no compiler"));
        assert_eq!(TaskReport::of_output(&Value::Object(failed.output())), failed);
    }

    #[test]
    fn a_review_passes_or_says_what_is_wrong() {
        let passed = Review::parse(r#"{"verdict": "pass", "issues": ["a nit"]}"#).unwrap();
        assert_eq!(passed.issues, []);
        let failed =
            json!({ "verdict": "fail", "issues": [{ "description": "x", "files": ["a"] }] });
        let failed = Review::parse(&failed.to_string()).unwrap();
        assert_eq!(failed.issues[0].files, ["a"]);
        assert_eq!(Review::of_output(&Value::Object(failed.output())), failed);
        let words = Review::parse(r#"{"verdict": "fail", "summary": "it is slow"}"#).unwrap();
        assert_eq!(words.issues[0].description, "it is slow");
        for wrong in ["fine", "{}", r#"{"verdict": "fail"}"#, r#"{"verdict": "maybe"}"#] {
            assert!(Review::parse(wrong).is_err(), "{wrong}");
        }
        let many: Vec<_> = (0..50).map(|n| format!("issue {n}")).collect();
        let many = Review::parse(&json!({ "verdict": "fail", "issues": many }).to_string());
        assert_eq!(many.unwrap().issues.len(), MAX_ISSUES);
    }
}
