//! Leases: the exclusive right to write to a session, and whether its runner is alive.

use std::fmt;
use std::time::Duration;

use crate::model::{Epoch, Owner, SessionId, Time};

/// How long a lease lasts without renewal. Long enough for a slow disk or a laptop that wakes up.
/// The end of a runner's process is noticed at once, without this.
pub const LEASE_TTL: Duration = Duration::from_secs(30);

/// The right to write to a session while its epoch is the newest.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lease {
    /// The session.
    pub session: SessionId,
    /// Its epoch, which appends must give.
    pub epoch: Epoch,
    /// When it expires without renewal.
    pub expires: Time,
    /// Was its runner asked to stop, as of the last renewal?
    pub stop_asked: bool,
}

/// A lease as a store keeps it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LeaseInfo {
    /// The newest epoch.
    pub epoch: Epoch,
    /// The process that holds it.
    pub holder: Owner,
    /// When it expires.
    pub expires: Time,
    /// The process's login at the server, if there is one.
    pub login: Option<String>,
}

/// Whether a lease's process is alive, as far as this machine can tell.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Liveness {
    /// Its process runs.
    Alive,
    /// Its process is gone.
    Gone,
    /// It is on another machine or in another container, or it is suspended.
    Unknown,
}

impl LeaseInfo {
    /// Is the process to be considered dead, so that its lease may be acquired? For a process that
    /// this machine can check, only its state decides, never the clock: a clock that is ahead must
    /// not take its lease. The expiry decides for processes that cannot be checked, and for
    /// suspended ones (Ctrl+Z), which cannot renew.
    #[must_use]
    pub fn is_dead(&self, now: Time, processes: &dyn Processes) -> bool {
        match processes.pulse(&self.holder) {
            Liveness::Alive => false,
            Liveness::Gone => true,
            Liveness::Unknown => now >= self.expires,
        }
    }
}

/// Identifies this process and checks others.
pub trait Processes: fmt::Debug + Send + Sync {
    /// This process.
    fn this(&self) -> Owner;

    /// Is that process running?
    fn pulse(&self, holder: &Owner) -> Liveness;
}

/// The processes of this machine.
#[derive(Clone, Copy, Debug, Default)]
pub struct SystemProcesses;

impl Processes for SystemProcesses {
    fn this(&self) -> Owner {
        let pid = std::process::id();
        Owner {
            host: host(),
            boot: system::boot(),
            namespace: system::namespace(),
            pid,
            started: system::started(pid).unwrap_or_default(),
            user: user(),
        }
    }

    fn pulse(&self, holder: &Owner) -> Liveness {
        if holder.host != host() {
            Liveness::Unknown
        } else if holder.boot != system::boot() {
            Liveness::Gone
        } else if holder.namespace != system::namespace() {
            Liveness::Unknown
        } else if system::started(holder.pid).as_ref() != Some(&holder.started) {
            Liveness::Gone
        } else if system::is_suspended(holder.pid) {
            Liveness::Unknown
        } else {
            Liveness::Alive
        }
    }
}

/// The name of the user that runs this process, or else the user's number.
fn user() -> String {
    let uid = rustix::process::getuid().as_raw().to_string();
    let known = std::fs::read_to_string("/etc/passwd").unwrap_or_default();
    let named = known.lines().find_map(|line| {
        let mut fields = line.split(':');
        let (name, _, number) = (fields.next()?, fields.next()?, fields.next()?);
        (number == uid).then(|| name.to_owned())
    });
    named.unwrap_or(uid)
}

fn host() -> String {
    rustix::system::uname().nodename().to_string_lossy().into_owned()
}

#[cfg(target_os = "linux")]
mod system {
    use std::fs;

    pub(super) fn boot() -> String {
        let id = fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default();
        id.trim().to_owned()
    }

    pub(super) fn namespace() -> String {
        let link = fs::read_link("/proc/self/ns/pid").unwrap_or_default();
        link.to_string_lossy().into_owned()
    }

    /// Clock ticks since boot at which the process started; `None` for a zombie.
    pub(super) fn started(pid: u32) -> Option<String> {
        let (state, started) = stat(pid)?;
        if state == "Z" || state == "X" { None } else { Some(started) }
    }

    /// Was the process stopped by a signal, for example with Ctrl+Z?
    pub(super) fn is_suspended(pid: u32) -> bool {
        stat(pid).is_some_and(|(state, _)| state == "T")
    }

    /// Fields 3 (state) and 22 (start) of a process's stat, counted after the last closing
    /// parenthesis, because the command before it may contain spaces.
    fn stat(pid: u32) -> Option<(String, String)> {
        let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
        let mut fields = stat.rsplit_once(')')?.1.split_whitespace();
        Some((fields.next()?.to_owned(), fields.nth(18)?.to_owned()))
    }
}

#[cfg(not(target_os = "linux"))]
mod system {
    use std::process::Command;

    fn ask(program: &str, args: &[&str]) -> Option<String> {
        let output = Command::new(program).args(args).output().ok()?;
        let text = String::from_utf8_lossy(&output.stdout).trim().to_owned();
        (output.status.success() && !text.is_empty()).then_some(text)
    }

    pub(super) fn boot() -> String {
        ask("sysctl", &["-n", "kern.bootsessionuuid"]).unwrap_or_default()
    }

    pub(super) fn namespace() -> String {
        String::new()
    }

    pub(super) fn started(pid: u32) -> Option<String> {
        ask("ps", &["-o", "lstart=", "-p", &pid.to_string()])
    }

    pub(super) fn is_suspended(pid: u32) -> bool {
        ask("ps", &["-o", "state=", "-p", &pid.to_string()]).is_some_and(|it| it.starts_with('T'))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_process_is_alive() {
        let this = SystemProcesses.this();
        assert!(!this.started.is_empty() && !this.boot.is_empty());
        assert_eq!(SystemProcesses.pulse(&this), Liveness::Alive);
    }

    #[test]
    fn a_process_that_ended_is_gone_and_its_number_alone_proves_nothing() {
        let mut child = std::process::Command::new("true").spawn().unwrap();
        let mut holder = Owner { pid: child.id(), ..SystemProcesses.this() };
        child.wait().unwrap();
        assert_eq!(SystemProcesses.pulse(&holder), Liveness::Gone);
        holder.pid = std::process::id();
        holder.started = "1".to_owned();
        assert_eq!(SystemProcesses.pulse(&holder), Liveness::Gone);
    }

    #[test]
    fn another_machine_or_container_cannot_be_judged_and_a_reboot_ends_all() {
        let this = SystemProcesses.this();
        let pulse = |holder: Owner| SystemProcesses.pulse(&holder);
        assert_eq!(pulse(Owner { host: "elsewhere".into(), ..this.clone() }), Liveness::Unknown);
        assert_eq!(pulse(Owner { namespace: "pid:[1]".into(), ..this.clone() }), Liveness::Unknown);
        assert_eq!(pulse(Owner { boot: "before".into(), ..this }), Liveness::Gone);
    }

    #[test]
    fn the_clock_never_ends_the_lease_of_a_live_local_process() {
        let held = LeaseInfo {
            epoch: Epoch::new(1),
            holder: SystemProcesses.this(),
            expires: Time::from_micros(10),
            login: None,
        };
        assert!(!held.is_dead(Time::from_micros(10), &SystemProcesses));
        let holder = Owner { host: "elsewhere".to_owned(), ..SystemProcesses.this() };
        let held = LeaseInfo { holder, ..held };
        assert!(held.is_dead(Time::from_micros(10), &SystemProcesses));
        assert!(!held.is_dead(Time::from_micros(9), &SystemProcesses));
        let holder = Owner { started: "1".to_owned(), ..SystemProcesses.this() };
        let held = LeaseInfo { holder, ..held };
        assert!(held.is_dead(Time::from_micros(9), &SystemProcesses));
    }
}
