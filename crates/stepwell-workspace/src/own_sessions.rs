//! The user's own sessions, and what they gave in them.
//!
//! What was allowed in a session stands in its store. A store can come with a folder that someone
//! else made, and others may write to a team's. So the user's own folder notes what they gave: only
//! that counts, or what a team's server says that they gave. Notes name the store as well as the
//! session: a copy of a session in another folder is another one.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use stepwell::model::Digest;
use stepwell::store::Place;
use stepwell::trust::{Given, Note, Notebook, Notes};
use stepwell::{Seq, SessionId};

use crate::atomic_file::replace_private_file;

/// The user's own sessions in one store: an empty file for each, so that no two processes ever
/// write the same one differently; and beside it the notes of what they gave there.
#[derive(Clone, Debug)]
pub struct OwnSessions {
    folder: PathBuf,
    /// What the names of a store's sessions end with.
    store: String,
}

impl OwnSessions {
    /// Those of a store that the user's state folder names. `store` is where it is, so that no
    /// other store is taken for it.
    #[must_use]
    pub fn below(state: &Path, store: &str) -> Self {
        let digest = Digest::of(store.as_bytes()).to_string();
        Self { folder: state.join("own"), store: digest[..16].to_owned() }
    }

    /// Is it the user's own?
    #[must_use]
    pub fn has(&self, id: &SessionId) -> bool {
        self.mark(id).exists()
    }

    /// Marks a session as the user's own.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn add(&self, id: &SessionId) -> io::Result<()> {
        fs::create_dir_all(&self.folder)?;
        File::create(self.mark(id)).map(drop)
    }

    /// Takes the mark back.
    ///
    /// # Errors
    /// If it cannot be removed.
    pub fn remove(&self, id: &SessionId) -> io::Result<()> {
        fs::remove_file(self.mark(id))
    }

    /// Did it come from a folder in which an agent of the user's own keeps its sessions? What was
    /// allowed in it counts for nothing.
    #[must_use]
    pub fn has_from_agent(&self, id: &SessionId) -> bool {
        self.import_mark(id).exists()
    }

    /// Marks a session as one that came from such a folder.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn add_from_agent(&self, id: &SessionId) -> io::Result<()> {
        fs::create_dir_all(&self.folder)?;
        File::create(self.import_mark(id)).map(drop)
    }

    fn import_mark(&self, id: &SessionId) -> PathBuf {
        self.folder.join(format!("{id}@{}.from-agent", self.store))
    }

    /// No id holds an `@`.
    fn mark(&self, id: &SessionId) -> PathBuf {
        self.folder.join(format!("{id}@{}", self.store))
    }

    fn notes(&self, id: &SessionId) -> PathBuf {
        self.folder.join(format!("{id}@{}.given", self.store))
    }

    /// How far the user saw a session's log.
    fn seen_file(&self, id: &SessionId) -> PathBuf {
        self.folder.join(format!("{id}@{}.seen", self.store))
    }

    fn write_seen(&self, id: &SessionId, end: Option<Place>) -> io::Result<()> {
        let file = self.seen_file(id);
        let Some(Place { seq, chain }) = end else {
            return match fs::remove_file(file) {
                Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
                done => done,
            };
        };
        fs::create_dir_all(&self.folder)?;
        replace_private_file(&file, format!("{seq} {chain}\n").as_bytes())
    }

    /// The notes on a session, for writing, once nobody else has them open.
    fn write(&self, id: &SessionId) -> io::Result<File> {
        fs::create_dir_all(&self.folder)?;
        let mut options = OpenOptions::new();
        let file = options.create(true).read(true).append(true).mode(0o600).open(self.notes(id))?;
        file.lock()?;
        Ok(file)
    }
}

impl Notes for OwnSessions {
    fn open(&self, session: &SessionId) -> Box<dyn Notebook + '_> {
        let file = self.write(session);
        if let Err(error) = &file {
            tracing::warn!(%session, %error, "what_was_given_is_not_noted");
        }
        let before = file.as_ref().ok().and_then(|file| file.metadata().ok());
        Box::new(OnDisk { file: file.ok(), before: before.map_or(0, |it| it.len()) })
    }

    fn given(&self, session: &SessionId) -> Given {
        let read = || {
            let mut file = match File::open(self.notes(session)) {
                Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(String::new()),
                file => file?,
            };
            // Whoever is about to note something has it locked.
            file.lock_shared()?;
            let mut text = String::new();
            file.read_to_string(&mut text).map(|_| text)
        };
        let text = read().unwrap_or_else(|error: io::Error| {
            tracing::warn!(%session, %error, "what_was_given_is_not_known");
            String::new()
        });
        let mut given = Given::default();
        for line in text.lines() {
            match line.strip_prefix(ANNOUNCED).map(parse) {
                Some(Some(note)) => given.announce(note.seq, note.digest),
                Some(None) => {}
                None => parse(line).into_iter().for_each(|note| given.add(note)),
            }
        }
        given
    }

    fn seen(&self, session: &SessionId) -> Option<Place> {
        let text = fs::read_to_string(self.seen_file(session)).ok()?;
        let Note { seq, digest: chain } = parse(text.trim_end())?;
        Some(Place { seq, chain })
    }

    fn see(&self, session: &SessionId, end: Option<Place>) {
        if let Err(error) = self.write_seen(session, end) {
            tracing::warn!(%session, %error, "what_was_seen_is_not_noted");
        }
    }
}

/// The notes on one session: a line for each. Dropping it unlocks them.
struct OnDisk {
    file: Option<File>,
    /// How long they were when they were opened.
    before: u64,
}

impl OnDisk {
    fn write(&mut self, text: &str) {
        let Some(file) = &mut self.file else { return };
        if let Err(error) = file.write_all(text.as_bytes()) {
            tracing::warn!(%error, "what_was_given_is_not_noted");
        }
    }
}

impl Notebook for OnDisk {
    fn announce(&mut self, end: Seq, digests: &[Digest]) {
        let text: String = digests.iter().map(|it| format!("{ANNOUNCED}{end} {it}\n")).collect();
        self.write(&text);
    }

    fn add(&mut self, notes: &[Note]) {
        let text: String = notes.iter().map(|it| format!("{} {}\n", it.seq, it.digest)).collect();
        self.write(&text);
    }

    fn take_back(&mut self) {
        let Some(file) = &self.file else { return };
        if let Err(error) = file.set_len(self.before) {
            tracing::warn!(%error, "what_was_not_given_is_still_noted");
        }
    }
}

/// What a line begins with that says what is about to be given.
const ANNOUNCED: char = '~';

/// Reads a line. One that was cut off notes nothing.
fn parse(line: &str) -> Option<Note> {
    let (seq, digest) = line.split_once(' ')?;
    Some(Note { seq: Seq::new(seq.parse().ok()?), digest: digest.parse().ok()? })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_session_is_the_users_own_in_its_store_only() {
        let state = tempfile::tempdir().unwrap();
        let id: SessionId = "a".parse().unwrap();
        let here = OwnSessions::below(state.path(), "/here/.stepwell");
        let copy = OwnSessions::below(state.path(), "/copy/.stepwell");
        assert!(!here.has(&id));
        here.add(&id).unwrap();
        assert!(here.has(&id) && !copy.has(&id));
        assert!(!here.has(&"b".parse().unwrap()));
    }

    #[test]
    fn what_was_given_is_noted_for_one_session_of_one_store() {
        let state = tempfile::tempdir().unwrap();
        let [a, b]: [SessionId; 2] = ["a", "b"].map(|id| id.parse().unwrap());
        let here = OwnSessions::below(state.path(), "/here/.stepwell");
        let copy = OwnSessions::below(state.path(), "/copy/.stepwell");
        let note = |seq| Note { seq: Seq::new(seq), digest: Digest::of(b"said") };
        here.open(&a).add(&[note(2)]);
        here.open(&a).add(&[note(3), note(7)]);
        assert_eq!(here.given(&a).notes().collect::<Vec<_>>(), [2, 3, 7].map(note));
        assert_eq!((copy.given(&a), here.given(&b)), (Given::default(), Given::default()));
        // Looking leaves nothing behind, and notes make no session the user's own.
        assert!(!here.has(&a) && !here.notes(&b).exists());
    }

    #[test]
    fn what_was_not_given_after_all_is_taken_back_and_what_was_stays() {
        let state = tempfile::tempdir().unwrap();
        let id: SessionId = "a".parse().unwrap();
        let here = OwnSessions::below(state.path(), "/here/.stepwell");
        let note = |seq| Note { seq: Seq::new(seq), digest: Digest::of(b"said") };
        here.open(&id).add(&[note(2)]);
        let mut open = here.open(&id);
        open.add(&[note(3)]);
        open.take_back();
        drop(open);
        assert_eq!(here.given(&id).notes().collect::<Vec<_>>(), [note(2)]);
    }

    #[test]
    fn what_was_announced_counts_until_it_is_noted_or_taken_back() {
        let state = tempfile::tempdir().unwrap();
        let id: SessionId = "a".parse().unwrap();
        let here = OwnSessions::below(state.path(), "/here/.stepwell");
        let digest = Digest::of(b"said");
        let announced = || {
            let mut given = Given::default();
            given.announce(Seq::new(6), digest);
            given
        };
        // As by a process that died.
        here.open(&id).announce(Seq::new(6), &[digest]);
        assert_eq!(here.given(&id), announced());
        let mut open = here.open(&id);
        open.announce(Seq::new(8), &[digest]);
        open.take_back();
        drop(open);
        assert_eq!(here.given(&id), announced());
        here.open(&id).add(&[Note { seq: Seq::new(7), digest }]);
        let noted: Vec<Note> = here.given(&id).notes().collect();
        assert_eq!(noted, [Note { seq: Seq::new(7), digest }]);
        assert_ne!(here.given(&id), announced());
    }

    #[test]
    fn a_line_that_was_cut_off_notes_nothing() {
        let state = tempfile::tempdir().unwrap();
        let id: SessionId = "a".parse().unwrap();
        let here = OwnSessions::below(state.path(), "/here/.stepwell");
        let note = Note { seq: Seq::new(2), digest: Digest::of(b"said") };
        here.open(&id).add(&[note]);
        let mut file = OpenOptions::new().append(true).open(here.notes(&id)).unwrap();
        file.write_all(b"3 blake3:12").unwrap();
        assert_eq!(here.given(&id).notes().collect::<Vec<_>>(), [note]);
    }

    #[test]
    fn notes_wait_for_whoever_is_about_to_write() {
        let state = tempfile::tempdir().unwrap();
        let id: SessionId = "a".parse().unwrap();
        let here = OwnSessions::below(state.path(), "/here/.stepwell");
        let note = Note { seq: Seq::new(2), digest: Digest::of(b"said") };
        let mut open = here.open(&id);
        std::thread::scope(|scope| {
            let reader = scope.spawn(|| here.given(&id).notes().count());
            open.add(&[note]);
            drop(open);
            assert_eq!(reader.join().unwrap(), 1);
        });
    }
}
