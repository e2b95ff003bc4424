use clap_complete::Shell;
use clap_complete::env::Shells;

use crate::app::App;
use crate::completion::VARIABLE;
use crate::failure::{Exit, Failure, Result};

/// Prints a shell's completions.
///
/// They complete commands, and also sessions, labels, checkpoints, models, agents and formats.
///
/// bash: source <(stepwell completions bash), in ~/.bashrc; zsh: the same, in ~/.zshrc after
/// compinit; fish: stepwell completions fish | source, in ~/.config/fish/config.fish.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The shell.
    shell: Shell,
}

pub(crate) fn run(args: &Args, app: &mut App) -> Result<Exit> {
    app.out.refuse_json()?;
    let shells = Shells::builtins();
    let name = args.shell.to_string();
    let shell = shells.completer(&name).ok_or_else(|| {
        Failure::new(Exit::Usage, format_args!("there are no completions for {name}"))
    })?;
    let mut script = Vec::new();
    shell.write_registration(VARIABLE, "stepwell", "stepwell", "stepwell", &mut script)?;
    app.out.raw().write_all(&script)?;
    Ok(Exit::Done)
}
