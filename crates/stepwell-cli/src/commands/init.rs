use stepwell_terminal::note;
use stepwell_terminal::text::visible;
use stepwell_workspace::{CONFIG_FILE, set_up};

use crate::app::App;
use crate::failure::{Exit, Result};

/// Makes a store here, a commented stepwell.toml, and an entry in .gitignore.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {}

/// What stands at the top of a new stepwell.toml.
const HEADER: &str = "# Stepwell's settings for this workspace. Each line below is a default; take the\n\
     # `#` away to change it. `stepwell config list` shows what is in force.\n";

pub(crate) fn run(_args: &Args, app: &mut App) -> Result<Exit> {
    let made = set_up::set_up(&app.workspace, HEADER)?;
    let shown = visible(&made.store);
    let line = match (made.made_store, &app.workspace.place.team) {
        (_, Some(_)) => format!("The store at {shown} is ready"),
        (true, None) => format!("Made a store in {shown}"),
        (false, None) => format!("There is a store in {shown} already"),
    };
    app.out.answer(&made, line)?;
    if made.made_config {
        note(format_args!("Wrote {CONFIG_FILE}, every setting commented out."));
    }
    if made.changed_gitignore {
        note("Added .stepwell/ to .gitignore.");
    }
    Ok(Exit::Done)
}
