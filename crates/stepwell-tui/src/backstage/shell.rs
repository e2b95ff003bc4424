//! The user's own commands: each in a process group of its own, which ends when it is stopped.

use std::collections::VecDeque;
use std::io::{self, Read};
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::Duration;

use parking_lot::Mutex;
use rustix::process::{Pid, Signal, kill_process_group};
use stepwell_runtime::Runtime;

use crate::clean::Clean;
use crate::driver::Inputs;
use crate::effect::{Input, Reply, Visit};

/// How much of a command's output is kept: what a model is told of it is its end.
const KEPT: usize = 32 * 1024;

/// How long a command has to end by itself when it is stopped, and how long its output is then
/// waited for.
const PATIENCE: Duration = Duration::from_secs(2);

/// The commands that run.
pub(super) struct Shells {
    inputs: Inputs,
    running: Vec<Sender<Happened>>,
}

/// What happens to a command.
enum Happened {
    /// All that it wrote was read.
    Silent,
    /// It is to end.
    Stopped,
}

impl Shells {
    pub(super) const fn new(inputs: Inputs) -> Self {
        Self { inputs, running: Vec::new() }
    }

    /// Runs a command of the user's, with their rights, in the workspace.
    pub(super) fn start(&mut self, command: String, visit: Visit, runtime: &Runtime) {
        let (inputs, folder) = (self.inputs.clone(), runtime.workspace().place.root.clone());
        let (happens, happened) = channel();
        self.running.push(happens.clone());
        std::thread::spawn(move || {
            let (output, failed) = match run(&command, folder.as_ref(), happens, &happened) {
                Ok(ran) => ran,
                Err(error) => (String::new(), Some(format!("it could not be started: {error}"))),
            };
            let (output, failed) = (Clean::new(&output), failed.map(Clean::from));
            let done = Reply::ShellDone { command, output, failed, visit };
            let _ = inputs.send(Input::Reply(done));
        });
    }

    /// Ends them. Those that are done hear nothing.
    pub(super) fn stop(&mut self) {
        for running in self.running.drain(..) {
            let _ = running.send(Happened::Stopped);
        }
    }
}

/// Runs a command: what it wrote last, and how it ended, if not well.
fn run(
    command: &str,
    folder: &Path,
    happens: Sender<Happened>,
    happened: &Receiver<Happened>,
) -> io::Result<(String, Option<String>)> {
    let mut child = Command::new("sh")
        .args(["-c", &format!("exec 2>&1\n{command}")])
        .current_dir(folder)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .process_group(0)
        .spawn()?;
    let output = Arc::new(Mutex::new(Tail::default()));
    if let Some(pipe) = child.stdout.take() {
        let output = Arc::clone(&output);
        std::thread::spawn(move || {
            read(pipe, &output);
            let _ = happens.send(Happened::Silent);
        });
    }
    // Without a reader there is nothing to read.
    let stopped = matches!(happened.recv(), Ok(Happened::Stopped));
    if stopped {
        signal(&child, Signal::TERM);
        if happened.recv_timeout(PATIENCE).is_err() {
            signal(&child, Signal::KILL);
            // What left the group may hold the pipe.
            let _ = happened.recv_timeout(PATIENCE);
        }
        signal(&child, Signal::KILL);
    }
    let status = child.wait()?;
    let failed = match stopped {
        true => Some("stopped".to_owned()),
        false => (!status.success()).then(|| status.to_string()),
    };
    let text = output.lock().text();
    Ok((text, failed))
}

/// Sends a signal to a command and all that it started. Those that are gone need none.
fn signal(child: &Child, signal: Signal) {
    if let Some(group) = i32::try_from(child.id()).ok().and_then(Pid::from_raw) {
        let _ = kill_process_group(group, signal);
    }
}

fn read(mut pipe: impl Read, output: &Mutex<Tail>) {
    let mut buffer = vec![0; 16 << 10];
    loop {
        match pipe.read(&mut buffer) {
            Ok(0) => return,
            Ok(len) => {
                output.lock().push(&buffer[..len]);
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(_) => return,
        }
    }
}

/// The end of what a command wrote.
#[derive(Debug, Default)]
struct Tail {
    bytes: VecDeque<u8>,
    /// How many bytes before it are gone.
    gone: usize,
}

impl Tail {
    fn push(&mut self, written: &[u8]) {
        self.bytes.extend(written);
        let excess = self.bytes.len().saturating_sub(KEPT);
        self.bytes.drain(..excess);
        self.gone += excess;
    }

    fn text(&mut self) -> String {
        let text = String::from_utf8_lossy(self.bytes.make_contiguous()).into_owned();
        match self.gone {
            0 => text,
            gone => format!("… ({} before)\n{text}", stepwell::model::counted(gone, "byte")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_writes_without_end_is_kept_to_its_last_part_and_ends_when_it_is_stopped() {
        let (happens, happened) = channel();
        let (stop, folder) = (happens.clone(), tempfile::tempdir().unwrap());
        let path = folder.path().to_owned();
        let runs = std::thread::spawn(move || {
            // What it started in the background ends as well.
            run("sleep 600 & echo $! > child; yes", &path, happens, &happened).unwrap()
        });
        let child = folder.path().join("child");
        while !std::fs::read_to_string(&child).is_ok_and(|it| it.ends_with('\n')) {
            std::thread::yield_now();
        }
        stop.send(Happened::Stopped).unwrap();
        let (output, failed) = runs.join().unwrap();
        assert!(output.len() <= KEPT + 100, "{}", output.len());
        assert_eq!(failed.as_deref(), Some("stopped"));
        let pid: i32 = std::fs::read_to_string(child).unwrap().trim().parse().unwrap();
        let gone = || match std::fs::read_to_string(format!("/proc/{pid}/stat")) {
            // It may wait to be reaped by whoever took it over.
            Ok(stat) => stat.contains(") Z "),
            Err(_) => true,
        };
        while !gone() {
            std::thread::yield_now();
        }
    }

    #[test]
    fn a_command_that_ends_says_how() {
        let ran = |command: &str| {
            let (happens, happened) = channel();
            run(command, Path::new("/"), happens, &happened).unwrap()
        };
        assert_eq!(ran("echo out; echo err >&2"), ("out\nerr\n".to_owned(), None));
        assert_eq!(ran("exit 3").1.as_deref(), Some("exit status: 3"));
    }
}
