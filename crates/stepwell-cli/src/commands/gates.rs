mod watch;

use stepwell::Seq;
use stepwell::model::Answer;
use stepwell::sqlite::Access;
use stepwell_runtime::command::{Command, GatesWanted};
use stepwell_runtime::inspect::meant_gate;
use stepwell_runtime::{FlowOptions, Given};
use stepwell_wire::GateAnswered;
use stepwell_workspace::known_stores;

use crate::app::App;
use crate::failure::{Exit, Result};
use crate::reach::Reach;

/// Lists every question that waits for a human, and answers them.
///
/// A flow's question is answered with: stepwell resume SESSION --respond "TEXT"; a tool that
/// may not run unasked, with --approve or --deny. A session that runs, or waits elsewhere, goes on
/// with: stepwell gates answer GATE yes.
#[derive(Debug, clap::Args)]
#[command(args_conflicts_with_subcommands = true)]
pub(crate) struct Args {
    #[command(subcommand)]
    action: Option<Action>,
    /// One session; without it, all that are here.
    session: Option<String>,
    /// Looks in all of your stores.
    #[arg(long, conflicts_with = "session")]
    everywhere: bool,
    /// Keeps the list current, until Ctrl+C. In a pipe, each question that opens or closes is a
    /// line.
    #[arg(long)]
    watch: bool,
}

#[derive(Debug, clap::Subcommand)]
enum Action {
    /// Answers a question; the first answer counts.
    ///
    /// Whoever runs the session goes on with it. If nobody does, stepwell resume goes on.
    Answer(AnswerArgs),
}

#[derive(Debug, clap::Args)]
struct AnswerArgs {
    /// The question, as stepwell gates names it; or SESSION/GATE, with a part of the session's id.
    gate: String,
    /// For a tool: yes, always, no or never. For a flow's question: the answer.
    answer: String,
    /// Why not, for the model.
    #[arg(long, value_name = "TEXT")]
    reason: Option<String>,
    /// The session that asks, if several ask under the same name.
    #[arg(long, value_name = "SESSION")]
    session: Option<String>,
    /// The question's seq, as stepwell gates --json names it: another one is not answered.
    #[arg(long, value_name = "SEQ")]
    seen: Option<u64>,
}

impl Args {
    pub(super) fn reach(&self) -> Reach {
        match self.action {
            Some(Action::Answer(_)) => Reach::Widens,
            None => Reach::Reads,
        }
    }
}

pub(crate) fn run(args: &Args, app: &mut App) -> Result<Exit> {
    match &args.action {
        Some(Action::Answer(args)) => answer(args, app),
        None if args.watch => watch::run(args, app),
        None => list(args, app),
    }
}

fn list(args: &Args, app: &mut App) -> Result<Exit> {
    let (session, everywhere) = (args.session.clone(), args.everywhere);
    let reply = app.carry_out(Command::Gates(GatesWanted { session, everywhere }))?;
    app.answer(&reply)
}

fn answer(args: &AnswerArgs, app: &mut App) -> Result<Exit> {
    if let Some(name) = &args.session {
        known_stores::go_to_session(&mut app.workspace, name)?;
    }
    let (gate, session) = match &args.session {
        Some(name) => (args.gate.clone(), app.workspace.open_session(name, Access::Read)?.1),
        None => {
            let meant = meant_gate(&app.workspace, &args.gate)?;
            if meant.elsewhere {
                known_stores::go_to_session(&mut app.workspace, meant.session.as_str())?;
            }
            (meant.gate, meant.session)
        }
    };
    let text = match &args.reason {
        Some(reason) => format!("{}: {reason}", args.answer),
        None => args.answer.clone(),
    };
    let given = Given { gate: Some(gate), answer: Answer::Text(text) };
    let (flow, seen) = (FlowOptions::default(), args.seen.map(Seq::new));
    let answered = app.runtime().answer_having_seen(&session, &given, &flow, seen)?;
    let (id, top) = (&answered.session, &answered.resume);
    let line = match answered.goes_on {
        _ if answered.asked_again => format!("{id} asked again: your answer does not count there"),
        true => format!("{id} continues with the answer"),
        false if answered.stopped => {
            format!("{id} has the answer and stays stopped; stepwell resume {top} continues it")
        }
        false => format!("{id} has the answer; stepwell resume {top} continues it"),
    };
    let told = GateAnswered {
        session_id: id.clone(),
        gate: answered.gate.clone(),
        seq: answered.seq,
        goes_on: answered.goes_on,
        counts: true,
        stopped: answered.stopped,
        resume: top.clone(),
    };
    app.out.answer(&told, line)?;
    Ok(Exit::Done)
}
