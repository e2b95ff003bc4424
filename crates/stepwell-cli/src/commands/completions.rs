use clap_complete::Shell;

use crate::app::{App, refuse_json};
use crate::failure::{Exit, Result};

/// Prints a shell's completions.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The shell.
    shell: Shell,
}

pub(crate) fn run(args: &Args, app: &mut App) -> Result<Exit> {
    refuse_json(app)?;
    // Made in memory: the generator panics where a closed pipe would end it.
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut (app.definition)(), "stepwell", &mut script);
    app.out.raw().write_all(&script)?;
    Ok(Exit::Done)
}
