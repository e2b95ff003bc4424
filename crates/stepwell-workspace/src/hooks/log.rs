//! What hooks did, in a file that stays small.

use std::fs::{self, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use stepwell::Time;

/// The hooks' log, in the store's folder.
#[derive(Debug)]
pub struct Log {
    path: PathBuf,
}

/// How large the log gets before it begins anew. The one before it is kept, so that both
/// together take at most twice as much.
const LIMIT: u64 = 256 << 10;

/// How long a line gets.
const LINE: usize = 1_000;

impl Log {
    /// The log of the store in a folder, if there is a store.
    #[must_use]
    pub fn of(store: &Path) -> Option<Self> {
        store.is_dir().then(|| Self { path: store.join("hooks.log") })
    }

    /// Adds a line.
    pub fn write(&self, at: Time, says: &str) -> io::Result<()> {
        if fs::metadata(&self.path).is_ok_and(|meta| meta.len() >= LIMIT) {
            fs::rename(&self.path, self.path.with_extension("log.1"))?;
        }
        let says = one_line(says);
        let line = format!("{at} {}\n", &says[..says.floor_char_boundary(LINE)]);
        let mut file = OpenOptions::new().create(true).append(true).mode(0o600).open(&self.path)?;
        file.write_all(line.as_bytes())
    }
}

/// The text on one line, without what would move a terminal's cursor.
fn one_line(text: &str) -> String {
    let words: Vec<&str> = text.split_whitespace().collect();
    words.join(" ").replace(char::is_control, "\u{fffd}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_log_never_grows_beyond_its_bound() {
        let folder = tempfile::tempdir().unwrap();
        let log = Log::of(folder.path()).unwrap();
        for _ in 0..2_000 {
            log.write(Time::EPOCH, &"x".repeat(5_000)).unwrap();
        }
        let sizes: Vec<u64> = fs::read_dir(folder.path())
            .unwrap()
            .map(|entry| entry.unwrap().metadata().unwrap().len())
            .collect();
        assert_eq!(sizes.len(), 2);
        assert!(sizes.iter().all(|size| *size < LIMIT + 2_000), "{sizes:?}");
        assert!(Log::of(&folder.path().join("absent")).is_none());
    }
}
