//! What the lines of a chat mean.

use std::path::Path;

use stepwell::Message;
use stepwell::model::{Part, Role};

use super::WORDS;
use crate::gemini_content::{exit_code, parts, usage};
use crate::journal::form::Words;
use crate::journal::row::{Compaction, LineReader, Link, Row, Said, What};
use crate::json::fields::{Fields, sound_elements};
use crate::read::neutral::{KEPT, Opening};
use crate::write::writer::is_uuid;

/// The kinds of lines that Qwen Code reads.
pub(super) const KINDS: [&str; 4] = ["user", "assistant", "tool_result", "system"];

/// Lines that the conversation never goes on from.
const APART: [&str; 6] = [
    "session_sources_snapshot",
    "managed_session_header_v1",
    "managed_session_event_v1",
    "managed_session_commit_v1",
    "session_artifact_event",
    "session_artifact_snapshot",
];

/// How texts begin that Qwen Code writes in the user's name.
const INJECTED: [&str; 4] =
    ["<system-reminder>", "<qwen:", "<task-notification>", "<state_snapshot>"];

/// The tool that runs commands.
const SHELL: &str = "run_shell_command";

pub(super) struct Lines;

impl LineReader for Lines {
    fn words(&self) -> &'static Words {
        &WORDS
    }

    fn opening(&self, path: &Path, line: &Fields<'_>) -> Option<Opening> {
        let session = line.text("sessionId").filter(|it| !it.is_empty())?.into_owned();
        line.text("uuid")?;
        let stem = path.file_stem().and_then(|stem| stem.to_str()).unwrap_or_default();
        let agent = line.text("agentId").filter(|_| line.is_true("isSidechain"));
        // A subagent's name is its own only below its parent's.
        let (id, parent) = match agent {
            Some(agent) => (format!("{session}.{agent}"), Some(session)),
            None if is_uuid(stem) => (stem.to_owned(), None),
            None => (session, None),
        };
        let mut opening = Opening::new(id, "");
        opening.created.workspace = line.text("cwd").unwrap_or_default().into_owned();
        opening.created.agent = line.text("agentName").unwrap_or_default().into_owned();
        opening.started_at = line.time("timestamp");
        opening.parent = parent;
        Some(opening)
    }

    fn asked(&self, line: &Fields<'_>) -> Option<String> {
        let message = message(line)?;
        let own = |part: &Part| match part {
            Part::Text(text) if !is_injected(&text.text) => Some(text.text.trim().to_owned()),
            _ => None,
        };
        let words: Vec<String> = message.parts.iter().filter_map(own).collect();
        let words = words.join("\n").trim().to_owned();
        (message.is_from_user() && !words.is_empty()).then_some(words)
    }

    fn row<'a>(&mut self, line: &Fields<'a>) -> Row<'a> {
        let kind = line.text("type").unwrap_or_default();
        let subtype = line.text("subtype").unwrap_or_default();
        let is_line = line.text("uuid").is_some_and(|it| !it.is_empty())
            && line.raw("parentUuid").is_some()
            && KINDS.contains(&kind.as_ref());
        let at = line.time("timestamp");
        if !is_line || kind == "system" && APART.contains(&subtype.as_ref()) {
            return Row { name: None, link: Link::Last, at, what: What::Nothing };
        }
        let name = line.text("uuid").map(std::borrow::Cow::into_owned);
        let link = match line.text("parentUuid") {
            Some(parent) if !parent.is_empty() => Link::After(parent.into_owned()),
            _ => Link::First,
        };
        let what = match kind.as_ref() {
            "system" => system(line, &subtype),
            _ => match message(line) {
                Some(message) => What::Said(Said::whole(message)),
                None => What::Nothing,
            },
        };
        Row { name, link, at, what }
    }

    fn is_ours(&self, line: &Fields<'_>) -> bool {
        line.text("subtype").as_deref() == Some(KEPT)
    }
}

fn system<'a>(line: &Fields<'a>, subtype: &str) -> What<'a> {
    let payload = line.object("systemPayload").unwrap_or_default();
    match subtype {
        KEPT => What::Ours(payload),
        "custom_title" => match payload.text("customTitle") {
            Some(title) => What::Title(title.into_owned()),
            None => What::Nothing,
        },
        "chat_compression" => match compaction(&payload) {
            Some(compaction) => What::Compacted(compaction),
            None => What::Nothing,
        },
        "slash_command" => match withdrawn(&payload) {
            Some(command) => What::Withdrawn(command),
            None => What::Nothing,
        },
        _ => What::Nothing,
    }
}

/// A compression: the model is shown its list from there on.
fn compaction(payload: &Fields<'_>) -> Option<Compaction> {
    let history = sound_elements(payload.raw("compressedHistory")?)?;
    let mut shown: Vec<Message> =
        history.iter().filter_map(|(_, content)| shown_again(content.as_ref()?)).collect();
    let is_summary = |message: &Message| {
        message.role == Role::User && matches!(message.parts[..], [Part::Text(_)])
    };
    let has_summary = shown.first().is_some_and(is_summary);
    let summary = has_summary.then(|| shown.remove(0).text());
    let info = payload.object("info").unwrap_or_default();
    let tokens_before = info.get("originalTokenCount").unwrap_or(0);
    Some(Compaction { summary, kept_from: None, shown, tokens_before })
}

/// A message that a compression repeats. The log has the original already.
fn shown_again(content: &Fields<'_>) -> Option<Message> {
    let parts = parts(content);
    if parts.is_empty() {
        return None;
    }
    let is_model = content.text("role").as_deref() == Some("model");
    let results = parts.iter().any(|part| matches!(part, Part::ToolResult(_)));
    Some(match (is_model, results) {
        (true, _) => Message::new(Role::Assistant, parts),
        (false, true) => Message::new(Role::Tool, parts),
        (false, false) => Message::new(Role::User, parts).injected(),
    })
}

/// The command that the line before it is, if Qwen Code answered it itself.
fn withdrawn(payload: &Fields<'_>) -> Option<String> {
    let items = sound_elements(payload.raw("outputHistoryItems")?)?;
    let answers = |item: &Option<Fields<'_>>| {
        item.as_ref().and_then(|item| item.text("type")).as_deref() == Some("assistant")
    };
    let own = payload.text("phase").as_deref() == Some("result")
        && !payload.is_true("sentToModel")
        && !items.is_empty()
        && items.iter().all(|(_, item)| answers(item));
    payload.text("rawCommand").filter(|_| own).map(std::borrow::Cow::into_owned)
}

/// What a line of the conversation says.
fn message(line: &Fields<'_>) -> Option<Message> {
    let kind = line.text("type")?;
    // What is said in a live conversation is not sent to the model.
    if kind == "system" || line.text("subtype").as_deref() == Some("realtime_message") {
        return None;
    }
    let mut parts = parts(&line.object("message")?);
    if parts.is_empty() {
        return None;
    }
    if kind == "assistant" {
        let mut said = Message::new(Role::Assistant, parts);
        let model = line.text("model").filter(|model| !model.is_empty());
        said.model = model.map(std::borrow::Cow::into_owned);
        // What another session asked is counted there.
        said.usage = usage(line).filter(|_| !is_copied(line));
        return Some(said);
    }
    let failed = has_failed(line);
    let mut results = false;
    for part in &mut parts {
        if let Part::ToolResult(result) = part {
            results = true;
            result.is_error |= failed;
        }
    }
    if results {
        return Some(Message::new(Role::Tool, parts));
    }
    let injected = is_told_by_program(line) || parts.iter().all(is_injected_part);
    let said = Message::new(Role::User, parts);
    Some(if injected { said.injected() } else { said })
}

/// Did the call of a line fail? Older versions call a command that failed a success.
fn has_failed(line: &Fields<'_>) -> bool {
    let result = line.object("toolCallResult").unwrap_or_default();
    if matches!(result.text("status").as_deref(), Some("error" | "cancelled")) {
        return true;
    }
    let display = result.object("resultDisplay").unwrap_or_default();
    let code = display.get::<i64>("exitCode").or_else(|| {
        let parts = line.object("message")?.raw("parts").and_then(sound_elements)?;
        let answers = parts.into_iter().filter_map(|(_, part)| part?.object("functionResponse"));
        let shell = answers.filter(|it| it.text("name").as_deref() == Some(SHELL));
        let mut outputs = shell.filter_map(|it| it.object("response")?.text("output"));
        outputs.find_map(|output| exit_code(&output))
    });
    code.is_some_and(|code| code != 0)
}

/// Did a program say it in the user's name?
fn is_told_by_program(line: &Fields<'_>) -> bool {
    line.text("provenance").is_some_and(|it| it != "real_user")
        || matches!(
            line.text("subtype").as_deref(),
            Some("notification" | "cron" | "background_task_completed" | "agent_launch_prompt")
        )
}

fn is_injected_part(part: &Part) -> bool {
    part.as_text().is_some_and(is_injected)
}

fn is_injected(text: &str) -> bool {
    INJECTED.iter().any(|front| text.trim_start().starts_with(front))
}

/// Was the line copied from the session that this one was forked from?
fn is_copied(line: &Fields<'_>) -> bool {
    let from = line.object("forkedFrom").unwrap_or_default();
    from.text("sessionId").is_some_and(|from| line.text("sessionId") != Some(from))
}
