use stepwell::{Access, Change, Edited, Head, Question, SessionId, Work};
use stepwell_formats::{said, state_markdown};
use stepwell_wire::{TaskInfo, WorkState};
use stepwell_workspace::housekeeping::tidy;

use crate::app::{App, Well};
use crate::failure::{Exit, Failure, Result};
use crate::files::{hold_whole, refuse_half};
use crate::output::Style;
use crate::runner::redactor;
use crate::text::{one_line, second, visible};

/// Shows how a session's work stands: its goal, its phase, its progress, what was asked.
///
/// stepwell phase moves it on, and stepwell tasks has its plan.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The session: its id, a part of it, its label, or @last.
    session: String,
    #[command(subcommand)]
    action: Option<Action>,
    /// Answers in Markdown, as in STATE.md.
    #[arg(long, global = true, conflicts_with = "json")]
    markdown: bool,
}

#[derive(Debug, clap::Subcommand)]
enum Action {
    /// Says what the work is to achieve, also while it runs.
    Goal {
        /// The goal; an empty one takes it away.
        text: String,
    },
    /// Notes a question about the work.
    Ask {
        /// The question.
        text: String,
    },
    /// Answers one.
    Answer {
        /// The question's number.
        question: String,
        /// The answer.
        text: String,
    },
}

pub(crate) fn run(args: &Args, app: &mut App) -> Result<Exit> {
    let Some(action) = &args.action else {
        let (well, id) = app.session(&args.session, Access::Read)?;
        answer(args, &well.standing(&id)?.head, &well.work(&id)?, app)?;
        return Ok(Exit::Done);
    };
    let (well, id) = app.session(&args.session, Access::Write)?;
    change(action, &well, &id, app)?;
    answer(args, &well.standing(&id)?.head, &well.work(&id)?, app)?;
    tidy(app, &well)?;
    Ok(Exit::Done)
}

fn change(action: &Action, well: &Well, id: &SessionId, app: &App) -> Result<()> {
    let said = |text: &str| {
        let text = text.trim();
        match text.is_empty() {
            true => Err(Failure::new(Exit::Failed, "the text is empty")),
            false => Ok(redactor(app)?.redact(text).into_owned()),
        }
    };
    match action {
        Action::Goal { text } => {
            let goal = match text.trim().is_empty() {
                true => Change::Clear,
                false => Change::Set(said(text)?),
            };
            refuse_half(&well.standing(id)?)?;
            well.edit(id, Edited { goal, ..Edited::default() })?;
        }
        Action::Ask { text } => {
            let session = hold_whole(well, id)?;
            let asked = session.work()?.questions;
            let free = |n: &usize| !asked.iter().any(|it| it.id == n.to_string());
            let n = (asked.len() + 1..).find(free).unwrap_or_default();
            session.append(Question { id: n.to_string(), text: said(text)?, answer: None })?;
        }
        Action::Answer { question, text } => {
            let session = hold_whole(well, id)?;
            let asked = session.work()?.questions;
            let Some(found) = asked.iter().find(|it| it.id == *question) else {
                let ids: Vec<_> = asked.iter().map(|it| it.id.as_str()).collect();
                let hint = match &ids[..] {
                    [] => format!("nothing was asked; stepwell state {id} ask \"TEXT\" does"),
                    ids => format!("asked were {}", ids.join(", ")),
                };
                let message = format!("{id}: there is no question {question:?}");
                return Err(Failure::new(Exit::Failed, message).hint(hint));
            };
            session.append(Question { answer: Some(said(text)?), ..found.clone() })?;
        }
    }
    Ok(())
}

fn answer(args: &Args, head: &Head, work: &Work, app: &mut App) -> Result<()> {
    if args.markdown {
        return app.out.line(state_markdown(head, work).trim_end());
    }
    let said = said(head, work);
    let next = head.phases.zip(head.phase);
    let next = next.map(|(set, phase)| set.next(phase, head.discuss_returns)).unwrap_or_default();
    if app.out.is_json() {
        return app.out.object(&WorkState {
            id: head.id.clone(),
            status: head.status,
            goal: Some(said.goal).filter(|goal| !goal.is_empty()),
            phase: head.phase,
            next_phases: next,
            progress: (&work.tasks).into(),
            last_action: said.last_action,
            timestamp: said.at,
            questions: work.questions.clone(),
            tasks: work.tasks.iter().map(|task| TaskInfo::new(task, &work.tasks)).collect(),
        });
    }
    let paint = app.out.paint;
    let mut say = |name: &str, value: &str| match value.is_empty() {
        true => Ok(()),
        false => {
            let name = paint.paint(Style::Bold, &format!("{name:<10}"));
            app.out.line(format_args!("{name} {value}"))
        }
    };
    let names: Vec<_> = next.iter().map(|phase| phase.as_str()).collect();
    let next =
        if names.is_empty() { String::new() } else { format!(" (next: {})", names.join(", ")) };
    say("Session", head.id.as_str())?;
    say("Status", head.status.as_str())?;
    say("Goal", &one_line(&said.goal))?;
    say("Phase", &said.phase.map(|phase| format!("{phase}{next}")).unwrap_or_default())?;
    say("Progress", &said.progress)?;
    let last = match said.last_action.is_empty() {
        true => String::new(),
        false => format!("{}, {}", visible(&said.last_action), second(said.at)),
    };
    say("Last", &last)?;
    for Question { id, text, answer } in &work.questions {
        let answer = answer.as_deref().map_or_else(|| "(no answer yet)".to_owned(), one_line);
        say("Question", &format!("{}: {} {answer}", visible(id), one_line(text)))?;
    }
    Ok(())
}
