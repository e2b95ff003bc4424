//! Restoring a store from a backup.

use std::fs;
use std::io::Read as _;
use std::path::{Path, PathBuf};

use super::file::{self, FILE_NAME, io_error};
use super::{Access, SqliteOptions, SqliteStore, feed};
use crate::error::{Error, Result};
use crate::model::Time;

/// The name of a store that is about to replace another.
const DRAFT: &str = "stepwell.db.restoring";

impl SqliteStore {
    /// Creates a store in a folder from a file that [`backup`](crate::store::Maintain::backup)
    /// wrote. The backup is checked first and not changed. An existing store is not replaced: use
    /// [`restore_over`](Self::restore_over).
    pub fn restore_from(backup: &Path, folder: &Path) -> Result<()> {
        let path = folder.join(FILE_NAME);
        if path.exists() {
            let doing = "restoring a backup: a store already exists";
            let source = std::io::ErrorKind::AlreadyExists.into();
            return Err(io_error(&path, doing, source));
        }
        copy_backup(backup, &path)?;
        begin_anew(folder)
    }

    /// Like [`restore_from`](Self::restore_from), but replaces the existing store, which gets
    /// another name beside it. Returns that name. If this is interrupted at any moment, one of the
    /// two stores is in place. No process may have the store open.
    pub fn restore_over(backup: &Path, folder: &Path, now: Time) -> Result<PathBuf> {
        let (path, draft) = (folder.join(FILE_NAME), folder.join(DRAFT));
        // A killed restore may have left one.
        let _ = fs::remove_file(&draft);
        copy_backup(backup, &draft)?;
        let fault = |source| io_error(&path, "replacing the store", source);
        let replaced = empty_log(folder).and_then(|()| {
            let aside = link_aside(&path, now).map_err(fault)?;
            fs::rename(&draft, &path).map_err(fault)?;
            Ok(aside)
        });
        let aside = replaced.inspect_err(|_| drop(fs::remove_file(&draft)))?;
        remove_logs(&path);
        if let Err(error) = begin_anew(folder) {
            // The user keeps the old store.
            remove_logs(&path);
            fs::rename(&aside, &path).map_err(fault)?;
            return Err(error);
        }
        Ok(aside)
    }
}

/// Copies an undamaged backup to a new file.
fn copy_backup(backup: &Path, to: &Path) -> Result<()> {
    refuse_other_files(backup)?;
    // Dropped after the connection, on every path.
    let _beside = Beside::of(backup);
    let conn = file::open_reader(backup)?;
    let damage = conn
        .query_row("PRAGMA quick_check(1)", [], |row| row.get::<_, String>(0))
        .map_err(|error| file::sqlite_error(backup, "checking the backup", &error))?;
    if damage != "ok" {
        return Err(Error::DamagedStore { path: backup.to_owned(), what: damage });
    }
    if let Some(folder) = to.parent() {
        file::make_folder(folder)?;
    }
    file::copy(&conn, backup, to)
}

/// Opens the store, so that an older version is upgraded now, and invalidates all cursors.
fn begin_anew(folder: &Path) -> Result<()> {
    let store = SqliteStore::open_with(folder, SqliteOptions::default())?;
    store.writer()?.submit(|rows, _| feed::begin_anew(rows))
}

/// Copies a store's whole log into its file, or fails if a process uses the store.
fn empty_log(folder: &Path) -> Result<()> {
    let path = folder.join(FILE_NAME);
    let options = SqliteOptions { access: Access::Write, ..SqliteOptions::default() };
    match SqliteStore::open_with(folder, options) {
        Err(error @ (Error::Busy { .. } | Error::Denied { .. })) => return Err(error),
        // A store that cannot be opened is moved as it is.
        opened => drop(opened),
    }
    let log = beside(&path, "-wal");
    match fs::metadata(log).is_ok_and(|log| log.len() > 0) {
        true => Err(Error::Busy { path, waited_ms: 0 }),
        false => Ok(()),
    }
}

/// Removes the empty logs of a replaced store.
fn remove_logs(path: &Path) {
    for left in ["-wal", "-shm"] {
        let _ = fs::remove_file(beside(path, left));
    }
}

fn beside(path: &Path, end: &str) -> PathBuf {
    let mut name = path.to_owned().into_os_string();
    name.push(end);
    name.into()
}

/// Gives a store a second, unused name beside it. Two in one second get different names.
fn link_aside(path: &Path, now: Time) -> std::io::Result<PathBuf> {
    let name = format!("{FILE_NAME}.before-{}", now.compact());
    for n in 1.. {
        let aside = path.with_file_name(if n == 1 { name.clone() } else { format!("{name}-{n}") });
        match fs::hard_link(path, &aside) {
            Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists && n < 1_000 => {}
            linked => return linked.map(|()| aside),
        }
    }
    Err(std::io::ErrorKind::AlreadyExists.into())
}

/// The first bytes of a database.
const MAGIC: &[u8] = b"SQLite format 3\0";

/// Refuses a file that was never a database, and so cannot be repaired.
fn refuse_other_files(backup: &Path) -> Result<()> {
    let mut front = [0; MAGIC.len()];
    let read = fs::File::open(backup).and_then(|mut file| file.read_exact(&mut front));
    match read {
        Ok(()) if front == MAGIC => Ok(()),
        Err(source) if source.kind() != std::io::ErrorKind::UnexpectedEof => {
            Err(io_error(backup, "reading the backup", source))
        }
        _ => {
            let what = "it is not a database, so it is not a backup".to_owned();
            Err(Error::NotAStore { path: backup.to_owned(), what })
        }
    }
}

/// Files beside a backup that reading it creates, removed when dropped.
struct Beside(Vec<PathBuf>);

impl Beside {
    /// Those that do not exist yet.
    fn of(backup: &Path) -> Self {
        let named = ["-wal", "-shm"].map(|left| beside(backup, left));
        Self(named.into_iter().filter(|path| !path.exists()).collect())
    }
}

impl Drop for Beside {
    fn drop(&mut self) {
        for path in &self.0 {
            // A reader writes nothing into them.
            let _ = fs::remove_file(path);
        }
    }
}
