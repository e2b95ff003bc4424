//! Which files hold a session that is as it should be, and what it is called.

use std::path::Path;

use super::phase_walk::phase;
use crate::json::fields::{Fields, elements};
use crate::read::input::Input;
use crate::snapshot::{Object, moment, object, text};
use crate::{Error, Result};

/// What M31A itself calls corrupted.
pub(super) fn check(fields: &Fields<'_>) -> Result<(), String> {
    if fields.text("id").is_none_or(|id| id.is_empty()) {
        return Err("it is corrupted: it has no id".to_owned());
    }
    if fields.raw("started_at").and_then(moment).is_none() {
        return Err("it is corrupted: it does not say when it started".to_owned());
    }
    let word = fields.text("workflow_phase").unwrap_or_default();
    match phase(&word) {
        Some(_) => Ok(()),
        None => Err(format!("it is corrupted: {word:?} is no phase")),
    }
}

/// The text of a session that is as it should be.
pub(super) fn whole(input: &Input, path: &Path) -> Result<String> {
    let text = text(input, path)?;
    sound(path, &text)?;
    Ok(text)
}

/// A session in a text; or what is wrong with it.
pub(super) fn sound<'a>(path: &Path, text: &'a str) -> Result<Fields<'a>> {
    let fields = object(path, text)?;
    match check(&fields) {
        Ok(()) => Ok(fields),
        Err(why) => Err(Error::Foreign { path: path.to_owned(), why }),
    }
}

/// The session that was saved when the program stopped, and its name.
pub(super) fn recovered(text: &str) -> Option<(String, String)> {
    let saved = Fields::parse(text).ok()?;
    let id = saved.text("session_id")?.into_owned();
    let messages = saved.raw("messages").unwrap_or("[]");
    let first = elements(messages).ok().and_then(|all| {
        let first = Fields::parse(all.first()?).ok()?;
        first.raw("created_at").filter(|raw| moment(raw).is_some()).map(str::to_owned)
    });
    let mut session = Object::new();
    session.put_text("id", &id);
    let began = first.as_deref().or_else(|| saved.raw("timestamp")).unwrap_or("null");
    session.put("started_at", began);
    session.put("workflow_phase", saved.raw("current_phase").unwrap_or("\"\""));
    session.put("messages", if elements(messages).is_ok() { messages } else { "[]" });
    if let Some(goal) = saved.raw("goal") {
        session.put("workflow_goal", goal);
    }
    Some((id, session.end()))
}

/// What a session is called that nothing names: after the moment at which its conversation began.
pub(super) fn stand_in(messages: &[&str]) -> Option<String> {
    Some(format!("recovered-{}", moment(&began(messages)?)?.compact()))
}

/// When the first message was said that tells it, as it stands there.
pub(super) fn began(messages: &[&str]) -> Option<String> {
    messages.iter().find_map(|raw| {
        let said = Fields::parse(raw).ok()?;
        said.raw("created_at").filter(|raw| moment(raw).is_some()).map(str::to_owned)
    })
}
