//! What a reader may touch: files and folders that are looked at before they are opened,
//! each read within bounds and never through a link.

use std::borrow::Cow;
use std::cell::RefCell;
use std::collections::BTreeSet;
use std::fs::{File, OpenOptions};
use std::io::{self, BufRead, BufReader, Read};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::rc::Rc;

use memchr::memchr;
use stepwell::model::{Digest, DigestHasher};

use crate::json::fields::Fields;
use crate::read::neutral::Warning;
use crate::read::seen::Seen;
pub(crate) use crate::read::seen::{list, unreadable};
use crate::{Error, Result, json::lone_surrogates};

/// The largest file that is read whole: what the systems whose files these are write at
/// the most. A size is checked before it is trusted.
pub const MAX_FILE_BYTES: u64 = 50 << 20;

/// The longest line that is read, so that a file without an end of line stays bounded.
pub const MAX_LINE_BYTES: usize = 50 << 20;

/// How many times its size a compressed file may expand to. Conversations reach fifty;
/// what expands further was made to fill a disk.
const MAX_EXPANSION: u64 = 1_000;

/// What may be expanded in any case, so that a tiny file of equal lines is read.
const FREE_EXPANSION: u64 = 16 << 20;

/// The largest window of a compressed file, as a power of two: it is held in memory.
const MAX_WINDOW: u32 = 25;

/// One session on disk, or a group of them that belong together.
pub struct Input {
    root: PathBuf,
    /// What the file system said of the root before anything of it was read.
    seen: Option<Seen>,
    stamps: RefCell<Vec<(PathBuf, Rc<RefCell<Stamp>>)>>,
    watcher: Watcher,
    flaws: Rc<Flaws>,
}

/// Places at which something else was read than is written there.
#[derive(Debug, Default)]
struct Flaws(RefCell<BTreeSet<(PathBuf, Option<u64>, Flaw)>>);

/// What was read as U+FFFD.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Flaw {
    /// A half of a pair.
    Half,
    /// A byte of no character.
    Byte,
}

/// How many of them are remembered: a file may be wrong on every line.
const MAX_FLAWS: usize = 100;

impl Flaws {
    fn look(&self, text: &str, path: &Path, line: Option<u64>) {
        if self.0.borrow().len() < MAX_FLAWS && lone_surrogates::mended(text).is_some() {
            self.add(path, line, Flaw::Half);
        }
    }

    fn add(&self, path: &Path, line: Option<u64>, flaw: Flaw) {
        self.0.borrow_mut().insert((path.to_owned(), line, flaw));
    }
}

/// Who is told of every stretch of bytes that is read.
pub type Watcher = Rc<dyn Fn(usize)>;

impl std::fmt::Debug for Input {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Input").field("root", &self.root).finish_non_exhaustive()
    }
}

/// What was read of a file.
#[derive(Clone, Debug, Default)]
struct Stamp {
    bytes: u64,
    hash: DigestHasher,
    /// What the file system said of it before that.
    seen: Option<Seen>,
}

/// What a file held when it was read: enough to know it again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fingerprint {
    /// How many bytes were read.
    pub bytes: u64,
    /// Their digest.
    pub digest: Digest,
}

impl Input {
    /// What lies at a path. A link that the user named is followed; those below it are not.
    pub fn at(path: &Path) -> Result<Self> {
        Self::watched(path, Rc::new(|_| {}))
    }

    /// The same, while somebody watches how far it is.
    pub fn watched(path: &Path, watcher: Watcher) -> Result<Self> {
        let root = std::fs::canonicalize(path).map_err(|error| unreadable(path, error))?;
        let seen = Seen::of(&root);
        Ok(Self { root, seen, stamps: RefCell::default(), watcher, flaws: Rc::default() })
    }

    /// What the file system said of the root, or of a file below it, before anything of it was read.
    pub(crate) fn seen(&self, path: &Path) -> Option<Seen> {
        if path == self.root {
            return self.seen.clone();
        }
        self.stamp(path)?.borrow().seen.clone()
    }

    /// The file or the folder that is read.
    #[must_use]
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// The whole of a file, at most [`MAX_FILE_BYTES`].
    pub fn whole(&self, path: &Path) -> Result<Vec<u8>> {
        let file = open(path)?;
        let size = file.metadata().map_err(|error| unreadable(path, error))?.len();
        let too_large =
            |size| Error::FileTooLarge { path: path.to_owned(), size, limit: MAX_FILE_BYTES };
        if size > MAX_FILE_BYTES {
            return Err(too_large(size));
        }
        let mut bytes = Vec::with_capacity(usize::try_from(size).unwrap_or(0));
        // It may have grown since.
        let mut bounded = self.stamped(path, file).take(MAX_FILE_BYTES + 1);
        bounded.read_to_end(&mut bytes).map_err(|error| unreadable(path, error))?;
        match bytes.len() as u64 {
            size if size > MAX_FILE_BYTES => Err(too_large(size)),
            _ => Ok(bytes),
        }
    }

    /// The whole of a file as text.
    pub fn text(&self, path: &Path) -> Result<String> {
        let text = String::from_utf8(self.whole(path)?).map_err(|error| Error::Foreign {
            path: path.to_owned(),
            why: format!("byte {} is not UTF-8", error.utf8_error().valid_up_to()),
        })?;
        self.flaws.look(&text, path, None);
        Ok(match text.strip_prefix(BYTE_ORDER_MARK) {
            Some(text) => text.to_owned(),
            None => text,
        })
    }

    /// What was read otherwise than it was written.
    pub(crate) fn flaws(&self) -> Vec<Warning> {
        let told = |(path, line, flaw): &(PathBuf, Option<u64>, Flaw)| Warning {
            place: match line {
                Some(line) => format!("{}, line {line}", path.display()),
                None => path.display().to_string(),
            },
            what: match flaw {
                Flaw::Half => "half of a character is in a text, and was read as U+FFFD",
                Flaw::Byte => "it is not UTF-8, and was read with U+FFFD in it",
            }
            .to_owned(),
        };
        self.flaws.0.borrow().iter().map(told).collect()
    }

    /// The lines of a file, one at a time; of a `.zst`, those that it expands to.
    pub fn lines(&self, path: &Path) -> Result<Lines> {
        let file = open(path)?;
        let size = file.metadata().map_err(|error| unreadable(path, error))?.len();
        self.lines_of(path, self.stamped(path, file), size)
    }

    /// The same, for a look ahead: nobody watches, and nothing is known of the file by it.
    pub(crate) fn glance(&self, path: &Path) -> Result<Lines> {
        let file = open(path)?;
        let size = file.metadata().map_err(|error| unreadable(path, error))?.len();
        self.lines_of(path, file, size)
    }

    fn lines_of(&self, path: &Path, from: impl Read + 'static, size: u64) -> Result<Lines> {
        let from: Box<dyn BufRead> = match is_compressed(path) {
            false => Box::new(BufReader::with_capacity(256 << 10, from)),
            true => Box::new(expanded(from, size).map_err(|error| unreadable(path, error))?),
        };
        let (path, flaws) = (path.to_owned(), Rc::clone(&self.flaws));
        Ok(Lines { from, path, number: 0, offset: 0, used: 0, buffer: Vec::new(), flaws })
    }

    /// What is in a folder, sorted, without links. A folder that is not there is empty.
    pub fn list(&self, folder: &Path) -> Result<Vec<PathBuf>> {
        list(folder)
    }

    /// What was read of a file so far.
    #[must_use]
    pub fn fingerprint(&self, path: &Path) -> Option<Fingerprint> {
        let stamp = self.stamp(path)?;
        let Stamp { bytes, hash, .. } = &*stamp.borrow();
        let digest = hash.digest();
        Some(Fingerprint { bytes: *bytes, digest })
    }

    /// What was noted when a file was read last.
    fn stamp(&self, path: &Path) -> Option<Rc<RefCell<Stamp>>> {
        let stamps = self.stamps.borrow();
        let (_, stamp) = stamps.iter().rev().find(|(read, _)| read == path)?;
        Some(Rc::clone(stamp))
    }

    fn stamped(&self, path: &Path, file: File) -> Stamped {
        let seen = file.metadata().ok().map(|found| Seen::of_file(&found));
        let stamp = Rc::new(RefCell::new(Stamp { seen, ..Stamp::default() }));
        let mut stamps = self.stamps.borrow_mut();
        // Whoever reads thousands of files asks for none of these.
        if stamps.len() < 64 {
            stamps.push((path.to_owned(), Rc::clone(&stamp)));
        }
        Stamped { file, stamp, watcher: Rc::clone(&self.watcher) }
    }
}

/// A file whose bytes are counted and hashed as they are read.
struct Stamped {
    file: File,
    stamp: Rc<RefCell<Stamp>>,
    watcher: Watcher,
}

impl Read for Stamped {
    fn read(&mut self, to: &mut [u8]) -> io::Result<usize> {
        let n = self.file.read(to)?;
        let mut stamp = self.stamp.borrow_mut();
        stamp.bytes += n as u64;
        stamp.hash.update(&to[..n]);
        (self.watcher)(n);
        Ok(n)
    }
}

/// Opens a regular file, not a link to one, a device or a pipe.
pub(crate) fn open(path: &Path) -> Result<File> {
    // A pipe would keep us waiting for its writer.
    let flags = rustix::fs::OFlags::NOFOLLOW | rustix::fs::OFlags::NONBLOCK;
    let flags = i32::try_from(flags.bits()).unwrap_or_default();
    let opened = OpenOptions::new().read(true).custom_flags(flags).open(path);
    let file = opened.map_err(|error| {
        let is_link = path.symlink_metadata().is_ok_and(|found| found.is_symlink());
        if is_link { is_a_link(path) } else { unreadable(path, error) }
    })?;
    match file.metadata() {
        Ok(found) if found.is_file() => Ok(file),
        Ok(_) => Err(Error::Foreign { path: path.to_owned(), why: "it is no file".to_owned() }),
        Err(error) => Err(unreadable(path, error)),
    }
}

fn is_a_link(path: &Path) -> Error {
    Error::Foreign {
        path: path.to_owned(),
        why: "it is a link, and links are not followed".to_owned(),
    }
}

pub(crate) fn is_compressed(path: &Path) -> bool {
    path.extension().is_some_and(|extension| extension == "zst")
}

/// What a compressed file expands to, within bounds.
pub(crate) fn expanded(from: impl Read, size: u64) -> io::Result<impl BufRead> {
    let mut decoder = zstd::stream::read::Decoder::new(from)?;
    decoder.window_log_max(MAX_WINDOW)?;
    let left = size.saturating_mul(MAX_EXPANSION).max(FREE_EXPANSION);
    Ok(BufReader::with_capacity(256 << 10, Bounded { from: decoder, left }))
}

/// Fails, instead of going on, once so much was read.
struct Bounded<R> {
    from: R,
    left: u64,
}

impl<R: Read> Read for Bounded<R> {
    fn read(&mut self, to: &mut [u8]) -> io::Result<usize> {
        let n = self.from.read(to)?;
        self.left = self.left.checked_sub(n as u64).ok_or_else(|| {
            let why = format!("it expands to more than {MAX_EXPANSION} times its size");
            io::Error::new(io::ErrorKind::InvalidData, why)
        })?;
        Ok(n)
    }
}

/// What some editors and shells put in front of a text.
const BYTE_ORDER_MARK: char = '\u{feff}';

/// The bytes of a text without such a mark.
pub(crate) fn without_mark(bytes: &[u8]) -> &[u8] {
    bytes.strip_prefix("\u{feff}".as_bytes()).unwrap_or(bytes)
}

/// The lines of a file.
pub struct Lines {
    from: Box<dyn BufRead>,
    path: PathBuf,
    number: u64,
    offset: u64,
    /// How long the line is that lies whole in what was read ahead, and is passed by there.
    used: usize,
    /// A line that does not.
    buffer: Vec<u8>,
    flaws: Rc<Flaws>,
}

/// One line.
#[derive(Clone, Copy, Debug)]
pub struct Line<'a> {
    /// Which one, from 1.
    pub number: u64,
    /// Where it begins.
    pub offset: u64,
    /// Its bytes without the end of line; nothing, where it is too long to be read.
    pub bytes: Option<&'a [u8]>,
    /// How it ends.
    pub end: LineEnd,
    path: &'a Path,
    flaws: &'a Flaws,
}

impl<'a> Line<'a> {
    /// Its text, for a line that the rest means nothing without: bytes that are none stand as
    /// U+FFFD, and are told of. What is wrong with it otherwise, [`Line::object`] says.
    pub fn mended(&self) -> Option<String> {
        let text = String::from_utf8_lossy(self.bytes?);
        matches!(&text, Cow::Owned(text) if Fields::parse(text).is_ok()).then(|| {
            self.flaws.add(self.path, Some(self.number), Flaw::Byte);
            text.into_owned()
        })
    }

    /// The JSON object on it, and its text; or what is wrong with it.
    pub fn object(&self) -> Result<(&'a str, Fields<'a>), String> {
        let bytes = self.bytes.ok_or("it is too long, and was left out")?;
        let text = std::str::from_utf8(bytes).map_err(|_| "it is not UTF-8".to_owned());
        let parsed = text.and_then(|text| match Fields::parse(text) {
            Ok(fields) => {
                self.flaws.look(text, self.path, Some(self.number));
                Ok((text, fields))
            }
            Err(error) => Err(format!("it is no JSON object ({error})")),
        });
        parsed.map_err(|why| match self.end {
            LineEnd::Newline => format!("{why}, and was left out"),
            LineEnd::File => "the last line is torn, and was left out".to_owned(),
        })
    }
}

/// How a line ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LineEnd {
    /// As lines do.
    Newline,
    /// With the file: it may be torn.
    File,
}

impl Lines {
    /// The next line that is not empty.
    pub fn next_line(&mut self) -> Result<Option<Line<'_>>> {
        loop {
            self.from.consume(std::mem::take(&mut self.used));
            let (read, ended) = match self.ahead()? {
                Some(length) => (length, true),
                None => self.fill()?,
            };
            if read == 0 {
                return Ok(None);
            }
            let offset = self.offset;
            self.offset += read;
            self.number += 1;
            let too_long = read > MAX_LINE_BYTES as u64 + 1;
            if too_long || !self.present()?.is_empty() {
                let end = if ended { LineEnd::Newline } else { LineEnd::File };
                let number = self.number;
                let present = match self.used {
                    0 => &self.buffer,
                    used => front(&mut *self.from, &self.path, used)?,
                };
                let present = if offset == 0 { without_mark(present) } else { present };
                let bytes = (!too_long).then(|| present.trim_ascii());
                let (path, flaws) = (&*self.path, &*self.flaws);
                return Ok(Some(Line { number, offset, bytes, end, path, flaws }));
            }
        }
    }

    /// How long the next line is, if it lies whole in what was read ahead.
    fn ahead(&mut self) -> Result<Option<u64>> {
        let ahead = match self.from.fill_buf() {
            Ok(ahead) => ahead,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => return Ok(None),
            Err(error) => return Err(unreadable(&self.path, error)),
        };
        let end = memchr(b'\n', ahead);
        self.used = end.map_or(0, |end| end + 1);
        Ok(end.map(|end| end as u64 + 1))
    }

    /// The line that was found, without spaces around it.
    fn present(&mut self) -> Result<&[u8]> {
        Ok(match self.used {
            0 => self.buffer.trim_ascii(),
            used => front(&mut *self.from, &self.path, used)?.trim_ascii(),
        })
    }

    /// Reads a line into the buffer; of one that is too long, its front. The answer is
    /// how long it was.
    fn fill(&mut self) -> Result<(u64, bool)> {
        // One line of the largest size must not be held for good.
        if self.buffer.capacity() > 1 << 20 {
            self.buffer = Vec::new();
        }
        self.buffer.clear();
        let mut read = 0;
        loop {
            let chunk = match self.from.fill_buf() {
                Ok(chunk) => chunk,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) => return Err(unreadable(&self.path, error)),
            };
            if chunk.is_empty() {
                return Ok((read, false));
            }
            let end = memchr(b'\n', chunk);
            let used = end.map_or(chunk.len(), |end| end + 1);
            let room = (MAX_LINE_BYTES + 1).saturating_sub(self.buffer.len());
            self.buffer.extend_from_slice(&chunk[..used.min(room)]);
            read += used as u64;
            self.from.consume(used);
            if end.is_some() {
                return Ok((read, true));
            }
        }
    }
}

/// The front of what was read ahead.
fn front<'a>(from: &'a mut dyn BufRead, path: &Path, length: usize) -> Result<&'a [u8]> {
    let ahead = from.fill_buf().map_err(|error| unreadable(path, error))?;
    Ok(ahead.get(..length).unwrap_or(ahead))
}
