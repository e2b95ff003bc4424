//! Reading an agent's state.

use std::collections::BTreeMap;
use std::path::Path;

use stepwell::Status;
use stepwell::model::{Change, Driver, Edited, Elsewhere, Phase, PhaseSet, StatusChanged};

use super::history::PhaseHistory;
use super::{SYSTEM, workspace};
use crate::Result;
use crate::json::fields::{Fields, elements, text_of};
use crate::read::input::Input;
use crate::read::neutral::{Item, Opening, Sink, Wanted};
use crate::snapshot::{ASIDE, Aside, Layout, metadata, moment, name, number, object, text, warn};

/// Reads an agent's state.
pub(super) fn read(input: &Input, sink: &mut dyn Sink) -> Result<()> {
    let path = input.root().to_owned();
    let text = text(input, &path)?;
    let state = object(&path, &text)?;
    let folder = path.parent().and_then(Path::file_name).unwrap_or_default().to_string_lossy();
    let id = match state.text("agent_id").filter(|id| !id.is_empty()) {
        Some(id) => id.into_owned(),
        None => {
            warn(sink, &path, format!("it names no agent_id; it is taken as {folder}"));
            folder.into_owned()
        }
    };
    let way = PhaseHistory::of(&state);
    let said = |field: &str| state.raw(field).and_then(moment);
    let mut opening = Opening::new(id, state.text("purpose").unwrap_or("general".into()));
    // A state that does not say when it began must not look as if it had just begun.
    let first = way.moves.first().and_then(|(at, _)| *at);
    opening.started_at = said("created_at").or(first).or_else(|| said("last_updated"));
    opening.updated_at = said("last_updated").max(said("finalized_at"));
    opening.file = Some(path.clone());
    let created = &mut opening.created;
    created.agent = match name(&state, "agent_name") {
        name if name.is_empty() => "unknown".to_owned(),
        name => name,
    };
    created.driver = Driver::External;
    created.phases = Some(PhaseSet::Lifecycle);
    created.workspace = workspace(&path).map(|it| it.display().to_string()).unwrap_or_default();
    if sink.begin(opening)? == Wanted::Known {
        return Ok(());
    }
    for fault in way.faults {
        warn(sink, &path, fault);
    }
    let mut phase = PhaseSet::Lifecycle.initial();
    for (at, change) in way.moves {
        phase = change.to;
        sink.push(Item::new(at, change))?;
    }
    let kept = attributes(&state, Layout::of(&text), sink, &path)?;
    // What was put aside counts while the phase says nothing else.
    if let Some(status) = kept.filter(|kept| agrees(kept.status, phase)) {
        sink.push(Item::new(said("last_updated"), status))?;
    }
    sink.end()
}

/// Can a session stand so whose agent is in this phase? An agent that ended ended as its phase
/// says.
fn agrees(status: Status, phase: Phase) -> bool {
    let set = PhaseSet::Lifecycle;
    let ended = matches!(status, Status::Success | Status::Failed | Status::Abandoned);
    match set.is_final(phase) {
        true => set.status(phase) == status,
        false => !ended,
    }
}

/// What stands around the history. The answer is how the session stood, if that was put aside.
fn attributes(
    state: &Fields<'_>,
    layout: Layout,
    sink: &mut dyn Sink,
    path: &Path,
) -> Result<Option<StatusChanged>> {
    let updated = state.raw("last_updated").and_then(moment);
    let inner = state.object("metadata").unwrap_or_default();
    let aside = Aside::read(inner.raw(ASIDE).unwrap_or("{}"));
    let own = inner.rewritten(&[(ASIDE, None)]);
    let values = metadata(&own).unwrap_or_else(|why| {
        warn(sink, path, format!("its metadata is kept, and not shown: {why}"));
        BTreeMap::new()
    });
    let mut ready = state.is_true("resume_ready");
    if updated.is_none() && ready {
        warn(sink, path, "it does not say when it was last updated, and cannot be resumed");
        ready = false;
    }
    let mut edited = aside.attributes(values);
    edited.ready = Some(ready);
    if let Some(summary) = state.text("summary").filter(|it| it.len() < 8 << 10) {
        edited.summary = Change::Set(summary.into_owned());
    }
    let (cost, stood) = (aside.cost, aside.status());
    for item in aside.into_events() {
        sink.push(item)?;
    }
    let errors = number(state, "error_count").unwrap_or(0);
    let (last_error, at) = last_error(state);
    let at = at.map(|at| updated.map_or(at, |updated| at.min(updated)));
    let elsewhere = Some(Elsewhere { errors, last_error, cost, ..Elsewhere::default() });
    sink.push(Item::new(at.or(updated), Edited { elsewhere, ..Edited::default() }))?;
    sink.push(Item::new(updated, edited))?;
    let kept = match state.has("metadata") {
        true => state.rewritten(&[("metadata", Some(&own))]),
        false => state.rewritten(&[]),
    };
    sink.push(Item::of_session(SYSTEM, layout.keep_in(kept)))?;
    Ok(stood)
}

/// The last error, and when it happened: an object, or only its text.
pub(super) fn last_error(state: &Fields<'_>) -> (Option<String>, Option<stepwell::model::Time>) {
    let Some(raw) = state.raw("last_error").filter(|raw| *raw != "null") else {
        return (None, None);
    };
    let error = Fields::parse(raw).unwrap_or_default();
    let message = error.text("message").or_else(|| text_of(raw));
    let message = message.map_or_else(|| raw.to_owned(), std::borrow::Cow::into_owned);
    (Some(message), error.raw("timestamp").and_then(moment))
}

/// The entries of a history, each as it is.
pub(super) fn entries<'a>(state: &Fields<'a>) -> Vec<&'a str> {
    state.raw("history").and_then(|raw| elements(raw).ok()).unwrap_or_default()
}
