//! strands-cli: `session_<uuid>/`, a flow with how far it came, and its agents' conversations.
//!
//! A session becomes a session of a flow: what `pattern_state.json` says is done becomes the
//! nodes of the flow that are done ([`state`]), and a question that waits becomes its gate. So
//! it is taken up here as any other flow, with just the work that is missing. The files are
//! not written together there, so one may be older than another: what is done by any of them
//! is done, and where they disagree it is said.
//!
//! The files themselves are kept with the nodes' answers taken out. A session that nobody
//! went on with goes back as it came; of one that was, everything that is known is written
//! over what was there.

mod metadata;
mod read;
mod spec;
mod state;
mod turns;
mod write;

use std::path::{Path, PathBuf};

use stepwell::log::Head;
use stepwell::{SessionId, Stepwell};

use crate::Result;
use crate::json::fields::Fields;
use crate::read::input::Input;
use crate::read::neutral::Sink;
use crate::read::reader::{Homes, Kind, Probe, Reader};
use crate::registry::Entry;
use crate::strands_sdk::{self, sidecar};
use crate::write::writer::{
    Exported, Handoff, Handover, Outlet, Shape, Successor, Takes, Writer, name_there,
};

/// The system's name in a session's source.
const SYSTEM: &str = "strands-cli";

pub(crate) static FORMAT: Entry = Entry {
    name: SYSTEM,
    aliases: &[],
    title: "strands-cli",
    reader: Some(&Cli),
    writer: Some(&Cli),
};

struct Cli;

impl Reader for Cli {
    fn recognise(&self, probe: &Probe) -> Option<PathBuf> {
        if probe.kind == Kind::Folder && is_session(&probe.path) {
            return Some(probe.path.clone());
        }
        let part = match probe.kind {
            Kind::File => {
                let names = ["session.json", "pattern_state.json", "spec_snapshot.yaml"];
                names.contains(&probe.name()) || is_inside(&probe.path)
            }
            Kind::Folder => is_inside(&probe.path),
        };
        let mut above = probe.path.ancestors().skip(1).take(if part { 6 } else { 0 });
        above.find(|folder| is_session(folder)).map(Path::to_owned)
    }

    fn read(&self, input: &Input, sink: &mut dyn Sink) -> Result<()> {
        read::read(input, sink)
    }

    fn places(&self, homes: &Homes<'_>) -> Vec<PathBuf> {
        let data = homes.data.map(|data| data.join("strands/sessions"));
        let home = homes.home.map(|home| home.join(".strands/sessions"));
        data.into_iter().chain(home).collect()
    }
}

impl Writer for Cli {
    fn shape(&self) -> Shape {
        Shape::Folder
    }

    fn place(&self, head: &Head) -> PathBuf {
        format!("{}{}", strands_sdk::FOLDER, name_there(head, SYSTEM)).into()
    }

    fn parts(&self) -> &'static [&'static str] {
        &[
            "session.json",
            "pattern_state.json",
            "spec_snapshot.yaml",
            // An agent's own folder, as older documents have it.
            "agents/*/agent.json",
            "agents/*/messages/message_#.json",
            "agents/session_*/session.json",
            "agents/session_*/agents/agent_*/agent.json",
            "agents/session_*/agents/agent_*/messages/message_#.json",
            sidecar::NAME,
        ]
    }

    fn write(&self, well: &Stepwell, id: &SessionId, to: &mut Outlet<'_>) -> Result<Exported> {
        write::write(well, id, to)
    }

    fn successor(&self) -> Option<Successor> {
        Some(Successor { agent: "strands", takes: Takes::Flows })
    }

    fn handoff(&self, session: &Handover<'_>, homes: &Homes<'_>) -> Option<Handoff> {
        session.head.flow.as_ref()?;
        let folder = homes.data?.join("strands/sessions");
        let id = session.uuid;
        let command = ["strands", "run", "--resume", id].map(str::to_owned).to_vec();
        let path = folder.join(format!("{}{id}", strands_sdk::FOLDER));
        Some(Handoff { path, found_below: folder, command, folder: session.workspace.to_owned() })
    }
}

/// Is it below the folder of a session's agents?
fn is_inside(path: &Path) -> bool {
    path.ancestors().skip(1).take(5).any(|folder| folder.ends_with("agents"))
}

/// Is this the folder of a session?
fn is_session(folder: &Path) -> bool {
    let is_file = |name: &str| folder.join(name).symlink_metadata().is_ok_and(|it| it.is_file());
    let Some(text) = strands_sdk::facts(&folder.join("session.json")) else {
        return is_file("pattern_state.json") && is_file("spec_snapshot.yaml");
    };
    match Fields::parse(&text) {
        Ok(fields) => {
            let metadata = fields.object("metadata").unwrap_or_default();
            metadata.has("session_id")
                && (metadata.has("pattern_type") || metadata.has("spec_hash"))
        }
        // Broken, or longer than what is looked at.
        Err(_) => {
            let facts = ["\"metadata\"", "\"session_id\"", "\"workflow_name\""];
            is_file("spec_snapshot.yaml")
                || is_file("pattern_state.json")
                || facts.iter().all(|it| text.contains(it))
        }
    }
}
