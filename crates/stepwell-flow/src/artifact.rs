//! Artifacts: files that a flow leaves behind, whole or not at all, inside its output folder.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write as _};
use std::path::{Component, Path, PathBuf};

use stepwell::{Artifact, Digest};

/// What happens to a file that is there already.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Over {
    /// It stays, and the artifact is not written.
    Refuse,
    /// It is replaced.
    Replace,
}

/// The folder that a flow's artifacts are written to.
#[derive(Clone, Debug)]
pub struct Folder {
    /// Where.
    pub root: PathBuf,
    /// What happens to files that are there already.
    pub over: Over,
    /// Where sessions are kept, whatever it is called: nothing is written there.
    pub store: Option<PathBuf>,
}

/// What keeps an artifact from being written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unwritten {
    /// A file is there that may be replaced.
    InTheWay,
    /// Its path, or what it is to hold: only another spec helps.
    Described,
    /// The folder, or the disk.
    Folder,
}

/// What git and Stepwell act by: whoever writes it decides what they do.
const OWN: [&str; 3] = [stepwell::STORE_FOLDER, ".git", "stepwell.toml"];

/// A path inside an output folder.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Inside(Vec<String>);

impl Inside {
    /// Reads a path. The error says why it leads elsewhere.
    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        let mut parts = Vec::new();
        let text = text.trim();
        for part in Path::new(text).components() {
            match part {
                Component::CurDir => {}
                Component::Normal(part) => {
                    let part = part.to_str().ok_or("it is no text")?;
                    if part.chars().any(char::is_control) {
                        return Err("it holds a control character".to_owned());
                    }
                    parts.push(part.to_owned());
                }
                Component::ParentDir => return Err("it leads out of the folder (`..`)".to_owned()),
                Component::RootDir | Component::Prefix(_) => {
                    return Err("it is absolute; it must be inside the output folder".to_owned());
                }
            }
        }
        if parts.is_empty() || text.ends_with('/') {
            return Err("it names no file".to_owned());
        }
        let is_own = |part: &String| OWN.iter().any(|own| part.eq_ignore_ascii_case(own));
        if let Some(part) = parts.iter().find(|part| is_own(part)) {
            return Err(format!("`{part}` is not for what a flow writes"));
        }
        Ok(Self(parts))
    }

    /// Would one of two be a folder of the other, or are they the same?
    pub(crate) fn clashes(&self, other: &Self) -> bool {
        self.0.starts_with(&other.0) || other.0.starts_with(&self.0)
    }

    /// It as text, the same for all ways of writing it.
    pub(crate) fn text(&self) -> String {
        self.0.join("/")
    }
}

impl Folder {
    /// Writes a file, whole or not at all. A file that holds just this is as good as written.
    pub(crate) fn write(&self, path: &Inside, text: &str) -> Result<Artifact, (Unwritten, String)> {
        let digest = Digest::of(text.as_bytes());
        let artifact = Artifact { path: path.text(), digest };
        let at = |error: &io::Error| {
            let what = format!("{}: {error}", self.root.join(path.text()).display());
            (Unwritten::Folder, what)
        };
        fs::create_dir_all(&self.root).map_err(|error| at(&error))?;
        let (name, folders) = path.0.split_last().expect("a path names a file");
        let mut folder = self.root.clone();
        self.refuse_store(&folder)?;
        for part in folders {
            folder.push(part);
            enter(&folder).map_err(|error| at(&error))?;
            self.refuse_store(&folder)?;
        }
        let target = folder.join(name);
        match fs::symlink_metadata(&target) {
            Ok(meta) if meta.is_symlink() => {
                let what = format!("{}: it is a link, and may lead elsewhere", target.display());
                return Err((Unwritten::Folder, what));
            }
            Ok(meta) if !meta.is_file() => {
                return Err((Unwritten::Folder, format!("{}: it is no file", target.display())));
            }
            Ok(_) if fs::read(&target).is_ok_and(|bytes| Digest::of(&bytes) == digest) => {
                return Ok(artifact);
            }
            Ok(_) if self.over == Over::Refuse => return Err(exists(&target)),
            _ => {}
        }
        self.put(&folder, &target, text).map_err(|error| match error.kind() {
            io::ErrorKind::AlreadyExists => exists(&target),
            _ => at(&error),
        })?;
        Ok(artifact)
    }

    /// Refuses a folder that lies where sessions are kept, by whatever way it is reached.
    fn refuse_store(&self, folder: &Path) -> Result<(), (Unwritten, String)> {
        let Some(store) = self.store.as_ref().and_then(|store| fs::canonicalize(store).ok()) else {
            return Ok(());
        };
        match fs::canonicalize(folder) {
            Ok(folder) if folder.starts_with(&store) => {
                let what = format!("{}: sessions are kept there", folder.display());
                Err((Unwritten::Described, what))
            }
            _ => Ok(()),
        }
    }

    fn put(&self, folder: &Path, target: &Path, text: &str) -> io::Result<()> {
        let name = target.file_name().unwrap_or_default().to_string_lossy();
        // The same each time, so that one that a dead process left is not left again.
        let draft = folder.join(format!(".{name}.stepwell-draft"));
        match fs::remove_file(&draft) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
        let mut file = OpenOptions::new().write(true).create_new(true).open(&draft)?;
        file.write_all(text.as_bytes())?;
        file.sync_all()?;
        let placed = match self.over {
            // Not over a file that came in the meantime.
            Over::Refuse => fs::hard_link(&draft, target).and_then(|()| fs::remove_file(&draft)),
            Over::Replace => fs::rename(&draft, target),
        };
        if placed.is_err() {
            let _ = fs::remove_file(&draft);
        }
        placed?;
        File::open(folder)?.sync_all()
    }
}

/// Goes into a folder, which is made if there is none. A link may lead elsewhere.
fn enter(folder: &Path) -> io::Result<()> {
    match fs::symlink_metadata(folder) {
        Ok(meta) if meta.is_dir() => Ok(()),
        Ok(meta) if meta.is_symlink() => {
            Err(io::Error::other(format!("{} is a link, and may lead elsewhere", folder.display())))
        }
        Ok(_) => Err(io::Error::other(format!("{} is no folder", folder.display()))),
        Err(error) if error.kind() == io::ErrorKind::NotFound => fs::create_dir(folder),
        Err(error) => Err(error),
    }
}

fn exists(target: &Path) -> (Unwritten, String) {
    (Unwritten::InTheWay, format!("{} is there already; --force replaces it", target.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn write(folder: &Folder, path: &str, text: &str) -> Result<Artifact, String> {
        folder.write(&Inside::parse(path)?, text).map_err(|(_, what)| what)
    }

    fn folder(over: Over) -> (tempfile::TempDir, Folder) {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().join("out");
        (dir, Folder { root, over, store: None })
    }

    #[test]
    fn an_artifact_is_written_into_folders_that_are_made_for_it() {
        let (_dir, folder) = folder(Over::Refuse);
        let artifact = write(&folder, "./a/b/report.md", "text").unwrap();
        assert_eq!(artifact.path, "a/b/report.md");
        assert_eq!(fs::read_to_string(folder.root.join("a/b/report.md")).unwrap(), "text");
        assert_eq!(fs::read_dir(folder.root.join("a/b")).unwrap().count(), 1, "no draft is left");
    }

    #[test]
    fn a_path_that_leads_elsewhere_is_refused() {
        let (dir, folder) = folder(Over::Replace);
        for path in [
            "/etc/x",
            "../x",
            "a/../../x",
            "",
            ".",
            "a/",
            ".stepwell/x",
            "a\nb",
            ".git/hooks/x",
            "a/.GIT",
            "stepwell.toml",
        ] {
            assert!(write(&folder, path, "x").is_err(), "{path:?}");
        }
        fs::create_dir_all(&folder.root).unwrap();
        std::os::unix::fs::symlink(dir.path(), folder.root.join("link")).unwrap();
        std::os::unix::fs::symlink(dir.path().join("y"), folder.root.join("file")).unwrap();
        assert!(write(&folder, "link/x", "x").is_err());
        assert!(write(&folder, "file", "x").is_err());
        assert!(!dir.path().join("x").exists() && !dir.path().join("y").exists());
    }

    #[test]
    fn nothing_is_written_where_sessions_are_kept_whatever_it_is_called() {
        let (dir, mut folder) = folder(Over::Replace);
        let store = folder.root.join("mystore");
        fs::create_dir_all(&store).unwrap();
        fs::write(store.join("stepwell.db"), "sessions").unwrap();
        std::os::unix::fs::symlink(&store, dir.path().join("link")).unwrap();
        // It may be named by a link, and by any of its ways.
        for named in [store.clone(), dir.path().join("link"), store.join("../mystore")] {
            folder.store = Some(named);
            for path in ["mystore/stepwell.db", "mystore/new/x"] {
                let why = write(&folder, path, "x").unwrap_err();
                assert!(why.ends_with("sessions are kept there"), "{why}");
            }
            let inside = Folder { root: store.clone(), ..folder.clone() };
            assert!(write(&inside, "stepwell.db", "x").is_err());
        }
        assert_eq!(fs::read_to_string(store.join("stepwell.db")).unwrap(), "sessions");
        assert!(!store.join("new").exists());
        write(&folder, "beside.md", "x").unwrap();
    }

    #[test]
    fn a_file_that_is_there_stays_unless_it_may_be_replaced() {
        let (_dir, mut folder) = folder(Over::Refuse);
        write(&folder, "r", "mine").unwrap();
        assert!(write(&folder, "r", "other").unwrap_err().contains("--force"));
        assert_eq!(fs::read_to_string(folder.root.join("r")).unwrap(), "mine");
        // Written by a run that died before it could say so.
        write(&folder, "r", "mine").unwrap();
        folder.over = Over::Replace;
        write(&folder, "r", "other").unwrap();
        assert_eq!(fs::read_to_string(folder.root.join("r")).unwrap(), "other");
    }
}
