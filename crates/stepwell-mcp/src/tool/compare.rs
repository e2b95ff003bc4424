//! Compares two sessions.

use std::collections::{BTreeMap, BTreeSet};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use stepwell::model::{FileState, Kind, Origin, Role};
use stepwell::store::{Order, Span};
use stepwell::{Event, Seq, SessionId, Stepwell};
use stepwell_files::diff::{Side, file_diff};
use stepwell_files::history::{History, Net};
use stepwell_wire::{FileDiff, Session};

use crate::bounded::{LeftOut, PAGE_BYTES, Page, Shortened};
use crate::error::Result;
use crate::input::Limit;
use crate::stores::{Located, Purpose, Stores};

#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct CompareInput {
    /// One session: its id, a part of it, its label, or @last.
    session: String,
    /// The other session.
    with: String,
    /// The most files; 20, if absent.
    #[serde(default)]
    limit: Option<Limit>,
    /// Files to skip: the `next` of the page before.
    #[serde(default)]
    cursor: usize,
}

/// Two sessions side by side.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct CompareAnswer {
    /// The first session.
    session: Compared,
    /// The other session.
    with: Compared,
    /// The last event that both share; absent, if they share none.
    #[serde(skip_serializing_if = "Option::is_none")]
    shared_until: Option<Seq>,
    /// Files that either session changed after that event, and that differ.
    files: Vec<Shortened<FileDiff>>,
    /// Lists with omitted entries.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    left_out: Vec<LeftOut>,
    /// The number of files that are equal in both.
    alike: usize,
    /// The cursor of the next page; absent, if this is the last one.
    #[serde(skip_serializing_if = "Option::is_none")]
    next: Option<usize>,
}

/// One of two sessions.
#[derive(Debug, Serialize, JsonSchema)]
struct Compared {
    /// The session.
    #[serde(flatten)]
    session: Shortened<Session>,
    /// Its agent's last answer.
    #[serde(skip_serializing_if = "Option::is_none")]
    last_answer: Option<Shortened<String>>,
}

/// Compares two sessions.
pub(crate) fn compare_sessions(stores: &Stores, input: CompareInput) -> Result<CompareAnswer> {
    let one = stores.session(&input.session.into(), Purpose::Read)?;
    let other = stores.session(&input.with.into(), Purpose::Read)?;
    let shared_until = shared(&one, &other)?;
    let from = shared_until.unwrap_or(Seq::ZERO);
    let (ours, theirs) = (changed(&one, from)?, changed(&other, from)?);
    let paths: BTreeSet<&String> = ours.keys().chain(theirs.keys()).collect();
    let mut page = Page::new(&stores.redactor, Limit::of(input.limit));
    let (mut alike, mut next) = (0, None);
    for (n, path) in paths.into_iter().enumerate() {
        let (our, their) = ends(ours.get(path), theirs.get(path), shared_until);
        if our == their {
            alike += 1;
            continue;
        }
        if n < input.cursor || next.is_some() {
            continue;
        }
        let our = Side::read(&**one.well.store(), &our)?;
        let their = Side::read(&**other.well.store(), &their)?;
        if !page.push(&file_diff(path, None, &our, &their))? {
            next = Some(n);
        }
    }
    let session = side(&one, stores)?;
    let with = side(&other, stores)?;
    let mut left_out = session.session.left_out("/session");
    left_out.extend(with.session.left_out("/with"));
    left_out.extend(page.left_out("files"));
    let files = page.into_items();
    Ok(CompareAnswer { session, with, shared_until, files, left_out, alike, next })
}

fn changed(of: &Located, from: Seq) -> Result<BTreeMap<String, Net>> {
    let history = History::of(of.well.store().keyed_events(&of.id, &[Kind::File])?);
    Ok(history.net(from, Seq::MAX))
}

/// The states of a path at the end of two sessions. If they share a past, a session that did not
/// touch the path has the state that the other one found.
fn ends(ours: Option<&Net>, theirs: Option<&Net>, shared: Option<Seq>) -> (FileState, FileState) {
    let untouched = |other: Option<&Net>| match (other, shared) {
        (Some(other), Some(_)) => other.before.clone(),
        _ => FileState::Absent,
    };
    let end =
        |own: Option<&Net>, other| own.map_or_else(|| untouched(other), |it| it.after.clone());
    (end(ours, theirs), end(theirs, ours))
}

fn side(of: &Located, stores: &Stores) -> Result<Compared> {
    let session = Shortened::to(&of.well.info(&of.id)?.into(), PAGE_BYTES / 4, &stores.redactor)?;
    let last_answer = last_answer(&of.well, &of.id)?;
    let cut = |text: String| Shortened::to(&text, PAGE_BYTES / 8, &stores.redactor);
    Ok(Compared { session, last_answer: last_answer.map(cut).transpose()? })
}

/// An agent's last answer.
pub(super) fn last_answer(well: &Stepwell, id: &SessionId) -> Result<Option<String>> {
    for event in well.log(id, Span { order: Order::Newest, ..Span::ALL }) {
        if let Event::Message(message) = event?.event
            && message.role == Role::Assistant
            && !message.text().is_empty()
        {
            return Ok(Some(message.text()));
        }
    }
    Ok(None)
}

/// The last event that two sessions share, because one is a fork of the other, or both of a third.
fn shared(one: &Located, other: &Located) -> Result<Option<Seq>> {
    let (ours, theirs) = (ancestry(one)?, ancestry(other)?);
    let both = ours.iter().find_map(|(id, until)| Some((*until).min(*theirs.get(id)?)));
    Ok(both.filter(|until| *until != Seq::MAX))
}

/// A session and its ancestors by forks, each with the last of its events that the session shares.
fn ancestry(of: &Located) -> Result<BTreeMap<SessionId, Seq>> {
    let mut known = BTreeMap::new();
    let (mut id, mut until) = (of.id.clone(), Seq::MAX);
    loop {
        if known.insert(id.clone(), until).is_some() {
            return Ok(known);
        }
        // A purged parent leaves its events to the fork.
        let Ok(info) = of.well.info(&id) else { return Ok(known) };
        match info.head.origin {
            Origin::Fork { parent, at } => (id, until) = (parent, until.min(at)),
            _ => return Ok(known),
        }
    }
}
