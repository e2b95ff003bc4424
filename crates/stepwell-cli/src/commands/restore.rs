use std::path::PathBuf;

use stepwell_terminal::note;
use stepwell_terminal::text::{count, visible};
use stepwell_workspace::{Replace, set_up};

use crate::app::App;
use crate::failure::{Exit, Failure, Result};
use crate::reach::Reach;

/// Makes this workspace's store from a file that backup wrote.
///
/// The backup stays as it is. An existing store is replaced only if you ask for that, and is then
/// kept beside the new one.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The backup.
    file: PathBuf,
    /// Moves the store that is here to another name first.
    #[arg(long)]
    replace: bool,
}

impl Args {
    pub(super) fn reach(&self) -> Reach {
        if self.replace { Reach::Erases } else { Reach::Writes }
    }
}

pub(crate) fn run(args: &Args, app: &mut App) -> Result<Exit> {
    let replace = if args.replace { Replace::SetAside } else { Replace::Refused };
    let restored =
        set_up::restore_backup(&app.workspace, &args.file, replace).map_err(|error| {
            let is_in_the_way = error.remedies() == [stepwell::Remedy::Replace];
            let hint =
                "--replace keeps it beside the restored one; --store FOLDER restores elsewhere";
            let failure = Failure::from(error);
            if is_in_the_way { failure.hint(hint) } else { failure }
        })?;
    let number = count(usize::try_from(restored.sessions).unwrap_or(usize::MAX), "session");
    let line = format!("Restored {number} to {}", visible(&restored.store));
    app.out.answer(&restored, line)?;
    if let Some(aside) = &restored.replaced {
        note(format_args!("The store that was here is now {aside}"));
    }
    Ok(Exit::Done)
}
