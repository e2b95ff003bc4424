use stepwell::sqlite::Access;
use stepwell::{SessionId, Stepwell};
use stepwell_formats::{state_markdown, task_progress};
use stepwell_runtime::inspect::work_state;
use stepwell_terminal::text::{one_line, second, visible};
use stepwell_terminal::{Style, work};
use stepwell_workspace::housekeeping::tidy;

use crate::app::App;
use crate::failure::{Exit, Result};
use crate::reach::Reach;

/// Shows how a session's work stands: its goal, phase, progress and questions.
///
/// Of guided work it also shows which task it is at, how its last verification went, what it waits
/// for, and what to type next.
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

impl Args {
    pub(super) fn reach(&self) -> Reach {
        match self.action {
            Some(Action::Goal { .. } | Action::Ask { .. } | Action::Answer { .. }) => Reach::Widens,
            None => Reach::Reads,
        }
    }
}

pub(crate) fn run(args: &Args, app: &mut App) -> Result<Exit> {
    let Some(action) = &args.action else {
        let (well, id) = app.workspace.open_session(&args.session, Access::Read)?;
        answer(args, &well, &id, app)?;
        return Ok(Exit::Done);
    };
    let (well, id) = app.workspace.open_session(&args.session, Access::Write)?;
    change(action, &well, &id)?;
    answer(args, &well, &id, app)?;
    tidy(&app.workspace, &well);
    Ok(Exit::Done)
}

fn change(action: &Action, well: &Stepwell, id: &SessionId) -> Result<()> {
    match action {
        Action::Goal { text } => drop(well.set_goal(id, text)?),
        Action::Ask { text } => drop(well.ask(id, text)?),
        Action::Answer { question, text } => drop(well.answer_question(id, question, text)?),
    }
    Ok(())
}

fn answer(args: &Args, well: &Stepwell, id: &SessionId, app: &mut App) -> Result<()> {
    if args.markdown {
        let (head, work) = (&well.info(id)?.head, &well.work_with_last_step(id)?);
        return app.out.line(state_markdown(head, work).trim_end());
    }
    let state = work_state(well, id)?;
    if app.out.is_json() {
        return app.out.object(&state);
    }
    let paint = app.out.paint;
    let mut say = |name: &str, value: &str| match value.is_empty() {
        true => Ok(()),
        false => {
            let name = paint.paint(Style::Bold, &format!("{name:<10}"));
            app.out.line(format_args!("{name} {value}"))
        }
    };
    let names: Vec<_> = state.next_phases.iter().map(|phase| phase.as_str()).collect();
    let next =
        if names.is_empty() { String::new() } else { format!(" (next: {})", names.join(", ")) };
    say("Session", state.id.as_str())?;
    say("Status", state.status.as_str())?;
    say("Goal", &one_line(state.goal.as_deref().unwrap_or_default()))?;
    say("Phase", &state.phase.map(|phase| format!("{phase}{next}")).unwrap_or_default())?;
    say("Progress", &task_progress(&well.work(id)?.tasks))?;
    work::guided(&state).iter().try_for_each(|line| say(line.name, &line.text))?;
    let last = match state.last_action.is_empty() {
        true => String::new(),
        false => format!("{}, {}", visible(&state.last_action), second(state.timestamp)),
    };
    say("Last", &last)?;
    say("Resumed", &state.resumed_at.map(second).unwrap_or_default())?;
    say("Error", &one_line(state.error.as_deref().unwrap_or_default()))?;
    let lines = work::questions(&state.questions).into_iter().chain(work::next(&state));
    { lines }.try_for_each(|line| say(line.name, &line.text))
}
