//! Qwen Code: `~/.qwen/projects/<folder>/chats/<uuid>.jsonl`, a line for each message, whose parts are
//! those of the Gemini API.
//!
//! A chat is a tree: the conversation is the chain that ends with the last line, and lines beside the
//! conversation are links of it.

mod read;
mod write;

use std::path::PathBuf;

use stepwell::log::Head;
use stepwell::{SessionId, Stepwell};

use crate::Result;
use crate::journal::form::Words;
use crate::journal::reading;
use crate::json::fields::Fields;
use crate::read::input::Input;
use crate::read::neutral::Sink;
use crate::read::reader::{Homes, Kind, Probe, Reader};
use crate::registry::Entry;
use crate::write::writer::{
    Exported, Handoff, Handover, Outlet, Successor, Takes, Writer, is_uuid,
};

static WORDS: Words = Words {
    system: "qwen",
    own: "uuid",
    parent: "parentUuid",
    session: Some("sessionId"),
    folder: Some("cwd"),
    payload: "systemPayload",
};

pub(crate) static FORMAT: Entry = Entry {
    name: WORDS.system,
    aliases: &["qwen-code"],
    title: "Qwen Code",
    reader: Some(&Qwen),
    writer: Some(&Qwen),
};

struct Qwen;

impl Reader for Qwen {
    fn recognise(&self, probe: &Probe) -> Option<PathBuf> {
        if probe.kind != Kind::File {
            return None;
        }
        let by_line = probe.objects().any(|line| is_line(&line));
        // The first line may be longer than what is looked at.
        let text = probe.text();
        let by_words = !text.contains('\n')
            && text.starts_with('{')
            && ["\"parentUuid\"", "\"sessionId\"", "\"parts\":"].iter().all(|it| text.contains(it));
        (by_line || by_words).then(|| probe.path.clone())
    }

    fn read(&self, input: &Input, sink: &mut dyn Sink) -> Result<()> {
        reading::read(input, sink, &mut read::Lines, input.root()).map(drop)
    }

    fn places(&self, homes: &Homes<'_>) -> Vec<PathBuf> {
        folder(homes).map(|folder| folder.join("projects")).into_iter().collect()
    }
}

impl Writer for Qwen {
    fn ending(&self) -> &'static str {
        "jsonl"
    }

    fn place(&self, head: &Head) -> PathBuf {
        format!("{}.jsonl", write::name_of(head)).into()
    }

    fn write(&self, well: &Stepwell, id: &SessionId, to: &mut Outlet<'_>) -> Result<Exported> {
        write::write(well, id, to)
    }

    fn is_name(&self, id: &str) -> bool {
        is_uuid(id)
    }

    fn successor(&self) -> Option<Successor> {
        Some(Successor { agent: "qwen", takes: Takes::Both })
    }

    fn handoff(&self, session: &Handover<'_>, homes: &Homes<'_>) -> Option<Handoff> {
        let workspace = session.workspace.to_string_lossy();
        let plain = |c: char| if c.is_ascii_alphanumeric() { c } else { '-' };
        let slug: String = workspace.chars().map(plain).collect();
        let folder = folder(homes)?.join("projects").join(slug);
        let path = folder.join("chats").join(format!("{}.jsonl", session.uuid));
        let command = ["qwen", "--resume", session.uuid].map(str::to_owned).to_vec();
        let workspace = session.workspace.to_owned();
        Some(Handoff { path, found_below: folder, command, folder: workspace })
    }
}

fn folder(homes: &Homes<'_>) -> Option<PathBuf> {
    (homes.variable)("QWEN_RUNTIME_DIR").or_else(|| homes.named_or("QWEN_HOME", ".qwen"))
}

/// Is this a line of a chat? Claude Code writes the same tree, and other messages into it.
fn is_line(line: &Fields<'_>) -> bool {
    let named = line.has("uuid") && line.raw("parentUuid").is_some() && line.has("sessionId");
    let message = line.object("message");
    let known = line.text("type").is_some_and(|it| read::KINDS.contains(&it.as_ref()));
    let says = message.is_some_and(|it| it.has("parts") && !it.has("content"));
    named && known && (says || line.has("systemPayload"))
}
