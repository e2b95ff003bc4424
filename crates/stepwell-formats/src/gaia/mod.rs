//! GAIA-OPS: `.claude/session/<agent_id>/state.json`, how an agent stands that is run by
//! someone else.
//!
//! There is no conversation in it: a session that comes from there is one of an external
//! driver, as `stepwell agent` makes them, and its history of phases is what it holds.

mod history;
mod read;
mod write;

use std::path::{Path, PathBuf};

use stepwell::log::Head;
use stepwell::{SessionId, Stepwell};

use crate::Result;
use crate::original::{self, own_name};
use crate::read::input::Input;
use crate::read::neutral::Sink;
use crate::read::reader::{Homes, Kind, Probe, Reader};
use crate::registry::Entry;
use crate::snapshot::keys;
use crate::write::writer::{Exported, Outlet, Writer, name_there};

/// The system's name in a session's source.
const SYSTEM: &str = "gaia";

/// The fields of a state, in their order.
const FIELDS: [&str; 11] = [
    "agent_id",
    "agent_name",
    "purpose",
    "created_at",
    "last_updated",
    "phase",
    "metadata",
    "resume_ready",
    "history",
    "error_count",
    "last_error",
];

/// The fields that finalizing adds.
const FINAL: [&str; 3] = ["finalized_at", "summary", "duration_seconds"];

pub(crate) static FORMAT: Entry = Entry {
    name: SYSTEM,
    aliases: &["gaia-ops"],
    title: "GAIA-OPS",
    reader: Some(&Gaia),
    writer: Some(&Gaia),
};

struct Gaia;

impl Reader for Gaia {
    fn recognise(&self, probe: &Probe) -> Option<PathBuf> {
        if probe.kind != Kind::File {
            return None;
        }
        let keys = keys(probe.text());
        let has = |name: &str| keys.iter().any(|key| key == name);
        let by_fields = has("agent_id") && has("phase") && (has("history") || has("resume_ready"));
        // A broken one is still one of its states, and is to be reported as such.
        let by_place = probe.name() == "state.json" && workspace(&probe.path).is_some();
        (by_fields || by_place).then(|| probe.path.clone())
    }

    fn read(&self, input: &Input, sink: &mut dyn Sink) -> Result<()> {
        read::read(input, sink)
    }

    fn places(&self, homes: &Homes<'_>) -> Vec<PathBuf> {
        homes.workspace.map(|it| it.join(".claude").join("session")).into_iter().collect()
    }
}

impl Writer for Gaia {
    fn place(&self, head: &Head) -> PathBuf {
        Path::new(&name_there(head, SYSTEM)).join("state.json")
    }

    fn write(&self, well: &Stepwell, id: &SessionId, to: &mut Outlet<'_>) -> Result<Exported> {
        let (head, purpose) = (well.info(id)?.head, to.wishes().purpose);
        let there = (SYSTEM, own_name(&head));
        match original::write_file(well, &head, there, purpose, to.main()?)? {
            Some(same) => Ok(same),
            None => write::write(well, id, to.main()?),
        }
    }
}

/// The folder that an agent works in.
fn workspace(path: &Path) -> Option<&Path> {
    let sessions = path.parent()?.parent().filter(|it| it.ends_with(".claude/session"))?;
    sessions.parent()?.parent()
}
