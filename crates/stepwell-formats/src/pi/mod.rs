//! Pi: `~/.pi/agent/sessions/--<folder>--/<time>_<id>.jsonl`, an entry on each line.
//!
//! A session is a tree: the conversation is the chain that ends with the last line. Files of the
//! first version are a list, whose entries have no names.

mod content;
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
use crate::snapshot::TimeForm;
use crate::write::writer::{Exported, Handoff, Handover, Outlet, Successor, Takes, Writer};

static WORDS: Words = Words {
    system: "pi",
    own: "id",
    parent: "parentId",
    session: None,
    folder: None,
    payload: "data",
};

pub(crate) static FORMAT: Entry =
    Entry { name: WORDS.system, aliases: &[], title: "Pi", reader: Some(&Pi), writer: Some(&Pi) };

struct Pi;

impl Reader for Pi {
    fn recognise(&self, probe: &Probe) -> Option<PathBuf> {
        if probe.kind != Kind::File {
            return None;
        }
        let first = probe.text().lines().find(|line| !line.trim().is_empty())?;
        let is_header = Fields::parse(first).is_ok_and(|line| is_header(&line));
        is_header.then(|| probe.path.clone())
    }

    fn read(&self, input: &Input, sink: &mut dyn Sink) -> Result<()> {
        reading::read(input, sink, &mut read::Entries::default(), input.root()).map(drop)
    }

    fn places(&self, homes: &Homes<'_>) -> Vec<PathBuf> {
        sessions(homes).into_iter().collect()
    }
}

impl Writer for Pi {
    fn ending(&self) -> &'static str {
        "jsonl"
    }

    fn place(&self, head: &Head) -> PathBuf {
        file_name(head, &write::name_of(head)).into()
    }

    fn write(&self, well: &Stepwell, id: &SessionId, to: &mut Outlet<'_>) -> Result<Exported> {
        write::write(well, id, to)
    }

    fn successor(&self) -> Option<Successor> {
        Some(Successor { agent: "pi", takes: Takes::Both })
    }

    fn handoff(&self, session: &Handover<'_>, homes: &Homes<'_>) -> Option<Handoff> {
        let workspace = session.workspace.to_string_lossy();
        let slug = workspace.strip_prefix('/').unwrap_or(&workspace).replace(['/', ':'], "-");
        let folder = match named_folder(homes) {
            Some(folder) => folder,
            None => sessions(homes)?.join(format!("--{slug}--")),
        };
        let path = folder.join(file_name(session.head, session.uuid));
        let command = ["pi", "--session", session.uuid].map(str::to_owned).to_vec();
        let workspace = session.workspace.to_owned();
        Some(Handoff { path, found_below: folder, command, folder: workspace })
    }
}

/// The one folder of all sessions, if the user named it.
fn named_folder(homes: &Homes<'_>) -> Option<PathBuf> {
    (homes.variable)("PI_CODING_AGENT_SESSION_DIR")
}

fn sessions(homes: &Homes<'_>) -> Option<PathBuf> {
    named_folder(homes)
        .or_else(|| Some(homes.named_or("PI_CODING_AGENT_DIR", ".pi/agent")?.join("sessions")))
}

/// What Pi calls the file of a session.
fn file_name(head: &Head, session: &str) -> String {
    let began = TimeForm::Millis.text(head.created_at).replace([':', '.'], "-");
    format!("{began}_{session}.jsonl")
}

/// Is this the first line of a session?
fn is_header(line: &Fields<'_>) -> bool {
    line.text("type").as_deref() == Some("session")
        && line.text("id").is_some_and(|id| !id.is_empty())
        && line.text("cwd").is_some()
}
