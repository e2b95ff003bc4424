//! Detects whether a run started this process: an agent must not approve its own calls, send
//! messages as its user, or erase its record.

use std::process::Command;

/// Did a run's command start this process? Either the process is marked, or one of its ancestors is
/// the supervisor of a run's commands, recognised by an argument. A command can unset a variable,
/// but it cannot choose another parent or remove the mark.
#[must_use]
pub fn is_inside_run(supervisor: &str) -> bool {
    let parent = std::os::unix::process::parent_id();
    match cfg!(target_os = "linux") {
        true => mark::is_set() || !is_own_proc() || is_below(supervisor, parent, from_proc),
        false => is_below(supervisor, parent, from_ps),
    }
}

/// Marks this process and its descendants for good as started by a run.
///
/// The mark is the hard limit of file locks. Every process has this limit, children inherit it, and
/// raising it needs a special right. Linux has not enforced it since 2003, so it is unlimited
/// everywhere, and the mark limits nothing.
#[cfg(target_os = "linux")]
pub(super) mod mark {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

    /// Effectively unlimited.
    const MANY: u64 = u64::MAX / 2;

    pub(in super::super) fn set() {
        let many = Rlimit { current: Some(MANY), maximum: Some(MANY) };
        // If the limit cannot be set, the environment and the ancestors still show it.
        let _ = setrlimit(Resource::Locks, many);
    }

    pub(super) fn is_set() -> bool {
        getrlimit(Resource::Locks).maximum.is_some()
    }
}

#[cfg(not(target_os = "linux"))]
pub(super) mod mark {
    pub(in super::super) const fn set() {}

    pub(super) const fn is_set() -> bool {
        false
    }
}

/// Does `/proc` show this process? If not, it does not show its parents either.
fn is_own_proc() -> bool {
    let link = std::fs::read_link("/proc/self");
    link.is_ok_and(|it| it.to_str() == Some(std::process::id().to_string().as_str()))
}

/// A process as its children see it.
struct Parent {
    /// Its parent.
    parent: Option<u32>,
    arguments: Vec<String>,
}

/// No system has more processes.
const MOST_PROCESSES: u32 = 1 << 22;

fn is_below(argument: &str, parent: u32, look: impl Fn(u32) -> Option<Parent>) -> bool {
    let mut pid = Some(parent);
    for _ in 0..MOST_PROCESSES {
        // A process of another user may be hidden. Unless it is marked, it does not run below a run
        // of this user.
        let Some(above) = pid.filter(|pid| *pid > 1).and_then(&look) else { return false };
        if above.arguments.iter().any(|it| it == argument) {
            return true;
        }
        pid = above.parent;
    }
    true
}

fn from_proc(pid: u32) -> Option<Parent> {
    let command = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The name is in brackets and may contain anything; the parent is two fields after it.
    let rest = stat.rsplit_once(')').map_or("", |(_, rest)| rest);
    let parent = rest.split_whitespace().nth(1).and_then(|parent| parent.parse().ok());
    let arguments = command.split(|byte| *byte == 0);
    let arguments = arguments.map(|it| String::from_utf8_lossy(it).into_owned()).collect();
    Some(Parent { parent, arguments })
}

/// For systems without `/proc`. `ps` does not show where an argument ends, so an argument with a
/// space counts as two.
fn from_ps(pid: u32) -> Option<Parent> {
    let mut ps = Command::new("ps");
    ps.args(["-ww", "-o", "ppid=,args=", "-p", &pid.to_string()]);
    let told = ps.output().ok().filter(|told| told.status.success())?;
    let line = String::from_utf8_lossy(&told.stdout).into_owned();
    let mut words = line.split_whitespace().map(str::to_owned);
    let parent = words.next()?.parse().ok();
    Some(Parent { parent, arguments: words.collect() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_supervisor_is_found_behind_any_number_of_parents() {
        let look = |pid: u32| {
            let arguments = if pid == 2 { vec!["__over_all".to_owned()] } else { Vec::new() };
            Some(Parent { parent: Some(pid - 1), arguments })
        };
        assert!(is_below("__over_all", 1_000, look));
        assert!(!is_below("__under_none", 1_000, look));
    }

    #[test]
    fn an_ancestor_is_found_by_its_argument_whichever_way_processes_are_listed() {
        // The test runs below a shell with the argument, as a command runs below a supervisor.
        let mut shell = Command::new("sh");
        shell.args(["-c", "sleep 600 & echo $!; wait", "sh", "__over_all"]);
        let mut shell = shell.stdout(std::process::Stdio::piped()).spawn().unwrap();
        let mut line = String::new();
        let out = shell.stdout.take().unwrap();
        std::io::BufRead::read_line(&mut std::io::BufReader::new(out), &mut line).unwrap();
        let sleep: u32 = line.trim().parse().unwrap();
        let found = [from_proc as fn(u32) -> Option<Parent>, from_ps].map(|look| {
            let parent = look(sleep).and_then(|it| it.parent);
            let below = |argument: &str| is_below(argument, parent.unwrap_or_default(), look);
            (parent == Some(shell.id()), below("__over_all"), below("__under_none"))
        });
        shell.kill().unwrap();
        shell.wait().unwrap();
        let _ = Command::new("kill").arg(sleep.to_string()).status();
        let ways = if cfg!(target_os = "linux") { &found[..] } else { &found[1..] };
        assert!(ways.iter().all(|it| *it == (true, true, false)), "{found:?}");
    }
}
