//! What a rewind does, or would do, in words.

use stepwell::{Head, Scope, Seq, SessionId, Status};
use stepwell_files::plan::Remark;
use stepwell_files::rewind::{CutOff, Preview};
use stepwell_files::rewind_effect::{RewindEffect, Work};
use stepwell_files::rewind_history::{Asked, Direction};
use stepwell_runtime::detached::rewind_answer;
use stepwell_terminal::text::{count, one_line};
use stepwell_terminal::{Style, note};
use stepwell_wire::{MovedFile, UnfinishedRewind};

use crate::app::App;
use crate::failure::{Exit, Failure, Result};

/// A move, and what there is to say of it.
pub(super) struct Said<'a> {
    pub(super) id: &'a SessionId,
    pub(super) asked: &'a Asked,
    /// The session before it.
    pub(super) head: &'a Head,
    /// Which way it goes.
    pub(super) way: Direction,
    pub(super) preview: &'a Preview,
    /// The event that ended it and the checkpoint before it, if it was done.
    pub(super) done: Option<(Seq, &'a str)>,
}

/// Says what was done, or would be.
pub(super) fn say(said: &Said<'_>, app: &mut App) -> Result<()> {
    let Said { id, asked, preview, done, .. } = said;
    if app.out.is_json() {
        return app.out.object(&rewind_answer(id, asked, preview, *done));
    }
    let would = if done.is_some() { "" } else { " (not done: --dry-run)" };
    app.out.line(format_args!("{id}: {}{would}", goal(asked)))?;
    let (paint, shift, plan) = (app.out.paint, &preview.shift, &preview.plan);
    for (style, text) in conversation(asked, shift) {
        app.out.line(format_args!("  {} {text}", paint.paint(style, "chat    ")))?;
    }
    for change in &plan.moves {
        let word =
            paint.paint(Style::Green, &format!("{:<8}", MovedFile::from(change).action.as_str()));
        let since = match shift.later_files.contains(&change.path) {
            true => " (changed since)",
            false => "",
        };
        app.out.line(format_args!("  {word} {}{since}", one_line(&change.path)))?;
    }
    let remarks = [(Style::Yellow, "left", &plan.left), (Style::Red, "conflict", &plan.conflicts)];
    for (style, word, remarks) in remarks {
        for Remark { path, why } in remarks {
            let word = paint.paint(style, &format!("{word:<8}"));
            app.out.line(format_args!("  {word} {}: {}", one_line(path), one_line(why)))?;
        }
    }
    if conversation(asked, shift).is_empty() && plan.moves.is_empty() {
        app.out.line(match asked.scope.moves_view() {
            true => "  chat     no messages; tasks, phase and goal are as they were there",
            false => "  nothing is moved",
        })?;
    }
    match done {
        Some(_) => hint(said),
        None if preview.is_refused(asked) => {
            note("It would be refused; --force does it all the same.");
        }
        None => {}
    }
    Ok(())
}

/// Where a move leads, and what it moves.
fn goal(asked: &Asked) -> String {
    let what = match asked.scope {
        Scope::Chat => "the chat",
        Scope::Files => "files",
        Scope::Both => "chat and files",
    };
    match asked.undoes {
        Some(of) => format!("the move at seq {of} is taken back, {what}"),
        None => format!("back to seq {}, {what}", asked.to),
    }
}

/// Says what finishing a rewind would do that was cut off.
pub(super) fn say_cut_off(id: &SessionId, half: &CutOff, app: &mut App) -> Result<()> {
    let CutOff { began, asked, moves, left } = half;
    if app.out.is_json() {
        return app.out.object(&UnfinishedRewind {
            id: id.clone(),
            to: asked.to,
            scope: asked.scope,
            cut_off: *began,
            done: false,
            files: moves.iter().map(Into::into).collect(),
            left: left.iter().map(Into::into).collect(),
        });
    }
    let goal = goal(asked);
    app.out.line(format_args!("{id}: finishing what was cut off, {goal} (not done: --dry-run)"))?;
    let paint = app.out.paint;
    for change in moves {
        let word =
            paint.paint(Style::Green, &format!("{:<8}", MovedFile::from(change).action.as_str()));
        app.out.line(format_args!("  {word} {}", one_line(&change.path)))?;
    }
    for Remark { path, why } in left {
        let word = paint.paint(Style::Yellow, "left    ");
        app.out.line(format_args!("  {word} {}: {}", one_line(path), one_line(why)))?;
    }
    if moves.is_empty() && left.is_empty() {
        app.out.line("  all files are moved already")?;
    }
    Ok(())
}

/// The command that takes it back. It is typed as it stands here.
fn hint(said: &Said<'_>) {
    let Said { id, asked, .. } = said;
    let goes_on = match (said.head.status, &said.head.flow) {
        _ if !asked.scope.moves_view() => String::new(),
        // What was given up is not resumed.
        (Status::Abandoned, Some(_)) => String::new(),
        (Status::Abandoned, None) => {
            format!("stepwell run \"TASK\" --session {id} goes on from there; ")
        }
        _ => format!("stepwell resume {id} goes on from there; "),
    };
    let back = match said.way {
        Direction::Back => "--undo",
        Direction::Forth => "--redo",
    };
    note(format_args!("{goes_on}stepwell rewind {id} {back} takes it back"));
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

fn amount(work: Work) -> String {
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

/// Why nothing was done.
pub(super) fn refused(id: &SessionId, asked: &Asked, preview: &Preview) -> Failure {
    let (conflicts, shift) = (&preview.plan.conflicts, &preview.shift);
    for conflict in conflicts {
        note(format_args!("conflict {}: {}", one_line(&conflict.path), conflict.why));
    }
    let mut aside = Vec::new();
    if !shift.later.is_none() {
        aside.push(amount(shift.later));
    }
    if !shift.later_files.is_empty() {
        let files: Vec<String> = shift.later_files.iter().map(|path| one_line(path)).collect();
        aside.push(format!("changes of {}", files.join(", ")));
    }
    if !conflicts.is_empty() && !aside.is_empty() {
        note(format_args!("What was done since would be set aside, too: {}.", aside.join(", ")));
    }
    if !conflicts.is_empty() {
        let many = count(conflicts.len(), "file");
        let message =
            format!("{many} that {id} changed, someone else changed since; nothing was done");
        let otherwise = match asked.undoes {
            Some(_) => "",
            None => ", or --chat to leave files",
        };
        return Failure::new(Exit::Failed, message)
            .hint(format_args!("add --force to overwrite them (it can be taken back){otherwise}"));
    }
    let of = asked.undoes.unwrap_or(asked.to);
    let message = format!(
        "taking the move at seq {of} back would set aside what was done since: {}; nothing was done",
        aside.join(", ")
    );
    Failure::new(Exit::Failed, message).hint(format_args!(
        "add --force to set it aside (it can be taken back); stepwell fork {id} keeps it apart"
    ))
}
