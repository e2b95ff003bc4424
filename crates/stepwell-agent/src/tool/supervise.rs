//! The supervisor: a small process between Stepwell and a command, which ends the command
//! with all that it started when Stepwell lets go of it, or is killed.
//!
//! Its standard input is a pipe, the leash, whose other end Stepwell alone holds. The kernel
//! closes that end however Stepwell ends, so that nothing has to be done for it in time.

use std::ffi::OsStr;
use std::io::{self, Read, Write as _};
use std::os::unix::process::{CommandExt as _, ExitStatusExt as _};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

use rustix::process::{Pid, Signal, WaitId, WaitIdOptions};

/// How long a command that is stopped has to tidy up, between SIGTERM and SIGKILL.
pub(super) const GRACE: Duration = Duration::from_millis(500);

/// What a shell reports of a command that could not be started.
const NOT_STARTED: i32 = 127;

/// Runs a command line by `sh` until it ends or standard input does, and returns the exit code
/// to end this process with. What the command leaves in its process group is killed.
///
/// To be called first thing in a process that was made for it: it leaves the terminal, so that
/// Ctrl+C reaches Stepwell alone and no command waits for a password that nobody types.
#[must_use]
pub fn supervise(command_line: &OsStr) -> i32 {
    // It fails for the leader of a process group, which Ctrl+C does not reach either.
    let _ = rustix::process::setsid();
    match hold(shell(command_line), io::stdin()) {
        Ok(status) => exit_code(status),
        Err(error) => {
            let _ = writeln!(io::stderr(), "sh could not be started: {error}");
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
pub(super) fn exit_code(status: ExitStatus) -> i32 {
    status.code().unwrap_or_else(|| 128 + status.signal().unwrap_or(0))
}

/// Runs a command in a process group of its own until it ends or the leash does.
pub(super) fn hold(
    mut command: Command,
    leash: impl Read + Send + 'static,
) -> io::Result<ExitStatus> {
    let child = command.process_group(0).spawn()?;
    // It holds our copies of the command's output.
    drop(command);
    let group = Arc::new(Group::led_by(&child));
    let watched = Arc::clone(&group);
    let watcher = thread::Builder::new().name("leash".to_owned()).spawn(move || {
        wait_for_end(leash);
        watched.stop();
    });
    if watcher.is_err() {
        group.stop();
    }
    group.reap(child)
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

/// A process group. It is signalled only while its leader was not reaped: until then no other
/// group can have its number.
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
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Ends the whole group, first kindly. That its leader ended says nothing of the others, so
    /// they have the whole time.
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
        let state = self.changed.wait_while(self.state(), stopping);
        let mut state = state.unwrap_or_else(PoisonError::into_inner);
        self.signal(Signal::KILL);
        *state = State::Reaped;
        leader.wait()
    }

    /// A group that is gone already needs no signal.
    fn signal(&self, signal: Signal) {
        let _ = rustix::process::kill_process_group(self.leader, signal);
    }
}
