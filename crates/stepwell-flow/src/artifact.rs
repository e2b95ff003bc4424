//! Artifacts: the files that a flow writes into its output folder, atomically.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write as _};
use std::path::{Component, Path, PathBuf};

use stepwell::model::{Artifact, Digest};
use stepwell_files::started::{is_git, is_named_to_git, is_started};

/// What to do if an artifact's file already exists.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Over {
    /// Keep the existing file; the artifact is not written.
    Refuse,
    /// Overwrite it.
    Replace,
}

/// The folder that a flow's artifacts are written to.
#[derive(Clone, Debug)]
pub struct Folder {
    /// Its path. It is created if it does not exist.
    pub root: PathBuf,
    /// What to do if a file already exists.
    pub over: Over,
    /// The session store's folder, whatever its name: no artifact is written there.
    pub store: Option<PathBuf>,
}

/// Why an artifact could not be written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unwritten {
    /// The file already exists; the caller may allow replacing it.
    InTheWay,
    /// The spec gives a bad path or content; only a change of the spec helps.
    Described,
    /// The output folder or the disk cannot take it.
    Folder,
}

/// Names that control Stepwell. An artifact with such a name could change what it does.
const RESERVED: [&str; 2] = [stepwell::store::STORE_FOLDER, "stepwell.toml"];

/// A normalized path inside an output folder.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ArtifactPath(Vec<String>);

impl ArtifactPath {
    /// Parses a path. The error says why it is not a file inside the folder.
    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        let mut parts = Vec::new();
        let text = text.trim();
        for part in Path::new(text).components() {
            match part {
                Component::CurDir => {}
                Component::Normal(part) => {
                    let part = part.to_str().ok_or("it is not UTF-8 text")?;
                    if part.chars().any(char::is_control) {
                        return Err("it contains a control character".to_owned());
                    }
                    parts.push(part.to_owned());
                }
                Component::ParentDir => return Err("it leaves the folder (`..`)".to_owned()),
                Component::RootDir | Component::Prefix(_) => {
                    return Err("it is absolute, not inside the output folder".to_owned());
                }
            }
        }
        if parts.is_empty() || text.ends_with('/') {
            return Err("it does not name a file".to_owned());
        }
        let is_reserved =
            |part: &String| RESERVED.iter().any(|it| part.eq_ignore_ascii_case(it)) || is_git(part);
        if let Some(part) = parts.iter().find(|part| is_reserved(part)) {
            return Err(format!("`{part}` is reserved: a flow cannot write it"));
        }
        let path = Self(parts);
        match is_started(&path.text()) {
            true => Err("other programs run it unasked: a flow cannot write it".to_owned()),
            false => Ok(path),
        }
    }

    /// Whether both cannot exist as files: they are equal, or one is a folder of the other.
    pub(crate) fn clashes(&self, other: &Self) -> bool {
        self.0.starts_with(&other.0) || other.0.starts_with(&self.0)
    }

    /// The canonical text: equal paths have equal texts.
    pub(crate) fn text(&self) -> String {
        self.0.join("/")
    }
}

/// An artifact that could not be written, and a message about it.
#[derive(Debug)]
pub(crate) struct WriteError {
    pub(crate) why: Unwritten,
    pub(crate) what: String,
}

impl WriteError {
    pub(crate) const fn new(why: Unwritten, what: String) -> Self {
        Self { why, what }
    }
}

impl Folder {
    /// Writes a file atomically. Succeeds without writing if the file already has this content.
    pub(crate) fn write(&self, path: &ArtifactPath, text: &str) -> Result<Artifact, WriteError> {
        let digest = Digest::of(text.as_bytes());
        let artifact = Artifact { path: path.text(), digest };
        let failed = |error: &io::Error| {
            let what = format!("{}: {error}", self.root.join(path.text()).display());
            WriteError::new(Unwritten::Folder, what)
        };
        fs::create_dir_all(&self.root).map_err(|error| failed(&error))?;
        let (name, folders) = path.0.split_last().expect("a path names a file");
        let mut folder = self.root.clone();
        self.refuse_store(&folder)?;
        for part in folders {
            folder.push(part);
            ensure_folder(&folder).map_err(|error| failed(&error))?;
            self.refuse_store(&folder)?;
        }
        let target = folder.join(name);
        if std::path::absolute(&target).is_ok_and(|target| is_named_to_git(&target)) {
            let what = format!(
                "{}: git runs it, by the repository's settings or the user's",
                target.display()
            );
            return Err(WriteError::new(Unwritten::Described, what));
        }
        match fs::symlink_metadata(&target) {
            Ok(meta) if meta.is_symlink() => {
                let what = format!("{}: symbolic links are not followed", target.display());
                return Err(WriteError::new(Unwritten::Folder, what));
            }
            Ok(meta) if !meta.is_file() => {
                let what = format!("{}: not a regular file", target.display());
                return Err(WriteError::new(Unwritten::Folder, what));
            }
            Ok(_) if fs::read(&target).is_ok_and(|bytes| Digest::of(&bytes) == digest) => {
                return Ok(artifact);
            }
            Ok(_) if self.over == Over::Refuse => return Err(exists(&target)),
            _ => {}
        }
        self.write_atomically(&folder, &target, text).map_err(|error| match error.kind() {
            io::ErrorKind::AlreadyExists => exists(&target),
            _ => failed(&error),
        })?;
        Ok(artifact)
    }

    /// Refuses a folder inside the session store, also if a link leads there.
    fn refuse_store(&self, folder: &Path) -> Result<(), WriteError> {
        let Some(store) = self.store.as_ref().and_then(|store| fs::canonicalize(store).ok()) else {
            return Ok(());
        };
        match fs::canonicalize(folder) {
            Ok(folder) if folder.starts_with(&store) => {
                let what = format!("{}: this is inside the session store", folder.display());
                Err(WriteError::new(Unwritten::Described, what))
            }
            _ => Ok(()),
        }
    }

    fn write_atomically(&self, folder: &Path, target: &Path, text: &str) -> io::Result<()> {
        let name = target.file_name().unwrap_or_default().to_string_lossy();
        // A fixed name: the next attempt replaces a draft that a killed process left.
        let draft = folder.join(format!(".{name}.stepwell-draft"));
        match fs::remove_file(&draft) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
        let mut file = OpenOptions::new().write(true).create_new(true).open(&draft)?;
        file.write_all(text.as_bytes())?;
        file.sync_all()?;
        let moved = match self.over {
            // A hard link fails if somebody created the file in the meantime.
            Over::Refuse => fs::hard_link(&draft, target).and_then(|()| fs::remove_file(&draft)),
            Over::Replace => fs::rename(&draft, target),
        };
        if moved.is_err() {
            let _ = fs::remove_file(&draft);
        }
        moved?;
        File::open(folder)?.sync_all()
    }
}

/// Creates a folder if it does not exist. Refuses symbolic links: they may lead elsewhere.
fn ensure_folder(folder: &Path) -> io::Result<()> {
    match fs::symlink_metadata(folder) {
        Ok(meta) if meta.is_dir() => Ok(()),
        Ok(meta) if meta.is_symlink() => {
            let what = format!("symbolic links are not followed: {}", folder.display());
            Err(io::Error::other(what))
        }
        Ok(_) => Err(io::Error::other(format!("{} is not a folder", folder.display()))),
        Err(error) if error.kind() == io::ErrorKind::NotFound => fs::create_dir(folder),
        Err(error) => Err(error),
    }
}

fn exists(target: &Path) -> WriteError {
    let what = format!("{} already exists; --force replaces it", target.display());
    WriteError::new(Unwritten::InTheWay, what)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn write(folder: &Folder, path: &str, text: &str) -> Result<Artifact, String> {
        folder.write(&ArtifactPath::parse(path)?, text).map_err(|error| error.what)
    }

    fn folder(over: Over) -> (tempfile::TempDir, Folder) {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().join("out");
        (dir, Folder { root, over, store: None })
    }

    #[test]
    fn missing_folders_are_created_for_an_artifact() {
        let (_dir, folder) = folder(Over::Refuse);
        let artifact = write(&folder, "./a/b/report.md", "text").unwrap();
        assert_eq!(artifact.path, "a/b/report.md");
        assert_eq!(fs::read_to_string(folder.root.join("a/b/report.md")).unwrap(), "text");
        assert_eq!(fs::read_dir(folder.root.join("a/b")).unwrap().count(), 1, "no draft is left");
    }

    #[test]
    fn a_path_outside_the_folder_is_refused() {
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
            ".envrc",
            "home/.bashrc",
            ".vscode/tasks.json",
            ".hg/hgrc",
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
    fn nothing_is_written_where_a_repository_has_its_hooks() {
        let (_dir, folder) = folder(Over::Replace);
        fs::create_dir_all(folder.root.join(".git")).unwrap();
        fs::write(folder.root.join(".git/config"), "[core]\nhooksPath = ci/hooks\n").unwrap();
        let why = write(&folder, "ci/hooks/pre-commit", "touch pwned").unwrap_err();
        assert!(why.contains("git runs it, by the repository's settings"), "{why}");
        assert!(!folder.root.join("ci/hooks/pre-commit").exists());
        write(&folder, "ci/report.md", "x").unwrap();
    }

    #[test]
    fn nothing_is_written_into_the_store_whatever_its_name() {
        let (dir, mut folder) = folder(Over::Replace);
        let store = folder.root.join("mystore");
        fs::create_dir_all(&store).unwrap();
        fs::write(store.join("stepwell.db"), "sessions").unwrap();
        std::os::unix::fs::symlink(&store, dir.path().join("link")).unwrap();
        // The store may be given by a link or by a path with `..`.
        for named in [store.clone(), dir.path().join("link"), store.join("../mystore")] {
            folder.store = Some(named);
            for path in ["mystore/stepwell.db", "mystore/new/x"] {
                let why = write(&folder, path, "x").unwrap_err();
                assert!(why.ends_with("this is inside the session store"), "{why}");
            }
            let inside = Folder { root: store.clone(), ..folder.clone() };
            assert!(write(&inside, "stepwell.db", "x").is_err());
        }
        assert_eq!(fs::read_to_string(store.join("stepwell.db")).unwrap(), "sessions");
        assert!(!store.join("new").exists());
        write(&folder, "beside.md", "x").unwrap();
    }

    #[test]
    fn an_existing_file_is_kept_unless_replacing_is_allowed() {
        let (_dir, mut folder) = folder(Over::Refuse);
        write(&folder, "r", "mine").unwrap();
        assert!(write(&folder, "r", "other").unwrap_err().contains("--force"));
        assert_eq!(fs::read_to_string(folder.root.join("r")).unwrap(), "mine");
        // As after a run that wrote the file and died before it recorded that.
        write(&folder, "r", "mine").unwrap();
        folder.over = Over::Replace;
        write(&folder, "r", "other").unwrap();
        assert_eq!(fs::read_to_string(folder.root.join("r")).unwrap(), "other");
    }
}
