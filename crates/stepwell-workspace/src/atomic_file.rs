//! Replacing a small file as a whole: whoever reads it, also after a power cut, finds the old
//! text or the new one.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

/// Replaces a file of the user's. A link stays a link: the file that it points at is replaced.
/// The mode stays as it was.
///
/// # Errors
/// If the folder cannot be written to, the file is one that nobody may write to, or a link leads
/// nowhere. The file is then as it was.
pub fn replace_users_file(path: &Path, text: &str) -> io::Result<()> {
    let path = match fs::canonicalize(path) {
        Ok(real) => real,
        Err(_) if path.is_symlink() => {
            let why = "it is a link to a file that is not there";
            return Err(io::Error::new(io::ErrorKind::NotFound, why));
        }
        Err(_) => path.to_owned(),
    };
    if fs::metadata(&path).is_ok_and(|it| it.is_file() && it.permissions().readonly()) {
        let why = "it is read-only";
        return Err(io::Error::new(io::ErrorKind::PermissionDenied, why));
    }
    let mode = fs::metadata(&path).ok().map(|old| old.permissions());
    let draft = draft_of(&path);
    let written = write_new(&draft, text, USUAL_MODE).and_then(|_| match mode {
        Some(mode) => fs::set_permissions(&draft, mode),
        None => Ok(()),
    });
    swap(&draft, &path, written)
}

/// Replaces a file of our own, which only its owner may read. A link is replaced, never followed:
/// a store may come with a project, and nothing in it may lead us to another file.
///
/// # Errors
/// If the folder cannot be written to. The file is then as it was.
pub fn replace_private_file(path: &Path, text: &[u8]) -> io::Result<()> {
    let draft = draft_of(path);
    let written = write_new(&draft, text, PRIVATE_MODE).map(drop);
    swap(&draft, path, written)
}

/// Can a file be replaced? Found out without touching it.
///
/// # Errors
/// If its folder cannot be written to.
pub fn check_replaceable(path: &Path) -> io::Result<()> {
    let draft = draft_of(path);
    write_new(&draft, "", PRIVATE_MODE)?;
    fs::remove_file(&draft)
}

/// What a new file's mode is, before the user's mask.
const USUAL_MODE: u32 = 0o666;

/// Only its owner reads and writes it.
const PRIVATE_MODE: u32 = 0o600;

fn write_new(draft: &Path, text: impl AsRef<[u8]>, mode: u32) -> io::Result<File> {
    let open = || OpenOptions::new().create_new(true).write(true).mode(mode).open(draft);
    let mut file = match open() {
        // A process of the same number died before it could rename it.
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
            fs::remove_file(draft)?;
            open()?
        }
        opened => opened?,
    };
    file.write_all(text.as_ref())?;
    file.sync_data()?;
    Ok(file)
}

fn swap(draft: &Path, path: &Path, written: io::Result<()>) -> io::Result<()> {
    written.and_then(|()| fs::rename(draft, path)).inspect_err(|_| {
        // The draft is of no use to anyone.
        let _ = fs::remove_file(draft);
    })
}

/// A name beside a file for what is to take its place. No two threads or processes use the same.
fn draft_of(path: &Path) -> PathBuf {
    static NEXT: AtomicU64 = AtomicU64::new(0);
    let mut draft = path.to_owned().into_os_string();
    let n = NEXT.fetch_add(1, Ordering::Relaxed);
    draft.push(format!(".new-{}-{n}", std::process::id()));
    draft.into()
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{PermissionsExt, symlink};

    use super::*;

    fn mode_of(path: &Path) -> u32 {
        fs::metadata(path).unwrap().permissions().mode() & 0o777
    }

    #[test]
    fn a_users_file_keeps_its_mode_and_its_link() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        fs::write(at("real"), "old").unwrap();
        fs::set_permissions(at("real"), fs::Permissions::from_mode(0o640)).unwrap();
        symlink(at("real"), at("link")).unwrap();
        replace_users_file(&at("link"), "new").unwrap();
        assert_eq!(fs::read_to_string(at("real")).unwrap(), "new");
        assert_eq!(mode_of(&at("real")), 0o640);
        assert!(fs::symlink_metadata(at("link")).unwrap().is_symlink());
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 2);
    }

    #[test]
    fn a_users_link_to_nothing_and_a_read_only_file_stay_as_they_are() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        symlink(at("absent"), at("link")).unwrap();
        let refused = replace_users_file(&at("link"), "new").unwrap_err();
        assert!(refused.to_string().contains("link"), "{refused}");
        assert!(at("link").is_symlink() && !at("absent").exists());
        fs::write(at("kept"), "old").unwrap();
        fs::set_permissions(at("kept"), fs::Permissions::from_mode(0o444)).unwrap();
        let refused = replace_users_file(&at("kept"), "new").unwrap_err();
        assert!(refused.to_string().contains("read-only"), "{refused}");
        assert_eq!(fs::read_to_string(at("kept")).unwrap(), "old");
    }

    #[test]
    fn a_private_file_is_closed_to_others_and_replaces_a_link() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        fs::write(at("precious"), "precious").unwrap();
        symlink(at("precious"), at("ours")).unwrap();
        replace_private_file(&at("ours"), b"new").unwrap();
        assert_eq!(fs::read_to_string(at("precious")).unwrap(), "precious");
        assert_eq!(fs::read_to_string(at("ours")).unwrap(), "new");
        assert_eq!(mode_of(&at("ours")), 0o600);
    }

    #[test]
    fn a_replacement_that_fails_leaves_the_old_file_and_no_draft() {
        let folder = tempfile::tempdir().unwrap();
        let taken = folder.path().join("taken");
        fs::create_dir_all(taken.join("inside")).unwrap();
        assert!(replace_private_file(&taken, b"new").is_err());
        assert!(replace_users_file(&taken, "new").is_err());
        assert!(taken.join("inside").is_dir());
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
        assert!(check_replaceable(&folder.path().join("absent/file")).is_err());
        assert!(check_replaceable(&folder.path().join("file")).is_ok());
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
    }
}
