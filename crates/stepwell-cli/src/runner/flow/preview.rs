//! Dry runs of flows: what would be done, with nothing done, recorded or asked.

use serde::Serialize;
use stepwell::Session;
use stepwell_flow::plan::Plan;
use stepwell_flow::spec::Spec;
use stepwell_flow::template::Scope;
use stepwell_flow::{DryRun, History, Upcoming, next_nodes};

use super::{Asked, agents, variables};
use crate::app::App;
use crate::failure::{Exit, Failure, Result};
use crate::output::note;
use crate::text::{one_line, visible};

/// Shows the plan of a flow that would begin, with its variables filled in.
pub(super) fn plan(asked: &Asked<'_>, app: &mut App) -> Result<Exit> {
    let spec = &asked.reading.spec;
    let redactor = agents::redactor(spec, app)?;
    let plan = Plan::of(spec).filled(&variables::kept(&asked.variables, &redactor));
    match app.out.is_json() {
        true => app.out.object(&plan)?,
        false => app.out.line(visible(&plan.text()).trim_end())?,
    }
    note("This was a dry run: nobody was asked, and nothing was written.");
    Ok(Exit::Done)
}

#[derive(Serialize)]
struct Answer<'a> {
    session_id: &'a str,
    next: &'a [Upcoming],
}

/// Says what a flow would go on with.
pub(super) fn next(
    (session, history): (&Session, History),
    spec: &Spec,
    app: &mut App,
) -> Result<Exit> {
    let redactor = agents::redactor(spec, app)?;
    let mut scope = Scope::new();
    let known = history.described.as_ref().map(|flow| flow.variables.clone());
    for (name, value) in known.unwrap_or_default() {
        scope.set(name, value);
    }
    let runtime = tokio::runtime::Builder::new_current_thread().build();
    let runtime = runtime.map_err(|error| Failure::new(Exit::Failed, error))?;
    let dry_run = DryRun { session, history, spec, variables: scope, redactor: &redactor };
    let next = runtime.block_on(next_nodes(dry_run))?;
    let id = session.id();
    if app.out.is_json() {
        app.out.object(&Answer { session_id: id.as_str(), next: &next })?;
        return Ok(Exit::Done);
    }
    if next.is_empty() {
        app.out.line(format_args!("{id} would only write its results, and end."))?;
    }
    for work in &next {
        let who = work.agent.as_deref().unwrap_or("you");
        let asks = work.asks.as_deref().map(one_line).unwrap_or_default();
        let line = format!("{}  {who}: {asks}", work.key);
        app.out.line(app.cut(&visible(&line)))?;
    }
    note("This was a dry run: nobody was asked, and nothing was written.");
    Ok(Exit::Done)
}
