//! What a rewind does, or would do, in words.

use stepwell::log::Head;
use stepwell::model::Scope;
use stepwell::{SessionId, Status};
use stepwell_files::rewind::{CutOff, Preview};
use stepwell_files::rewind_effect::RewindEffect;
use stepwell_files::rewind_history::{Asked, Direction};
use stepwell_wire::{LeftFile, MovedFile, RewoundWork};

use crate::console::{Paint, Style};
use crate::explained::Explained;
use crate::text::{count, one_line};

/// A move of a session, before or after it was made.
#[derive(Clone, Copy, Debug)]
pub struct Move<'a> {
    /// The session.
    pub id: &'a SessionId,
    /// What was asked for.
    pub asked: &'a Asked,
    /// The session before it.
    pub head: &'a Head,
    /// Which way it goes.
    pub way: Direction,
    /// What it does.
    pub preview: &'a Preview,
}

impl Move<'_> {
    /// What it does, line by line.
    #[must_use]
    pub fn lines(&self, is_done: bool, paint: Paint) -> Vec<String> {
        let Move { id, asked, preview, .. } = self;
        let (shift, plan) = (&preview.shift, &preview.plan);
        let would = if is_done { "" } else { " (not done: --dry-run)" };
        let mut lines = vec![format!("{id}: {}{would}", goal(asked))];
        let chat = conversation(asked, shift);
        let says_nothing = chat.is_empty() && plan.moves.is_empty();
        for (style, text) in chat {
            lines.push(format!("  {} {text}", paint.paint(style, "chat    ")));
        }
        for change in &plan.moves {
            let since = match shift.later_files.contains(&change.path) {
                true => " (changed since)",
                false => "",
            };
            lines.push(format!("{}{since}", moved(&change.into(), paint)));
        }
        lines.extend(plan.left.iter().map(|it| remark(Style::Yellow, "left", it, paint)));
        lines.extend(plan.conflicts.iter().map(|it| remark(Style::Red, "conflict", it, paint)));
        if says_nothing {
            lines.push(match asked.scope.moves_view() {
                true => "  chat     no messages; tasks, phase and goal are as they were there"
                    .to_owned(),
                false => "  nothing is moved".to_owned(),
            });
        }
        lines
    }

    /// The commands that go on from there and that take it back, as they are typed.
    #[must_use]
    pub fn hint(&self) -> String {
        let Move { id, asked, .. } = self;
        let goes_on = match (self.head.status, &self.head.flow) {
            _ if !asked.scope.moves_view() => String::new(),
            // What was given up is not resumed.
            (Status::Abandoned, Some(_)) => String::new(),
            (Status::Abandoned, None) => {
                format!("stepwell run \"TASK\" --session {id} goes on from there; ")
            }
            _ => format!("stepwell resume {id} goes on from there; "),
        };
        let back = match self.way {
            Direction::Back => "--undo",
            Direction::Forth => "--redo",
        };
        format!("{goes_on}stepwell rewind {id} {back} takes it back")
    }

    /// Why nothing was done, after a line for each file that is in the way.
    #[must_use]
    pub fn refusal(&self) -> (Vec<String>, Explained) {
        let Move { id, asked, preview, .. } = self;
        let (conflicts, aside) = (&preview.plan.conflicts, set_aside(&preview.shift));
        if conflicts.is_empty() {
            let of = asked.undoes.unwrap_or(asked.to);
            let message = format!(
                "undoing the rewind at seq {of} would set aside what was done since: {aside}; \
                 nothing was done"
            );
            let hint = format!(
                "add --force to set it aside (it can be taken back); stepwell fork {id} keeps it \
                 apart"
            );
            return (Vec::new(), Explained { message, hint: Some(hint) });
        }
        let line = |it: &LeftFile| format!("conflict {}: {}", one_line(&it.path), it.why);
        let mut lines: Vec<String> = conflicts.iter().map(line).collect();
        if !aside.is_empty() {
            lines.push(format!("What was done since would be set aside, too: {aside}."));
        }
        let many = count(conflicts.len(), "file");
        let are = if conflicts.len() == 1 { "is" } else { "are" };
        let message = format!("{many} of {id} {are} not overwritten unasked; nothing was done");
        let otherwise = match asked.undoes {
            Some(_) => "",
            None => ", or --chat to leave files",
        };
        let hint = format!("add --force to overwrite them (it can be taken back){otherwise}");
        (lines, Explained { message, hint: Some(hint) })
    }
}

/// What finishing a rewind would do that was cut off, line by line.
#[must_use]
pub fn cut_off(id: &SessionId, half: &CutOff, paint: Paint) -> Vec<String> {
    let CutOff { asked, moves, left, .. } = half;
    let goal = goal(asked);
    let mut lines = vec![format!("{id}: finishing what was cut off, {goal} (not done: --dry-run)")];
    lines.extend(moves.iter().map(|change| moved(&change.into(), paint)));
    lines.extend(left.iter().map(|it| remark(Style::Yellow, "left", it, paint)));
    if moves.is_empty() && left.is_empty() {
        lines.push("  all files are moved already".to_owned());
    }
    lines
}

fn moved(file: &MovedFile, paint: Paint) -> String {
    let word = paint.paint(Style::Green, &format!("{:<8}", file.action.as_str()));
    format!("  {word} {}", one_line(&file.path))
}

fn remark(style: Style, word: &str, remark: &LeftFile, paint: Paint) -> String {
    let word = paint.paint(style, &format!("{word:<8}"));
    format!("  {word} {}: {}", one_line(&remark.path), one_line(&remark.why))
}

/// Where a move leads, and what it moves.
fn goal(asked: &Asked) -> String {
    let what = match asked.scope {
        Scope::Chat => "the chat",
        Scope::Files => "files",
        Scope::Both => "chat and files",
    };
    match asked.undoes {
        Some(of) => format!("the rewind at seq {of} is undone, {what}"),
        None => format!("back to seq {}, {what}", asked.to),
    }
}

/// What happens to the conversation, line by line.
fn conversation(asked: &Asked, shift: &RewindEffect) -> Vec<(Style, String)> {
    let mut lines = Vec::new();
    let (leaves, later) = (shift.leaves, shift.later);
    let planned = leaves.without(later);
    let how = if asked.undoes.is_some() { "go back again" } else { "go back" };
    if !planned.is_none() {
        lines.push((Style::Green, format!("{} {how}", amount(planned))));
    }
    if !shift.returns.is_none() {
        lines.push((Style::Green, format!("{} come back", amount(shift.returns))));
    }
    if !later.is_none() {
        lines.push((Style::Yellow, format!("{} done since are set aside", amount(later))));
    }
    lines
}

/// What was done since, and would no longer count.
fn set_aside(shift: &RewindEffect) -> String {
    let mut aside = Vec::new();
    if !shift.later.is_none() {
        aside.push(amount(shift.later));
    }
    if !shift.later_files.is_empty() {
        let files: Vec<String> = shift.later_files.iter().map(|path| one_line(path)).collect();
        aside.push(format!("changes of {}", files.join(", ")));
    }
    aside.join(", ")
}

fn amount(work: RewoundWork) -> String {
    let said = format!("{} ({})", count(work.steps, "step"), count(work.messages, "message"));
    let others = [
        (work.tasks, "task change"),
        (work.questions, "question"),
        (work.phases, "phase change"),
        (work.goals, "goal change"),
        (work.compactions, "compaction"),
        (work.answers, "answer"),
    ];
    let others = others.into_iter().filter(|(many, _)| *many > 0);
    let others = others.map(|(many, what)| count(many, what));
    let said = (work.messages > 0).then_some(said);
    said.into_iter().chain(others).collect::<Vec<_>>().join(", ")
}
