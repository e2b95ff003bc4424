//! The socket of a session's run: where it is, and who gets in.

use std::fs::{self, DirBuilder, File, Permissions};
use std::io::{self, ErrorKind};
use std::os::unix::fs::{
    DirBuilderExt as _, FileTypeExt as _, MetadataExt as _, PermissionsExt as _,
};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::time::Duration;

use stepwell::SessionId;
use stepwell::model::Digest;
use stepwell_workspace::Workspace;

/// How long the path of a socket may be: 104 bytes with a zero where it is shortest, on macOS.
const LONGEST_PATH: usize = 100;

/// How many digits of a digest name a socket: too many for two sessions to share them.
const NAME_LENGTH: usize = 24;

/// What a socket that nobody answers at is left alone for: it may be one that is being made.
const NEW: Duration = Duration::from_secs(3600);

/// Where the socket of a session may be.
#[derive(Clone, Debug)]
pub(super) struct Address {
    /// Folders, the better ones first. Processes of one user may know different ones: not each has
    /// the variables of a login.
    folders: Vec<PathBuf>,
    name: String,
}

/// A socket that a run listens at.
#[derive(Debug)]
pub(super) struct Bound {
    pub(super) listener: UnixListener,
    pub(super) file: SocketFile,
}

/// The file of a socket. It goes when this is dropped, unless another run has put its own there.
#[derive(Debug)]
pub(super) struct SocketFile {
    path: PathBuf,
    inode: u64,
}

impl Address {
    /// Of a session in a workspace's store. Two stores may know the same session.
    pub(super) fn of(workspace: &Workspace, session: &SessionId) -> Self {
        let place = &workspace.place;
        let store = match &place.team {
            Some(team) => team.shown().display().to_string(),
            None => {
                let folder = place.store.canonicalize().unwrap_or_else(|_| place.store.clone());
                folder.display().to_string()
            }
        };
        let digest = Digest::of(format!("{store}\n{session}").as_bytes()).to_string();
        let digits = digest.rsplit(':').next().unwrap_or_default();
        let name = digits.chars().take(NAME_LENGTH).collect::<String>() + ".live";
        let host = &workspace.host;
        let state = host.state.as_ref().map(|folder| folder.join("live"));
        Self { folders: host.runtime.clone().into_iter().chain(state).collect(), name }
    }

    /// Listens in the first folder that can be had.
    pub(super) fn bind(&self) -> io::Result<Bound> {
        let mut failed = io::Error::from(ErrorKind::NotFound);
        for folder in &self.folders {
            match bind(folder, &self.name) {
                Ok(bound) => return Ok(bound),
                Err(error) => failed = error,
            }
        }
        Err(failed)
    }

    /// Reaches a run that listens.
    pub(super) fn connect(&self) -> Option<UnixStream> {
        let mut found = self.folders.iter().filter(|folder| is_private(folder));
        found.find_map(|folder| reach(folder, &self.name, |path| UnixStream::connect(path)).ok())
    }
}

fn bind(folder: &Path, name: &str) -> io::Result<Bound> {
    DirBuilder::new().recursive(true).mode(0o700).create(folder)?;
    if !is_private(folder) {
        return Err(ErrorKind::PermissionDenied.into());
    }
    let path = folder.join(name);
    // Only one runs a session, so what is there was left by one that died, or that lost it.
    match fs::remove_file(&path) {
        Err(error) if error.kind() != ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    let listener = reach(folder, name, |path| UnixListener::bind(path))?;
    fs::set_permissions(&path, Permissions::from_mode(0o600))?;
    let inode = fs::symlink_metadata(&path)?.ino();
    Ok(Bound { listener, file: SocketFile { path, inode } })
}

/// Is a folder the user's, and nobody else's?
fn is_private(folder: &Path) -> bool {
    let own = rustix::process::geteuid().as_raw();
    fs::symlink_metadata(folder)
        .is_ok_and(|it| it.is_dir() && it.uid() == own && it.mode().trailing_zeros() >= 6)
}

/// Does something with a socket's path, or, if that is too long for a socket, with another one of
/// the same file.
fn reach<T>(folder: &Path, name: &str, open: impl FnOnce(&Path) -> io::Result<T>) -> io::Result<T> {
    let path = folder.join(name);
    if path.as_os_str().len() <= LONGEST_PATH {
        return open(&path);
    }
    reach_by_handle(&File::open(folder)?, name, open)
}

#[cfg(target_os = "linux")]
fn reach_by_handle<T>(
    folder: &File,
    name: &str,
    open: impl FnOnce(&Path) -> io::Result<T>,
) -> io::Result<T> {
    use std::os::fd::AsRawFd as _;
    open(&Path::new("/proc/self/fd").join(folder.as_raw_fd().to_string()).join(name))
}

#[cfg(not(target_os = "linux"))]
fn reach_by_handle<T>(_: &File, _: &str, _: impl FnOnce(&Path) -> io::Result<T>) -> io::Result<T> {
    Err(ErrorKind::InvalidInput.into())
}

impl SocketFile {
    /// Removes old sockets beside this one that nobody listens at: their runs died.
    pub(super) fn sweep(&self) {
        let Some(folder) = self.path.parent() else { return };
        let Ok(now) = fs::symlink_metadata(&self.path).and_then(|it| it.modified()) else { return };
        for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
            let Ok(found) = entry.metadata() else { continue };
            let age = found.modified().ok().and_then(|made| now.duration_since(made).ok());
            let name = entry.file_name();
            let is_old = age.is_some_and(|age| age > NEW) && found.file_type().is_socket();
            let Some(name) = name.to_str().filter(|it| is_old && it.ends_with(".live")) else {
                continue;
            };
            let dead = reach(folder, name, |path| UnixStream::connect(path));
            if dead.is_err_and(|error| error.kind() == ErrorKind::ConnectionRefused) {
                // Somebody else may sweep, too.
                let _ = fs::remove_file(entry.path());
            }
        }
    }
}

impl Drop for SocketFile {
    fn drop(&mut self) {
        if fs::symlink_metadata(&self.path).is_ok_and(|it| it.ino() == self.inode) {
            let _ = fs::remove_file(&self.path);
        }
    }
}
