//! What lies at a path, heard without being taken in.

use std::collections::{BTreeSet, HashMap};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::io::BufRead;
use std::path::Path;

use stepwell::model::NodeState;
use stepwell::store::Span;
use stepwell::{Event, Message, Recorded, Seq, SessionId, Stepwell, View};

use crate::read::input::Input;
use crate::read::neutral::{Item, Opening, Sink, Wanted, Warning};
use crate::registry::Format;
use crate::{Error, Result};

/// Listens to all that a path tells of one session, by the name that its system gave it.
pub(crate) fn hear(
    format: Format,
    path: &Path,
    id: &str,
    listen: &mut dyn FnMut(&Item),
) -> Result<()> {
    let Some(reader) = format.reader() else { return Ok(()) };
    reader.read(&Input::at(path)?, &mut Ear { id, listen, last: Seq::ZERO })
}

/// Does what lies at a path hold all that a session which came from that format shows now?
/// It may hold more: its own agent may have gone on with it. What cannot be read holds
/// nothing.
pub fn holds_all(well: &Stepwell, id: &SessionId, format: Format, path: &Path) -> Result<bool> {
    let Some(source) = well.info(id)?.head.source else { return Ok(false) };
    // What was not heard yet, and how often it has to be.
    let mut missing = shown(well, id)?;
    let heard = hear(format, path, &source.id, &mut |item| {
        if let Some(print) = print(&item.event)
            && let Some(left) = missing.get_mut(&print)
        {
            *left -= 1;
            if *left == 0 {
                missing.remove(&print);
            }
        }
    });
    Ok(heard.is_ok() && missing.is_empty())
}

/// Who listens to one session.
struct Ear<'a> {
    id: &'a str,
    listen: &'a mut dyn FnMut(&Item),
    last: Seq,
}

impl Sink for Ear<'_> {
    fn begin(&mut self, opening: Opening) -> Result<Wanted> {
        self.last = Seq::FIRST;
        Ok(if opening.id == self.id { Wanted::Yes } else { Wanted::Known })
    }

    fn push(&mut self, item: Item) -> Result<Seq> {
        (self.listen)(&item);
        self.last = self.last.next();
        Ok(self.last)
    }

    fn end(&mut self) -> Result<()> {
        Ok(())
    }

    fn warn(&mut self, _warning: Warning) {}

    fn restore(&mut self, _from: &mut dyn BufRead) -> Result<()> {
        Err(Error::Untold)
    }
}

/// What a session shows in all its lanes, and the nodes that are done.
fn shown(well: &Stepwell, id: &SessionId) -> Result<HashMap<u64, u64>> {
    let events = well.store().events(id, Span::ALL)?.events;
    let mut seqs: BTreeSet<Seq> = BTreeSet::new();
    for lane in well.store().lanes(id)?.keys() {
        let concerns = |it: &&Recorded| it.event.lane().is_none_or(|other| other == lane);
        for message in View::of(lane, events.iter().filter(concerns).cloned().collect()).messages {
            seqs.insert(message.seq);
            seqs.extend(message.answers.into_iter().flatten());
        }
    }
    let mut prints: HashMap<u64, u64> = HashMap::new();
    for it in &events {
        match (&it.event, print(&it.event)) {
            (Event::Message(_), Some(print)) if seqs.contains(&it.seq) => {
                *prints.entry(print).or_default() += 1;
            }
            (Event::Node(_), Some(print)) => drop(prints.insert(print, 1)),
            _ => {}
        }
    }
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
