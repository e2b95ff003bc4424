//! Writing a session's file, with the fields in architect's order.

use std::collections::BTreeSet;
use std::io::Write;
use std::time::Duration;

use serde_json::Value;
use stepwell::model::{Digest, Money, Time};
use stepwell::{Event, Lane, SessionId, Status, Stepwell, StopReason};

use super::message::{self, Tools};
use super::{FIELDS, SYSTEM, TRUNCATED, is_id};
use crate::json::fields::{Fields, quoted, text_of, with_fields};
use crate::snapshot::{
    Aside, Escapes, Holds, LAYOUT, Layout, Live, Object, Said, Style, completed, epoch, list,
    moment, name, provider_of, still, styled, texts, users_metadata,
};
use crate::write::facts::FACTS;
use crate::write::writer::{Exported, Length, Losses, SUBAGENTS};
use crate::{Error, Result};

/// How architect lays out a file; one that came otherwise goes back as it came.
const USUAL: Layout = Layout::Lines(2);

/// More messages than this are cut when architect saves, to so many.
const MOST: usize = 50;
const LAST: usize = 30;

/// Metadata that is ours, and not the user's.
const OURS: [&str; 1] = [TRUNCATED];

/// Writes a session.
pub(super) fn write(
    well: &Stepwell,
    id: &SessionId,
    length: Length,
    to: &mut dyn Write,
) -> Result<Exported> {
    let mut live = Live::read(well, id, SYSTEM, &[Lane::main()])?;
    let mut exported = std::mem::take(&mut live.exported);
    let text = whole(&live, length, &mut exported.losses);
    let layout = live.kept.as_deref().and_then(Layout::kept_in).unwrap_or(USUAL);
    let style = Style { layout, escapes: Escapes::Few };
    to.write_all(styled(&text, style).as_bytes()).map_err(Error::Write)?;
    if !well.subagents(id)?.is_empty() {
        exported.losses.count(SUBAGENTS);
    }
    Ok(exported)
}

fn whole(live: &Live, length: Length, losses: &mut Losses) -> String {
    let head = &live.head;
    let kept = live.kept.as_deref().and_then(|raw| Fields::parse(raw).ok()).unwrap_or_default();
    let provider = head.model_provider();
    if !provider.is_empty() && provider_of(&head.model) != provider {
        losses.name(FACTS, format!("provider {provider}"));
    }
    let mut messages = messages(&live.said, head.created_at, losses);
    let cut = length == Length::AsThere && messages.len() > MOST;
    if cut {
        messages.drain(..messages.len() - LAST);
    }
    let is_text = |now: &str| {
        let now = now.to_owned();
        move |raw: &str| text_of(raw).is_some_and(|it| it == now)
    };
    let id = name_of(live);
    let (status, reason) = words(head.status, head.stop_reason);
    let mut object = Object::new();
    object.put_text("session_id", &id);
    object.put_text("task", &live.created.task);
    let names = [("agent", &head.agent), ("model", &head.model)];
    for (field, now) in names {
        let same = |_: &str| name(&kept, field) == *now;
        object.put(field, still(kept.raw(field), same, &quoted(now)));
    }
    let running = |raw: &str| {
        let said = text_of(raw).and_then(|it| it.parse::<Status>().ok());
        said.is_none_or(|it| it == Status::Running) && head.status == Status::Interrupted
            || is_text(status)(raw)
    };
    object.put("status", still(kept.raw("status"), running, &quoted(status)));
    object.put("steps_completed", &head.steps.to_string());
    object.put("messages", &list(messages));
    let (files, now) = files(live, &kept);
    let same = |raw: &str| texts(Some(raw)).into_iter().collect::<BTreeSet<_>>() == files;
    object.put("files_modified", still(kept.raw("files_modified"), same, &now));
    let cost = head.spent.cost;
    let same = |raw: &str| raw.parse().ok().and_then(Money::from_f64).unwrap_or_default() == cost;
    let now = cost.to_string().parse::<f64>().ok();
    let now = now.and_then(|it| serde_json::to_string(&it).ok()).unwrap_or_default();
    object.put("total_cost", still(kept.raw("total_cost"), same, &now));
    for (field, at) in [("started_at", head.created_at), ("updated_at", head.updated_at)] {
        let same = |raw: &str| moment(raw) == Some(at);
        object.put(field, still(kept.raw(field), same, &epoch(at)));
    }
    let now = serde_json::to_string(&reason).unwrap_or_default();
    let same = |raw: &str| serde_json::from_str::<StopReason>(raw).ok() == reason;
    object.put("stop_reason", still(kept.raw("stop_reason"), same, &now));
    let inner = inner(live, &kept, &id, losses);
    object.put("metadata", &if cut { marked(&inner) } else { inner });
    if cut || head.metadata.get(TRUNCATED) == Some(&Value::Bool(true)) {
        object.put(TRUNCATED, "true");
    }
    object.put_others(&kept, &[&FIELDS[..], &[LAYOUT]].concat());
    object.end()
}

/// Metadata that says that the conversation was cut, which older versions look for there.
fn marked(metadata: &str) -> String {
    let fields = Fields::parse(metadata).unwrap_or_default();
    let rest = fields.rewritten(&[("truncated", None)]);
    with_fields(&rest, &[("truncated", "true")])
}

/// The session's name there: its own if it came from there or is like one, else one that is
/// made of when it began and of its name here.
fn name_of(live: &Live) -> String {
    let head = &live.head;
    let source = head.source.as_ref().filter(|source| source.system == SYSTEM);
    match source {
        Some(source) => source.id.clone(),
        None if is_id(head.id.as_str()) => head.id.to_string(),
        None => {
            let digest = Digest::of(head.id.as_str().as_bytes()).to_string();
            format!("{}-{}", head.created_at.compact(), &digest[..6])
        }
    }
}

/// How architect says how a run stands, and why it stopped.
pub(super) fn words(
    status: Status,
    reason: Option<StopReason>,
) -> (&'static str, Option<StopReason>) {
    let status = match status {
        Status::Running => "running",
        Status::Success => "success",
        Status::Paused | Status::Partial => "partial",
        Status::Interrupted | Status::Idle => "interrupted",
        Status::Failed | Status::Abandoned => "failed",
    };
    let known = |it: &StopReason| {
        !matches!(it, StopReason::Crashed | StopReason::Gate | StopReason::Abandoned)
    };
    (status, reason.filter(known))
}

fn messages(said: &[Said], began: Time, losses: &mut Losses) -> Vec<String> {
    let mut tools = Tools::new();
    let object = |said: &Said| match said {
        Said::Raw(raw) => raw.clone(),
        Said::Message { at, message, kept, .. } => {
            // It has no times: all is read as if it was said at the beginning.
            if at.since(began) >= Duration::from_secs(1) {
                losses.count("times of messages");
            }
            if message.usage.is_some() {
                losses.count("tokens of a message");
            }
            let usual = message::write(message, &mut tools, losses);
            match kept {
                None => usual,
                Some(kept) => completed(&Fields::parse(&usual).unwrap_or_default(), kept),
            }
        }
    };
    said.iter().map(object).collect()
}

/// The files that were changed, there and here.
fn files(live: &Live, kept: &Fields<'_>) -> (BTreeSet<String>, String) {
    let there = texts(kept.raw("files_modified")).into_iter();
    let here = live.others.iter().filter_map(|it| match &it.event {
        Event::File(file) => Some(file.path.clone()),
        _ => None,
    });
    let mut seen = BTreeSet::new();
    let ordered: Vec<String> = there.chain(here).filter(|it| seen.insert(it.clone())).collect();
    (seen, list(ordered.iter().map(|it| quoted(it))))
}

/// The metadata of the user's, and what architect has no word for.
fn inner(live: &Live, kept: &Fields<'_>, id: &str, losses: &mut Losses) -> String {
    let head = &live.head;
    let mut holds = vec![Holds::Cost, Holds::Agent, Holds::Paths];
    let (status, reason) = words(head.status, head.stop_reason);
    // A run that nobody runs any more is told of as one.
    let crashed = head.status == Status::Interrupted
        && head.stop_reason.is_none_or(|it| it == StopReason::Crashed);
    if crashed || (status.parse() == Ok(head.status) && reason == head.stop_reason) {
        holds.push(Holds::Status);
    }
    let aside = Aside::write(live, id, &holds, losses);
    let mut metadata = head.metadata.clone();
    // Earlier versions had the files there: that is no entry of the user's.
    let files = texts(kept.raw("files_modified"));
    if metadata.get("files_modified").is_some_and(|it| *it == Value::from(files)) {
        metadata.remove("files_modified");
    }
    users_metadata(&metadata, kept.raw("metadata"), &OURS, aside)
}
