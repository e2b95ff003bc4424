//! Reads, replaces and removes files at safe paths.

use std::fs::File;
use std::io::{self, Read as _, Write as _};
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt as _;

use rustix::fs::{AtFlags, FileType, Gid, Mode, OFlags, Stat, Uid};
use rustix::io::Errno;
use stepwell::model::Digest;

use crate::safe_path::{Last, Root, SafePath};

/// The largest file that a file tool reads or replaces: its old and new contents are held in
/// memory.
pub const MAX_FILE_BYTES: u64 = 50 << 20;

/// The name prefix of temporary files.
const SCRATCH: &str = ".stepwell-new-";

/// The current state of a planned path. Its digest shows whether the plan was carried out.
pub fn look(root: &Root, path: &str) -> Result<Content, String> {
    SafePath::find(root, path, Last::Keep)?.content()
}

/// Is it a temporary file, perhaps of a killed process?
pub fn is_scratch(name: &std::ffi::OsStr) -> bool {
    name.as_encoded_bytes().starts_with(SCRATCH.as_bytes())
}

/// The content of a path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Content {
    /// No file.
    Absent,
    /// A file.
    File {
        /// Its bytes.
        bytes: Vec<u8>,
        /// Its permission bits.
        mode: u32,
    },
    /// A symbolic link.
    Symlink(String),
    /// A file whose bytes are not kept, for this reason.
    NotKept(String),
}

impl Content {
    /// The digest for plans; `None` for no file. A link's digest covers its target after a fixed
    /// prefix, so that no file with the target as content has the same digest.
    #[must_use]
    pub fn digest(&self) -> Option<Digest> {
        match self {
            Self::Absent | Self::NotKept(_) => None,
            Self::File { bytes, .. } => Some(Digest::of(bytes)),
            Self::Symlink(target) => Some(Digest::of(as_link(target).as_bytes())),
        }
    }
}

/// Precedes a link's target where a file has its bytes.
pub const AS_LINK: &str = "symlink\0";

/// A link as bytes of its own kind.
pub fn as_link(target: &str) -> String {
    format!("{AS_LINK}{target}")
}

impl SafePath {
    /// The content of the path. The error is for the model.
    pub fn content(&self) -> Result<Content, String> {
        match self.kind() {
            None => Ok(Content::Absent),
            Some(FileType::Symlink) => {
                let target = rustix::fs::readlinkat(&self.folder, &self.name, Vec::new())
                    .map_err(|error| self.failed(error))?;
                let target = target.into_string();
                Ok(Content::Symlink(target.map_err(|_| self.says("its target is not UTF-8"))?))
            }
            Some(_) => {
                let file = self.open()?;
                let stat = rustix::fs::fstat(&file).map_err(|error| self.failed(error))?;
                let mut bytes = Vec::new();
                let read = file.take(MAX_FILE_BYTES + 1).read_to_end(&mut bytes);
                read.map_err(|error| self.says(error))?;
                if bytes.len() as u64 > MAX_FILE_BYTES {
                    return Err(self.too_large());
                }
                Ok(Content::File { bytes, mode: bits(&stat) })
            }
        }
    }

    /// Opens the regular file. Pipes and devices are refused without blocking.
    pub fn open(&self) -> Result<File, String> {
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        match self.kind() {
            None => return Err(self.says("there is no such file")),
            Some(FileType::Directory) => return Err(self.says("it is a folder")),
            Some(FileType::RegularFile) => {}
            Some(_) => return Err(self.says("it is not a regular file")),
        }
        let file = rustix::fs::openat(&self.folder, &self.name, flags, Mode::empty())
            .map_err(|error| self.failed(error))?;
        let stat = rustix::fs::fstat(&file).map_err(|error| self.failed(error))?;
        if FileType::from_raw_mode(stat.st_mode) != FileType::RegularFile {
            return Err(self.says("it is not a regular file"));
        }
        if u64::try_from(stat.st_size).is_ok_and(|size| size > MAX_FILE_BYTES) {
            return Err(self.too_large());
        }
        Ok(file.into())
    }

    /// Replaces the file atomically and durably: a temporary file is written, flushed, and renamed.
    /// The old file's mode is kept. Returns the mode.
    pub fn replace(&self, bytes: &[u8]) -> Result<u32, String> {
        if self.kind().is_some_and(|kind| kind != FileType::RegularFile) {
            return Err(self.says("it is not a regular file"));
        }
        let made = self.make_folders().map_err(|error| self.failed(error))?;
        let folder = made.as_ref().unwrap_or(&self.folder);
        self.replace_in(folder, bytes, Permissions::Kept).map_err(|error| self.says(error))
    }

    /// Writes a file with these bytes and this mode, in place of a file, a link or an empty folder.
    pub fn put_file(&self, bytes: &[u8], mode: u32) -> Result<(), String> {
        let made = self.make_room()?;
        let folder = made.as_ref().unwrap_or(&self.folder);
        let exactly = Permissions::Exactly(mode);
        self.replace_in(folder, bytes, exactly).map(drop).map_err(|error| self.says(error))
    }

    /// Creates a link, in place of a file, a link or an empty folder.
    pub fn put_link(&self, target: &str) -> Result<(), String> {
        let made = self.make_room()?;
        let folder = made.as_ref().unwrap_or(&self.folder);
        let name = scratch_name(&self.name);
        let placed = (|| {
            match rustix::fs::unlinkat(folder, &name, AtFlags::empty()) {
                Ok(()) | Err(Errno::NOENT) => {}
                Err(error) => return Err(error),
            }
            rustix::fs::symlinkat(target, folder, &name)?;
            rustix::fs::renameat(folder, &name, folder, &self.name)?;
            sync_folder(folder)
        })();
        placed.map_err(|error| self.failed(error))
    }

    /// Creates the parent folders, and removes a folder at the path if it contains only empty
    /// folders.
    fn make_room(&self) -> Result<Option<OwnedFd>, String> {
        if self.kind() == Some(FileType::Directory) {
            [Hollow::Looked, Hollow::Removed]
                .into_iter()
                .try_for_each(|hollow| hollow.out(&self.folder, &self.name))
                .map_err(|error| self.says(format_args!("a folder stands there: {error}")))?;
        }
        self.make_folders().map_err(|error| self.failed(error))
    }

    fn replace_in(
        &self,
        folder: &OwnedFd,
        bytes: &[u8],
        permissions: Permissions,
    ) -> io::Result<u32> {
        let name = scratch_name(&self.name);
        let mut file = self.scratch(folder, &name, permissions)?;
        let written = (|| {
            file.set_len(0)?;
            file.write_all(bytes)?;
            let regular = self.kind() == Some(FileType::RegularFile);
            if let Some(stat) = self.stat.as_ref().filter(|_| regular) {
                // Only a privileged process may give a file away; for others it has the right owner
                // already.
                let owner = (Uid::from_raw(stat.st_uid), Gid::from_raw(stat.st_gid));
                let _ = rustix::fs::fchown(&file, Some(owner.0), Some(owner.1));
                rustix::fs::fchmod(&file, mode_of(stat))?;
            }
            if let Permissions::Exactly(mode) = permissions {
                #[allow(clippy::unnecessary_cast, reason = "the types differ between platforms")]
                let mode = Mode::from_raw_mode(mode as rustix::fs::RawMode);
                rustix::fs::fchmod(&file, mode)?;
            }
            file.sync_all()?;
            let mode = bits(&rustix::fs::fstat(&file)?);
            rustix::fs::renameat(folder, &name, folder, &self.name)?;
            sync_folder(folder)?;
            Ok(mode)
        })();
        if written.is_err() {
            let _ = rustix::fs::unlinkat(folder, &name, AtFlags::empty());
        }
        written
    }

    /// Opens the temporary file. Its name depends only on the target's, so that the next write
    /// reuses one that a killed process left behind; its lock keeps two living processes apart.
    fn scratch(&self, folder: &OwnedFd, name: &str, permissions: Permissions) -> io::Result<File> {
        let flags = OFlags::RDWR | OFlags::CREATE | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        // A file that others may not read must not be readable while it is written.
        let usual = self.stat.is_none() && matches!(permissions, Permissions::Kept);
        let mode = Mode::from_raw_mode(if usual { 0o666 } else { 0o600 });
        loop {
            let file: File = match rustix::fs::openat(folder, name, flags, mode) {
                // A link that a killed process was about to rename.
                Err(Errno::LOOP) => {
                    rustix::fs::unlinkat(folder, name, AtFlags::empty())?;
                    continue;
                }
                opened => opened?.into(),
            };
            file.lock()?;
            let ours = rustix::fs::fstat(&file)?;
            match rustix::fs::statat(folder, name, AtFlags::SYMLINK_NOFOLLOW) {
                Ok(there) if (there.st_dev, there.st_ino) == (ours.st_dev, ours.st_ino) => {
                    return Ok(file);
                }
                // Its last holder renamed it while this process waited for the lock.
                Ok(_) | Err(Errno::NOENT) => {}
                Err(error) => return Err(error.into()),
            }
        }
    }

    /// Creates missing folders and returns the last one.
    fn make_folders(&self) -> rustix::io::Result<Option<OwnedFd>> {
        let mut made: Option<OwnedFd> = None;
        for name in &self.missing {
            let parent = made.as_ref().unwrap_or(&self.folder);
            match rustix::fs::mkdirat(parent, name, Mode::from_raw_mode(0o777)) {
                Ok(()) => sync_folder(parent)?,
                Err(Errno::EXIST) => {}
                Err(error) => return Err(error),
            }
            let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
            made = Some(rustix::fs::openat(parent, name, flags, Mode::empty())?);
        }
        Ok(made)
    }

    /// Removes the file or link.
    pub fn remove(&self) -> Result<(), String> {
        rustix::fs::unlinkat(&self.folder, &self.name, AtFlags::empty())
            .and_then(|()| sync_folder(&self.folder))
            .map_err(|error| self.failed(error))
    }

    /// The digest, size and mode of the regular file, of any size.
    pub fn measure(&self) -> Result<(Digest, u64, u32), String> {
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let file = rustix::fs::openat(&self.folder, &self.name, flags, Mode::empty())
            .map_err(|error| self.failed(error))?;
        let stat = rustix::fs::fstat(&file).map_err(|error| self.failed(error))?;
        let (digest, size) =
            Digest::of_reader(File::from(file)).map_err(|error| self.says(error))?;
        Ok((digest, size, bits(&stat)))
    }

    /// A message about this path.
    pub fn says(&self, what: impl std::fmt::Display) -> String {
        let path = if self.path.is_empty() { "." } else { &self.path };
        format!("{path}: {what}")
    }

    fn failed(&self, error: Errno) -> String {
        match error {
            Errno::LOOP => self.says("it was changed meanwhile"),
            error => self.says(error),
        }
    }

    fn too_large(&self) -> String {
        let limit = MAX_FILE_BYTES >> 20;
        self.says(format!("it is larger than {limit} MiB; use search, or a command"))
    }
}

/// How to treat folders without files. All are checked before the first is removed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Hollow {
    Looked,
    Removed,
}

impl Hollow {
    fn out(self, parent: &OwnedFd, name: &std::ffi::OsStr) -> rustix::io::Result<()> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let folder = rustix::fs::openat(parent, name, flags, Mode::empty())?;
        for entry in rustix::fs::Dir::read_from(&folder)? {
            let entry = entry?;
            let name = std::ffi::OsStr::from_bytes(entry.file_name().to_bytes());
            if name == "." || name == ".." {
                continue;
            }
            let stat = rustix::fs::statat(&folder, name, AtFlags::SYMLINK_NOFOLLOW)?;
            match FileType::from_raw_mode(stat.st_mode) {
                FileType::Directory => self.out(&folder, name)?,
                _ => return Err(Errno::NOTEMPTY),
            }
        }
        match self {
            Self::Looked => Ok(()),
            Self::Removed => rustix::fs::unlinkat(parent, name, AtFlags::REMOVEDIR),
        }
    }
}

/// File names may be long, but a temporary file's name needs room for its prefix.
fn scratch_name(name: &std::ffi::OsStr) -> String {
    let digest = Digest::of(name.as_encoded_bytes()).to_string();
    format!("{SCRATCH}{}", &digest[..16])
}

/// The permissions of a written file.
#[derive(Clone, Copy, Debug)]
enum Permissions {
    /// The old file's, else the usual ones.
    Kept,
    /// Exactly these.
    Exactly(u32),
}

fn mode_of(stat: &Stat) -> Mode {
    Mode::from_raw_mode(stat.st_mode)
}

/// The type of these fields differs between platforms.
#[allow(clippy::useless_conversion, reason = "it is none on macOS")]
fn bits(stat: &Stat) -> u32 {
    mode_of(stat).bits().into()
}

fn sync_folder(folder: &OwnedFd) -> rustix::io::Result<()> {
    match rustix::fs::fsync(folder) {
        // Some file systems cannot flush a folder.
        Err(Errno::INVAL) => Ok(()),
        other => other,
    }
}
