//! The files that a session came in, kept as they were: a session that nobody touched since is
//! written back byte for byte.
//!
//! A file is a chain of records in the session's log. Each record keeps some of the front and some
//! of the end of what the file held before, and its blob stands between them: a file that grows
//! is kept once, and so is one that is rewritten with a line more.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use stepwell::log::Head;
use stepwell::model::{Attachment, Digest, Kind, Origin, Record};
use stepwell::store::Span;
use stepwell::{Event, NewEvent, Seq, SessionId, Stepwell};

use crate::read::input::{MAX_FILE_BYTES, expanded, is_compressed, list, open, unreadable};
use crate::read::mark::mark_of;
use crate::read::neutral::is_facts;
use crate::write::layout::{fits, leads_to};
use crate::write::writer::{Exported, Outlet, Purpose, SUBAGENTS, subagents};
use crate::{Error, Result};

/// The name of the one file of a session that is a file.
const MAIN: &str = ".";

/// How many bytes a blob holds at the most, where a file is kept in several: they are in memory
/// while they are written.
const PIECE: usize = 4 << 20;

/// How many files of a folder are kept at the most.
const MAX_FILES: usize = 100_000;

/// The longest path of a file that is kept.
const MAX_PATH: usize = 900;

/// What a record says of a file: what it held before, up to `front`, then the blob of `bytes`
/// bytes, then the last `end` bytes of what it held before.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
struct Splice {
    front: u64,
    end: u64,
    bytes: u64,
    /// Is the file no longer there?
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    gone: bool,
}

/// The name that a session's own system gave it; without one, the name here.
pub(crate) fn own_name(head: &Head) -> &str {
    head.source.as_ref().map_or(head.id.as_str(), |source| &source.id)
}

/// A piece of a file: a part of a blob.
#[derive(Clone, Copy, Debug)]
struct Segment {
    blob: Digest,
    from: u64,
    bytes: u64,
}

/// What a file holds, as pieces of blobs.
#[derive(Clone, Debug, Default)]
struct Content(Vec<Segment>);

impl Content {
    fn bytes(&self) -> u64 {
        self.0.iter().map(|it| it.bytes).sum()
    }

    /// The part from one place to another.
    fn cut(&self, from: u64, to: u64) -> Vec<Segment> {
        let (mut at, mut found) = (0, Vec::new());
        for it in &self.0 {
            let (start, end) = (from.max(at), to.min(at + it.bytes));
            if start < end {
                found.push(Segment { from: it.from + start - at, bytes: end - start, ..*it });
            }
            at += it.bytes;
        }
        found
    }

    /// The content after a splice, if it fits this one and its blob is there.
    fn spliced(&self, splice: Splice, blob: Option<Digest>) -> Option<Self> {
        let old = self.bytes();
        let fits = splice.front.checked_add(splice.end).is_some_and(|kept| kept <= old);
        if !fits || (splice.bytes > 0) != blob.is_some() {
            return None;
        }
        let mut segments = self.cut(0, splice.front);
        segments.extend(blob.map(|blob| Segment { blob, from: 0, bytes: splice.bytes }));
        segments.extend(self.cut(old - splice.end, old));
        Some(Self(segments))
    }

    fn each(&self, well: &Stepwell, look: &mut dyn FnMut(&[u8]) -> Result<()>) -> Result<()> {
        for it in &self.0 {
            let blob = well.store().blob(&it.blob)?;
            let range = usize::try_from(it.from).ok().zip(usize::try_from(it.bytes).ok());
            let piece = range.and_then(|(from, bytes)| blob.get(from..from.checked_add(bytes)?));
            look(piece.ok_or_else(|| Error::Write(io::ErrorKind::UnexpectedEof.into()))?)?;
        }
        Ok(())
    }
}

/// The files of a session, as they were kept last.
#[derive(Debug, Default)]
struct Originals {
    files: BTreeMap<String, Content>,
    /// The last record.
    last: Seq,
    /// Is a record without its blob, because that was erased?
    broken: bool,
}

impl Originals {
    /// What was kept of a session in the form of a system.
    fn of(well: &Stepwell, id: &SessionId, system: &str) -> Result<Self> {
        let mut all = Self::default();
        for recorded in well.store().keyed_events(id, &[Kind::Record])? {
            let Event::Record(record) = &recorded.event else { continue };
            if !record.keeps_original() || record.system != system {
                continue;
            }
            all.last = all.last.max(recorded.seq);
            let splice: Splice = serde_json::from_str(&record.data).unwrap_or_default();
            let known = all.files.remove(&record.key).unwrap_or_default();
            match known.spliced(splice, record.blobs.first().copied()) {
                _ if splice.gone => {}
                Some(content) => drop(all.files.insert(record.key.clone(), content)),
                None => all.broken = true,
            }
        }
        Ok(all)
    }

    /// Is there nothing but what the import itself wrote behind the files?
    fn is_untouched(&self, well: &Stepwell, head: &Head) -> Result<bool> {
        if self.files.is_empty() || self.broken || matches!(head.origin, Origin::Fork { .. }) {
            return Ok(false);
        }
        let behind = Span { limit: 2, ..Span::after(self.last) };
        let behind = well.store().events(&head.id, behind)?;
        Ok(behind.damage.is_none() && behind.events.iter().all(|it| is_facts(&it.event)))
    }
}

/// The session's files in the form of a system, if it is written there under its own name and to be
/// kept, and nobody touched it since it came.
fn untouched(
    well: &Stepwell,
    head: &Head,
    there: (&str, &str),
    purpose: Purpose,
) -> Result<Option<Originals>> {
    if purpose != Purpose::Keep || mark_of(well, head, there)?.is_some() {
        return Ok(None);
    }
    let originals = Originals::of(well, &head.id, there.0)?;
    Ok(if originals.is_untouched(well, head)? { Some(originals) } else { None })
}

/// Writes the one file of a session as it came. The answer says whether that was done.
pub(crate) fn write_file(
    well: &Stepwell,
    head: &Head,
    there: (&str, &str),
    purpose: Purpose,
    to: &mut dyn Write,
) -> Result<Option<Exported>> {
    let Some(originals) = untouched(well, head, there, purpose)? else { return Ok(None) };
    let Some(content) = originals.files.get(MAIN) else { return Ok(None) };
    content.each(well, &mut |bytes| to.write_all(bytes).map_err(Error::Write))?;
    to.flush().map_err(Error::Write)?;
    Ok(Some(Exported { sessions: 1, events: head.seq.get(), ..Exported::default() }))
}

/// Writes the folder of a session as it came. The answer says whether that was done.
pub(crate) fn write_folder(
    well: &Stepwell,
    head: &Head,
    there: (&str, &str),
    to: &mut Outlet<'_>,
) -> Result<Option<Exported>> {
    let originals = untouched(well, head, there, to.wishes().purpose)?;
    let Some(originals) = originals.filter(|it| !it.files.contains_key(MAIN)) else {
        return Ok(None);
    };
    for (name, content) in &originals.files {
        if let Some(folder) = name.strip_suffix('/') {
            to.folder(folder)?;
            continue;
        }
        let Some(mut file) = to.file(name)? else { return Err(Error::Shape { wants: "a folder" }) };
        content.each(well, &mut |bytes| file.write_all(bytes).map_err(Error::Write))?;
        file.flush().map_err(Error::Write)?;
    }
    let mut exported = Exported { sessions: 1, events: head.seq.get(), ..Exported::default() };
    for _ in subagents(well, &head.id)? {
        exported.losses.count(SUBAGENTS);
    }
    Ok(Some(exported))
}

/// The files that hold a session.
#[derive(Clone, Debug)]
pub(crate) enum Lies {
    /// One file, of which so many bytes were read; absent, all of it.
    File(PathBuf, Option<u64>),
    /// A folder, and what may lie in it.
    Folder(PathBuf, &'static [&'static str]),
}

impl Lies {
    /// The files by their names, and where they lie. Folders that are empty end in a slash.
    fn files(&self) -> Result<Vec<(String, PathBuf)>> {
        let (folder, parts) = match self {
            Self::File(path, _) => return Ok(vec![(MAIN.to_owned(), path.clone())]),
            Self::Folder(folder, parts) => (folder, parts),
        };
        let (mut found, mut waiting) = (Vec::new(), vec![PathBuf::new()]);
        while let Some(below) = waiting.pop() {
            for path in list(&folder.join(&below))? {
                let Some(name) = path.file_name() else { continue };
                let below = below.join(name);
                let Some(name) = below.to_str().map(str::to_owned) else { continue };
                match path.is_dir() {
                    true if !parts.iter().any(|part| leads_to(part, &below)) => {}
                    true if list(&path)?.is_empty() => found.push((format!("{name}/"), path)),
                    true => waiting.push(below),
                    false if parts.iter().any(|part| fits(part, &below)) => {
                        found.push((name, path));
                    }
                    false => {}
                }
            }
        }
        Ok(found)
    }
}

/// Keeps the files of a session: what changed since they were kept last is given to `keep`.
pub(crate) fn keep_files(
    well: &Stepwell,
    id: &SessionId,
    (system, lies): (&str, &Lies),
    keep: &mut dyn FnMut(NewEvent) -> Result<()>,
) -> Result<()> {
    let known = Originals::of(well, id, system)?;
    let mut files = lies.files()?;
    // What cannot be kept whole is not kept at all.
    let fits = files.len() <= MAX_FILES && files.iter().all(|(name, _)| name.len() <= MAX_PATH);
    if !fits || known.broken {
        files.clear();
    }
    for gone in known.files.keys().filter(|name| files.iter().all(|(it, _)| it != *name)) {
        keep(record(system, gone, Splice { gone: true, ..Splice::default() }, Vec::new()))?;
    }
    for (name, path) in files {
        let old = known.files.get(&name);
        if name.ends_with('/') {
            if old.is_none() {
                keep(record(system, &name, Splice::default(), Vec::new()))?;
            }
            continue;
        }
        let mut file = reader(&path, lies)?;
        let mut keeping = Keeping { well, system, name: &name, path: &path, keep };
        keeping.file(old, &mut file)?;
    }
    Ok(())
}

fn reader(path: &Path, lies: &Lies) -> Result<Box<dyn Read>> {
    let file: File = open(path)?;
    let size = file.metadata().map_err(|error| unreadable(path, error))?.len();
    Ok(match lies {
        _ if is_compressed(path) => {
            Box::new(expanded(file, size).map_err(|error| unreadable(path, error))?)
        }
        Lies::File(_, Some(bytes)) => Box::new(file.take(*bytes)),
        Lies::File(_, None) | Lies::Folder(..) => Box::new(file),
    })
}

fn record(system: &str, name: &str, splice: Splice, bytes: Vec<u8>) -> NewEvent {
    let attachments = if bytes.is_empty() { Vec::new() } else { vec![Attachment::new(bytes)] };
    let record = Record {
        system: system.to_owned(),
        topic: Record::ORIGINAL.to_owned(),
        key: name.to_owned(),
        data: serde_json::to_string(&splice).expect("it has no map"),
        text: None,
        blobs: attachments.iter().map(|it| it.digest).collect(),
    };
    NewEvent::from(Event::from(record)).with(attachments)
}

/// One file that is being kept.
struct Keeping<'a> {
    well: &'a Stepwell,
    system: &'a str,
    name: &'a str,
    path: &'a Path,
    keep: &'a mut dyn FnMut(NewEvent) -> Result<()>,
}

impl Keeping<'_> {
    fn file(&mut self, old: Option<&Content>, from: &mut dyn Read) -> Result<()> {
        let empty = Content::default();
        let content = old.unwrap_or(&empty);
        let (front, rest) = self.common_front(content, from)?;
        let behind = content.bytes() - front;
        if behind == 0 {
            return self.rest(old.is_some(), front, from);
        }
        // It was rewritten: what stands behind the change may be as it was.
        let (rest, whole) = self.read_on(rest, from)?;
        let end = match whole && behind <= MAX_FILE_BYTES {
            true => self.common_end(content, front, &rest)?,
            false => 0,
        };
        let bytes = rest.len() as u64 - end;
        let middle = rest.get(..rest.len() - usize::try_from(end).unwrap_or(0)).unwrap_or(&rest);
        self.put(Splice { front, end, bytes, gone: false }, middle.to_vec())?;
        if whole { Ok(()) } else { self.rest(true, front + bytes, from) }
    }

    /// How far the file is what it was, and what was read of it behind that.
    fn common_front(&self, old: &Content, from: &mut dyn Read) -> Result<(u64, Vec<u8>)> {
        let (mut front, mut rest, mut parted) = (0, Vec::new(), false);
        old.each(self.well, &mut |piece| {
            if parted {
                return Ok(());
            }
            let mut read = Vec::with_capacity(piece.len());
            from.take(piece.len() as u64).read_to_end(&mut read).map_err(|e| self.fault(e))?;
            let same = match piece == read {
                true => piece.len(),
                false => piece.iter().zip(&read).take_while(|(one, other)| one == other).count(),
            };
            front += same as u64;
            parted = same < piece.len();
            rest = read.split_off(same);
            Ok(())
        })?;
        Ok((front, rest))
    }

    /// Reads on, up to the largest file that is read whole. The answer says whether that was all.
    fn read_on(&self, mut rest: Vec<u8>, from: &mut dyn Read) -> Result<(Vec<u8>, bool)> {
        let room = MAX_FILE_BYTES.saturating_sub(rest.len() as u64);
        from.take(room).read_to_end(&mut rest).map_err(|error| self.fault(error))?;
        let whole = (rest.len() as u64) < MAX_FILE_BYTES;
        Ok((rest, whole))
    }

    /// How many of the last bytes are those that it had behind the front.
    fn common_end(&self, old: &Content, front: u64, rest: &[u8]) -> Result<u64> {
        let mut tail = Vec::new();
        Content(old.cut(front, old.bytes())).each(self.well, &mut |piece| {
            tail.extend_from_slice(piece);
            Ok(())
        })?;
        let pairs = tail.iter().rev().zip(rest.iter().rev());
        Ok(pairs.take_while(|(one, other)| one == other).count() as u64)
    }

    /// Keeps what is left of a file behind what is known of it. One that is new is kept though it
    /// be empty.
    fn rest(&mut self, mut known: bool, mut front: u64, from: &mut dyn Read) -> Result<()> {
        loop {
            let mut piece = Vec::new();
            let read = from.take(PIECE as u64).read_to_end(&mut piece);
            let bytes = read.map_err(|error| self.fault(error))? as u64;
            if bytes > 0 || !known {
                self.put(Splice { front, end: 0, bytes, gone: false }, piece)?;
            }
            if bytes == 0 {
                return Ok(());
            }
            (known, front) = (true, front + bytes);
        }
    }

    fn put(&mut self, splice: Splice, bytes: Vec<u8>) -> Result<()> {
        (self.keep)(record(self.system, self.name, splice, bytes))
    }

    fn fault(&self, error: io::Error) -> Error {
        unreadable(self.path, error)
    }
}
