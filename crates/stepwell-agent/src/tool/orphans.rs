//! Processes that left the process group of the command that started them, such as those that
//! `setsid` starts.
//!
//! On Linux a supervisor adopts every descendant whose parent ends, wherever it went, so that it
//! can end them all. Elsewhere such processes live on.

/// Has every descendant whose parent ends become our child. To be called in a process that has
/// no other children than those that it may end.
pub(super) fn adopt() {
    #[cfg(target_os = "linux")]
    let _ = rustix::process::set_child_subreaper(Some(rustix::process::getpid()));
}

/// Ends all children of this process, and theirs as they become ours.
#[cfg(target_os = "linux")]
pub(super) fn end() {
    use rustix::process::{Signal, WaitOptions, kill_process, wait};
    /// Each round ends those that are there; what is left then cannot be killed by us.
    const ROUNDS: usize = 1_000;
    for _ in 0..ROUNDS {
        let killed = children().into_iter().filter(|it| kill_process(*it, Signal::KILL).is_ok());
        // Where one was killed, one will soon be gone. Otherwise one may have become ours just
        // now, or it is another user's.
        let options = if killed.count() > 0 { WaitOptions::empty() } else { WaitOptions::NOHANG };
        if rustix::io::retry_on_intr(|| wait(options)).is_err() {
            return;
        }
    }
}

/// Nothing tells which they are.
#[cfg(not(target_os = "linux"))]
pub(super) fn end() {}

/// The processes whose parent we are.
#[cfg(target_os = "linux")]
fn children() -> Vec<rustix::process::Pid> {
    let own = rustix::process::getpid().as_raw_nonzero().get();
    let entries = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    let numbers = entries.filter_map(|entry| entry.file_name().to_str()?.parse::<i32>().ok());
    let is_ours = |number: &i32| parent(*number) == Some(own);
    numbers.filter(is_ours).filter_map(rustix::process::Pid::from_raw).collect()
}

/// Who a process's parent is. Its name stands in brackets, and may hold any character.
#[cfg(target_os = "linux")]
fn parent(number: i32) -> Option<i32> {
    let stat = std::fs::read_to_string(format!("/proc/{number}/stat")).ok()?;
    let (_, rest) = stat.rsplit_once(')')?;
    rest.split_whitespace().nth(1)?.parse().ok()
}
