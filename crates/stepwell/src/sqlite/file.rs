//! The store's file: creating it, opening it, and refusing files that are not stores.

use std::fs::{self, OpenOptions};
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use rusqlite::config::DbConfig;
use rusqlite::{Connection, OpenFlags};

use super::schema::{self, APPLICATION_ID, Migration, PAGE_SIZE, VERSION};
use crate::error::{Error, Result};
use crate::failpoint::failpoint;
use crate::model::Time;
use crate::store::{STORE_FOLDER, refuse_link, refuse_shared};

/// The store's name in its folder.
pub(super) const FILE_NAME: &str = "stepwell.db";

/// The path of a store in memory.
pub(super) const MEMORY: &str = ":memory:";

/// How long a writer waits for another process before it reports that the store is busy.
pub(super) const BUSY_LIMIT: Duration = Duration::from_secs(10);

/// From how many pages on the committing caller copies the log into the file.
pub(super) const AUTO_CHECKPOINT: u32 = 1000;

/// Creates the folder and an empty store in it, unless there is one. The store gets its name only
/// when it is complete. So a file of that name that is not a store was damaged, not half created.
pub(super) fn make(folder: &Path) -> Result<PathBuf> {
    let path = folder.join(FILE_NAME);
    refuse_links(&path)?;
    if path.exists() {
        return Ok(path);
    }
    let io = |doing| move |source: io::Error| io_error(folder, doing, source);
    make_folder(folder)?;
    refuse_network(folder)?;
    // Before the store gets its name, so that its path is durable by then.
    sync_above(folder).map_err(io("making the folder durable"))?;
    let draft = draft_beside(&path);
    OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(&draft)
        .map_err(io("making the store"))?;
    let made = fill(&draft).map_err(|error| sqlite_error(&draft, "making the store", &error));
    failpoint("open.before_link");
    // A link fails if the name exists: if two processes create a store at once, the second uses the
    // first one's.
    let linked = made.and_then(|()| match fs::hard_link(&draft, &path) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => {
            Err(io("naming the store")(error))
        }
        _ => Ok(()),
    });
    failpoint("open.after_link");
    let _ = fs::remove_file(&draft);
    linked?;
    sync_folder(folder).map_err(io("making the store durable"))?;
    Ok(path)
}

/// Creates a store's folder, private, and hidden from git.
pub(super) fn make_folder(folder: &Path) -> Result<()> {
    refuse_links(&folder.join(FILE_NAME))?;
    let io = |doing| move |source: io::Error| io_error(folder, doing, source);
    let mut ours = folder.file_name().is_some_and(|name| name == STORE_FOLDER);
    if !folder.exists() {
        // The folders above are the user's, and get the usual permissions.
        let above = folder.parent().filter(|above| !above.as_os_str().is_empty());
        above.map_or(Ok(()), fs::create_dir_all).map_err(io("making the folder"))?;
        match fs::DirBuilder::new().mode(0o700).create(folder) {
            Err(error) if error.kind() != io::ErrorKind::AlreadyExists => {
                return Err(io("making the folder")(error));
            }
            made => ours |= made.is_ok(),
        }
    }
    if ours {
        // If this fails, git sees the store. `doctor` reports that, and opening continues.
        let _ = hide_from_git(folder);
    }
    Ok(())
}

/// Hides a store's folder from git, independent of the user's own `.gitignore`, and also if the
/// folder becomes part of a work tree later. Returns whether anything was written.
pub fn hide_from_git(folder: &Path) -> io::Result<bool> {
    use io::Write as _;
    let path = folder.join(".gitignore");
    match OpenOptions::new().write(true).create_new(true).mode(0o600).open(&path) {
        Ok(mut file) => match file.write_all(b"*\n") {
            Ok(()) => Ok(true),
            Err(error) => {
                // An empty file would hide nothing and never be filled.
                let _ = fs::remove_file(&path);
                Err(error)
            }
        },
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(false),
        Err(error) => Err(error),
    }
}

/// The absolute path of the store, which stays valid when the process changes its folder. A path
/// that does not exist stays unchanged, for the error that follows.
pub(super) fn resolve(path: &Path) -> PathBuf {
    let folder = path.parent().and_then(|folder| fs::canonicalize(folder).ok());
    match (folder, path.file_name()) {
        (Some(folder), Some(name)) => folder.join(name),
        _ => path.to_owned(),
    }
}

/// The separator between a file's name and the number of the process that creates it.
const DRAFT: &str = ".new-";

/// Drafts older than this belong to a dead process: creating a store takes seconds.
const DRAFT_AGE: Duration = Duration::from_secs(60 * 60);

/// Removes drafts of dead processes.
pub(super) fn sweep_drafts(folder: &Path, now: Time) {
    let Ok(entries) = fs::read_dir(folder) else { return };
    let front = format!("{FILE_NAME}{DRAFT}");
    for entry in entries.flatten() {
        let ours = entry.file_name().to_str().is_some_and(|name| name.starts_with(&front));
        let made = entry.metadata().and_then(|meta| meta.modified()).ok();
        let old = made.is_some_and(|made| {
            let since_epoch = made.duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
            now.since(Time::EPOCH.plus(since_epoch)) > DRAFT_AGE
        });
        if ours && old {
            // Another process may have removed it.
            let _ = fs::remove_file(entry.path());
        }
    }
}

/// A free name beside `path`, for an incomplete file.
fn draft_beside(path: &Path) -> PathBuf {
    static NEXT: AtomicU64 = AtomicU64::new(0);
    let n = NEXT.fetch_add(1, Ordering::Relaxed);
    let mut name = path.as_os_str().to_owned();
    name.push(format!("{DRAFT}{}-{n}", std::process::id()));
    let draft = PathBuf::from(name);
    // A dead process with the same number may have left one.
    let _ = fs::remove_file(&draft);
    draft
}

fn fill(draft: &Path) -> rusqlite::Result<()> {
    let conn = Connection::open(draft)?;
    lay_out(&conn)?;
    // Copies the log into the file, so that one file is the whole store. Closing would do it too,
    // without reporting a failure.
    conn.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(()))?;
    conn.close().map_err(|(_, error)| error)
}

/// Creates the tables of an empty store.
fn lay_out(conn: &Connection) -> rusqlite::Result<()> {
    conn.pragma_update(None, "page_size", PAGE_SIZE)?;
    conn.pragma_update(None, "journal_mode", "WAL")?;
    conn.pragma_update(None, "synchronous", "FULL")?;
    conn.execute_batch("BEGIN IMMEDIATE")?;
    conn.execute_batch(schema::TABLES)?;
    schema::MIGRATIONS.iter().try_for_each(|step| step(conn))?;
    conn.pragma_update(None, "application_id", APPLICATION_ID)?;
    conn.pragma_update(None, "user_version", VERSION)?;
    conn.execute_batch("COMMIT")
}

/// An empty store in memory. This is its only connection.
pub(super) fn open_in_memory() -> Result<Connection> {
    let make = || {
        let mut conn = Connection::open_in_memory()?;
        configure(&mut conn)?;
        lay_out(&conn)?;
        Ok(conn)
    };
    make().map_err(|error| sqlite_error(Path::new(MEMORY), "making the store", &error))
}

/// Copies the log into the file and truncates it to one small transaction, unless a connection is
/// reading.
///
/// SQLite's own way to empty a log (`TRUNCATE`) relies on a file being cut atomically. If power
/// fails and a part of the old log is left, SQLite replays that part over newer pages. So the log
/// is restarted first, and that is flushed: after it, the rest of the old log no longer counts.
pub(super) fn empty_log(conn: &Connection) -> rusqlite::Result<()> {
    let busy: bool = conn.query_row("PRAGMA wal_checkpoint(RESTART)", [], |row| row.get(0))?;
    if busy {
        return Ok(());
    }
    // The first commit to a restarted log truncates the file to its own length.
    let limit = |bytes: i64| conn.pragma_update(None, "journal_size_limit", bytes);
    limit(0)?;
    // Writes the value that is stored already.
    let written = conn.pragma_update(None, "application_id", APPLICATION_ID);
    limit(-1)?;
    written
}

fn sync_folder(folder: &Path) -> io::Result<()> {
    fs::File::open(folder)?.sync_all()
}

/// Flushes the folders above, which this process, or a dead one, may just have created. Folders on
/// another disk existed before, and folders that cannot be opened belong to someone else.
fn sync_above(folder: &Path) -> io::Result<()> {
    let folder = fs::canonicalize(folder)?;
    let disk = fs::metadata(&folder)?.dev();
    for above in folder.ancestors().skip(1) {
        if fs::metadata(above)?.dev() != disk {
            break;
        }
        match sync_folder(above) {
            Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {}
            other => other?,
        }
    }
    Ok(())
}

/// Opens a connection for writing.
pub(super) fn open_writer(path: &Path, migrations: &[Migration]) -> Result<Connection> {
    refuse_network(path)?;
    let mut conn = open(path, OpenFlags::SQLITE_OPEN_READ_WRITE)?;
    let fail = |doing| move |error: rusqlite::Error| sqlite_error(path, doing, &error);
    if !is_writable(path) {
        let doing = "opening the store for writing";
        return Err(Error::Denied { path: path.to_owned(), doing });
    }
    configure(&mut conn).map_err(fail("opening the store"))?;
    let found = check_version(&conn, path, version_of(migrations))?;
    refuse_foreign(&conn, path)?;
    // A store left by a crash recovers here, not at the caller's first access.
    conn.pragma_update(None, "journal_mode", "WAL").map_err(fail("opening the store"))?;
    conn.pragma_update(None, "synchronous", "FULL").map_err(fail("opening the store"))?;
    conn.pragma_update(None, "fullfsync", true).map_err(fail("opening the store"))?;
    conn.pragma_update(None, "wal_autocheckpoint", AUTO_CHECKPOINT)
        .map_err(fail("opening the store"))?;
    conn.pragma_update(None, "journal_size_limit", 64 << 20).map_err(fail("opening the store"))?;
    if found < version_of(migrations) {
        migrate(&conn, path, found, migrations)?;
    }
    Ok(conn)
}

/// Opens a connection for reading, which never changes the file, not even by copying the log into
/// it.
pub(super) fn open_reader(path: &Path) -> Result<Connection> {
    let fail = |error: rusqlite::Error| sqlite_error(path, "opening the store", &error);
    let mut conn = match open(path, OpenFlags::SQLITE_OPEN_READ_ONLY) {
        Err(error @ Error::NoStore(_)) => return Err(error),
        Ok(conn) if conn.query_row("SELECT 1 FROM sqlite_schema", [], |_| Ok(())).is_ok() => conn,
        // In a read-only folder, a store that was closed cleanly has no log, and readers cannot
        // create one. Then nothing can change the store.
        _ if !is_writable(path) && !has_log(path) => open_immutable(path)?,
        Ok(conn) => conn,
        Err(error) => return Err(error),
    };
    configure(&mut conn).map_err(fail)?;
    check_version(&conn, path, VERSION)?;
    refuse_foreign(&conn, path)?;
    Ok(conn)
}

/// Refuses a store behind a link: its folder, its file, or a file that SQLite keeps beside it. A
/// file with another name is the user's choice.
fn refuse_links(path: &Path) -> Result<()> {
    if path.file_name().is_none_or(|name| name != FILE_NAME) {
        return Ok(());
    }
    let folder = path.parent().filter(|it| it.file_name().is_some_and(|it| it == STORE_FOLDER));
    folder.map_or(Ok(()), refuse_link)?;
    ["", "-wal", "-shm", "-journal"].iter().try_for_each(|ending| {
        let file = beside(path, ending);
        refuse_link(&file)?;
        refuse_shared(&file)
    })
}

/// The name of a file that SQLite keeps beside the store's.
fn beside(path: &Path, ending: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(ending);
    name.into()
}

/// Refuses a store whose schema has an object that Stepwell did not create. A store may come with a
/// project, and its triggers would run with the user's next command.
fn refuse_foreign(conn: &Connection, path: &Path) -> Result<()> {
    let fail = |error: rusqlite::Error| sqlite_error(path, "reading the store's schema", &error);
    let mut found = conn.prepare("SELECT type, name FROM sqlite_schema").map_err(fail)?;
    let mut rows = found.query([]).map_err(fail)?;
    while let Some(row) = rows.next().map_err(fail)? {
        let (kind, name): (String, String) = (row.get(0).map_err(fail)?, row.get(1).map_err(fail)?);
        if !schema::is_ours(&kind, &name) {
            let kinds = ["trigger", "view", "index", "table"];
            let kind = kinds.into_iter().find(|known| *known == kind).unwrap_or("object");
            return Err(Error::ForeignObject { path: path.to_owned(), kind, name });
        }
    }
    Ok(())
}

fn open(path: &Path, access: OpenFlags) -> Result<Connection> {
    refuse_links(path)?;
    let meta = fs::metadata(path).map_err(|source| match source.kind() {
        io::ErrorKind::NotFound => Error::NoStore(path.to_owned()),
        _ => io_error(path, "opening the store", source),
    })?;
    if !meta.is_file() {
        return Err(Error::NotAStore {
            path: path.to_owned(),
            what: "it is not a file".to_owned(),
        });
    }
    if meta.len() == 0 {
        let what = "the file is empty; restore it from a backup, or remove it to start again";
        return Err(Error::DamagedStore { path: path.to_owned(), what: what.to_owned() });
    }
    Connection::open_with_flags(path, access | OpenFlags::SQLITE_OPEN_NO_MUTEX)
        .map_err(|error| sqlite_error(path, "opening the store", &error))
}

fn open_immutable(path: &Path) -> Result<Connection> {
    let escaped =
        path.to_string_lossy().replace('%', "%25").replace('?', "%3f").replace('#', "%23");
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY
        | OpenFlags::SQLITE_OPEN_URI
        | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    Connection::open_with_flags(format!("file:{escaped}?immutable=1"), flags)
        .map_err(|error| sqlite_error(path, "opening the store", &error))
}

/// Makes a connection wait for other processes.
pub(super) fn set_busy_handler(conn: &mut Connection) -> rusqlite::Result<()> {
    conn.busy_handler(Some(wait_briefly))
}

fn configure(conn: &mut Connection) -> rusqlite::Result<()> {
    set_busy_handler(conn)?;
    conn.set_prepared_statement_cache_capacity(64);
    // Without this, a plan that depends on bound values is recomputed at every use, which took a
    // quarter of an append.
    conn.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_QPSG, true)?;
    // A store may come with a project. Its schema must not call functions, change internal tables,
    // or delete rows of one table together with another's.
    conn.set_db_config(DbConfig::SQLITE_DBCONFIG_DEFENSIVE, true)?;
    conn.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_TRIGGER, false)?;
    conn.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_FKEY, false)?;
    conn.pragma_update(None, "temp_store", "MEMORY")?;
    // At most 32 MiB, allocated as needed: a long conversation is read more than once, and one of
    // 10,000 messages should fit.
    conn.pragma_update(None, "cache_size", -32_768)?;
    // Erased data is overwritten, not only unlinked.
    conn.pragma_update(None, "secure_delete", true)?;
    conn.pragma_update(None, "cell_size_check", true)?;
    conn.pragma_update(None, "trusted_schema", false)
}

/// SQLite's own back-off sleeps up to 100 ms, which starved writers. This one waits 50 to 250 µs at
/// a time, up to [`BUSY_LIMIT`] in total.
#[expect(clippy::disallowed_methods, reason = "another process's lock can only be polled")]
fn wait_briefly(tries: i32) -> bool {
    let tries = u64::from(tries.unsigned_abs());
    // Processes that started together should not poll together.
    let spread = (tries.wrapping_mul(2_654_435_761) ^ u64::from(std::process::id())) % 200;
    let pause = Duration::from_micros(50 + spread);
    std::thread::sleep(pause);
    // About 150 µs for a try, and the rest until the system resumes the thread.
    tries < u64::try_from(BUSY_LIMIT.as_micros()).unwrap_or(u64::MAX) / 210
}

fn version_of(migrations: &[Migration]) -> u32 {
    1 + u32::try_from(migrations.len()).unwrap_or(u32::MAX)
}

fn check_version(conn: &Connection, path: &Path, known: u32) -> Result<u32> {
    let read = |name| {
        conn.pragma_query_value(None, name, |row| row.get::<_, i32>(0))
            .map_err(|error| sqlite_error(path, "reading the store's version", &error))
    };
    if read("application_id")? != APPLICATION_ID {
        let what = "it is a database of another program".to_owned();
        return Err(Error::NotAStore { path: path.to_owned(), what });
    }
    let found = u32::try_from(read("user_version")?).unwrap_or(0);
    if found > known {
        return Err(Error::Newer { path: path.to_owned(), found, known });
    }
    if found == 0 {
        let what = "its format has no version".to_owned();
        return Err(Error::DamagedStore { path: path.to_owned(), what });
    }
    Ok(found)
}

/// Backs up the store beside itself, then runs every migration in one transaction.
fn migrate(conn: &Connection, path: &Path, found: u32, migrations: &[Migration]) -> Result<()> {
    let fail = |error: rusqlite::Error| sqlite_error(path, "upgrading the store", &error);
    let backup = path.with_extension(format!("db.v{found}.bak"));
    // An earlier failed attempt left its copy of the same store.
    if !backup.exists() {
        copy(conn, path, &backup)?;
    }
    conn.execute_batch("BEGIN IMMEDIATE").map_err(fail)?;
    let upgrade = || -> rusqlite::Result<()> {
        // Another process may have upgraded it in the meantime.
        let now: u32 = conn.pragma_query_value(None, "user_version", |row| row.get(0))?;
        for step in migrations.iter().skip(now.saturating_sub(1) as usize) {
            step(conn)?;
        }
        conn.pragma_update(None, "user_version", version_of(migrations))?;
        conn.execute_batch("COMMIT")
    };
    upgrade().map_err(|error| {
        // The first error is reported; the transaction ends in any case.
        let _ = conn.execute_batch("ROLLBACK");
        fail(error)
    })
}

/// Copies a store, consistently, while it is in use. The copy gets its name only when it is
/// complete, and never replaces another file.
pub(super) fn copy(conn: &Connection, path: &Path, to: &Path) -> Result<()> {
    let fail = |error: rusqlite::Error| sqlite_error(path, "copying the store", &error);
    let io = |source: io::Error| io_error(to, "writing the copy", source);
    let draft = draft_beside(to);
    let options = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&draft);
    options.map_err(io)?;
    let copied = (|| -> rusqlite::Result<()> {
        let mut target = Connection::open(&draft)?;
        rusqlite::backup::Backup::new(conn, &mut target)?.run_to_completion(
            1_000,
            Duration::ZERO,
            None,
        )?;
        target.close().map_err(|(_, error)| error)
    })();
    let done = copied.map_err(fail).and_then(|()| {
        fs::File::open(&draft).and_then(|file| file.sync_all()).map_err(io)?;
        // A link fails if the name exists, so no store is overwritten.
        fs::hard_link(&draft, to).map_err(io)?;
        let folder = to.parent().filter(|folder| !folder.as_os_str().is_empty());
        sync_folder(folder.unwrap_or(Path::new("."))).map_err(io)
    });
    let _ = fs::remove_file(&draft);
    done
}

/// Can this process write to the store and to the folder around it?
pub(super) fn is_writable(path: &Path) -> bool {
    use rustix::fs::{Access, access};
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
    access(path, Access::WRITE_OK).is_ok()
        && access(folder.unwrap_or(Path::new(".")), Access::WRITE_OK).is_ok()
}

fn has_log(path: &Path) -> bool {
    fs::metadata(beside(path, "-wal")).is_ok_and(|meta| meta.len() > 0)
}

/// SQLite's log needs memory that all processes share, which network file systems do not have.
#[cfg(target_os = "linux")]
fn refuse_network(folder: &Path) -> Result<()> {
    // NFS, SMB, CIFS, SMB2, AFS, Ceph, 9p: the magic numbers of statfs(2).
    const NETWORKED: [u32; 7] =
        [0x6969, 0x517b, 0xff53_4d42, 0xfe53_4d42, 0x5346_414f, 0x00c3_6400, 0x0102_1997];
    let stat = rustix::fs::statfs(folder)
        .map_err(|error| io_error(folder, "checking the file system", error.into()))?;
    let magic = u32::try_from(stat.f_type as u64 & 0xffff_ffff).unwrap_or(0);
    if NETWORKED.contains(&magic) {
        let what = "it is on a network file system; move it to a local disk";
        return Err(Error::Unsupported { path: folder.to_owned(), what: what.to_owned() });
    }
    Ok(())
}

#[cfg(not(target_os = "linux"))]
fn refuse_network(_folder: &Path) -> Result<()> {
    Ok(())
}

/// The file's permission bits.
pub(super) fn mode(path: &Path) -> Option<u32> {
    fs::metadata(path).ok().map(|meta| meta.permissions().mode() & 0o777)
}

pub(super) fn io_error(path: &Path, doing: &'static str, source: io::Error) -> Error {
    let path = path.to_owned();
    match source.kind() {
        io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem => {
            Error::Denied { path, doing }
        }
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => Error::Full { path },
        _ => Error::Io { path, doing, source },
    }
}

fn is_shm_size(error: &rusqlite::Error) -> bool {
    error
        .sqlite_error()
        .is_some_and(|error| error.extended_code == rusqlite::ffi::SQLITE_IOERR_SHMSIZE)
}

/// Translates an error of SQLite.
pub(super) fn sqlite_error(path: &Path, doing: &'static str, error: &rusqlite::Error) -> Error {
    use rusqlite::ErrorCode as Code;
    let path = path.to_owned();
    let what = error.to_string();
    match error.sqlite_error_code() {
        Some(Code::DatabaseBusy | Code::DatabaseLocked) => {
            let waited_ms = u64::try_from(BUSY_LIMIT.as_millis()).unwrap_or(0);
            Error::Busy { path, waited_ms }
        }
        Some(Code::DiskFull) => Error::Full { path },
        // Shared memory is a file, which cannot grow on a full disk.
        Some(Code::SystemIoFailure) if is_shm_size(error) => Error::Full { path },
        Some(Code::ReadOnly) => Error::ReadOnly { path },
        Some(Code::PermissionDenied) => Error::Denied { path, doing },
        // SQLite does not say why it cannot open a file; the permissions do.
        Some(Code::CannotOpen) if !is_writable(&path) => Error::Denied { path, doing },
        Some(Code::NotADatabase) => Error::DamagedStore {
            path,
            what: "it is not a database, or its first bytes are gone".to_owned(),
        },
        Some(Code::DatabaseCorrupt) => Error::DamagedStore { path, what },
        Some(Code::SystemIoFailure | Code::CannotOpen) => {
            Error::Io { path, doing, source: io::Error::other(what) }
        }
        _ if matches!(
            error,
            rusqlite::Error::FromSqlConversionFailure(..)
                | rusqlite::Error::InvalidColumnType(..)
                | rusqlite::Error::Utf8Error(..)
                | rusqlite::Error::IntegralValueOutOfRange(..)
        ) =>
        {
            Error::DamagedStore { path, what }
        }
        _ => Error::Database { path, doing, what },
    }
}

#[cfg(test)]
mod tests;
