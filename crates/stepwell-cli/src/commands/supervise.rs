use std::ffi::OsString;

/// Watches over a command, and ends it when the run that started it is gone.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The command line.
    command: OsString,
}

/// Does it, before anything else is read: a command is not the place for a fault in the
/// configuration.
pub(crate) fn watch(args: &Args) -> std::process::ExitCode {
    let code = stepwell_agent::tool::supervise(&args.command);
    std::process::ExitCode::from(u8::try_from(code).unwrap_or(1))
}
