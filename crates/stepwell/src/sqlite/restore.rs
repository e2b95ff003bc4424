//! The way back from a backup.

use std::fs;
use std::io::Read as _;
use std::path::{Path, PathBuf};

use super::file::{self, FILE_NAME, io_error};
use super::{Access, SqliteOptions, SqliteStore, feed};
use crate::{Error, Result, Time};

impl SqliteStore {
    /// Makes a store in a folder from a file that [`backup`](crate::store::Maintain::backup) wrote. The backup is
    /// looked over first and stays as it is. A store that is there is not replaced:
    /// [`set_aside`](Self::set_aside) comes before that.
    pub fn restore_from(backup: &Path, folder: &Path) -> Result<()> {
        refuse_other_files(backup)?;
        // Dropped after the connection, however this ends.
        let _beside = Beside::of(backup);
        let conn = file::open_reader(backup)?;
        let damage = conn
            .query_row("PRAGMA quick_check(1)", [], |row| row.get::<_, String>(0))
            .map_err(|error| file::sqlite_error(backup, "looking the backup over", &error))?;
        if damage != "ok" {
            return Err(Error::DamagedStore { path: backup.to_owned(), what: damage });
        }
        file::make_folder(folder)?;
        let path = folder.join(FILE_NAME);
        if path.exists() {
            let doing = "restoring a backup: there is a store already";
            let source = std::io::ErrorKind::AlreadyExists.into();
            return Err(io_error(&path, doing, source));
        }
        file::copy(&conn, backup, &path)?;
        drop(conn);
        // What an older version wrote is upgraded now, not at a user's first step.
        let store = Self::open_with(folder, SqliteOptions::default())?;
        store.write_rows(|rows, _| feed::begin_anew(rows))
    }

    /// Moves the store of a folder to another name beside it, which is the answer. Nobody may
    /// have it open.
    pub fn set_aside(folder: &Path, now: Time) -> Result<PathBuf> {
        let path = folder.join(FILE_NAME);
        // Opened and closed, what its log holds is in the file.
        let options = SqliteOptions { access: Access::Write, ..SqliteOptions::default() };
        match Self::open_with(folder, options) {
            Err(error @ (Error::Busy { .. } | Error::Denied { .. })) => return Err(error),
            // One that cannot be opened is moved as it is.
            opened => drop(opened),
        }
        let mut log = path.clone().into_os_string();
        log.push("-wal");
        if fs::metadata(PathBuf::from(&log)).is_ok_and(|log| log.len() > 0) {
            return Err(Error::Busy { path, waited_ms: 0 });
        }
        let aside = folder.join(format!("{FILE_NAME}.before-{}", now.compact()));
        fs::hard_link(&path, &aside)
            .and_then(|()| fs::remove_file(&path))
            .map_err(|source| io_error(&path, "moving the store aside", source))?;
        for left in ["-wal", "-shm"] {
            let mut name = path.clone().into_os_string();
            name.push(left);
            // Empty by now, and made anew with the next store.
            let _ = fs::remove_file(PathBuf::from(name));
        }
        Ok(aside)
    }
}

/// How a database begins.
const MAGIC: &[u8] = b"SQLite format 3\0";

/// Refuses what never was a database: there is nothing to repair.
fn refuse_other_files(backup: &Path) -> Result<()> {
    let mut front = [0; MAGIC.len()];
    let read = fs::File::open(backup).and_then(|mut file| file.read_exact(&mut front));
    match read {
        Ok(()) if front == MAGIC => Ok(()),
        Err(source) if source.kind() != std::io::ErrorKind::UnexpectedEof => {
            Err(io_error(backup, "reading the backup", source))
        }
        _ => {
            let what = "it is no database, so no backup either".to_owned();
            Err(Error::NotAStore { path: backup.to_owned(), what })
        }
    }
}

/// The files beside a backup that reading it makes, and that go when it was read.
struct Beside(Vec<PathBuf>);

impl Beside {
    /// Those that are not there yet.
    fn of(backup: &Path) -> Self {
        let named = ["-wal", "-shm"].map(|left| {
            let mut name = backup.to_owned().into_os_string();
            name.push(left);
            PathBuf::from(name)
        });
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
