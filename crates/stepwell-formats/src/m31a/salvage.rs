//! What can be saved of a session whose `session.json` is broken: the conversation beside it,
//! under the name that the other files know.

use std::path::Path;

use super::SESSION;
use super::phase_walk::phase;
use super::sound::{began, check, recovered, stand_in, whole};
use crate::json::fields::{Fields, elements};
use crate::json::json_text::compact;
use crate::read::input::Input;
use crate::snapshot::{Object, moment, sound_front, text};

/// A session put together from what is intact.
pub(super) struct Salvaged {
    /// Its name.
    pub(super) id: String,
    /// Does a file name it so?
    pub(super) named: bool,
    /// `session.json` as far as it is known, without the conversation.
    pub(super) session: String,
    /// The text of `messages.json`.
    pub(super) messages: String,
    /// How many messages it holds.
    pub(super) count: usize,
}

/// The conversation beside a broken `session.json`, if it is intact. Where `recovery.json` holds
/// more of the same session, that is the better source, and nothing is salvaged.
pub(super) fn salvage(input: &Input, folder: &Path) -> Option<Salvaged> {
    let messages = text(input, &folder.join("messages.json")).ok()?;
    let listed = elements(&messages).ok().filter(|all| !all.is_empty())?;
    let count = listed.len();
    let broken = text(input, &folder.join(SESSION)).unwrap_or_default();
    let front = sound_front(&broken);
    let front = Fields::parse(&front).unwrap_or_default();
    let saved = text(input, &folder.join("recovery.json")).ok().and_then(|it| recovered(&it));
    let backup = whole(input, &folder.join("session.json.bak")).ok();
    let of_backup = backup.as_deref().and_then(|it| Fields::parse(it).ok()).unwrap_or_default();
    let began = began(&listed);
    let id = front.text("id").filter(|id| !id.is_empty()).map(String::from);
    let id = id.or_else(|| saved.as_ref().map(|(id, _)| id.clone()));
    let id = id.or_else(|| continues(&of_backup, &listed));
    let named = id.is_some();
    let id = id.or_else(|| stand_in(&listed))?;
    let saved = saved.filter(|(other, _)| *other == id).map(|(_, session)| session);
    let saved = saved.as_deref().and_then(|it| Fields::parse(it).ok()).unwrap_or_default();
    let more = saved.raw("messages").and_then(|raw| elements(raw).ok());
    if more.is_some_and(|it| it.len() > count) {
        return None;
    }
    let backup = Some(of_backup).filter(|it| it.text("id").as_deref() == Some(&id));
    let session = completed(&[front, saved, backup.unwrap_or_default()], &id, began.as_deref());
    check(&Fields::parse(&session).ok()?).ok()?;
    Some(Salvaged { id, named, session, messages, count })
}

/// The session in a backup, if the conversation begins as it does there.
fn continues(backup: &Fields<'_>, messages: &[&str]) -> Option<String> {
    let before = backup.raw("messages").and_then(|raw| elements(raw).ok())?;
    let same = !before.is_empty()
        && before.len() <= messages.len()
        && before.iter().zip(messages).all(|(one, other)| compact(one) == compact(other));
    Some(backup.text("id").filter(|_| same)?.into_owned())
}

/// The fields of a session, each from the first source in which it is sound.
fn completed(sources: &[Fields<'_>], id: &str, began: Option<&str>) -> String {
    let mut session = Object::new();
    session.put_text("id", id);
    let sound = |name: &str, raw: &str| match name {
        "started_at" => moment(raw).is_some(),
        "workflow_phase" => crate::json::fields::text_of(raw)
            .is_some_and(|it| !it.is_empty() && phase(&it).is_some()),
        "id" | "messages" | "message_count" => false,
        _ => true,
    };
    let mut done: Vec<String> = Vec::new();
    for source in sources {
        for (name, raw) in source.each().filter(|(name, raw)| sound(name, raw)) {
            if !done.iter().any(|it| it == name) {
                done.push(name.to_owned());
                session.put(name, raw);
            }
        }
    }
    if let Some(began) = began.filter(|_| !done.iter().any(|it| it == "started_at")) {
        session.put("started_at", began);
    }
    session.end()
}
