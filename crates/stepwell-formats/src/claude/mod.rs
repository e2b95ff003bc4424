//! Claude Code: `~/.claude/projects/<slug>/<uuid>.jsonl`, a line for each part of a message.
//!
//! A transcript is a tree: each line names the one that it follows. Here the log is a tree
//! as well, so a line that follows an earlier one becomes a rewind and itself, and branches
//! that were left stay in the log and out of the view. What a line holds beside the
//! conversation is kept with its texts taken out ([`content`]), and put together with them
//! again when it is written.

mod content;
mod cost;
mod ending;
mod kept;
mod line;
mod preserved;
mod read;
mod rows;
mod said;
mod write;

use std::path::{Path, PathBuf};

use stepwell::log::Head;
use stepwell::{SessionId, Stepwell};

use crate::Result;
use crate::json::fields::Fields;
use crate::read::input::Input;
use crate::read::neutral::Sink;
use crate::read::reader::{Homes, Keeper, Kind, Probe, Reader};
use crate::registry::Entry;
use crate::write::writer::{
    Exported, Handoff, Handover, Outlet, Successor, Takes, Writer, is_uuid,
};

/// The system's name in a session's source.
const SYSTEM: &str = "claude-code";

/// Whose signatures its messages bear.
const PROVIDER: &str = "anthropic";

pub(crate) static FORMAT: Entry = Entry {
    name: SYSTEM,
    aliases: &["claude"],
    title: "Claude Code",
    reader: Some(&Claude),
    writer: Some(&Claude),
};

struct Claude;

impl Reader for Claude {
    fn recognise(&self, probe: &Probe) -> Option<PathBuf> {
        if probe.kind != Kind::File {
            return None;
        }
        let by_line = probe.objects().any(|line| is_line(&line))
            && !probe.objects().any(|line| is_of_qwen(&line));
        // The first line may be longer than what is looked at.
        let text = probe.text();
        let by_words = !text.contains('\n')
            && text.starts_with('{')
            && ["\"parentUuid\"", "\"sessionId\"", "\"type\""].iter().all(|it| text.contains(it))
            && !text.contains("\"role\":\"user\",\"parts\":");
        (by_line || by_words).then(|| main_of(&probe.path).unwrap_or_else(|| probe.path.clone()))
    }

    fn read(&self, input: &Input, sink: &mut dyn Sink) -> Result<()> {
        read::read(input, sink)
    }

    fn keeper(&self) -> Option<Keeper> {
        Some(kept::SDK)
    }

    fn places(&self, homes: &Homes<'_>) -> Vec<PathBuf> {
        let folder = homes.named_or("CLAUDE_CONFIG_DIR", ".claude");
        folder.map(|folder| folder.join("projects")).into_iter().collect()
    }
}

impl Writer for Claude {
    fn ending(&self) -> &'static str {
        "jsonl"
    }

    fn place(&self, head: &Head) -> PathBuf {
        format!("{}.jsonl", write::name_of(head)).into()
    }

    fn parts(&self) -> &'static [&'static str] {
        // Results under other names are known only where they are written again.
        &["subagents/agent-*.jsonl", "subagents/agent-*.meta.json", "tool-results/toolu_*.txt"]
    }

    fn write(&self, well: &Stepwell, id: &SessionId, to: &mut Outlet<'_>) -> Result<Exported> {
        write::write(well, id, to)
    }

    fn is_name(&self, id: &str) -> bool {
        is_uuid(id)
    }

    fn successor(&self) -> Option<Successor> {
        Some(Successor { agent: "claude", takes: Takes::Both })
    }

    fn handoff(&self, session: &Handover<'_>, homes: &Homes<'_>) -> Option<Handoff> {
        let folder = homes.named_or("CLAUDE_CONFIG_DIR", ".claude")?;
        let workspace = session.workspace.to_string_lossy();
        let plain = |c: char| if c.is_ascii_alphanumeric() { c } else { '-' };
        let slug: String = workspace.chars().map(plain).collect();
        let file = format!("{}.jsonl", session.uuid);
        let command = ["claude", "--resume", session.uuid].map(str::to_owned).to_vec();
        let folder = folder.join("projects").join(slug);
        let workspace = session.workspace.to_owned();
        Some(Handoff { path: folder.join(file), found_below: folder, command, folder: workspace })
    }
}

/// Is this a line of a transcript?
fn is_line(line: &Fields<'_>) -> bool {
    match line.text("type").as_deref() {
        Some("user" | "assistant" | "system") => {
            let tree = line.raw("parentUuid").is_some() && line.has("uuid");
            tree && line.has("sessionId") && !is_of_qwen(line)
        }
        Some("summary") => line.has("leafUuid"),
        Some("file-history-snapshot") => line.has("snapshot"),
        // Of a session without a conversation nothing else is written.
        Some("stepwell") => line.has("sessionId") && line.has("event"),
        _ => false,
    }
}

/// Qwen Code writes the same tree, and other messages into it.
fn is_of_qwen(line: &Fields<'_>) -> bool {
    let message = line.raw("message").and_then(|message| Fields::parse(message).ok());
    line.has("systemPayload") || message.is_some_and(|it| it.has("parts") && !it.has("content"))
}

/// The transcript that a subagent's belongs to, if it is there.
fn main_of(path: &Path) -> Option<PathBuf> {
    let folder = path.parent().filter(|folder| folder.ends_with("subagents"))?.parent()?;
    let main = folder.with_file_name(format!("{}.jsonl", folder.file_name()?.to_str()?));
    main.is_file().then_some(main)
}
