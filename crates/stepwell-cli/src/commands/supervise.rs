use std::ffi::OsString;

use stepwell_agent::tool::{Watched, supervise};

use crate::failure::Exit;

/// Watches over a program, and ends it when the run that started it is gone.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// What is watched over, in the words of the run that asks for it.
    #[arg(last = true, required = true)]
    watched: Vec<OsString>,
}

/// Does it, before anything else is read: a command is not the place for a fault in the
/// configuration.
pub(crate) fn watch(args: &Args) -> std::process::ExitCode {
    let Some(watched) = Watched::parse(&args.watched) else {
        return Exit::Usage.into();
    };
    std::process::ExitCode::from(u8::try_from(supervise(&watched)).unwrap_or(1))
}
