//! Options that every command takes.

use std::ffi::OsString;
use std::path::PathBuf;

/// Options that every command takes.
#[derive(clap::Args, Clone, Debug)]
#[command(next_help_heading = "Options everywhere")]
pub(crate) struct Global {
    /// The store to use: a folder, or a team's postgres://… address. Default: the current
    /// folder's store (STEPWELL_STORE).
    #[arg(long, global = true, value_name = "STORE")]
    pub(crate) store: Option<PathBuf>,
    /// Runs as if started in this folder.
    #[arg(short = 'C', global = true, value_name = "DIR")]
    pub(crate) folder: Option<PathBuf>,
    /// Prints JSON: one object, or one per line.
    #[arg(long, global = true)]
    pub(crate) json: bool,
    /// Sets a configuration value for this command.
    #[arg(long = "config", global = true, value_name = "KEY=VALUE")]
    pub(crate) settings: Vec<String>,
    /// Logs to stderr; -vv logs more (STEPWELL_LOG).
    #[arg(short, long, global = true, action = clap::ArgAction::Count)]
    pub(crate) verbose: u8,
    /// When to use colours: auto, always or never.
    #[arg(
        long,
        global = true,
        value_name = "WHEN",
        default_value = "auto",
        hide_default_value = true
    )]
    pub(crate) color: Colour,
}

impl Global {
    /// The settings, as they are typed for another process.
    pub(crate) fn settings_as_typed(&self) -> Vec<OsString> {
        let settings = self.settings.iter().flat_map(|setting| ["--config", setting.as_str()]);
        let verbose = std::iter::repeat_n("--verbose", self.verbose.into());
        let json = self.json.then_some("--json");
        settings.chain(verbose).chain(json).map(OsString::from).collect()
    }
}

/// When the answer is coloured.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Colour {
    Auto,
    Always,
    Never,
}
