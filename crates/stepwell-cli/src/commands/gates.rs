use stepwell::gates::{Asked, Gates};
use stepwell::{Access, Filter, Query, SessionId, Status};
use stepwell_runtime::flow::is_permission;
use stepwell_wire::OpenGate;
use stepwell_workspace::NamedWell;

use crate::app::{App, Go, Well, each_session};
use crate::failure::{Exit, Result};
use crate::output::{Style, note};
use crate::table::{Align, Cell, Column, Table};
use crate::text::{ago, one_line};

/// Lists every question that waits for a human.
///
/// A flow's question is answered with: stepwell resume SESSION --respond "TEXT"; a tool that
/// may not run unasked, with --approve or --deny.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// One session; without it, all that are here.
    session: Option<String>,
    /// Looks in all of your stores.
    #[arg(long, conflicts_with = "session")]
    everywhere: bool,
}

const COLUMNS: &[Column] = &[
    Column { name: "SESSION", align: Align::Left },
    Column { name: "GATE", align: Align::Left },
    Column { name: "ASKED", align: Align::Left },
    Column { name: "QUESTION", align: Align::Left },
];

pub(crate) fn run(args: &Args, app: &mut App) -> Result<Exit> {
    let mut wells: Vec<(Option<String>, Well)> = Vec::new();
    if args.everywhere {
        for NamedWell { name, well } in app.everywhere(|it, path| it.open(path, Access::Read)) {
            wells.push((Some(name.display().to_string()), well));
        }
    } else if let Some(well) = app.look()? {
        wells.push((None, well));
    }
    let mut table = Table::new(COLUMNS);
    let (mut questions, mut permissions, mut of_flows, now) = (0, 0, 0, app.now());
    for (store, well) in &wells {
        for id in waiting(args, well, app)? {
            let is_flow = well.standing(&id)?.head.flow.is_some();
            for Asked { gate, at, .. } in Gates::of(&**well.store(), &id)?.open() {
                match is_permission(gate) {
                    true if is_flow => of_flows += 1,
                    true => permissions += 1,
                    false => questions += 1,
                }
                if app.out.is_json() {
                    let (session_id, gate) = (id.clone(), gate.into());
                    let store = store.clone();
                    app.out.object(&OpenGate { session_id, gate, asked_at: *at, store })?;
                    continue;
                }
                table.push(vec![
                    id.to_string().into(),
                    gate.id.clone().into(),
                    Cell::styled(ago(*at, now), Style::Dim),
                    one_line(&gate.prompt).into(),
                ]);
            }
        }
    }
    if questions + permissions + of_flows == 0 {
        note("No question waits.");
        return Ok(Exit::Done);
    }
    if !app.out.is_json() {
        app.print(&table)?;
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
    }
    Ok(Exit::Done)
}

/// The sessions in which something waits.
fn waiting(args: &Args, well: &Well, app: &App) -> Result<Vec<SessionId>> {
    if let Some(name) = &args.session {
        return Ok(vec![app.find_session(well, name)?]);
    }
    let mut ids = Vec::new();
    let filter = Filter::default();
    each_session(well, Query { filter, ..Query::default() }, |standing| {
        // What was abandoned waits for nobody.
        let waits = standing.head.open_gates > 0 && standing.head.status != Status::Abandoned;
        if waits {
            ids.push(standing.head.id);
        }
        Ok(Go::On)
    })?;
    Ok(ids)
}
