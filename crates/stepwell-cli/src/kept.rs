//! Small files that several processes keep together: changed by one at a time, and replaced
//! as a whole.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use rustix::fs::OFlags;

/// The right to change some files, until it is dropped.
#[derive(Debug)]
pub(crate) struct Keeping(#[expect(dead_code, reason = "dropping it unlocks")] File);

/// Waits until nobody else changes the files that this lock is for.
pub(crate) fn keep(lock: &Path) -> io::Result<Keeping> {
    // A store may come with a project: nothing in it may lead us to another file.
    let no_links = i32::try_from(OFlags::NOFOLLOW.bits()).unwrap_or_default();
    let mut options = OpenOptions::new();
    let file = options.create(true).append(true).mode(0o600).custom_flags(no_links).open(lock)?;
    file.lock()?;
    Ok(Keeping(file))
}

/// The file's text; nothing, if there is no such file.
pub(crate) fn read(path: &Path) -> io::Result<Option<String>> {
    match fs::read_to_string(path) {
        Ok(text) => Ok(Some(text)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

impl Keeping {
    /// Replaces a file as a whole, unless it says so already: whoever reads it, also after a
    /// power cut, finds the old text or the new one.
    pub(crate) fn put(&self, path: &Path, text: &str) -> io::Result<()> {
        if read(path).is_ok_and(|old| old.as_deref() == Some(text)) {
            return Ok(());
        }
        // Nobody else writes a draft while this one keeps the files: one that is there was left
        // behind, or is a link to somewhere else.
        let mut draft = path.as_os_str().to_owned();
        draft.push(".new");
        self.remove(Path::new(&draft))?;
        let mut file = OpenOptions::new().create_new(true).write(true).mode(0o600).open(&draft)?;
        file.write_all(text.as_bytes())?;
        file.sync_data()?;
        fs::rename(&draft, path)
    }

    /// Takes a file away.
    pub(crate) fn remove(&self, path: &Path) -> io::Result<()> {
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
        let (lock, path) = (folder.path().join("n.lock"), folder.path().join("n"));
        std::thread::scope(|scope| {
            for _ in 0..8 {
                scope.spawn(|| {
                    for _ in 0..25 {
                        let keeping = keep(&lock).unwrap();
                        let n: u32 = read(&path).unwrap().map_or(0, |text| text.parse().unwrap());
                        keeping.put(&path, &(n + 1).to_string()).unwrap();
                    }
                });
            }
        });
        assert_eq!(read(&path).unwrap().unwrap(), "200");
        let keeping = keep(&lock).unwrap();
        keeping.remove(&path).unwrap();
        keeping.remove(&path).unwrap();
        assert_eq!(read(&path).unwrap(), None);
    }

    #[test]
    fn a_link_leads_nowhere() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        fs::write(at("precious"), "precious").unwrap();
        for name in ["n", "n.new", "l"] {
            std::os::unix::fs::symlink(at("precious"), at(name)).unwrap();
        }
        assert!(keep(&at("l")).is_err());
        keep(&at("lock")).unwrap().put(&at("n"), "mine").unwrap();
        assert_eq!(fs::read_to_string(at("n")).unwrap(), "mine");
        assert_eq!(fs::read_to_string(at("precious")).unwrap(), "precious");
    }
}
