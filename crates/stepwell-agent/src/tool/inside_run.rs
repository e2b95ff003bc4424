//! Whether a process was started by a run: an agent must not approve its own calls, speak in its user's
//! name, or erase the record of what it did.

use std::process::Command;

/// How many ancestors of the process are looked at.
const DEPTH: usize = 64;

/// Is one of the processes above this one a supervisor of a run's commands? A supervisor is known by
/// one of its arguments. A command can unset a variable; it cannot choose another parent.
#[must_use]
pub fn is_below_supervisor(argument: &str) -> bool {
    let look = if cfg!(target_os = "linux") { from_proc } else { from_ps };
    is_below(argument, std::os::unix::process::parent_id(), look)
}

/// A process as its children see it.
struct Parent {
    /// The process above it.
    parent: Option<u32>,
    arguments: Vec<String>,
}

fn is_below(argument: &str, parent: u32, look: fn(u32) -> Option<Parent>) -> bool {
    let mut pid = Some(parent);
    for _ in 0..DEPTH {
        let Some(above) = pid.filter(|pid| *pid > 1).and_then(look) else { return false };
        if above.arguments.iter().any(|it| it == argument) {
            return true;
        }
        pid = above.parent;
    }
    false
}

fn from_proc(pid: u32) -> Option<Parent> {
    let command = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The name stands in brackets and may hold anything; the parent is two fields behind it.
    let rest = stat.rsplit_once(')').map_or("", |(_, rest)| rest);
    let parent = rest.split_whitespace().nth(1).and_then(|parent| parent.parse().ok());
    let arguments = command.split(|byte| *byte == 0);
    let arguments = arguments.map(|it| String::from_utf8_lossy(it).into_owned()).collect();
    Some(Parent { parent, arguments })
}

/// Where there is no `/proc`. `ps` does not say where an argument ends: an argument with a space in it
/// counts as two.
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
    fn an_ancestor_is_found_by_its_argument_whichever_way_processes_are_listed() {
        // The test stands below a shell that has the argument, as a command does below a supervisor.
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
