//! What a line of a transcript says, read from it alone.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::Path;

use stepwell::model::{MAX_NAME_BYTES, Part, Role, Usage};
use stepwell::{Lane, Message};

use super::content::Said;
use super::{PROVIDER, is_uuid};
use crate::json::fields::Fields;
use crate::read::neutral::Opening;

/// The lane of subagents that older versions wrote into the same file.
const SIDECHAIN: &str = "sidechain";

/// The session that a transcript is of, by a line of its conversation. Subagents' files name
/// their parent's session.
pub(super) fn opening(
    path: &Path,
    parent: Option<&str>,
    fields: &Fields<'_>,
    task: String,
) -> Opening {
    let session = fields.text("sessionId").unwrap_or_default().into_owned();
    let agent = fields.text("agentId").map(std::borrow::Cow::into_owned);
    let stem = path.file_stem().and_then(|stem| stem.to_str()).unwrap_or_default();
    // What was kept of one without a conversation does not say whose it is.
    let named = stem.strip_prefix("agent-").filter(|_| parent.is_some() && is_kept(fields));
    let agent = agent.filter(|_| fields.is_true("isSidechain"));
    let (id, parent) = match agent.or_else(|| named.map(str::to_owned)) {
        // Subagents' names are short: only with their parent's are they of one session.
        Some(agent) => {
            let parent = parent.map_or(session, str::to_owned);
            (format!("{parent}.{agent}"), Some(parent))
        }
        None if is_uuid(stem) || session.is_empty() => (stem.to_owned(), None),
        None => (session, None),
    };
    let mut opening = Opening::new(id, task);
    opening.created.workspace = fields.text("cwd").unwrap_or_default().into_owned();
    opening.created.provider = PROVIDER.to_owned();
    opening.started_at = fields.time("timestamp");
    opening.file = Some(path.to_owned());
    opening.parent = parent;
    opening
}

/// The title that a user gave, if it can be a label.
pub(super) fn label(fields: &Fields<'_>) -> Option<String> {
    let title = fields.text("customTitle")?;
    let fits = !title.trim().is_empty()
        && title.len() <= MAX_NAME_BYTES
        && !title.starts_with('@')
        && !title.chars().any(char::is_control);
    fits.then(|| title.into_owned())
}

pub(super) fn hash(value: &impl Hash) -> u64 {
    let mut hasher = DefaultHasher::new();
    value.hash(&mut hasher);
    hasher.finish()
}

pub(super) fn is_conversation(fields: &Fields<'_>) -> bool {
    matches!(fields.text("type").as_deref(), Some("user" | "assistant")) && fields.has("message")
}

/// Is it a line of ours, for what has no other place?
pub(super) fn is_kept(fields: &Fields<'_>) -> bool {
    fields.text("type").as_deref() == Some("stepwell") && fields.has("event")
}

/// What a session of ours was to do, if this is the line that says so.
pub(super) fn kept_task(fields: &Fields<'_>) -> Option<String> {
    let event = fields.object("event").filter(|_| is_kept(fields))?;
    let created = event.text("kind").as_deref() == Some("created");
    let task = event.object("body").filter(|_| created)?.text("task")?;
    Some(task.into_owned())
}

/// Subagents that older versions wrote into the same file speak in a lane of their own.
pub(super) fn lane(fields: &Fields<'_>) -> Lane {
    match fields.is_true("isSidechain") && !fields.has("agentId") {
        true => SIDECHAIN.parse().unwrap_or_default(),
        false => Lane::main(),
    }
}

/// What a user asked for, if the line says so in their own words.
pub(super) fn task(fields: &Fields<'_>) -> Option<String> {
    if fields.text("type").as_deref() != Some("user") {
        return None;
    }
    let (parts, _) = Said::of(fields)?.hollow();
    if is_injected(fields, &parts) {
        return None;
    }
    let text = Message::new(Role::User, parts).text();
    let text = text.trim();
    (!text.is_empty()).then(|| text.to_owned())
}

/// The command that a user typed, if the line tells of one: `/review main`.
pub(super) fn command(fields: &Fields<'_>) -> Option<String> {
    let (parts, _) = Said::of(fields)?.hollow();
    let text = Message::new(Role::User, parts).text();
    let within = |tag: &str| {
        let (_, rest) = text.split_once(&format!("<{tag}>"))?;
        Some(rest.split_once(&format!("</{tag}>"))?.0.trim().to_owned())
    };
    let (name, arguments) = (within("command-name")?, within("command-args"));
    Some(format!("{name} {}", arguments.unwrap_or_default()).trim().to_owned())
}

/// How texts begin that Claude Code writes in the user's name: commands of the program and what
/// they print, reminders for the model, notices.
const INJECTED: [&str; 7] = [
    "<command-",
    "<local-command-",
    "<bash-",
    "<system-reminder>",
    "<task-notification>",
    "<user-prompt-submit-hook>",
    "[Request interrupted by user",
];

/// Did Claude Code write this line in the user's name?
pub(super) fn is_injected(fields: &Fields<'_>, parts: &[Part]) -> bool {
    let kind = || Some(fields.object("origin")?.text("kind")? != "human");
    let is_marked = fields.is_true("isMeta")
        || fields.is_true("isCompactSummary")
        || fields.text("promptSource").as_deref() == Some("system")
        || kind() == Some(true);
    is_marked || begins_with(parts, &INJECTED)
}

/// Is it about a command of the program, which asks nothing of the model?
pub(super) fn is_command(parts: &[Part]) -> bool {
    begins_with(parts, &INJECTED[..2])
}

/// Is it nothing but texts that begin so?
fn begins_with(parts: &[Part], fronts: &[&str]) -> bool {
    let begins = |part: &Part| {
        let text = part.as_text().unwrap_or_default().trim_start();
        fronts.iter().any(|front| text.starts_with(front))
    };
    !parts.is_empty() && parts.iter().all(begins)
}

/// Tokens, as the provider counts them: those of the cache are apart.
pub(super) fn usage(message: &Fields<'_>) -> Option<Usage> {
    let usage = message.object("usage")?;
    let count = |name: &str| usage.get::<u64>(name).unwrap_or(0);
    let (written, cached) =
        (count("cache_creation_input_tokens"), count("cache_read_input_tokens"));
    let usage = Usage {
        input: count("input_tokens").saturating_add(written).saturating_add(cached),
        output: count("output_tokens"),
        cached,
        cache_written: written,
        reasoning: 0,
    };
    // Nothing was counted: no call takes no token.
    (usage != Usage::default()).then_some(usage)
}

/// The larger of two counts of one answer.
pub(super) fn larger(one: Usage, other: Usage) -> Usage {
    Usage {
        input: one.input.max(other.input),
        output: one.output.max(other.output),
        cached: one.cached.max(other.cached),
        cache_written: one.cache_written.max(other.cache_written),
        reasoning: one.reasoning.max(other.reasoning),
    }
}
