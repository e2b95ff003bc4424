//! What a session is called: label, tags, pins.

use std::collections::BTreeSet;

use stepwell::model::{Change, Edited};
use stepwell::{Seq, SessionId, Stepwell};
use stepwell_wire::{Label, MessagePin, Pin, Tags};

use super::reply::MessagePinned;
use crate::error::Result;

pub(super) fn label(well: &Stepwell, id: &SessionId, change: Change<String>) -> Result<Label> {
    let label = match change {
        Change::Keep => well.info(id)?.head.label,
        Change::Clear => {
            well.label(id, None)?;
            None
        }
        Change::Set(label) => {
            well.label(id, Some(&label))?;
            Some(label)
        }
    };
    Ok(Label { id: id.clone(), label })
}

pub(super) fn tag(
    well: &Stepwell,
    id: &SessionId,
    tag: BTreeSet<String>,
    untag: BTreeSet<String>,
) -> Result<Tags> {
    if !tag.is_empty() || !untag.is_empty() {
        well.edit(id, Edited { tag, untag, ..Edited::default() })?;
    }
    Ok(Tags { id: id.clone(), tags: well.info(id)?.head.tags })
}

pub(super) fn pin(well: &Stepwell, id: &SessionId) -> Result<Pin> {
    well.edit(id, Edited { pinned: Some(true), ..Edited::default() })?;
    Ok(Pin { id: id.clone(), pinned: true })
}

pub(super) fn unpin(well: &Stepwell, id: &SessionId) -> Result<Pin> {
    well.edit(id, Edited { pinned: Some(false), ..Edited::default() })?;
    Ok(Pin { id: id.clone(), pinned: false })
}

pub(super) fn pin_message(well: &Stepwell, id: &SessionId, seq: Seq) -> Result<MessagePinned> {
    let pinned = well.pin_message(id, seq)?;
    let (message, is_shown) = (Some(pinned.message), pinned.is_shown);
    Ok(MessagePinned { answer: pins(well, id, seq)?, message, is_shown })
}

pub(super) fn unpin_message(well: &Stepwell, id: &SessionId, seq: Seq) -> Result<MessagePinned> {
    well.unpin_message(id, seq)?;
    Ok(MessagePinned { answer: pins(well, id, seq)?, message: None, is_shown: true })
}

fn pins(well: &Stepwell, id: &SessionId, seq: Seq) -> Result<MessagePin> {
    let pins = well.pins(id)?;
    let pinned = pins.contains(seq);
    Ok(MessagePin { id: id.clone(), seq, pinned, pins: pins.iter().collect() })
}
