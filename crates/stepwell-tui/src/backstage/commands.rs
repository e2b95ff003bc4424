//! Commands of the command line.

use std::process::{Command, Stdio};

use stepwell_runtime::Runtime;
use stepwell_workspace::Found;

use super::Program;
use crate::clean::Clean;
use crate::driver::Inputs;
use crate::effect::{Done, Input, Purpose, Reply};

/// The command line, in a workspace.
fn command_line(program: &Program, runtime: &Runtime) -> Option<Command> {
    let (name, arguments) = program.command.split_first()?;
    let mut command = Command::new(name);
    command.args(arguments).current_dir(&runtime.workspace().place.root).stdin(Stdio::null());
    // It is about the store that is worked in, whichever is the nearest.
    let place = &runtime.workspace().place;
    if place.found == Found::Named && place.team.is_none() {
        command.arg(format!("--store={}", place.store.display()));
    }
    // What it answers is shown here, two columns in.
    if let Ok((columns, _)) = crossterm::terminal::size() {
        command.env("STEPWELL_COLUMNS", columns.saturating_sub(2).to_string());
    }
    Some(command)
}

/// A command of the command line, and what it is run for.
pub(super) struct Errand {
    pub(super) arguments: Vec<String>,
    pub(super) purpose: Purpose,
}

/// Runs a command of the command line.
pub(super) fn run(
    program: &Program,
    runtime: &Runtime,
    Errand { arguments, purpose }: Errand,
    inputs: &Inputs,
) {
    let Some(mut command) = command_line(program, runtime) else { return };
    let inputs = inputs.clone();
    std::thread::spawn(move || {
        let done = match command.args(&arguments).output() {
            Ok(ran) => Done {
                purpose,
                output: Clean::new(&String::from_utf8_lossy(&ran.stdout)),
                errors: Clean::new(&String::from_utf8_lossy(&ran.stderr)),
                ok: ran.status.success(),
            },
            Err(error) => {
                let errors = Clean::new(&format!("the command could not be started: {error}"));
                Done { purpose, output: Clean::default(), errors, ok: false }
            }
        };
        let _ = inputs.send(Input::Reply(Reply::Done(Box::new(done))));
    });
}
