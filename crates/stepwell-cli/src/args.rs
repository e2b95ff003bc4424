//! What the user typed.

use std::ffi::OsString;
use std::io::Write;
use std::process::ExitCode;

use clap::error::ErrorKind;
use clap::{Args as _, FromArgMatches, Parser, Subcommand};

use crate::commands::Command;
use crate::failure::Exit;
use crate::global::Global;

/// What was understood.
#[derive(Debug)]
pub(crate) struct Cli {
    pub(crate) global: Global,
    pub(crate) command: Command,
}

/// Keeps every AI-agent run durable: list, show, search, resume and clean up sessions.
#[derive(Debug, Parser)]
#[command(name = "stepwell", version, disable_help_subcommand = true, infer_subcommands = false)]
#[command(subcommand_required = true, arg_required_else_help = true)]
struct Program {
    #[command(flatten)]
    global: Global,
}

/// What people want to do, and the commands that do it. Every command is in one group.
const GROUPS: &[(&str, &[&str])] = &[
    ("Run", &["chat", "run", "resume", "work", "flow", "gates", "say", "attach", "stop", "demo"]),
    ("Reach it from elsewhere", &["serve"]),
    ("Look", &["sessions", "show", "log", "search", "stats", "ledger", "du"]),
    ("Plan", &["state", "phase", "tasks"]),
    ("Go back and branch", &["rewind", "diff", "files", "checkpoint", "fork", "worktrees"]),
    ("Name and keep", &["label", "meta", "tag", "untag", "pin", "unpin", "abandon"]),
    ("What the model sees", &["compact", "pin-message", "unpin-message"]),
    ("Clean up and undo", &["delete", "trash", "cleanup"]),
    ("Erase for good", &["purge", "scrub"]),
    ("Move", &["export", "import", "convert", "watch", "formats", "backup", "restore", "store"]),
    ("Drive agents of your own", &["agent", "hook", "mcp", "acp"]),
    ("Set up and repair", &["init", "config", "models", "verify", "doctor"]),
    ("Write scripts", &["schema", "completions", "man"]),
];

/// The whole definition, from which help, completions and man pages are made.
pub(crate) fn definition() -> clap::Command {
    // The program last, so that help begins with what it is for.
    let commands = Command::augment_subcommands(clap::Command::new("stepwell"));
    let command = Program::augment_args(commands);
    let groups = groups(&command);
    command
        .help_template(
            "{about-with-newline}Start here: stepwell alone on a terminal talks with an agent.\n\n\
             {usage-heading} {usage}\n{before-help}Options:\n{options}{after-help}\n",
        )
        .before_help(groups)
        .after_help(
            "A SESSION is named by its id, any part of it that is unique, its label, or @last.\n\
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
            text.push_str(&format!("  {name:<14} {about}\n"));
        }
    }
    text
}

/// Reads what was typed. Without a command a terminal gets the chat, and a pipe gets help.
pub(crate) fn parse(args: Vec<OsString>, at_terminal: bool) -> Result<Cli, clap::Error> {
    use ErrorKind::{DisplayHelpOnMissingArgumentOrSubcommand, MissingSubcommand};
    let error = match read(args.clone()) {
        Err(error) => error,
        Ok(cli) => return Ok(cli),
    };
    if !matches!(error.kind(), MissingSubcommand | DisplayHelpOnMissingArgumentOrSubcommand) {
        return Err(error);
    }
    // A command that lacks its own subcommand does not become a conversation.
    let talking = args.iter().cloned().chain(["chat".into()]).collect();
    match read(talking) {
        Ok(cli) if matches!(cli.command, Command::Chat(_)) => match at_terminal {
            true => Ok(cli),
            false => read(args.into_iter().take(1).collect()),
        },
        _ => Err(error),
    }
}

fn read(args: Vec<OsString>) -> Result<Cli, clap::Error> {
    let matches = definition().try_get_matches_from(args)?;
    let global = Program::from_arg_matches(&matches)?.global;
    Ok(Cli { global, command: Command::from_arg_matches(&matches)? })
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
    fn without_a_command_one_talks_at_a_terminal_and_is_helped_in_a_pipe_whatever_else_is_set() {
        for alone in [&["stepwell"][..], &["stepwell", "-C", "/"], &["stepwell", "--config=a=b"]] {
            let typed = || alone.iter().map(OsString::from).collect();
            let cli = parse(typed(), true).expect("a conversation");
            assert!(matches!(cli.command, Command::Chat(_)), "{alone:?}");
            let help = parse(typed(), false).expect_err("help").to_string();
            assert!(help.starts_with("Keeps every"), "{alone:?}: {help}");
            assert!(help.contains("Start here") && !help.contains("__"), "{alone:?}: {help}");
        }
        let lacks = parse(vec!["stepwell".into(), "trash".into()], true);
        assert!(!matches!(lacks, Ok(Cli { command: Command::Chat(_), .. })));
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
