//! `run_command`: runs a command line in the workspace, with the user's rights.
//!
//! A supervisor process holds the command on a leash; without a supervisor, a thread does. Dropping
//! the leash ends the command and everything that it started.

use std::ffi::OsStr;
use std::io::{self, PipeReader, PipeWriter};
use std::os::unix::process::ExitStatusExt as _;
use std::process::{Command, Stdio};
use std::thread;
use std::time::Duration;

use futures_util::future::BoxFuture;
use serde::Deserialize;
use serde_json::{Value, json};
use stepwell::model::{Effect, Outcome};
use tokio::io::AsyncReadExt as _;
use tokio::net::unix::pipe;
use tokio::process::ChildStdin;
use tokio::sync::oneshot;
use tokio::time::timeout;

use super::environment::hide_keys;
use super::output::Output;
use super::supervise::{GONE, Watched, exit_code, hold, shell};
use super::{Done, Plan, Stopping, Supervisor, Tail, Tool, ToolEnv, parse, spec, visible};
use crate::provider::ToolSpec;

/// How long output is still read after the command ended. Buffered output arrives at once; only a
/// process that left the group can hold the pipe open.
const DRAIN: Duration = Duration::from_millis(250);

#[derive(Debug)]
pub(super) struct RunCommand {
    spec: ToolSpec,
}

/// The tool.
pub(super) fn run_command() -> RunCommand {
    let spec = spec(
        "run_command",
        "Runs a command line with sh in the root of the workspace and returns what it wrote \
         to stdout and stderr, and its exit code. There is no input and no terminal: use \
         options that ask nothing. Processes that it leaves in the background are ended when \
         it ends. Very long output is shown without its middle.",
        &json!({
            "command": {
                "type": "string", "minLength": 1,
                "description": "The command line, such as cargo test 2>&1 | tail -50."
            },
            "timeout_seconds": {
                "type": "integer", "minimum": 1,
                "description": "When to give up and end the command. Default, and at most: \
                                what the user has set."
            }
        }),
        &["command"],
    );
    RunCommand { spec }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Arguments {
    command: String,
    timeout_seconds: Option<u64>,
}

impl Arguments {
    fn read(arguments: &Value) -> Result<Self, String> {
        let arguments: Self = parse("run_command", arguments)?;
        if arguments.command.trim().is_empty() {
            return Err("the command is empty".to_owned());
        }
        if arguments.command.contains('\0') {
            return Err("the command contains a NUL character".to_owned());
        }
        if arguments.timeout_seconds == Some(0) {
            return Err("timeout_seconds must be at least 1".to_owned());
        }
        Ok(arguments)
    }
}

/// The command line of a call, made safe for display. It is complete: a person who approves a
/// command must see its end, too.
pub(super) fn shown_line(arguments: &Value) -> String {
    arguments["command"].as_str().unwrap_or("?").chars().flat_map(visible).collect()
}

impl Tool for RunCommand {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn effect(&self) -> Effect {
        Effect::Unsafe
    }

    fn preview(&self, arguments: &Value) -> String {
        format!("run {}", shown_line(arguments))
    }

    fn plan(&self, arguments: &Value, _: &ToolEnv) -> Result<Plan, String> {
        Arguments::read(arguments).map(|_| Plan::default())
    }

    fn run<'a>(&'a self, arguments: &'a Value, place: &'a ToolEnv) -> BoxFuture<'a, Done> {
        Box::pin(async move {
            match Arguments::read(arguments) {
                Ok(arguments) => run(&arguments, place).await,
                Err(why) => Done::failed(why),
            }
        })
    }
}

async fn run(arguments: &Arguments, place: &ToolEnv) -> Done {
    let asked = arguments.timeout_seconds.map_or(Duration::MAX, Duration::from_secs);
    let limit = asked.min(place.command_timeout);
    let mut running = match Running::start(OsStr::new(&arguments.command), place) {
        Ok(running) => running,
        Err(error) => return Done::failed(NoCode::NotStarted(error).to_string()),
    };
    let (outcome, note) = match timeout(limit, running.end()).await {
        Ok(Ok(0)) => (Outcome::Done, "exit code 0".to_owned()),
        Ok(Ok(code)) => (Outcome::Failed, format!("exit code {code}")),
        Ok(Err(not_started @ NoCode::NotStarted(_))) => {
            return Done::failed(not_started.to_string());
        }
        Ok(Err(lost @ NoCode::Lost(_))) => (Outcome::Unknown, lost.to_string()),
        Err(_) => {
            running.leash = None;
            let _ = timeout(GONE, running.end()).await;
            (
                Outcome::TimedOut,
                format!("ended after {} s: the command took too long", limit.as_secs()),
            )
        }
    };
    let mut text = running.output().await;
    if !text.is_empty() && !text.ends_with('\n') {
        text.push('\n');
    }
    Done { outcome, ..Done::ok(format!("{text}[{note}]")) }
}

/// A running command. Dropping it drops the leash.
pub(super) struct Running {
    leash: Option<Leash>,
    ended: BoxFuture<'static, Result<i32, NoCode>>,
    pipe: pipe::Receiver,
    output: Output,
    /// Receives its output, for display.
    tail: Tail,
    /// Counts it while it is ending.
    stopping: Stopping,
    /// The pipe is closed.
    silent: bool,
    /// It ended.
    over: bool,
}

/// Our end of the leash. Nothing is ever written to it.
#[expect(dead_code, reason = "it is held, and closed when it is dropped")]
enum Leash {
    Process(Option<ChildStdin>),
    Thread(PipeWriter),
}

/// Why there is no exit code.
#[derive(Debug, thiserror::Error)]
pub(super) enum NoCode {
    #[error("the command could not be started: {0}")]
    NotStarted(io::Error),
    #[error("waiting for the command failed, and it may still be running: {0}")]
    Lost(String),
}

impl Running {
    pub(super) fn start(line: &OsStr, place: &ToolEnv) -> io::Result<Self> {
        let (reader, writer) = io::pipe()?;
        let (leash, ended) = match &place.supervisor {
            Some(Supervisor { program, arguments }) => {
                let mut command = Command::new(program);
                command.args(arguments).args(Watched::Line(line.to_owned()).arguments());
                command.stdin(Stdio::piped());
                supervised(prepared(command, place, writer)?)?
            }
            None => threaded(prepared(shell(line), place, writer)?)?,
        };
        let (pipe, output) = (receiver(reader)?, Output::new(place.output_limit));
        let (tail, stopping) = (place.tail.clone(), place.stopping.clone());
        let (leash, silent, over) = (Some(leash), false, false);
        Ok(Self { leash, ended, pipe, output, tail, stopping, silent, over })
    }

    /// The exit code, after it ended. Reads its output meanwhile.
    pub(super) async fn end(&mut self) -> Result<i32, NoCode> {
        let mut buffer = vec![0; 16 << 10];
        loop {
            tokio::select! {
                ended = &mut self.ended => {
                    self.over = true;
                    return ended;
                }
                read = self.pipe.read(&mut buffer), if !self.silent => match read {
                    Ok(0) | Err(_) => self.silent = true,
                    Ok(len) => {
                        self.tail.push(&buffer[..len]);
                        self.output.push(&buffer[..len]);
                    }
                },
            }
        }
    }

    /// Drops the leash, and waits until the command has ended.
    pub(super) async fn stop(&mut self) {
        if self.leash.take().is_some() && !self.over {
            let _ = timeout(GONE, self.end()).await;
        }
    }

    /// Does its output contain this text?
    pub(super) fn wrote(&self, text: &str) -> bool {
        self.output.clone().text().contains(text)
    }

    /// Reads the rest of its output after it ended.
    pub(super) async fn drain(&mut self) {
        let mut buffer = vec![0; 16 << 10];
        let rest = async {
            while let Ok(len @ 1..) = self.pipe.read(&mut buffer).await {
                self.output.push(&buffer[..len]);
            }
        };
        if !self.silent {
            let _ = timeout(DRAIN, rest).await;
            self.silent = true;
        }
    }

    /// Its whole output.
    pub(super) async fn output(mut self) -> String {
        self.drain().await;
        std::mem::replace(&mut self.output, Output::new(0)).text()
    }
}

impl Drop for Running {
    /// Scans for its changes can wait until it has ended.
    fn drop(&mut self) {
        if !self.over {
            self.leash = None;
            let nothing = Box::pin(std::future::pending());
            self.stopping.count(std::mem::replace(&mut self.ended, nothing));
        }
    }
}

/// The command as both kinds of supervision start it: in the workspace, without our keys, and with
/// stdout and stderr in one pipe, which keeps their order.
fn prepared(mut command: Command, place: &ToolEnv, output: PipeWriter) -> io::Result<Command> {
    command.current_dir(&place.root).stdout(output.try_clone()?).stderr(output);
    hide_keys(&mut command, place);
    Ok(command)
}

type Started = (Leash, BoxFuture<'static, Result<i32, NoCode>>);

/// Starts a supervisor, whose exit code is the command's.
fn supervised(command: Command) -> io::Result<Started> {
    let mut child = tokio::process::Command::from(command).spawn()?;
    let leash = Leash::Process(child.stdin.take());
    let ended = async move {
        let status = child.wait().await.map_err(|error| NoCode::Lost(error.to_string()))?;
        match status.signal() {
            Some(signal) => {
                Err(NoCode::Lost(format!("its supervisor was killed by signal {signal}")))
            }
            None => Ok(exit_code(status)),
        }
    };
    Ok((leash, Box::pin(ended)))
}

/// Supervises in a thread. That is as good as a process while this process lives.
fn threaded(command: Command) -> io::Result<Started> {
    let (reader, writer) = io::pipe()?;
    let (sender, receiver) = oneshot::channel();
    thread::Builder::new().name("command".to_owned()).spawn(move || {
        // The receiver may be gone.
        let _ = sender.send(hold(command, reader));
    })?;
    let ended = async move {
        match receiver.await {
            Ok(Ok(status)) => Ok(exit_code(status)),
            Ok(Err(error)) => Err(NoCode::NotStarted(error)),
            Err(_) => Err(NoCode::Lost("its thread panicked".to_owned())),
        }
    };
    Ok((Leash::Thread(writer), Box::pin(ended)))
}

fn receiver(reader: PipeReader) -> io::Result<pipe::Receiver> {
    pipe::Receiver::from_owned_fd(reader.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_preview_shows_all_of_the_command_and_hides_nothing() {
        let command = format!("{}\u{202e}\x1b[2K\nrm -rf .", "x".repeat(999));
        let preview = run_command().preview(&json!({ "command": command }));
        assert!(preview.ends_with("\\u{202e}\\u{1b}[2K\\nrm -rf ."), "{preview}");
    }
}
