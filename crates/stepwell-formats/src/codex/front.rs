//! What a rollout says of its session as a whole, found in its first lines.

use std::path::Path;

use stepwell::model::{Mark, Part, Role};
use stepwell::{Created, Event, Recorded};

use super::item::{self, hollow};
use crate::json::fields::{Fields, elements};
use crate::read::input::Input;
use crate::read::mark::mark_within;
use crate::read::neutral::{KEPT, Opening};
use crate::{Error, Result};

/// How many lines are looked at for what was asked.
const MAX_FRONT: usize = 400;

/// What a rollout says of its session.
pub(super) fn opening(path: &Path, line: &Fields<'_>, meta: &Fields<'_>) -> Result<Opening> {
    let thread = meta.text("id").or_else(|| meta.text("session_id")).unwrap_or_default();
    if thread.is_empty() {
        return Err(not_one(path, "its session has no id"));
    }
    let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
    // Several rollouts of one thread are told apart by their names alone.
    let rest = name.split_once(&format!("{thread}_")).map(|(_, rest)| rest);
    let rollout = rest.and_then(|rest| rest.split('.').next());
    // The time in what is said of the session is the thread's.
    let began = line.time("timestamp").filter(|_| rollout.is_some());
    let id = match rollout {
        Some(rollout) => format!("{thread}_{rollout}"),
        None => thread.into_owned(),
    };
    let mut opening = Opening::new(id, "");
    opening.created.workspace = meta.text("cwd").unwrap_or_default().into_owned();
    opening.created.provider = meta.text("model_provider").unwrap_or_default().into_owned();
    opening.created.agent = meta.text("agent_role").unwrap_or_default().into_owned();
    opening.started_at = began.or_else(|| meta.time("timestamp"));
    opening.file = Some(path.to_owned());
    let spawned = meta.object("source").and_then(|source| source.object("subagent"));
    let spawned = spawned.and_then(|agent| agent.object("thread_spawn"));
    opening.parent =
        spawned.and_then(|it| it.text("parent_thread_id").map(std::borrow::Cow::into_owned));
    Ok(opening)
}

/// What the first lines say of a session that was written here.
#[derive(Debug, Default)]
pub(super) struct Written {
    /// The session that it was written from.
    pub(super) mark: Option<Mark>,
    /// How that one began.
    pub(super) created: Option<Created>,
}

impl Written {
    /// What stands behind the first line of a rollout.
    pub(super) fn of(input: &Input, path: &Path) -> Result<Self> {
        let mut written = Self::default();
        let mut lines = input.glance(path)?;
        lines.next_line()?;
        // The mark, and then how the session began.
        for _ in 0..2 {
            let Some(line) = lines.next_line()? else { break };
            let Ok((_, line)) = line.object() else { break };
            let ours = line.text("type").as_deref() == Some(KEPT);
            let Some(payload) = line.object("payload").filter(|_| ours) else { break };
            written.mark = written.mark.or_else(|| mark_within(&payload));
            written.created = written.created.or_else(|| created(payload.raw("event")?));
        }
        Ok(written)
    }

    /// Gives a session what a rollout has no place for.
    pub(super) fn complete(self, opening: &mut Opening) {
        opening.continues = self.mark;
        let Some(was) = self.created else { return };
        let created = &mut opening.created;
        let fields = [(&mut created.provider, was.provider), (&mut created.model, was.model)];
        for (field, was) in fields.into_iter().chain([(&mut created.agent, was.agent)]) {
            if field.is_empty() {
                *field = was;
            }
        }
    }
}

fn created(raw: &str) -> Option<Created> {
    match serde_json::from_str::<Recorded>(raw).ok()?.event {
        Event::Created(created) => Some(*created),
        _ => None,
    }
}

/// What the user asked for first.
pub(super) fn task(input: &Input, path: &Path) -> Result<Option<String>> {
    let mut lines = input.glance(path)?;
    let mut said = None;
    for _ in 0..MAX_FRONT {
        let Some(line) = lines.next_line()? else { break };
        let Ok((_, line)) = line.object() else { continue };
        let Some(payload) = line.object("payload") else { continue };
        if let Some(text) = typed(&payload).filter(|text| !text.trim().is_empty()) {
            return Ok(Some(text));
        }
        if said.is_none()
            && line.text("type").as_deref() == Some("response_item")
            && let Some(item) = hollow(&payload).filter(|item| item.role == Role::User)
        {
            let words: Vec<&str> = item.parts.iter().filter_map(own_words).collect();
            said = Some(words.join("\n")).filter(|words| !words.is_empty());
        }
    }
    Ok(said)
}

/// What a line for a screen says that the user typed.
fn typed(payload: &Fields<'_>) -> Option<String> {
    match payload.text("type")?.as_ref() {
        "user_message" => payload.text("message").map(std::borrow::Cow::into_owned),
        "item_completed" => {
            let item = payload.object("item")?;
            item.text("type").filter(|kind| kind == "UserMessage")?;
            let parts = elements(item.raw("content")?).ok()?;
            let parts = parts.into_iter().filter_map(|raw| Fields::parse(raw).ok());
            let texts: Vec<String> =
                parts.filter_map(|part| Some(part.text("text")?.into_owned())).collect();
            Some(texts.join("\n"))
        }
        _ => None,
    }
}

/// Is this what a user said or showed, and not what Codex injected in the user's name?
pub(super) fn is_asked(item: &item::Item) -> bool {
    let own = |part: &Part| matches!(part, Part::Image(_)) || own_words(part).is_some();
    item.role == Role::User && item.parts.iter().any(own)
}

/// The user's own words in a part: neither what Codex injects, nor the tags around a picture.
fn own_words(part: &Part) -> Option<&str> {
    let text = part.as_text()?.trim();
    let around_picture = text == "</image>" || (text.starts_with("<image") && text.ends_with('>'));
    (!text.is_empty() && !around_picture && !is_injected(text)).then_some(text)
}

/// Is it a text that Codex injects: the instructions of a folder, or an element by itself, such as
/// `<environment_context>`? A user may type an element too; Codex's have words of their own.
fn is_injected(text: &str) -> bool {
    /// The names of those that are one word.
    const WORDS: [&str; 4] = ["skill", "skills", "plugins", "instructions"];
    if text.starts_with("# AGENTS.md instructions") {
        return true;
    }
    let name = text.strip_prefix('<').and_then(|rest| rest.split_once('>')).map(|(name, _)| name);
    name.is_some_and(|name| {
        let plain = name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_' || b == b' ');
        let known = name.contains(['_', ' ']) || WORDS.contains(&name.to_lowercase().as_str());
        plain && known && text.ends_with(&format!("</{name}>"))
    })
}

pub(super) fn not_one(path: &Path, why: &str) -> Error {
    Error::Foreign { path: path.to_owned(), why: format!("it is no rollout of Codex: {why}") }
}
