//! Stops a server when the process that started it ends.

use std::path::Path;
use std::process::{Child, Command, Stdio};

/// A shell that waits until its stdin ends, which happens when this process ends. Then it
/// stops the server and removes its folder.
#[derive(Debug)]
pub(crate) struct Cleanup(Child);

impl Cleanup {
    /// `pid_file` is a file whose first line is the pid of the process to stop.
    pub(crate) fn new(folder: &Path, pid_file: &Path) -> Self {
        // Signals that end the tests, from a terminal or a timeout, go to their whole group.
        let script = "trap '' INT TERM HUP; cat >/dev/null; \
             p=$(head -n 1 \"$2\" 2>/dev/null) && kill -QUIT \"$p\" 2>/dev/null; \
             n=0; while [ -n \"$p\" ] && kill -0 \"$p\" 2>/dev/null && [ $n -lt 100 ]; \
             do sleep 0.05; n=$((n + 1)); done; \
             [ -n \"$p\" ] && kill -KILL \"$p\" 2>/dev/null; rm -rf \"$1\"";
        let child = Command::new("sh")
            .args(["-c", script, "cleanup"])
            .args([folder, pid_file])
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        Self(child)
    }
}

impl Drop for Cleanup {
    fn drop(&mut self) {
        drop(self.0.stdin.take());
        let _ = self.0.wait();
    }
}
