//! Revoked cookies. Cookies are signed, not stored, so all servers of the user must remember a
//! logout, also after a restart.

use std::collections::HashSet;
use std::io;
use std::path::PathBuf;

use parking_lot::{Mutex, MutexGuard};
use stepwell_workspace::locked_file;

use super::stamp::Stamp;

/// Digests of revoked cookies: the file itself grants no access.
#[derive(Debug)]
pub(crate) struct Logouts {
    /// Their file; `None` to keep them in memory only.
    path: Option<PathBuf>,
    known: Mutex<Known>,
}

#[derive(Debug, Default)]
struct Known {
    digests: HashSet<String>,
    stamp: Option<Stamp>,
}

impl Logouts {
    /// The revoked cookies in a file.
    pub(crate) fn new(path: Option<PathBuf>) -> Self {
        Self { path, known: Mutex::default() }
    }

    /// Was this cookie revoked, here or by another server? If the file cannot be read, every cookie
    /// counts as revoked.
    pub(crate) fn has(&self, cookie: &str) -> bool {
        let mut known = self.known();
        if let Some(path) = &self.path {
            let stamp = Stamp::of(path);
            if known.stamp != stamp {
                let Ok(text) = locked_file::read(path) else { return true };
                let lines = text.as_deref().unwrap_or_default().lines();
                known.digests.extend(lines.filter_map(|line| Some(read(line)?.1.to_owned())));
                known.stamp = stamp;
            }
        }
        known.digests.contains(&digest(cookie))
    }

    /// Revokes a cookie that would expire at `until`. Expired ones are dropped.
    pub(crate) fn add(&self, cookie: &str, until: i64, now: i64) -> io::Result<()> {
        let digest = digest(cookie);
        self.known().digests.insert(digest.clone());
        let Some(path) = &self.path else { return Ok(()) };
        if let Some(folder) = path.parent() {
            std::fs::create_dir_all(folder)?;
        }
        let held = locked_file::lock(&path.with_extension("lock"))?;
        let kept = locked_file::read(path)?.unwrap_or_default();
        let counts = |line: &&str| read(line).is_some_and(|(until, _)| until > now);
        let mut text: String =
            kept.lines().filter(counts).map(|line| format!("{line}\n")).collect();
        text.push_str(&format!("{until} {digest}\n"));
        held.write(path, &text)
    }

    fn known(&self) -> MutexGuard<'_, Known> {
        self.known.lock()
    }
}

/// The expiry and the digest of a cookie.
fn read(line: &str) -> Option<(i64, &str)> {
    let (until, digest) = line.split_once(' ')?;
    Some((until.parse().ok()?, digest))
}

fn digest(cookie: &str) -> String {
    blake3::hash(cookie.as_bytes()).to_hex().to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_taken_back_is_known_to_every_server_and_forgotten_when_it_is_over() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("state").join("logouts");
        let [one, other] = [(); 2].map(|()| Logouts::new(Some(path.clone())));
        assert!(!other.has("a") && !one.has("a"));
        one.add("a", 10, 0).unwrap();
        assert!(one.has("a") && other.has("a") && !other.has("b"));
        other.add("b", 30, 20).unwrap();
        let text = std::fs::read_to_string(&path).unwrap();
        assert!(!text.contains(&digest("a")) && text.contains(&digest("b")), "{text}");
        assert!(Logouts::new(Some(path.clone())).has("b"));
        // The file does not contain the cookie's text.
        assert!(text.lines().all(|line| read(line).is_some_and(|(_, it)| it.len() == 64)));
        std::fs::write(&path, [0xff]).unwrap();
        assert!(one.has("never taken back"), "nobody knows which ones were");
    }
}
