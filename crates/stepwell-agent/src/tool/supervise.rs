//! The supervisor: a small process between Stepwell and a program. If Stepwell drops the program or
//! is killed, the supervisor ends the program and everything that it started.
//!
//! The supervisor's stdin is a pipe, the leash, and only Stepwell holds the other end. However
//! Stepwell ends, the kernel closes that end. For an MCP server, the leash also carries the
//! server's input.

use std::borrow::Cow;
use std::ffi::{OsStr, OsString};
use std::io::{self, Read, Write as _};
use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};
use std::os::unix::process::{CommandExt as _, ExitStatusExt as _};
use std::process::{Child, ChildStdin, Command, ExitStatus, Stdio};
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use parking_lot::{Condvar, Mutex, MutexGuard};
use rustix::event::{PollFd, PollFlags};
use rustix::io::Errno;
use rustix::process::{Pid, Signal, WaitId, WaitIdOptions};

use super::inside_run::mark;
use super::orphans;

/// The time between SIGTERM and SIGKILL for a stopped program; for a server, also the time before
/// SIGTERM, after its input was closed.
pub(crate) const GRACE: Duration = Duration::from_millis(500);

/// How long a dropped command may take to end: the grace period, and time for scheduling.
pub(super) const GONE: Duration = GRACE.saturating_mul(10);

/// The exit code with which a shell reports that a command could not be started.
const NOT_STARTED: i32 = 127;

/// The program that a supervisor watches.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Watched {
    /// A command line for `sh`, without input.
    Line(OsString),
    /// A server that is spoken to, with its arguments.
    Server(OsString, Vec<OsString>),
}

/// The first argument distinguishes the two.
const LINE: &str = "line";
const SERVER: &str = "server";

impl Watched {
    /// The supervisor's arguments for this program.
    pub(crate) fn arguments(&self) -> Vec<OsString> {
        match self {
            Self::Line(line) => vec![LINE.into(), line.clone()],
            Self::Server(program, arguments) => {
                let mut all = vec![SERVER.into(), program.clone()];
                all.extend_from_slice(arguments);
                all
            }
        }
    }

    /// Parses those arguments.
    #[must_use]
    pub fn parse(arguments: &[OsString]) -> Option<Self> {
        match arguments {
            [word, line] if word == LINE => Some(Self::Line(line.clone())),
            [word, program, rest @ ..] if word == SERVER => {
                Some(Self::Server(program.clone(), rest.to_vec()))
            }
            _ => None,
        }
    }

    fn program(&self) -> Cow<'_, str> {
        match self {
            Self::Line(_) => "sh".into(),
            Self::Server(program, _) => program.to_string_lossy(),
        }
    }
}

/// Runs a program until it ends or stdin closes, and returns the exit code for this process.
/// Whatever the program leaves behind is killed: its process group, and on Linux also processes
/// that left the group.
///
/// Call this first in a dedicated process: it leaves the terminal, so that Ctrl+C reaches only
/// Stepwell, and no command can wait for a password.
#[must_use]
pub fn supervise(watched: &Watched) -> i32 {
    // This fails for a group leader, which Ctrl+C does not reach either.
    let _ = rustix::process::setsid();
    orphans::adopt();
    mark::set();
    let held = match watched {
        Watched::Line(line) => hold(shell(line), io::stdin()),
        Watched::Server(program, arguments) => {
            let mut command = Command::new(program);
            command.args(arguments);
            let leash = io::stdin().as_fd().try_clone_to_owned();
            leash.and_then(|leash| hold_server(command, leash))
        }
    };
    orphans::end();
    match held {
        Ok(status) => exit_code(status),
        Err(error) => {
            let _ = writeln!(io::stderr(), "{} could not be started: {error}", watched.program());
            NOT_STARTED
        }
    }
}

/// A command line for the shell, without input.
pub(super) fn shell(command_line: &OsStr) -> Command {
    let mut command = Command::new("sh");
    command.arg("-c").arg(command_line).stdin(Stdio::null());
    command
}

/// The exit code as a shell reports it.
pub(crate) fn exit_code(status: ExitStatus) -> i32 {
    status.code().unwrap_or_else(|| 128 + status.signal().unwrap_or(0))
}

/// Runs a command in its own process group until it ends or the leash closes.
pub(super) fn hold(command: Command, leash: impl Read + Send + 'static) -> io::Result<ExitStatus> {
    held(command, move |group, _| {
        wait_for_end(leash);
        group.stop();
    })
}

/// Runs a server in its own process group and passes the leash's data to it. When the leash closes,
/// the server's input closes first, as such servers expect; then the server is ended.
pub(crate) fn hold_server(mut command: Command, leash: OwnedFd) -> io::Result<ExitStatus> {
    command.stdin(Stdio::piped());
    held(command, move |group, input| {
        relay(leash.as_fd(), input);
        group.wait_a_while();
        group.stop();
    })
}

/// Runs a command in its own process group, beside a thread that watches the leash.
fn held(
    mut command: Command,
    watch: impl FnOnce(&Group, Option<ChildStdin>) + Send + 'static,
) -> io::Result<ExitStatus> {
    let mut child = command.process_group(0).spawn()?;
    // It holds our copies of the command's output pipes.
    drop(command);
    let input = child.stdin.take();
    let group = Arc::new(Group::led_by(&child));
    let watched = Arc::clone(&group);
    let watcher =
        thread::Builder::new().name("leash".to_owned()).spawn(move || watch(&watched, input));
    if watcher.is_err() {
        group.stop();
    }
    group.reap(child)
}

/// Passes the leash's data on until the leash closes.
fn relay(leash: BorrowedFd<'_>, input: Option<ChildStdin>) {
    // A blocking write to the server would not notice the end of the leash.
    let blocking = |input: &ChildStdin| rustix::io::ioctl_fionbio(input, true).is_err();
    let mut input = input.filter(|input| !blocking(input));
    let mut buffer = vec![0; 64 << 10];
    loop {
        let read = rustix::io::retry_on_intr(|| rustix::io::read(leash, &mut buffer));
        let Ok(len @ 1..) = read else { return };
        let passed = input.as_ref().map_or(Passed::Closed, |it| pass(&buffer[..len], it, leash));
        match passed {
            Passed::On => {}
            // The leash still has to be watched.
            Passed::Closed => input = None,
            Passed::LetGo => return,
        }
    }
}

/// The outcome of passing on a piece.
enum Passed {
    On,
    /// The server reads no more.
    Closed,
    /// The leash closed before the server read all of it.
    LetGo,
}

fn pass(mut bytes: &[u8], input: &ChildStdin, leash: BorrowedFd<'_>) -> Passed {
    while !bytes.is_empty() {
        let mut both = [
            PollFd::new(input, PollFlags::OUT),
            PollFd::from_borrowed_fd(leash, PollFlags::empty()),
        ];
        if rustix::io::retry_on_intr(|| rustix::event::poll(&mut both, None)).is_err() {
            return Passed::Closed;
        }
        let (room, end) = (both[0].revents(), both[1].revents());
        if room.contains(PollFlags::OUT) {
            match rustix::io::write(input, bytes) {
                Ok(len) => bytes = &bytes[len..],
                Err(Errno::AGAIN | Errno::INTR) => {}
                Err(_) => return Passed::Closed,
            }
        } else if !room.is_empty() {
            return Passed::Closed;
        } else if !end.is_empty() {
            return Passed::LetGo;
        }
    }
    Passed::On
}

fn wait_for_end(mut leash: impl Read) {
    let mut buffer = [0; 64];
    loop {
        match leash.read(&mut buffer) {
            Ok(0) => return,
            Err(error) if error.kind() != io::ErrorKind::Interrupted => return,
            _ => {}
        }
    }
}

/// A process group. It is only signalled before its leader is reaped: until then no other group can
/// have its number.
struct Group {
    leader: Pid,
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum State {
    Running,
    /// SIGTERM was sent, SIGKILL was not.
    Stopping,
    Killed,
    Reaped,
}

impl Group {
    fn led_by(child: &Child) -> Self {
        Self {
            leader: Pid::from_child(child),
            state: Mutex::new(State::Running),
            changed: Condvar::new(),
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock()
    }

    /// Waits briefly for the leader to end by itself.
    fn wait_a_while(&self) {
        let running = |state: &mut State| *state == State::Running;
        // The next caller checks the result.
        let _ = self.changed.wait_while_for(&mut self.state(), running, GRACE);
    }

    /// Ends the whole group, first with SIGTERM. The leader's end says nothing about the other
    /// processes, so they have the whole grace period.
    fn stop(&self) {
        let mut state = self.state();
        if *state != State::Running {
            return;
        }
        self.signal(Signal::TERM);
        *state = State::Stopping;
        drop(state);
        #[expect(
            clippy::disallowed_methods,
            reason = "no event tells when a process group is empty"
        )]
        thread::sleep(GRACE);
        let mut state = self.state();
        self.signal(Signal::KILL);
        *state = State::Killed;
        self.changed.notify_all();
    }

    /// Waits until the leader ends, and kills what it leaves behind.
    fn reap(&self, mut leader: Child) -> io::Result<ExitStatus> {
        let ended = WaitIdOptions::EXITED | WaitIdOptions::NOWAIT;
        rustix::io::retry_on_intr(|| rustix::process::waitid(WaitId::Pid(self.leader), ended))?;
        let stopping = |state: &mut State| *state == State::Stopping;
        let mut state = self.state();
        self.changed.wait_while(&mut state, stopping);
        self.signal(Signal::KILL);
        *state = State::Reaped;
        self.changed.notify_all();
        leader.wait()
    }

    /// A missing group needs no signal.
    fn signal(&self, signal: Signal) {
        let _ = rustix::process::kill_process_group(self.leader, signal);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_supervisor_reads_what_it_was_told() {
        let server = |rest: &[&str]| {
            Watched::Server("npx".into(), rest.iter().map(|word| OsString::from(*word)).collect())
        };
        for watched in [Watched::Line("a && b".into()), server(&[]), server(&["-y", "line"])] {
            assert_eq!(Watched::parse(&watched.arguments()), Some(watched));
        }
        assert_eq!(Watched::parse(&["line".into()]), None);
        assert_eq!(Watched::parse(&["dance".into(), "x".into()]), None);
    }
}
