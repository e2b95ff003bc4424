//! The last lines of a running command's output, for display.

use std::sync::Arc;

use parking_lot::{Mutex, MutexGuard};

/// How many bytes are kept: a few terminal lines.
const KEPT: usize = 2 << 10;

/// How many lines are shown.
const LINES: usize = 3;

/// The end of a command's output. Clones share it.
#[derive(Clone, Debug, Default)]
pub struct Tail(Arc<Mutex<Vec<u8>>>);

impl Tail {
    /// Clears it for the next command.
    pub fn clear(&self) {
        self.bytes().clear();
    }

    /// Adds output.
    pub(super) fn push(&self, written: &[u8]) {
        let mut bytes = self.bytes();
        bytes.extend_from_slice(written);
        let too_many = bytes.len().saturating_sub(KEPT);
        bytes.drain(..too_many);
    }

    /// The last lines that are not blank.
    #[must_use]
    pub fn lines(&self) -> String {
        let text = String::from_utf8_lossy(&self.bytes()).into_owned();
        // A line that overwrites itself is shown in its final form.
        let line = |line: &str| line.trim_end().rsplit('\r').next().unwrap_or_default().to_owned();
        let lines = text.lines().rev().map(line).filter(|line| !line.trim().is_empty());
        let mut last: Vec<String> = lines.take(LINES).collect();
        last.reverse();
        last.join("\n")
    }

    fn bytes(&self) -> MutexGuard<'_, Vec<u8>> {
        self.0.lock()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_lines_are_kept_and_no_more() {
        let tail = Tail::default();
        for n in 0..9_999 {
            tail.push(format!("line {n}\n\n").as_bytes());
        }
        tail.push(b"10%\r20%\r30%");
        assert_eq!(tail.lines(), "line 9997\nline 9998\n30%");
        assert!(tail.bytes().len() <= KEPT);
        tail.clear();
        assert_eq!(tail.lines(), "");
    }
}
