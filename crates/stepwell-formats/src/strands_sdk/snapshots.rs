//! What `SnapshotSessionManager` writes (since 1.62): `<id>/scopes/agent/<agent>/snapshots/`, an
//! agent as one object that is replaced at each save, and copies of it that stay.
//!
//! The newest object is the session. It is told as if it lay in the files of
//! `FileSessionManager`, and written in these. A copy that stays is a checkpoint, behind the
//! message that was its last.

use std::path::{Path, PathBuf};

use stepwell::model::Time;

use super::agent::{Agent, Copy, Source, moment, object, warn};
use super::content::words;
use super::conversation::plain_name;
use super::group::{self, Group};
use crate::Result;
use crate::json::fields::{Fields, elements, push_field, quoted};
use crate::json::json_text::compact;
use crate::read::input::{Input, list};
use crate::read::neutral::{Sink, Warning};
use crate::snapshot::TimeForm;

/// The newest snapshot of an agent or a group.
pub(super) const LATEST: &str = "snapshot_latest.json";

/// The most copies of one agent that are read: each holds the whole conversation.
const MAX_COPIES: usize = 256;

/// What a session's snapshots hold.
#[derive(Debug, Default)]
pub(super) struct Snapshots {
    pub(super) agents: Vec<Agent>,
    pub(super) groups: Vec<Group>,
    /// When the first of them was taken.
    pub(super) began: Option<Time>,
}

/// Is this the folder of a session that is kept as snapshots?
pub(super) fn is_session(folder: &Path) -> bool {
    let scopes = folder.join("scopes");
    let is_scope = |kind: &str| {
        let found = list(&scopes.join(kind)).unwrap_or_default();
        found.iter().any(|it| latest(it).symlink_metadata().is_ok_and(|it| it.is_file()))
    };
    scopes.is_dir() && ["agent", "multiAgent"].into_iter().any(is_scope)
}

fn latest(scope: &Path) -> PathBuf {
    scope.join("snapshots").join(LATEST)
}

/// Reads a session's snapshots; what is wrong with one is told.
pub(super) fn read(input: &Input, sink: &mut dyn Sink) -> Result<Snapshots> {
    let mut found = Snapshots::default();
    let scopes = input.root().join("scopes");
    for folder in list(&scopes.join("agent")).unwrap_or_default() {
        let Some(snapshot) = snapshot(input, &latest(&folder), sink) else { continue };
        let copies = copies(input, &folder.join("snapshots/immutable_history"), sink);
        let first = copies.iter().filter_map(|(it, _)| it.at).min();
        let taken = moment(&Fields::parse(&snapshot).unwrap_or_default(), "created_at");
        found.began = [found.began, first.or(taken)].into_iter().flatten().min();
        found.agents.push(agent(&folder, &snapshot, &copies));
    }
    for folder in list(&scopes.join("multiAgent")).unwrap_or_default() {
        let Some(snapshot) = snapshot(input, &latest(&folder), sink) else { continue };
        let fields = Fields::parse(&snapshot).unwrap_or_default();
        let data = fields.object("data").unwrap_or_default();
        let id = data.text("orchestrator_id").map(String::from);
        let id = id.unwrap_or_else(|| name_of(&folder).to_owned());
        let raw = data.raw("state").unwrap_or("{}").to_owned();
        found.began = [found.began, moment(&fields, "created_at")].into_iter().flatten().min();
        found.groups.push(Group { file: group::file_of(&id), id, raw });
    }
    Ok(found)
}

/// A snapshot, if it is of a form that is known.
fn snapshot(input: &Input, path: &Path, sink: &mut dyn Sink) -> Option<String> {
    let raw = object(input, path, sink)?;
    let fields = Fields::parse(&raw).unwrap_or_default();
    let version = fields.text("schema_version").unwrap_or_default();
    if !version.starts_with("1.") || fields.object("data").is_none() {
        let what = format!("it is a snapshot of version {version:?}, and was left out");
        sink.warn(Warning { place: path.display().to_string(), what });
        return None;
    }
    Some(raw)
}

/// An agent, as if its messages lay in files.
fn agent(folder: &Path, snapshot: &str, copies: &[(Copy, String)]) -> Agent {
    let id = name_of(folder).to_owned();
    let fields = Fields::parse(snapshot).unwrap_or_default();
    let data = fields.object("data").unwrap_or_default();
    let listed = data.raw("messages").and_then(|raw| elements(raw).ok()).unwrap_or_default();
    let stops = stops(&listed, copies);
    let taken = fields.raw("created_at").unwrap_or("null");
    let messages = listed.iter().enumerate().map(|(n, raw)| {
        // A message was there at the latest when the first copy was taken that has it.
        let copy = stops.iter().filter(|copy| copy.messages > n).find_map(|copy| copy.at);
        let at = copy.map_or_else(|| taken.to_owned(), |at| quoted(&TimeForm::Offset.text(at)));
        let mut text = String::from("{");
        push_field(&mut text, "message", raw);
        push_field(&mut text, "message_id", &n.to_string());
        push_field(&mut text, "redact_message", "null");
        push_field(&mut text, "created_at", &at);
        push_field(&mut text, "updated_at", &at);
        text.push('}');
        Source::Held { place: latest(folder).join(format!("message_{n}.json")), text }
    });
    let messages: Vec<Source> = messages.collect();
    let system = data.raw("system_prompt").filter(|raw| *raw != "null").map(|raw| {
        let mut message = String::from("{");
        push_field(&mut message, "content", raw);
        message.push('}');
        words(&Fields::parse(&message).unwrap_or_default())
    });
    let raw = Some(agent_json(&id, &data, taken));
    let below = format!("agents/agent_{}", plain_name(&id));
    Agent { id, below, raw, messages, system: system.filter(|it| !it.is_empty()), copies: stops }
}

/// What `FileSessionManager` would keep of an agent. What is out of its window is not in a
/// snapshot, so that nothing is to be left out of what is.
fn agent_json(id: &str, data: &Fields<'_>, taken: &str) -> String {
    let window = data.object("conversation_manager_state").unwrap_or_default();
    let window = window.rewritten(&[
        ("removed_message_count", Some("0")),
        ("summary_message", window.has("summary_message").then_some("null")),
    ]);
    let mut internal = String::from("{");
    for name in ["interrupt_state", "model_state"] {
        push_field(&mut internal, name, data.raw(name).unwrap_or("{}"));
    }
    internal.push('}');
    let mut raw = String::from("{");
    push_field(&mut raw, "agent_id", &quoted(id));
    push_field(&mut raw, "state", data.raw("state").unwrap_or("{}"));
    push_field(&mut raw, "conversation_manager_state", &window);
    push_field(&mut raw, "_internal_state", &internal);
    push_field(&mut raw, "created_at", taken);
    push_field(&mut raw, "updated_at", taken);
    raw.push('}');
    raw
}

/// The copies that stay, the first one first, each with its last message.
fn copies(input: &Input, folder: &Path, sink: &mut dyn Sink) -> Vec<(Copy, String)> {
    let mut paths: Vec<PathBuf> = list(folder).unwrap_or_default();
    paths.retain(|path| name_of(path).starts_with("snapshot_"));
    // Their names are in the order of their times.
    paths.sort();
    if let Some(more) = paths.len().checked_sub(MAX_COPIES).filter(|more| *more > 0) {
        let what = format!("only its last {MAX_COPIES} snapshots are read; {more} came before");
        sink.warn(Warning { place: folder.display().to_string(), what });
        paths.drain(..more);
    }
    let copy = |path: &PathBuf| {
        let raw = input.text(path).map_err(|error| warn(sink, path, &error)).ok()?;
        let fields = Fields::parse(&raw).ok()?;
        let data = fields.object("data")?;
        let last = (*elements(data.raw("messages")?).ok()?.last()?).to_owned();
        let name = name_of(path).trim_end_matches(".json").to_owned();
        Some((Copy { name, at: moment(&fields, "created_at"), messages: 0 }, compact(&last)))
    };
    paths.iter().filter_map(copy).collect()
}

/// Where in the conversation copies were taken. One whose last message has left the window
/// cannot be placed.
fn stops(messages: &[&str], copies: &[(Copy, String)]) -> Vec<Copy> {
    let messages: Vec<String> = messages.iter().map(|raw| compact(raw)).collect();
    let place = |(copy, last): &(Copy, String)| {
        let at = messages.iter().rposition(|message| message == last)?;
        Some(Copy { messages: at + 1, ..copy.clone() })
    };
    copies.iter().filter_map(place).collect()
}

fn name_of(path: &Path) -> &str {
    path.file_name().and_then(|name| name.to_str()).unwrap_or_default()
}
