//! Processes that left their command's process group, for example through `setsid`.
//!
//! On Linux the supervisor adopts every descendant whose parent ends, and so can end them all. On
//! other systems such processes live on.

/// Makes this process adopt every descendant whose parent ends. Only for a process whose children
/// may all be ended.
pub(super) fn adopt() {
    #[cfg(target_os = "linux")]
    let _ = rustix::process::set_child_subreaper(Some(rustix::process::getpid()));
}

/// Ends all children of this process, including those that it adopts meanwhile.
#[cfg(target_os = "linux")]
pub(super) fn end() {
    use rustix::process::{Signal, WaitOptions, kill_process, wait};
    /// Each round kills all current children; what is left after the last round cannot be killed.
    const ROUNDS: usize = 1_000;
    for _ in 0..ROUNDS {
        let killed = children().into_iter().filter(|it| kill_process(*it, Signal::KILL).is_ok());
        // After a kill, wait for the child to end. Otherwise one may have been adopted just now, or
        // belongs to another user.
        let options = if killed.count() > 0 { WaitOptions::empty() } else { WaitOptions::NOHANG };
        if rustix::io::retry_on_intr(|| wait(options)).is_err() {
            return;
        }
    }
}

/// This system does not list adopted processes.
#[cfg(not(target_os = "linux"))]
pub(super) fn end() {}

/// The children of this process.
#[cfg(target_os = "linux")]
fn children() -> Vec<rustix::process::Pid> {
    let own = rustix::process::getpid().as_raw_nonzero().get();
    let entries = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    let numbers = entries.filter_map(|entry| entry.file_name().to_str()?.parse::<i32>().ok());
    let is_ours = |number: &i32| parent(*number) == Some(own);
    numbers.filter(is_ours).filter_map(rustix::process::Pid::from_raw).collect()
}

/// The parent of a process. The process's name is in brackets and may contain any character.
#[cfg(target_os = "linux")]
fn parent(number: i32) -> Option<i32> {
    let stat = std::fs::read_to_string(format!("/proc/{number}/stat")).ok()?;
    let (_, rest) = stat.rsplit_once(')')?;
    rest.split_whitespace().nth(1)?.parse().ok()
}
