//! What a rollout says of its session as a whole, found in its first lines.

use std::path::Path;

use stepwell::{Created, Event, Message, Part, Recorded, Role};

use super::item::{self, hollow};
use crate::json::fields::Fields;
use crate::read::input::Input;
use crate::read::neutral::{KEPT, Opening};
use crate::write::mark::Mark;
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
        let mut lines = input.lines(path)?;
        lines.next_line()?;
        // The mark, and then how the session began.
        for _ in 0..2 {
            let Some(line) = lines.next_line()? else { break };
            let Ok((_, line)) = line.object() else { break };
            let ours = line.text("type").as_deref() == Some(KEPT);
            let Some(payload) = line.object("payload").filter(|_| ours) else { break };
            written.mark = written.mark.or_else(|| Mark::within(&payload));
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
    let mut lines = input.lines(path)?;
    let mut said = None;
    for _ in 0..MAX_FRONT {
        let Some(line) = lines.next_line()? else { break };
        let Ok((_, line)) = line.object() else { continue };
        let Some(payload) = line.object("payload") else { continue };
        if payload.text("type").as_deref() == Some("user_message")
            && let Some(text) = payload.text("message").filter(|text| !text.trim().is_empty())
        {
            return Ok(Some(text.into_owned()));
        }
        if said.is_none()
            && line.text("type").as_deref() == Some("response_item")
            && let Some(item) = hollow(&payload).filter(is_asked)
        {
            said = Some(Message::new(Role::User, item.parts).text());
        }
    }
    Ok(said)
}

/// Is this what a user said, and not what was put in front of it for them?
pub(super) fn is_asked(item: &item::Item) -> bool {
    let said = item.parts.first().and_then(Part::as_text).unwrap_or_default().trim_start();
    item.role == Role::User && !said.starts_with('<') && !said.starts_with("# AGENTS.md")
}

pub(super) fn not_one(path: &Path, why: &str) -> Error {
    Error::Foreign { path: path.to_owned(), why: format!("it is no rollout of Codex: {why}") }
}
