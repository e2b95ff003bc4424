//! Runs in the background: a process of its own that survives its terminal.

use std::ffi::OsString;
use std::fs::{File, OpenOptions};
use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use stepwell::SessionId;
use stepwell_terminal::note;
use stepwell_wire::Detached;
use stepwell_workspace::Workspace;

use crate::failure::{Exit, Failure, Result};
use crate::output::Output;

/// The folder, in the store's, that holds what runs in the background wrote.
const FOLDER: &str = "runs";

/// A task, which goes to the process in the background by its input, in place of what was typed:
/// others can read a process's arguments.
pub(crate) struct Task<'a> {
    /// The argument, as it was typed.
    pub(crate) typed: &'a str,
    /// The task itself.
    pub(crate) text: &'a str,
}

/// Starts the same command in the background.
pub(crate) fn start(
    task: Option<&Task<'_>>,
    workspace: &Workspace,
    out: &mut Output,
) -> Result<Exit> {
    // Made now: what goes wrong with it is told here.
    drop(workspace.make()?);
    let folder = workspace.place.store.join(FOLDER);
    make_folder(&folder)?;
    let path = folder.join(format!("starting-{}.log", std::process::id()));
    let failed = |error: &std::io::Error| Failure::file(&path, "starting a run", error);
    let mut log = OpenOptions::new();
    let log = log.create(true).write(true).truncate(true).mode(0o600).open(&path);
    let log = log.map_err(|error| failed(&error))?;
    let mut child =
        command(task, &log).and_then(|mut it| it.spawn()).map_err(|error| failed(&error))?;
    if let (Some(mut input), Some(task)) = (child.stdin.take(), task) {
        // One that ended already says why.
        let _ = input.write_all(task.text.as_bytes());
    }
    let mut id = String::new();
    if let Some(output) = child.stdout.take() {
        BufReader::new(output).read_line(&mut id).map_err(|error| failed(&error))?;
    }
    let Ok(session) = id.trim().parse::<SessionId>() else {
        // It could not begin, and said why where it writes.
        let code = child.wait().map_err(|error| failed(&error))?.code();
        return Err(could_not(&path, code));
    };
    let log = named_after(&session, &path, &folder);
    let answer = Detached { session_id: session.clone(), log: log.display().to_string() };
    out.answer(&answer, &session)?;
    note(format_args!(
        "hint: stepwell attach {session} shows it; stepwell stop {session} stops it"
    ));
    Ok(Exit::Done)
}

fn make_folder(folder: &Path) -> Result<()> {
    let made = std::fs::DirBuilder::new().recursive(true).mode(0o700).create(folder);
    made.map_err(|error| Failure::file(folder, "making it", &error))
}

/// This command, for the background: the same arguments, but for the task.
fn command(task: Option<&Task<'_>>, log: &File) -> std::io::Result<Command> {
    let mut args = without_folder(std::env::args_os().skip(1));
    args.retain(|arg| arg != "--detach");
    let verb = args.iter().position(|arg| arg == "run" || arg == "resume").unwrap_or_default();
    let is_task = |arg: &&mut OsString| task.is_some_and(|task| **arg == *task.typed);
    if let Some(task) = args[verb..].iter_mut().find(is_task) {
        *task = "-".into();
    }
    // Before whatever follows a lone `--`.
    args.splice(verb + 1..verb + 1, ["--detached".into(), "--wait".into()]);
    let mut command = Command::new(std::env::current_exe()?);
    command.args(args);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(log.try_clone()?);
    Ok(command)
}

/// Arguments without `-C DIR`: this process went there, and the one in the background begins there.
fn without_folder(args: impl IntoIterator<Item = OsString>) -> Vec<OsString> {
    let (mut kept, mut args, mut is_option) = (Vec::new(), args.into_iter(), true);
    while let Some(arg) = args.next() {
        is_option &= arg != "--";
        match arg.as_encoded_bytes() {
            b"-C" if is_option => drop(args.next()),
            [b'-', b'C', ..] if is_option => {}
            _ => kept.push(arg),
        }
    }
    kept
}

/// The name of a log: its session's.
fn named_after(session: &SessionId, path: &Path, folder: &Path) -> PathBuf {
    let named = folder.join(format!("{session}.log"));
    // Whoever writes to it goes on under the new name.
    if std::fs::rename(path, &named).is_ok() { named } else { path.to_owned() }
}

fn could_not(path: &Path, code: Option<i32>) -> Failure {
    let mut why = String::new();
    let _ = File::open(path).and_then(|mut log| log.read_to_string(&mut why));
    let _ = std::fs::remove_file(path);
    let why = why.trim().strip_prefix("error: ").unwrap_or(why.trim());
    let (message, hint) = why.split_once("\nhint: ").unwrap_or((why, ""));
    let exit = Exit::from_code(code.unwrap_or(1));
    let failure = Failure::new(exit, message);
    if hint.is_empty() { failure } else { failure.hint(hint) }
}

/// Leaves the terminal: what ends it does not end this process.
pub(crate) fn leave_terminal() -> Result<()> {
    let left = rustix::process::setsid();
    left.map(drop).map_err(|error| {
        Failure::new(Exit::Failed, format_args!("the terminal cannot be left: {error}"))
    })
}

/// Tells whoever started this process its session. All that follows goes to the log.
pub(crate) fn say_id(session: &SessionId) -> Result<()> {
    let mut out = std::io::stdout();
    writeln!(out, "{session}").and_then(|()| out.flush())?;
    rustix::stdio::dup2_stdout(std::io::stderr()).map_err(std::io::Error::from)?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_in_the_background_does_not_go_to_its_folder_twice() {
        let kept = |line: &str| {
            let kept = without_folder(line.split(' ').map(OsString::from));
            kept.into_iter().map(|arg| arg.into_string().unwrap()).collect::<Vec<_>>().join(" ")
        };
        assert_eq!(kept("-C sub run x --detach"), "run x --detach");
        assert_eq!(kept("-Csub run -C other x"), "run x");
        assert_eq!(kept("run --detach -- -C x"), "run --detach -- -C x");
    }
}
