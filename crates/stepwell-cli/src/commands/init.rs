use std::fs;

use stepwell_wire::StoreMade;
use stepwell_workspace::CONFIG_FILE;
use stepwell_workspace::config::commented;

use crate::app::App;
use crate::failure::{Exit, Failure, Result};
use crate::output::note;
use crate::text::visible;

/// Makes a store here, a commented stepwell.toml, and an entry in .gitignore.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {}

/// What stands at the top of a new stepwell.toml.
const HEADER: &str = "# Stepwell's settings for this workspace. Each line below is a default; take the\n\
     # `#` away to change it. `stepwell config list` shows what is in force.\n";

pub(crate) fn run(_args: &Args, app: &mut App) -> Result<Exit> {
    let made_store = app.place.team.is_none() && !app.place.has_store();
    let ignored = app.place.root.join(".gitignore");
    let changed_gitignore =
        app.place.ignore().map_err(|error| Failure::file(&ignored, "changing it", &error))?;
    drop(app.make()?);
    let config = app.place.root.join(CONFIG_FILE);
    let made_config = !config.exists();
    if made_config {
        fs::write(&config, format!("{HEADER}\n{}", commented()))
            .map_err(|error| Failure::file(&config, "writing it", &error))?;
    }
    let team = app.place.team.as_ref().map(|team| team.shown().to_owned());
    let line = |shown: &str| match (made_store, &team) {
        (_, Some(_)) => format!("The store at {shown} is ready"),
        (true, None) => format!("Made a store in {shown}"),
        (false, None) => format!("There is a store in {shown} already"),
    };
    let store = team.clone().unwrap_or_else(|| app.place.store.clone());
    let store = store.display().to_string();
    let line = line(&visible(&store));
    app.out.answer(&StoreMade { store, made_store, made_config, changed_gitignore }, line)?;
    if made_config {
        note(format_args!("Wrote {CONFIG_FILE}, every setting commented out."));
    }
    if changed_gitignore {
        note("Added .stepwell/ to .gitignore.");
    }
    Ok(Exit::Done)
}
