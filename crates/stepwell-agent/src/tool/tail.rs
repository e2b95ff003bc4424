//! The last lines that a running command wrote, for those who watch it.

use std::sync::Arc;

use parking_lot::{Mutex, MutexGuard};

/// As much as is kept: some lines of a terminal.
const KEPT: usize = 2 << 10;

/// As many lines as are shown.
const LINES: usize = 3;

/// What a command wrote last. Clones share it.
#[derive(Clone, Debug, Default)]
pub struct Tail(Arc<Mutex<Vec<u8>>>);

impl Tail {
    /// Forgets it: another command begins.
    pub fn clear(&self) {
        self.bytes().clear();
    }

    /// Takes in what was written.
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
        // What draws over its line is shown as it stands in the end.
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
