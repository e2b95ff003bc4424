//! Whether this command was started by a run: an agent must not approve itself, or speak to itself
//! in its user's name.

/// How many ancestors of the process are looked at.
const DEPTH: usize = 64;

/// Is one of the processes above this one a supervisor of a run's commands? A variable can be
/// unset; whose child a process is cannot.
pub(crate) fn has_supervisor() -> bool {
    let mut pid = rustix::process::getppid().map(|parent| parent.as_raw_nonzero().get());
    for _ in 0..DEPTH {
        let Some(above) = pid.filter(|pid| *pid > 1) else { return false };
        let command = std::fs::read(format!("/proc/{above}/cmdline")).unwrap_or_default();
        if command.split(|byte| *byte == 0).any(|part| part == b"__supervise") {
            return true;
        }
        let stat = std::fs::read_to_string(format!("/proc/{above}/stat")).unwrap_or_default();
        // The name stands in brackets and may hold anything; the parent is two fields behind it.
        let rest = stat.rsplit_once(')').map_or("", |(_, rest)| rest);
        pid = rest.split_whitespace().nth(1).and_then(|parent| parent.parse().ok());
    }
    false
}
