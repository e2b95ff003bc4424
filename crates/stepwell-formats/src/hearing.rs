//! What lies at a path, heard without being taken in: does it hold all that a session shows?

use std::collections::{BTreeSet, HashMap};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::io::BufRead;
use std::path::Path;

use stepwell::{Event, Message, NodeState, Seq, SessionId, Source, Span, Stepwell, View};

use crate::input::Input;
use crate::neutral::{Item, Opening, Sink, Telling, Warning};
use crate::registry::Format;
use crate::writer::each_event;
use crate::{Error, Result};

/// Does what lies at a path hold all that a session which came from that format shows now?
/// It may hold more: its own agent may have gone on with it. What cannot be read holds
/// nothing.
pub fn holds_all(well: &Stepwell, id: &SessionId, format: Format, path: &Path) -> Result<bool> {
    let (Some(source), Some(reader)) = (well.standing(id)?.head.source, format.reader()) else {
        return Ok(false);
    };
    let mut ear = Ear { source, listens: false, missing: shown(well, id)?, places: Seq::ZERO };
    let heard = Input::at(path).and_then(|input| reader.read(&input, &mut ear));
    Ok(heard.is_ok() && ear.missing.is_empty())
}

/// Who listens to one session for what has to be in it.
struct Ear {
    source: Source,
    listens: bool,
    /// What was not heard yet, and how often it has to be.
    missing: HashMap<u64, u64>,
    places: Seq,
}

impl Sink for Ear {
    fn begin(&mut self, opening: Opening) -> Result<Telling> {
        self.listens = opening.id == self.source.id;
        self.places = Seq::FIRST;
        Ok(if self.listens { Telling::Wanted } else { Telling::Known })
    }

    fn take(&mut self, item: Item) -> Result<Seq> {
        if let Some(print) = print(&item.event)
            && let Some(left) = self.missing.get_mut(&print)
        {
            *left -= 1;
            if *left == 0 {
                self.missing.remove(&print);
            }
        }
        self.places = self.places.next();
        Ok(self.places)
    }

    fn end(&mut self) -> Result<()> {
        self.listens = false;
        Ok(())
    }

    fn warn(&mut self, _warning: Warning) {}

    fn restore(&mut self, _from: &mut dyn BufRead) -> Result<()> {
        Err(Error::Untold)
    }
}

/// What a session shows in all its lanes, and the nodes that are done.
fn shown(well: &Stepwell, id: &SessionId) -> Result<HashMap<u64, u64>> {
    let mut seqs: BTreeSet<Seq> = BTreeSet::new();
    for lane in well.store().lanes(id)?.keys() {
        let view = View::of(lane, well.store().events(id, Span::ALL)?.events);
        for message in view.messages {
            seqs.insert(message.seq);
            seqs.extend(message.answers.into_iter().flatten());
        }
    }
    let mut prints: HashMap<u64, u64> = HashMap::new();
    each_event(well, id, &mut |it| {
        match (&it.event, print(&it.event)) {
            (Event::Message(_), Some(print)) if seqs.contains(&it.seq) => {
                *prints.entry(print).or_default() += 1;
            }
            (Event::Node(_), Some(print)) => drop(prints.insert(print, 1)),
            _ => {}
        }
        Ok(())
    })?;
    Ok(prints)
}

/// What is said, by whom; or which node is done.
fn print(event: &Event) -> Option<u64> {
    let mut hasher = DefaultHasher::new();
    match event {
        Event::Message(Message { lane, role, parts, .. }) => {
            (lane, role).hash(&mut hasher);
            serde_json::to_string(parts).ok()?.hash(&mut hasher);
        }
        Event::Node(node) if node.state == NodeState::Done => node.key.hash(&mut hasher),
        _ => return None,
    }
    Some(hasher.finish())
}
