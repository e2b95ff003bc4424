//! Changes of other sessions in a workspace while a command of this session ran.
//!
//! A scan before and after a command cannot tell the command's changes from another session's. The
//! other session's log can: a file tool records its targets before it writes, and a command's
//! changes are recorded when it ends. If two commands could have written a file, the one that ends
//! first records it.

use std::collections::HashSet;

use stepwell::model::{Digest, FileChanged, FileState, Time};
use stepwell::store::{Order, Span};
use stepwell::{Event, Seq, SessionId, Store};

use crate::error::Result;
use crate::others::others;
use crate::safe_fs::as_link;

/// How many events of another session are read at a time, newest first.
const PAGE: usize = 64;

/// The files that other sessions of a workspace wrote, or began to write, since a time.
#[derive(Debug, Default)]
pub struct Meanwhile {
    /// Paths, and the digest of the content that the session left.
    written: HashSet<(String, Option<Digest>)>,
}

impl Meanwhile {
    /// Reads the logs of the other sessions.
    pub fn of(store: &dyn Store, id: &SessionId, since: Time) -> Result<Self> {
        let mut meanwhile = Self::default();
        for other in others(store, id, since)? {
            meanwhile.read(store, &other, since)?;
        }
        Ok(meanwhile)
    }

    /// Reads a log backwards down to the time.
    fn read(&mut self, store: &dyn Store, other: &SessionId, since: Time) -> Result<()> {
        let mut to = Seq::MAX;
        loop {
            let span = Span { from: Seq::FIRST, to, order: Order::Newest, limit: PAGE };
            let events = store.events(other, span)?.intact(other)?;
            let recent = events.iter().take_while(|event| event.at > since);
            recent.for_each(|event| self.note(&event.event));
            match events.last() {
                Some(last) if last.at > since && last.seq > Seq::FIRST => {
                    to = Seq::new(last.seq.get() - 1);
                }
                _ => return Ok(()),
            }
        }
    }

    fn note(&mut self, event: &Event) {
        match event {
            Event::File(file) => {
                self.written.insert((file.path.clone(), digest(&file.after)));
            }
            Event::ToolStarted(started) => {
                let targets = started.targets.iter();
                self.written.extend(targets.map(|it| (it.path.clone(), it.after)));
            }
            _ => {}
        }
    }

    /// Did another session leave the file in its current state?
    #[must_use]
    pub fn wrote(&self, change: &FileChanged) -> bool {
        self.written.contains(&(change.path.clone(), digest(&change.after)))
    }
}

/// The digest of a state in plans.
fn digest(state: &FileState) -> Option<Digest> {
    match state {
        FileState::Absent => None,
        FileState::File { blob, .. } => Some(*blob),
        FileState::Symlink { target } => Some(Digest::of(as_link(target).as_bytes())),
        FileState::NotCaptured { digest, .. } => *digest,
    }
}
