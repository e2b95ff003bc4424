//! Manages sessions: labels, tags and forks. Recorded events never change.

use std::collections::BTreeSet;

use schemars::JsonSchema;
use serde::Deserialize;
use stepwell::model::{Change, Driver, Edited, StatusChanged, Who};
use stepwell::sessions::ForkAt;
use stepwell::work::compactions::{self, Extent};
use stepwell::{Event, NewEvent, Status, trust};
use stepwell_wire::{Forked, Label, Tags};

use super::form::{About, Again, ToolForm, writes};
use crate::error::Result;
use crate::input::Point;
use crate::options::Access;
use crate::stores::{Located, Purpose, Stores};

/// The tools for that.
pub(super) fn tools() -> Vec<ToolForm> {
    let about = |name, title, description| About { name, title, description };
    vec![
        writes(
            Access::Manage,
            about(
                "label",
                "Label a session",
                "Sets or removes a session's label, by which it can be named.",
            ),
            Again::Same,
            label,
        ),
        writes(
            Access::Manage,
            about("tag", "Tag a session", "Adds or removes tags of a session."),
            Again::Same,
            tag,
        ),
        writes(
            Access::Manage,
            about(
                "fork",
                "Fork a session",
                "Creates a session that shares another one's history up to a point. The user's \
                 permissions in the other session do not apply in the fork.",
            ),
            Again::Adds,
            fork,
        ),
    ]
}

#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct LabelInput {
    /// The session: its id, a part of it, its label, or @last.
    session: String,
    /// The label; absent or null removes it.
    #[serde(default)]
    label: Option<String>,
}

fn label(stores: &Stores, input: LabelInput) -> Result<Label> {
    let Located { well, id } = stores.session(&input.session.into(), Purpose::Write)?;
    well.label(&id, input.label.as_deref())?;
    let label = well.info(&id)?.head.label;
    Ok(Label { id, label })
}

#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct TagInput {
    /// The session: its id, a part of it, its label, or @last.
    session: String,
    /// Tags to add.
    #[serde(default)]
    add: BTreeSet<String>,
    /// Tags to remove.
    #[serde(default)]
    remove: BTreeSet<String>,
}

fn tag(stores: &Stores, input: TagInput) -> Result<Tags> {
    let Located { well, id } = stores.session(&input.session.into(), Purpose::Write)?;
    let edited = Edited { tag: input.add, untag: input.remove, ..Edited::default() };
    if !edited.tag.is_empty() || !edited.untag.is_empty() {
        well.edit(&id, edited)?;
    }
    let tags = well.info(&id)?.head.tags;
    Ok(Tags { id, tags })
}

#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct ForkInput {
    /// The session: its id, a part of it, its label, or @last.
    session: String,
    /// The last shared event: a seq, a checkpoint's name, or "-N" for N steps back; the session's
    /// end, if absent.
    #[serde(default)]
    at: Option<Point>,
    /// A label for the fork.
    #[serde(default)]
    label: Option<String>,
}

fn fork(stores: &Stores, input: ForkInput) -> Result<Forked> {
    let Located { well, id: parent } = stores.session(&input.session.into(), Purpose::Write)?;
    if let Some(label) = &input.label {
        well.refuse_taken_label(label, None)?;
    }
    let info = well.info(&parent)?;
    // During an unfinished rewind the files are in between, and the fork would share that.
    info.refuse_half_rewound()?;
    let at = Point::of(input.at.as_ref(), info.head.seq, &well, &parent)?;
    // It has not run yet. The status of an external agent follows its phase.
    let waits = StatusChanged { status: Status::Interrupted, reason: None, error: None };
    let mut begins: Vec<NewEvent> = match info.head.driver {
        Driver::Own => vec![waits.into()],
        Driver::External => Vec::new(),
    };
    let facts = well.store().keyed_events(&parent, &compactions::KINDS)?;
    if facts.iter().any(|fact| matches!(fact.event, Event::Compacted(_))) {
        begins.push(Extent::at(&facts, at).edited().into());
    }
    if let Some(label) = input.label {
        begins.push(Edited { label: Change::Set(label), ..Edited::default() }.into());
    }
    begins.push(trust::revocation(Who::from(format!("an agent over MCP, for {}", well.who()))));
    let id = well.fork(&parent, ForkAt { at: Some(at), begins })?.id().clone();
    Ok(Forked { id, parent, at })
}
