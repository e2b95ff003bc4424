//! Reading a session's file.

use std::collections::BTreeMap;
use std::path::Path;

use serde_json::Value;
use stepwell::model::{Elsewhere, Money, StatusChanged};
use stepwell::{Status, StopReason};

use super::files::Files;
use super::message::{self, Tools};
use super::{SYSTEM, TRUNCATED, workspace};
use crate::Result;
use crate::json::fields::{Fields, elements};
use crate::read::input::Input;
use crate::read::neutral::{Item, Opening, Sink, Wanted};
use crate::read::steps::Steps;
use crate::snapshot::{
    ASIDE, Aside, Layout, metadata, moment, name, number, object, provider_of, residue, text, warn,
};
use crate::write::writer::Losses;

/// Reads a session.
pub(super) fn read(input: &Input, sink: &mut dyn Sink) -> Result<()> {
    let path = input.root().to_owned();
    let text = text(input, &path)?;
    let session = object(&path, &text)?;
    let id = match session.text("session_id").filter(|id| !id.is_empty()) {
        Some(id) => id.into_owned(),
        None => {
            let stem = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
            warn(sink, &path, format!("it names no session_id; it is taken as {stem}"));
            stem
        }
    };
    let started_at = session.raw("started_at").and_then(moment);
    let mut opening = Opening::new(id, session.text("task").unwrap_or_default());
    let created = &mut opening.created;
    created.agent = name(&session, "agent");
    created.model = name(&session, "model");
    created.provider = provider_of(&created.model).to_owned();
    created.workspace = workspace(&path).map(|it| it.display().to_string()).unwrap_or_default();
    opening.started_at = started_at;
    opening.updated_at = session.raw("updated_at").and_then(moment);
    opening.file = Some(path.clone());
    if sink.begin(opening)? == Wanted::Known {
        return Ok(());
    }
    let steps = number(&session, "steps_completed").unwrap_or(0);
    // The front of one that was cut is cut anew at every save: its steps stand nowhere for good.
    let most = if is_truncated(&session) { 0 } else { steps };
    let told = messages(&session, most, sink, &path)?;
    let layout = Layout::of(&text);
    let kept = Kept { untold: steps - told.min(steps), layout };
    attributes(&session, &kept, sink, &path)?;
    sink.end()
}

/// Is only the end of the conversation there? Both places of the flag are in use.
fn is_truncated(session: &Fields<'_>) -> bool {
    let in_metadata = || session.object("metadata").is_some_and(|it| it.is_true("truncated"));
    session.is_true(TRUNCATED) || in_metadata()
}

/// Tells the conversation, with the steps that show in it, at the most so many. The answer is
/// how many there were.
fn messages(session: &Fields<'_>, most: u64, sink: &mut dyn Sink, path: &Path) -> Result<u64> {
    let raw = session.raw("messages").unwrap_or("[]");
    let Ok(all) = elements(raw) else {
        warn(sink, path, "its messages are no list, and were left out");
        return Ok(0);
    };
    let at = session.raw("started_at").and_then(moment);
    let (mut tools, mut steps) = (Tools::new(), Steps::default());
    let mut files = Files::of(session);
    for file in files.take_unexplained(&all) {
        sink.push(Item::new(at, file))?;
    }
    let (mut told, mut unknown) = (0, 0);
    for raw in all {
        let fields = Fields::parse(raw).unwrap_or_default();
        let Some(said) = message::read(&fields) else {
            unknown += 1;
            sink.push(Item::alone(SYSTEM, at, raw))?;
            continue;
        };
        let usual = message::write(&said, &mut tools, &mut Losses::default());
        let kept = residue(&fields, &Fields::parse(&usual).unwrap_or_default());
        sink.push(Item::new(at, said.clone()))?;
        if let Some(kept) = kept {
            sink.push(Item::beside(SYSTEM, at, kept))?;
        }
        for file in files.changed_by(&said) {
            sink.push(Item::new(at, file))?;
        }
        if let Some(step) = steps.said(&said).filter(|_| told < most) {
            told += 1;
            sink.push(Item::new(at, step))?;
        }
    }
    if unknown > 0 {
        let what = format!("{unknown} of its messages are of no known kind, and shown to no model");
        warn(sink, path, what);
    }
    Ok(told)
}

/// What is known of a session besides what it says.
struct Kept {
    /// How many of its steps do not show in the conversation.
    untold: u64,
    layout: Layout,
}

/// What stands around the conversation.
fn attributes(session: &Fields<'_>, kept: &Kept, sink: &mut dyn Sink, path: &Path) -> Result<()> {
    let Kept { untold: steps, layout } = *kept;
    let at = session.raw("updated_at").and_then(moment);
    let inner = session.object("metadata").unwrap_or_default();
    let aside = Aside::read(inner.raw(ASIDE).unwrap_or("{}"));
    let own = inner.rewritten(&[(ASIDE, None)]);
    let values = metadata(&own).unwrap_or_else(|why| {
        warn(sink, path, format!("its metadata is kept, and not shown: {why}"));
        BTreeMap::new()
    });
    let (status, word) = stands(session, &aside);
    if let Some(word) = word {
        warn(sink, path, format!("{word:?} is no status of architect; it is taken as {status:?}"));
    }
    let mut edited = aside.attributes(with_own(values, session));
    let cost = session.get::<f64>("total_cost").and_then(Money::from_f64).unwrap_or_default();
    edited.elsewhere = Some(Elsewhere { steps, cost, ..Elsewhere::default() });
    for item in aside.into_events() {
        sink.push(item)?;
    }
    sink.push(Item::new(at, edited))?;
    let kept = match session.has("metadata") {
        true => session.rewritten(&[("messages", None), ("metadata", Some(&own))]),
        false => session.rewritten(&[("messages", None)]),
    };
    sink.push(Item::of_session(SYSTEM, layout.keep_in(kept)))?;
    sink.push(Item::new(at, status)).map(drop)
}

/// Metadata, with what has no other place here.
fn with_own(mut values: BTreeMap<String, Value>, session: &Fields<'_>) -> BTreeMap<String, Value> {
    if session.is_true(TRUNCATED) {
        values.insert(TRUNCATED.to_owned(), true.into());
    }
    values
}

/// How the session stands, and the word that says so if it is not one of architect's.
fn stands(session: &Fields<'_>, aside: &Aside) -> (StatusChanged, Option<String>) {
    let word = session.text("status").unwrap_or_default();
    let reason = session.get::<StopReason>("stop_reason");
    // What was put aside counts for as long as architect's own words say nothing else.
    if let Some(kept) = aside.status()
        && super::write::words(kept.status, kept.reason) == (word.as_ref(), reason)
    {
        return (kept, None);
    }
    let (status, known) = match word.parse::<Status>() {
        // Whoever ran it is not running it here: it may have stayed so after Ctrl+C.
        Ok(Status::Running) => (Status::Interrupted, true),
        Ok(status) => (status, true),
        Err(_) => (Status::Interrupted, false),
    };
    let word = (!known).then(|| word.into_owned());
    (StatusChanged { status, reason, error: None }, word)
}
