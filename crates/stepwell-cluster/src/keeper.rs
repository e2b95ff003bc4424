//! Ends what was started when the process that started it is gone.

use std::path::Path;
use std::process::{Child, Command, Stdio};

/// A shell that waits for its input to end, which it does with this process, and then
/// stops the server and removes its folder.
#[derive(Debug)]
pub(crate) struct Keeper(Child);

impl Keeper {
    /// `pids` is a file whose first line is the number of the process to end.
    pub(crate) fn new(folder: &Path, pids: &Path) -> Self {
        // What ends the tests, from a terminal or a time limit, goes to all of their group.
        let script = "trap '' INT TERM HUP; cat >/dev/null; \
             p=$(head -n 1 \"$2\" 2>/dev/null) && kill -QUIT \"$p\" 2>/dev/null; \
             n=0; while [ -n \"$p\" ] && kill -0 \"$p\" 2>/dev/null && [ $n -lt 100 ]; \
             do sleep 0.05; n=$((n + 1)); done; \
             [ -n \"$p\" ] && kill -KILL \"$p\" 2>/dev/null; rm -rf \"$1\"";
        let child = Command::new("sh")
            .args(["-c", script, "keeper"])
            .args([folder, pids])
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        Self(child)
    }
}

impl Drop for Keeper {
    fn drop(&mut self) {
        drop(self.0.stdin.take());
        let _ = self.0.wait();
    }
}
