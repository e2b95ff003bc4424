use std::path::PathBuf;

use stepwell::sqlite::Access;
use stepwell_terminal::text::{bytes, visible};
use stepwell_wire::BackedUp;
use stepwell_workspace::set_up;

use crate::app::App;
use crate::failure::{Exit, Failure, Result};

/// Copies the whole store to a file, consistently, while it is in use.
///
/// stepwell restore FILE makes a store of it again.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The file to make.
    file: PathBuf,
}

pub(crate) fn run(args: &Args, app: &mut App) -> Result<Exit> {
    let well = app.workspace.open_existing(Access::Read)?;
    if args.file.exists() {
        let message = format!("{} exists already", args.file.display());
        return Err(Failure::new(Exit::Failed, message).hint("name a file that does not"));
    }
    set_up::back_up(&well, &args.file)?;
    let size = std::fs::metadata(&args.file).map_or(0, |meta| meta.len());
    let name = visible(&args.file.display().to_string());
    let answer = BackedUp { file: args.file.display().to_string(), bytes: size };
    app.out.answer(&answer, format_args!("Copied the store to {name} ({})", bytes(size)))?;
    Ok(Exit::Done)
}
