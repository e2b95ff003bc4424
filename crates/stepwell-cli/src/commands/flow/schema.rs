use crate::app::App;
use crate::failure::{Exit, Result};

/// Prints the JSON Schema of specs, for editors.
///
/// An editor that speaks YAML takes it with a first line such as
/// "# yaml-language-server: $schema=flow.schema.json".
#[derive(Debug, clap::Args)]
pub(crate) struct Args {}

pub(crate) fn run(_args: &Args, app: &mut App) -> Result<Exit> {
    app.out.raw().write_all(stepwell_flow::schema_text().as_bytes())?;
    Ok(Exit::Done)
}
