//! architect: `.architect/sessions/<id>.json`, one object with the conversation in it.
//!
//! Messages are those of OpenAI's chat. The file tells sums of steps and costs, which become
//! what the session did [elsewhere](stepwell::model::Elsewhere). When architect itself saves, it cuts
//! long conversations through; that is done here only on request.

mod files;
mod message;
mod read;
mod write;

use std::path::{Path, PathBuf};

use stepwell::{SessionId, Stepwell};

use crate::Result;
use crate::original::{self, own_name};
use crate::read::input::Input;
use crate::read::neutral::Sink;
use crate::read::reader::{Homes, Kind, Probe, Reader};
use crate::registry::Entry;
use crate::snapshot::keys;
use crate::write::writer::{Exported, Length, Outlet, Wishes, Writer};

/// The system's name in a session's source.
const SYSTEM: &str = "architect";

/// The fields of a session, in their order.
const FIELDS: [&str; 14] = [
    "session_id",
    "task",
    "agent",
    "model",
    "status",
    "steps_completed",
    "messages",
    "files_modified",
    "total_cost",
    "started_at",
    "updated_at",
    "stop_reason",
    "metadata",
    TRUNCATED,
];

/// The field, and the metadata here, that says that only the end of a conversation is there.
const TRUNCATED: &str = "messages_truncated";

pub(crate) static FORMAT: Entry = Entry {
    name: SYSTEM,
    aliases: &[],
    title: "architect",
    reader: Some(&Architect),
    writer: Some(&Architect),
};

struct Architect;

impl Reader for Architect {
    fn recognise(&self, probe: &Probe) -> Option<PathBuf> {
        if probe.kind != Kind::File {
            return None;
        }
        let keys = keys(probe.text());
        let has = |name: &str| keys.iter().any(|key| key == name);
        let by_fields = has("session_id") && has("task") && has("steps_completed");
        // A broken one is still one of its sessions, and is to be reported as such.
        let by_place = is_id(probe.name().strip_suffix(".json").unwrap_or_default())
            && probe.path.parent().is_some_and(|it| it.ends_with(".architect/sessions"));
        (by_fields || by_place).then(|| probe.path.clone())
    }

    fn read(&self, input: &Input, sink: &mut dyn Sink) -> Result<()> {
        read::read(input, sink)
    }

    fn places(&self, homes: &Homes<'_>) -> Vec<PathBuf> {
        let folder = homes.workspace.map(|it| it.join(".architect").join("sessions"));
        folder.into_iter().collect()
    }
}

impl Writer for Architect {
    fn write(&self, well: &Stepwell, id: &SessionId, to: &mut Outlet<'_>) -> Result<Exported> {
        let Wishes { length, purpose, .. } = to.wishes();
        let head = well.info(id)?.head;
        let there = (SYSTEM, own_name(&head));
        if length == Length::Whole
            && let Some(same) = original::write_file(well, &head, there, purpose, to.main()?)?
        {
            return Ok(same);
        }
        write::write(well, id, length, to.main()?)
    }
}

/// Is it written as its ids are: `YYYYMMDD-HHMMSS-` and six hexadecimal digits?
fn is_id(text: &str) -> bool {
    let groups: Vec<&str> = text.split('-').collect();
    let digits = |it: &str| it.bytes().all(|b| b.is_ascii_digit());
    let hex = |it: &str| it.bytes().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f'));
    matches!(&groups[..], [day, time, end]
        if day.len() == 8 && time.len() == 6 && end.len() == 6
            && digits(day) && digits(time) && hex(end))
}

/// The folder that a session's agent works in.
fn workspace(path: &Path) -> Option<&Path> {
    let sessions = path.parent().filter(|it| it.ends_with(".architect/sessions"))?;
    sessions.parent()?.parent()
}
