use std::path::PathBuf;

use stepwell_flow::plan::Plan;
use stepwell_terminal::text::visible;

use super::spec;
use crate::app::App;
use crate::failure::{Exit, Result};

/// Tells in words what happens when a spec is run.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The spec: a YAML or JSON file.
    #[arg(value_name = "SPEC")]
    file: PathBuf,
}

pub(crate) fn run(args: &Args, app: &mut App) -> Result<Exit> {
    app.out.refuse_json()?;
    let reading = spec::load(&args.file)?;
    spec::warn(&args.file, &reading);
    let plan = Plan::of(&reading.spec);
    app.out.line(visible(&plan.explain(&reading.spec)).trim_end())?;
    Ok(Exit::Done)
}
