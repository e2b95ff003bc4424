use crate::app::App;
use crate::failure::{Exit, Result};

/// Shows what Stepwell does, offline: an agent works, is killed, and is taken up again.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {}

pub(crate) fn run(_args: &Args, _app: &mut App) -> Result<Exit> {
    Ok(Exit::Done)
}
