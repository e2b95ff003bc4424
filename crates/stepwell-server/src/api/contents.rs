//! The contents of a session: its log, views, files, and comparisons.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::Deserialize;
use stepwell::model::{Kind, Origin, Spent};
use stepwell::store::{Order, Span};
use stepwell::{Event, Lane, Recorded, Seq, SessionId};
use stepwell_files::diff::file_diff;
use stepwell_files::history::History;
use stepwell_formats::{Format, Outlet, Shape, Wishes};
use stepwell_runtime::inspect::{self, Viewed};
use stepwell_wire::{
    ComparedSession, FileContent, FileDiff, FileVersion, List, Mark, ModelView, SessionComparison,
};
use stepwell_workspace::Estimates;

use crate::problem::{Problem, Result};
use crate::reply::Download;
use crate::route::Nothing;
use crate::site::Look;

/// The most events on a page.
const MOST: usize = 1000;

/// The default number of events on a page.
const USUAL: usize = 200;

/// Selects events.
#[derive(Debug, Deserialize, JsonSchema)]
pub(crate) struct Events {
    /// The first seq; the session's first, if absent.
    from: Option<u64>,
    /// The last seq; the session's last, if absent.
    to: Option<u64>,
    /// Only this kind.
    kind: Option<String>,
    /// `oldest` (the default) or `newest` first.
    order: Option<String>,
    /// How many events to examine, at most 1000.
    limit: Option<usize>,
}

pub(super) fn events(look: &Look<'_>, which: Events) -> Result<List<Recorded>> {
    let id = look.session()?;
    let order = match which.order.as_deref() {
        None | Some("oldest") => Order::Oldest,
        Some("newest") => Order::Newest,
        Some(other) => return Err(super::sessions::unknown("order", other, "oldest, newest")),
    };
    if let Some(kind) = which.kind.as_deref().filter(|kind| Kind::find(kind).is_none()) {
        let known: Vec<&str> = Kind::ALL.iter().map(|kind| kind.as_str()).collect();
        return Err(super::sessions::unknown("kind", kind, &known.join(", ")));
    }
    let limit = which.limit.unwrap_or(USUAL).clamp(1, MOST);
    let (from, to) =
        (Seq::new(which.from.unwrap_or(1).max(1)), which.to.map_or(Seq::MAX, Seq::new));
    let slice = look.well().store().events(&id, Span { from, to, order, limit })?;
    if let (Some(damage), true) = (&slice.damage, slice.events.is_empty()) {
        return Err(Problem::new(
            axum::http::StatusCode::UNPROCESSABLE_ENTITY,
            "damaged",
            &*damage.what,
        )
        .at(format!("seq {}", damage.seq)));
    }
    let next =
        slice.events.last().filter(|_| slice.events.len() == limit).map(|last| match order {
            Order::Oldest => last.seq.next().to_string(),
            Order::Newest => last.seq.prev().to_string(),
        });
    let wanted =
        |event: &Recorded| which.kind.as_ref().is_none_or(|kind| event.event.kind() == kind);
    Ok(List { items: slice.events.into_iter().filter(wanted).collect(), next })
}

pub(super) fn marks(look: &Look<'_>, _: Nothing) -> Result<List<Mark>> {
    let id = look.session()?;
    let mut items = Vec::new();
    let damage = look.well().log(&id, Span::ALL).each(|recorded| {
        let (seq, at, kind) = (recorded.seq, recorded.at, recorded.event.kind().to_owned());
        let name = match &recorded.event {
            Event::Checkpoint(it) => Some(it.name.clone()),
            Event::Gate(it) => Some(it.id.clone()),
            Event::GateAnswered(it) => Some(it.id.clone()),
            Event::Status(it) => Some(it.status.to_string()),
            Event::Phase(it) => Some(it.to.to_string()),
            Event::Message(it) if it.is_from_user() => None,
            Event::Step(_) | Event::Compacted(_) | Event::Rewound(_) | Event::Undone(_) => None,
            _ => return Ok(()),
        };
        items.push(Mark { seq, at, kind, name });
        Ok::<_, stepwell::Error>(())
    })?;
    match damage {
        Some(damage) if items.is_empty() => Err(damage.into_error(&id).into()),
        _ => Ok(List { items, next: None }),
    }
}

/// A point of a session, in one lane.
#[derive(Debug, Deserialize, JsonSchema)]
pub(crate) struct ViewAt {
    /// The lane; `main`, if absent.
    lane: Option<String>,
    /// The last event that counts; all count, if absent.
    at: Option<u64>,
}

pub(super) fn view(look: &Look<'_>, which: ViewAt) -> Result<ModelView> {
    let id = look.session()?;
    let lane = match which.lane {
        None => Lane::main(),
        Some(name) => {
            let wrong = |error: stepwell::model::InvalidName| {
                Problem::invalid(error.to_string()).at("lane")
            };
            let lane: Lane = name.parse().map_err(wrong)?;
            if lane != Lane::main() && !look.well().store().lanes(&id)?.contains_key(&lane) {
                return Err(Problem::absent(format!("{id} has no lane {lane}")).at("lane"));
            }
            lane
        }
    };
    let viewed = Viewed { lane, at: which.at.map(Seq::new) };
    Ok(inspect::model_view(look.runtime(), look.well(), &id, &viewed)?)
}

/// An export format.
#[derive(Debug, Deserialize, JsonSchema)]
pub(crate) struct InFormat {
    /// The format: `json`, `jsonl`, `markdown`, `html`, `claude-code` and so on.
    format: Option<String>,
}

/// A page up to a point.
#[derive(Debug, Deserialize, JsonSchema)]
pub(crate) struct PageAt {
    /// `markdown` (the default) or `html`.
    format: Option<String>,
    /// The last event on the page; the session's last, if absent.
    at: Option<u64>,
}

pub(super) fn document(look: &Look<'_>, which: PageAt) -> Result<Download> {
    match which.format.as_deref().unwrap_or("markdown") {
        "markdown" | "html" if which.at == Some(0) => {
            Err(Problem::invalid("events are counted from 1").at("at"))
        }
        name @ ("markdown" | "html") => written(look, name, which.at.map(Seq::new)),
        other => Err(super::sessions::unknown("format", other, "markdown, html")),
    }
}

pub(super) fn export(look: &Look<'_>, which: InFormat) -> Result<Download> {
    let name = which.format.as_deref().unwrap_or("json");
    // Pages are redacted. Other formats have the recorded bytes, and imported ones were never
    // redacted.
    if !look.caller.is_user && !["markdown", "html"].contains(&name) {
        return Err(Problem::denied("only the server's user may export a session unredacted")
            .at("format")
            .hint("format=markdown and format=html are redacted"));
    }
    written(look, name, None)
}

fn written(look: &Look<'_>, name: &str, up_to: Option<Seq>) -> Result<Download> {
    let id = look.session()?;
    let format: Format = name.parse().map_err(|_| {
        Problem::invalid(format!("unknown format {name:?}"))
            .at("format")
            .hint("expected one of: json, jsonl, markdown, html, claude-code, codex, architect")
    })?;
    let writer = format.writer().filter(|writer| writer.shape() != Shape::Folder);
    let writer = writer.ok_or_else(|| {
        Problem::invalid(format!("{name} is not written as one file")).at("format")
    })?;
    let mut bytes = Vec::new();
    let head = look.well().info(&id)?.head;
    let estimate = Estimates::new(look.runtime().workspace()).of(&head, &head.spent);
    let wishes = Wishes { estimate, up_to, ..Wishes::default() };
    let mut outlet = Outlet::stream(&mut bytes).wishing(wishes);
    writer
        .write(look.well(), &id, &mut outlet)
        .map_err(|error| Problem::failed(error.to_string()))?;
    drop(outlet);
    let (ending, media) = match name {
        "markdown" => ("md", "text/markdown; charset=utf-8"),
        "html" => ("html", "application/octet-stream"),
        "json" => ("json", "application/octet-stream"),
        _ => ("txt", "application/octet-stream"),
    };
    Ok(Download { name: format!("{id}.{ending}"), media, bytes })
}

/// A file.
#[derive(Debug, Deserialize, JsonSchema)]
pub(crate) struct OfPath {
    /// Only this file, relative to the workspace.
    path: Option<String>,
    /// The last event that counts; all count, if absent.
    at: Option<u64>,
}

pub(super) fn files(look: &Look<'_>, which: OfPath) -> Result<List<FileVersion>> {
    let mut items = inspect::versions(look.well(), &look.session()?, which.path.as_deref())?;
    let at = which.at.map_or(Seq::MAX, Seq::new);
    items.retain(|version| version.seq <= at);
    Ok(List { items, next: None })
}

/// A file at a point.
#[derive(Debug, Deserialize, JsonSchema)]
pub(crate) struct FileAt {
    /// The file, relative to the workspace.
    path: String,
    /// The point; the session's end, if absent.
    at: Option<u64>,
}

pub(super) fn content(look: &Look<'_>, which: FileAt) -> Result<FileContent> {
    let id = look.session()?;
    let at = match which.at {
        Some(at) => Seq::new(at),
        None => look.well().info(&id)?.head.seq,
    };
    Ok(inspect::content(look.well(), &id, &which.path, at)?.0)
}

/// A range of a session.
#[derive(Debug, Deserialize, JsonSchema)]
pub(crate) struct Between {
    /// Changes after this event; from the beginning, if absent.
    from: Option<u64>,
    /// Changes up to this event; to the end, if absent.
    to: Option<u64>,
    /// Only this file.
    path: Option<String>,
}

pub(super) fn diff(look: &Look<'_>, which: Between) -> Result<List<FileDiff>> {
    let (from, to) = (which.from.map_or(Seq::ZERO, Seq::new), which.to.map_or(Seq::MAX, Seq::new));
    let patches = inspect::patches(look.well(), &look.session()?, from, to)?;
    let wanted = |patch: &FileDiff| which.path.as_ref().is_none_or(|path| patch.path == *path);
    Ok(List { items: patches.into_iter().filter(wanted).collect(), next: None })
}

/// Another session.
#[derive(Debug, Deserialize, JsonSchema)]
pub(crate) struct With {
    /// The other session.
    with: String,
}

pub(super) fn compare(look: &Look<'_>, which: With) -> Result<SessionComparison> {
    let (left, right) = (look.session()?, look.store.session(&which.with)?);
    let parted_at = parted(look, &left, &right)?;
    let files = between(look, &left, &right)?;
    let (left, right) = (side(look, &left, parted_at)?, side(look, &right, parted_at)?);
    Ok(SessionComparison { left, right, parted_at, files })
}

/// The last event that two sessions share: where one branched off from the other's line.
fn parted(look: &Look<'_>, one: &SessionId, other: &SessionId) -> Result<Seq> {
    let (one, other) = (line(look, one)?, line(look, other)?);
    let shared = one.iter().find_map(|(id, here)| {
        let (_, there) = other.iter().find(|(it, _)| it == id)?;
        Some((*here).min(*there))
    });
    Ok(shared.unwrap_or(Seq::ZERO))
}

/// A session and its ancestors by forks, each with the last event that the session shares.
fn line(look: &Look<'_>, id: &SessionId) -> Result<Vec<(SessionId, Seq)>> {
    let (mut line, mut id, mut last) = (Vec::new(), id.clone(), Seq::MAX);
    loop {
        let head = look.well().info(&id)?.head;
        last = last.min(head.seq);
        line.push((id, last));
        match head.origin {
            Origin::Fork { parent, at } if look.well().store().exists(&parent)? => {
                last = last.min(at);
                id = parent;
            }
            _ => return Ok(line),
        }
    }
}

fn side(look: &Look<'_>, id: &SessionId, parted_at: Seq) -> Result<ComparedSession> {
    let well = look.well();
    let (mut since, mut steps) = (Spent::default(), 0);
    let damage = well.log(id, Span::after(parted_at)).each(|event| {
        match &event.event {
            Event::Message(message) => {
                if let Some(usage) = message.usage {
                    since.count(usage, message.cost);
                }
            }
            Event::Step(_) => steps += 1,
            _ => {}
        }
        Ok::<_, stepwell::Error>(())
    })?;
    if let Some(damage) = damage {
        return Err(damage.into_error(id).into());
    }
    let files = inspect::patches(well, id, parted_at, Seq::MAX)?;
    Ok(ComparedSession {
        session: inspect::item(well, well.info(id)?)?,
        since: (&since).into(),
        steps,
        files,
    })
}

/// The changes that turn the left session's files into the right one's.
fn between(look: &Look<'_>, left: &SessionId, right: &SessionId) -> Result<Vec<FileDiff>> {
    let well = look.well();
    let history = |id: &SessionId| -> Result<History> {
        Ok(History::of(well.store().keyed_events(id, &[Kind::File])?))
    };
    let (ours, theirs) = (history(left)?, history(right)?);
    let mut paths = BTreeMap::new();
    for (path, net) in ours.net(Seq::ZERO, Seq::MAX).into_iter() {
        paths.insert(path, (Some(net), None));
    }
    for (path, net) in theirs.net(Seq::ZERO, Seq::MAX).into_iter() {
        paths.entry(path).or_insert((None, None)).1 = Some(net);
    }
    let mut diffs = Vec::new();
    for (path, (ours, theirs)) in &paths {
        // A session that did not touch a file has it in the state that the other one found.
        let found = ours.as_ref().or(theirs.as_ref()).map(|net| &net.before);
        let ours = ours.as_ref().map(|net| &net.after).or(found);
        let theirs = theirs.as_ref().map(|net| &net.after).or(found);
        let (Some(ours), Some(theirs)) = (ours, theirs) else { continue };
        if ours == theirs {
            continue;
        }
        let (before, after) = (inspect::side(well, ours)?, inspect::side(well, theirs)?);
        diffs.push(file_diff(path, None, &before, &after));
    }
    Ok(diffs)
}
