//! Writing an archive, a page of events at a time.

use std::collections::HashSet;
use std::io::Write;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::Serialize;
use stepwell::model::{Digest, Origin};
use stepwell::store::query::{Family, Filter, Query, Sort, TrashScope};
use stepwell::store::{Damage, Order, Slice, Span};
use stepwell::{Event, Recorded, Seq, SessionId, SessionInfo, Stepwell};

use super::scaffold::mark_of;
use super::{ARCHIVE_VERSION, Blob, Closing, Opening, PAGE};
use crate::read::neutral::line_of;
use crate::{Error, Exported, Result};

/// The two forms of an archive. Their entries are the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Form {
    /// One JSON object.
    Object,
    /// One JSON object per line.
    Lines,
}

/// Writes a session and those of its subagents, parents before children.
pub(crate) fn export(
    well: &Stepwell,
    id: &SessionId,
    form: Form,
    to: &mut dyn Write,
) -> Result<Exported> {
    let family = family(well, well.info(id)?)?;
    let mut exported = Exported { sessions: family.len(), ..Exported::default() };
    let mut writer = Writer { to, form, entries: 0, sessions: 0, blobs: HashSet::new() };
    writer.header(family.len())?;
    for (info, origin) in family {
        let id = info.head.id;
        writer.open(&Opening { id: id.clone(), origin })?;
        let (events, closing, damage) = write_log(well, &id, info.head.seq, &mut writer)?;
        writer.close(&id, closing)?;
        exported.events += events;
        exported.damaged.extend(damage.map(|damage| (id, damage)));
    }
    writer.finish()?;
    Ok(exported)
}

/// The session and the sessions of its subagents, each with its origin. What is in the
/// trash comes only with a session that is there as well.
fn family(well: &Stepwell, first: SessionInfo) -> Result<Vec<(SessionInfo, Origin)>> {
    let place = if first.trashed_at.is_some() { TrashScope::Anywhere } else { TrashScope::Kept };
    let origin = origin(well, &first)?;
    let mut family = vec![(first, origin)];
    let mut next = 0;
    while let Some((info, _)) = family.get(next) {
        let parent = info.head.id.clone();
        let children = Family::ChildrenOf(parent.clone());
        let filter = Filter { family: children, place, ..Filter::default() };
        let (sort, order) = (Sort::Created, Order::Oldest);
        for child in well.list(&Query { filter, sort, order, ..Query::default() })?.sessions {
            let origin = self::origin(well, &child)?;
            let subagent = matches!(origin, Origin::Subagent { .. });
            if subagent && child.head.id != mark_of(&parent) {
                family.push((child, origin));
            }
        }
        next += 1;
    }
    Ok(family)
}

/// A session's origin: from its head or, since that may be what is damaged, from its
/// events.
fn origin(well: &Stepwell, info: &SessionInfo) -> Result<Origin> {
    let SessionInfo { head, damage, .. } = info;
    let mut origin = head.origin.clone();
    let mut last = Seq::ZERO;
    let mut more = damage.is_some();
    while more {
        let page = page(well, &head.id, last, head.seq)?;
        for Recorded { seq, event, .. } in page.events {
            last = seq;
            if let Event::Created(created) = event
                && created.id == head.id
            {
                origin = created.origin;
            }
        }
        more = page.damage.is_none() && last < head.seq;
    }
    Ok(origin)
}

fn page(well: &Stepwell, id: &SessionId, after: Seq, to: Seq) -> Result<Slice> {
    Ok(well.store().events(id, Span { to, limit: PAGE, ..Span::after(after) })?)
}

/// Writes a session's events up to its last, or up to the damage.
fn write_log(
    well: &Stepwell,
    id: &SessionId,
    to: Seq,
    writer: &mut Writer<'_>,
) -> Result<(u64, Closing, Option<Damage>)> {
    let (mut last, mut scrubbed, mut damage) = (Seq::ZERO, 0, None);
    while damage.is_none() && last < to {
        let page = page(well, id, last, to)?;
        damage = page.damage;
        scrubbed += page.scrubbed;
        for event in &page.events {
            // An event without its bytes could not be read in again.
            if let Err(what) = writer.blobs(well, event)? {
                damage = Some(Damage { seq: event.seq, what });
                break;
            }
            writer.event(event)?;
            last = event.seq;
        }
    }
    let closing = Closing {
        events: Some(last.get()),
        scrubbed: Some(scrubbed).filter(|n| *n > 0),
        damage: damage.clone().map(Into::into),
    };
    Ok((last.get(), closing, damage))
}

struct Writer<'a> {
    to: &'a mut dyn Write,
    form: Form,
    /// Entries of the session that is being written.
    entries: u64,
    /// Sessions that were begun.
    sessions: u64,
    /// Blobs that were written.
    blobs: HashSet<Digest>,
}

impl Writer<'_> {
    fn header(&mut self, sessions: usize) -> Result<()> {
        let by = env!("CARGO_PKG_VERSION");
        let front = format!(r#"{{"stepwell_archive":{ARCHIVE_VERSION},"exported_by":"{by}""#);
        match self.form {
            Form::Object => self.put(&format!("{front},\"sessions\":[")),
            Form::Lines => self.put(&format!("{front},\"sessions\":{sessions}}}\n")),
        }
    }

    fn open(&mut self, opening: &Opening) -> Result<()> {
        let json = json(opening)?;
        self.entries = 0;
        self.sessions += 1;
        match self.form {
            Form::Lines => self.put(&format!("{json}\n")),
            Form::Object => {
                let comma = if self.sessions > 1 { "," } else { "" };
                let front = &json[..json.len() - 1];
                self.put(&format!("{comma}\n{front},\"events\":["))
            }
        }
    }

    /// Writes the bytes that an event names and that were not written yet, or says
    /// which of them cannot be read.
    fn blobs(&mut self, well: &Stepwell, event: &Recorded) -> Result<Result<(), String>> {
        for digest in event.event.blobs() {
            if self.blobs.contains(&digest) {
                continue;
            }
            let bytes = match well.store().blob(&digest) {
                Ok(bytes) => bytes,
                Err(error @ (stepwell::Error::NoBlob(_) | stepwell::Error::DamagedBlob { .. })) => {
                    return Ok(Err(error.to_string()));
                }
                Err(error) => return Err(error.into()),
            };
            let entry = json(&Blob { blob: digest, base64: STANDARD.encode(bytes) })?;
            self.entry(&entry)?;
            self.blobs.insert(digest);
        }
        Ok(Ok(()))
    }

    fn event(&mut self, event: &Recorded) -> Result<()> {
        let mut line = line_of(event, 6).map_err(|error| Error::Write(error.into()))?;
        // The body of an unknown kind is kept to the byte, and may have line breaks
        // between its values. As a string it stays on its line.
        if line.contains('\n') {
            line = json(&line)?;
        }
        self.entry(&line)
    }

    fn entry(&mut self, line: &str) -> Result<()> {
        let comma = if self.form == Form::Object && self.entries > 0 { "," } else { "" };
        let (before, after) = match self.form {
            Form::Object => ("\n", ""),
            Form::Lines => ("", "\n"),
        };
        self.entries += 1;
        self.put(comma)?;
        self.put(before)?;
        self.put(line)?;
        self.put(after)
    }

    fn close(&mut self, id: &SessionId, closing: Closing) -> Result<()> {
        match self.form {
            Form::Lines => {
                let rest = json(&closing)?;
                self.put(&format!("{{\"end\":\"{id}\",{}\n", &rest[1..]))
            }
            Form::Object => {
                let rest = json(&Closing { events: None, ..closing })?;
                let comma = if rest == "{}" { "" } else { "," };
                self.put(&format!("\n]{comma}{}", &rest[1..]))
            }
        }
    }

    fn finish(&mut self) -> Result<()> {
        if self.form == Form::Object {
            self.put("\n]}\n")?;
        }
        self.to.flush().map_err(Error::Write)
    }

    fn put(&mut self, text: &str) -> Result<()> {
        self.to.write_all(text.as_bytes()).map_err(Error::Write)
    }
}

fn json(value: &impl Serialize) -> Result<String> {
    serde_json::to_string(value).map_err(|error| Error::Write(error.into()))
}
