//! What a compaction preserved: messages that stay in view beside its summary.

use stepwell::Seq;

use crate::journal::tree::Tree;
use crate::json::fields::{Fields, elements, text_of};

/// What the line of a compaction says of the lines that it preserved.
#[derive(Debug)]
pub(super) enum Preserved {
    /// These.
    Listed(Vec<String>),
    /// All from one line to another.
    Segment { head: String, tail: String },
}

impl Preserved {
    /// What a line says, if it preserved any. Where it says both, the list counts.
    pub(super) fn of(line: &Fields<'_>) -> Option<Self> {
        let metadata = line.object("compactMetadata")?;
        if let Some(list) = metadata.object("preservedMessages") {
            let names = elements(list.raw("uuids")?).ok()?.into_iter();
            let names = names.map(|raw| Some(text_of(raw)?.into_owned()));
            return names.collect::<Option<Vec<_>>>().map(Self::Listed);
        }
        let segment = metadata.object("preservedSegment")?;
        let name = |field: &str| Some(segment.text(field)?.into_owned());
        Some(Self::Segment { head: name("headUuid")?, tail: name("tailUuid")? })
    }

    /// The lines that it names.
    pub(super) fn names(&self) -> Vec<&str> {
        match self {
            Self::Listed(names) => names.iter().map(String::as_str).collect(),
            Self::Segment { head, tail } => vec![head, tail],
        }
    }

    /// The messages that stay in view, of all that were said. Where a line that is named is not
    /// there, Claude Code itself takes nothing for preserved.
    pub(super) fn messages(&self, tree: &Tree, said: &[Seq]) -> Option<Vec<Seq>> {
        let places: Option<Vec<Seq>> = self.names().iter().map(|name| tree.place(name)).collect();
        let places = places?;
        match (self, &places[..]) {
            (Self::Segment { .. }, [head, tail]) => {
                let from = said.partition_point(|place| place < head);
                let to = said.partition_point(|place| place <= tail);
                said.get(from..to).map(<[Seq]>::to_vec)
            }
            _ => {
                let mut kept = places;
                kept.retain(|place| said.binary_search(place).is_ok());
                kept.sort_unstable();
                kept.dedup();
                Some(kept)
            }
        }
    }
}
