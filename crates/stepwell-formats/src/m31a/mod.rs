//! M31A: `<project>/.m31a/`, a session in several files; in older versions
//! `~/.m31a/sessions/<id>/`.
//!
//! `session.json` says what the session is, `messages.json` what was said, and the rest how the
//! work stands. The files are not written together: what is broken in one is taken from another,
//! and told of. What is told: the conversation, then the work, then the attributes.

mod kept;
mod ledger;
mod message;
mod phase_walk;
mod read;
mod salvage;
mod session;
mod sound;
mod tasks;
mod write;

pub use ledger::LEDGER_COLUMNS;
use std::path::{Path, PathBuf};

use stepwell::{SessionId, Stepwell};

use crate::Result;
use crate::read::input::Input;
use crate::read::neutral::Sink;
use crate::read::reader::{Homes, Kind, Probe, Reader};
use crate::registry::Entry;
use crate::snapshot::keys;
use crate::write::writer::{Exported, Outlet, Shape, Subagents, Writer};

/// The system's name in a session's source.
const SYSTEM: &str = "m31a";

/// The folder of a project, and of a user.
const FOLDER: &str = ".m31a";

/// What a session is.
const SESSION: &str = "session.json";

/// Other files of a session, by which it can be named.
const PARTS: [&str; 7] = [
    "messages.json",
    "checkpoint.json",
    "recovery.json",
    "session.json.bak",
    "STATE.md",
    "TASKS.md",
    "PROJECT.md",
];

/// All that lies in a session's folder.
const ALL: [&str; 12] = [
    SESSION,
    "session.json.bak",
    "messages.json",
    "checkpoint.json",
    "recovery.json",
    "STATE.md",
    "TASKS.md",
    "PROJECT.md",
    "plan.md",
    "plan_v1.md",
    "plan_v2.md",
    kept::ASIDE,
];

/// The lane of what was said to the program and not to the model.
const SKIPPED: &str = "skipped";

pub(crate) static FORMAT: Entry =
    Entry { name: SYSTEM, aliases: &[], title: "M31A", reader: Some(&M31a), writer: Some(&M31a) };

struct M31a;

impl Reader for M31a {
    fn recognise(&self, probe: &Probe) -> Option<PathBuf> {
        let folder = match probe.kind {
            Kind::Folder => &probe.path,
            Kind::File if ledger::is_ledger(probe.text()) => return Some(probe.path.clone()),
            Kind::File if is_session(probe.text()) && !is_backup(probe) => {
                return Some(probe.path.clone());
            }
            // A broken one is still one of its sessions, and is to be reported as such.
            Kind::File if probe.name() == SESSION || PARTS.contains(&probe.name()) => {
                probe.path.parent()?
            }
            Kind::File => return None,
        };
        // Where its sessions are, everything is one; elsewhere what is in it decides.
        let is_one = match folder.file_name()?.to_str()? {
            FOLDER => true,
            "archived" => false,
            _ => is_sessions(folder.parent()?),
        };
        let session = folder.join(SESSION);
        // What is a link is left to whoever reads the folder, and is refused there.
        let is_file = |path: &Path| path.symlink_metadata().is_ok_and(|found| found.is_file());
        match is_file(&session) {
            true => is_one.then_some(session),
            false => {
                let has_part = PARTS.iter().take(4).any(|part| is_file(&folder.join(part)));
                (is_one && (has_part || !folder.ends_with(FOLDER))).then(|| folder.to_owned())
            }
        }
    }

    fn read(&self, input: &Input, sink: &mut dyn Sink) -> Result<()> {
        read::read(input, sink)
    }

    fn places(&self, homes: &Homes<'_>) -> Vec<PathBuf> {
        let here = homes.workspace.map(|it| it.join(FOLDER));
        let home = homes.home.map(|it| it.join(FOLDER)).filter(|it| Some(it) != here.as_ref());
        here.into_iter().chain(home).collect()
    }
}

impl Writer for M31a {
    fn shape(&self) -> Shape {
        Shape::Folder
    }

    fn subagents(&self) -> Subagents {
        Subagents::Apart
    }

    fn parts(&self) -> &'static [&'static str] {
        &ALL
    }

    fn write(&self, well: &Stepwell, id: &SessionId, to: &mut Outlet<'_>) -> Result<Exported> {
        write::write(well, id, to)
    }
}

/// Does a text begin as a session does?
fn is_session(text: &str) -> bool {
    let keys = keys(text);
    let has = |name: &str| keys.iter().any(|key| key == name);
    has("id") && has("started_at") && has("workflow_phase")
}

/// Is it what was there before? It is read when what is there is broken.
fn is_backup(probe: &Probe) -> bool {
    probe.name().ends_with(".bak") && probe.path.with_file_name(SESSION).is_file()
}

/// Is this where older versions keep sessions?
fn is_sessions(folder: &Path) -> bool {
    folder.ends_with(".m31a/sessions") || folder.ends_with(".m31a/sessions/archived")
}
