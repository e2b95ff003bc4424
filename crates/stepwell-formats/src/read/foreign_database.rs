//! A database of somebody else's, opened to be read: only what is committed is seen, and
//! nothing is made or changed beside it.

use std::fs::File;
use std::io::{Read as _, Seek as _, SeekFrom};
use std::path::{Path, PathBuf};
use std::time::Duration;

use rusqlite::{Connection, ErrorCode, OpenFlags};
use stepwell::model::Time;
use tempfile::TempDir;

use crate::read::input::{self, unreadable};
use crate::read::seen::{JOURNAL, LOG, Seen, beside};
use crate::{Error, Result};

/// How long others' locks are waited for: theirs are short.
const PATIENCE: Duration = Duration::from_secs(2);

/// How often a copy is made anew if the database changes under it.
const COPIES: usize = 3;

/// What a journal ends with that belongs to several databases at once.
const SUPER_JOURNAL: [u8; 8] = [0xd9, 0xd5, 0x05, 0xf9, 0x20, 0xa1, 0x63, 0xd7];

/// A database that can be read.
pub(crate) struct Opened {
    pub(crate) connection: Connection,
    /// How it looked before anything of it was read.
    pub(crate) seen: Option<Seen>,
    /// Holds the copy that is read, where it cannot be read in place.
    _copy: Option<TempDir>,
}

/// What a file that is a database begins with.
pub(crate) const SQLITE: &[u8] = b"SQLite format 3\0";

/// Is this the front of a database whose schema has these words?
pub(crate) fn mentions(head: &[u8], words: &[&str]) -> bool {
    let has = |word: &&str| memchr::memmem::find(head, word.as_bytes()).is_some();
    head.starts_with(SQLITE) && words.iter().all(has)
}

/// The columns of a table; none, if there is no such table, or it is a view, which could be
/// without end.
pub(crate) fn columns(connection: &Connection, table: &str) -> rusqlite::Result<Vec<String>> {
    let sql = "SELECT it.name FROM sqlite_master AS t, pragma_table_info(t.name) AS it \
               WHERE t.type = 'table' AND t.rootpage > 0 AND t.name = ?1 ORDER BY it.cid";
    let mut statement = connection.prepare(sql)?;
    statement.query_map([table], |row| row.get(0))?.collect()
}

/// A moment in the form of SQLite or of RFC 3339.
pub(crate) fn moment(text: &str) -> Option<Time> {
    match text.parse() {
        Ok(at) => Some(at),
        Err(_) => format!("{}Z", text.trim().replacen(' ', "T", 1)).parse().ok(),
    }
}

/// Opens a database.
pub(crate) fn open(path: &Path) -> Result<Opened> {
    let seen = Seen::of_database(path);
    let (connection, copy) = connection(path)?;
    Ok(Opened { connection, seen, _copy: copy })
}

fn connection(path: &Path) -> Result<(Connection, Option<TempDir>)> {
    // A regular file, and no link to one.
    let mut file = input::open(path)?;
    let place = match Mode::of(&mut file) {
        // Nobody has it open, and all of it is in the one file.
        Mode::Log if !has(path, LOG) && !has(path, JOURNAL) => ReadFrom::Still,
        // Reading a log in place makes files beside it, unless somebody else has them open.
        Mode::Log if has(path, LOG) && !has(path, "-shm") => ReadFrom::Copy,
        Mode::Log | Mode::Journal => ReadFrom::Shared,
    };
    let connected = match place {
        ReadFrom::Still => connect(path, Access::Immutable),
        ReadFrom::Shared => connect(path, Access::Read),
        ReadFrom::Copy => return open_copy(path),
    };
    match connected {
        Ok(connection) => Ok((connection, None)),
        // Whoever wrote it was cut off: it must be rolled back first, which is not ours to do.
        Err(error) if wants_writing(&error) => open_copy(path),
        Err(error) => Err(fault(path, &error)),
    }
}

/// What went wrong with a database.
pub(crate) fn fault(path: &Path, error: &rusqlite::Error) -> Error {
    match error.sqlite_error_code() {
        Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => {
            Error::Locked { path: path.to_owned() }
        }
        _ => Error::Foreign { path: path.to_owned(), why: error.to_string() },
    }
}

/// How a database is written.
enum Mode {
    /// In place, with what was there before in a journal until it is done.
    Journal,
    /// Into a log beside it.
    Log,
}

impl Mode {
    fn of(file: &mut File) -> Self {
        // The format's versions for writing and for reading.
        let mut versions = [0; 2];
        let found =
            file.seek(SeekFrom::Start(18)).and_then(|_| file.read_exact(&mut versions)).is_ok();
        if found && versions == [2, 2] { Self::Log } else { Self::Journal }
    }
}

/// Where a database is read.
enum ReadFrom {
    /// Where it lies: nobody writes to it.
    Still,
    /// Where it lies, with the locks of those who write to it.
    Shared,
    /// In a copy.
    Copy,
}

/// What a connection may do.
#[derive(Clone, Copy)]
enum Access {
    /// Read a file that does not change.
    Immutable,
    /// Read.
    Read,
    /// Roll back what was not committed, and read.
    Mend,
}

fn has(path: &Path, ending: &str) -> bool {
    beside(path, ending).metadata().is_ok_and(|found| found.len() > 0)
}

fn wants_writing(error: &rusqlite::Error) -> bool {
    matches!(error.sqlite_error_code(), Some(ErrorCode::ReadOnly | ErrorCode::CannotOpen))
}

fn connect(path: &Path, access: Access) -> rusqlite::Result<Connection> {
    let escaped: String = path
        .to_string_lossy()
        .chars()
        .map(|c| match c {
            '?' => "%3f".to_owned(),
            '#' => "%23".to_owned(),
            '%' => "%25".to_owned(),
            c => c.to_string(),
        })
        .collect();
    let (how, flags) = match access {
        Access::Immutable => ("mode=ro&immutable=1", OpenFlags::SQLITE_OPEN_READ_ONLY),
        Access::Read => ("mode=ro", OpenFlags::SQLITE_OPEN_READ_ONLY),
        Access::Mend => ("mode=rw", OpenFlags::SQLITE_OPEN_READ_WRITE),
    };
    let flags = flags | OpenFlags::SQLITE_OPEN_URI;
    let connection = Connection::open_with_flags(format!("file:{escaped}?{how}"), flags)?;
    connection.busy_timeout(PATIENCE)?;
    // Nothing that the file says is run, and what is damaged is told as such.
    connection.pragma_update(None, "trusted_schema", false)?;
    connection.pragma_update(None, "cell_size_check", true)?;
    connection.pragma_update(None, "query_only", true)?;
    // Only a first look finds locks, and what must be rolled back.
    connection.query_row("SELECT count(*) FROM sqlite_master", [], |_| Ok(()))?;
    Ok(connection)
}

fn open_copy(path: &Path) -> Result<(Connection, Option<TempDir>)> {
    for _ in 0..COPIES {
        let before = Seen::of_database(path);
        let (folder, copy) = copied(path)?;
        // What somebody wrote to meanwhile may be torn.
        if Seen::of_database(path) == before {
            let connection = connect(&copy, Access::Mend).map_err(|error| fault(path, &error))?;
            return Ok((connection, Some(folder)));
        }
    }
    Err(Error::Locked { path: path.to_owned() })
}

/// A copy of a database with its log and its journal, which goes when it is dropped.
fn copied(path: &Path) -> Result<(TempDir, PathBuf)> {
    let folder = tempfile::tempdir().map_err(|error| unreadable(path, error))?;
    let copy = folder.path().join("sessions.db");
    for ending in ["", LOG, JOURNAL] {
        if !ending.is_empty() && !has(path, ending) {
            continue;
        }
        let mut from = input::open(&beside(path, ending))?;
        let made = File::create_new(beside(&copy, ending))
            .and_then(|mut to| std::io::copy(&mut from, &mut to));
        made.map_err(|error| unreadable(path, error))?;
    }
    let journal = beside(&copy, JOURNAL);
    if ends_with(&journal, &SUPER_JOURNAL) {
        // SQLite would look for the others, and remove the file that the journal names.
        let why =
            "its journal belongs to several databases; open it once with the program that wrote it"
                .to_owned();
        return Err(Error::Foreign { path: path.to_owned(), why });
    }
    Ok((folder, copy))
}

fn ends_with(path: &Path, end: &[u8; 8]) -> bool {
    let mut last = [0; 8];
    let read = File::open(path).and_then(|mut file| {
        file.seek(SeekFrom::End(-8))?;
        file.read_exact(&mut last)
    });
    read.is_ok() && last == *end
}
