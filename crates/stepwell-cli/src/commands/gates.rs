mod watch;

use stepwell::gates::{Asked, Gates};
use stepwell::{Access, Answer, SessionId, Time};
use stepwell_runtime::flow::is_permission;
use stepwell_runtime::inspect::{answered_lately, gate_elsewhere, sessions_with_gates};
use stepwell_runtime::{FlowOptions, Given, Runtime};
use stepwell_terminal::table::{Cell, Column, Table, left};
use stepwell_terminal::text::{ago, one_line};
use stepwell_terminal::{Style, note};
use stepwell_wire::{GateAnswered, OpenGate};
use stepwell_workspace::NamedWell;

use crate::app::{App, Well};
use crate::failure::{Exit, Failure, Result};

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
    /// The question, as stepwell gates names it.
    gate: String,
    /// For a tool: yes, always, no or never. For a flow's question: the answer.
    answer: String,
    /// Why not, for the model.
    #[arg(long, value_name = "TEXT")]
    reason: Option<String>,
    /// The session that asks, if several ask under the same name.
    #[arg(long, value_name = "SESSION")]
    session: Option<String>,
}

const COLUMNS: &[Column] = &[left("SESSION"), left("GATE"), left("ASKED"), left("QUESTION")];

pub(crate) fn run(args: &Args, app: &mut App) -> Result<Exit> {
    match &args.action {
        Some(Action::Answer(args)) => answer(args, app),
        None if args.watch => watch::run(args, app),
        None => list(args, app),
    }
}

fn list(args: &Args, app: &mut App) -> Result<Exit> {
    let mut wells: Vec<(Option<String>, Well)> = Vec::new();
    if args.everywhere {
        for NamedWell { name, well } in app.everywhere(|it, path| it.open(path, Access::Read)) {
            wells.push((Some(name.display().to_string()), well));
        }
    } else if let Some(well) = app.look()? {
        wells.push((None, well));
    }
    let mut all = Vec::new();
    let (mut questions, mut permissions, mut of_flows) = (0, 0, 0);
    for (store, well) in &wells {
        for id in waiting(args, well, app)? {
            let is_flow = well.info(&id)?.head.flow.is_some();
            for Asked { gate, at, .. } in Gates::of(&**well.store(), &id)?.open() {
                match is_permission(gate) {
                    true if is_flow => of_flows += 1,
                    true => permissions += 1,
                    false => questions += 1,
                }
                let (session_id, gate) = (id.clone(), gate.into());
                all.push(OpenGate { session_id, gate, asked_at: *at, store: store.clone() });
            }
        }
    }
    if all.is_empty() {
        note("No question waits.");
        return Ok(Exit::Done);
    }
    if app.out.is_json() {
        all.iter().try_for_each(|gate| app.out.object(gate))?;
        return Ok(Exit::Done);
    }
    app.print(&table(&all, app.now()))?;
    let several = "(--gate GATE, if several wait)";
    if questions > 0 {
        note(format_args!("hint: stepwell resume SESSION --respond \"your answer\" {several}"));
    }
    match (permissions, of_flows) {
        (0, 0) => {}
        (_, 0) => note("hint: stepwell resume SESSION --approve, or --deny"),
        _ => note(format_args!(
            "hint: stepwell resume SESSION --approve, or --deny (--gate GATE, if several wait in a flow)"
        )),
    }
    Ok(Exit::Done)
}

/// Questions as a table.
fn table<'a>(open: impl IntoIterator<Item = &'a OpenGate>, now: Time) -> Table {
    let mut table = Table::new(COLUMNS);
    for OpenGate { session_id, gate, asked_at, .. } in open {
        table.push(vec![
            session_id.to_string().into(),
            gate.id.clone().into(),
            Cell::styled(ago(*asked_at, now), Style::Dim),
            one_line(&gate.prompt).into(),
        ]);
    }
    table
}

/// The sessions in which something waits.
fn waiting(args: &Args, well: &Well, app: &App) -> Result<Vec<SessionId>> {
    if let Some(name) = &args.session {
        return Ok(vec![app.find_session(well, name)?]);
    }
    Ok(sessions_with_gates(well)?)
}

fn answer(args: &AnswerArgs, app: &mut App) -> Result<Exit> {
    app.runtime().refuse_in_run("answering")?;
    if let Some(name) = &args.session {
        app.go_to_session(name)?;
    }
    let (runtime, session) = find(args, app)?;
    let text = match &args.reason {
        Some(reason) => format!("{}: {reason}", args.answer),
        None => args.answer.clone(),
    };
    let given = Given { gate: Some(args.gate.clone()), answer: Answer::Text(text) };
    let answered = runtime.answer(&session, &given, &FlowOptions::default())?;
    let id = &answered.session;
    let line = match answered.goes_on {
        true => format!("{id} goes on with the answer"),
        false => format!("{id} has the answer; stepwell resume {id} goes on with it"),
    };
    let (session_id, gate) = (id.clone(), answered.gate.clone());
    let (seq, goes_on) = (answered.seq, answered.goes_on);
    app.out.answer(&GateAnswered { session_id, gate, seq, goes_on }, line)?;
    Ok(Exit::Done)
}

/// The session that asks: here, or in another store of the user's.
fn find(args: &AnswerArgs, app: &mut App) -> Result<(Runtime, SessionId)> {
    if let Some(name) = &args.session {
        let (_, id) = app.session(name, Access::Read)?;
        return Ok((app.runtime(), id));
    }
    let mut found = app.runtime().find_gate(&args.gate)?;
    if found.is_empty() {
        if let Some(id) = gate_elsewhere(app, &args.gate)? {
            app.go_to_session(id.as_str())?;
            return Ok((app.runtime(), id));
        }
        // Somebody was quicker: the loser is told who it was.
        for NamedWell { well, .. } in app.everywhere(|it, path| it.open(path, Access::Read)) {
            if let Some(before) = answered_lately(&well, &args.gate)? {
                return Err(before.into());
            }
        }
    }
    match (found.pop(), found.len()) {
        (Some(gate), 0) => Ok((app.runtime(), gate.session)),
        (None, _) => {
            let message = format!("no question {:?} waits", args.gate);
            Err(Failure::new(Exit::Absent, message).hint("stepwell gates lists those that do"))
        }
        (Some(last), _) => {
            let all = found.iter().chain([&last]).map(|gate| gate.session.to_string());
            let all = all.collect::<Vec<_>>().join(", ");
            let message = format!("{:?} waits in several sessions: {all}", args.gate);
            Err(Failure::new(Exit::Usage, message).hint("add --session, with one of them"))
        }
    }
}
