//! Small files that several processes share: changed by one at a time, and replaced as a whole.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use rustix::fs::OFlags;

use crate::atomic_file::replace_private_file;

/// The right to change some files, until it is dropped.
#[derive(Debug)]
pub struct FileLock(#[expect(dead_code, reason = "dropping it unlocks")] File);

/// Waits until nobody else changes the files that this lock is for.
///
/// # Errors
/// If the lock's file cannot be made, or is a link.
pub fn lock(path: &Path) -> io::Result<FileLock> {
    // A store may come with a project: nothing in it may lead us to another file.
    let no_links = i32::try_from(OFlags::NOFOLLOW.bits()).unwrap_or_default();
    let mut options = OpenOptions::new();
    let file = options.create(true).append(true).mode(0o600).custom_flags(no_links).open(path)?;
    file.lock()?;
    Ok(FileLock(file))
}

/// The file's text; nothing, if there is no such file.
///
/// # Errors
/// If the file is there and cannot be read.
pub fn read(path: &Path) -> io::Result<Option<String>> {
    match fs::read_to_string(path) {
        Ok(text) => Ok(Some(text)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

impl FileLock {
    /// Replaces a file as a whole, unless it says so already.
    ///
    /// # Errors
    /// If it cannot be written. It is then as it was.
    pub fn write(&self, path: &Path, text: &str) -> io::Result<()> {
        match read(path).is_ok_and(|old| old.as_deref() == Some(text)) {
            true => Ok(()),
            false => replace_private_file(path, text.as_bytes()),
        }
    }

    /// Removes a file, if it is there.
    ///
    /// # Errors
    /// If it is there and cannot be removed.
    pub fn remove(&self, path: &Path) -> io::Result<()> {
        match fs::remove_file(path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
            done => done,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn changes_made_by_many_at_once_are_all_there() {
        let folder = tempfile::tempdir().unwrap();
        let (lock_path, path) = (folder.path().join("n.lock"), folder.path().join("n"));
        std::thread::scope(|scope| {
            for _ in 0..8 {
                scope.spawn(|| {
                    for _ in 0..25 {
                        let held = lock(&lock_path).unwrap();
                        let n: u32 = read(&path).unwrap().map_or(0, |text| text.parse().unwrap());
                        held.write(&path, &(n + 1).to_string()).unwrap();
                    }
                });
            }
        });
        assert_eq!(read(&path).unwrap().unwrap(), "200");
        let held = lock(&lock_path).unwrap();
        held.remove(&path).unwrap();
        held.remove(&path).unwrap();
        assert_eq!(read(&path).unwrap(), None);
    }

    #[test]
    fn a_link_leads_nowhere() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        fs::write(at("precious"), "precious").unwrap();
        for name in ["n", "l"] {
            std::os::unix::fs::symlink(at("precious"), at(name)).unwrap();
        }
        assert!(lock(&at("l")).is_err());
        lock(&at("lock")).unwrap().write(&at("n"), "mine").unwrap();
        assert_eq!(fs::read_to_string(at("n")).unwrap(), "mine");
        assert_eq!(fs::read_to_string(at("precious")).unwrap(), "precious");
    }
}
