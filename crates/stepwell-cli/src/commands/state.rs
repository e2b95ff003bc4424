use stepwell::sqlite::Access;
use stepwell_formats::state_markdown;
use stepwell_runtime::command::SessionCommand;

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
    let what = match &args.action {
        None => SessionCommand::State,
        Some(Action::Goal { text }) => SessionCommand::Goal(text.clone()),
        Some(Action::Ask { text }) => SessionCommand::Ask(text.clone()),
        Some(Action::Answer { question, text }) => {
            let (question, text) = (question.clone(), text.clone());
            SessionCommand::AnswerQuestion { question, text }
        }
    };
    let reply = app.of_session(&args.session, what)?;
    if !args.markdown {
        return app.answer(&reply);
    }
    let (well, id) = app.workspace.open_session(&args.session, Access::Read)?;
    let (head, work) = (&well.info(&id)?.head, &well.work_with_last_step(&id)?);
    app.out.line(state_markdown(head, work).trim_end())?;
    Ok(Exit::Done)
}
