//! What the user typed.

use std::ffi::OsString;
use std::io::Write;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::{CommandFactory, FromArgMatches, Parser};

use crate::commands::Command;
use crate::failure::Exit;

/// Keeps every AI-agent run durable: list, show, search, resume and clean up sessions.
#[derive(Debug, Parser)]
#[command(name = "stepwell", version, disable_help_subcommand = true, infer_subcommands = false)]
pub(crate) struct Cli {
    #[command(flatten)]
    pub(crate) global: Global,
    #[command(subcommand)]
    pub(crate) command: Command,
}

/// Options that every command takes.
#[derive(clap::Args, Clone, Debug)]
#[command(next_help_heading = "Options everywhere")]
pub(crate) struct Global {
    /// The store's folder, in place of the one that the current folder belongs to
    /// (STEPWELL_STORE).
    #[arg(long, global = true, value_name = "PATH")]
    pub(crate) store: Option<PathBuf>,
    /// Goes there first, as if started in that folder.
    #[arg(short = 'C', global = true, value_name = "DIR")]
    pub(crate) folder: Option<PathBuf>,
    /// Answers in JSON: one object, or one per line.
    #[arg(long, global = true)]
    pub(crate) json: bool,
    /// Sets a configuration value for this command.
    #[arg(long = "config", global = true, value_name = "KEY=VALUE")]
    pub(crate) settings: Vec<String>,
    /// Tells on stderr what is done; twice, in detail (STEPWELL_LOG).
    #[arg(short, long, global = true, action = clap::ArgAction::Count)]
    pub(crate) verbose: u8,
    /// Colours the answer: auto, always or never.
    #[arg(
        long,
        global = true,
        value_name = "WHEN",
        default_value = "auto",
        hide_default_value = true
    )]
    pub(crate) color: Colour,
}

/// When the answer is coloured.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Colour {
    Auto,
    Always,
    Never,
}

/// What people want to do, and the commands that do it. Every command is in one group.
const GROUPS: &[(&str, &[&str])] = &[
    ("Run", &["run", "resume", "stop", "demo"]),
    ("Look", &["sessions", "show", "log", "search", "stats", "du"]),
    ("Name and keep", &["label", "tag", "untag", "pin", "unpin", "checkpoint", "fork", "abandon"]),
    ("Clean up and undo", &["delete", "trash", "cleanup"]),
    ("Erase for good", &["purge", "scrub"]),
    ("Move", &["export", "import", "backup"]),
    ("Drive agents of your own", &["agent", "hook"]),
    ("Set up and repair", &["init", "config", "verify", "doctor", "completions", "man"]),
];

/// The whole definition, from which help, completions and man pages are made.
pub(crate) fn definition() -> clap::Command {
    let command = Cli::command();
    let groups = groups(&command);
    command
        .help_template(
            "{about-with-newline}\n{usage-heading} {usage}\n{before-help}Options:\n{options}{after-help}\n",
        )
        .before_help(groups)
        .after_help(
            "A SESSION is named by its id, the beginning of one, its label, or @last.\n\
             stepwell COMMAND --help says more.",
        )
}

fn groups(command: &clap::Command) -> String {
    let mut text = String::new();
    for (title, names) in GROUPS {
        text.push_str(&format!("\n{title}:\n"));
        for name in *names {
            let about = command.find_subcommand(name).and_then(clap::Command::get_about);
            let about = about.map(ToString::to_string).unwrap_or_default();
            text.push_str(&format!("  {name:<12} {about}\n"));
        }
    }
    text
}

/// Reads the command line.
pub(crate) fn parse(args: impl Iterator<Item = OsString>) -> Result<Cli, clap::Error> {
    let matches = definition().try_get_matches_from(args)?;
    Cli::from_arg_matches(&matches)
}

/// Says why the command line was not understood, or the help that was asked for.
pub(crate) fn report(error: &clap::Error) -> ExitCode {
    let text = error.render();
    // A closed pipe is no error, and nobody is left to tell if stderr is closed.
    if error.use_stderr() {
        let _ = write!(std::io::stderr(), "{text}");
        Exit::Usage.into()
    } else {
        let _ = write!(std::io::stdout(), "{text}");
        ExitCode::SUCCESS
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_definition_holds_together() {
        definition().debug_assert();
    }

    #[test]
    fn every_command_is_in_exactly_one_group() {
        let mut grouped: Vec<&str> =
            GROUPS.iter().flat_map(|(_, names)| names.iter().copied()).collect();
        grouped.sort_unstable();
        let command = definition();
        let mut defined: Vec<&str> = command
            .get_subcommands()
            .filter(|it| !it.is_hide_set())
            .map(clap::Command::get_name)
            .collect();
        defined.sort_unstable();
        assert_eq!(grouped, defined);
    }
}
