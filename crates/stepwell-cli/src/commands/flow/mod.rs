//! Workflows: running them; checking, planning and explaining their specs.

mod explain;
mod plan;
mod run;
mod schema;
mod spec;
mod validate;

use stepwell_terminal::note;
use stepwell_terminal::text::{one_line, visible};

use crate::app::{App, Needs};
use crate::failure::{Exit, Result};

/// Works with workflows of several agents, described by specs.
///
/// A spec is a YAML or JSON file: agents, a pattern for how they work together, variables, limits
/// and the files to write. docs/flows.md describes it.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(subcommand)]
    action: Action,
}

#[derive(Debug, clap::Subcommand)]
enum Action {
    Run(Box<run::Args>),
    Validate(validate::Args),
    Plan(plan::Args),
    Explain(explain::Args),
    Schema(schema::Args),
}

impl Args {
    /// What it needs before it can begin: a spec can be looked at anywhere.
    pub(crate) fn needs(&self) -> Needs {
        match self.action {
            Action::Run(_) => Needs::TrashScope,
            Action::Validate(_) | Action::Plan(_) | Action::Explain(_) | Action::Schema(_) => {
                Needs::Nothing
            }
        }
    }
}

pub(crate) fn run(args: &Args, app: &mut App) -> Result<Exit> {
    match &args.action {
        Action::Run(args) => run::run(args, app),
        Action::Validate(args) => validate::run(args, app),
        Action::Plan(args) => plan::run(args, app),
        Action::Explain(args) => explain::run(args, app),
        Action::Schema(args) => schema::run(args, app),
    }
}

/// Says what a flow would go on with.
pub(crate) fn say_next(
    id: &stepwell::SessionId,
    next: &[stepwell_flow::Upcoming],
    app: &mut App,
) -> Result<Exit> {
    if app.out.is_json() {
        let (session_id, next) = (id.clone(), next.iter().map(Into::into).collect());
        app.out.object(&stepwell_wire::UpcomingNodes { session_id, next })?;
        return Ok(Exit::Done);
    }
    if next.is_empty() {
        app.out.line(format_args!("{id} would only write its results, and end."))?;
    }
    for work in next {
        let who = work.agent.as_deref().unwrap_or("you");
        let asks = work.asks.as_deref().map(one_line).unwrap_or_default();
        let line = format!("{}  {who}: {asks}", work.key);
        app.out.line(app.cut(&visible(&line)))?;
    }
    note("This was a dry run: nobody was asked, and nothing was written.");
    Ok(Exit::Done)
}
