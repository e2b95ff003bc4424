//! The process under test, seen from a test.

use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};
use stepwell_torture::{Line, Request};

/// A running `torture` process.
pub(crate) struct TortureProcess {
    process: Child,
    stdin: Option<ChildStdin>,
    lines: Receiver<Line>,
}

/// The command for a mode and its arguments.
pub(crate) fn torture(mode: &str, folder: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_torture"));
    command.arg(mode).arg(folder);
    command
}

impl TortureProcess {
    pub(crate) fn start(command: &mut Command) -> Self {
        let mut process = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let stdout = BufReader::new(process.stdout.take().unwrap());
        let (sender, lines) = channel();
        // The pipe is read at once, so that only the store can make the process wait.
        std::thread::spawn(move || {
            for line in stdout.lines() {
                let line = line.unwrap();
                let line = serde_json::from_str(&line).unwrap_or_else(|_| panic!("{line}"));
                if sender.send(line).is_err() {
                    break;
                }
            }
        });
        Self { stdin: process.stdin.take(), process, lines }
    }

    /// The next line; `None` once the process has closed its stdout.
    pub(crate) fn next(&self) -> Option<Line> {
        self.lines.recv().ok()
    }

    /// The next line, if it comes within this time.
    pub(crate) fn next_within(&self, time: Duration) -> Option<Line> {
        self.lines.recv_timeout(time).ok()
    }

    /// Writes a line to its stdin.
    pub(crate) fn write_line(&mut self, text: &str) {
        let stdin = self.stdin.as_mut().unwrap();
        writeln!(stdin, "{text}").unwrap();
        stdin.flush().unwrap();
    }

    pub(crate) fn send(&mut self, request: &Request) {
        self.write_line(&serde_json::to_string(request).unwrap());
    }

    pub(crate) fn signal(&self, signal: Signal) {
        let pid = i32::try_from(self.process.id()).unwrap();
        kill_process(Pid::from_raw(pid).unwrap(), signal).unwrap();
    }

    /// Closes its stdin and waits for its end. Returns its remaining lines.
    pub(crate) fn finish(mut self) -> (Vec<Line>, ExitStatus) {
        drop(self.stdin.take());
        let lines = self.lines.iter().collect();
        (lines, self.process.wait().unwrap())
    }

    /// Kills it and waits for its end. Returns its remaining lines.
    pub(crate) fn kill(self) -> (Vec<Line>, ExitStatus) {
        self.signal(Signal::KILL);
        self.finish()
    }
}

/// Whether SIGKILL ended it.
pub(crate) fn was_killed(status: ExitStatus) -> bool {
    use std::os::unix::process::ExitStatusExt;
    status.signal() == Some(Signal::KILL.as_raw())
}
