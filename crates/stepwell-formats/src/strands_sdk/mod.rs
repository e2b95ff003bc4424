//! Strands SDK: `session_<id>/`, a folder of agents, a file for each of their messages.
//!
//! Each agent speaks in a lane: the first one in `main`, others in one of their name. What was
//! moved out of an agent's window becomes a compaction, with its summary if there is one.
//! A redacted message is what stands in its place; the original is kept and shown to nobody.
//! Since 1.62 a session may also be kept as [`snapshots`], which are read as such files are.
//! What a file holds besides words is kept with the words taken out ([`content`]), and put
//! together with them again when it is written.
//!
//! A session that was never here is written with all that the system's own loader needs.
//! What it has no place for goes into `stepwell.jsonl` beside `session.json`, which the
//! loader leaves alone and the reader here takes back.

pub(crate) mod agent;
pub(crate) mod content;
pub(crate) mod conversation;
mod group;
pub(crate) mod kept;
mod read;
pub(crate) mod sidecar;
mod snapshots;
pub(crate) mod write;

use std::path::{Path, PathBuf};

use stepwell::log::Head;
use stepwell::{SessionId, Stepwell};

use crate::Result;
use crate::json::fields::{Fields, quoted};
use crate::read::input::Input;
use crate::read::neutral::Sink;
use crate::read::reader::{Homes, Kind, Probe, Reader};
use crate::registry::Entry;
use crate::write::writer::{
    Exported, Handoff, Handover, Outlet, Shape, Successor, Takes, Writer, name_there,
};

/// The system's name in a session's source.
pub(crate) const SYSTEM: &str = "strands-sdk";

/// What stands before a session's id in the name of its folder.
pub(crate) const FOLDER: &str = "session_";

pub(crate) static FORMAT: Entry = Entry {
    name: SYSTEM,
    aliases: &["strands"],
    title: "Strands SDK",
    reader: Some(&Sdk),
    writer: Some(&Sdk),
};

struct Sdk;

impl Reader for Sdk {
    fn recognise(&self, probe: &Probe) -> Option<PathBuf> {
        let has_agents = |folder: &Path| {
            agent::folders_of(folder).is_ok_and(|found| !found.is_empty())
                || snapshots::is_session(folder)
        };
        let is_ours = |folder: &Path| match facts(&folder.join("session.json")) {
            Some(text) => match Fields::parse(&text) {
                Ok(fields) => fields.has("session_id") && fields.has("session_type"),
                // Broken: it is told of all the same.
                Err(_) => begins_so(&text) || is_named_so(folder) || has_agents(folder),
            },
            // The agents are there, if nothing else is.
            None => has_agents(folder),
        };
        if probe.kind == Kind::Folder {
            return is_ours(&probe.path).then(|| probe.path.clone());
        }
        // A file of it, however deep.
        let name = probe.name();
        let part = name == "session.json"
            || name == "agent.json"
            || name == "multi_agent.json"
            || name == snapshots::LATEST
            || agent::number_of(&probe.path).is_some();
        let mut above = probe.path.ancestors().skip(1).take(if part { 5 } else { 0 });
        above.find(|folder| is_ours(folder)).map(Path::to_owned)
    }

    fn read(&self, input: &Input, sink: &mut dyn Sink) -> Result<()> {
        read::read(input, sink)
    }

    fn places(&self, homes: &Homes<'_>) -> Vec<PathBuf> {
        let home = homes.home.map(|home| home.join(".strands/sessions"));
        // Snapshots are kept below the folder that an agent is started in.
        let here = homes.workspace.map(|here| here.join(".strands/session"));
        home.into_iter().chain(here).collect()
    }
}

impl Writer for Sdk {
    fn shape(&self) -> Shape {
        Shape::Folder
    }

    fn place(&self, head: &Head) -> PathBuf {
        format!("{}{}", FOLDER, name_there(head, SYSTEM)).into()
    }

    fn parts(&self) -> &'static [&'static str] {
        &[
            "session.json",
            "agents/agent_*/agent.json",
            "agents/agent_*/messages/message_#.json",
            "multi_agents/multi_agent_*/multi_agent.json",
            sidecar::NAME,
        ]
    }

    fn write(&self, well: &Stepwell, id: &SessionId, to: &mut Outlet<'_>) -> Result<Exported> {
        write::write(well, id, to)
    }

    fn successor(&self) -> Option<Successor> {
        Some(Successor { agent: "strands", takes: Takes::Conversations })
    }

    fn handoff(&self, session: &Handover<'_>, homes: &Homes<'_>) -> Option<Handoff> {
        let folder = homes.home?.join(".strands/sessions");
        let id = session.uuid;
        let agent = conversation::plain_name(&session.head.agent);
        // Its own default is another one in older versions.
        let place = quoted(&folder.to_string_lossy());
        // A conversation is restored by the kind of manager that kept it, and by no other.
        let code = format!(
            "from strands import Agent\n\
             from strands.agent import conversation_manager as managers\n\
             from strands.session.file_session_manager import FileSessionManager\n\
             sessions = FileSessionManager({id:?}, storage_dir={place})\n\
             kept = sessions.read_agent({id:?}, {agent:?})\n\
             name = kept.conversation_manager_state.get('__name__') if kept else None\n\
             manager = getattr(managers, name or 'SlidingWindowConversationManager')()\n\
             agent = Agent(agent_id={agent:?}, session_manager=sessions, conversation_manager=manager)\n\
             while True: agent(input('> '))\n"
        );
        let command = ["python3", "-c", &code].map(str::to_owned).to_vec();
        let path = folder.join(format!("{FOLDER}{id}"));
        Some(Handoff { path, found_below: folder, command, folder: session.workspace.to_owned() })
    }
}

/// The front of a file, if it is one.
pub(crate) fn facts(path: &Path) -> Option<String> {
    let probe = Probe::of(path).ok()??;
    (probe.kind == Kind::File).then(|| probe.text().to_owned())
}

/// Does a file that is torn begin as `session.json` does?
fn begins_so(text: &str) -> bool {
    let front = text.trim_start().strip_prefix('{').map(str::trim_start);
    front.is_some_and(|front| front.starts_with("\"session_id\""))
}

/// Does a folder bear the name of a session's?
fn is_named_so(folder: &Path) -> bool {
    let name = folder.file_name().and_then(|name| name.to_str());
    name.is_some_and(|name| name.len() > FOLDER.len() && name.starts_with(FOLDER))
}
