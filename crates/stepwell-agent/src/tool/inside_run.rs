//! Whether a process was started by a run: an agent must not approve itself, or speak to itself in
//! its user's name.

/// How many ancestors of the process are looked at.
const DEPTH: usize = 64;

/// Is one of the processes above this one a supervisor of a run's commands, which is known by one of
/// its arguments? A variable can be unset; whose child a process is cannot.
#[must_use]
pub fn is_below_supervisor(argument: &str) -> bool {
    let mut pid = Some(std::os::unix::process::parent_id());
    for _ in 0..DEPTH {
        let Some(above) = pid.filter(|pid| *pid > 1) else { return false };
        let command = std::fs::read(format!("/proc/{above}/cmdline")).unwrap_or_default();
        if command.split(|byte| *byte == 0).any(|part| part == argument.as_bytes()) {
            return true;
        }
        let stat = std::fs::read_to_string(format!("/proc/{above}/stat")).unwrap_or_default();
        // The name stands in brackets and may hold anything; the parent is two fields behind it.
        let rest = stat.rsplit_once(')').map_or("", |(_, rest)| rest);
        pid = rest.split_whitespace().nth(1).and_then(|parent| parent.parse().ok());
    }
    false
}
