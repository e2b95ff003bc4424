//! The conversation as plain lines, for screen readers and where nothing can be redrawn.

use crate::choice::Choice;
use crate::clean::Clean;
use crate::gates::Asked;
use crate::session::SessionRow;
use crate::state::State;
use crate::told::{Question, QuestionKind, ToolOutcome};
use crate::transcript::{Block, ToolState};

/// How many lines of output are written.
const OUTPUT: usize = 40;

/// A block as lines of text.
#[must_use]
pub fn plain_lines(block: &Block) -> Vec<String> {
    match block {
        Block::User(text) => named("you", text),
        Block::Answer(text) => named("agent", text),
        Block::Thinking(text) => named("thinking", text),
        Block::Picture(kind) => vec![format!("picture: {kind}")],
        Block::Note(text) => named("note", text),
        Block::Trouble(text) => named("error", text),
        Block::Output(text) => cut(text),
        Block::Tool(tool) => {
            let ended = match tool.state {
                ToolState::Called => "called",
                ToolState::Running(_) => "runs",
                ToolState::Over(ToolOutcome::Done) => "done",
                ToolState::Over(ToolOutcome::Failed) => "failed",
                ToolState::Over(ToolOutcome::Denied) => "not allowed",
                ToolState::Over(ToolOutcome::Waits) => "waits for you",
                ToolState::Over(ToolOutcome::CutOff) => "cut off",
                ToolState::Over(ToolOutcome::NotRun) => "not run",
            };
            let mut lines = vec![format!("tool {} {}: {ended}", tool.run.tool, tool.run.preview)];
            lines.extend(cut(&tool.output).into_iter().map(|line| format!("  {line}")));
            lines
        }
    }
}

/// A question as lines of text.
#[must_use]
pub fn plain_question(asked: &Asked) -> Vec<String> {
    let question = &asked.question;
    let mut lines = named("question", &question.shown_prompt());
    if let Some(asker) = &question.asker {
        lines.insert(0, format!("{asker} asks:"));
    }
    lines.extend(question.shown_detail().iter().flat_map(cut));
    lines.push(match (question.kind, &question.default) {
        (QuestionKind::Approval, _) if is_cut(question) => {
            format!("details shows all of it; answer {}", answers(question))
        }
        (QuestionKind::Approval, _) => format!("answer {}", answers(question)),
        (QuestionKind::Words, Some(default)) => {
            format!("answer in words; an empty line says: {default}")
        }
        (QuestionKind::Words, None) => "answer in words".to_owned(),
    });
    lines
}

/// What can be answered, and what "always" would be about.
pub(crate) fn answers(question: &Question) -> String {
    let meant = |choice: Choice| choice.label(question);
    let always = question.always.as_ref().map(|always| {
        let like = always.like().map(|like| format!("always {like} ({}), ", meant(Choice::Like)));
        format!("always ({}), {}", meant(Choice::Always), like.unwrap_or_default())
    });
    let never = meant(Choice::Never);
    format!("yes, {}no, no: WHY, never ({never}) or later", always.unwrap_or_default())
}

/// Is some of what would be done left out, as the question is written?
pub(crate) fn is_cut(question: &Question) -> bool {
    question.detail.as_ref().is_some_and(|it| it.as_str().trim_end().lines().count() > OUTPUT)
}

/// What sessions there are to begin with.
#[must_use]
pub fn plain_start(state: &State) -> Vec<String> {
    let Some(start) = state.start_list() else { return Vec::new() };
    let mut lines = vec!["Say what to do. /help lists commands, /quit leaves.".to_owned()];
    for row in start.rows.iter().take(5) {
        lines.push(resume_line(row));
    }
    lines
}

/// A session, and what opens it.
pub(crate) fn resume_line(row: &SessionRow) -> String {
    format!("/resume {}  ({}, {}) {}", row.id, row.standing(), row.when, row.title())
}

fn named(who: &str, text: &Clean) -> Vec<String> {
    let mut lines: Vec<String> = text.as_str().trim().lines().map(str::to_owned).collect();
    match lines.first_mut() {
        Some(first) => first.insert_str(0, &format!("{who}: ")),
        None => lines.push(format!("{who}:")),
    }
    lines
}

fn cut(text: &Clean) -> Vec<String> {
    let all: Vec<&str> = text.as_str().trim_end().lines().collect();
    let mut lines: Vec<String> = all.iter().take(OUTPUT).map(|line| (*line).to_owned()).collect();
    if all.len() > OUTPUT {
        lines.push(format!("({} more lines)", all.len() - OUTPUT));
    }
    lines
}
