use std::collections::{HashMap, HashSet};
use std::fs::{File, Metadata, TryLockError};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::num::NonZeroU64;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use rustix::event::Timespec;
use stepwell_formats::{Error, Format, Found, Mode, find_news, take_in};

use super::import::{Summary, Verbosity, report_import};
use crate::app::{App, Well};
use crate::failure::{Exit, Failure, Result};
use crate::output::note;
use crate::text::count;

/// Keeps importing what other agents record, as they record it.
///
/// Looks where the agents of this machine keep their sessions, or in the folders that are
/// named, again and again until it is stopped. It can be killed at any time.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Files and folders; without any, where agents keep their sessions.
    #[arg(value_name = "PATH")]
    paths: Vec<PathBuf>,
    /// Reads only this format.
    #[arg(long, value_name = "FORMAT")]
    from: Option<Format>,
    /// How long to wait between two looks, in seconds.
    #[arg(long, value_name = "SECONDS", default_value = "2")]
    every: NonZeroU64,
}

/// What was seen and said before.
#[derive(Default)]
struct Memory {
    /// What the file system said of each file when it was last looked at, by hashes: there may
    /// be very many.
    seen: HashMap<u64, u64>,
    /// What was complained of, likewise.
    told: HashSet<u64>,
}

impl Memory {
    /// Is it so for the first time?
    fn is_news(&mut self, path: &Path, stamp: u64) -> bool {
        self.seen.insert(hash(&path), stamp) != Some(stamp)
    }

    /// Complains, once.
    fn complain(&mut self, message: &str) {
        if self.told.insert(hash(&message)) {
            note(format_args!("warning: {message}"));
        }
    }
}

pub(crate) fn run(args: &Args, app: &mut App) -> Result<Exit> {
    let places = places(args, app);
    if places.is_empty() {
        let message = "there is nothing to watch: no agent keeps sessions here";
        let hint = "name a folder; stepwell formats says where was looked";
        return Err(Failure::new(Exit::Absent, message).hint(hint));
    }
    if let Some((_, absent)) = places.iter().find(|(_, place)| !place.exists()) {
        let message = format!("there is nothing to watch: {} is not there", absent.display());
        return Err(Failure::new(Exit::Absent, message).hint("make it, or name another folder"));
    }
    let well = app.make()?;
    let _lock = alone(app)?;
    let mut memory = Memory::default();
    note(format_args!("Watching {}; Ctrl+C stops it", count(places.len(), "place")));
    loop {
        // A place may come to be while we watch.
        for (format, place) in self::places(args, app) {
            look(&well, (format, &place), app, &mut memory)?;
        }
        app.out.flush()?;
        if app.out.is_abandoned() {
            return Err(Failure::ClosedPipe);
        }
        let pause =
            Timespec { tv_sec: i64::try_from(args.every.get()).unwrap_or(i64::MAX), tv_nsec: 0 };
        // Only a signal ends the wait early, and it ends the process.
        let _ = rustix::event::poll(&mut [], Some(&pause));
    }
}

/// May it be otherwise at the next look, though the file is the same?
fn may_pass(error: &Error) -> bool {
    matches!(error, Error::Store(error) if !matches!(error, stepwell::Error::Trashed(_)))
}

/// One process watches for a store.
fn alone(app: &App) -> Result<File> {
    let path = app.place.store.join("watch.lock");
    let fault = |error: &std::io::Error| Failure::file(&path, "locking it", error);
    let file = File::options().create(true).truncate(false).write(true).open(&path);
    let file = file.map_err(|error| fault(&error))?;
    match file.try_lock() {
        Ok(()) => Ok(file),
        Err(TryLockError::WouldBlock) => {
            let message = "another stepwell watch is at work for this store";
            Err(Failure::new(Exit::Busy, message))
        }
        Err(TryLockError::Error(error)) => Err(fault(&error)),
    }
}

fn places(args: &Args, app: &App) -> Vec<(Option<Format>, PathBuf)> {
    if !args.paths.is_empty() {
        return args.paths.iter().map(|path| (args.from, path.clone())).collect();
    }
    let places = app.agent_places(args.from).into_iter();
    places.map(|place| (Some(place.format), place.path)).collect()
}

/// Takes in what is news at one place.
fn look(
    well: &Well,
    (only, place): (Option<Format>, &Path),
    app: &mut App,
    memory: &mut Memory,
) -> Result<()> {
    let (mut news, mut faults) = (Vec::new(), Vec::new());
    let mut is_news =
        |path: &Path, found: &Metadata| memory.is_news(path, hash(&(stamp(found), log_of(path))));
    let mut add = |found: Found| {
        news.push(found);
        Ok(())
    };
    let mut fault = |error: Error| faults.push(error.to_string());
    if let Err(error) = find_news(place, only, &mut is_news, &mut add, &mut fault) {
        fault(error);
    }
    faults.iter().for_each(|fault| memory.complain(fault));
    for Found { path, format } in news {
        if path.is_dir() && !memory.is_news(&path, folder_stamp(&path, 0)) {
            continue;
        }
        let mut report = take_in(well, Mode::Write, format, &path);
        // What the store does not take now it may the next time; what cannot be read is told of
        // now, and looked at again when it has changed.
        if let Some(error) = report.fault.take_if(|error| may_pass(error)) {
            memory.seen.remove(&hash(&path.as_path()));
            memory.complain(&format!("{}: {error}", path.display()));
        }
        report_import(report, (&path, format), app, &mut Summary::default(), Verbosity::OnlyNews)?;
    }
    Ok(())
}

fn hash(value: &impl Hash) -> u64 {
    let mut hasher = DefaultHasher::new();
    value.hash(&mut hasher);
    hasher.finish()
}

fn stamp(found: &Metadata) -> u64 {
    hash(&(found.len(), found.mtime(), found.mtime_nsec(), found.ino()))
}

/// What the file system says of a database's log, in which its news are while somebody has it
/// open.
fn log_of(path: &Path) -> Option<u64> {
    path.extension().filter(|ending| *ending == "db")?;
    let mut name = path.as_os_str().to_owned();
    name.push("-wal");
    Path::new(&name).symlink_metadata().ok().map(|found| stamp(&found))
}

/// What the file system says of all that is in a folder.
fn folder_stamp(folder: &Path, depth: usize) -> u64 {
    let mut all = 0_u64;
    for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
        let Ok(found) = entry.metadata() else { continue };
        let own = match found.is_dir() && depth < 8 {
            true => folder_stamp(&entry.path(), depth + 1),
            false => stamp(&found),
        };
        // The order in which a folder is read means nothing.
        all = all.wrapping_add(hash(&(entry.file_name(), own)));
    }
    all
}
