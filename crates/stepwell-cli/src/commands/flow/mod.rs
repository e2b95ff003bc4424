//! Workflows: running them; checking, planning and explaining their specs.

mod explain;
mod plan;
mod run;
mod schema;
mod spec;
mod validate;

use crate::app::{App, Needs};
use crate::failure::{Exit, Result};
use crate::reach::Reach;

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
            Action::Run(_) => Needs::Workspace,
            Action::Validate(_) | Action::Plan(_) | Action::Explain(_) | Action::Schema(_) => {
                Needs::Nothing
            }
        }
    }
}

impl Args {
    pub(super) fn reach(&self) -> Reach {
        match &self.action {
            Action::Run(args) => args.reach(),
            Action::Validate(_) | Action::Plan(_) | Action::Explain(_) | Action::Schema(_) => {
                Reach::Reads
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
