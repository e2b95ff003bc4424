//! Codex: `~/.codex/sessions/YYYY/MM/DD/rollout-<time>-<id>.jsonl`, a line for each item.
//!
//! What the model saw are the `response_item` lines, in both modes of history; the rest
//! tells a screen what to show, and is kept beside them. Items of one answer become one
//! message. A rollout that goes on from another one holds only what is its own: the rest is
//! read where it lies ([`base`]).

mod base;
mod front;
pub(crate) mod item;
mod line;
mod order;
mod read;
mod write;

use std::path::{Path, PathBuf};

use stepwell::log::Head;
use stepwell::{SessionId, Stepwell};

use crate::Result;
use crate::read::input::Input;
use crate::read::neutral::Sink;
use crate::read::reader::{Homes, Kind, Probe, Reader};
use crate::registry::Entry;
use crate::write::writer::{
    Exported, Handoff, Handover, Outlet, Successor, Takes, Writer, is_uuid,
};

/// The system's name in a session's source.
const SYSTEM: &str = "codex";

/// What `history_base` is called in what is kept: the session that is written holds all of
/// its history itself.
const FORMER_BASE: &str = "stepwell_history_base";

/// Where the rollouts of subagents lie that are written with a session: in the folder beside
/// its file.
const SUBAGENTS_FOLDER: &str = "subagents";

pub(crate) static FORMAT: Entry = Entry {
    name: SYSTEM,
    aliases: &[],
    title: "Codex",
    reader: Some(&Codex),
    writer: Some(&Codex),
};

struct Codex;

impl Reader for Codex {
    fn recognise(&self, probe: &Probe) -> Option<PathBuf> {
        let first = probe.objects().next();
        let by_line = first.is_some_and(|line| {
            let kind = line.text("type");
            let meta = line.object("payload").is_some_and(|payload| payload.has("id"));
            kind.as_deref() == Some("session_meta") && meta && line.has("timestamp")
        });
        // The first line holds the instructions, and may be longer than what is looked at.
        let text = probe.text();
        let by_words = !text.contains('\n')
            && text.starts_with('{')
            && ["\"session_meta\"", "\"payload\"", "\"cli_version\""]
                .iter()
                .all(|it| text.contains(it));
        let ours = probe.kind == Kind::File && (by_line || by_words);
        ours.then(|| main_of(&probe.path).unwrap_or_else(|| probe.path.clone()))
    }

    fn read(&self, input: &Input, sink: &mut dyn Sink) -> Result<()> {
        read::read(input, sink)
    }

    fn places(&self, homes: &Homes<'_>) -> Vec<PathBuf> {
        let folder = homes.named_or("CODEX_HOME", ".codex");
        let folders =
            folder.map(|folder| [folder.join("sessions"), folder.join("archived_sessions")]);
        folders.into_iter().flatten().collect()
    }
}

impl Writer for Codex {
    fn ending(&self) -> &'static str {
        "jsonl"
    }

    fn write(&self, well: &Stepwell, id: &SessionId, to: &mut Outlet<'_>) -> Result<Exported> {
        write::write(well, id, to)
    }

    fn parts(&self) -> &'static [&'static str] {
        &["subagents/rollout-*.jsonl"]
    }

    fn is_name(&self, id: &str) -> bool {
        // A rollout that goes on from another one has no name that a command takes: that is
        // the thread's, which both share.
        is_uuid(id)
    }

    fn place(&self, head: &Head) -> PathBuf {
        rollout(head, &write::file_name(head))
    }

    fn successor(&self) -> Option<Successor> {
        Some(Successor { agent: "codex", takes: Takes::Both })
    }

    fn handoff(&self, session: &Handover<'_>, homes: &Homes<'_>) -> Option<Handoff> {
        let found_below = homes.named_or("CODEX_HOME", ".codex")?.join("sessions");
        let path = found_below.join(rollout(session.head, session.uuid));
        let command = ["codex", "resume", session.uuid].map(str::to_owned).to_vec();
        Some(Handoff { path, found_below, command, folder: session.workspace.to_owned() })
    }
}

/// The file of a thread: in folders by its day, and with its time in its name.
fn rollout(head: &Head, thread: &str) -> PathBuf {
    let time = head.created_at.compact();
    let part = |from: usize, to: usize| time.get(from..to).unwrap_or_default();
    [part(0, 4), part(4, 6), part(6, 8), &rollout_name(head, thread)].iter().collect()
}

/// The name of a thread's file.
fn rollout_name(head: &Head, thread: &str) -> String {
    // 20260223-143022
    let time = head.created_at.compact();
    let part = |from: usize, to: usize| time.get(from..to).unwrap_or_default();
    let (year, month, day) = (part(0, 4), part(4, 6), part(6, 8));
    let (hour, minute, second) = (part(9, 11), part(11, 13), part(13, 15));
    format!("rollout-{year}-{month}-{day}T{hour}-{minute}-{second}-{thread}.jsonl")
}

/// The rollout beside which a subagent's lies, if it is there.
fn main_of(path: &Path) -> Option<PathBuf> {
    let folder = path.parent().filter(|folder| folder.ends_with(SUBAGENTS_FOLDER))?.parent()?;
    let main = folder.with_file_name(format!("{}.jsonl", folder.file_name()?.to_str()?));
    main.is_file().then_some(main)
}
