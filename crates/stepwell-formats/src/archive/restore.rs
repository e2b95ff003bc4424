//! Importing an archive: every session as it was, or nothing.

use std::collections::HashSet;
use std::io::BufRead;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use stepwell::model::{Digest, Origin};
use stepwell::store::Target;
use stepwell::{Event, Recorded, Seq, SessionId, Stepwell};

use super::log::{Log, Outcome};
use super::read::{Receive, read};
use super::{Blob, Closing, Entry};
use crate::{Error, Result};

/// What an import did, each session in the order of the archive.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Imported {
    /// Sessions that are new.
    pub made: Vec<SessionId>,
    /// Sessions whose front was there, as an import that was cut off leaves it.
    pub completed: Vec<SessionId>,
    /// Sessions that were there, event for event.
    pub already_there: Vec<SessionId>,
    /// Of all these, the ones that were damaged when they were exported: the archive
    /// holds their events up to the damage.
    pub cut_short: Vec<SessionId>,
}

/// Reads an archive in, in either form. Sessions keep their ids, and events their seqs,
/// times and ids. A session that is there already and differs is an error and stays as
/// it is. After an error nothing is left of the sessions that this import made; after a
/// crash, the same import completes them.
pub fn import(well: &Stepwell, from: &mut dyn BufRead) -> Result<Imported> {
    import_as(well, from, &SessionId::clone)
}

/// The same, under other names: what each session of the archive is called here.
pub(crate) fn import_as(
    well: &Stepwell,
    from: &mut dyn BufRead,
    name: &dyn Fn(&SessionId) -> SessionId,
) -> Result<Imported> {
    let mut restoring = Restoring {
        well,
        name,
        imported: Imported::default(),
        named: HashSet::new(),
        blobs: HashSet::new(),
        made: Vec::new(),
        log: None,
    };
    match read(from, &mut restoring) {
        Ok(()) => Ok(restoring.imported),
        Err(error) => {
            restoring.undo();
            Err(error)
        }
    }
}

struct Restoring<'a> {
    well: &'a Stepwell,
    name: &'a dyn Fn(&SessionId) -> SessionId,
    imported: Imported,
    /// Every session of the archive so far.
    named: HashSet<SessionId>,
    /// Every blob of the archive so far.
    blobs: HashSet<Digest>,
    /// Sessions that this import made, and the last event of each.
    made: Vec<(SessionId, Seq)>,
    /// The session that is being read.
    log: Option<Log>,
}

impl Receive for Restoring<'_> {
    fn push(&mut self, entry: Entry) -> Result<()> {
        match (entry, &mut self.log) {
            (Entry::Opening(mut opening), _) => {
                opening.id = (self.name)(&opening.id);
                rename(&mut opening.origin, self.name);
                if !self.named.insert(opening.id.clone()) {
                    let why = "the session is in the archive twice".to_owned();
                    return Err(Error::Unfit { session: opening.id, seq: Seq::FIRST, why });
                }
                self.log = Some(Log::open(self.well, opening)?);
            }
            (Entry::Event(mut event, bytes), Some(log)) => {
                if let Event::Created(created) = &mut event.event {
                    created.id = (self.name)(&created.id);
                    rename(&mut created.origin, self.name);
                }
                has_blobs(log.id(), &event, &self.blobs)?;
                log.append(*event, bytes)?;
            }
            (Entry::Blob(blob), _) => self.keep(&blob)?,
            (Entry::Closing(closing), _) => self.close(&closing)?,
            (Entry::Event(..), None) => {}
        }
        Ok(())
    }
}

impl Restoring<'_> {
    /// Puts a blob before the events that name it.
    fn keep(&mut self, Blob { blob, base64 }: &Blob) -> Result<()> {
        let not_base64 = |why: String| Error::NotBase64 { digest: *blob, why };
        let bytes = STANDARD.decode(base64).map_err(|error| not_base64(error.to_string()))?;
        let found = Digest::of(&bytes);
        if found != *blob {
            return Err(Error::WrongBlob { digest: *blob, found });
        }
        self.well.store().keep_blobs(&[(found, &bytes)])?;
        self.blobs.insert(found);
        Ok(())
    }

    fn close(&mut self, closing: &Closing) -> Result<()> {
        let Some(mut log) = self.log.take() else { return Ok(()) };
        let id = log.id().clone();
        // A log that does not close is undone like one that was cut off before.
        let (outcome, last) = match log.close(closing.events) {
            Ok(closed) => closed,
            Err(error) => {
                self.log = Some(log);
                return Err(error);
            }
        };
        match outcome {
            Outcome::Made => {
                self.made.push((id.clone(), last));
                self.imported.made.push(id.clone());
            }
            Outcome::Completed => self.imported.completed.push(id.clone()),
            Outcome::AlreadyThere => self.imported.already_there.push(id.clone()),
        }
        if closing.damage.is_some() {
            self.imported.cut_short.push(id);
        }
        Ok(())
    }

    /// Takes back what was made. A failure to do so is not reported: what made the
    /// import fail says more, and what stays is completed by the same import.
    fn undo(self) {
        if let Some(log) = self.log {
            log.undo();
        }
        for (id, last) in self.made.into_iter().rev() {
            let info = self.well.info(&id);
            // Somebody may work on it already.
            if info.is_ok_and(|info| info.head.seq == last) {
                self.well.store().maintain().purge(&[Target::from(id)]).ok();
            }
        }
    }
}

/// Gives the session that another one grew out of the name that it has here.
fn rename(origin: &mut Origin, name: &dyn Fn(&SessionId) -> SessionId) {
    match origin {
        Origin::Root => {}
        Origin::Fork { parent, .. } | Origin::Subagent { parent } => *parent = name(parent),
    }
}

fn has_blobs(session: &SessionId, event: &Recorded, blobs: &HashSet<Digest>) -> Result<()> {
    match event.event.blobs().into_iter().find(|digest| !blobs.contains(digest)) {
        None => Ok(()),
        Some(digest) => {
            let why = format!("it names blob {digest}, which the archive does not hold before it");
            Err(Error::Unfit { session: session.clone(), seq: event.seq, why })
        }
    }
}
