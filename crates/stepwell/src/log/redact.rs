//! Which texts of an event are redacted before it is recorded.
//!
//! Everything recorded through a [`Stepwell`](crate::sessions::Stepwell) or a
//! [`Session`](crate::sessions::Session) is redacted. What is written to the
//! [store](crate::store::Store) directly, as imports are, stays byte for byte, and so do other
//! programs' records, which must return unchanged. A session's first event [says
//! which](crate::model::Created::redacted). Front ends redact unredacted texts when they show them,
//! and leave redacted ones alone.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;
pub use stepwell_redact::Redactor;

use crate::log::head::Head;
use crate::model::{
    Answer, Change, Checkpoint, CheckpointReason, Created, Edited, Event, FileState, Image,
    Message, NewEvent, Opaque, Part, Rewinding, Text, ToolResult, WorkChange,
};

impl Event {
    /// The event without secrets.
    #[must_use]
    pub fn redacted(mut self, by: &Redactor) -> Self {
        redact_event(by, &mut self);
        self
    }
}

impl NewEvent {
    /// The event without secrets.
    #[must_use]
    pub fn redacted(self, by: &Redactor) -> Self {
        Self { event: self.event.redacted(by), ..self }
    }
}

impl Head {
    /// A session's attributes without secrets, for display.
    #[must_use]
    pub fn redacted(mut self, by: &Redactor) -> Self {
        redact_head(by, &mut self);
        self
    }
}

/// Redacts every text of an event that someone wrote. Ids, digests, numbers and Stepwell's own
/// words stay.
fn redact_event(by: &Redactor, event: &mut Event) {
    match event {
        Event::Created(created) => redact_created(by, created),
        Event::Message(message) => {
            redact_parts(by, &mut message.parts);
        },
        Event::ToolStarted(started) => {
            hide(by, &mut started.tool);
            started.targets.iter_mut().for_each(|target| hide(by, &mut target.path));
        }
        Event::Status(status) => replace_some(by, &mut status.error),
        Event::File(file) => {
            hide(by, &mut file.path);
            replace_some(by, &mut file.renamed_from);
            for state in [&mut file.before, &mut file.after] {
                if let FileState::Symlink { target } = state {
                    hide(by, target);
                }
            }
        }
        Event::Node(node) => {
            node.output.iter_mut().for_each(|output| replace_value(by, output));
            replace_some(by, &mut node.error);
        }
        Event::Gate(gate) => {
            hide(by, &mut gate.prompt);
            replace_some(by, &mut gate.default);
            if let Some(call) = &mut gate.call {
                hide(by, &mut call.arguments);
                replace_some(by, &mut call.detail);
            }
        }
        Event::GateAnswered(answered) => {
            redact_answer(by, &mut answered.answer);
            hide(by, &mut answered.who.name);
        }
        Event::Checkpoint(checkpoint) => redact_checkpoint(by, checkpoint),
        Event::Compacted(compacted) => {
            replace_some(by, &mut compacted.summary);
            replace_some(by, &mut compacted.fault);
        }
        Event::Rewinding(Rewinding::Dropped { why, .. }) => hide(by, why),
        Event::Permission(permission) => {
            hide(by, &mut permission.rule);
            permission.who.iter_mut().for_each(|who| hide(by, &mut who.name));
        }
        Event::Artifact(artifact) => hide(by, &mut artifact.path),
        Event::Task(task) => {
            let texts = [&mut task.id, &mut task.action, &mut task.description];
            let lists = task.deps.iter_mut().chain(&mut task.files);
            texts.into_iter().chain(lists).for_each(|text| hide(by, text));
        }
        Event::Question(question) => {
            hide(by, &mut question.text);
            replace_some(by, &mut question.answer);
        }
        Event::Error(failure) => hide(by, &mut failure.message),
        Event::Edited(edited) => redact_edited(by, edited),
        Event::Settings(settings) => {
            replace_some(by, &mut settings.agent);
            replace_some(by, &mut settings.model);
            if let Some(flow) = &mut settings.flow {
                replace_some(by, &mut flow.path);
                replace_some(by, &mut flow.output);
            }
            hide(by, &mut settings.who.name);
        }
        Event::Said(said) => {
            hide(by, &mut said.text);
            hide(by, &mut said.who.name);
        }
        Event::StopAsked(stop) => {
            replace_some(by, &mut stop.reason);
            hide(by, &mut stop.who.name);
        }
        Event::WorkAsked(asked) => {
            hide(by, &mut asked.who.name);
            redact_change(by, &mut asked.change);
        }
        // These hold no free text.
        Event::ToolFinished(_)
        | Event::Step(_)
        | Event::Phase(_)
        | Event::Rewinding(Rewinding::Begun { .. })
        | Event::Rewound(_)
        | Event::Undone(_)
        | Event::Scrubbed(_)
        // Other programs' data, and events of a newer Stepwell, stay byte for byte.
        | Event::Record(_)
        | Event::Foreign(_)
        | Event::Unknown(_) => {}
    }
}

/// Redacts a session's first event, and records that it is redacted. A flow's spec stays: its
/// digest identifies it.
pub(crate) fn redact_created(by: &Redactor, created: &mut Created) {
    for text in [&mut created.task, &mut created.agent, &mut created.model, &mut created.provider] {
        hide(by, text);
    }
    if let Some(flow) = &mut created.flow {
        replace_map(by, &mut flow.variables);
    }
    if let Some(project) = &mut created.project {
        replace_map(by, &mut project.answers);
    }
    created.redacted = true;
}

fn redact_head(by: &Redactor, head: &mut Head) {
    for text in [&mut head.task, &mut head.agent, &mut head.model, &mut head.provider] {
        hide(by, text);
    }
    for text in [&mut head.error, &mut head.label, &mut head.goal, &mut head.elsewhere.last_error] {
        replace_some(by, text);
    }
    head.last_error.iter_mut().for_each(|error| hide(by, &mut error.message));
    if let Some(imported) = &mut head.imported {
        hide(by, &mut imported.model);
        hide(by, &mut imported.provider);
    }
    replace_set(by, &mut head.tags);
    replace_map(by, &mut head.metadata);
}

fn redact_answer(by: &Redactor, answer: &mut Answer) {
    match answer {
        Answer::Allow { .. } => {}
        Answer::Deny { reason, .. } => replace_some(by, reason),
        Answer::Text(text) => hide(by, text),
    }
}

/// Stepwell's own data at a checkpoint, such as a flow's spec, stays.
fn redact_checkpoint(by: &Redactor, checkpoint: &mut Checkpoint) {
    hide(by, &mut checkpoint.name);
    if checkpoint.reason == CheckpointReason::Manual {
        replace_map(by, &mut checkpoint.metadata);
    }
}

fn redact_change(by: &Redactor, change: &mut WorkChange) {
    match change {
        WorkChange::Phase(_) | WorkChange::Compact => {}
        WorkChange::Checkpoint { name, metadata } => {
            hide(by, name);
            replace_map(by, metadata);
        }
        WorkChange::Ask { text } | WorkChange::Answer { text, .. } => hide(by, text),
    }
}

fn redact_edited(by: &Redactor, edited: &mut Edited) {
    for text in [&mut edited.label, &mut edited.goal] {
        if let Change::Set(text) = text {
            hide(by, text);
        }
    }
    for tags in [&mut edited.tag, &mut edited.untag] {
        replace_set(by, tags);
    }
    replace_map(by, &mut edited.metadata);
    if let Some(elsewhere) = &mut edited.elsewhere {
        replace_some(by, &mut elsewhere.last_error);
    }
}

/// Redaction of messages for callers that must know whether it changed anything.
pub trait RedactMessages {
    /// The message without secrets, and whether it held any.
    ///
    /// A call's valid JSON arguments stay valid JSON. A provider's own data stays byte for byte,
    /// unless it holds a secret or signs thinking that was changed. Then it is removed, because the
    /// provider would refuse it.
    #[must_use]
    fn redact_message(&self, message: Message) -> (Message, bool);
}

impl RedactMessages for Redactor {
    fn redact_message(&self, mut message: Message) -> (Message, bool) {
        let changed = redact_parts(self, &mut message.parts);
        (message, changed)
    }
}

fn redact_parts(by: &Redactor, parts: &mut [Part]) -> bool {
    let mut changed = redact_split(by, parts);
    for part in parts {
        changed |= match part {
            Part::Text(Text { text, opaque }) => replace(by, text) | redact_opaque(by, opaque),
            Part::Thinking(Text { text, opaque }) => {
                let changed = replace(by, text);
                if changed {
                    *opaque = None;
                }
                changed | redact_opaque(by, opaque)
            }
            Part::Image(image) => replace_image(by, image),
            Part::ToolCall(call) => {
                let redacted = by.redact_json(&call.arguments);
                let changed = redacted.is_some() | replace(by, &mut call.name);
                if let Some(redacted) = redacted {
                    call.arguments = redacted;
                }
                changed | redact_opaque(by, &mut call.opaque)
            }
            Part::ToolResult(ToolResult { text, images, opaque, .. }) => {
                let mut changed = replace(by, text);
                for image in images {
                    changed |= replace_image(by, image);
                }
                changed | redact_opaque(by, opaque)
            }
        };
    }
    changed
}

/// Redacts secrets that span adjacent texts of a message, which are read as one.
fn redact_split(by: &Redactor, parts: &mut [Part]) -> bool {
    let is_text = |part: &Part| matches!(part, Part::Text(_));
    let mut changed = false;
    for parts in parts.chunk_by_mut(|one, next| is_text(one) && is_text(next)) {
        let texts: Vec<&str> = parts.iter().filter_map(Part::as_text).collect();
        let redacted = (texts.len() > 1).then(|| by.redact_joined(&texts)).flatten();
        for (part, redacted) in parts.iter_mut().zip(redacted.into_iter().flatten()) {
            if let Part::Text(text) = part {
                changed |= text.text != redacted;
                text.text = redacted;
            }
        }
    }
    changed
}

/// Redacts in place.
fn replace(by: &Redactor, text: &mut String) -> bool {
    match by.redact(text) {
        Cow::Borrowed(_) => false,
        Cow::Owned(redacted) => {
            *text = redacted;
            true
        }
    }
}

/// Redacts in place.
fn hide(by: &Redactor, text: &mut String) {
    let _ = replace(by, text);
}

fn replace_some(by: &Redactor, text: &mut Option<String>) {
    text.iter_mut().for_each(|text| hide(by, text));
}

fn replace_set(by: &Redactor, texts: &mut BTreeSet<String>) {
    *texts = texts.iter().map(|text| by.redact(text).into_owned()).collect();
}

/// Redacts the strings of a JSON value.
fn replace_value(by: &Redactor, value: &mut Value) {
    match value {
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
        Value::String(text) => hide(by, text),
        Value::Array(_) | Value::Object(_) => {
            let redacted = by.redact_json(&value.to_string());
            if let Some(Ok(redacted)) = redacted.map(|json| serde_json::from_str(&json)) {
                *value = redacted;
            }
        }
    }
}

/// Redacts the keys and values of a map. A value under a key such as `password` is always a secret.
fn replace_map(by: &Redactor, map: &mut BTreeMap<String, Value>) {
    *map = std::mem::take(map).into_iter().map(|entry| redact_entry(by, entry)).collect();
}

fn redact_entry(by: &Redactor, (key, value): (String, Value)) -> (String, Value) {
    let json = Value::Object([(key.clone(), value.clone())].into_iter().collect()).to_string();
    let Some(redacted) = by.redact_json(&json) else { return (key, value) };
    let redacted: Option<BTreeMap<String, Value>> = serde_json::from_str(&redacted).ok();
    let entry = redacted.and_then(|mut map| map.pop_first());
    // If the redacted entry does not parse, its value is dropped.
    entry.unwrap_or_else(|| (by.redact(&key).into_owned(), Value::Null))
}

/// An image's bytes are not text, but its URL is.
fn replace_image(by: &Redactor, image: &mut Image) -> bool {
    let is_address = image.data.contains("://");
    (is_address && replace(by, &mut image.data)) | redact_opaque(by, &mut image.opaque)
}

/// Removes a provider's own data if it holds a secret.
fn redact_opaque(by: &Redactor, opaque: &mut Option<Opaque>) -> bool {
    let holds = |opaque: &Opaque| matches!(by.redact(&opaque.data), Cow::Owned(_));
    opaque.take_if(|opaque| holds(opaque)).is_some()
}
